//! Huge pages that the arenas of one memtable cut their larger chunks from.
//!
//! An allocator maps large blocks for themselves and unmaps them again (that of the GNU C library from 128 KiB on, or less). Either
//! takes the lock of the address space, which page faults of all threads wait for, and the system zeroes each page anew. So
//! where there is a budget, chunks from [`CUT_BYTES_MIN`] on are cut from its spare pages, which go back to it with the
//! memtable: a store that is written steadily maps nothing. The arenas share the pages, and so the last one, which is
//! seldom full. Of others a rest is lost that the next chunk does not fit into.
//!
//! Without a budget, pages are mapped and unmapped, and only for chunks as large as they are.
//!
//! Thread safety: any number of threads cut at once, behind a lock.

use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

use drumlin_base::MemoryBudget;
use drumlin_base::budget::{Charge, MemoryUse};
use drumlin_base::bytes::{HUGE_PAGE_BYTES, HugePage};

use crate::sync::{AtomicUsize, Mutex, Ordering};

/// Smallest chunk that is cut from a page.
pub(crate) const CUT_BYTES_MIN: usize = 128 << 10;
/// Largest one but a whole page: larger ones would waste more than a third of it.
const CUT_BYTES_MAX: usize = HUGE_PAGE_BYTES / 2;
/// Every chunk starts on a cache line.
pub(crate) const CHUNK_ALIGN: usize = 64;

/// The pages of one memtable, and the charge of all its memory.
pub(crate) struct Pool {
    charge: Option<Charge>,
    /// Bytes of pages, cut or not, and of chunks that the allocator has given.
    held: AtomicUsize,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    all: Vec<HugePage>,
    /// The page that is being cut, and how many bytes of it are.
    open: Option<(usize, usize)>,
}

impl Pages {
    /// The next `bytes` of the page that is being cut.
    fn cut_open(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let (index, cut) = self.open?;
        let after = (cut + bytes).next_multiple_of(CHUNK_ALIGN);
        if after > HUGE_PAGE_BYTES {
            return None;
        }
        let keeps = drumlin_base::bug!("page-cut-twice");
        self.open = Some((index, if keeps { cut } else { after }));
        // SAFETY: the page has `bytes` more behind what is cut, as just made sure.
        Some(unsafe { self.all[index].base().add(cut) })
    }

    /// The first `bytes` of `page`, whose rest is cut next if it is larger than that of the open one.
    fn cut_fresh(&mut self, page: HugePage, bytes: usize) -> NonNull<u8> {
        let base = page.base();
        let cut = bytes.next_multiple_of(CHUNK_ALIGN);
        if self.open.is_none_or(|(_, before)| cut < before) {
            self.open = Some((self.all.len(), cut));
        }
        self.all.push(page);
        base
    }
}

impl Pool {
    /// A pool without pages. They will be those of `budget`, where there is one.
    pub(crate) fn new(budget: Option<Arc<MemoryBudget>>) -> Self {
        Self {
            charge: budget.map(|budget| Charge::new(budget, MemoryUse::Memtables)),
            held: AtomicUsize::new(0),
            pages: Mutex::new(Pages::default()),
        }
    }

    /// Memory for a chunk of `bytes`, valid as long as the pool. `None` for one that is the allocator's, which is held from now on.
    pub(crate) fn cut(&self, bytes: usize) -> Option<NonNull<u8>> {
        let cut = self.cut_page(bytes);
        if cut.is_none() {
            // Relaxed: a figure for budgets, ordered with nothing.
            self.held.fetch_add(bytes, Ordering::Relaxed);
        }
        cut
    }

    fn cut_page(&self, bytes: usize) -> Option<NonNull<u8>> {
        let is_whole = bytes == HUGE_PAGE_BYTES;
        let is_part = self.charge.is_some() && (CUT_BYTES_MIN..=CUT_BYTES_MAX).contains(&bytes);
        if !is_whole && !is_part {
            return None;
        }
        // A thread that died while it held the lock left at worst a page that is not cut any more.
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cut) = pages.cut_open(bytes) {
            return Some(cut);
        }
        let page = match &self.charge {
            Some(charge) => charge.take_page()?,
            None => HugePage::map()?,
        };
        // Relaxed: as above.
        self.held.fetch_add(HUGE_PAGE_BYTES, Ordering::Relaxed);
        Some(pages.cut_fresh(page, bytes))
    }

    /// Brings the charge up to date with the memory held: pages, and chunks of the allocator.
    pub(crate) fn account(&self) {
        if let Some(charge) = &self.charge {
            // Relaxed: as above.
            charge.grow_to(self.held.load(Ordering::Relaxed));
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let pages = self.pages.get_mut();
        let pages = pages.unwrap_or_else(PoisonError::into_inner);
        if let Some(charge) = &self.charge
            && !drumlin_base::bug!("pages-of-memtables-unmapped")
        {
            for page in pages.all.drain(..) {
                charge.give_page(page);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn arenas_share_a_page_and_a_whole_one_leaves_the_rest_of_another() {
        let pool = Pool::new(Some(MemoryBudget::new(1 << 30)));
        let held = || pool.held.load(Ordering::Relaxed);
        assert_eq!(
            (pool.cut(CUT_BYTES_MIN - 1), held()),
            (None, CUT_BYTES_MIN - 1)
        );
        let first = pool.cut(CUT_BYTES_MAX).expect("memory");
        let mut pages = HUGE_PAGE_BYTES + CUT_BYTES_MIN - 1;
        assert_eq!(held(), pages);
        assert!(pool.cut(HUGE_PAGE_BYTES).is_some());
        pages += HUGE_PAGE_BYTES;
        assert_eq!(held(), pages);
        let second = pool.cut(CUT_BYTES_MAX - CUT_BYTES_MIN).expect("memory");
        assert_eq!(
            (second.addr().get() - first.addr().get(), held()),
            (CUT_BYTES_MAX, pages)
        );
        assert!(pool.cut(CUT_BYTES_MIN).is_some());
        assert_eq!(held(), pages, "the first page is full now");
        assert!(pool.cut(CUT_BYTES_MIN).is_some());
        assert_eq!(held(), pages + HUGE_PAGE_BYTES);
        assert!(
            pool.cut(CUT_BYTES_MAX + 1).is_none(),
            "too few fit into a page"
        );
    }
}
