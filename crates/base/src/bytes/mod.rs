//! Bytes that are owned, pinned where they already lie, or shared; and the memory they lie in.
//!
//! - [`pinned`]: what a read returns: bytes with what keeps them alive.
//! - [`shared`]: a counted buffer with its counter, what was decoded from it, and its bytes in one
//!   piece of memory.
//! - [`slab`]: memory for many such buffers that is given back to the system in the end.
//! - [`striped_pin`]: a value kept in memory by pins that threads count apart.
//! - [`hazard_ptr`]: places that lend a counted handle to readers who count nothing; [`hazard_slots`] is where a
//!   reader notes its loans, [`barrier`] the fence whose cost lies with who takes handles back.
//! - [`local_pool`]: things laid down where their thread finds them again.
//! - [`prefetch`]: asking for cache lines before they are needed; [`lanes`]: comparing many short numbers
//!   with one at a time.
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
