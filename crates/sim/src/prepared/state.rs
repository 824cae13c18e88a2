//! What a store must have: rows and prepared transactions, after steps of which a power cut may lose the last ones.
//!
//! The promise, in one rule: what is found is what the steps up to some step made, and none after it. That step is no earlier
//! than the last one that was acknowledged as durable, so a transaction is prepared or has ended, and is never half there.

use std::collections::BTreeMap;

use crate::model::{Model, Op, Rows, difference};

/// Changes, each of a family, which has its place among the names.
pub(super) type Writes = Vec<(u32, Op)>;

/// One step that changes a store.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Write(Writes),
    Prepare(String, Writes),
    Commit(String),
    Rollback(String),
}

/// What is there at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) model: Model,
    pub(super) waiting: BTreeMap<String, Writes>,
}

impl State {
    pub(super) fn apply(&mut self, step: &Step) {
        let made = match step {
            Step::Write(writes) => Some(writes.clone()),
            Step::Prepare(name, writes) => {
                let before = self.waiting.insert(name.clone(), writes.clone());
                assert!(before.is_none(), "names are drawn once");
                None
            }
            Step::Commit(name) => self.waiting.remove(name),
            Step::Rollback(name) => {
                self.waiting.remove(name);
                None
            }
        };
        for (family, op) in made.iter().flatten() {
            self.model.apply(*family, op);
        }
    }

    /// Whether a prepared transaction has `key` of `family` locked.
    pub(super) fn locks(&self, family: u32, key: &[u8]) -> bool {
        let one = Op::Delete(key.to_vec());
        self.conflicts(family, &one)
    }

    /// Whether `op` would need a lock that a prepared transaction has.
    pub(super) fn conflicts(&self, family: u32, op: &Op) -> bool {
        let writes = self.waiting.values().flatten();
        let mut same = writes.filter(|(of, _)| *of == family);
        same.any(|(_, other)| meet(other, op))
    }

    /// How `found` differs.
    pub(super) fn difference(&self, found: &Found) -> Option<String> {
        if !self.waiting.keys().eq(&found.waiting) {
            let wanted: Vec<_> = self.waiting.keys().collect();
            return Some(format!("{:?} are prepared, not {wanted:?}", found.waiting));
        }
        let none = Rows::new();
        (0..).zip(&found.rows).find_map(|(family, rows)| {
            let wanted = self.model.families.get(&family).unwrap_or(&none);
            let why = difference(rows, wanted)?;
            Some(format!("family {family}: {why}"))
        })
    }
}

/// Whether there is a key that both change.
fn meet(one: &Op, other: &Op) -> bool {
    let (begin, end) = span(one);
    let (other_begin, other_end) = span(other);
    begin.max(other_begin) < end.min(other_end)
}

/// The keys an operation changes: from the first up to, not including, the second.
fn span(op: &Op) -> (Vec<u8>, Vec<u8>) {
    match op {
        Op::Put(key, _) | Op::Delete(key) | Op::SingleDelete(key) | Op::Merge(key, _) => {
            (key.clone(), [key, &[0][..]].concat())
        }
        Op::DeleteRange(begin, end) => (begin.clone(), end.clone()),
    }
}

/// What a store has.
#[derive(Debug)]
pub(super) struct Found {
    /// The names of what is prepared, in order.
    pub(super) waiting: Vec<String>,
    /// By family.
    pub(super) rows: Vec<Rows>,
}

/// What is known of a store: a state that no power cut changes, and the steps since.
#[derive(Debug, Default)]
pub(super) struct Known {
    durable: State,
    since: Vec<Step>,
    /// The same with all of these.
    pub(super) now: State,
    /// How many of the steps were acknowledged: all, or all but the last.
    acknowledged: usize,
}

impl Known {
    /// A step is asked for.
    pub(super) fn begin(&mut self, step: Step) {
        self.since.push(step);
    }

    /// It was acknowledged. Where it was synced it and what came before is durable.
    pub(super) fn acknowledge(&mut self, synced: bool) {
        let step = self.since.last().expect("one was begun");
        self.now.apply(step);
        self.acknowledged = self.since.len();
        if synced {
            self.all_is_durable();
        }
    }

    fn all_is_durable(&mut self) {
        for step in self.since.drain(..self.acknowledged) {
            self.durable.apply(&step);
        }
        self.acknowledged = 0;
    }

    /// Whether a transaction is durably prepared whose end was not acknowledged.
    pub(super) fn waits_durably(&self) -> bool {
        let mut names = self.now.waiting.keys();
        names.any(|name| self.durable.waiting.contains_key(name))
    }

    /// Whether the end of a durably prepared transaction was asked for and not acknowledged.
    pub(super) fn is_within_an_end(&self) -> bool {
        match self.since.get(self.acknowledged) {
            Some(Step::Commit(name) | Step::Rollback(name)) => {
                self.durable.waiting.contains_key(name)
            }
            _ => false,
        }
    }

    /// Takes what was found after a cut for what is there; `all` acknowledged steps have to be. Everything of it is durable.
    ///
    /// # Errors
    /// No end of the steps makes this.
    pub(super) fn judge(&mut self, found: &Found, all: bool) -> Result<(), String> {
        let least = match all {
            true => self.acknowledged,
            false => 0,
        };
        let mut state = self.durable.clone();
        let mut wrong = None;
        for made in 0..=self.since.len() {
            if made > 0 {
                state.apply(&self.since[made - 1]);
            }
            if made < least {
                continue;
            }
            match state.difference(found) {
                None => {
                    self.now = state.clone();
                    self.durable = state;
                    self.since.clear();
                    self.acknowledged = 0;
                    return Ok(());
                }
                Some(why) => _ = wrong.get_or_insert(why),
            }
        }
        let steps = self.since.len();
        Err(format!(
            "{}; nor is it what any of {steps} steps since made",
            wrong.expect("one state at least was compared")
        ))
    }
}
