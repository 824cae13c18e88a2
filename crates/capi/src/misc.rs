//! Objects with little in them.

use std::ffi::{CStr, c_void};
use std::path::PathBuf;

use drumlin::RateLimit;
use drumlin_ffi::bytes::path_of;

/// `rocksdb_memory_allocator_t`, which no function makes.
#[derive(Debug)]
pub(crate) struct MemoryAllocator;

/// `rocksdb_optimistictransactiondb_lock_buckets_t`. Locks are not in buckets here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockBuckets;

/// `rocksdb_sst_partitioner_factory_t`: where output tables of a compaction are cut. They are cut by size here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partitioner;

/// `rocksdb_dbpath_t`.
#[derive(Debug)]
pub(crate) struct DbPath {
    pub(crate) path: PathBuf,
}

/// `rocksdb_ratelimiter_t`: bytes a second for flushes and compactions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimiter {
    pub(crate) bytes_a_second: u64,
    /// Whether it follows what is asked for.
    is_tuned: bool,
}

impl RateLimiter {
    fn new(bytes: i64, is_tuned: bool) -> Self {
        Self {
            bytes_a_second: u64::try_from(bytes).unwrap_or(0).max(1),
            is_tuned,
        }
    }

    pub(crate) fn to_engine(self) -> RateLimit {
        match self.is_tuned {
            // A twentieth is the least.
            true => RateLimit::Auto(self.bytes_a_second.max(20)),
            false => RateLimit::Fixed(self.bytes_a_second),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_free(memory: *mut c_void) {
    // SAFETY: the C program says that it came from a function here, which means from malloc, or is null.
    unsafe { libc::free(memory) };
}

pub(crate) mod calls {
    use super::{CStr, DbPath, LockBuckets, Partitioner, RateLimiter, path_of};

    pub(crate) fn dbpath_create(path: &CStr, _target_bytes: u64) -> DbPath {
        DbPath {
            path: path_of(path),
        }
    }

    pub(crate) fn ratelimiter_create(
        bytes: i64,
        _refill_micros: i64,
        _fairness: i32,
    ) -> RateLimiter {
        RateLimiter::new(bytes, false)
    }

    pub(crate) fn ratelimiter_create_auto_tuned(
        bytes: i64,
        _refill_micros: i64,
        _fairness: i32,
    ) -> RateLimiter {
        RateLimiter::new(bytes, true)
    }

    /// What reads is not slowed down, whatever the mode.
    pub(crate) fn ratelimiter_create_with_mode(
        bytes: i64,
        _refill_micros: i64,
        _fairness: i32,
        _mode: i32,
        is_tuned: bool,
    ) -> RateLimiter {
        RateLimiter::new(bytes, is_tuned)
    }

    pub(crate) fn optimistictransactiondb_lock_buckets_create(
        _count: usize,
        _aligned: bool,
    ) -> LockBuckets {
        LockBuckets
    }

    pub(crate) fn optimistictransactiondb_lock_buckets_approximate_memory_usage(
        _buckets: &LockBuckets,
    ) -> usize {
        0
    }

    pub(crate) fn sst_partitioner_fixed_prefix_factory_create(_len: usize) -> Partitioner {
        Partitioner
    }
}
