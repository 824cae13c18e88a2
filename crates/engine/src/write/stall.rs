//! Whether a write may go on: one pure verdict from what the background still has to do.

use std::time::Duration;

/// What the verdict is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StallInputs {
    /// Memtables of the family, the mutable one included.
    pub memtables: usize,
    /// How many are allowed.
    pub memtables_max: usize,
    /// Whether the mutable memtable is full, so that this write needs another.
    pub memtable_full: bool,
    /// Tables in L0.
    pub l0_files: usize,
    /// From how many on writers are slowed.
    pub l0_slowdown: usize,
    /// Whether the background works at all (a manual style never drains L0).
    pub compacts: bool,
    /// Bytes about to be written.
    pub bytes: usize,
}

/// Why a writer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StallCause {
    /// Every memtable is full and none has been flushed yet.
    Memtables,
    /// L0 grows faster than it is compacted.
    Level0,
}

impl StallCause {
    /// As told to users.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Memtables => "memtables wait for a flush",
            Self::Level0 => "L0 waits for a compaction",
        }
    }
}

/// What a writer has to do before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StallVerdict {
    /// Nothing.
    Go,
    /// Let this much time pass.
    Delay(StallCause, Duration),
    /// Wait until the background has moved on.
    Wait(StallCause),
}

/// Bytes a second let through at the first table past the slowdown; halved by each four more.
const DELAYED_BYTES_PER_SECOND: f64 = 64e6;

/// The verdict. There is no count of L0 tables that stops writers: the delay doubles with every
/// four tables past the slowdown, which soon is slower than any disk drains.
pub(crate) fn verdict(inputs: StallInputs) -> StallVerdict {
    if inputs.memtable_full && inputs.memtables >= inputs.memtables_max {
        return StallVerdict::Wait(StallCause::Memtables);
    }
    let past = inputs.l0_files.saturating_sub(inputs.l0_slowdown);
    if !inputs.compacts || past == 0 {
        return StallVerdict::Go;
    }
    let rate = DELAYED_BYTES_PER_SECOND / 2f64.powf(past as f64 / 4.0);
    let delay = (inputs.bytes as f64 / rate).min(0.1);
    StallVerdict::Delay(StallCause::Level0, Duration::from_secs_f64(delay))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> StallInputs {
        StallInputs {
            memtables: 1,
            memtables_max: 4,
            memtable_full: false,
            l0_files: 0,
            l0_slowdown: 24,
            compacts: true,
            bytes: 1000,
        }
    }

    #[test]
    fn a_full_line_of_memtables_waits_and_no_other_does() {
        let full = StallInputs {
            memtables: 4,
            memtable_full: true,
            ..inputs()
        };
        assert_eq!(verdict(full), StallVerdict::Wait(StallCause::Memtables));
        assert_eq!(
            verdict(StallInputs {
                memtable_full: false,
                ..full
            }),
            StallVerdict::Go
        );
        assert_eq!(
            verdict(StallInputs {
                memtables: 3,
                ..full
            }),
            StallVerdict::Go
        );
    }

    #[test]
    fn delay_grows_smoothly_with_l0_and_never_stops_writers() {
        let delay = |l0_files| match verdict(StallInputs {
            l0_files,
            ..inputs()
        }) {
            StallVerdict::Go => Duration::ZERO,
            StallVerdict::Delay(_, time) => time,
            StallVerdict::Wait(_) => Duration::MAX,
        };
        assert_eq!(delay(24), Duration::ZERO);
        assert!(delay(25) > Duration::ZERO);
        for l0 in 25..200 {
            assert!(delay(l0 + 1) >= delay(l0));
            assert!(delay(l0) <= Duration::from_millis(100));
        }
        let manual = StallInputs {
            l0_files: 100,
            compacts: false,
            ..inputs()
        };
        assert_eq!(verdict(manual), StallVerdict::Go);
    }
}
