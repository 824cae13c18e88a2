//! A rate limiter for background writes, with priorities.
//!
//! The idea is a virtual clock for each priority. Taking bytes moves the clock ahead by their cost at the
//! limit, and a thread sleeps until real time has caught up with it:
//!
//! ```text
//! cost     bytes / limit
//! take     own clock          += cost
//!          lower priorities   += 9/10 cost    (a tenth of the limit stays theirs)
//!          higher priorities  += 1/10 cost    (they hardly wait for lower ones)
//!          sleep until own clock; a clock that is behind keeps at most a burst of unused time
//! ```
//!
//! So a flush hardly waits for compactions, nobody starves, and all together pass the limit by at most a tenth
//! for each busy priority.
//!
//! No queue and no wake-up: a thread sleeps once for each request, so a run under a manual clock depends on
//! nothing but its requests. Any number of threads.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Clock;

/// The time whose worth of bytes may be taken at once after a pause.
const BURST: Duration = Duration::from_millis(100);
/// The divisor of a request's cost: a tenth of it is spared to lower priorities, and a tenth of it
/// reaches higher ones.
const SHARE: u32 = 10;
/// How often the limit is looked at when it tunes itself.
const WINDOW: Duration = Duration::from_secs(1);
/// A self-tuning limit is above the requested rate by one part in this many.
const HEADROOM: u64 = 4;

/// The kind of a request's writer, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoPriority {
    /// Writers may be waiting for it.
    Flush,
    /// Keeps the tree in shape.
    Compaction,
    /// A user asked for it and has time.
    Manual,
}

const PRIORITIES: [IoPriority; 3] = [
    IoPriority::Flush,
    IoPriority::Compaction,
    IoPriority::Manual,
];

/// How many bytes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimit {
    /// As many as the disk takes.
    #[default]
    Unlimited,
    /// This many; at least 1.
    Fixed(u64),
    /// Follows the requested rate, between a twentieth of this and this: bursts are spread out, and
    /// no work piles up. At least 20.
    Auto(u64),
}

/// See the module.
#[derive(Debug)]
pub struct RateLimiter {
    clock: Arc<dyn Clock>,
    state: Mutex<RateState>,
}

#[derive(Debug)]
struct RateState {
    limit: RateLimit,
    /// 0: no limit.
    bytes_per_second: u64,
    /// By priority: when all that counts for it will have been paid.
    paid_at: [Duration; PRIORITIES.len()],
    window: Window,
}

/// Requests since the limit was last adjusted.
#[derive(Debug)]
struct Window {
    begin: Duration,
    bytes: u64,
    /// The longest a flush or an automatic compaction had to wait.
    wait: Duration,
}

impl RateLimiter {
    /// A limiter.
    pub fn new(clock: Arc<dyn Clock>, limit: RateLimit) -> Self {
        let now = clock.monotonic();
        let bytes_per_second = match limit {
            RateLimit::Unlimited => 0,
            RateLimit::Fixed(rate) | RateLimit::Auto(rate) => rate.max(1),
        };
        Self {
            clock,
            state: Mutex::new(RateState {
                limit,
                bytes_per_second,
                paid_at: [now; PRIORITIES.len()],
                window: Window {
                    begin: now,
                    bytes: 0,
                    wait: Duration::ZERO,
                },
            }),
        }
    }

    /// Bytes a second let through now; `None` when there is no limit.
    pub fn bytes_per_second(&self) -> Option<u64> {
        Some(self.state.lock().bytes_per_second).filter(|&rate| rate > 0)
    }

    /// Takes `bytes` that are about to be written, and sleeps as long as the limit asks for.
    /// Returns the time slept.
    pub fn request(&self, bytes: u64, priority: IoPriority) -> Duration {
        let wait = self.take(bytes, priority);
        if !wait.is_zero() {
            self.clock.sleep(wait);
        }
        wait
    }

