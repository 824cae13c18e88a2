//! One memory budget over everything that grows: memtables, caches, indexes, filters, compaction.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::bytes::{HUGE_PAGE_BYTES, HugePage};
use crate::sync::Mutex;

/// The purpose of a charge of the engine's own. Others have an [`Account`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryUse {
    /// Memtables, mutable and immutable.
    Memtables,
    /// Data blocks in the block cache.
    Blocks,
    /// Indexes, filters and properties of open tables.
    TableMeta,
    /// Buffers of flushes and compactions.
    Jobs,
    /// Pages that memtables and cached blocks gave back, kept for the next of them.
    Spare,
}

const USES: usize = 5;

impl MemoryUse {
    /// All of them.
    pub const ALL: [Self; USES] = [
        Self::Memtables,
        Self::Blocks,
        Self::TableMeta,
        Self::Jobs,
        Self::Spare,
    ];

    /// A word for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memtables => "memtables",
            Self::Blocks => "blocks",
            Self::TableMeta => "tables",
            Self::Jobs => "jobs",
            Self::Spare => "spare",
        }
    }
}

/// Memory that no account covers, however large the limit is.
const UNSEEN_BYTES: usize = 6 << 20;

/// The part of the limit that cached blocks may always have.
const BLOCKS_LEAST_SHARE: usize = 32;
/// The part of the limit that spare pages may have, and how many times the memory of memtables: a store whose memtables
/// are flushed keeps none, and one that is written keeps the pages of a memtable for the next one, of which there may be little yet.
const SPARE_SHARE: usize = 8;
const SPARE_FACTOR: usize = 32;

/// Something that can give memory back.
pub trait Reclaim: Send + Sync {
    /// Gives about `bytes` back, or what it has. It is called by the thread that charged something else, so it must not
    /// wait for anything, and charge nothing.
    fn reclaim(&self, bytes: usize);
}

/// Counts bytes in use by purpose against one limit.
///
/// It counts; it does not refuse. The block cache shrinks at once when another purpose grows
/// ([`MemoryBudget::reclaim_from`]); when it has given all it can, the holders of accounts are asked
/// ([`Account::reclaim_from`]); the table cache closes and memtables are flushed by limits of
/// their own.
pub struct MemoryBudget {
    limit_bytes: AtomicUsize,
    /// The block cache has places for so much.
    blocks_max: usize,
    used: [AtomicUsize; USES],
    spare: Mutex<Vec<HugePage>>,
    /// Of all accounts together.
    named: AtomicUsize,
    accounts: Mutex<Vec<Weak<Account>>>,
    reclaimed_from: OnceLock<Weak<dyn Reclaim>>,
}

