//! keep-history, history, and --at: the past that is kept.

use std::time::Duration;

use drumlin::{Db, KeepHistory, Options, Snapshot};
use drumlin_fs::Env;
use serde_json::json;

use crate::args::Place;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::units;

/// Moments in a retention where nobody says how many.
const MOMENTS: u64 = 100;

/// Sets for how long the past is kept; not at all without `seconds`. The first moment is marked.
pub(crate) fn keep(place: &Place, seconds: Option<u64>, every: Option<u64>) -> Outcome {
    place.refuse_held("the store has to be closed")?;
    let age = seconds.unwrap_or(0);
    let every = every.unwrap_or(age.div_ceil(MOMENTS));
    let options = Options {
        create_if_missing: false,
        keep_history: Some(KeepHistory {
            age: Duration::from_secs(age),
            every: Duration::from_secs(every),
        }),
        ..place.options()
    };
    let opened = Db::open_all_families(place.dir()?, options);
    let db = opened.map_err(|error| place.explain(error))?;
    if age > 0 {
        db.mark_moment()?;
    }
    Ok(db.close()?)
}

/// Prints the moments that can be read at.
pub(crate) fn history(place: &Place, out: &mut Output) -> Outcome {
    let (db, _) = place.open_to_read()?;
    for moment in db.past_moments() {
        let (time, seqno) = (moment.unix_seconds, moment.seqno);
        let text = format!("{time}  {}  write number {seqno}", units::moment(time));
        out.fact(text, json!({"unix_seconds": time, "seqno": seqno}))?;
    }
    Ok(())
}

/// The past that `--at` asks for: seconds since 1970, or before now where there is a minus.
pub(crate) fn at(db: &Db, time: Option<i64>) -> Outcome<Option<Snapshot>> {
    let Some(time) = time else {
        return Ok(None);
    };
    let unix_seconds = match u64::try_from(time) {
        Ok(time) => time,
        Err(_) => {
            let now = Env::system().clock.unix_seconds();
            now.saturating_sub(time.unsigned_abs())
        }
    };
    match db.snapshot_at(unix_seconds) {
        Err(error) if error.is_not_found() => Err(Failure::NotFound(error.to_string())),
        found => Ok(Some(found?)),
    }
}
