//! Locks and atomics: the usual ones, or loom's when its model checker explores schedules.
//!
//! Code that is modelled takes its primitives from here, so that the model runs the shipping code. With the
//! feature `sim`, threads that are tasks of a simulation ([`tasks`]) wait in its order; all other threads
//! are unaffected.

#[cfg(all(feature = "sim", not(loom)))]
mod simulated;
#[cfg(all(feature = "sim", not(loom)))]
pub mod tasks;

#[cfg(all(not(feature = "sim"), not(loom)))]
mod real {
    pub use std::sync::atomic;
    use std::sync::{PoisonError, TryLockError};

    /// A mutex. A panic while it is held does not make it unusable: every holder in this code base
    /// leaves its data consistent between statements.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(std::sync::Mutex<T>);

    /// Held while a [`Mutex`] is locked.
    pub type MutexGuard<'a, T> = std::sync::MutexGuard<'a, T>;

    impl<T> Mutex<T> {
        /// A mutex around `value`.
        pub const fn new(value: T) -> Self {
            Self(std::sync::Mutex::new(value))
        }

        /// Locks, waiting as long as it takes.
        #[inline]
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Locks unless somebody else holds the lock.
        #[inline]
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
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

        /// Unlocks, waits to be notified, locks again. May wake without a notification.
        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
        }

        /// As [`Condvar::wait`], for at most `timeout`.
        pub fn wait_for<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            timeout: std::time::Duration,
        ) -> MutexGuard<'a, T> {
            match self.0.wait_timeout(guard, timeout) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            }
        }

        /// Wakes one waiter.
        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        /// Wakes every waiter.
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}

#[cfg(loom)]
mod modelled {
    pub use loom::sync::atomic;

    /// A mutex.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    /// Held while a [`Mutex`] is locked.
    pub type MutexGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

    impl<T> Mutex<T> {
        /// A mutex around `value`.
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        /// Locks.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0
                .lock()
                .expect("a model does not panic while it holds a lock")
        }

        /// Locks unless somebody else holds the lock.
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }

    /// A condition variable for [`Mutex`].
    #[derive(Debug, Default)]
    pub struct Condvar(loom::sync::Condvar);

    impl Condvar {
        /// A condition variable nobody waits on.
        pub fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        /// Unlocks, waits to be notified, locks again.
        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0
                .wait(guard)
                .expect("a model does not panic while it holds a lock")
        }

        /// As [`Condvar::wait`]: models have no time.
        pub fn wait_for<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            _timeout: std::time::Duration,
        ) -> MutexGuard<'a, T> {
            self.wait(guard)
        }

        /// Wakes one waiter.
        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        /// Wakes every waiter.
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}

#[cfg(loom)]
pub use modelled::{Condvar, Mutex, MutexGuard, atomic};
#[cfg(all(not(feature = "sim"), not(loom)))]
pub use real::{Condvar, Mutex, MutexGuard, atomic};
#[cfg(all(feature = "sim", not(loom)))]
pub use simulated::{Condvar, Mutex, MutexGuard, atomic};

/// Where a simulation may let another thread run; nothing in a usual build.
#[inline(always)]
pub fn step() {
    #[cfg(all(feature = "sim", not(loom)))]
    tasks::step();
}
