//! Where each thread writes down what it has on loan.
//!
//! A slots is a cache line of eight addresses that one thread writes and any thread may read. It is
//! claimed at a thread's first loan, given back when the thread ends, and never freed: there are as
//! many as threads ever had loans at one time. A thread with more than eight loans claims another
//! slots for each further one.
//!
//! Thread safety: the list of slot groups only grows; a group of slots is written by the thread that claimed it.

use std::cell::Cell;
use std::ptr::null_mut;

use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering, fence};

/// Loans that fit a thread's own slots: a get has four at most, user code inside it may get again.
const SLOTS: usize = 8;

/// One thread's loans.
#[repr(align(64))]
pub(super) struct HazardSlots {
    slots: [AtomicPtr<()>; SLOTS],
    is_claimed: AtomicBool,
    next: Option<&'static HazardSlots>,
}

/// A place on a group of slots, this thread's until it is given back.
#[derive(Clone, Copy)]
pub(super) struct HazardSlot {
    /// All that is kept, so that a loan is two words and stays in registers: words that are moved as pairs
    /// right after they were written are waited for until they have left the processor.
    at: &'static AtomicPtr<()>,
}

/// What a thread knows of its slots. Nothing in it has to be dropped, so that reaching it is one load.
struct Own {
    slots: Cell<Option<&'static HazardSlots>>,
    /// A bit for each place in use.
    taken: Cell<u8>,
}

#[cfg(not(loom))]
thread_local! {
    static OWN: Own = const { Own { slots: Cell::new(None), taken: Cell::new(0) } };
    /// Gives the slots back when the thread ends.
    static LEAVING: Leaving = const { Leaving };
}
#[cfg(not(loom))]
static NEWEST: AtomicPtr<HazardSlots> = AtomicPtr::new(null_mut());

#[cfg(loom)]
loom::thread_local! {
    static OWN: Own = Own { slots: Cell::new(None), taken: Cell::new(0) };
    static LEAVING: Leaving = Leaving;
}
#[cfg(loom)]
loom::lazy_static! {
    static ref NEWEST: AtomicPtr<HazardSlots> = AtomicPtr::new(null_mut());
}

struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        // A loan that outlives this keeps the slots: it may still be written.
        let left = OWN.try_with(|own| match own.taken.get() {
            0 => own.slots.take(),
            _ => None,
        });
        if let Ok(Some(slots)) = left {
            slots.give_back();
        }
    }
}

impl HazardSlots {
    /// A slots that nobody else has.
    fn claim() -> &'static Self {
        let mut next = newest();
        while let Some(slots) = next {
            // Acquire: pairs with the Release in `give_back`. Most slot groups are taken: look first.
            if !slots.is_claimed.load(Ordering::Relaxed)
                && !slots.is_claimed.swap(true, Ordering::Acquire)
            {
                return slots;
            }
            next = slots.next;
        }
        Self::push()
    }

    fn push() -> &'static Self {
        let slots = Box::leak(Box::new(Self {
            slots: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
            is_claimed: AtomicBool::new(true),
            next: None,
        }));
        let at: *mut Self = slots;
        loop {
            let newest = NEWEST.load(Ordering::Acquire);
            // SAFETY: null or a group of slots, and slot groups are never freed.
            let next = unsafe { newest.as_ref() };
            // SAFETY: the slots is not in the list yet, so this thread alone knows it.
            unsafe { (*at).next = next };
            // Release: pairs with the Acquire in `newest`, so that the slots is seen whole.
            let added = NEWEST.compare_exchange(newest, at, Ordering::AcqRel, Ordering::Relaxed);
            if added.is_ok() {
                // What is borrowed by this slots from now on comes after it is in the list: whoever
                // took something back before and does not find the slots cannot have lent it here.
                fence(Ordering::SeqCst);
                // SAFETY: leaked above; from here on it is only shared.
                return unsafe { &*at };
            }
        }
    }

    /// Which of the slots's slots `place` is.
    #[inline]
    fn index_of(&self, place: &'static AtomicPtr<()>) -> Option<usize> {
        let bytes = std::ptr::from_ref(place)
            .addr()
            .wrapping_sub(self.slots.as_ptr().addr());
        (bytes < size_of_val(&self.slots)).then_some(bytes / size_of::<AtomicPtr<()>>())
    }

    fn give_back(&self) {
        // Release: pairs with the Acquire in `claim`.
        self.is_claimed.store(false, Ordering::Release);
    }
}

fn newest() -> Option<&'static HazardSlots> {
    // Acquire: pairs with the Release in `push`.
    let newest = NEWEST.load(Ordering::Acquire);
    // SAFETY: null or a group of slots, and slot groups are never freed.
    unsafe { newest.as_ref() }
}

impl HazardSlot {
    /// A free place of this thread's.
    #[inline]
    pub(super) fn take() -> Self {
        OWN.with(|own| {
            let free = own.taken.get().trailing_ones() as usize;
            if let Some(slots) = own.slots.get()
                && let Some(at) = slots.slots.get(free)
            {
                let bit = 1u8 << free;
                own.taken.set(own.taken.get() | bit);
                return Self { at };
            }
            Self::take_slowly(own)
        })
    }

    #[cold]
    #[inline(never)]
    fn take_slowly(own: &Own) -> Self {
        let slots = HazardSlots::claim();
        let [first, ..] = &slots.slots;
        // No slots of its own for a thread that is ending: nobody would give it back.
        let is_first = own.slots.get().is_none() && LEAVING.try_with(|_| ()).is_ok();
        if is_first {
            own.slots.set(Some(slots));
            own.taken.set(1);
        }
        Self { at: first }
    }

    /// Notes a loan. Takes effect for others with the fence that follows.
    #[inline]
    pub(super) fn note(&self, address: *mut ()) {
        self.at.store(address, Ordering::Relaxed);
    }

    /// Strikes the loan out and gives the place back.
    #[inline]
    pub(super) fn give_back(self) {
        // Release: pairs with the Acquire in `is_lent`, so that what was done with the loan comes
        // before what is done by whoever finds it struck out.
        self.at.store(null_mut(), Ordering::Release);
        OWN.with(
            |own| match own.slots.get().and_then(|slots| slots.index_of(self.at)) {
                Some(index) => own.taken.set(own.taken.get() & !(1 << index)),
                None => self.give_back_further(),
            },
        );
    }

    /// Gives back the slots that was claimed for this loan alone.
    #[cold]
    #[inline(never)]
    fn give_back_further(self) {
        let mut next = newest();
        while let Some(slots) = next {
            if slots.index_of(self.at).is_some() {
                slots.give_back();
                return;
            }
            next = slots.next;
        }
    }
}

/// Calls `visit` with every address that is noted on some slots.
pub(super) fn each_lent(mut visit: impl FnMut(*mut ())) {
    let mut next = newest();
    while let Some(slots) = next {
        for place in &slots.slots {
            // Acquire: pairs with the Release in `give_back`.
            let address = place.load(Ordering::Acquire);
            if !address.is_null() {
                visit(address);
            }
        }
        next = slots.next;
    }
}
