//! Goal: a protected value lives, an unprotected one is dropped at once, and every value is dropped exactly
//! once. Method: handles that count their drops, alone and under threads that load and swap at random; the
//! twin holds the same in a mutex. The interleavings are explored by `tests/loom.rs`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::bytes::{HazardPtr, RetireBatch};
use crate::rng::Rng;

/// Counts its drops, and reports a read after one.
struct Counted {
    number: u64,
    copy: u64,
    drops: Arc<AtomicUsize>,
}

impl Counted {
    fn new(number: u64, drops: &Arc<AtomicUsize>) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            number,
            copy: !number,
            drops: Arc::clone(drops),
        }))
    }

    fn check(&self) -> u64 {
        assert_eq!(self.copy, !self.number, "read after it was dropped");
        self.number
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.check();
        (self.number, self.copy) = (0, 0);
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

fn drops() -> Arc<AtomicUsize> {
    Arc::default()
}

#[test]
fn a_value_without_a_guard_is_dropped_when_it_is_taken_out() {
    let dropped = drops();
    let pointer = HazardPtr::new(Counted::new(1, &dropped));
    pointer.store(Counted::new(2, &dropped));
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    let retired = pointer.swap(None).expect("it was full");
    assert_eq!((retired.check(), pointer.is_empty()), (2, true));
    assert!(pointer.load().is_none() && pointer.swap(None).is_none());
    pointer.store(Some(Arc::clone(&retired)));
    drop(retired);
    assert_eq!(pointer.load_full().map(|handle| handle.check()), Some(2));
    drop(pointer);
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
}

#[test]
fn the_last_guard_drops_what_was_retired_meanwhile() {
    let dropped = drops();
    let pointer = HazardPtr::new(Counted::new(1, &dropped));
    let other = HazardPtr::new(Counted::new(9, &dropped));
    let (first, second) = (pointer.load(), pointer.load());
    pointer.store(None);
    drop(other.load()); // The guard of another pointer drops nothing.
    drop(first);
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    assert_eq!(second.as_ref().map(|guard| guard.check()), Some(1));
    drop(second);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    let own = other.load_full();
    other.store(None);
    drop(other);
    assert_eq!(own.map(|handle| handle.check()), Some(9));
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
}

#[test]
fn a_thread_may_have_any_number_of_guards_and_drop_them_in_any_order() {
    let dropped = drops();
    let pointers: Vec<_> = (0..50)
        .map(|number| HazardPtr::new(Counted::new(number, &dropped)))
        .collect();
    let mut rng = Rng::new(5);
    for _ in 0..20 {
        let mut guards: Vec<_> = pointers.iter().filter_map(HazardPtr::load).collect();
        while !guards.is_empty() {
            let guard = guards.swap_remove(rng.below(guards.len() as u64) as usize);
            guard.check();
        }
    }
    let guards: Vec<_> = pointers.iter().filter_map(HazardPtr::load).collect();
    let mut batch = RetireBatch::default();
    for retired in pointers.iter().filter_map(|pointer| pointer.swap(None)) {
        batch.add(retired);
    }
    drop(batch);
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    drop(guards);
    assert_eq!(dropped.load(Ordering::Relaxed), 50);
}

#[test]
fn threads_that_load_and_swap_see_what_a_mutex_would_show_them() {
    const PLACES: usize = 4;
    let (dropped, made) = (drops(), AtomicUsize::new(PLACES));
    let pointers: [_; PLACES] = std::array::from_fn(|_| HazardPtr::new(Counted::new(1, &dropped)));
    // The twin holds at least the newest number that was put into the place of the same index.
    let newest: [_; PLACES] = std::array::from_fn(|_| Mutex::new(1u64));
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (pointers, newest, dropped, made) = (&pointers, &newest, &dropped, &made);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                for _ in 0..4000 {
                    let at = rng.below(PLACES as u64) as usize;
                    if rng.one_in(4) {
                        let mut newest = newest[at].lock().unwrap();
                        *newest += 1;
                        made.fetch_add(1, Ordering::Relaxed);
                        pointers[at].store(Counted::new(*newest, dropped));
                        continue;
                    }
                    let least = *newest[at].lock().unwrap();
                    let guard = pointers[at].load().unwrap();
                    assert!(guard.check() >= least, "seed {seed}");
                    if rng.one_in(3) {
                        std::thread::yield_now();
                    }
                    let nested = pointers[rng.below(PLACES as u64) as usize].load().unwrap();
                    nested.check();
                    guard.check();
                }
            });
        }
    });
    for pointer in &pointers {
        pointer.store(None);
    }
    let made = made.into_inner();
    assert_eq!(dropped.load(Ordering::Relaxed), made, "each went once");
}

#[cfg(all(target_os = "linux", not(miri)))]
mod without_membarrier {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    /// Set in the child process, the one that aborts.
    const TOLD: &str = "DRUMLIN_TEST_FORBID_MEMBARRIER";

    #[test]
    fn nothing_protected_is_dropped_when_the_fence_is_forbidden_too_late() {
        if std::env::var_os(TOLD).is_some() {
            return retire_without_fence();
        }
        // A process cannot lift a ban of its own, so a child process forbids itself the call.
        let name = "nothing_protected_is_dropped_when_the_fence_is_forbidden_too_late";
        let this = std::env::current_exe().unwrap();
        let ended = Command::new(this).arg(name).env(TOLD, "1").output();
        let ended = ended.unwrap().status;
        // The child succeeds on a kernel that never had the fence.
        let is_aborted = ended.signal() == Some(libc::SIGABRT);
        assert!(is_aborted || ended.success(), "{ended}");
    }

    fn retire_without_fence() {
        let dropped = drops();
        let pointer = HazardPtr::new(Counted::new(1, &dropped));
        pointer.store(Counted::new(2, &dropped)); // Asks for the fence.
        forbid();
        let guard = pointer.load();
        let retired = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pointer.store(None);
        }));
        assert_eq!(dropped.load(Ordering::Relaxed), 1, "{retired:?}");
        drop(guard);
    }

    /// Has the kernel refuse the call to this thread.
    fn forbid() {
        let statement = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        let mut filter = [
            statement(0x20, 0, 0, 0), // The number of the call.
            statement(0x15, 0, 1, libc::SYS_membarrier as u32), // Go on if it is this one.
            statement(0x06, 0, 0, refuse),
            statement(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: takes numbers alone.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        // SAFETY: the program and its statements live until the call returns, which copies them.
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
    }
}
