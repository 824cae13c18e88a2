//! Hazard pointers: a pointer that readers follow without counting references.
//!
//! A reader that counted would write to a cache line that all readers write to. Instead it publishes the
//! address it is about to use in a slot of its own thread ([`super::hazard_slots`]), and checks that the
//! pointer still holds that address. A writer that replaces the value looks at every slot before it drops
//! the old one (Michael, *Hazard Pointers*, 2004):
//!
//! ```text
//! load     publish the address · light fence · is the pointer unchanged?   (no: again)
//! retire   take the value out  · heavy fence · is it in any slot?          (no: drop it)
//! ```
//!
//! If the reader did not see the swap, its slot was written before the writer's fence, and the writer finds
//! it. That is two stores and two loads for a reader, none of them to a line that others write.
//!
//! Trick 1: the reader's fence is free. The writer's fence makes every processor pass one
//! ([`super::barrier`]), so a reader only keeps the compiler from reordering.
//!
//! Trick 2: nobody waits. A value that is still in a slot goes to a list of retired values, and the guard
//! that is dropped last drops it. The same argument as above, with the roles exchanged, shows that one of
//! the two sides always sees the other:
//!
//! ```text
//! retire   put it on the list, set its mark · heavy fence · is it still in a slot?   (no: drop it)
//! drop     clear the slot                   · light fence · is its mark set?         (yes: look)
//! ```
//!
//! An address that was published too late, because the pointer had changed, is cleared in the same way: the
//! writer may have found it all the same.
//!
//! Trick 3: one long guard does not slow all others down. The marks are 64 bits, one for each sixty-fourth
//! of all addresses, so a guard looks at the list only if something with its own mark is on it.
//!
//! A guard drops nothing but the value it protected, as a counted handle would. So a guard may end in
//! any place where such a handle may be dropped.
//!
//! Thread safety: every method may be called from any thread; a guard stays on the thread that made it.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::null_mut;

use arc_swap::RefCnt;

use super::barrier;
use super::hazard_slots::{HazardSlot, each_protected};
use super::prefetch::prefetch;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Holds a counted handle, or none, that readers use without counting. Dropping it drops the handle.
pub struct HazardPtr<T: RefCnt> {
    at: AtomicPtr<T::Base>,
    handle: PhantomData<T>,
}

// SAFETY: gives `&T` to any thread and drops `T` on any thread.
unsafe impl<T: RefCnt + Send + Sync> Send for HazardPtr<T> {}
// SAFETY: as above.
unsafe impl<T: RefCnt + Send + Sync> Sync for HazardPtr<T> {}

/// Protects the handle that was in a [`HazardPtr`]; dereferences to it. Stays on its thread.
pub struct HazardGuard<'a, T: RefCnt> {
    /// Not counted: its target lives for as long as its address is in the slot `slot`.
    handle: ManuallyDrop<T>,
    slot: HazardSlot,
    pointer: PhantomData<(&'a HazardPtr<T>, *mut ())>,
}

/// A handle taken out of its [`HazardPtr`], perhaps while guards still protect it; dereferences to it.
/// Dropping it waits for nobody: the last guard drops the handle then.
pub struct Retired<T: RefCnt + Send + Sync + 'static> {
    handle: ManuallyDrop<T>,
}

impl<T: RefCnt> HazardPtr<T> {
    /// A pointer that holds `first`.
    pub fn new(first: Option<T>) -> Self {
        Self {
            at: AtomicPtr::new(into_address(first)),
            handle: PhantomData,
        }
    }

    /// An empty pointer.
    pub fn empty() -> Self {
        Self::new(None)
    }

    /// Takes the handle out of a pointer that nobody else has.
    pub fn take_mut(&mut self) -> Option<T> {
        // Relaxed: the holder of the only reference got it in some ordered way. No guard can be
        // left, since guards borrow the pointer.
        let at = self.at.swap(null_mut(), Ordering::Relaxed);
        // SAFETY: came from `into_address`, and was taken out for good.
        (!at.is_null()).then(|| unsafe { T::from_ptr(at) })
    }
}

