//! Directories that look like a store and are laid out by rules that are not followed here.
//!
//! They are refused by name before anything is touched: to open them would read wrong values or cut off
//! the files that their own engine goes by.

use std::path::{Path, PathBuf};

use drumlin_base::{Error, Result};
use drumlin_fs::FileSystem;

use crate::files::names;

/// Where RocksDB's stacked BlobDB keeps its values.
const STACKED_BLOBS: &str = "blob_dir";
/// The first bytes of Pebble's marker files, which name its live MANIFEST and its format.
const PEBBLE_MARKER: &str = "marker.";
/// The prefix that RocksDB's encryption puts before each file.
const ENCRYPTION_PREFIX_BYTES: u64 = 4096;
/// The longest that CURRENT is without it: the name of a MANIFEST and a line end.
const CURRENT_BYTES_MAX: u64 = 64;

/// Refuses a directory of stacked BlobDB, of Pebble, or of encrypted files.
///
/// # Errors
/// `NotSupported` naming what was found; `Io`.
pub(crate) fn refuse(files: &dyn FileSystem, dir: &Path) -> Result<()> {
    let listing = match files.list(dir) {
        Err(error) if error.is_not_found() => return Ok(()),
        listing => listing?,
    };
    let starts = |name: &PathBuf| {
        name.to_string_lossy().starts_with(PEBBLE_MARKER)
            && !drumlin_base::bug!("pebble-taken-for-rocksdb")
    };
    if let Some(marker) = listing.iter().find(|name| starts(name)) {
        let error =
            Error::not_supported("a database of Pebble, whose marker files name its MANIFEST");
        return Err(error.with_file(&dir.join(marker)));
    }
    let has = |wanted: &str| listing.iter().any(|name| name.as_os_str() == wanted);
    if !has("CURRENT") {
        return Ok(());
    }
    let blobs = dir.join(STACKED_BLOBS);
    if has(STACKED_BLOBS) && files.info(&blobs)?.is_dir {
        let error = Error::not_supported(
            "a database of RocksDB's stacked BlobDB, whose values lie in a folder",
        );
        return Err(error.with_file(&blobs));
    }
    let current = names::current(dir);
    let bytes = files.info(&current)?.size;
    let longest = match drumlin_base::bug!("encryption-unseen") {
        true => 0,
        false => ENCRYPTION_PREFIX_BYTES + CURRENT_BYTES_MAX,
    };
    if (ENCRYPTION_PREFIX_BYTES + 1..=longest).contains(&bytes) {
        let error = Error::not_supported(
            "an encrypted database (EncryptedFileSystem of RocksDB): its files begin with 4096 bytes of \
             the cipher's",
        );
        return Err(error.with_file(&current));
    }
    Ok(())
}
