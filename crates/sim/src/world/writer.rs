//! A task that writes batches to the present families.

use drumlin::{ColumnFamily, Error, ErrorKind, Health, WriteBatch, WriteOptions};
use drumlin_base::rng::Rng;

use super::{Counts, Round, fate_of_failed};
use crate::history::Fate;
use crate::model::{LOG, Op, op, value};
use crate::setup::Part;

/// A writer's life.
pub(super) fn live(round: &Round, index: u64, mut rng: Rng) {
    let mut writer = Writer {
        round,
        index,
        made: 0,
        single: Vec::new(),
    };
    for _ in 0..round.setup.ops {
        if round.is_over() || round.db.health() == Health::Poisoned {
            return;
        }
        writer.write(&mut rng);
        if rng.one_in(6) {
            round.look_now("after a write");
        }
        if rng.one_in(8) {
            round.nap(&mut rng);
        }
    }
}

/// Writes a batch that changes nothing but the log.
pub(super) fn probe(round: &Round) {
    let writer = Writer {
        round,
        index: u64::MAX,
        made: 0,
        single: Vec::new(),
    };
    writer.commit(Vec::new(), true, &[]);
}

struct Writer<'a> {
    round: &'a Round,
    index: u64,
    /// Keys made for single deletions.
    made: u64,
    /// Those that are there once.
    single: Vec<(u32, Vec<u8>)>,
}

impl Writer<'_> {
    fn write(&mut self, rng: &mut Rng) {
        let round = self.round;
        let families = round.db.families();
        let is_there = |id: u32| families.iter().any(|family| family.id() == id);
        self.single.retain(|(id, _)| is_there(*id));
        let mut ops = Vec::new();
        let mut singles = Vec::new();
        for _ in 0..=rng.below(5) {
            let family = &families[rng.below(families.len() as u64) as usize];
            if round.setup.has(Part::Singles) && rng.one_in(8) {
                ops.push(self.single(family, rng, &mut singles));
            } else {
                let op = op(rng);
                let fits = match op {
                    Op::DeleteRange(..) => round.setup.has(Part::Ranges),
                    Op::Merge(..) => round.setup.has(Part::Merges),
                    _ => true,
                };
                if fits {
                    ops.push((family.id(), op));
                }
            }
        }
        let sync = rng.one_in(round.setup.sync_one_in);
        if self.commit(ops, sync, &families) {
            self.single.append(&mut singles);
        }
    }

    /// A put of a new key, or the single deletion of one that was put before.
    fn single(
        &mut self,
        family: &ColumnFamily,
        rng: &mut Rng,
        singles: &mut Vec<(u32, Vec<u8>)>,
    ) -> (u32, Op) {
        if rng.one_in(2) && !self.single.is_empty() {
            let chosen = rng.below(self.single.len() as u64) as usize;
            let (id, key) = self.single.swap_remove(chosen);
            return (id, Op::SingleDelete(key));
        }
        let key = format!("s{}-{:03}", self.index, self.made).into_bytes();
        let key = [
            key,
            format!("-{}", self.round.scheduler.steps()).into_bytes(),
        ]
        .concat();
        self.made += 1;
        singles.push((family.id(), key.clone()));
        (family.id(), Op::Put(key, value(rng)))
    }

    fn commit(&self, ops: Vec<(u32, Op)>, sync: bool, families: &[ColumnFamily]) -> bool {
        let round = self.round;
        let number = round.history.lock().begin(ops.clone());
        Counts::add(&round.counts.batches);
        let mut batch = WriteBatch::new();
        let log = Op::Merge(LOG.to_vec(), number.to_string().into_bytes());
        for (id, op) in ops.iter().chain([&(0, log)]) {
            op.add_to(&mut batch, *id).expect("a small batch");
        }
        let options = WriteOptions {
            sync: Some(sync),
            ..WriteOptions::default()
        };
        let outcome = round.db.write(batch, &options);
        let kind = outcome.as_ref().err().map_or(0, |e| 1 + e.kind() as u64);
        round.scheduler.note(&[self.index, number as u64, kind]);
        let fate = match &outcome {
            Ok(()) if sync => Fate::Synced,
            Ok(()) => Fate::Acked,
            Err(_) => fate_of_failed(round),
        };
        round.history.lock().ended(number, fate);
        let gone = |error: &Error| error.kind() == ErrorKind::InvalidArgument && families.len() > 1;
        if outcome.as_ref().is_err_and(gone) {
            return false; // One of the families was dropped meanwhile.
        }
        round.allow("write", outcome).is_some()
    }
}
