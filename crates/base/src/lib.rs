//! The vocabulary that all crates share: keys, codecs, checksums, errors, pinned bytes.
//!
//! Nothing in this crate does I/O, reads a clock or starts a thread. Foreign bytes are a claim until they are
//! checked: a decoder returns an error, it never panics and never indexes blindly.

pub mod budget;
pub mod bugs;
pub mod bytes;
pub mod calendar;
pub mod checksum;
pub mod coding;
pub mod comparator;
pub mod error;
pub mod hash;
pub mod histogram;
pub mod iterator;
pub mod key;
pub mod limits;
pub mod metrics;
pub mod operators;
pub mod perf;
pub mod rng;
pub mod sampler;
pub mod sync;

pub use budget::{Account, MemoryBudget, MemoryUse, Reclaim};
pub use bytes::{PinnedSlice, SharedBytes, Slab};
pub use comparator::{Comparator, KeyOrder};
pub use error::{Error, ErrorKind, Result};
pub use iterator::{InternalIterator, ValueCode};
pub use key::{RangeTombstone, SEQNO_MAX, SeqNo, ValueKind};
pub use operators::{
    CompactionFilter, CompactionFilterFactory, FilterDecision, FilterJob, MergeOperator,
    PrefixExtractor,
};
