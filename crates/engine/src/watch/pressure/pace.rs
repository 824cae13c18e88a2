//! The present write rate of the store: bytes a second over the last five to ten seconds, from samples of
//! a counter at irregular times.

use std::time::Duration;

/// How long a mark stands before the next one is set.
const SPAN: Duration = Duration::from_secs(5);

/// Bytes written so far, and when that was.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Duration,
    written: u64,
}

/// The two latest marks. Samples more than a span apart cover all of the time between them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    marks: Option<(Mark, Mark)>,
}

impl Pace {
    /// Bytes a second, `written` of them having been written by `now`. The first look takes all of
    /// them for the work of one span.
    pub(crate) fn look(&mut self, now: Duration, written: u64) -> f64 {
        let first = Mark {
            at: now,
            written: 0,
        };
        let (mut older, mut newer) = self.marks.unwrap_or((first, first));
        if now.saturating_sub(newer.at) >= SPAN {
            older = newer;
            newer = Mark { at: now, written };
        }
        self.marks = Some((older, newer));
        let span = now.saturating_sub(older.at).max(SPAN);
        written.saturating_sub(older.written) as f64 / span.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_steady_pace_is_told_from_the_second_span_on() {
        let mut pace = Pace::default();
        for second in 1000..1100 {
            let bytes = pace.look(seconds(second), 200 * (second - 1000));
            let far_enough = second > 1010;
            assert!(!far_enough || (195.0..205.0).contains(&bytes), "{bytes}");
        }
    }

    #[test]
    fn who_ends_writing_is_at_rest_two_spans_later() {
        let mut pace = Pace::default();
        for second in 0..20 {
            pace.look(seconds(second), 1000 * second);
        }
        let at_rest: Vec<f64> = (20..32)
            .map(|second| pace.look(seconds(second), 19_000))
            .collect();
        assert!(at_rest[0] > 700.0, "{at_rest:?}");
        assert_eq!(at_rest.last(), Some(&0.0));
    }

    #[test]
    fn nothing_written_is_no_pace_at_the_first_look() {
        assert_eq!(Pace::default().look(seconds(77), 0), 0.0);
        assert_eq!(Pace::default().look(seconds(77), 500), 100.0);
    }

    #[test]
    fn a_long_time_without_a_look_is_told_of_as_a_whole() {
        let mut pace = Pace::default();
        pace.look(seconds(0), 0);
        assert_eq!(pace.look(seconds(1000), 1_000_000), 1000.0);
    }
}