impl<T: RefCnt + Send + Sync + 'static> HazardPtr<T> {
    /// Protects the handle; `None` when the pointer is empty. Writes nothing that others read often.
    #[inline(always)]
    pub fn load(&self) -> Option<HazardGuard<'_, T>> {
        // Relaxed: only a guess at the address to publish.
        let at = self.at.load(Ordering::Relaxed);
        if at.is_null() {
            return None;
        }
        let slot = HazardSlot::take();
        slot.publish(at.cast());
        barrier::light();
        // Acquire: pairs with the AcqRel in `swap`, so that the target is seen whole.
        let mut now = self.at.load(Ordering::Acquire);
        if now != at {
            now = self.load_again(slot, at, now);
            if now.is_null() {
                return None;
            }
        }
        Some(HazardGuard {
            // SAFETY: came from `into_address`. The pointer held the address after it was published, so
            // the thread that takes the handle out finds it in the slot; and the handle is not dropped
            // here. `now`, not `at`: the first guess may be of another handle that had the same address
            // before.
            handle: ManuallyDrop::new(unsafe { T::from_ptr(now) }),
            slot,
            pointer: PhantomData,
        })
    }

    /// Publishes the present address until it is still present afterwards: `at` was published, `now` is
    /// there instead. Null, with the slot given back, when the pointer is empty.
    #[cold]
    fn load_again(
        &self,
        slot: HazardSlot,
        mut at: *mut T::Base,
        mut now: *mut T::Base,
    ) -> *mut T::Base {
        while now != at {
            let missed = at;
            if now.is_null() {
                slot.give_back();
                after_clear(missed.cast());
                return null_mut();
            }
            slot.publish(now.cast());
            // The thread that took the value out may have found it in the slot and left the drop to
            // this thread.
            after_clear(missed.cast());
            // Acquire: as in `load`.
            (at, now) = (now, self.at.load(Ordering::Acquire));
        }
        now
    }

    /// A counted handle.
    pub fn load_full(&self) -> Option<T> {
        self.load().map(|guard| T::clone(&guard))
    }

    /// Prefetches the first `lines` cache lines of the present target.
    #[inline]
    pub fn prefetch(&self, lines: usize) {
        // Relaxed: only an address, not followed.
        prefetch(self.at.load(Ordering::Relaxed), lines);
    }

    /// Prefetches `lines` cache lines of the present target from its byte `offset` on.
    #[inline]
    pub fn prefetch_at(&self, offset: usize, lines: usize) {
        // Relaxed: as in `prefetch`.
        let start = self.at.load(Ordering::Relaxed).cast::<u8>();
        prefetch(start.wrapping_add(offset), lines);
    }

    /// Whether the pointer is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.at.load(Ordering::Relaxed).is_null()
    }

    /// Replaces the handle by `next` and returns the old one, retired.
    pub fn swap(&self, next: Option<T>) -> Option<Retired<T>> {
        // AcqRel: pairs with the Acquire in `load`, and with the one of the swap before.
        let at = self.at.swap(into_address(next), Ordering::AcqRel);
        (!at.is_null()).then(|| Retired {
            // SAFETY: came from `into_address` and was taken out; `Retired` sees to the guards.
            handle: ManuallyDrop::new(unsafe { T::from_ptr(at) }),
        })
    }

    /// Replaces the handle by `next`; the old one is dropped with its last guard.
    pub fn store(&self, next: Option<T>) {
        drop(self.swap(next));
    }
}

fn into_address<T: RefCnt>(handle: Option<T>) -> *mut T::Base {
    handle.map_or(null_mut(), T::into_ptr)
}

impl<T: RefCnt> Drop for HazardPtr<T> {
    fn drop(&mut self) {
        drop(self.take_mut());
    }
}

impl<T: RefCnt + Send + Sync + 'static> fmt::Debug for HazardPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HazardPtr(empty: {})", self.is_empty())
    }
}

impl<T: RefCnt> Deref for HazardGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.handle
    }
}

impl<T: RefCnt> Drop for HazardGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let at = T::as_ptr(&self.handle).cast::<()>();
        self.slot.give_back();
        after_clear(at);
    }
}

impl<T: RefCnt + fmt::Debug> fmt::Debug for HazardGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: RefCnt + Send + Sync + 'static> Retired<T> {
    /// # Safety
    /// The handle is not used through `self` again.
    unsafe fn erase(&mut self) -> Erased {
        // SAFETY: as the caller promises.
        let handle = unsafe { ManuallyDrop::take(&mut self.handle) };
        Erased {
            at: T::into_ptr(handle).cast(),
            drop: drop_handle::<T>,
        }
    }
}

impl<T: RefCnt + Send + Sync + 'static> Deref for Retired<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.handle
    }
}

impl<T: RefCnt + Send + Sync + 'static> Drop for Retired<T> {
    fn drop(&mut self) {
        // SAFETY: `self` is being dropped.
        let erased = unsafe { self.erase() };
        retire(vec![erased]);
    }
}

impl<T: RefCnt + Send + Sync + fmt::Debug + 'static> fmt::Debug for Retired<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

/// Retired handles of any types, dropped together behind one fence.
#[derive(Default)]
pub struct RetireBatch {
    handles: Vec<Erased>,
}

