//! The duration of a watched load and the work beside it.

use crate::flags::Flags;

/// Seconds a stall run lasts unless told otherwise.
const STALL_SECONDS: u64 = 60;

/// One watched load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Ends after this many seconds.
    pub seconds: Option<u64>,
    /// Ends when each thread has written this often.
    pub writes_per_thread: u64,
    /// When a full compaction is asked for by hand, in seconds from the start.
    pub compact_at: Option<u64>,
    /// Whether every key of the key space is in the store from the start.
    pub is_filled: bool,
}

impl Plan {
    /// Writes for `--duration` seconds, with a full compaction asked for in the middle.
    pub fn stall(flags: &Flags) -> Self {
        let seconds = match flags.duration {
            0 => STALL_SECONDS,
            seconds => seconds,
        };
        let compact_at = match u64::try_from(flags.compact_at) {
            Ok(0) => None,
            Ok(second) => Some(second),
            Err(_) => Some(seconds / 2),
        };
        Self {
            seconds: Some(seconds),
            writes_per_thread: u64::MAX,
            compact_at,
            is_filled: flags.use_existing_db,
        }
    }

    /// `--writes` overwrites a thread (or `--duration` seconds) of a store that is already filled.
    pub fn sustain(flags: &Flags) -> Self {
        let seconds = (flags.duration > 0).then_some(flags.duration);
        let writes = u64::try_from(flags.writes).unwrap_or(flags.num);
        Self {
            seconds,
            writes_per_thread: if seconds.is_some() { u64::MAX } else { writes },
            compact_at: u64::try_from(flags.compact_at).ok().filter(|at| *at > 0),
            is_filled: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &[&str]) -> Flags {
        Flags::parse(words).expect("sound flags")
    }

    #[test]
    fn the_compaction_comes_in_the_middle_unless_told_otherwise() {
        let at = |words: &[&str]| Plan::stall(&flags(words)).compact_at;
        assert_eq!(at(&[]), Some(30));
        assert_eq!(at(&["--duration=9"]), Some(4));
        assert_eq!(at(&["--duration=9", "--compact_at=7"]), Some(7));
        assert_eq!(at(&["--compact_at=0"]), None);
    }

    #[test]
    fn sustained_writes_end_by_count_or_by_time() {
        let plan = Plan::sustain(&flags(&["--num=7"]));
        assert_eq!((plan.seconds, plan.writes_per_thread), (None, 7));
        let plan = Plan::sustain(&flags(&["--num=7", "--writes=20"]));
        assert_eq!((plan.writes_per_thread, plan.compact_at), (20, None));
        let plan = Plan::sustain(&flags(&["--duration=5"]));
        assert_eq!((plan.seconds, plan.writes_per_thread), (Some(5), u64::MAX));
    }
}
