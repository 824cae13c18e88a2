//! The batches written to a database since it was last opened, and the states that a reader may
//! see.
//!
//! The order in which batches were committed is read from the database: the key [`LOG`] holds their
//! numbers. Two readings must agree: one is a prefix of the other. A reading has every batch
//! acknowledged before it, and no failed one while the database stays open. After a crash the
//! reading shows the batches that survived; they must again be a prefix, with every synced batch in
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::{LOG, Model, Op, Rows};

/// How much is known of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The write has not returned, or the machine stopped under it: it may be there or not.
    Open,
    /// The write failed: not to be seen before the database is opened again.
    Failed,
    /// The write was acknowledged.
    Acked,
    /// The write was acknowledged and is promised to outlive a power cut.
    Synced,
}

/// A batch and its fate.
#[derive(Clone, Debug)]
pub struct Batch {
    ops: Arc<Vec<(u32, Op)>>,
    fate: Fate,
}

/// The batches that a state after a crash must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// The power was cut: the synced ones.
    Synced,
    /// The process died: the acknowledged ones.
    Acked,
}

/// Families that were made or dropped, with an unknown outcome.
#[derive(Clone, Debug, Default)]
pub struct Families {
    /// Those that are there.
    pub present: BTreeMap<u32, String>,
    /// Those that may be gone, or not have come.
    pub unsure: BTreeSet<String>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct History {
    base: Arc<Model>,
    batches: Vec<Batch>,
    /// Batches in the order they were acknowledged.
    acks: Vec<usize>,
    /// The longest reading of the log.
    observed: Vec<usize>,
    /// Where each batch stands in it.
    places: Vec<Option<usize>>,
    /// Models after some fronts of `observed`.
    fronts: BTreeMap<usize, Arc<Model>>,
    /// The families, as far as known.
    pub families: Families,
}

/// A model is kept for each so many batches.
const FRONT_STEP: usize = 16;

/// The batch numbers in the value of [`LOG`].
pub fn parse_log(value: &[u8]) -> Result<Vec<usize>, String> {
    let text = String::from_utf8_lossy(value);
    let numbers = text.split(',').filter(|part| !part.is_empty());
    numbers
        .map(|part| part.parse().map_err(|_| format!("the log holds {part:?}")))
        .collect()
}

impl History {
    /// A history that begins with the rows of `base`.
    pub fn new(base: Model, families: Families) -> Self {
        Self {
            base: Arc::new(base),
            families,
            ..Self::default()
        }
    }

    /// Notes a batch that is about to be written; its number.
    pub fn begin(&mut self, ops: Vec<(u32, Op)>) -> usize {
        self.batches.push(Batch {
            ops: Arc::new(ops),
            fate: Fate::Open,
        });
        self.places.push(None);
        self.batches.len() - 1
    }

    /// Notes the fate of a batch.
    pub fn ended(&mut self, batch: usize, fate: Fate) {
        if fate >= Fate::Acked {
            self.acks.push(batch);
        }
        if let Some(batch) = self.batches.get_mut(batch) {
            batch.fate = fate;
        }
    }

    /// Batches acknowledged by now.
    pub fn acked(&self) -> usize {
        self.acks.len()
    }

    /// Batches begun.
    pub fn begun(&self) -> usize {
        self.batches.len()
    }

    /// The first `count` acknowledged batches are synced by now.
    pub fn synced(&mut self, count: usize) {
        for &batch in self.acks.iter().take(count) {
            if let Some(batch) = self.batches.get_mut(batch) {
                batch.fate = Fate::Synced;
            }
        }
    }

    /// Takes a reading of the open database's log, made when `acked` batches had been acknowledged.
    ///
    /// # Errors
    /// A sentence on the fault of the reading.
    pub fn observe(&mut self, log: &[usize], acked: usize) -> Result<(), String> {
        self.agree(log)?;
        for &batch in log {
            if self.fate(batch) == Fate::Failed {
                return Err(format!("batch {batch} failed and is seen"));
            }
        }
        self.holds_acked(log, acked)
    }

    fn holds_acked(&self, log: &[usize], acked: usize) -> Result<(), String> {
        for &batch in self.acks.iter().take(acked) {
            if self.place(batch).is_none_or(|place| place >= log.len()) {
                return Err(format!("batch {batch} was acknowledged and is not seen"));
            }
        }
        Ok(())
    }

