//! A whole file mapped for reading.
//!
//! Invariant: the range stays mapped, at one address, until the mapping is dropped.
//!
//! Thread safety: immutable; the bytes are read, and the mapping dropped, by any thread.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use drumlin_base::bytes::{HUGE_PAGE_BYTES, StableBytes};

/// `madvise`: back the range with huge pages now, under any setting of the system. Linux 6.1.
const MADV_COLLAPSE: libc::c_int = 25;

/// A file's bytes, as the system keeps them.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is mapped for reading and belongs to no thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `size` bytes of `file`, on huge pages where the system can.
    ///
    /// Requires: the file has that many bytes and keeps them, unchanged, while the mapping lives.
    /// Reading bytes that were cut off raises a signal.
    pub(crate) fn of(file: &File, size: u64) -> io::Result<Self> {
        let len = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let room = len
            .checked_add(HUGE_PAGE_BYTES) // room for an aligned range
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let (none, private) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: asks for address space anywhere; nothing that exists is touched.
        let found = unsafe { libc::mmap(std::ptr::null_mut(), room, none, private, -1, 0) };
        if found == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let found = found.cast::<u8>();
        let before = found.align_offset(HUGE_PAGE_BYTES);
        let aligned = found.wrapping_add(before);
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let fd = file.as_raw_fd();
        // SAFETY: replaces a part of the reservation above, which is ours alone; the descriptor is
        // open for reading.
        let start = unsafe { libc::mmap(aligned.cast(), len, libc::PROT_READ, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            unmap(found, room);
            return Err(error);
        }
        assert!(
            start == aligned.cast(),
            "a fixed mapping is where it was asked for"
        );
        let mapped = len.next_multiple_of(page_bytes());
        assert!(
            before + mapped <= room,
            "the mapping is inside the reserved address space"
        );
        unmap(found, before);
        unmap(aligned.wrapping_add(mapped), room - before - mapped);
        let start = NonNull::new(aligned).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self { start, len };
        mapping.advise();
        Ok(mapping)
    }

    /// Random reads miss fewer address translations on huge pages, and touching all pages at once
    /// is cheaper than a fault for each. All are hints: a system that refuses changes only speed.
    fn advise(&self) {
        for advice in [libc::MADV_HUGEPAGE, libc::MADV_POPULATE_READ, MADV_COLLAPSE] {
            // SAFETY: the range is mapped and ours; no advice of these changes its content.
            unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, advice) };
        }
    }
}

fn page_bytes() -> usize {
    // SAFETY: asks for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Gives back a range of mappings.
///
/// Requires: whole pages that are mapped, ours, and referred to by nothing any more.
fn unmap(start: *mut u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller gives the range up.
        unsafe { libc::munmap(start.cast(), bytes) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.start.as_ptr(), self.len.next_multiple_of(page_bytes()));
    }
}

// SAFETY: the range stays mapped until the drop; `Mapping::of` requires that nobody changes the
// file.
unsafe impl StableBytes for Mapping {
    fn stable_bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes are mapped there for reading.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    fn own_bytes(&self) -> usize {
        0 // The file system counts them.
    }
}
