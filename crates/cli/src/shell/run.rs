//! The loop: a line, its command, the next line.

use std::io::{self, BufRead, IsTerminal};
use std::time::Duration;

use clap::Args;
use drumlin::{FollowOptions, Follower};

use super::editor::{LineEditor, Typed};
use super::line::{Next, carry_out_line};
use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::follow;
use crate::output::{Output, remark};

/// Longest line of a script.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// How often a store that is followed goes on without a command, lest it holds files that its writer is done with.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct ShellTask {
    /// Open the store for reading: no lock is taken, and other processes may write.
    #[arg(long)]
    read_only: bool,
    /// Open the store for reading, and have each command see what other processes wrote before it.
    #[arg(long, conflicts_with = "read_only")]
    follow: bool,
    /// Go on after a command of standard input that failed; the first failure is the exit code.
    #[arg(long)]
    keep_going: bool,
}

/// Runs commands until the end of the input.
pub(crate) fn shell(place: &Place, wanted: &ShellTask, out: &mut Output) -> Outcome {
    let options = FollowOptions {
        interval: Some(IDLE_PAUSE),
    };
    let follower = wanted.follow.then(|| follow::open(place, options));
    let follower = follower.transpose()?;
    let (db, family) = match &follower {
        Some(follower) => (follower.db().clone(), place.family_of(follower.db())?),
        None if wanted.read_only => place.open_to_read()?,
        None => place.open_existing()?,
    };
    let held = Place {
        held: Some(db.clone()),
        ..place.clone()
    };
    let open = OpenStore {
        place: held,
        follower,
    };
    let ended = match io::stdin().is_terminal() {
        true => typed(&open, family.name(), out),
        false => script(&open, wanted.keep_going, out),
    };
    drop((open, family));
    let closed = match wanted.read_only || wanted.follow {
        true => Ok(()),
        false => db.close(),
    };
    ended.and(closed.map_err(Failure::Engine))
}

/// The store that the commands work on.
struct OpenStore {
    place: Place,
    /// Of `shell --follow`.
    follower: Option<Follower>,
}

impl OpenStore {
    /// Carries out a line, on what was written before it where the store is followed.
    fn carry_out(&self, line: &str, out: &mut Output) -> Outcome<Next> {
        if let Some(follower) = &self.follower
            && !drumlin_base::bug!("shell-follows-when-idle-alone")
            && let Err(error) = follower.catch_up()
        {
            let seconds = follower.lag().age.as_secs();
            remark(format!(
                "drumlin: this is {seconds} seconds old: it cannot go on: {error}"
            ));
        }
        carry_out_line(&self.place, line, out)
    }
}

/// Commands of a person: failures are told, and the next line is asked for.
fn typed(open: &OpenStore, family: &str, out: &mut Output) -> Outcome {
    let families = open.place.held.iter().flat_map(drumlin::Db::families);
    let families = families.map(|it| it.name().to_owned()).collect();
    let mut editor = LineEditor::new(families)?;
    let prompt = match family {
        "default" => "drumlin> ".to_owned(),
        family => format!("drumlin:{family}> "),
    };
    let ended = loop {
        out.flush()?;
        let line = match editor.read(&prompt) {
            Ok(Typed::Line(line)) => line,
            Ok(Typed::GivenUp) => continue,
            Ok(Typed::End) => break Ok(()),
            Err(failure) => break Err(failure),
        };
        match open.carry_out(&line, out) {
            Ok(Next::Line) => {}
            Ok(Next::End) => break Ok(()),
            Err(failure) if failure.is_closed_pipe() => break Err(failure),
            Err(failure) => tell(&failure, out)?,
        }
    };
    editor.save();
    ended
}

/// Commands of a file: the first failure ends it, unless it shall go on.
fn script(open: &OpenStore, keeps_going: bool, out: &mut Output) -> Outcome {
    let mut input = io::stdin().lock();
    let mut first = Ok(());
    for number in 1_u64.. {
        let mut line = Vec::new();
        let read = io::Read::take(&mut input, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        let line = std::str::from_utf8(&line);
        let outcome = match line {
            Ok(line) => open.carry_out(line, out),
            Err(_) => Err(Failure::Usage(
                "it is not UTF-8; write other bytes as \\xNN".to_owned(),
            )),
        };
        match outcome {
            Ok(Next::Line) => out.flush()?,
            Ok(Next::End) => break,
            Err(failure) if failure.is_closed_pipe() => return Err(failure),
            Err(failure) => {
                out.flush()?;
                remark(format!("drumlin: line {number}:"));
                if !keeps_going {
                    return Err(failure);
                }
                tell(&failure, out)?;
                first = first.and(Err(failure));
            }
        }
    }
    first
}

fn tell(failure: &Failure, out: &mut Output) -> Outcome {
    out.flush()?;
    remark(format!("drumlin: {failure}"));
    Ok(())
}