    /// Takes the log of a copy made when `acked` batches had been acknowledged. Failed batches may be
    /// in it, as after a crash. From then on this history is that of the copy alone.
    ///
    /// # Errors
    /// A sentence on the fault of the log.
    pub fn copied(&mut self, log: &[usize], acked: usize) -> Result<(), String> {
        self.agree(log)?;
        self.holds_acked(log, acked)
    }

    fn fate(&self, batch: usize) -> Fate {
        self.batches
            .get(batch)
            .map_or(Fate::Open, |batch| batch.fate)
    }

    fn place(&self, batch: usize) -> Option<usize> {
        self.places.get(batch).copied().flatten()
    }

    fn agree(&mut self, log: &[usize]) -> Result<(), String> {
        for (place, &batch) in log.iter().enumerate() {
            if let Some(&seen) = self.observed.get(place) {
                if seen != batch {
                    return Err(format!("batch {batch} stands where {seen} was seen"));
                }
                continue;
            }
            let Some(known) = self.places.get_mut(batch) else {
                return Err(format!("batch {batch} was never written"));
            };
            if let Some(before) = known.replace(place) {
                return Err(format!("batch {batch} is seen at {before} and {place}"));
            }
            self.observed.push(batch);
        }
        Ok(())
    }

    /// The rows of family `id` after the first `len` observed batches, without the log.
    pub fn rows(&mut self, len: usize, id: u32) -> Rows {
        let from = self.fronts.range(..=len).next_back();
        let (mut at, mut model) = match from {
            Some((at, model)) => (*at, Arc::clone(model)),
            None => (0, Arc::clone(&self.base)),
        };
        while at < len {
            let batch = self.observed.get(at).and_then(|&n| self.batches.get(n));
            let changed = Arc::make_mut(&mut model);
            for (family, op) in batch.into_iter().flat_map(|batch| &*batch.ops) {
                changed.apply(*family, op);
            }
            at += 1;
            if at.is_multiple_of(FRONT_STEP) {
                self.fronts.insert(at, Arc::clone(&model));
            }
        }
        let mut rows = model.families.get(&id).cloned().unwrap_or_default();
        rows.remove(LOG);
        rows
    }

    /// Takes the log of a database that was opened after a crash.
    ///
    /// # Errors
    /// A sentence on the batch that is lost or out of order.
    pub fn recovered(&mut self, log: &[usize], demand: Demand) -> Result<(), String> {
        self.agree(log)?;
        let least = match demand {
            Demand::Synced => Fate::Synced,
            Demand::Acked => Fate::Acked,
        };
        for (batch, known) in self.batches.iter().enumerate() {
            let is_there = self.place(batch).is_some_and(|place| place < log.len());
            if known.fate >= least && !is_there {
                return Err(format!("batch {batch} is lost ({:?})", known.fate));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_acked() -> History {
        let mut history = History::default();
        for _ in 0..3 {
            history.begin(Vec::new());
        }
        history.ended(1, Fate::Acked);
        history.ended(0, Fate::Synced);
        history
    }

    #[test]
    fn readings_that_disagree_are_told() {
        let mut history = two_acked();
        assert_eq!(history.observe(&[1, 0], 2), Ok(()));
        assert_eq!(history.observe(&[1], 1), Ok(()));
        assert!(history.observe(&[1], 2).unwrap_err().contains("not seen"));
        assert!(history.observe(&[0, 1], 2).unwrap_err().contains("stands"));
        assert!(history.observe(&[1, 0, 1], 2).unwrap_err().contains("at 0"));
        assert!(
            history
                .observe(&[1, 0, 7], 2)
                .unwrap_err()
                .contains("never")
        );
    }

    #[test]
    fn failed_batches_stay_hidden_until_the_next_open() {
        let mut history = two_acked();
        history.ended(2, Fate::Failed);
        assert!(history.clone().observe(&[1, 0, 2], 2).is_err());
        assert_eq!(history.recovered(&[1, 0, 2], Demand::Acked), Ok(()));
    }

    #[test]
    fn what_was_synced_survives_a_power_cut_and_holes_are_told() {
        let mut history = two_acked();
        assert_eq!(history.clone().recovered(&[0], Demand::Synced), Ok(()));
        assert!(history.clone().recovered(&[0], Demand::Acked).is_err());
        assert!(history.clone().recovered(&[1], Demand::Synced).is_err());
        assert_eq!(history.observe(&[1, 0], 2), Ok(()));
        let hole = history.recovered(&[0], Demand::Synced);
        assert!(hole.is_err(), "0 came after 1");
    }
}
