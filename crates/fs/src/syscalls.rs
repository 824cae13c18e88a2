//! The system calls that the standard library does not offer, each as one safe function.
//!
//! For Linux. Another system needs another file with the same functions and nothing else.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::path::Path;

use memmap2::{MmapMut, MmapOptions};
use rustix::fs::FallocateFlags;

/// Repeats `call` while a signal interrupts it.
pub(crate) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Has the C library call `hook` in every child that is forked from now on.
pub(crate) fn call_in_forked_children(hook: extern "C" fn()) {
    // SAFETY: the hook is a function of this program, does nothing but count, and is never removed.
    let status = unsafe { libc::pthread_atfork(None, None, Some(hook)) };
    // It fails for want of a few bytes of memory only.
    debug_assert_eq!(status, 0, "the hook is kept");
}

/// See [`crate::process::in_forked_child`].
pub(crate) fn in_forked_child(body: impl FnOnce() -> u8) -> io::Result<i32> {
    // SAFETY: the child runs `body` and ends without returning to the caller's code.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        // SAFETY: ends the child at once; nothing of the parent's is flushed or removed twice.
        unsafe { libc::_exit(outcome.map_or(101, i32::from)) };
    }
    let mut status = 0;
    loop {
        // SAFETY: the status is written to a local variable.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(match libc::WIFSIGNALED(status) {
        true => 128 + libc::WTERMSIG(status),
        false => libc::WEXITSTATUS(status),
    })
}

/// Reserves the blocks of `offset..offset + len`; the file grows to that end if `extend`.
///
/// Bytes in the range are kept. Unsupported by some file systems (`EOPNOTSUPP`).
pub(crate) fn fallocate(file: &File, offset: u64, len: u64, extend: bool) -> io::Result<()> {
    let flags = if extend {
        FallocateFlags::empty()
    } else {
        FallocateFlags::KEEP_SIZE
    };
    retry(|| Ok(rustix::fs::fallocate(file, flags, offset, len)?))
}

/// Starts writing the dirty pages of a range, without waiting and without any promise.
pub(crate) fn start_writeback(file: &File, offset: u64, len: u64) -> io::Result<()> {
    sync_range(file, offset, len, libc::SYNC_FILE_RANGE_WRITE)
}

/// Waits until the pages of a range that are on their way to the disk have left. No promise: the
/// file's size, its blocks and the disk's own cache are not looked after.
pub(crate) fn wait_for_writeback(file: &File, offset: u64, len: u64) -> io::Result<()> {
    sync_range(file, offset, len, libc::SYNC_FILE_RANGE_WAIT_BEFORE)
}

fn sync_range(file: &File, offset: u64, len: u64, flags: libc::c_uint) -> io::Result<()> {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    retry(|| {
        // SAFETY: the descriptor is open as long as `file` lives; the call touches no memory of
        // ours.
        let status = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) };
        check(status)
    })
}

/// Makes the pages of a mapping writable at once, so that stores to them do not fault. A kernel
/// that cannot changes nothing but speed.
pub(crate) fn populate(memory: &MmapMut) {
    let _ = memory.advise(memmap2::Advice::PopulateWrite);
}

/// Maps `len` bytes of `file` from `offset` (a multiple of the page size), shared and writable.
///
/// Requires: the range is inside the file, its blocks are reserved, and nothing cuts the file below
/// the range's end while the mapping lives: a store there would raise SIGBUS.
pub(crate) fn map_shared(file: &File, offset: u64, len: usize) -> io::Result<MmapMut> {
    let mut options = MmapOptions::new();
    options.offset(offset).len(len);
    // SAFETY: the callers write the mapping through `&mut` alone, keep the file at least as long as
    // the mapping, and never read bytes that another process may change.
    unsafe { options.map_mut(file) }
}

/// Asks the kernel to read a range ahead; failure changes nothing but speed.
pub(crate) fn will_need(file: impl AsFd, offset: u64, len: u64) {
    let len = std::num::NonZeroU64::new(len);
    let _ = rustix::fs::fadvise(file, offset, len, rustix::fs::Advice::WillNeed);
}

/// Switches reads and writes of `file` to go past the page cache, or back. `EINVAL` where its file
/// system cannot.
pub(crate) fn set_direct(file: &File, direct: bool) -> io::Result<()> {
    let mut flags = rustix::fs::fcntl_getfl(file)?;
    flags.set(rustix::fs::OFlags::DIRECT, direct);
    Ok(rustix::fs::fcntl_setfl(file, flags)?)
}

