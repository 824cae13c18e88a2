//! Reading on in a MANIFEST that another process writes.
//!
//! Edits are read first and taken in later, so that a reader of the WAL can see whether the versions that it has are
//! still those of the moment it read the WAL at: a writer removes or reuses a WAL, or logs writes behind a change that
//! is no write, only after the edit that says so.
//!
//! One thread at a time.

use std::sync::Arc;

use drumlin_base::{Error, Result};
use drumlin_fs::FileSystem;

use super::left_files::Leaving;
use super::manifest::locate_manifest;
use super::recover::{OrderOf, check_blob_file, check_table};
use super::set::{apply_edits, fill_epochs};
use super::{BlobFileAddition, FamilyVersions, RecoveredInfo, VersionEdit, VersionSet};
use crate::files::names;
use crate::wal::record::Verdict;

/// Files that edits brought.
#[derive(Debug)]
pub(crate) struct NewFiles {
    /// Number and bytes of each.
    tables: Vec<(u64, u64)>,
    blobs: Vec<BlobFileAddition>,
    /// Whether no edit brought anything.
    pub(crate) is_nothing: bool,
}

impl Default for NewFiles {
    fn default() -> Self {
        Self {
            tables: Vec::new(),
            blobs: Vec::new(),
            is_nothing: true,
        }
    }
}

impl NewFiles {
    pub(crate) fn extend(&mut self, more: Self) {
        self.tables.extend(more.tables);
        self.blobs.extend(more.blobs);
    }
}

impl VersionSet {
    /// The set that reads on in the MANIFEST in place of this one, with its versions; `None` where that was asked before
    /// or the set was not opened for reading.
    pub(crate) fn take_reader(&mut self) -> Option<Self> {
        let tail = self.tail.take()?;
        let mut reader = self.read_copy();
        reader.tail = Some(tail);
        Some(reader)
    }

    /// Reads files through `files`.
    pub(crate) fn set_files(&mut self, files: Arc<dyn FileSystem>) {
        self.files = files;
    }

    /// Has the versions and numbers of `other`, which read on.
    pub(crate) fn take_over(&mut self, other: &Self) {
        self.families.clone_from(&other.families);
        self.recorded = other.recorded.clone();
        self.manifest_number = other.manifest_number;
    }

    /// Has the tables of `former`, which another MANIFEST described, given once they are free.
    pub(crate) fn succeed(&mut self, former: &mut Self) {
        self.left = std::mem::take(&mut former.left);
        let families = std::mem::take(&mut former.families);
        let mut leaving = Leaving::default();
        for family in families.into_values() {
            leaving.take_all(&family);
        }
        self.note_left(leaving);
    }

    /// What the recovery of these versions would have to know.
    pub(crate) fn needs(&self) -> RecoveredInfo {
        self.info(Verdict::Clean)
    }

    /// Looks for edits after those that were read; false where CURRENT names another MANIFEST by now.
    ///
    /// # Errors
    /// `Corruption` with file and offset; `Io`.
    pub(crate) fn look_on(&mut self) -> Result<bool> {
        if locate_manifest(&*self.files, &self.dir)? != Some(self.manifest_number) {
            return Ok(false);
        }
        let path = names::manifest(&self.dir, self.manifest_number);
        let Some(tail) = &mut self.tail else {
            return Ok(true);
        };
        tail.read(self.files.open(&path)?)
            .map_err(|error| error.with_file(&path))?;
        Ok(true)
    }

    /// Whether what was read and not taken in says more than which tables have what these tables have.
    pub(crate) fn has_turned(&self) -> bool {
        let tail = self.tail.as_ref();
        tail.is_some_and(|tail| tail.pending.iter().flatten().any(|edit| !is_rewrite(edit)))
    }

    /// Whether what was read and not taken in says more than what was flushed and which tables have what these tables have:
    /// writes that were logged behind it are of another time than these versions.
    pub(crate) fn has_changed_aside(&self) -> bool {
        let tail = self.tail.as_ref();
        let is_flush = |edit: &VersionEdit| {
            edit.log_number.is_some() && edit.deleted_files.is_empty() && edit.add_family.is_none()
        };
        tail.is_some_and(|tail| {
            let mut edits = tail.pending.iter().flatten();
            edits.any(|edit| !is_rewrite(edit) && !is_flush(edit))
                && !drumlin_base::bug!("reader-passes-over-what-came-aside")
        })
    }

