//! Tasks that neither write nor read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use drumlin::{Db, ErrorKind, Health, ReadOptions, Result, SstFileWriter, TableWriterOptions};
use drumlin_base::rng::Rng;

use super::look::{read_log, walk};
use super::{Counts, Round, fate_of_failed};
use crate::history::Fate;
use crate::model::{LOG, Op, difference, key, value};

/// Flushes, compacts, syncs and scrubs.
pub(super) fn live(round: &Round, _index: u64, mut rng: Rng) {
    for _ in 0..round.setup.ops / 4 {
        if round.is_over() {
            return;
        }
        let families = round.db.families();
        let family = &families[rng.below(families.len() as u64) as usize];
        // A family may be dropped under an operation on it.
        let gone = |kind: ErrorKind| kind == ErrorKind::InvalidArgument && families.len() > 1;
        let acked = round.history.lock().acked();
        match rng.below(9) {
            0 | 1 => {
                let outcome = round.db.flush_cf(family);
                if !outcome.as_ref().is_err_and(|error| gone(error.kind())) {
                    round.allow("flush", outcome);
                }
            }
            2 => {
                if round.allow("sync", round.db.sync_wal()).is_some() {
                    round.history.lock().synced(acked);
                }
            }
            3 | 4 => {
                let (one, other) = (key(&mut rng), key(&mut rng));
                let low = one.clone().min(other.clone());
                let begin = rng.one_in(2).then_some(low.as_slice());
                let high = one.max(other);
                let end = rng.one_in(2).then_some(high.as_slice());
                let outcome = round.db.compact_range(family, begin, end);
                if !outcome.as_ref().is_err_and(|error| gone(error.kind())) {
                    round.allow("compact", outcome);
                }
            }
            5 => {
                if let Some(report) = round.allow("verify", round.db.verify()) {
                    let sound = report.damaged.is_empty();
                    if !sound {
                        round.told.any.store(true, Ordering::Relaxed);
                    }
                    let fine = sound || round.failing || round.is_over();
                    assert!(fine, "{:?}", report.damaged);
                }
            }
            6 => ingest(round, &mut rng),
            _ => round.nap(&mut rng),
        }
    }
}

/// Takes a table in that was written outside: a batch of its own among those of the writers.
fn ingest(round: &Round, rng: &mut Rng) {
    let mut rows = BTreeMap::new();
    for _ in 0..=rng.below(4) {
        let gone = rng.one_in(4);
        rows.insert(key(rng), (!gone).then(|| value(rng)));
    }
    let ops = rows.iter().map(|(key, value)| match value {
        Some(value) => (0, Op::Put(key.clone(), value.clone())),
        None => (0, Op::Delete(key.clone())),
    });
    let number = round.history.lock().begin(ops.collect());
    Counts::add(&round.counts.batches);
    let path = PathBuf::from(format!("/outside-{}.sst", round.scheduler.steps()));
    let moves = rng.one_in(2);
    let outcome = write_table(round, &path, number, &rows)
        .and_then(|()| round.db.ingest(round.db.default_family(), &[path], moves));
    let fate = match &outcome {
        Ok(()) => Fate::Synced,
        Err(_) => fate_of_failed(round),
    };
    round.history.lock().ended(number, fate);
    round.allow("ingest", outcome);
}

fn write_table(
    round: &Round,
    path: &Path,
    number: usize,
    rows: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
) -> Result<()> {
    let files = std::sync::Arc::new(round.files.clone());
    let env = round.setup.options(files, &round.scheduler).env;
    let mut table = SstFileWriter::create(&env, path, TableWriterOptions::default())?;
    table.merge(LOG, number.to_string().as_bytes())?; // Before any other key.
    for (key, value) in rows {
        match value {
            Some(value) => table.put(key, value)?,
            None => table.delete(key)?,
        }
    }
    table.finish().map(drop)
}

/// Makes and drops families.
pub(super) fn families(round: &Round, _index: u64, mut rng: Rng) {
    for _ in 0..round.setup.ops / 6 {
        if round.is_over() || round.db.health() == Health::Poisoned {
            return;
        }
        let families = round.db.families();
        if families.len() < 4 && rng.one_in(2) {
            create(round, &format!("f{}", rng.below(6)));
        } else if let Some(family) = families.get(1 + rng.below(3) as usize) {
            let name = family.name().to_owned();
            let mut history = round.history.lock();
            history.families.present.remove(&family.id());
            history.families.unsure.insert(name.clone());
            drop(history);
            if round.allow("drop", round.db.drop_family(family)).is_some() {
                round.history.lock().families.unsure.remove(&name);
            }
        }
        round.nap(&mut rng);
    }
}

fn create(round: &Round, name: &str) {
    if round.db.column_family(name).is_some() || round.history.lock().families.unsure.contains(name)
    {
        return;
    }
    let mut history = round.history.lock();
    history.families.unsure.insert(name.to_owned());
    drop(history);
    let made = round.db.create_family(name, round.setup.family());
    if let Some(family) = round.allow("create", made) {
        let mut history = round.history.lock();
        history.families.unsure.remove(name);
        let families = &mut history.families.present;
        families.insert(family.id(), name.to_owned());
    }
}

/// Makes checkpoints and reads them.
pub(super) fn checkpoints(round: &Round, _index: u64, mut rng: Rng) {
    for number in 0..2 {
        round.nap(&mut rng);
        if round.is_over() {
            return;
        }
        let target = format!("/copy-{}-{number}", round.scheduler.steps());
        let acked = round.history.lock().acked();
        let made = round.db.checkpoint(&target);
        if round.allow("checkpoint", made).is_none() {
            continue;
        }
        let mut options = round
            .setup
            .options(std::sync::Arc::new(round.files.clone()), &round.scheduler);
        options.background_threads = Some(0);
        options.wal_dir = None; // A copy has everything in one directory.
        let Some(copy) = round.allow("open a copy", Db::open_read_only(&target, options)) else {
            continue;
        };
        let Some(log) = round.allow("read a copy", read_log(&copy)) else {
            continue;
        };
        Counts::add(&round.counts.checks);
        let mut history = round.history.lock().clone();
        let seen = history.copied(&log, acked);
        seen.unwrap_or_else(|why| panic!("a checkpoint: {why}"));
        for family in copy.families() {
            let want = history.rows(log.len(), family.id());
            let mut iter = copy.iter_cf(&family, ReadOptions::default());
            let Some(found) = round.allow("walk a copy", walk(&mut iter, true)) else {
                break;
            };
            if let Some(how) = difference(&found, &want) {
                panic!("{} in a checkpoint: {how}", family.name());
            }
        }
    }
}
