//! Lines at the end of a file that others may read, rename and remove meanwhile: logs.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use drumlin_base::{Error, Result};

/// Adds `bytes` at the end of the file at `path`, which is made if it is missing. It is opened for this alone, so that who renames
/// it meanwhile gets a new one. Nothing is synced.
///
/// # Errors
/// `Io`; then some of the bytes may be there.
pub fn append_to_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut how = OpenOptions::new();
    how.append(true).create(true).mode(0o640);
    let file = how.open(path);
    let mut file = file.map_err(|source| Error::io("open to append", path, source))?;
    let written = file.write_all(bytes);
    written.map_err(|source| Error::io("append to", path, source))
}

#[cfg(test)]
mod tests {
    use super::append_to_file;

    /// Goal: a log that is renamed goes on under its name. Method: lines before and after.
    #[test]
    fn lines_are_added_and_a_renamed_file_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, old) = (dir.path().join("log"), dir.path().join("log.1"));
        for line in ["a\n", "b\n"] {
            append_to_file(&path, line.as_bytes()).expect("appends");
        }
        std::fs::rename(&path, &old).expect("renames");
        append_to_file(&path, b"c\n").expect("appends");
        assert_eq!(std::fs::read_to_string(&old).expect("reads"), "a\nb\n");
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), "c\n");
        assert!(append_to_file(dir.path(), b"d\n").is_err());
    }
}
