//! Files that left the versions, or never came into one: when they may be deleted.

use super::obsolete::Needed;
use super::set::VersionSet;
use std::collections::HashSet;

impl VersionSet {
    /// Tables that left the versions and that nobody reads any more: they may be deleted, and are
    /// given once. Empty while a failed write leaves in doubt what the disk names.
    ///
    /// Cost: of the tables that left and are still read.
    pub fn take_obsolete_tables(&mut self) -> Vec<u64> {
        match self.in_doubt {
            true => Vec::new(),
            false => {
                let mut free = self.left.tables.take_free();
                free.append(&mut self.left.stray_tables);
                free
            }
        }
    }

    /// As [`VersionSet::take_obsolete_tables`], for blob files.
    pub fn take_obsolete_blobs(&mut self) -> Vec<u64> {
        match self.in_doubt {
            true => Vec::new(),
            false => {
                let mut free = self.left.blobs.take_free();
                free.append(&mut self.left.stray_blobs);
                free
            }
        }
    }

    /// As [`VersionSet::take_obsolete_tables`], for MANIFESTs that a newer one replaced.
    pub fn take_obsolete_manifests(&mut self) -> Vec<u64> {
        match self.in_doubt {
            true => Vec::new(),
            false => std::mem::take(&mut self.left.manifests),
        }
    }

    /// Gives up the tables and blob files of a job whose edit was not installed. They are obsolete as soon as
    /// it is certain that no MANIFEST names them.
    pub fn disown(&mut self, tables: &[u64], blobs: &[u64]) {
        self.left.stray_tables.extend_from_slice(tables);
        self.left.stray_blobs.extend_from_slice(blobs);
    }

    /// The ids of the models that tables name which are in a version that anybody holds; `None` while
    /// nothing may be deleted.
    ///
    /// Cost: of all tables.
    pub fn models_in_use(&self) -> Option<HashSet<u64>> {
        if self.in_doubt || self.read_only {
            return None;
        }
        let families = self.families.values();
        let present = families.flat_map(|family| family.current.files());
        let mut models: HashSet<u64> = present.filter_map(|(_, file)| file.model()).collect();
        let pinned = self.left.tables.pinned_files();
        models.extend(pinned.filter_map(|file| file.model()));
        Some(models)
    }

    /// The files of the directory that are needed, for a look at the whole of it; `None` while nothing may be
    /// deleted, because a failed write leaves in doubt what the disk names.
    ///
    /// List the directory after this call, not before. `wals` are WAL files kept for other reasons.
    pub fn needed(&self, wals: HashSet<u64>) -> Option<Needed> {
        if self.in_doubt || self.read_only {
            return None;
        }
        // First: a job that ends after this line has its tables in the versions looked at below.
        let pending_from = self.numbers.oldest_pending();
        let mut tables: HashSet<u64> = self
            .families
            .values()
            .flat_map(|family| family.current.files())
            .map(|(_, file)| file.number)
            .collect();
        tables.extend(self.left.tables.pinned());
        let blobs = self.families.values();
        let blobs = blobs.flat_map(|family| family.current.blobs().keys());
        Some(Needed {
            tables,
            blobs: blobs.copied().chain(self.left.blobs.pinned()).collect(),
            models: self.models_in_use()?,
            wals_from: self.min_log_number(),
            wals,
            manifest: self.manifest_number,
            pending_from,
        })
    }
}
