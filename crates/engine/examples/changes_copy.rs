//! Keeps a copy of a database by its changes alone, while the process that writes and copies is killed again and again, and looks
//! whether the copy equals the database: after every tenth kill, and at the end.
//!
//! `cargo run --release -p drumlin --example changes_copy DIR OPERATIONS`: DIR is made, with `store` and `copy` in it. Ends with an
//! error at the first difference or failure.
#![expect(
    clippy::disallowed_methods,
    reason = "a campaign kills processes and measures time"
)]
#![expect(clippy::print_stdout, reason = "a campaign prints")]

use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use drumlin::{
    ChangeEntry, Db, KeepChanges, Options, ReadOptions, Result, Tuning, WriteBatch, WriteOptions,
};
use drumlin_base::rng::Rng;

type Outcome<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const KEY_SPACE: u64 = 1_000_000;
const BATCH_OPERATIONS: u64 = 100;
/// Batches written before the copy goes on.
const ROUND_BATCHES: u64 = 50;
/// Longest range that is deleted.
const RANGE_KEYS: u64 = 50;
/// Kills between two comparisons.
const COMPARED_EVERY: u64 = 10;
const LIFE_MS_MAX: u64 = 2_000;
/// In the copy: the sequence number that it needs next. The store's keys are shorter.
const POSITION: &[u8] = b"the position";

fn options(keep_changes: Option<KeepChanges>) -> Options {
    Options {
        keep_changes,
        tuning: Tuning {
            write_buffer_bytes: Some(4 << 20),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// The store and its copy.
struct Pair {
    store: Db,
    copy: Db,
}

impl Pair {
    fn open(dir: &Path) -> Result<Self> {
        let keep = KeepChanges {
            age: None,
            bytes: Some(256 << 20),
        };
        Ok(Self {
            store: Db::open(dir.join("store"), options(Some(keep)))?,
            copy: Db::open(dir.join("copy"), options(None))?,
        })
    }

    /// The sequence number of the change that the copy needs next.
    fn position(&self) -> Outcome<u64> {
        let position = self.copy.get(POSITION)?;
        Ok(match position {
            Some(bytes) => u64::from_le_bytes(<[u8; 8]>::try_from(&*bytes)?),
            None => 1,
        })
    }

    /// Takes the changes that `changes` tells into the copy, each batch with the position behind it.
    fn take(&self, changes: &mut drumlin::Changes) -> Outcome<()> {
        for told in changes {
            let told = told?;
            let mut batch = WriteBatch::new();
            for entry in told.entries() {
                match entry? {
                    ChangeEntry::Put { key, value, .. } => batch.put(key, value)?,
                    ChangeEntry::Delete { key, .. } => batch.delete(key)?,
                    ChangeEntry::DeleteRange { begin, end, .. } => {
                        batch.delete_range(begin, end)?
                    }
                    other => return Err(format!("nobody made {other:?}").into()),
                }
            }
            batch.put(POSITION, &(told.last_seqno() + 1).to_le_bytes())?;
            self.copy.write(batch, &WriteOptions::default())?;
        }
        Ok(())
    }

    /// Writes and copies until the process is ended, or that of `campaign`.
    fn write(&self, seed: u64, campaign: u32) -> Outcome<()> {
        let mut rng = Rng::new(seed);
        let mut changes = self.store.changes(self.position()?)?;
        while parent_id() == campaign {
            for _ in 0..ROUND_BATCHES {
                self.store
                    .write(random_batch(&mut rng)?, &WriteOptions::default())?;
            }
            if rng.one_in(200) {
                self.store.flush()?;
            }
            self.take(&mut changes)?;
        }
        Ok(())
    }

    /// How many keys both have, the same ones with the same values, once the copy has all changes.
    fn compare(&self) -> Outcome<u64> {
        self.take(&mut self.store.changes(self.position()?)?)?;
        let mut own = self.store.iter(ReadOptions::default());
        let mut copied = self.copy.iter(ReadOptions::default());
        own.seek_to_first();
        copied.seek_to_first();
        let mut keys = 0;
        loop {
            if copied.valid() && copied.key() == POSITION {
                copied.next();
            }
            match (own.valid(), copied.valid()) {
                (false, false) => break,
                (true, true) if (own.key(), own.value()) == (copied.key(), copied.value()) => {}
                _ => return Err(format!("the copy differs at its key {keys}").into()),
            }
            keys += 1;
            own.next();
            copied.next();
        }
        own.status()?;
        copied.status()?;
        Ok(keys)
    }
}

fn random_batch(rng: &mut Rng) -> Result<WriteBatch> {
    let mut batch = WriteBatch::new();
    for _ in 0..BATCH_OPERATIONS {
        let key = rng.below(KEY_SPACE);
        match rng.below(1_000) {
            0 => {
                let end = key + 1 + rng.below(RANGE_KEYS);
                batch.delete_range(&key.to_be_bytes(), &end.to_be_bytes())?;
            }
            1..200 => batch.delete(&key.to_be_bytes())?,
            _ => {
                let mut value = [0x76; 64];
                let len = 8 + rng.below(56) as usize;
                let (front, _) = value.split_at_mut(8);
                front.copy_from_slice(&rng.below(u64::MAX).to_le_bytes());
                batch.put(&key.to_be_bytes(), value.get(..len).unwrap_or_default())?;
            }
        }
    }
    Ok(batch)
}

fn main() -> Outcome<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [dir, operations, rest @ ..] = &arguments[..] else {
        return Err("which directory, and how many operations?".into());
    };
    let dir = Path::new(dir);
    if operations == "write" {
        let [seed, campaign] = rest else {
            return Err("with which seed, and for which process?".into());
        };
        return Pair::open(dir)?.write(seed.parse()?, campaign.parse()?);
    }
    let operations: u64 = operations.parse()?;
    let campaign = std::process::id().to_string();
    std::fs::create_dir_all(dir)?;
    let (begun, mut rng) = (Instant::now(), Rng::new(1));
    let (mut kills, mut compared) = (0, 0);
    loop {
        let mut writer = Command::new(std::env::current_exe()?)
            .arg(dir)
            .args(["write", &kills.to_string(), &campaign])
            .spawn()?;
        std::thread::sleep(Duration::from_millis(1 + rng.below(LIFE_MS_MAX)));
        if let Some(status) = writer.try_wait()? {
            return Err(format!("the writer ended by itself: {status}").into());
        }
        writer.kill()?;
        writer.wait()?;
        kills += 1;
        if kills % COMPARED_EVERY != 0 {
            continue;
        }
        let pair = Pair::open(dir)?;
        let keys = pair
            .compare()
            .map_err(|error| format!("after {kills} kills: {error}"))?;
        compared += 1;
        let made = pair.store.latest_seqno();
        if made >= operations {
            let seconds = begun.elapsed().as_secs();
            println!(
                "{made} operations, {kills} kills: the copy was equal {compared} times, {keys} keys at the end; {seconds} s"
            );
            return Ok(());
        }
    }
}
