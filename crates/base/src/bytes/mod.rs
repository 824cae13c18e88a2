//! Bytes that are owned, pinned where they already lie, or shared; and the memory they lie in.
//!
//! - [`pinned`]: what a read returns: bytes with what keeps them alive.
//! - [`shared`]: a counted buffer with its counter, what was decoded from it, and its bytes in one
//!   piece of memory.
//! - [`slab`]: memory for many such buffers that is given back to the system in the end.
//! - [`pages`]: huge pages, mapped and unmapped.
//! - [`resident`]: a whole file in memory, and values pinned in it.

mod pages;
mod pinned;
mod resident;
mod shared;
mod slab;
#[cfg(all(test, not(loom)))]
mod slab_tests;

pub use pages::{HUGE_PAGE_BYTES, HugePage};
pub use pinned::{Pin, PinnedSlice};
pub use resident::{ResidentBytes, StableBytes};
pub use shared::{Draft, SharedBytes};
pub use slab::{CHUNK_SPANS, Place, Slab};
