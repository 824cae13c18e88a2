//! What the tests of several crates share: directories that vanish, data from a seed, and cases
//! written as text.

pub mod cases;
pub mod data;

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
