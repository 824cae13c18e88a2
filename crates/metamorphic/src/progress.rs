//! The progress of a run, and the watch that checks that it goes on.
//!
//! A run counts its operations here. A watch looks once a second; when a set of options makes no step, or
//! does not end, for so many looks, it reports that. It counts looks and not the time of day: a stopped
//! process makes no looks, so one that was stopped and goes on is not taken for one that hangs. Any thread
//! may look at any time; one thread runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumlin::{Env, Result};
use drumlin_base::sync::Mutex;

/// Looks without a step after which a run hangs. One operation may compact everything under a rate
/// limit on a busy machine, so this is far above the time that any takes.
const STILL_MAX: u32 = 180;
/// Looks that one list under one set may take.
const LOOKS_MAX: u32 = 900;
/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// How far a run is.
#[derive(Debug, Default)]
pub struct Progress {
    /// Lists begun, each under each set.
    begun: AtomicU64,
    /// Operations begun, over all.
    steps: AtomicU64,
    /// The seed and the set of the list that runs.
    place: Mutex<(u64, String)>,
}

impl Progress {
    /// The lists that follow come from `seed`.
    pub fn set_seed(&self, seed: u64) {
        self.place.lock().0 = seed;
    }

    /// The seed and the set of the list that runs.
    pub fn place(&self) -> (u64, String) {
        self.place.lock().clone()
    }

    /// A list under `set` is begun.
    pub(crate) fn begin(&self, set: &str) {
        self.place.lock().1 = set.to_owned();
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// An operation is begun.
    pub(crate) fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}

/// The state of a watch between looks.
#[derive(Debug, Default)]
struct Patience {
    begun: u64,
    steps: u64,
    looks: u32,
    still: u32,
}

impl Patience {
    /// Looks once, and returns the failure, if there is one.
    fn look(&mut self, begun: u64, steps: u64) -> Option<&'static str> {
        if begun != self.begun {
            *self = Self {
                begun,
                steps,
                ..Self::default()
            };
            return None;
        }
        self.looks += 1;
        self.still = match steps == self.steps {
            true => self.still + 1,
            false => 0,
        };
        self.steps = steps;
        match (self.still, self.looks) {
            (STILL_MAX.., _) => Some("one operation does not end"),
            (_, LOOKS_MAX..) => Some("the list does not end"),
            _ => None,
        }
    }
}

/// Looks at `progress` from a thread of its own for as long as the process lives, and calls `stuck` once,
/// with the reason, when it does not go on.
///
/// # Errors
/// `Io` when no thread can be started.
pub fn watch(
    progress: Arc<Progress>,
    stuck: impl FnOnce(&Progress, &str) + Send + 'static,
) -> Result<()> {
    let env = Env::system();
    let clock = Arc::clone(&env.clock);
    let body = move || {
        let mut patience = Patience::default();
        loop {
            clock.sleep(LOOK);
            let begun = progress.begun.load(Ordering::Relaxed);
            if let Some(why) = patience.look(begun, progress.steps.load(Ordering::Relaxed)) {
                return stuck(&progress, why);
            }
        }
    };
    // It ends with the process.
    drop(env.spawner.spawn("watch", Box::new(body))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_goes_on_is_left_alone_until_its_list_takes_too_long() {
        let mut patience = Patience::default();
        assert_eq!(patience.look(1, 1), None);
        for step in 2..=u64::from(LOOKS_MAX) {
            assert_eq!(patience.look(1, step), None);
        }
        assert_eq!(patience.look(1, 5000), Some("the list does not end"));
        // The next one has the full time again.
        assert_eq!(patience.look(2, 5001), None);
        assert_eq!(patience.look(2, 5002), None);
    }

    #[test]
    fn an_operation_that_does_not_end_is_told_before_the_list() {
        let mut patience = Patience::default();
        let looks = (0..).map(|_| patience.look(7, 3));
        let (calm, why) = looks.enumerate().find(|(_, why)| why.is_some()).unwrap();
        assert_eq!(calm, STILL_MAX as usize);
        assert_eq!(why, Some("one operation does not end"));
    }
}
