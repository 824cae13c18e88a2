//! Objects with little in them.

use std::ffi::{CStr, c_void};
use std::path::PathBuf;

use drumlin_ffi::bytes::path_of;

/// `rocksdb_memory_allocator_t`, which no function makes.
#[derive(Debug)]
pub(crate) struct MemoryAllocator;

/// `rocksdb_logger_t`, which no function makes.
#[derive(Debug)]
pub(crate) struct Logger;

/// `rocksdb_wal_readoptions_t`, which no function makes.
#[derive(Debug)]
pub(crate) struct WalReadOptions;

/// `rocksdb_envoptions_t`.
#[derive(Debug, Default)]
pub(crate) struct EnvOptions;

/// `rocksdb_dbpath_t`.
#[derive(Debug)]
pub(crate) struct DbPath {
    pub(crate) path: PathBuf,
}

/// `rocksdb_ratelimiter_t`: bytes a second for flushes and compactions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimiter {
    pub(crate) bytes_a_second: u64,
}

/// `rocksdb_perfcontext_t`. Nothing is measured by thread, so all is 0.
#[derive(Debug, Default)]
pub(crate) struct PerfContext;

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_free(memory: *mut c_void) {
    // SAFETY: the C program says that it came from a function here, which means from malloc, or is null.
    unsafe { libc::free(memory) };
}

pub(crate) mod calls {
    use super::{CStr, DbPath, PerfContext, RateLimiter, path_of};

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
        RateLimiter {
            bytes_a_second: u64::try_from(bytes).unwrap_or(0).max(1),
        }
    }

    pub(crate) fn set_perf_level(_level: i32) {}

    pub(crate) fn perfcontext_reset(_context: &PerfContext) {}

    pub(crate) fn perfcontext_report(
        _context: &PerfContext,
        _without_zeros: bool,
    ) -> Option<String> {
        Some(String::new())
    }

    pub(crate) fn perfcontext_metric(_context: &PerfContext, _metric: i32) -> u64 {
        0
    }
}
