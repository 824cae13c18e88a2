//! Opening for reading beside a process that writes.
//!
//! A writer removes obsolete files while a reader opens: tables that were compacted, WAL files that were
//! flushed, an old MANIFEST. It writes a new WAL over an old one, and the record it is appending ends in the
//! middle. So an opening that fails, or that may have missed something, begins anew from CURRENT, until it has
//! all files of one moment; from then on it holds them open, and the writer may remove their names. Damage is
//! told apart by this: it is the same twice in a row, and nobody changed the directory meanwhile.
//!
//! A moment is consistent: the MANIFEST is read until it says no more than was read ([`crate::db::settle`]); the first WAL that
//! it needs is still there once the WAL files were listed, and nothing was flushed before they were held, so none of those
//! behind it has gone. A WAL that was read still begins with a record of its own number: another that is written over it begins
//! at the front. So small ones are copied at once. Whatever had begun by then was replayed. A WAL that began later, under
//! a name made ahead, may go on where the one before it was filled behind the reader: the moment ends before it. Once they
//! were replayed, the MANIFEST is looked at again: what a large one has, or one that was made ahead, may be of a time after
//! a table was taken in or a family came or went.
//!
//! Limit: at most half as many files are held as the process may have open. Of a store with more, a table that
//! a compaction removes before it is read the first time is not found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::FileSystem;

use crate::db::open::{self, OpenMode, Opened};
use crate::db::settle::may_pass;
use crate::files::held_files::HeldFiles;
use crate::files::names;
use crate::options::settings::Options;

/// How often it is begun anew. Beside a writer with memtables of 16 KiB on two cores, one time in five it is, once.
const ATTEMPTS_MAX: usize = 1000;
/// Longest content of CURRENT that is compared.
const CURRENT_BYTES_MAX: u64 = 1 << 10;

/// Opens `dir` for reading, as of a moment after the call began, and as one that goes on from there where it `follows`.
/// With the files that it holds.
///
/// # Errors
/// As [`open::open`]; `Busy` where a writer was faster each time.
pub(crate) fn open_read_only(
    dir: &Path,
    options: &Options,
    follows: bool,
) -> Result<(Opened, Arc<HeldFiles>)> {
    let mut before = Picture::of(dir, options)?;
    let mut failed: Option<(String, Picture)> = None;
    let mut last = None;
    for _ in 0..ATTEMPTS_MAX {
        let open_max = options.max_open_files.unwrap_or(usize::MAX);
        let held = Arc::new(HeldFiles::new(Arc::clone(&options.env.files), open_max));
        let outcome = attempt(dir, options, &held, follows);
        let after = Picture::of(dir, options)?;
        match outcome {
            Ok(Some(opened)) if !held.is_in_doubt() || before == after => {
                return Ok((opened, held));
            }
            Ok(_) => failed = None,
            Err(error) => {
                let said = error.to_string();
                let again = failed.take().is_some_and(|(message, picture)| {
                    message == said && picture == before && before == after
                });
                if again || !may_pass(&error) {
                    return Err(error);
                }
                failed = Some((said, after.clone()));
                last = Some(error);
            }
        }
        before = after;
    }
    let last = last.map_or_else(String::new, |error| format!("; the last time: {error}"));
    let message = format!("a writer changes the files faster than they can be opened{last}");
    Err(Error::new(ErrorKind::Busy, message).with_file(dir))
}

/// Opens `dir` once; nothing where what was opened is not of one moment.
fn attempt(
    dir: &Path,
    options: &Options,
    held: &Arc<HeldFiles>,
    follows: bool,
) -> Result<Option<Opened>> {
    let mut options = options.clone();
    options.env.files = Arc::clone(held) as Arc<dyn FileSystem>;
    let mode = OpenMode::ReadOnly { held, follows };
    let opened = open::open(dir, options, &[], mode)?;
    let store = &opened.engine.store;
    let is_one = {
        let versions = &mut store.lock_state().versions;
        let needed_from = versions.min_log_number();
        held.check_replayed(&store.id.wal_dir, &store.id.recovered().wals, needed_from)?;
        versions.look_on()? && !versions.has_changed_aside()
    };
    Ok(is_one.then_some(opened))
}

/// Signs that somebody changed the database: CURRENT, and the names of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Picture {
    current: Vec<u8>,
    names: Vec<PathBuf>,
}

impl Picture {
    /// # Errors
    /// `Io`: two pictures of what could not be looked at would be the same.
    fn of(dir: &Path, options: &Options) -> Result<Self> {
        let files = &options.env.files;
        let mut names = Vec::new();
        for dir in std::iter::once(dir).chain(options.wal_dir.as_deref()) {
            match files.list(dir) {
                Ok(listed) => names.extend(listed),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        names.sort_unstable();
        // What is wrong with the file is the opening's to say.
        let current = match files.read_file(&names::current(dir), CURRENT_BYTES_MAX) {
            Err(error) if error.is_not_found() || error.kind() == ErrorKind::TooLarge => Vec::new(),
            read => read?,
        };
        Ok(Self { current, names })
    }
}
