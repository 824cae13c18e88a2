//! Huge pages of our own: mapped when needed, given back when dropped.
//!
//! A mapping and not the allocator's memory, because it goes back to the system at once: an
//! allocator may keep freed memory, and the memory budget would not see that.
//!
//! Thread safety: a page may be dropped by any thread; its owner decides which threads touch its
//! bytes.

use std::ptr::NonNull;

/// Bytes of a huge page, and its alignment.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// [`HUGE_PAGE_BYTES`] of memory, zero when it was mapped, that the kernel is asked to back with one page:
/// fewer page faults while it fills, and one address translation where there would be 512, which
/// random reads otherwise miss.
#[derive(Debug)]
pub struct HugePage {
    base: NonNull<u8>,
}

// SAFETY: the memory is plain bytes and belongs to no thread; the struct gives no access to it but
// its address.
unsafe impl Send for HugePage {}
// SAFETY: as above.
unsafe impl Sync for HugePage {}

impl HugePage {
    /// A new page; `None` when the system has no memory or address space for it.
    pub fn map() -> Option<Self> {
        map().map(|base| Self { base })
    }

    /// The address of its first byte, valid until the page is dropped.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for HugePage {
    fn drop(&mut self) {
        unmap(self.base);
    }
}

/// A run of pages of any length, zero at first: huge ones for a run of at least one huge page.
#[derive(Debug)]
pub(super) struct Pages {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is plain bytes that belong to the owner of this.
unsafe impl Send for Pages {}
// SAFETY: shared access gives the bytes for reading alone.
unsafe impl Sync for Pages {}

impl Pages {
    /// Memory for `len` bytes; `None` when the system has none.
    pub(super) fn map(len: usize) -> Option<Self> {
        let base = map_run(mapped_bytes(len)?)?;
        Some(Self { base, len })
    }

    /// The bytes, to be written.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped, initialized (zero) and as long as that; `&mut self` makes this the only
        // reference.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

// SAFETY: the mapping stays where it is until it is dropped; nobody gets at its bytes mutably but
// through `&mut`, which sharing excludes.
unsafe impl super::StableBytes for Pages {
    fn stable_bytes(&self) -> &[u8] {
        // SAFETY: as in `bytes_mut`, and nobody writes while it is shared.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    fn own_bytes(&self) -> usize {
        mapped_bytes(self.len).unwrap_or(self.len)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if let Some(bytes) = mapped_bytes(self.len) {
            unmap_run(self.base, bytes);
        }
    }
}

/// The size of the mapping for `len` bytes: whole pages, huge ones if it fills at least one.
fn mapped_bytes(len: usize) -> Option<usize> {
    const PAGE_BYTES: usize = 4096;
    let page = match len {
        HUGE_PAGE_BYTES.. => HUGE_PAGE_BYTES,
        _ => PAGE_BYTES,
    };
    len.max(1).checked_next_multiple_of(page)
}

#[cfg(all(target_os = "linux", not(miri)))]
fn map() -> Option<NonNull<u8>> {
    map_run(HUGE_PAGE_BYTES)
}

/// Maps `bytes` of zeros, aligned to a huge page.
#[cfg(all(target_os = "linux", not(miri)))]
fn map_run(bytes: usize) -> Option<NonNull<u8>> {
    let wanted = bytes.checked_add(HUGE_PAGE_BYTES)?; // room for an aligned run
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: asks for a new mapping anywhere; nothing that exists is touched.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), wanted, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = start.cast::<u8>();
    let before = start.align_offset(HUGE_PAGE_BYTES);
    let base = start.wrapping_add(before);
    unmap_range(start, before);
    let end = base.wrapping_add(bytes);
    unmap_range(end, wanted - before - bytes);
    if bytes >= HUGE_PAGE_BYTES {
        // SAFETY: the range is mapped and ours; the advice changes no content. It is a hint, so a
        // kernel that refuses it is no error.
        unsafe { libc::madvise(base.cast(), bytes, libc::MADV_HUGEPAGE) };
    }
    NonNull::new(base)
}

#[cfg(all(target_os = "linux", not(miri)))]
fn unmap(base: NonNull<u8>) {
    unmap_run(base, HUGE_PAGE_BYTES);
}

#[cfg(all(target_os = "linux", not(miri)))]
fn unmap_run(base: NonNull<u8>, bytes: usize) {
    unmap_range(base.as_ptr(), bytes);
}

/// Gives back a part of a mapping.
///
/// Requires: the range is mapped, whole pages, and nothing refers to it any more.
#[cfg(all(target_os = "linux", not(miri)))]
fn unmap_range(start: *mut u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller gives up a range of a private mapping that nothing refers to.
        unsafe { libc::munmap(start.cast(), bytes) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn map() -> Option<NonNull<u8>> {
    map_run(HUGE_PAGE_BYTES)
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn unmap(base: NonNull<u8>) {
    unmap_run(base, HUGE_PAGE_BYTES);
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn map_run(bytes: usize) -> Option<NonNull<u8>> {
    let layout = std::alloc::Layout::from_size_align(bytes, HUGE_PAGE_BYTES).ok()?;
    // SAFETY: the layout's size is not zero: it is at least one page.
    NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn unmap_run(base: NonNull<u8>, bytes: usize) {
    if let Ok(layout) = std::alloc::Layout::from_size_align(bytes, HUGE_PAGE_BYTES) {
        // SAFETY: allocated in `map_run` with this layout, and dropped once.
        unsafe { std::alloc::dealloc(base.as_ptr(), layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_aligned_zero_and_writable() {
        let pages: Vec<HugePage> = (0..3).map(|_| HugePage::map().unwrap()).collect();
        for page in &pages {
            assert!(
                page.base()
                    .as_ptr()
                    .cast::<[u8; HUGE_PAGE_BYTES]>()
                    .is_aligned()
            );
            assert_eq!(page.base().as_ptr() as usize % HUGE_PAGE_BYTES, 0);
            // SAFETY: the page is this test's alone, mapped and initialized.
            let bytes =
                unsafe { std::slice::from_raw_parts_mut(page.base().as_ptr(), HUGE_PAGE_BYTES) };
            assert!(bytes.first() == Some(&0) && bytes.last() == Some(&0));
            bytes[HUGE_PAGE_BYTES - 1] = 7;
        }
    }
}
