//! follow: how far a follower of the database is, line by line.

use std::time::Duration;

use clap::Args;
use drumlin::{Db, FollowOptions, Follower};
use drumlin_fs::Env;
use serde_json::json;

use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::units;

/// Longest sleep before it is looked whether a signal came.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(crate) struct Follow {
    /// Seconds between two lines.
    #[arg(long, default_value_t = 1.0)]
    interval: f64,
}

/// Prints how far a follower is, a line an interval, until SIGINT or SIGTERM.
pub(crate) fn follow(place: &Place, wanted: &Follow, out: &mut Output) -> Outcome {
    if !(0.1..=3600.0).contains(&wanted.interval) {
        let message = "--interval is from 0.1 to 3600 seconds";
        return Err(Failure::Usage(message.to_owned()));
    }
    let pause = Duration::from_secs_f64(wanted.interval);
    let interrupt = Interrupt::of_following()?;
    let follower = open(place, FollowOptions::default())?;
    let clock = Env::system().clock;
    let mut before = (follower.lag().seqno, clock.monotonic());
    loop {
        while !interrupt.token.is_cancelled() {
            let passed = clock.monotonic().saturating_sub(before.1);
            match pause.checked_sub(passed) {
                None | Some(Duration::ZERO) => break,
                Some(left) => clock.sleep(left.min(LOOK)),
            }
        }
        if interrupt.token.is_cancelled() {
            return Ok(());
        }
        let now = clock.monotonic();
        let seconds = now.saturating_sub(before.1).as_secs_f64();
        let seqno = show(&follower, (before.0, seconds), out)?;
        before = (seqno, now);
    }
}

/// A follower of the database of `place`.
pub(crate) fn open(place: &Place, options: FollowOptions) -> Outcome<Follower> {
    let opened = Db::open_follower(place.dir()?, place.options(), options);
    opened.map_err(|error| place.explain(error))
}

/// Prints a line; the sequence number in it. Before was that one, as many seconds ago.
fn show(follower: &Follower, (before, seconds): (u64, f64), out: &mut Output) -> Outcome<u64> {
    // First the error: where one is told, the age behind it has grown since.
    let failure = follower.failure().map(|error| error.to_string());
    let failure = failure.filter(|_| !drumlin_base::bug!("follow-is-silent-on-failures"));
    let lag = follower.lag();
    let rate = units::rate(lag.seqno.saturating_sub(before), seconds);
    let mut text = format!(
        "write number {}, {}/s, {} ms behind",
        units::count(lag.seqno),
        units::count(rate),
        units::count(lag.age.as_millis() as u64),
    );
    if let Some(failure) = &failure {
        text.push_str(": it cannot go on: ");
        text.push_str(failure);
    }
    let age = lag.age.as_secs_f64();
    let json =
        json!({"seqno": lag.seqno, "per_second": rate, "seconds_behind": age, "error": failure});
    out.fact(text, json)?;
    out.flush()?;
    Ok(lag.seqno)
}
