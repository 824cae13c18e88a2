//! Environments, versions, and giving memory back.

use std::ffi::{c_char, c_int, c_void};

use drumlin_ffi::bytes::to_c_text;
use drumlin_ffi::handle::{self, Handle, Tagged};

/// `leveldb_env_t`. There is the default one only.
#[derive(Debug)]
pub(crate) struct Env;

impl Tagged for Env {
    const TAG: u64 = 0x6c64_656e_7620_2020;
    const NAME: &'static str = "leveldb_env_t";
}

/// `leveldb_logger_t`, which no function makes.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Logger {
    opaque: [u8; 0],
}

/// The version of `leveldb/c.h` that this is.
const MAJOR: c_int = 1;
const MINOR: c_int = 23;

#[unsafe(no_mangle)]
extern "C" fn leveldb_create_default_env() -> *mut Handle<Env> {
    handle::create(Env)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_env_destroy(env: *mut Handle<Env>) {
    // SAFETY: the C program's promise.
    unsafe { handle::destroy(env, "leveldb_env_destroy") };
}

/// `TEST_TMPDIR`, else a folder of this user's in the system's temporary folder; it is made. Null where it cannot be.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_env_get_test_directory(env: *mut Handle<Env>) -> *mut c_char {
    // SAFETY: as above.
    unsafe { handle::get(env, "leveldb_env_get_test_directory") };
    let given = std::env::var_os("TEST_TMPDIR").filter(|path| !path.is_empty());
    // SAFETY: it has no conditions.
    let user = unsafe { libc::geteuid() };
    let dir = given.map_or_else(
        || std::env::temp_dir().join(format!("leveldbtest-{user}")),
        std::path::PathBuf::from,
    );
    let files = drumlin::Env::default().files;
    match (files.create_dir_all(&dir), dir.to_str()) {
        (Ok(()), Some(name)) => to_c_text(name),
        _ => std::ptr::null_mut(),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_free(memory: *mut c_void) {
    // SAFETY: the C program says that it came from a function here, which means from malloc, or is null.
    unsafe { libc::free(memory) };
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_major_version() -> c_int {
    MAJOR
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_minor_version() -> c_int {
    MINOR
}
