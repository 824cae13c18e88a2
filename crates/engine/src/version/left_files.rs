//! Files that left the present versions and that somebody may still read.
//!
//! A file is pinned by every version that names it (and by the owner of one taken out of a version)
//! through the `Arc` of its description; when the last of those goes, the file may be deleted.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use super::edit::BlobFileAddition;
use super::family_versions::FamilyVersions;
use super::file_meta::FileMeta;

/// The numbers of such files, each with a weak reference that shows whether it is still in use. One owner.
#[derive(Debug)]
pub(super) struct LeftFiles<T> {
    files: Vec<(u64, Weak<T>)>,
}

impl<T> Default for LeftFiles<T> {
    fn default() -> Self {
        Self { files: Vec::new() }
    }
}

impl<T> LeftFiles<T> {
    /// Notes that file `number`, described by `file`, has left.
    pub(super) fn add(&mut self, number: u64, file: &Arc<T>) {
        self.files.push((number, Arc::downgrade(file)));
    }

    /// The files nobody has any more, each given once. A follower that opened its database anew has two descriptions of a
    /// file, either of which may be the last. Cost: of the files noted.
    pub(super) fn take_free(&mut self) -> Vec<u64> {
        let mut free = BTreeSet::new();
        self.files.retain(|(number, file)| {
            let pinned =
                file.strong_count() > 0 && !drumlin_base::bug!("files-removed-under-readers");
            if !pinned {
                free.insert(*number);
            }
            pinned
        });
        if !free.is_empty() && !drumlin_base::bug!("file-free-by-one-description") {
            self.files.iter().for_each(|(number, _)| {
                free.remove(number);
            });
        }
        free.into_iter().collect()
    }

    /// The files somebody still has, themselves.
    pub(super) fn pinned_files(&self) -> impl Iterator<Item = Arc<T>> {
        self.files.iter().filter_map(|(_, file)| file.upgrade())
    }

    /// The files somebody still has.
    pub(super) fn pinned(&self) -> impl Iterator<Item = u64> {
        let pinned = self.files.iter();
        let pinned = pinned.filter(|(_, file)| file.strong_count() > 0);
        pinned.map(|(number, _)| *number)
    }
}

/// Files that are not part of the present versions any more.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) tables: LeftFiles<FileMeta>,
    pub(super) blobs: LeftFiles<BlobFileAddition>,
    /// Tables of jobs whose edit was not installed.
    pub(super) stray_tables: Vec<u64>,
    /// Blob files of the same.
    pub(super) stray_blobs: Vec<u64>,
    /// MANIFESTs that could not be written, and those that others took the place of.
    pub(super) manifests: Vec<u64>,
}

/// The files that leave the present versions.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    pub(super) tables: Vec<Arc<FileMeta>>,
    pub(super) blobs: Vec<Arc<BlobFileAddition>>,
}

impl Leaving {
    /// Those of a whole family.
    pub(super) fn take_all(&mut self, family: &FamilyVersions) {
        let tables = family.current.files();
        self.tables.extend(tables.map(|(_, file)| Arc::clone(file)));
        let blobs = family.current.blobs().values();
        self.blobs
            .extend(blobs.map(|blob| Arc::clone(&blob.addition)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_free_once_nobody_has_it_and_is_given_once() {
        let mut left = LeftFiles::default();
        let (a, b) = (Arc::new("a"), Arc::new("b"));
        left.add(1, &a);
        left.add(2, &b);
        drop(a);
        assert_eq!(left.pinned().collect::<Vec<_>>(), [2]);
        assert_eq!(left.take_free(), [1]);
        assert!(left.take_free().is_empty());
        drop(b);
        assert_eq!(left.take_free(), [2]);
    }

    #[test]
    fn a_file_is_free_once_nobody_has_either_of_its_descriptions() {
        let mut left = LeftFiles::default();
        let (before, after) = (Arc::new("a"), Arc::new("a"));
        left.add(1, &before);
        left.add(1, &after);
        drop(after);
        assert!(left.take_free().is_empty());
        drop(before);
        assert_eq!(left.take_free(), [1]);
        let (before, after) = (Arc::new("b"), Arc::new("b"));
        left.add(2, &before);
        left.add(2, &after);
        drop((before, after));
        assert_eq!(left.take_free(), [2]);
    }
}
