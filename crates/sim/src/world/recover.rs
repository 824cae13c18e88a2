//! Opening the database after a crash, and checking its content.

use std::collections::BTreeSet;
use std::sync::Arc;

use drumlin::{Db, ReadOptions, WriteBatch, WriteOptions};
use drumlin_fs::{CrashPolicy, Fault, FaultFileSystem, FaultRule, StrictMemFileSystem};
use parking_lot::Mutex;

use super::look::{read_log, walk};
use super::{Counts, DIR, Told, World};
use crate::history::{Demand, Families, History};
use crate::model::{LOG, Model, difference};
use crate::setup::Part;

/// Most power cuts, or failures, during one recovery.
const CUTS_MAX: u64 = 3;

/// A disk and the faults over it.
type Disk = (StrictMemFileSystem, FaultFileSystem);

impl World {
    /// Opens the database on `disk`, in the end without faults, and checks its rows.
    pub(super) fn recover(
        &mut self,
        mut disk: StrictMemFileSystem,
        history: &mut History,
        demand: &mut Demand,
        told: &Arc<Told>,
    ) -> (Db, Disk) {
        let mut shown: Option<Vec<usize>> = None;
        if self.setup.has(Part::RecoveryCuts) {
            for _ in 0..self.rng.below(CUTS_MAX + 1) {
                disk = self.recover_badly(disk, demand, &mut shown);
            }
        }
        let files = FaultFileSystem::over_memory(&disk);
        files.set_clock(Arc::clone(&self.scheduler) as _);
        if self.shears.is_some() {
            let known = Arc::new(Mutex::new(history.clone()));
            self.imagine_cuts(&files, &disk, &known, false, *demand);
        }
        let options = self.options(&files, told);
        let opened = Db::open_all_families(DIR, options);
        files.set_observer(None);
        let db = opened.unwrap_or_else(|error| panic!("opening after a crash: {error:?}"));
        let log = read_log(&db).expect("the disk is well");
        if let Some(shown) = shown {
            assert_eq!(log, shown, "what an earlier recovery showed has changed");
        }
        let mut known = history.recovered(&log, *demand);
        known = known.and_then(|()| check(&db, history, log.len()));
        Counts::add(&self.counts.checks);
        known.unwrap_or_else(|why| panic!("after a crash ({demand:?}): {why}"));
        (db, (disk, files))
    }

    /// Opens with a fault in the way, and cuts the power again.
    fn recover_badly(
        &mut self,
        disk: StrictMemFileSystem,
        demand: &mut Demand,
        shown: &mut Option<Vec<usize>>,
    ) -> StrictMemFileSystem {
        let files = FaultFileSystem::over_memory(&disk);
        files.set_clock(Arc::clone(&self.scheduler) as _);
        let fault = match self.rng.below(4) {
            0 => Fault::Io,
            1 => Fault::NoSpace,
            _ => Fault::Stop,
        };
        let range = 1 << (2 + self.rng.below(6));
        let at = self.rng.below(range);
        files.add_rule(FaultRule::once(at, fault));
        let told = Arc::new(Told::default());
        match Db::open_all_families(DIR, self.options(&files, &told)) {
            Ok(db) => {
                let log = read_log(&db);
                if let (Ok(log), false) = (log, files.is_stopped()) {
                    if let Some(shown) = shown {
                        assert_eq!(log, *shown, "what an earlier recovery showed has changed");
                    }
                    *shown = Some(log);
                }
            }
            Err(error) => assert!(files.injected() > 0, "opening after a crash: {error:?}"),
        }
        let policy = CrashPolicy::ALL[self.rng.below(9) as usize];
        if policy != CrashPolicy::KeepAll {
            *demand = Demand::Synced;
        }
        Counts::add(&self.counts.cuts);
        disk.crash(self.rng.next_u64(), policy)
    }

    /// Begins a history with the rows of `db` now, with an empty log.
    pub(super) fn base(&mut self, db: &Db, _before: &mut History) -> History {
        let mut base = Model::default();
        let mut families = Families::default();
        for family in db.families() {
            let mut iter = db.iter_cf(&family, ReadOptions::default());
            let rows = walk(&mut iter, true).expect("the disk is well");
            base.families.insert(family.id(), rows);
            if family.id() != 0 {
                let name = family.name().to_owned();
                families.present.insert(family.id(), name);
            }
        }
        let mut batch = WriteBatch::new();
        batch.put_cf(0, LOG, b"").expect("a small batch");
        db.write(batch, &WriteOptions::synced())
            .expect("the disk is well");
        History::new(base, families)
    }
}

/// Checks that the families of `db` are those of `history`, with their rows after `len` batches.
///
/// # Errors
/// A sentence on the difference.
pub(super) fn check(db: &Db, history: &mut History, len: usize) -> Result<(), String> {
    let families = db.families();
    let mut found = BTreeSet::new();
    for family in &families {
        let known = history.families.present.contains_key(&family.id())
            || history.families.unsure.contains(family.name())
            || family.id() == 0;
        if !known {
            return Err(format!("family {} is back", family.name()));
        }
        found.insert(family.id());
        let mut iter = db.iter_cf(family, ReadOptions::default());
        let rows = walk(&mut iter, true).map_err(|error| format!("{error:?}"))?;
        let want = history.rows(len, family.id());
        if let Some(how) = difference(&rows, &want) {
            return Err(format!("{}: {how}", family.name()));
        }
    }
    for (id, name) in &history.families.present {
        if !found.contains(id) {
            return Err(format!("family {name} is gone"));
        }
    }
    Ok(())
}