    /// Takes `bytes` without sleeping, and returns how long the caller should wait before it writes
    /// them.
    pub fn take(&self, bytes: u64, priority: IoPriority) -> Duration {
        let mut state = self.state.lock();
        if state.bytes_per_second == 0 {
            return Duration::ZERO;
        }
        let now = self.clock.monotonic();
        state.tune(now);
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(state.bytes_per_second);
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let mut wait = Duration::ZERO;
        for (other, paid_at) in PRIORITIES.into_iter().zip(&mut state.paid_at) {
            let felt = match other.cmp(&priority) {
                std::cmp::Ordering::Less => cost / SHARE,
                std::cmp::Ordering::Equal => cost,
                std::cmp::Ordering::Greater => cost - cost / SHARE,
            };
            // Unused time is kept up to the burst.
            *paid_at = (*paid_at)
                .max(match drumlin_base::bug!("unused-time-hoarded") {
                    true => Duration::ZERO,
                    false => now.saturating_sub(BURST),
                })
                .saturating_add(felt);
            if other == priority {
                wait = paid_at.saturating_sub(now);
            }
        }
        state.window.bytes = state.window.bytes.saturating_add(bytes);
        if priority < IoPriority::Manual {
            state.window.wait = state.window.wait.max(wait);
        }
        wait
    }
}

impl RateState {
    /// Looks at the limit, if it is time to.
    fn tune(&mut self, now: Duration) {
        let RateLimit::Auto(rate_max) = self.limit else {
            return;
        };
        let passed = now.saturating_sub(self.window.begin);
        if passed < WINDOW {
            return;
        }
        let asked = u128::from(self.window.bytes) * 1000 / passed.as_millis().max(1);
        let asked = u64::try_from(asked).unwrap_or(u64::MAX);
        let waited = self.window.wait > BURST;
        self.bytes_per_second = tuned(self.bytes_per_second, asked, waited, rate_max.max(20));
        assert!(self.bytes_per_second > 0, "0 stands for no limit");
        self.window = Window {
            begin: now,
            bytes: 0,
            wait: Duration::ZERO,
        };
    }
}

