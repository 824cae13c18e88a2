//! Faults of the network in memory, and the rules that inject them.
//!
//! Rules are made as those of files are ([`crate::FaultRule`]): a fault, the operations it applies to, and a choice
//! among them by number or by seed. An operation to which the fault means nothing is counted and not struck.

use std::time::Duration;

use drumlin_base::rng::Rng;

use super::Address;
use crate::fault_rule::{When, draw_delay};

/// The operations that are counted and can be struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetOp {
    /// A listener made.
    Listen,
    /// An attempt to connect.
    Connect,
    /// An accept with somebody there to be accepted.
    Accept,
    /// A read.
    Read,
    /// A write of at least one byte.
    Write,
    /// A source that begins to be ready, as a wait finds it. Of a connection each direction counts.
    Ready,
    /// A wait that has events to report.
    Wait,
}

/// The effect on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetFault {
    /// A read or write moves fewer bytes than it could: at least one, how many is drawn.
    Short,
    /// A read, write or accept says "not now", ready or not.
    NotNow,
    /// The connection that reads or writes is reset. Each side may lose the bytes it has not read, from some point
    /// on.
    Reset,
    /// The attempt to connect is refused.
    Refused,
    /// Too many open files: of listening, connecting and accepting.
    TooManyFiles,
    /// The peer of the connection that reads or writes vanishes, its machine or the cable: no bytes, ends or resets
    /// arrive any more on either side, and neither side learns of it. A keepalive
    /// ([`super::Connection::set_keepalive`]) fails with `TimedOut` then, and so do writes after a quarter of an hour.
    Vanish,
    /// The machine of the peer has started anew and forgotten the connection that reads or writes, which stays half
    /// open: it receives nothing until it writes, or keepalive probes; then it is reset. The peer's side is reset now.
    HalfOpen,
    /// It takes effect later, by a time evenly at random between the two: the bytes of a write arrive later, an attempt
    /// to connect is decided later, readiness is reported later. Delays of all rules that strike add up; bytes do not
    /// overtake each other.
    Slow {
        /// The shortest delay.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// The events of a wait come in a drawn order.
    Reorder,
    /// A wait ends with nothing reported.
    Interrupted,
}

impl NetFault {
    /// Always the same delay.
    pub fn slow(delay: Duration) -> Self {
        Self::Slow {
            least: delay,
            most: delay,
        }
    }

    fn applies(self, op: NetOp) -> bool {
        match self {
            Self::Short | Self::Reset | Self::Vanish | Self::HalfOpen => {
                matches!(op, NetOp::Read | NetOp::Write)
            }
            Self::NotNow => matches!(op, NetOp::Read | NetOp::Write | NetOp::Accept),
            Self::Refused => op == NetOp::Connect,
            Self::TooManyFiles => matches!(op, NetOp::Listen | NetOp::Connect | NetOp::Accept),
            Self::Slow { .. } => matches!(op, NetOp::Write | NetOp::Connect | NetOp::Ready),
            Self::Reorder | Self::Interrupted => op == NetOp::Wait,
        }
    }
}

/// A fault and the operations it strikes. Operations that meet the rule's conditions are numbered
/// from 0, beginning when the rule is added.
#[derive(Clone, Debug)]
pub struct NetRule {
    fault: NetFault,
    when: When,
    ops: Vec<NetOp>,
    address_part: Option<String>,
    seen: u64,
    delays: Rng,
}

impl NetRule {
    /// Strikes operation `index` and no other.
    pub fn once(index: u64, fault: NetFault) -> Self {
        Self::new(When::Once(index), fault)
    }

    /// Strikes operation `index` and all after it.
    pub fn from(index: u64, fault: NetFault) -> Self {
        Self::new(When::From(index), fault)
    }

    /// Strikes every operation.
    pub fn always(fault: NetFault) -> Self {
        Self::from(0, fault)
    }

    /// Strikes one operation in `n` on average, the same ones for the same `seed`.
    pub fn one_in(n: u64, seed: u64, fault: NetFault) -> Self {
        Self::new(When::OneIn(n, Rng::new(seed)), fault)
    }

    fn new(when: When, fault: NetFault) -> Self {
        Self {
            fault,
            when,
            ops: Vec::new(),
            address_part: None,
            seen: 0,
            delays: Rng::new(0),
        }
    }

    /// Draws the delays of [`NetFault::Slow`] from this seed.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.delays = Rng::new(seed);
        self
    }

    /// Only operations of this kind, or of one of the kinds when called more than once.
    #[must_use]
    pub fn on(mut self, op: NetOp) -> Self {
        self.ops.push(op);
        self
    }

    /// Only where the own address contains `part`: that of the listener, or of this side of the connection. Each TCP
    /// client has a port of its own.
    #[must_use]
    pub fn at(mut self, part: &str) -> Self {
        self.address_part = Some(part.to_owned());
        self
    }

    fn strikes(&mut self, op: NetOp, address: &Address) -> bool {
        let part = self.address_part.as_deref();
        let meets = (self.ops.is_empty() || self.ops.contains(&op))
            && part.is_none_or(|part| address.to_string().contains(part));
        if !meets {
            return false;
        }
        let index = self.seen;
        self.seen += 1;
        self.when.strikes(index) && self.fault.applies(op)
    }
}

/// The rules of a network, and counts of their effects.
#[derive(Debug, Default)]
pub(super) struct NetRules {
    pub(super) rules: Vec<NetRule>,
    /// The number of operations struck.
    pub(super) injected: u64,
}

/// The outcome of judging one operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Verdict {
    pub(super) delay: Duration,
    pub(super) fault: Option<NetFault>,
}

impl NetRules {
    /// Counts the operation with every rule. Delays add up; of other faults the first strikes.
    pub(super) fn judge(&mut self, op: NetOp, address: &Address) -> Verdict {
        let mut verdict = Verdict::default();
        for rule in &mut self.rules {
            if !rule.strikes(op, address) {
                continue;
            }
            match rule.fault {
                NetFault::Slow { least, most } => {
                    verdict.delay += draw_delay(&mut rule.delays, least, most);
                    self.injected += 1;
                }
                fault if verdict.fault.is_none() => {
                    verdict.fault = Some(fault);
                    self.injected += 1;
                }
                _ => {}
            }
        }
        verdict
    }
}
