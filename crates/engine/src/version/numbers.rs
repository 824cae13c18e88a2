//! The one counter that all numbered files draw from, and which of its numbers are in use by jobs
//! whose files no version names yet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Hands out file numbers. Shared by every thread; taking a number is one atomic step.
#[derive(Debug)]
pub struct FileNumbers {
    next: AtomicU64,
    /// For each job under way, the first number it may have taken; several may share one.
    jobs: Mutex<BTreeMap<u64, usize>>,
}

impl FileNumbers {
    /// A counter whose first number is `next`.
    pub fn new(next: u64) -> Arc<Self> {
        Arc::new(Self {
            next: AtomicU64::new(next),
            jobs: Mutex::new(BTreeMap::new()),
        })
    }

    /// A number nobody else has.
    pub fn take(&self) -> u64 {
        // Relaxed: only the value matters; nothing else is published with it.
        if drumlin_base::bug!("file-number-reused") && self.next().is_multiple_of(8) {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            return next - 1;
        }
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The number the next [`FileNumbers::take`] gives.
    pub fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Never gives `number` or one below it from now on.
    pub fn mark_used(&self, number: u64) {
        self.next
            .fetch_max(number.saturating_add(1), Ordering::Relaxed);
    }

    /// Protects every file whose number is taken while the guard lives from being found obsolete.
    pub fn begin_job(self: &Arc<Self>) -> JobFiles {
        let mut jobs = self.jobs.lock();
        // Read under the lock: `oldest_pending` must not miss a job that takes lower numbers.
        let first = self.next();
        *jobs.entry(first).or_insert(0) += 1;
        JobFiles {
            numbers: Arc::clone(self),
            first,
        }
    }

    /// Whether some job is under way.
    pub fn has_pending(&self) -> bool {
        !self.jobs.lock().is_empty()
    }

    /// No job under way has taken a number below this one.
    pub fn oldest_pending(&self) -> u64 {
        let jobs = self.jobs.lock();
        let oldest = jobs.first_key_value().map(|(&first, _)| first);
        oldest.unwrap_or_else(|| self.next())
    }
}

/// Held by a job from before it creates files until a version names them (or it gave them up).
#[derive(Debug)]
pub struct JobFiles {
    numbers: Arc<FileNumbers>,
    first: u64,
}

impl Drop for JobFiles {
    fn drop(&mut self) {
        let mut jobs = self.numbers.jobs.lock();
        if let Some(count) = jobs.get_mut(&self.first) {
            *count -= 1;
            if *count == 0 {
                jobs.remove(&self.first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_job_are_pending_until_the_last_such_job_ends() {
        let numbers = FileNumbers::new(5);
        assert_eq!(numbers.oldest_pending(), 5);
        let first = numbers.begin_job();
        let twin = numbers.begin_job();
        assert_eq!(numbers.take(), 5);
        let second = numbers.begin_job();
        assert_eq!(numbers.oldest_pending(), 5);
        drop(first);
        assert_eq!(numbers.oldest_pending(), 5);
        drop(twin);
        assert_eq!(numbers.oldest_pending(), 6);
        drop(second);
        numbers.mark_used(41);
        numbers.mark_used(7);
        assert_eq!((numbers.take(), numbers.oldest_pending()), (42, 43));
    }
}
