//! A place that holds a counted handle and lends it to readers who count nothing.
//!
//! A reader that counted would write to a line that all readers write to. Here it writes the address
//! it is about to use on its own desk ([`super::hazard_slots`]), looks whether the place still holds it, and
//! has it on guard: two stores and two loads, none of them to a line that others write. Whoever takes
//! the handle out of its place looks at all desks before giving it up (Michael, *Hazard Pointers*,
//! 2004), and pays for the fence of both sides ([`super::barrier`]):
//!
//! ```text
//! lend    note the address · light fence · is it still in its place?       (else again)
//! recall  take it out      · heavy fence · is it noted on a desk?          (if not: drop it)
//! ```
//!
//! If the reader did not see that the handle was taken out, its note was there before the fence, and
//! the other side sees it. What is found on a desk is put aside; the loan that ends last drops it:
//!
//! ```text
//! put aside  add to the list, mark it · heavy fence · is it still noted?   (if not: drop it)
//! return     strike the note out      · light fence · is it marked?        (if so: look)
//! ```
//!
//! A note that came too late is struck out in the same way: it may have been found all the same.
//!
//! The marks are a word of 64 bits, one for each sixty-fourth of all addresses, so that a loan that
//! lasts does not send all others through the list. A loan drops nothing but what it had itself, as a
//! counted handle would; so it may end wherever a handle of that kind may be dropped.
//!
//! Thread safety: every method may be called from any thread; a loan stays with the thread that took it.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::null_mut;

use arc_swap::RefCnt;

use super::barrier;
use super::hazard_slots::{HazardSlot, each_lent};
use super::prefetch::prefetch;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Holds a handle, or none, and lends it. Dropping it drops the handle.
pub struct HazardPtr<T: RefCnt> {
    at: AtomicPtr<T::Base>,
    handle: PhantomData<T>,
}

// SAFETY: lends `&T` to any thread and drops `T` on any thread.
unsafe impl<T: RefCnt + Send + Sync> Send for HazardPtr<T> {}
// SAFETY: as above.
unsafe impl<T: RefCnt + Send + Sync> Sync for HazardPtr<T> {}

/// A handle on guard; dereferences to it. Stays with its thread.
pub struct HazardGuard<'a, T: RefCnt> {
    /// Not counted: what it points to lives for as long as it is noted at `noted`.
    handle: ManuallyDrop<T>,
    noted: HazardSlot,
    pointer: PhantomData<(&'a HazardPtr<T>, *mut ())>,
}

/// A handle taken out of its place, while some may still have it on guard; dereferences to it. Dropping
/// it waits for nobody: the last loan drops the handle then.
pub struct Retired<T: RefCnt + Send + Sync + 'static> {
    handle: ManuallyDrop<T>,
}

impl<T: RefCnt> HazardPtr<T> {
    /// A place that holds `first`.
    pub fn new(first: Option<T>) -> Self {
        Self {
            at: AtomicPtr::new(into_address(first)),
            handle: PhantomData,
        }
    }

    /// An empty place.
    pub fn empty() -> Self {
        Self::new(None)
    }

    /// What is there, taken out of a place that nobody else has.
    pub fn take_mut(&mut self) -> Option<T> {
        // Relaxed: who has the only reference got it in some ordered way. No loan can be left,
        // since guards borrow the place.
        let at = self.at.swap(null_mut(), Ordering::Relaxed);
        // SAFETY: came from `into_address`, and was taken out for good.
        (!at.is_null()).then(|| unsafe { T::from_ptr(at) })
    }
}

impl<T: RefCnt + Send + Sync + 'static> HazardPtr<T> {
    /// The handle, on guard; `None` when the place is empty. Writes nothing that others read often.
    #[inline(always)]
    pub fn load(&self) -> Option<HazardGuard<'_, T>> {
        // Relaxed: only a guess at what to note.
        let at = self.at.load(Ordering::Relaxed);
        if at.is_null() {
            return None;
        }
        let noted = HazardSlot::take();
        noted.note(at.cast());
        barrier::light();
        // Acquire: pairs with the AcqRel in `swap`, so that what is lent is seen whole.
        let mut now = self.at.load(Ordering::Acquire);
        if now != at {
            now = self.load_again(noted, at, now);
            if now.is_null() {
                return None;
            }
        }
        Some(HazardGuard {
            // SAFETY: came from `into_address`. It was in its place after it was noted, so that who
            // takes it out finds the note; and it is not dropped here. `now`, not `at`: the first guess
            // may be of another handle that lay at the same address before.
            handle: ManuallyDrop::new(unsafe { T::from_ptr(now) }),
            noted,
            pointer: PhantomData,
        })
    }

    /// Notes what is in the place until it still is after that: `at` was noted, `now` is there instead.
    /// Null, and nothing noted, when the place is empty.
    #[cold]
    fn load_again(
        &self,
        noted: HazardSlot,
        mut at: *mut T::Base,
        mut now: *mut T::Base,
    ) -> *mut T::Base {
        while now != at {
            let missed = at;
            if now.is_null() {
                noted.give_back();
                after_return(missed.cast());
                return null_mut();
            }
            noted.note(now.cast());
            // Whoever took it out may have found the note and left it to this thread.
            after_return(missed.cast());
            // Acquire: as in `load`.
            (at, now) = (now, self.at.load(Ordering::Acquire));
        }
        now
    }

    /// A handle of one's own.
    pub fn load_full(&self) -> Option<T> {
        self.load().map(|guard| T::clone(&guard))
    }

    /// Asks for the first `lines` cache lines of what the handle points to, whatever that is by now.
    #[inline]
    pub fn prefetch(&self, lines: usize) {
        // Relaxed: only an address, not followed.
        prefetch(self.at.load(Ordering::Relaxed), lines);
    }

    /// Whether the place is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.at.load(Ordering::Relaxed).is_null()
    }

    /// Puts `next` in place of what is there, which is given back.
    pub fn swap(&self, next: Option<T>) -> Option<Retired<T>> {
        // AcqRel: pairs with the Acquire in `load`, and with the one of the swap before.
        let at = self.at.swap(into_address(next), Ordering::AcqRel);
        (!at.is_null()).then(|| Retired {
            // SAFETY: came from `into_address` and was taken out; `Retired` sees to the guards.
            handle: ManuallyDrop::new(unsafe { T::from_ptr(at) }),
        })
    }

    /// Puts `next` in place of what is there, which goes with its last guard.
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
        self.noted.give_back();
        after_return(at);
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
        give_up(vec![erased]);
    }
}

