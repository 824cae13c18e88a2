//! RocksDB's parsing of a directory's newest OPTIONS file.

use std::ffi::CStr;
use std::path::Path;
use std::ptr;

use crate::memory::{c_path, take_error};
use crate::rocks_ffi::{self as ffi, rocksdb_free};

/// The options may refer to a block cache of this size.
const CACHE_BYTES: usize = 1 << 20;

/// The families in the newest OPTIONS file of `dir`; RocksDB must know every key and value in it.
///
/// # Errors
/// RocksDB's message.
pub fn load_latest_options(dir: &Path) -> Result<Vec<String>, String> {
    let path = c_path(dir);
    let (env, cache) = (
        ffi::rocksdb_create_default_env(),
        ffi::rocksdb_cache_create_lru(CACHE_BYTES),
    );
    let (mut options, mut count) = (ptr::null_mut(), 0);
    let (mut names, mut each) = (ptr::null_mut(), ptr::null_mut());
    let mut error = ptr::null_mut();
    // SAFETY: path, env and cache live during the call, and the library fills in the rest.
    unsafe {
        ffi::rocksdb_load_latest_options(
            path.as_ptr(),
            env,
            false,
            cache,
            &mut options,
            &mut count,
            &mut names,
            &mut each,
            &mut error,
        );
    }
    let loaded = take_error(error, rocksdb_free).map(|()| {
        let name_at = |index| {
            // SAFETY: there are `count` names.
            let name = unsafe { names.add(index) };
            // SAFETY: it is one of these.
            let name = unsafe { *name };
            // SAFETY: and ends with a NUL.
            let name = unsafe { CStr::from_ptr(name) };
            name.to_string_lossy().into_owned()
        };
        let all = (0..count).map(name_at).collect();
        // SAFETY: all of it is the library's, and destroyed once.
        unsafe { ffi::rocksdb_load_latest_options_destroy(options, names, each, count) };
        all
    });
    // SAFETY: created above, destroyed once; nothing uses it any more.
    unsafe { ffi::rocksdb_cache_destroy(cache) };
    // SAFETY: the same.
    unsafe { ffi::rocksdb_env_destroy(env) };
    loaded
}
