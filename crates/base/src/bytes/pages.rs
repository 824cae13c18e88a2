//! Huge pages of our own: mapped when needed, given back when dropped.
//!
//! A mapping and not the allocator's memory, because it goes back to the system at once: an
//! allocator may keep what is freed, and the memory budget would not see that.
//!
//! Thread safety: a page may be dropped by any thread; who may touch its bytes is its owner's to
//! say.

use std::ptr::NonNull;

/// Bytes of a huge page, and what it is aligned to.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// [`HUGE_PAGE_BYTES`] of memory, zero at first, that the kernel is asked to back with one page:
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

    /// Where it begins. Valid until the page is dropped.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for HugePage {
    fn drop(&mut self) {
        unmap(self.base);
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn map() -> Option<NonNull<u8>> {
    let wanted = 2 * HUGE_PAGE_BYTES; // So that an aligned page lies inside.
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
    let end = base.wrapping_add(HUGE_PAGE_BYTES);
    unmap_range(end, wanted - before - HUGE_PAGE_BYTES);
    // SAFETY: the range is mapped and ours; the advice changes no content. It is a hint, so a
    // kernel that refuses it is no error.
    unsafe { libc::madvise(base.cast(), HUGE_PAGE_BYTES, libc::MADV_HUGEPAGE) };
    NonNull::new(base)
}

#[cfg(all(target_os = "linux", not(miri)))]
fn unmap(base: NonNull<u8>) {
    unmap_range(base.as_ptr(), HUGE_PAGE_BYTES);
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
const LAYOUT: std::alloc::Layout = {
    match std::alloc::Layout::from_size_align(HUGE_PAGE_BYTES, HUGE_PAGE_BYTES) {
        Ok(layout) => layout,
        Err(_) => panic!("a power of two, far below isize::MAX"),
    }
};

#[cfg(not(all(target_os = "linux", not(miri))))]
fn map() -> Option<NonNull<u8>> {
    // SAFETY: the layout's size is not zero.
    NonNull::new(unsafe { std::alloc::alloc_zeroed(LAYOUT) })
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn unmap(base: NonNull<u8>) {
    // SAFETY: allocated in `map` with this layout, and dropped once.
    unsafe { std::alloc::dealloc(base.as_ptr(), LAYOUT) }
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