/// The next limit after one of `rate`, under which `asked` bytes a second were let through, and
/// work that matters `waited` longer than a burst. Up fast, because waiting work piles up; down
/// slowly, because a pause says little about the requests to come.
fn tuned(rate: u64, asked: u64, waited: bool, rate_max: u64) -> u64 {
    let wanted = asked.saturating_add(asked / HEADROOM);
    let next = if waited {
        wanted.max(rate.saturating_add(rate / HEADROOM))
    } else {
        wanted.max(rate / 20 * 19)
    };
    next.clamp(rate_max / 20, rate_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    const MIB: u64 = 1 << 20;

    fn limiter(limit: RateLimit) -> (ManualClock, RateLimiter) {
        let clock = ManualClock::new(0);
        clock.advance(Duration::from_secs(10));
        let limiter = RateLimiter::new(Arc::new(clock.clone()), limit);
        (clock, limiter)
    }

    /// Bytes that each priority gets through in `seconds`, when each of `busy` asks for a piece
    /// again as soon as it was let through.
    fn contend(limit: RateLimit, busy: &[IoPriority], seconds: u64) -> [u64; 3] {
        const PIECE: u64 = 256 << 10;
        let (clock, limiter) = limiter(limit);
        let begin = clock.monotonic();
        let mut through = [0; 3];
        let mut ready: Vec<_> = busy.iter().map(|&who| (begin, who)).collect();
        loop {
            ready.sort();
            let (at, who) = ready[0];
            if at > begin + Duration::from_secs(seconds) {
                return through;
            }
            clock.advance(at.saturating_sub(clock.monotonic()));
            ready[0].0 = at + limiter.take(PIECE, who);
            through[who as usize] += PIECE;
        }
    }

    #[test]
    fn over_time_no_more_than_the_limit_gets_through() {
        for who in PRIORITIES {
            let (clock, limiter) = limiter(RateLimit::Fixed(MIB));
            let begin = clock.monotonic();
            for _ in 0..64 {
                limiter.request(64 << 10, who);
            }
            assert_eq!(clock.monotonic() - begin, Duration::from_secs(4));
        }
    }

    #[test]
    fn a_pause_saves_up_no_more_than_the_burst() {
        let (clock, limiter) = limiter(RateLimit::Fixed(1000));
        clock.advance(Duration::from_secs(100));
        assert_eq!(limiter.request(100, IoPriority::Flush), Duration::ZERO);
        let wait = limiter.request(500, IoPriority::Flush);
        assert_eq!(wait, Duration::from_millis(500));
    }

    #[test]
    fn the_urgent_get_nearly_all_and_nobody_starves() {
        let busy = [
            IoPriority::Flush,
            IoPriority::Compaction,
            IoPriority::Manual,
        ];
        let [flush, compaction, manual] = contend(RateLimit::Fixed(100 * MIB), &busy, 10);
        assert!(flush > 900 * MIB, "{flush}");
        assert!(
            compaction > 50 * MIB && compaction < flush / 4,
            "{compaction}"
        );
        assert!(manual > 5 * MIB && manual <= compaction, "{manual}");
        let sum = flush + compaction + manual;
        assert!(sum < 1250 * MIB, "{sum}");
    }

    #[test]
    fn one_alone_gets_all_whatever_its_priority() {
        let manual = contend(RateLimit::Fixed(100 * MIB), &[IoPriority::Manual], 10)[2];
        assert!((1000 * MIB..1020 * MIB).contains(&manual), "{manual}");
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        let (_, limiter) = limiter(RateLimit::Unlimited);
        assert_eq!(limiter.take(u64::MAX, IoPriority::Manual), Duration::ZERO);
        assert_eq!(limiter.bytes_per_second(), None);
    }

    /// Asks for `rate` bytes a second in pieces, as a job does that also has other work.
    fn work(clock: &ManualClock, limiter: &RateLimiter, rate: u64, seconds: u64) -> Duration {
        let piece = rate / 20;
        let mut waited = Duration::ZERO;
        for _ in 0..seconds * 20 {
            clock.advance(Duration::from_millis(50));
            waited += limiter.request(piece, IoPriority::Compaction);
        }
        waited
    }

    #[test]
    fn a_limit_that_tunes_itself_settles_above_the_demand_and_follows_it() {
        let (clock, limiter) = limiter(RateLimit::Auto(1000 * MIB));
        work(&clock, &limiter, 100 * MIB, 120);
        let settled = limiter.bytes_per_second().unwrap();
        assert!((110 * MIB..140 * MIB).contains(&settled), "{settled}");
        assert_eq!(work(&clock, &limiter, 100 * MIB, 10), Duration::ZERO);
        // More work: some waiting, then none.
        work(&clock, &limiter, 600 * MIB, 20);
        assert_eq!(work(&clock, &limiter, 600 * MIB, 10), Duration::ZERO);
        // Less: back, but slowly.
        work(&clock, &limiter, 50 * MIB, 5);
        assert!(limiter.bytes_per_second().unwrap() > 500 * MIB);
        work(&clock, &limiter, 50 * MIB, 120);
        assert!(limiter.bytes_per_second().unwrap() < 80 * MIB);
    }

    #[test]
    fn a_limit_that_tunes_itself_stays_within_its_bounds() {
        assert_eq!(tuned(100, 0, false, 1000), 95);
        assert_eq!(tuned(51, 0, false, 1000), 50);
        assert_eq!(tuned(900, 900, true, 1000), 1000);
        assert_eq!(tuned(100, 100, true, 1000), 125);
        assert_eq!(tuned(u64::MAX, u64::MAX, true, u64::MAX), u64::MAX);
    }
}
