//! The process that is killed: several writers, two readers, until the end.
//!
//! It dies in one of two ways: its parent kills it at some moment, or it stops at a chosen file
//! operation: from there on no operation has an effect, and the process aborts.

use std::path::Path;
use std::process::abort;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{ColumnFamily, Db, Env, ErrorKind, ReadOptions, WriteBatch, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_fs::{Fault, FaultFileSystem, FaultRule, FileKind, OpKind};
use drumlin_testkit::model::Change;

use crate::forgetful::forgetful;
use crate::ledger::{Ledger, Mark, WRITERS};
use crate::options::options;
use crate::script::{FAMILIES, batch, encode, is_synced, known, newest};

/// Where a child stops by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopAt {
    /// The class of operations that is counted.
    pub(crate) class: u64,
    /// The index of the operation, in its class, at which the child stops.
    pub(crate) index: u64,
}

/// Classes of operations, as points to be killed at.
pub(crate) const CLASSES: u64 = 8;

fn rule(stop: StopAt) -> FaultRule {
    let rule = FaultRule::once(stop.index, Fault::Stop);
    match stop.class % CLASSES {
        0 => rule.on(OpKind::Rename),
        1 => rule.on(OpKind::SyncDir),
        2 => rule.of_kind(FileKind::Manifest),
        3 => rule.of_kind(FileKind::Table),
        4 => rule.of_kind(FileKind::Blob),
        5 => rule.on(OpKind::Sync).of_kind(FileKind::Wal),
        6 => rule.on(OpKind::Remove),
        _ => rule.on_changes(),
    }
}

struct Child {
    db: Db,
    families: [ColumnFamily; 2],
    ledger: Ledger,
    files: FaultFileSystem,
}

/// Writes and reads in `dir` until killed.
pub(crate) fn live(
    dir: &Path,
    ledger: &Path,
    seed: u64,
    power: bool,
    stop: Option<StopAt>,
) -> Result<(), String> {
    let files = if power {
        let root = dir.parent().ok_or("the root directory is no database")?;
        forgetful(root).map_err(|error| format!("{error:?}"))?
    } else {
        FaultFileSystem::new(Env::system().files)
    };
    if let Some(stop) = stop {
        files.add_rule(rule(stop));
    }
    let options = options(seed, Arc::new(files.clone()));
    let opened = Db::open_all_families(dir, options.clone()).and_then(|db| {
        let other = match db.column_family(FAMILIES[1]) {
            Some(family) => family,
            None => db.create_family(FAMILIES[1], options.family.clone())?,
        };
        let default = db.default_family().clone();
        Ok((db, [default, other]))
    });
    let (db, families) = match opened {
        Ok(opened) => opened,
        Err(_) if files.is_stopped() => abort(),
        Err(error) => return Err(format!("the child cannot open: {error:?}")),
    };
    let ledger = Ledger::open(ledger).map_err(|error| error.to_string())?;
    let child = Child {
        db,
        families,
        ledger,
        files,
    };
    std::thread::scope(|scope| {
        let child = &child;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || child.write(writer)))
            .collect();
        for reader in 0..2 {
            scope.spawn(move || child.read(seed + reader));
        }
        let clock = Env::system().clock;
        while !child.files.is_stopped() {
            clock.sleep(Duration::from_micros(300));
            if writers.iter().all(|writer| writer.is_finished()) {
                break;
            }
        }
        abort()
    })
}

