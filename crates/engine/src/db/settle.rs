//! The moment that an opening for reading shows, beside a process that writes.
//!
//! The MANIFEST is read once, and then read on. A round takes in what is new there, holds the files that its versions need,
//! and looks at the MANIFEST again: if that says no more than what was flushed and rewritten, what is held is one moment.
//! Between the list of the WAL files and their being held nothing may have been flushed: a writer lets them go in no order.
//! So a round costs what changed since the one before, and the WAL, however long the MANIFEST is.

use std::path::Path;
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result};

use crate::files::held_files::HeldFiles;
use crate::options::settings::Options;
use crate::options::stored as stored_options;
use crate::version::{NewFiles, Profile, RecoveredInfo, VersionSet};

/// How many rounds there are until the opening begins anew.
const ROUNDS_MAX: usize = 100;

/// Whether `error` may come of files that went while they were opened: of none of them being there, too.
pub(super) fn may_pass(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::Corruption | ErrorKind::NotSupported
    )
}

/// The versions in `dir` with the findings of their recovery, whose files `held` has. Where `held` is in doubt, they are one
/// moment only if nobody changed the directory meanwhile.
///
/// # Errors
/// As [`VersionSet::recover_to_read`]; `NotFound` of a file that went, or where the writer began another MANIFEST or was
/// faster each time.
pub(super) fn read_moment(
    dir: &Path,
    options: &Options,
    held: &HeldFiles,
    profile: Profile,
    may_have_sections: bool,
) -> Result<(VersionSet, RecoveredInfo)> {
    let files = Arc::clone(&options.env.files);
    let order_of =
        |name: &str, written_in: Option<&str>| stored_options::order_of(options, name, written_in);
    let wal_dir = options.wal_dir.as_deref().unwrap_or(dir);
    let mut versions = VersionSet::recover_to_read(files, dir, profile, &order_of)?;
    let mut unchecked = Unchecked::All;
    for _ in 0..ROUNDS_MAX {
        let info = versions.needs().with_sections(may_have_sections);
        let taken = held.take_wals(wal_dir, &info);
        look_on(&mut versions, dir)?;
        if taken.is_ok() && versions.has_let_wals_go() {
            // They go in no order: one that was gone may be newer than one that was there.
            unchecked.extend(versions.take_in(&order_of)?);
            held.release_obsolete(dir, &mut versions);
            continue;
        }
        let found = taken
            .and_then(|()| held.copy_wals(wal_dir))
            .and_then(|()| unchecked.check(&versions))
            .and_then(|()| held.take_models(dir, &versions));
        look_on(&mut versions, dir)?;
        let is_moment = found.is_ok() && !held.is_in_doubt() && !versions.has_changed_aside();
        if is_moment || versions.has_taken_all() {
            return found.map(|()| (versions, info));
        }
        if let Err(error) = found
            && !may_pass(&error)
        {
            return Err(error);
        }
        unchecked.extend(versions.take_in(&order_of)?);
        held.release_obsolete(dir, &mut versions);
    }
    let message = "a writer changes the files faster than they can be opened";
    Err(Error::new(ErrorKind::NotFound, message).with_file(dir))
}

/// Reads what is new in the MANIFEST of `versions`.
fn look_on(versions: &mut VersionSet, dir: &Path) -> Result<()> {
    if versions.look_on()? {
        return Ok(());
    }
    let message = "the writer began another MANIFEST";
    Err(Error::new(ErrorKind::NotFound, message).with_file(dir))
}

/// The files of versions that were not looked at.
enum Unchecked {
    All,
    These(NewFiles),
}

impl Unchecked {
    fn check(&mut self, versions: &VersionSet) -> Result<()> {
        match self {
            Self::All => versions.check_tables()?,
            Self::These(files) => versions.check_new(files)?,
        }
        *self = Self::These(NewFiles::default());
        Ok(())
    }

    fn extend(&mut self, more: NewFiles) {
        if let Self::These(files) = self {
            files.extend(more);
        }
    }
}
