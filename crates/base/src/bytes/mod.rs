//! Bytes that are owned, pinned in place, or shared; and the memory they are in.
//!
//! - [`pinned`]: the result of a read: bytes and the owner that keeps them alive.
//! - [`shared`]: a counted buffer with its counter, its decoded header, and its bytes in one piece of memory.
//! - [`slab`]: memory for many such buffers, given back to the system when it is no longer used.
//! - [`striped_pin`]: a reference count with a counter for each stripe of threads.
//! - [`hazard_ptr`]: pointers that readers follow without counting; they publish the addresses they use in
//!   [`hazard_slots`]; [`barrier`] is the fence, paid for by the thread that retires a value.
//! - [`local_pool`]: a pool of expensive objects with a slot for each stripe of threads.
//! - [`prefetch`]: prefetching cache lines; [`lanes`]: comparing many short numbers with one at a time.
//! - [`pages`]: huge pages, mapped and unmapped.
//! - [`resident`]: a whole file in memory, and values pinned in it.

mod barrier;
mod hazard_ptr;
#[cfg(all(test, not(loom)))]
mod hazard_ptr_tests;
mod hazard_slots;
mod lanes;
mod local_pool;
mod pages;
mod pinned;
mod prefetch;
mod resident;
mod shared;
mod slab;
#[cfg(all(test, not(loom)))]
mod slab_tests;
mod striped_pin;

pub use hazard_ptr::{HazardGuard, HazardPtr, RetireBatch, Retired};
pub use lanes::equal_lanes;
pub use local_pool::LocalPool;
pub use pages::{HUGE_PAGE_BYTES, HugePage};
pub use pinned::{Pin, PinnedSlice, SMALL_BYTES};
pub use prefetch::{LINE_BYTES, prefetch};
pub use resident::{ResidentBytes, StableBytes};
pub use shared::{Draft, SharedBytes};
pub use slab::{CHUNK_SPANS, Slab, SlabPlace};
pub use striped_pin::StripedPin;