impl RetireBatch {
    /// Adds a handle.
    pub fn add<T: RefCnt + Send + Sync + 'static>(&mut self, retired: Retired<T>) {
        let mut retired = ManuallyDrop::new(retired);
        // SAFETY: taken once, since `retired` is not dropped.
        self.handles.push(unsafe { retired.erase() });
    }
}

impl Drop for RetireBatch {
    fn drop(&mut self) {
        if !self.handles.is_empty() {
            retire(std::mem::take(&mut self.handles));
        }
    }
}

impl fmt::Debug for RetireBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RetireBatch({} handles)", self.handles.len())
    }
}

/// A counted handle of some type that is still to be dropped.
struct Erased {
    at: *mut (),
    drop: unsafe fn(*mut ()),
}

// SAFETY: made of handles that are Send, and only dropped.
unsafe impl Send for Erased {}

impl Drop for Erased {
    fn drop(&mut self) {
        // SAFETY: `drop` is that of the handle's type, and the handle is dropped once, here.
        unsafe { (self.drop)(self.at) }
    }
}

/// # Safety
/// `at` came from `T::into_ptr`, and its count is given up by this.
unsafe fn drop_handle<T: RefCnt>(at: *mut ()) {
    // SAFETY: as the caller promises.
    drop(unsafe { T::from_ptr(at.cast()) });
}

/// Retired values that guards still protect.
struct RetiredList {
    handles: Mutex<Vec<Erased>>,
    /// The marks of all `handles`. Changed under their lock.
    marks: AtomicU64,
}

#[cfg(not(loom))]
static RETIRED: RetiredList = RetiredList {
    handles: Mutex::new(Vec::new()),
    marks: AtomicU64::new(0),
};
#[cfg(loom)]
loom::lazy_static! {
    static ref RETIRED: RetiredList = RetiredList {
        handles: Mutex::new(Vec::new()),
        marks: AtomicU64::new(0),
    };
}

fn mark_of(at: *mut ()) -> u64 {
    if cfg!(any(loom, feature = "sim")) {
        return 1; // Addresses differ from run to run, which a model or simulation must not notice.
    }
    // Fibonacci hashing: targets are aligned to many powers of two.
    1 << ((at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58)
}

/// Drops the target at `at` if it is retired and this thread, which has just cleared its slot, was the last
/// to protect it. Passes a light fence.
#[inline]
fn after_clear(at: *mut ()) {
    barrier::light();
    // Relaxed: ordered by the fence.
    if RETIRED.marks.load(Ordering::Relaxed) & mark_of(at) != 0 {
        drop_if_unprotected(at);
    }
}

/// Drops those handles that no guard protects, and lists the others.
#[cold]
fn retire(mut handles: Vec<Erased>) {
    let protected = take_protected(&mut handles);
    drop(handles);
    if protected.is_empty() {
        return;
    }
    let addresses: Vec<_> = protected.iter().map(|handle| handle.at).collect();
    let mut list = RETIRED.handles.lock();
    list.extend(protected);
    RETIRED.set_marks(&list);
    let unprotected = take_unprotected(&mut list, &addresses);
    drop(list);
    drop(unprotected);
}

/// Drops the retired value at `at`, unless another guard protects it.
#[cold]
#[inline(never)]
fn drop_if_unprotected(at: *mut ()) {
    let mut list = RETIRED.handles.lock();
    if !list.iter().any(|handle| handle.at == at) {
        return; // another value has the same mark
    }
    let unprotected = take_unprotected(&mut list, &[at]);
    drop(list);
    // Under no lock: a drop may do anything.
    drop(unprotected);
}

/// Takes those of `addresses` out of `list` that no guard protects any more.
fn take_unprotected(list: &mut Vec<Erased>, addresses: &[*mut ()]) -> Vec<Erased> {
    let (mut candidates, rest) = std::mem::take(list)
        .into_iter()
        .partition(|handle| addresses.contains(&handle.at));
    *list = rest;
    let protected = take_protected(&mut candidates);
    list.extend(protected);
    RETIRED.set_marks(list);
    candidates
}

/// Takes those handles out of `handles` that are in some slot.
fn take_protected(handles: &mut Vec<Erased>) -> Vec<Erased> {
    barrier::heavy();
    let mut published = Vec::new();
    each_protected(|at| published.push(at));
    let (protected, rest) = std::mem::take(handles)
        .into_iter()
        .partition(|handle| published.contains(&handle.at));
    *handles = rest;
    protected
}

impl RetiredList {
    /// Requires: `handles` is the content of the list, and its lock is held.
    fn set_marks(&self, handles: &[Erased]) {
        let marks = handles
            .iter()
            .fold(0, |all, handle| all | mark_of(handle.at));
        // Relaxed: ordered by the fences.
        self.marks.store(marks, Ordering::Relaxed);
    }
}
