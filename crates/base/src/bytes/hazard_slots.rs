//! The hazard slots of each thread: the place in which it publishes the addresses that its guards
//! protect.
//!
//! A thread's slots are a cache line of eight addresses, which that thread writes and any thread may read.
//! They are claimed with the thread's first guard, given back when the thread ends, and never freed: there
//! are as many as threads ever held guards at one time. A thread with more than eight guards claims eight
//! more slots for each further guard.
//!
//! Thread safety: the list of all slots only grows; slots are written by the thread that claimed them.

use std::cell::Cell;
use std::ptr::null_mut;

use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering, fence};

/// Guards that fit a thread's own slots: a get has four at most, user code inside it may get again.
const SLOTS: usize = 8;

/// The slots of one thread.
#[repr(align(64))]
pub(super) struct HazardSlots {
    slots: [AtomicPtr<()>; SLOTS],
    is_claimed: AtomicBool,
    next: Option<&'static HazardSlots>,
}

/// One slot, this thread's until it is given back.
#[derive(Clone, Copy)]
pub(super) struct HazardSlot {
    /// The only field, so that a guard is two words and stays in registers: moving a pair of words that
    /// were just written one by one stalls store-to-load forwarding.
    at: &'static AtomicPtr<()>,
}

/// A thread's view of its slots. It has no destructor, so that reaching it is one load.
struct Own {
    slots: Cell<Option<&'static HazardSlots>>,
    /// A bit for each slot in use.
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
        // A guard that outlives this keeps the slots: it still clears one.
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
    /// Claims slots that no other thread has.
    fn claim() -> &'static Self {
        let mut next = newest();
        while let Some(slots) = next {
            // Acquire: pairs with the Release in `give_back`. Most slots are claimed: look before the swap.
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
            // SAFETY: null or slots, which are never freed.
            let next = unsafe { newest.as_ref() };
            // SAFETY: these slots are not in the list yet, so this thread alone knows them.
            unsafe { (*at).next = next };
            // Release: pairs with the Acquire in `newest`, so that the slots are seen whole.
            let added = NEWEST.compare_exchange(newest, at, Ordering::AcqRel, Ordering::Relaxed);
            if added.is_ok() {
                // An address is published here only after the slots are in the list. If a thread
                // that retired a value before does not find these slots, they hold no guard of that
                // value.
                fence(Ordering::SeqCst);
                // SAFETY: leaked above; from here on it is only shared.
                return unsafe { &*at };
            }
        }
    }

    /// The index of `place` among these slots.
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
    // SAFETY: null or slots, which are never freed.
    unsafe { newest.as_ref() }
}

impl HazardSlot {
    /// A free slot of this thread's.
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
        // A thread that is ending claims no slots of its own: nobody would give them back.
        let is_first = own.slots.get().is_none() && LEAVING.try_with(|_| ()).is_ok();
        if is_first {
            own.slots.set(Some(slots));
            own.taken.set(1);
        }
        Self { at: first }
    }

    /// Publishes an address. Others see it after the fence that follows.
    #[inline]
    pub(super) fn publish(&self, address: *mut ()) {
        self.at.store(address, Ordering::Relaxed);
    }

    /// Clears the slot and gives it back.
    #[inline]
    pub(super) fn give_back(self) {
        // Release: pairs with the Acquire in `each_protected`, so that accesses under the guard come
        // before those of a thread that finds the slot clear.
        self.at.store(null_mut(), Ordering::Release);
        OWN.with(
            |own| match own.slots.get().and_then(|slots| slots.index_of(self.at)) {
                Some(index) => own.taken.set(own.taken.get() & !(1 << index)),
                None => self.give_back_further(),
            },
        );
    }

    /// Gives back the slots that were claimed for this guard alone.
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

/// Calls `visit` with every address that is in some slot.
pub(super) fn each_protected(mut visit: impl FnMut(*mut ())) {
    let mut next = newest();
    while let Some(slots) = next {
        for slot in &slots.slots {
            // Acquire: pairs with the Release in `give_back`.
            let address = slot.load(Ordering::Acquire);
            if !address.is_null() {
                visit(address);
            }
        }
        next = slots.next;
    }
}
