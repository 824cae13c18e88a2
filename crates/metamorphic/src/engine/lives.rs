//! From one life of the database to the next: closing, opening, power cuts.

use drumlin::{Db, ErrorKind, FamilyOptions, Options, ReadOptions, Result, WriteOptions};
use drumlin_base::rng::Rng;
use drumlin_fs::{Fault, FaultFileSystem, FaultRule};
use drumlin_testkit::model::{Model, Rows};

use super::World;
use super::read::everything;
use crate::op::Op;
use crate::verb::Verb;

impl World<'_> {
    pub(super) fn open(&mut self) -> Result<()> {
        let options = self.disk.options(&self.choice);
        self.db = Some(self.open_with(&options)?);
        self.seqno = 0;
        Ok(())
    }

    fn open_with(&self, options: &Options) -> Result<Db> {
        let dir = self.disk.dir();
        match Db::list_families(&dir, &options.env) {
            Ok(_) => self.open_copy(&dir, options),
            Err(error) if error.is_not_found() => {
                let default: FamilyOptions = self.choice.family("default");
                Db::open_families(dir, options.clone(), &[("default", default)])
            }
            Err(error) => Err(error),
        }
    }

    /// Drops everything that refers to the database.
    fn let_go(&mut self) -> Option<Db> {
        self.iterators = Default::default();
        self.snapshots = Default::default();
        self.dropped = None;
        self.db.take()
    }

    fn close(&mut self) -> Result<()> {
        self.let_go().map_or(Ok(()), Db::close)
    }

    pub(super) fn live_again(&mut self, op: &Op) -> Result<String> {
        match op.verb {
            Verb::OpenBeside => return self.open_beside(),
            Verb::OpenTwice => {
                let options = self.disk.options(&self.choice);
                return Ok(super::refusal(self.open_copy(&self.disk.dir(), &options)));
            }
            Verb::OpenExisting => return self.open_existing(),
            Verb::CloseRefuses => return self.close_refuses(),
            Verb::ReopenDropped => {
                drop(self.let_go());
                self.open()?;
            }
            Verb::ReopenChanged => {
                self.close()?;
                self.choice = self.choice.redrawn(op.count);
                self.open()?;
            }
            Verb::Crash => {
                self.barrier()?;
                self.crash(op.count)?;
            }
            Verb::CrashTwice => {
                self.barrier()?;
                self.crash_twice(op.count)?;
            }
            Verb::CrashLossy => self.crash_lossy(op.count)?,
            Verb::OpenReadOnly => {
                self.close()?;
                let options = self.disk.options(&self.choice);
                let reader = Db::open_read_only(self.disk.dir(), self.readable(options))?;
                let said = everything(&reader, |_| true)?;
                reader.close()?;
                self.open()?;
                return Ok(said);
            }
            _ => {
                self.close()?;
                self.open()?;
            }
        }
        everything(self.db(), |_| true)
    }

    /// Options with which `open_read_only` can read every family.
    fn readable(&self, mut options: Options) -> Options {
        options.family.prefix_extractor = self.choice.family("default").prefix_extractor;
        options
    }

    /// Reads the files of the open database through a second, read-only handle.
    fn open_beside(&mut self) -> Result<String> {
        self.db().wait_for_background()?;
        let options = Options {
            // Of more tables than half of these it might not find those that are compacted meanwhile.
            max_open_files: None,
            ..self.readable(self.disk.options(&self.choice))
        };
        let mut tries = 0;
        loop {
            let reader = Db::open_read_only(self.disk.dir(), options.clone());
            let said = reader.and_then(|reader| {
                let said = everything(&reader, |_| true)?;
                reader.close().map(|()| said)
            });
            match said {
                // Files may go while the reader looks for them.
                Err(error) if error.is_not_found() && tries < 5 => tries += 1,
                said => return said,
            }
        }
    }

    fn open_existing(&mut self) -> Result<String> {
        // Held objects must outlive the refusal, as they outlive a reopening of another directory.
        let db = self.db().clone();
        let options = self.disk.options(&self.choice);
        let target = self.disk.fresh("existing");
        db.checkpoint(&target)?;
        let refused = Options {
            error_if_exists: true,
            wal_dir: None,
            ..options
        };
        let said = super::refusal(self.open_copy(&target, &refused));
        self.disk.remove(&target)?;
        Ok(said)
    }

    fn close_refuses(&mut self) -> Result<String> {
        let closed = self.db().clone();
        self.close()?;
        let family = closed.default_family().clone();
        let outcome = closed.put_cf(&family, b"late", b"late", &WriteOptions::default());
        let said = super::refusal(outcome);
        drop((closed, family));
        self.open()?;
        Ok(format!("{said}; {}", everything(self.db(), |_| true)?))
    }

    /// Cuts the power, or closes where no power can be cut, and opens the database again.
    fn crash(&mut self, seed: u64) -> Result<()> {
        if !self.disk.crash(seed) {
            self.close()?;
        }
        drop(self.let_go());
        self.open()
    }

    /// Cuts the power, and again at some operation of the recovery.
    fn crash_twice(&mut self, seed: u64) -> Result<()> {
        if self.disk.crash(seed) {
            drop(self.let_go());
            let files = FaultFileSystem::new(self.disk.file_system());
            let mut rng = Rng::new(seed);
            files.add_rule(FaultRule::once(rng.below(80), Fault::Stop));
            let mut options = self.disk.options(&self.choice);
            options.env.files = std::sync::Arc::new(files);
            drop(self.open_with(&options));
            self.disk.crash(rng.next_u64());
        }
        self.close()?;
        self.open()
    }

    /// Cuts the power without a sync. The database must then have the state after some operation
    /// since the last sync; later operations are written again.
    fn crash_lossy(&mut self, seed: u64) -> Result<()> {
        self.crash(seed)?;
        let found = self.found()?;
        let (durable, now) = (self.durable, self.index);
        let same = |state: &Model| {
            let names: Vec<&str> = state.names().collect();
            names.len() == found.len()
                && names.iter().zip(&found).all(|(name, (found_name, rows))| {
                    let want = state.family(name).map(|family| family.rows());
                    name == found_name && want == Some(rows)
                })
        };
        let states = durable.unwrap_or(0)..=now;
        let left = states.rev().find(|at| same(&self.trace.states[*at]));
        // Before the first operation there was nothing.
        let nothing = durable.is_none()
            && matches!(&found[..], [(name, rows)] if name == "default" && rows.is_empty());
        let Some(repeat) = left.map(|left| left + 1).or(nothing.then_some(0)) else {
            let message = format!(
                "what the power cut left is no state between {durable:?} and {now}: {}",
                everything(self.db(), |_| true)?
            );
            return Err(drumlin::Error::corruption(message));
        };
        for index in repeat..now {
            self.index = index;
            let op = &self.ops[index];
            if changes_unsynced(op.verb) {
                let said = self.answer(op)?;
                let want = &self.trace.lines[index];
                if said != *want {
                    let message = format!("repeating {index} said {said}, not {want}");
                    return Err(drumlin::Error::new(ErrorKind::Aborted, message));
                }
            }
        }
        self.index = now;
        self.barrier()
    }

    fn found(&self) -> Result<Vec<(String, Rows)>> {
        let mut found = Vec::new();
        for family in self.db().families() {
            let mut rows = Rows::new();
            let mut iterator = self.db().iter_cf(&family, ReadOptions::default());
            iterator.seek_to_first();
            while iterator.valid() {
                rows.insert(iterator.key().to_vec(), iterator.try_value()?.to_vec());
                iterator.next();
            }
            iterator.status()?;
            found.push((family.name().to_owned(), rows));
        }
        found.sort();
        Ok(found)
    }
}

/// Whether operations of this kind change data and leave it to a later sync.
fn changes_unsynced(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Put
            | Verb::Delete
            | Verb::SinglePut
            | Verb::SingleDelete
            | Verb::Merge
            | Verb::DeleteRange
            | Verb::DeleteRangeInverted
            | Verb::Batch
            | Verb::BatchAppended
            | Verb::BatchFromBytes
            | Verb::BatchWithLogData
            | Verb::PutImpatient
    )
}