impl MemoryBudget {
    /// A budget of `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Arc<Self> {
        Self::that_grows(limit_bytes, limit_bytes)
    }

    /// A budget of `limit_bytes`, that may be raised: cached blocks can use up to `blocks_max` bytes then.
    pub fn that_grows(limit_bytes: usize, blocks_max: usize) -> Arc<Self> {
        Arc::new(Self {
            limit_bytes: AtomicUsize::new(limit_bytes),
            blocks_max: blocks_max.max(limit_bytes),
            used: Default::default(),
            spare: Mutex::new(Vec::new()),
            named: AtomicUsize::new(0),
            accounts: Mutex::new(Vec::new()),
            reclaimed_from: OnceLock::new(),
        })
    }

    /// The limit in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// The most bytes that cached blocks will ever use, however far the limit is raised.
    pub fn blocks_max(&self) -> usize {
        self.blocks_max
    }

    /// Changes the limit. Memory beyond a lower one is given back by the caller's thread, as far as its holders can.
    pub fn set_limit_bytes(&self, bytes: usize) {
        self.limit_bytes.store(bytes, Ordering::Relaxed);
        self.let_go_of_spare();
        self.make_room();
    }

    /// An account of its own for memory that `name` tells of. Accounts of one name are told together.
    pub fn account(self: &Arc<Self>, name: &'static str) -> Arc<Account> {
        let account = Arc::new(Account {
            budget: Arc::clone(self),
            name,
            bytes: AtomicUsize::new(0),
            holder: OnceLock::new(),
        });
        let mut accounts = self.accounts.lock();
        accounts.retain(|account| account.strong_count() > 0);
        accounts.push(Arc::downgrade(&account));
        account
    }

    fn living_accounts(&self) -> Vec<Arc<Account>> {
        let accounts = self.accounts.lock();
        accounts.iter().filter_map(Weak::upgrade).collect()
    }

    /// Bytes in use by name: the engine's own first, then the accounts in the order in which they were opened.
    pub fn used_by_name(&self) -> Vec<(&'static str, usize)> {
        let own = MemoryUse::ALL.map(|purpose| (purpose.name(), self.used(purpose)));
        let mut all = own.to_vec();
        for account in self.living_accounts() {
            match all.iter_mut().find(|(name, _)| *name == account.name) {
                Some((_, bytes)) => *bytes += account.bytes(),
                None => all.push((account.name, account.bytes())),
            }
        }
        all
    }

    /// Registers the `holder` of cached blocks, which is called when others need its memory. The
    /// first one stays.
    pub fn reclaim_from(&self, holder: Weak<dyn Reclaim>) {
        // A second cache on one budget is trimmed by its own inserts alone.
        let _ = self.reclaimed_from.set(holder);
    }

    /// Adds `bytes` to the account of `purpose`, and has cached blocks make room for them.
    pub fn charge(&self, purpose: MemoryUse, bytes: usize) {
        self.cell(purpose).fetch_add(bytes, Ordering::Relaxed);
        self.let_go_of_spare();
        if purpose != MemoryUse::Blocks {
            self.make_room();
        }
    }

    /// A page for memtables or cached blocks, with any content: a spare one, or a new one. `None` when the system has none. It is
    /// to be charged.
    pub fn take_page(&self) -> Option<HugePage> {
        if self.used(MemoryUse::Spare) > 0
            && let Some(page) = self.spare.lock().pop()
        {
            self.release(MemoryUse::Spare, HUGE_PAGE_BYTES);
            return Some(page);
        }
        HugePage::map()
    }

    /// Takes a page back whose charge was released, and keeps it while there is room and memtables are in use: mapping memory, giving
    /// it back and having the system zero it takes a writer longer than to fill it.
    pub fn give_page(&self, page: HugePage) {
        let bytes = self.used(MemoryUse::Spare) + HUGE_PAGE_BYTES;
        let is_wanted =
            bytes <= self.spare_max() && self.used_total() + HUGE_PAGE_BYTES <= self.seen_limit();
        if is_wanted || crate::bug!("spare-pages-without-limit") {
            self.cell(MemoryUse::Spare)
                .fetch_add(HUGE_PAGE_BYTES, Ordering::Relaxed);
            self.spare.lock().push(page);
        }
    }

    fn spare_max(&self) -> usize {
        let of_memtables = self.used(MemoryUse::Memtables) * SPARE_FACTOR;
        of_memtables.min(self.limit_bytes() / SPARE_SHARE)
    }

    /// Gives spare pages back to the system that the budget has no room for, or that are more than memtables are likely to want.
    fn let_go_of_spare(&self) {
        // None, as a rule: a load of a line that others write seldom.
        while self.used(MemoryUse::Spare) > 0
            && (self.used(MemoryUse::Spare) > self.spare_max()
                || self.used_total() > self.seen_limit())
        {
            if crate::bug!("spare-pages-kept") {
                return;
            }
            let Some(page) = self.spare.lock().pop() else {
                return;
            };
            drop(page);
            self.release(MemoryUse::Spare, HUGE_PAGE_BYTES);
        }
    }

    /// Has cached blocks, and then the holders of accounts, give back what is beyond the limit.
    fn make_room(&self) {
        let (blocks, available) = (self.used(MemoryUse::Blocks), self.available_for_blocks());
        if blocks > available
            && !crate::bug!("cached-blocks-not-asked")
            && let Some(holder) = self.reclaimed_from.get().and_then(Weak::upgrade)
        {
            holder.reclaim(blocks - available);
        }
        if self.named.load(Ordering::Relaxed) > 0 && !crate::bug!("accounts-not-asked") {
            self.ask_accounts();
        }
    }

    /// Asks accounts for what is over when cached blocks have their least share.
    fn ask_accounts(&self) {
        let limit = self.limit_bytes();
        let over = || (self.fixed_bytes() + limit / BLOCKS_LEAST_SHARE).saturating_sub(limit);
        if over() == 0 {
            return;
        }
        // The list's lock is not held while they are asked.
        for account in self.living_accounts() {
            if over() == 0 {
                break;
            }
            if let Some(holder) = account.holder.get().and_then(Weak::upgrade) {
                holder.reclaim(over().min(account.bytes()));
            }
        }
    }

    /// Gives back `bytes` charged before.
    pub fn release(&self, purpose: MemoryUse, bytes: usize) {
        let before = self.cell(purpose).fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(
            before >= bytes,
            "released more {purpose:?} than was charged"
        );
    }

    /// Bytes `purpose` uses now.
    pub fn used(&self, purpose: MemoryUse) -> usize {
        self.cell(purpose).load(Ordering::Relaxed)
    }

    /// Bytes in use for every purpose together, accounts included.
    pub fn used_total(&self) -> usize {
        let own = self.used.iter().map(|cell| cell.load(Ordering::Relaxed));
        own.sum::<usize>() + self.named.load(Ordering::Relaxed)
    }

    /// Bytes the block cache may hold now: the limit less everything that cannot be evicted and less
    /// the memory that no account covers (the allocator's own waste, stacks, the threads' codecs: a
    /// part of the limit, and some that does not grow with it), but never less than a thirty-second
    /// of the limit, so that reads keep moving.
    pub fn available_for_blocks(&self) -> usize {
        let limit = self.limit_bytes();
        limit
            .saturating_sub(self.fixed_bytes())
            .max(limit / BLOCKS_LEAST_SHARE)
    }

    /// The limit less memory that no account covers.
    fn seen_limit(&self) -> usize {
        let limit = self.limit_bytes();
        limit - limit / 16 - UNSEEN_BYTES.min(limit / 8)
    }

    /// Bytes that cached blocks have to leave to others. Spare pages are for them, too.
    fn fixed_bytes(&self) -> usize {
        let unseen = self.limit_bytes() - self.seen_limit();
        unseen
            + self.used(MemoryUse::Memtables)
            + self.used(MemoryUse::TableMeta)
            + self.used(MemoryUse::Jobs)
            + self.named.load(Ordering::Relaxed)
    }

    fn cell(&self, purpose: MemoryUse) -> &AtomicUsize {
        let [memtables, blocks, meta, jobs, spare] = &self.used;
        match purpose {
            MemoryUse::Memtables => memtables,
            MemoryUse::Blocks => blocks,
            MemoryUse::TableMeta => meta,
            MemoryUse::Jobs => jobs,
            MemoryUse::Spare => spare,
        }
    }
}