    /// Whether the writer may have let WAL files go since what was taken in: what was read says that families need fewer.
    pub(crate) fn has_let_wals_go(&self) -> bool {
        let lets_go = |edit: &VersionEdit| edit.log_number.is_some() || edit.drop_family;
        self.tail.as_ref().is_some_and(|tail| {
            tail.pending.iter().flatten().any(lets_go)
                && !drumlin_base::bug!("reader-passes-over-wals-let-go")
        })
    }

    /// Whether all that was read was taken in.
    pub(crate) fn has_taken_all(&self) -> bool {
        self.tail
            .as_ref()
            .is_none_or(|tail| tail.pending.is_empty())
    }

    /// Takes in what was read. Gives the files that are new.
    ///
    /// # Errors
    /// `Corruption`; those of `order_of`.
    pub(crate) fn take_in(&mut self, order_of: OrderOf<'_>) -> Result<NewFiles> {
        let mut files = NewFiles::default();
        while let Some(edits) = self.tail.as_mut().and_then(|tail| tail.pending.pop_front()) {
            for edit in &edits {
                let tables = edit.new_files.iter();
                files
                    .tables
                    .extend(tables.map(|(_, file)| (file.number, file.size)));
                files.blobs.extend(edit.blob_additions.iter().cloned());
            }
            files.is_nothing = false;
            self.take_group(edits, order_of)?;
        }
        Ok(files)
    }

    fn take_group(&mut self, mut edits: Vec<VersionEdit>, order_of: OrderOf<'_>) -> Result<()> {
        let mut next = self.families.clone();
        let mut leaving = Leaving::default();
        for edit in &mut edits {
            let id = edit.column_family;
            if let Some(name) = &edit.add_family {
                let order = order_of(name, edit.comparator.as_deref())?;
                let log_number = edit.log_number.unwrap_or(0);
                next.insert(id, FamilyVersions::new(id, name, order, log_number));
            } else if edit.drop_family {
                if let Some(family) = next.remove(&id) {
                    leaving.take_all(&family);
                }
                continue;
            }
            let Some(family) = next.get_mut(&id) else {
                let message = format!("an edit concerns the unknown family {id}");
                return Err(Error::corruption(message));
            };
            let mut next_epoch = family.next_epoch;
            fill_epochs(edit, family, &mut next_epoch);
            apply_edits(family, std::slice::from_ref(edit), &mut leaving)?;
        }
        self.families = next;
        edits.iter().for_each(|edit| self.recorded.apply(edit));
        self.note_left(leaving);
        Ok(())
    }

    /// Looks whether `files` are there with the right sizes, but for those that left the versions since, and forgets
    /// those that are.
    ///
    /// # Errors
    /// As [`VersionSet::check_tables`].
    pub(crate) fn check_new(&self, files: &mut NewFiles) -> Result<()> {
        while let Some(&(number, size)) = files.tables.last() {
            if self.has_table(number) {
                check_table(&*self.files, &self.dir, (number, size))?;
            }
            files.tables.pop();
        }
        while let Some(blob) = files.blobs.last() {
            if self.has_blob(blob.number) {
                check_blob_file(&*self.files, &self.dir, blob)?;
            }
            files.blobs.pop();
        }
        Ok(())
    }

    /// Whether a version has the table `number`.
    pub(crate) fn has_table(&self, number: u64) -> bool {
        let mut families = self.families.values();
        families.any(|family| family.current.level_of(number).is_some())
    }

    /// Whether a version has the blob file `number`.
    pub(crate) fn has_blob(&self, number: u64) -> bool {
        let mut families = self.families.values();
        families.any(|family| family.current.blobs().contains_key(&number))
    }
}

/// Whether `edit` moves what some tables had to others, and does nothing else: what it makes is in those before.
fn is_rewrite(edit: &VersionEdit) -> bool {
    let rewrites = !edit.deleted_files.is_empty() && !edit.new_files.is_empty();
    let tells_of_tables = edit.changes_tables() && !rewrites;
    let tells_more = edit.log_number.is_some() || edit.add_family.is_some() || edit.drop_family;
    !tells_of_tables && !tells_more || drumlin_base::bug!("follower-passes-over-turns")
}
