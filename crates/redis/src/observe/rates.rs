//! Amounts a second, from counters that are looked at from time to time.

use std::time::Duration;

/// Looks that a rate is the mean of.
const LOOKS: usize = 16;

/// The rate at which a counter grows.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    looks: [f64; LOOKS],
    at: usize,
    last: u64,
    last_at: Duration,
}

impl Rate {
    /// Looks at the counter.
    pub(crate) fn look(&mut self, now: Duration, count: u64) {
        let seconds = now.saturating_sub(self.last_at).as_secs_f64();
        if seconds > 0.0 {
            let grown = count.saturating_sub(self.last) as f64;
            if let Some(look) = self.looks.get_mut(self.at % LOOKS) {
                *look = grown / seconds;
            }
            self.at += 1;
        }
        (self.last, self.last_at) = (count, now);
    }

    /// The mean of the last looks, a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.looks.iter().sum::<f64>() / LOOKS as f64
    }
}

/// The rates of INFO.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    pub(crate) commands: Rate,
    pub(crate) bytes_in: Rate,
    pub(crate) bytes_out: Rate,
}