/// Whether somebody else, here or in another process, may have the file open or mapped. A lease, given back
/// at once, tells. True where no lease can be had: for another user's file, or on a network file system.
pub(crate) fn is_open_elsewhere(file: &File) -> bool {
    /// Chooses the signal sent when somebody opens a leased file. Linux.
    const F_SETSIG: libc::c_int = 10;
    let control = |command: libc::c_int, argument: libc::c_int| {
        // SAFETY: the descriptor is open, and these commands take a number.
        match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // One that is ignored by default: that of leases would end the process.
    if control(F_SETSIG, libc::SIGURG).is_err() {
        return true;
    }
    match control(libc::F_SETLEASE, libc::F_WRLCK) {
        // A lease that is kept would hold up the next open of the file.
        Ok(()) => control(libc::F_SETLEASE, libc::F_UNLCK).is_err(),
        Err(_) => true,
    }
}

/// Closes the descriptor and returns the error that the file system reports.
pub(crate) fn close(file: File) -> io::Result<()> {
    let descriptor = OwnedFd::from(file).into_raw_fd();
    // SAFETY: the descriptor was owned by `file` and nobody else, and is not used again.
    let status = unsafe { libc::close(descriptor) };
    match check(status) {
        // Linux has freed the descriptor by then: closing again could close a stranger's.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        result => result,
    }
}

/// Bytes an unprivileged process may still write on the file system of `path`.
pub(crate) fn free_space(path: &Path) -> io::Result<u64> {
    let facts = rustix::fs::statvfs(path)?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// Whether stores to a mapping of reserved blocks cannot run out of space on this file's file
/// system: those that write reserved blocks in place.
pub(crate) fn reserved_blocks_are_kept(file: &File) -> bool {
    const EXT: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    const TMPFS: u64 = 0x0102_1994;
    const OVERLAY: u64 = 0x794c_7630;
    // Copy-on-write and log-structured ones (btrfs, ZFS, F2FS) may need new blocks for a rewrite,
    // network ones learn of a full disk late: they get write calls, whose failure is an error.
    let Ok(facts) = rustix::fs::fstatfs(file) else {
        return false;
    };
    // The field's width differs between architectures.
    u64::try_from(facts.f_type).is_ok_and(|kind| [EXT, XFS, TMPFS, OVERLAY].contains(&kind))
}

/// Whether the file's bytes are in memory and nowhere else, so that no access to them can fail.
pub(crate) fn lies_in_memory(file: &File) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    rustix::fs::fstatfs(file).is_ok_and(|facts| {
        u64::try_from(facts.f_type).is_ok_and(|kind| [TMPFS, RAMFS].contains(&kind))
    })
}

/// Whether the page cache holds `len` bytes from `offset`.
///
/// A byte of each page is read without waiting. For a page that is not there such a read has the kernel make room for it
/// and begin to read it ahead, which costs more than the answer is worth: so the kernel is asked first how many are there.
pub(crate) fn is_in_page_cache(file: &File, offset: u64, len: u64) -> bool {
    let Some(last) = offset.checked_add(len).and_then(|end| end.checked_sub(1)) else {
        return false;
    };
    let page_bytes = rustix::param::page_size() as u64;
    let pages = offset / page_bytes..=last / page_bytes;
    let wanted = pages.end() - pages.start() + 1;
    if cached_pages(file, offset, len).is_some_and(|cached| cached < wanted) {
        return false;
    }
    let firsts = pages.skip(1).map(|page| page * page_bytes);
    // The last byte is asked for too: it tells whether the file is long enough.
    [offset, last].into_iter().chain(firsts).all(|at| {
        let mut byte = [0];
        let mut buffers = [io::IoSliceMut::new(&mut byte)];
        let flags = rustix::io::ReadWriteFlags::NOWAIT;
        // Any error is a no: it would wait (EAGAIN), or the file system cannot tell (EOPNOTSUPP).
        rustix::io::preadv2(file, &mut buffers, at, flags).is_ok_and(|read| read == 1)
    })
}

/// How many pages of a range are in the page cache, those that are still being read included. `None` where the kernel
/// cannot tell: before Linux 6.5, under seccomp filters that are older, for files of huge pages.
fn cached_pages(file: &File, offset: u64, len: u64) -> Option<u64> {
    /// The number of `cachestat(2)`, the same on every architecture but Alpha.
    const SYS_CACHESTAT: libc::c_long = 451;
    let range = [offset, len];
    // Pages in the cache, dirty ones, those on their way to the disk, evicted ones, and recently evicted ones.
    let mut counts = [0_u64; 5];
    let no_flags: libc::c_uint = 0;
    // SAFETY: the descriptor is open; the kernel reads two numbers of 64 bits and writes five, as many as there are.
    let status = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            counts.as_mut_ptr(),
            no_flags,
        )
    };
    let [cached, ..] = counts;
    (status == 0).then_some(cached)
}

/// Takes (or gives back) the write lock on the whole file, without waiting. The lock belongs to
/// the open file, not to the process, and excludes classic record locks of other processes too.
pub(crate) fn set_lock(file: &File, locked: bool) -> io::Result<()> {
    let kind = if locked { libc::F_WRLCK } else { libc::F_UNLCK };
    let mut request = whole_file(kind);
    retry(|| {
        // SAFETY: the descriptor is open and `request` is a valid `flock` for the call.
        let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut request) };
        check(status)
    })
}

/// The process whose classic record lock stands in the way, if the kernel names one.
pub(crate) fn lock_holder(file: &File) -> Option<u32> {
    let mut request = whole_file(libc::F_WRLCK);
    // SAFETY: the descriptor is open and `request` is a valid `flock` for the call.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut request) };
    let held = status == 0 && request.l_type != libc::F_UNLCK as libc::c_short;
    // A lock that belongs to an open file has no process: the kernel says -1.
    u32::try_from(request.l_pid)
        .ok()
        .filter(|&pid| held && pid != 0)
}

fn whole_file(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn check(status: libc::c_int) -> io::Result<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
