//! The usual locks, except that a task of a simulation waits for them in the simulator.
//!
//! Invariant: a task that is not running holds a lock's standard mutex only while it holds the simulated lock,
//! so a task that finds it taken parks, and is woken when the guard is dropped.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

use super::tasks::current;

pub use std::sync::atomic;

/// A mutex. A panic while it is held does not make it unusable: every holder in this code base
/// leaves its data consistent between statements.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

/// Held while a [`Mutex`] is locked.
pub struct MutexGuard<'a, T> {
    lock: &'a Mutex<T>,
    /// Empty only while a wait or the drop has released the lock.
    held: Option<std::sync::MutexGuard<'a, T>>,
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T> Mutex<T> {
    /// A mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Locks unless somebody else holds the lock.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let held = match self.0.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard {
            lock: self,
            held: Some(held),
        })
    }

    /// Locks, waiting as long as it takes.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = match current() {
            None => self.0.lock().unwrap_or_else(PoisonError::into_inner),
            Some(tasks) => {
                tasks.step();
                loop {
                    match self.0.try_lock() {
                        Ok(held) => break held,
                        Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                        Err(TryLockError::WouldBlock) => tasks.park(self.place(), None),
                    }
                }
            }
        };
        MutexGuard {
            lock: self,
            held: Some(held),
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("given up only by its owner")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("given up only by its owner")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.held.take().is_some()
            && let Some(tasks) = current()
        {
            tasks.wake(self.lock.place(), true);
        }
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl Condvar {
    /// A condition variable nobody waits on.
    pub const fn new() -> Self {
        Self(std::sync::Condvar::new())
    }

    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Unlocks, waits to be notified, locks again. May wake without a notification.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.pause(guard, None)
    }

    /// As [`Condvar::wait`], for at most `timeout`.
    pub fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> MutexGuard<'a, T> {
        self.pause(guard, Some(timeout))
    }

    fn pause<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Option<Duration>,
    ) -> MutexGuard<'a, T> {
        let lock = guard.lock;
        if let Some(tasks) = current() {
            drop(guard);
            tasks.park(self.place(), timeout);
            return lock.lock();
        }
        let held = guard.held.take().expect("given up only by its owner");
        let held = match timeout {
            None => self.0.wait(held).unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => match self.0.wait_timeout(held, timeout) {
                Ok((held, _)) => held,
                Err(poisoned) => poisoned.into_inner().0,
            },
        };
        MutexGuard {
            lock,
            held: Some(held),
        }
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
        if let Some(tasks) = current() {
            tasks.wake(self.place(), false);
        }
    }

    /// Wakes every waiter.
    pub fn notify_all(&self) {
        self.0.notify_all();
        if let Some(tasks) = current() {
            tasks.wake(self.place(), true);
        }
    }
}
