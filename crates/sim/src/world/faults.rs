//! The faults of a round's disk, and their times.

use std::sync::Arc;
use std::time::Duration;

use drumlin_base::rng::Rng;
use drumlin_fs::{Fault, FaultFileSystem, FaultRule, OpKind, StrictMemFileSystem};

use crate::schedule::Scheduler;
use crate::setup::{Part, Setup};

/// The rules of one round.
pub(super) struct Plan {
    rules: Vec<FaultRule>,
    fails: bool,
    lies: bool,
    /// The disk is full after so many more bytes.
    quota: Option<u64>,
}

impl Plan {
    pub(super) fn draw(rng: &mut Rng, setup: &Setup) -> Self {
        let mut plan = Self {
            rules: Vec::new(),
            fails: false,
            lies: false,
            quota: None,
        };
        // About how many operations a round takes.
        let horizon = setup.writers * setup.ops * (2 + rng.below(12));
        if setup.has(Part::Delays) {
            plan.delays(rng);
        }
        if setup.has(Part::Errors) && rng.one_in(2) {
            plan.errors(rng, horizon);
        }
        if setup.has(Part::ReadErrors) && rng.one_in(2) {
            plan.read_errors(rng);
        }
        if setup.has(Part::FullDisk) && rng.one_in(2) {
            plan.fails = true;
            if rng.one_in(2) {
                plan.quota = Some(rng.below(60 << 10));
            } else {
                let fault = Fault::TornNoSpace;
                let rule = FaultRule::one_in(1 + rng.below(30), rng.next_u64(), fault);
                plan.rules.push(rule.on(OpKind::Append).on(OpKind::Create));
            }
        }
        if setup.has(Part::Cuts) && rng.one_in(2) {
            let rule = FaultRule::once(rng.below(horizon * 2), Fault::Stop);
            plan.rules.push(rule.on_changes());
        }
        plan
    }

    fn delays(&mut self, rng: &mut Rng) {
        for op in [OpKind::Append, OpKind::Sync, OpKind::Read, OpKind::SyncDir] {
            if rng.one_in(2) {
                let least = Duration::from_micros(1 << rng.below(14));
                let slow = Fault::Slow {
                    least,
                    most: least * (1 << rng.below(6)),
                };
                let rule = match rng.one_in(2) {
                    true => FaultRule::always(slow),
                    false => FaultRule::one_in(1 + rng.below(40), rng.next_u64(), slow),
                };
                self.rules.push(rule.seeded(rng.next_u64()).on(op));
            }
        }
    }

    fn errors(&mut self, rng: &mut Rng, horizon: u64) {
        self.fails = true;
        let fault = match rng.below(4) {
            0 => Fault::TornAppend,
            _ => Fault::Io,
        };
        let at = rng.below(horizon);
        let rule = match rng.below(4) {
            0 => FaultRule::once(at, fault).on_changes(),
            1 => FaultRule::once(at / 4, fault).on(OpKind::Sync),
            2 => FaultRule::one_in(4 + rng.below(200), rng.next_u64(), fault).on_changes(),
            _ => FaultRule::from(at, fault).on_changes(),
        };
        self.rules.push(rule);
    }

    fn read_errors(&mut self, rng: &mut Rng) {
        self.fails = true;
        let fault = match rng.below(4) {
            0 => Fault::FlippedBit,
            1 => Fault::ShortRead,
            2 => Fault::TooManyFiles,
            _ => Fault::Io,
        };
        self.lies = matches!(fault, Fault::FlippedBit | Fault::ShortRead);
        let op = match fault {
            Fault::TooManyFiles => OpKind::Open,
            _ => OpKind::Read,
        };
        let rule = FaultRule::one_in(3 + rng.below(100), rng.next_u64(), fault);
        self.rules.push(rule.on(op));
    }

    /// Whether operations may fail.
    pub(super) fn fails(&self) -> bool {
        self.fails
    }

    /// Whether reads may give wrong bytes.
    pub(super) fn lies(&self) -> bool {
        self.lies
    }

    /// Lets the faults go.
    pub(super) fn arm(
        &self,
        files: &FaultFileSystem,
        memory: &StrictMemFileSystem,
        clock: &Arc<Scheduler>,
    ) {
        files.set_clock(Arc::clone(clock) as _);
        for rule in &self.rules {
            files.add_rule(rule.clone());
        }
        if let Some(more) = self.quota {
            memory.set_quota(memory.used_bytes() + more);
        }
    }

    /// Makes the disk healthy again. A stopped machine stays stopped.
    pub(super) fn disarm(&self, files: &FaultFileSystem, memory: &StrictMemFileSystem) {
        files.clear_rules();
        memory.set_quota(u64::MAX);
    }
}
