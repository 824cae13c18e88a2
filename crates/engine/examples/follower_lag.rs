//! Prints how far a follower is behind a process that writes as fast as it can, or at a rate: how long ago the writer made the newest write
//! that the follower shows, looked at every millisecond, and how long a look took.
//!
//! `cargo run --release -p drumlin --example follower_lag DIR [seconds [puts-a-second [puts-a-write]]]`: DIR is made and written to. Without a
//! rate, or with that of 0, the writer never waits; it makes 100 puts a write.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use drumlin::{Db, FollowOptions, Options, Result, WriteBatch, WriteOptions};
use drumlin_base::rng::Rng;

const VALUE: [u8; 100] = [0x61; 100];
const KEY_SPACE: u64 = 10_000_000;
const BATCH_PUTS: u64 = 100;
/// Puts between two that tell the time.
const NOW_EVERY: u64 = 100;
/// The shortest time that the writer sleeps, to keep to its rate.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// Of the machine, for both processes.
fn now_micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as u64)
}

/// Writes of `puts` puts each, `rate` puts a second, among them every so often the time, until the process is ended, or that of `reader`.
fn write(dir: &Path, rate: u64, puts: u64, reader: u32) -> Result<()> {
    let db = Db::open(dir, Options::default())?;
    let mut rng = Rng::new(1);
    let begun = Instant::now();
    for written in (0_u64..).step_by(puts as usize) {
        if written % NOW_EVERY < puts {
            if parent_id() != reader {
                break;
            }
            let due = Duration::from_secs_f64(written as f64 / rate as f64);
            let early = due.saturating_sub(begun.elapsed());
            if early >= PAUSE_MIN {
                std::thread::sleep(early);
            }
            db.put(b"now", now_micros().to_le_bytes())?;
        }
        if puts == 1 {
            db.put(rng.below(KEY_SPACE).to_be_bytes(), VALUE)?;
            continue;
        }
        let mut batch = WriteBatch::new();
        for _ in 0..puts {
            batch.put(&rng.below(KEY_SPACE).to_be_bytes(), &VALUE)?;
        }
        db.write(batch, &WriteOptions::default())?;
    }
    Ok(())
}

fn percentile(sorted: &[u64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share) as usize;
    let micros = sorted.get(at.min(sorted.len().saturating_sub(1)));
    micros.map_or(0.0, |micros| *micros as f64 / 1e3)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("which directory?")?;
    let dir = Path::new(&dir);
    let word = arguments.next();
    let rate = arguments.next().map_or(Ok(0), |rate| rate.parse())?;
    let puts = arguments.next();
    let puts: u64 = puts.map_or(Ok(BATCH_PUTS), |puts| puts.parse())?;
    let seconds = match word {
        Some(word) if word == "write" => {
            let reader = arguments.next().ok_or("for which process?")?;
            let rate = if rate == 0 { u64::MAX } else { rate };
            return Ok(write(dir, rate, puts.max(1), reader.parse()?)?);
        }
        Some(seconds) => seconds.parse()?,
        None => 20,
    };
    drop(Db::open(dir, Options::default())?);
    let follower = Db::open_follower(dir, Options::default(), FollowOptions::default())?;
    let mut writer = Command::new(std::env::current_exe()?)
        .arg(dir)
        .arg("write")
        .args([rate, puts, u64::from(std::process::id())].map(|it| it.to_string()))
        .spawn()?;
    let begun = now_micros();
    let (first, mut lags) = (follower.lag().seqno, Vec::new());
    while now_micros() - begun < seconds * 1_000_000 {
        std::thread::sleep(Duration::from_millis(1));
        if let Some(written) = follower.db().get("now")? {
            let written = <[u8; 8]>::try_from(&*written).map_or(0, u64::from_le_bytes);
            lags.push(now_micros().saturating_sub(written));
        }
    }
    writer.kill()?;
    writer.wait()?;
    let writes = follower.lag().seqno - first;
    let [p50, p99, most] = {
        lags.sort_unstable();
        [0.5, 0.99, 1.0].map(|share| percentile(&lags, share))
    };
    println!("{} puts a second", writes / seconds);
    println!("behind: {p50:.1} ms in the middle, {p99:.1} ms at 99 %, {most:.1} ms at most");
    match follower.failure() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
