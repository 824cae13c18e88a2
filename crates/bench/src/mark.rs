//! The mark of directories whose stores a benchmark made, and which the next one may empty.
//!
//! Invariant: a directory without the mark is never emptied unless the flags say so in so many words.

use std::path::Path;

use drumlin_base::{Error, Result};
use drumlin_fs::{CreateOptions, Env, FileKind};

/// The file's name; no engine has one like it.
pub const NAME: &str = "MADE-BY-BENCH";

const CONTENT: &[u8] =
    b"A benchmark made what is in this directory, and the next one empties it.\n";

/// Whether `dir` has the mark.
///
/// # Errors
/// `Io`.
pub fn is_set(dir: &Path, env: &Env) -> Result<bool> {
    env.files.exists(&dir.join(NAME))
}

/// Marks `dir`, which is made if it is missing.
///
/// # Errors
/// `Io`, `NoSpace`.
pub fn set(dir: &Path, env: &Env) -> Result<()> {
    env.files.create_dir_all(dir)?;
    let path = dir.join(NAME);
    let mut file = env
        .files
        .create(&path, CreateOptions::new(FileKind::Other))?;
    file.append(CONTENT)?;
    file.close()
}

/// Takes the mark of `dir` away, if it has one.
///
/// # Errors
/// `Io`.
pub fn clear(dir: &Path, env: &Env) -> Result<()> {
    match env.files.remove(&dir.join(NAME)) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// The error for a `dir` that would have to be emptied and that no benchmark made.
pub fn refusal(dir: &Path) -> Error {
    Error::invalid_argument(format!(
        "{} holds files of a store that no benchmark made, and would be emptied: name another directory, \
         keep what is there with --use_existing_db, or say --overwrite-existing-store",
        dir.display()
    ))
}