impl Child {
    /// Reports a violated invariant and exits: the parent sees no abort that it asked for.
    fn fail(&self, why: &str) -> ! {
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), "WRONG {why}");
        std::process::exit(3)
    }

    fn write(&self, writer: usize) {
        let newest = self
            .db
            .get_cf(&self.families[0], newest(writer), &ReadOptions::default());
        let mut number = match newest {
            Ok(value) => value.map_or(0, |v| {
                u64::from_le_bytes(v[..8].try_into().unwrap_or([0; 8]))
            }),
            Err(_) if self.files.is_stopped() => return,
            Err(error) => self.fail(&format!("writer {writer} cannot read: {error:?}")),
        };
        if number != self.ledger.get(writer, Mark::Acked) {
            self.fail(&format!(
                "writer {writer} finds {number}, not what its parent found"
            ));
        }
        loop {
            number += 1;
            let mut all = WriteBatch::new();
            for (family, change) in batch(writer, number) {
                self.add(&mut all, family, &change);
            }
            let seen = encode(self.ledger.all(Mark::Acked));
            self.add(&mut all, FAMILIES[0], &Change::Put(known(writer), seen));
            let sync = is_synced(writer, number);
            self.ledger.set(writer, Mark::Begun, number);
            let options = WriteOptions {
                sync: Some(sync),
                ..WriteOptions::default()
            };
            match self.db.write(all, &options) {
                Ok(()) => {}
                Err(_) if self.files.is_stopped() => return,
                Err(error) => self.fail(&format!("writer {writer} cannot write: {error:?}")),
            }
            if sync {
                self.ledger.set(writer, Mark::Synced, number);
            }
            self.ledger.set(writer, Mark::Acked, number);
        }
    }

    fn add(&self, all: &mut WriteBatch, family: &str, change: &Change) {
        let family = match family == FAMILIES[0] {
            true => self.families[0].id(),
            false => self.families[1].id(),
        };
        let added = match change {
            Change::Put(key, value) => all.put_cf(family, key, value),
            Change::Delete(key) => all.delete_cf(family, key),
            Change::SingleDelete(key) => all.single_delete_cf(family, key),
            Change::Merge(key, operand) => all.merge_cf(family, key, operand),
            Change::DeleteRange(begin, end) => all.delete_range_cf(family, begin, end),
        };
        added.expect("a small batch");
    }

    /// The numbers of a writer never go back, and both families say the same at one snapshot.
    fn read(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        let mut before = [0; WRITERS];
        while !self.files.is_stopped() {
            let writer = rng.below(WRITERS as u64) as usize;
            let acked = self.ledger.get(writer, Mark::Acked);
            let options = ReadOptions {
                snapshot: Some(self.db.snapshot()),
                ..ReadOptions::default()
            };
            let mut found = [0; 2];
            for (family, found) in self.families.iter().zip(&mut found) {
                match self.db.get_cf(family, newest(writer), &options) {
                    Ok(value) => {
                        let bytes = value.as_deref().and_then(|v| v.first_chunk::<8>().copied());
                        *found = bytes.map_or(0, u64::from_le_bytes);
                    }
                    Err(_) if self.files.is_stopped() => return,
                    Err(error) if error.kind() == ErrorKind::Shutdown => return,
                    Err(error) => self.fail(&format!("a reader: {error:?}")),
                }
            }
            if found[0] != found[1] || found[0] < before[writer] || found[0] < acked {
                let before = before[writer];
                self.fail(&format!(
                    "writer {writer}: {found:?} after {before}, {acked} acked"
                ));
            }
            before[writer] = found[0];
            if rng.one_in(50) {
                self.walk(&options);
            }
        }
    }

    /// A walk at a snapshot meets keys in order, forward as backward.
    fn walk(&self, options: &ReadOptions) {
        let mut iterator = self.db.iter_cf(&self.families[1], options.clone());
        let (mut forward, mut backward) = (Vec::new(), Vec::new());
        iterator.seek_to_first();
        while iterator.valid() {
            forward.push(iterator.key().to_vec());
            iterator.next();
        }
        let sound = iterator.status().is_ok();
        iterator.seek_to_last();
        while iterator.valid() {
            backward.push(iterator.key().to_vec());
            iterator.prev();
        }
        backward.reverse();
        if sound && iterator.status().is_ok() && forward != backward {
            self.fail("a walk forward differs from one backward");
        }
    }
}
