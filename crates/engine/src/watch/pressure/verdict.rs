//! The speed that each measure of backlog allows: a curve without steps, and the minimum over all measures.
//!
//! Up to its soft limit a store is free. Past it the share `y` of the way to the hard limit allows
//! `(1 - y) / y` times the speed at which the background drains (to a power): without bound at the
//! soft limit, that very speed half-way, little at the hard one. Where more is let in than goes out
//! the fill grows and less is let in, so an error in the measured speed only moves the point where
//! both meet.

use crate::watch::waits::WaitCause;

/// How full something is that may hold `limit`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fill {
    pub(crate) used: f64,
    pub(crate) limit: f64,
}

impl Fill {
    /// 1 is at the limit.
    pub(crate) fn share(&self) -> f64 {
        if self.limit > 0.0 {
            self.used / self.limit
        } else {
            0.0
        }
    }
}

/// How the fill of one measure becomes an allowance.
#[derive(Clone, Copy, Debug)]
struct Curve {
    /// The share of the limit up to which writers are free.
    soft: f64,
    /// Steepness: by how much the allowance answers to the fill.
    power: f64,
    /// The least share of the drain speed that is let through.
    least: f64,
}

/// A line of memtables holds a second or two of writes. Its fill may move while a compaction beside takes a flush's
/// core, so the answer to it is gentle.
const MEMORY: Curve = Curve {
    soft: 0.5,
    power: 0.25,
    least: 1.0 / 64.0,
};

/// Near the end of the line the answer is steep: writers are slowed before they are stopped.
const MEMORY_END: Curve = Curve {
    soft: 0.75,
    power: 1.0,
    least: 1.0 / 64.0,
};

/// L0, the debt and waste come and go in lumps, which the gentle answer keeps from the writers. They
/// have no end, and are caught up with as well by a quarter less coming in, so writers need not creep.
const TREE: Curve = Curve {
    soft: 0.25,
    power: 0.5,
    least: 0.75,
};

impl Curve {
    /// How many times the drain speed a fill of `share` allows.
    fn allowance(&self, share: f64) -> f64 {
        let y = (share - self.soft) / (1.0 - self.soft);
        if y <= 0.0 {
            return f64::INFINITY;
        }
        ((1.0 - y).max(0.0) / y).powf(self.power).max(self.least)
    }
}

/// The speed allowed to writers, and the measure that sets it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// Bytes a second; infinite when nothing holds writers back.
    pub(crate) bytes_per_second: f64,
    /// The measure that allows the least.
    pub(crate) cause: Option<WaitCause>,
}

impl Verdict {
    /// No limit.
    pub(crate) const FREE: Self = Self {
        bytes_per_second: f64::INFINITY,
        cause: None,
    };

    /// The speed that a fill of `share` allows where `drain` bytes a second go out. Not of memtables.
    pub(crate) fn of(cause: WaitCause, share: f64, drain: f64) -> Self {
        Self::by(TREE, cause, share, drain)
    }

    /// The speed that memtables filled to `share` allow, where flushes pass `drain` bytes a second.
    pub(crate) fn of_memory(share: f64, drain: f64) -> Self {
        let cause = WaitCause::Memtables;
        let verdict = Self::by(MEMORY, cause, share, drain);
        match drumlin_base::bug!("line-of-memtables-without-an-end") {
            true => verdict,
            false => verdict.and(Self::by(MEMORY_END, cause, share, drain)),
        }
    }

    fn by(curve: Curve, cause: WaitCause, share: f64, drain: f64) -> Self {
        let bytes_per_second = curve.allowance(share) * drain;
        if bytes_per_second.is_finite() {
            Self {
                bytes_per_second,
                cause: Some(cause),
            }
        } else {
            Self::FREE
        }
    }

    /// The stricter of two.
    pub(crate) fn and(self, other: Self) -> Self {
        let is_stricter = other.bytes_per_second < self.bytes_per_second;
        if is_stricter != drumlin_base::bug!("mildest-measure-decides") {
            other
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowance_falls_without_steps_from_everything_to_a_little() {
        let memory = |share| Verdict::of_memory(share, 1.0).bytes_per_second;
        let tree = |share| TREE.allowance(share);
        let curves: [(&Curve, &dyn Fn(f64) -> f64); 2] = [(&MEMORY, &memory), (&TREE, &tree)];
        for (curve, allowance) in curves {
            assert_eq!(allowance(0.0), f64::INFINITY);
            assert_eq!(allowance(curve.soft), f64::INFINITY);
            assert!(allowance(curve.soft + 1e-9) > 100.0);
            let middle = f64::midpoint(curve.soft, 1.0);
            assert!((allowance(middle) - 1.0).abs() < 1e-9);
            let mut last = f64::INFINITY;
            for step in 0..3000 {
                let now = allowance(f64::from(step) / 1000.0);
                assert!(now >= curve.least && now <= last);
                let is_edge = !(2.0 * MEMORY_END.least..=20.0).contains(&last);
                assert!(is_edge || now > 0.6 * last, "{step}: {last} {now}");
                last = now;
            }
            assert_eq!(last, curve.least);
        }
    }

    #[test]
    fn the_strictest_measure_decides_and_says_why() {
        let memory = Verdict::of_memory(0.9, 100.0);
        let debt = Verdict::of(WaitCause::Debt, 0.8, 10.0);
        let free = Verdict::of(WaitCause::Level0, 0.2, 10.0);
        assert_eq!(free, Verdict::FREE);
        assert_eq!(free.and(memory).and(debt).cause, Some(WaitCause::Debt));
        assert_eq!(debt.and(memory).cause, Some(WaitCause::Debt));
    }

    #[test]
    fn something_without_a_limit_holds_nobody() {
        let fill = Fill {
            used: 1e12,
            limit: 0.0,
        };
        assert_eq!(TREE.allowance(fill.share()), f64::INFINITY);
    }
}
