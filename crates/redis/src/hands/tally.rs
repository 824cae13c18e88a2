//! What a hand has counted, until the loop takes it over.

use std::collections::BTreeMap;

use drumlin_redis_store::LookUps;

use crate::session::Kept;

/// The calls of one command, all of which were answered without an error.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// How many took so many microseconds.
    pub(crate) times: BTreeMap<u64, u64>,
}

impl Calls {
    fn add(&mut self, micros: u64, count: u64) {
        *self.times.entry(micros).or_default() += count;
    }
}

/// A command that took long.
#[derive(Debug)]
pub(crate) struct Slow {
    pub(crate) client: u64,
    pub(crate) kept: Kept,
    pub(crate) micros: u64,
    /// Of the wall clock.
    pub(crate) seconds: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) commands: u64,
    pub(crate) looked_up: LookUps,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// By the places of the catalogue.
    pub(crate) calls: BTreeMap<u16, Calls>,
    pub(crate) slow: Vec<Slow>,
}

impl Tally {
    /// Counts a call of the command at this place of the catalogue.
    pub(super) fn ran(&mut self, index: u16, micros: u64) {
        self.commands += 1;
        self.calls.entry(index).or_default().add(micros, 1);
    }

    /// Adds what `other` counted, which is empty after that.
    pub(super) fn take_over(&mut self, other: &mut Self) {
        let other = std::mem::take(other);
        self.commands += other.commands;
        self.looked_up += other.looked_up;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.reads += other.reads;
        self.writes += other.writes;
        for (index, calls) in other.calls {
            let own = self.calls.entry(index).or_default();
            for (micros, count) in calls.times {
                own.add(micros, count);
            }
        }
        self.slow.extend(other.slow);
    }
}
