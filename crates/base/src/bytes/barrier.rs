//! A fence with a cheap side and an expensive one.
//!
//! Two threads that each write one place and then read the other's must both fence in between, or both may
//! read the old values. If one side runs millions of times a second and the other seldom, the seldom one can
//! pay for both: Linux's `membarrier` makes every processor that runs a thread of this process pass a full
//! fence, so the frequent side only needs to keep the compiler from moving its accesses (Goldblat and
//! Desnoyers, *membarrier*, Linux 4.14; folly's asymmetric fences are the same idea). Measured on two cores:
//! 0.07 µs if no other thread runs, 3.2 µs if one does; a full fence on the frequent side costs 5 ns and
//! holds up the loads behind it.
//!
//! Where the call is missing or forbidden, both sides pass an ordinary fence. A process that forbids the
//! call after it was found to work is aborted by the next call of the seldom side.
//!
//! Thread safety: any thread calls either side.

#[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
use crate::sync::atomic::{Ordering, fence};

/// The frequent side. Either a thread that passes [`heavy`] later sees the stores before this call, or the
/// loads after this call see the stores that thread made before.
#[inline(always)]
pub(super) fn light() {
    #[cfg(all(target_os = "linux", not(miri), not(loom)))]
    membarrier::light();
    #[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
    fence(Ordering::SeqCst);
}

/// The seldom side, which pays for both.
pub(super) fn heavy() {
    #[cfg(all(target_os = "linux", not(miri), not(loom)))]
    membarrier::heavy();
    #[cfg(not(all(target_os = "linux", not(miri), not(loom))))]
    fence(Ordering::SeqCst);
}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
mod membarrier {
    use std::sync::Once;
    use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

    /// Whether the kernel does the fences of the frequent side. Set once and never cleared.
    static BY_KERNEL: AtomicBool = AtomicBool::new(false);
    static PROBED: Once = Once::new();

    #[inline(always)]
    pub(super) fn light() {
        // Relaxed: a thread that still sees false fences in vain, nothing worse.
        if BY_KERNEL.load(Ordering::Relaxed) {
            compiler_fence(Ordering::SeqCst);
        } else {
            light_slowly();
        }
    }

    #[cold]
    #[inline(never)]
    fn light_slowly() {
        PROBED.call_once(probe);
        fence(Ordering::SeqCst);
    }

    pub(super) fn heavy() {
        PROBED.call_once(probe);
        fence(Ordering::SeqCst);
        // Relaxed: set before `call_once` returned, and never changed after that.
        if BY_KERNEL.load(Ordering::Relaxed) {
            let done = command(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
            if done != 0 {
                // The call was forbidden after registration, by a sandbox perhaps. Readers rely on
                // it, so going on would free values in use, and so would unwinding.
                std::process::abort();
            }
        }
    }

    fn probe() {
        let known = command(libc::MEMBARRIER_CMD_QUERY);
        let needed = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED
            | libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
        let is_there =
            known > 0 && known & libc::c_long::from(needed) == libc::c_long::from(needed);
        if is_there && command(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 {
            BY_KERNEL.store(true, Ordering::Relaxed);
        }
    }

    fn command(command: libc::c_int) -> libc::c_long {
        // SAFETY: the call takes two numbers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
    }
}