/// The memory of one holder beside the engine's own, charged to a budget under a name. What is charged is given back when
/// the account is dropped. Any number of threads may use one at once; a call costs an atomic addition, and more only while
/// the budget is spent.
pub struct Account {
    budget: Arc<MemoryBudget>,
    name: &'static str,
    bytes: AtomicUsize,
    holder: OnceLock<Weak<dyn Reclaim>>,
}

impl Account {
    /// The name it was opened under.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Bytes charged now.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Charges `bytes` more. Cached blocks make room; if they cannot, holders of accounts are asked.
    pub fn charge(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.budget.named.fetch_add(bytes, Ordering::Relaxed);
        self.budget.let_go_of_spare();
        self.budget.make_room();
    }

    /// Gives `bytes` back, at most what is charged.
    pub fn release(&self, bytes: usize) {
        let less = |charged: usize| Some(charged.saturating_sub(bytes));
        let before = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .unwrap_or_else(|before| before);
        debug_assert!(before >= bytes, "released more {} than charged", self.name);
        let released = before.min(bytes);
        self.budget.named.fetch_sub(released, Ordering::Relaxed);
    }

    /// Makes the charge `bytes` in all, for a holder that counts by itself. One thread at a time.
    pub fn set(&self, bytes: usize) {
        let before = self.bytes();
        match bytes >= before {
            true if bytes == before => {}
            true => self.charge(bytes - before),
            false => self.release(before - bytes),
        }
    }

    /// Has `holder` asked for memory when the budget is spent and cached blocks have given what they can. The first one
    /// stays.
    pub fn reclaim_from(&self, holder: Weak<dyn Reclaim>) {
        // A second holder is no error: an account belongs to one, who registers once.
        let _ = self.holder.set(holder);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        self.budget.named.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account({}, {} bytes)", self.name, self.bytes())
    }
}