impl<T: RefCnt + Send + Sync + fmt::Debug + 'static> fmt::Debug for Retired<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

/// Retired handles of any types, dropped together with one fence.
#[derive(Default)]
pub struct RetireBatch {
    handles: Vec<Erased>,
}

impl RetireBatch {
    /// Adds a handle.
    pub fn add<T: RefCnt + Send + Sync + 'static>(&mut self, retired: Retired<T>) {
        let mut retired = ManuallyDrop::new(retired);
        // SAFETY: taken once, since `recalled` is not dropped.
        self.handles.push(unsafe { retired.erase() });
    }
}

impl Drop for RetireBatch {
    fn drop(&mut self) {
        if !self.handles.is_empty() {
            give_up(std::mem::take(&mut self.handles));
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

/// What was recalled while a guard held it.
struct Aside {
    handles: Mutex<Vec<Erased>>,
    /// The marks of all `handles`. Changed under their lock.
    marks: AtomicU64,
}

#[cfg(not(loom))]
static ASIDE: Aside = Aside {
    handles: Mutex::new(Vec::new()),
    marks: AtomicU64::new(0),
};
#[cfg(loom)]
loom::lazy_static! {
    static ref ASIDE: Aside = Aside {
        handles: Mutex::new(Vec::new()),
        marks: AtomicU64::new(0),
    };
}

fn mark_of(at: *mut ()) -> u64 {
    if cfg!(any(loom, feature = "sim")) {
        return 1; // Addresses differ from run to run, which a model or simulation must not notice.
    }
    // Fibonacci hashing: what is lent lies at multiples of many powers of two.
    1 << ((at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58)
}

/// Drops what was at `at` if this thread, which has just struck it out on its desk, was the last to have
/// it there. Passes a light fence.
#[inline]
fn after_return(at: *mut ()) {
    barrier::light();
    // Relaxed: ordered by the fence.
    if ASIDE.marks.load(Ordering::Relaxed) & mark_of(at) != 0 {
        drop_if_returned(at);
    }
}

/// Drops those handles that nobody has on guard, and puts the others aside.
#[cold]
fn give_up(mut handles: Vec<Erased>) {
    let lent = take_lent(&mut handles);
    drop(handles);
    if lent.is_empty() {
        return;
    }
    let addresses: Vec<_> = lent.iter().map(|handle| handle.at).collect();
    let mut aside = ASIDE.handles.lock();
    aside.extend(lent);
    ASIDE.set_marks(&aside);
    let returned = take_returned(&mut aside, &addresses);
    drop(aside);
    drop(returned);
}

/// Drops what was put aside of `at`, unless somebody else has it on guard.
#[cold]
#[inline(never)]
fn drop_if_returned(at: *mut ()) {
    let mut aside = ASIDE.handles.lock();
    if !aside.iter().any(|handle| handle.at == at) {
        return; // Another with the same mark.
    }
    let returned = take_returned(&mut aside, &[at]);
    drop(aside);
    // Under no lock: anything may happen in there.
    drop(returned);
}

/// Takes those of `addresses` out of `aside` that nobody has on loan any more.
fn take_returned(aside: &mut Vec<Erased>, addresses: &[*mut ()]) -> Vec<Erased> {
    let (mut candidates, rest) = std::mem::take(aside)
        .into_iter()
        .partition(|handle| addresses.contains(&handle.at));
    *aside = rest;
    let lent = take_lent(&mut candidates);
    aside.extend(lent);
    ASIDE.set_marks(aside);
    candidates
}

/// Takes those handles out of the list that are noted on some desk.
fn take_lent(handles: &mut Vec<Erased>) -> Vec<Erased> {
    barrier::heavy();
    let mut noted = Vec::new();
    each_lent(|at| noted.push(at));
    let (lent, rest) = std::mem::take(handles)
        .into_iter()
        .partition(|handle| noted.contains(&handle.at));
    *handles = rest;
    lent
}

impl Aside {
    /// Requires: `handles` is what is in the list, and its lock is held.
    fn set_marks(&self, handles: &[Erased]) {
        let marks = handles
            .iter()
            .fold(0, |all, handle| all | mark_of(handle.at));
        // Relaxed: ordered by the fences.
        self.marks.store(marks, Ordering::Relaxed);
    }
}
