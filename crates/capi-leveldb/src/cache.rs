//! `leveldb_cache_t`: how many bytes a program gives to blocks. The database's memory budget is made of it.

use drumlin_ffi::handle::{self, Handle, Tagged};

/// What the handle holds.
#[derive(Debug)]
pub(crate) struct Cache {
    bytes: usize,
}

impl Cache {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Tagged for Cache {
    const TAG: u64 = 0x6c64_6361_6368_6520;
    const NAME: &'static str = "leveldb_cache_t";
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_cache_create_lru(capacity: usize) -> *mut Handle<Cache> {
    handle::create(Cache { bytes: capacity })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_cache_destroy(cache: *mut Handle<Cache>) {
    // SAFETY: the C program's promise.
    unsafe { handle::destroy(cache, "leveldb_cache_destroy") };
}