/// The charge of one growing thing, released when this is dropped. So the charge lasts as long as
/// the memory, no matter who holds it.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<MemoryBudget>,
    purpose: MemoryUse,
    bytes: AtomicUsize,
}

impl Charge {
    /// An empty charge for `purpose`.
    pub fn new(budget: Arc<MemoryBudget>, purpose: MemoryUse) -> Self {
        Self {
            budget,
            purpose,
            bytes: AtomicUsize::new(0),
        }
    }

    /// A page for what is charged.
    pub fn take_page(&self) -> Option<HugePage> {
        self.budget.take_page()
    }

    /// Gives a page back, and its bytes of the charge.
    pub fn give_page(&self, page: HugePage) {
        let less = |charged: usize| Some(charged.saturating_sub(HUGE_PAGE_BYTES));
        let before = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .unwrap_or_else(|before| before);
        self.budget
            .release(self.purpose, before.min(HUGE_PAGE_BYTES));
        self.budget.give_page(page);
    }

    /// Raises the charge to `bytes` in all. Any number of threads may call it at once.
    pub fn grow_to(&self, bytes: usize) {
        // The usual case: a load alone leaves the cache line to other threads.
        if self.bytes.load(Ordering::Relaxed) >= bytes {
            return;
        }
        let before = self.bytes.fetch_max(bytes, Ordering::Relaxed);
        if bytes > before {
            self.budget.charge(self.purpose, bytes - before);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.release(self.purpose, *self.bytes.get_mut());
        self.budget.let_go_of_spare();
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBudget")
            .field("limit_bytes", &self.limit_bytes())
            .field("used", &self.used_by_name())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_lasts_as_long_as_what_it_is_for() {
        let budget = MemoryBudget::new(1000);
        let charge = Charge::new(Arc::clone(&budget), MemoryUse::Memtables);
        for bytes in [10, 30, 20] {
            charge.grow_to(bytes);
        }
        assert_eq!(budget.used(MemoryUse::Memtables), 30);
        drop(charge);
        assert_eq!(budget.used_total(), 0);
    }

    #[test]
    fn others_are_asked_for_memory_when_it_is_needed() {
        struct Holder(Arc<MemoryBudget>);
        impl Reclaim for Holder {
            fn reclaim(&self, bytes: usize) {
                let over = self.0.used(MemoryUse::Blocks) - self.0.available_for_blocks();
                assert_eq!(over, bytes);
                self.0.release(MemoryUse::Blocks, over);
            }
        }
        let budget = MemoryBudget::new(1600);
        let holder: Arc<dyn Reclaim> = Arc::new(Holder(Arc::clone(&budget)));
        budget.reclaim_from(Arc::downgrade(&holder));
        budget.charge(MemoryUse::Blocks, 1300);
        budget.charge(MemoryUse::Memtables, 700);
        assert_eq!(
            budget.used(MemoryUse::Blocks),
            budget.available_for_blocks()
        );
    }

    #[test]
    fn the_block_cache_gets_what_others_leave() {
        let budget = MemoryBudget::new(1600);
        budget.charge(MemoryUse::Memtables, 300);
        budget.charge(MemoryUse::TableMeta, 100);
        assert_eq!(budget.available_for_blocks(), 900);
        budget.charge(MemoryUse::Jobs, 1500);
        assert_eq!(budget.available_for_blocks(), 1600 / 32);
        budget.release(MemoryUse::Jobs, 1500);
        assert_eq!(budget.used_total(), 400);
    }

    /// Gives back what it is asked for, and remembers that.
    struct Hot(OnceLock<Arc<Account>>, AtomicUsize);

    impl Reclaim for Hot {
        fn reclaim(&self, bytes: usize) {
            self.1.fetch_add(bytes, Ordering::Relaxed);
            self.0.get().expect("has its account").release(bytes);
        }
    }

    fn hot(budget: &Arc<MemoryBudget>) -> Arc<Hot> {
        let hot = Arc::new(Hot(OnceLock::new(), AtomicUsize::new(0)));
        let account = budget.account("hot");
        let holder: Arc<dyn Reclaim> = Arc::<Hot>::clone(&hot);
        account.reclaim_from(Arc::downgrade(&holder));
        assert!(hot.0.set(account).is_ok());
        hot
    }

    #[test]
    fn accounts_are_told_by_name_and_leave_less_to_the_blocks() {
        let budget = MemoryBudget::new(1600);
        let [one, other] = [budget.account("clients"), budget.account("clients")];
        one.charge(100);
        other.set(70);
        other.set(50);
        assert_eq!(budget.available_for_blocks(), 1600 - 100 - 200 - 150);
        assert_eq!(budget.used_by_name().last(), Some(&("clients", 150)));
        assert_eq!(budget.used_total(), 150);
        drop(one);
        assert_eq!(budget.used_by_name().last(), Some(&("clients", 50)));
        other.release(50);
        assert_eq!(budget.used_total(), 0);
    }

    #[test]
    fn holders_are_asked_for_what_blocks_cannot_give() {
        let budget = MemoryBudget::new(1600);
        let hot = hot(&budget);
        let asked = || hot.1.load(Ordering::Relaxed);
        let account = hot.0.get().expect("has its account");
        account.charge(900);
        budget.charge(MemoryUse::Memtables, 300);
        // 300 are nobody's, and 50 are the blocks'.
        assert_eq!((asked(), account.bytes()), (0, 900));
        budget.charge(MemoryUse::Jobs, 100);
        assert_eq!((asked(), account.bytes()), (50, 850));
    }

    #[test]
    fn pages_are_kept_while_memtables_are_in_use_and_there_is_room() {
        const PAGE: usize = HUGE_PAGE_BYTES;
        let budget = MemoryBudget::new(64 * PAGE);
        let [charge, active] =
            [(), ()].map(|()| Charge::new(Arc::clone(&budget), MemoryUse::Memtables));
        let spare = || budget.used(MemoryUse::Spare) / PAGE;
        let pages: Vec<HugePage> = (0..10).filter_map(|_| charge.take_page()).collect();
        let first = pages.first().map(HugePage::base);
        charge.grow_to(10 * PAGE);
        active.grow_to(PAGE * 3 / 16);
        for page in pages.into_iter().rev() {
            charge.give_page(page);
        }
        // An eighth of the limit; then 32 times what is still charged.
        assert_eq!(budget.used(MemoryUse::Memtables), PAGE * 3 / 16);
        assert_eq!(spare(), 8);
        drop(charge);
        assert_eq!(spare(), 6);
        assert_eq!(budget.used_total(), 6 * PAGE + PAGE * 3 / 16);
        assert_eq!(budget.used_by_name().last(), Some(&("spare", 6 * PAGE)));
        budget.give_page(HugePage::map().expect("memory"));
        assert_eq!(spare(), 6);
        let kept = budget.take_page().map(|page| page.base());
        assert!(kept.is_some() && spare() == 5);
        assert_ne!(kept, first, "the last pages were not kept");
        // Others come first.
        budget.charge(MemoryUse::Jobs, budget.seen_limit() - 4 * PAGE);
        assert_eq!(spare(), 3);
        budget.charge(MemoryUse::Blocks, 4 * PAGE);
        budget.give_page(HugePage::map().expect("memory"));
        assert_eq!(spare(), 0);
        budget.release(MemoryUse::Jobs, budget.seen_limit() - 4 * PAGE);
        budget.give_page(HugePage::map().expect("memory"));
        assert_eq!(spare(), 1);
        // A store that is not written keeps none.
        drop(active);
        assert_eq!(spare(), 0);
    }

    #[test]
    fn a_lower_limit_is_kept_at_once_and_a_higher_one_gives_room() {
        let budget = MemoryBudget::that_grows(1600, 10_000);
        let hot = hot(&budget);
        let account = hot.0.get().expect("has its account");
        account.charge(1000);
        budget.set_limit_bytes(800);
        assert_eq!(budget.limit_bytes(), 800);
        assert_eq!(account.bytes(), 800 - 50 - 100 - 25);
        assert_eq!(budget.available_for_blocks(), 800 / 32);
        budget.set_limit_bytes(16_000);
        assert!(budget.available_for_blocks() > 10_000);
        assert_eq!(budget.blocks_max(), 10_000);
    }
}
