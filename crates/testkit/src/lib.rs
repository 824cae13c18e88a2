//! Parts that the tests of several crates share: temporary directories, data from a seed, cases
//! written as text, a model of a database, a redis-server, and C programs.

pub mod c_programs;
pub mod cases;
pub mod data;
pub mod model;
pub mod redis;

pub use cases::{Case, check_cases};
pub use data::{pairs, untidy_bytes};
pub use tempfile::TempDir;

/// An empty directory that is removed when dropped.
///
/// # Panics
/// When the system's directory for temporary files cannot be written.
pub fn temp_dir() -> TempDir {
    tempfile::Builder::new()
        .prefix("drumlin-")
        .tempdir()
        .expect("the directory for temporary files takes a directory")
}

/// As [`temp_dir`], on a file system in memory where the system has one.
///
/// # Panics
/// As [`temp_dir`].
pub fn memory_dir() -> TempDir {
    let made = tempfile::Builder::new()
        .prefix("drumlin-")
        .tempdir_in("/dev/shm");
    made.unwrap_or_else(|_| temp_dir())
}
