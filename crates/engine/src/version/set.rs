//! The set of present versions, one a family, and the MANIFEST that keeps them: the only place
//! that installs versions.
//!
//! Invariant: the state in memory never runs ahead of the state CURRENT reaches on disk. An edit is
//! written and synced first and installed after; when writing fails, a whole new MANIFEST is tried
//! once, and when that fails too, nothing is installed and every later edit is refused.
//!
//! A MANIFEST of an earlier incarnation is never appended to: the content of its unsynced tail after a
//! power cut is unknown. The first edit after opening writes a new one.
//!
//! Thread safety: one owner, behind the database's lock. File numbers are taken without it, through
//! [`VersionSet::numbers`].

use super::family_versions::FamilyVersions;
use super::left_files::{Leaving, Left};
use super::manifest::{FILES_PER_RECORD, ManifestCopy, Snapshot, write_and_make_live};
use super::manifest_tail::ManifestTail;
use super::recover::{DEFAULT_FAMILY, RecordedNumbers};
use super::{FileNumbers, History, NewFile, Profile, SectionWals, VersionBuilder, VersionEdit};
use crate::wal::record::RecordWriter;
use drumlin_base::{Error, ErrorKind, KeyOrder, Result, SeqNo};
use drumlin_fs::FileSystem;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A MANIFEST below this size is never rolled, in bytes: about a thousand edits. Who opens the database reads it whole, and a
/// follower begins anew with each.
const MANIFEST_BYTES_MIN: u64 = 128 << 10;

/// Families as an edit leaves them; `None` where it drops them. Not all of them: there may be thousands.
type Changed = BTreeMap<u32, Option<FamilyVersions>>;

/// The tables that a new family begins with.
#[derive(Debug, Default)]
pub struct NewTables {
    /// Their levels and descriptions.
    pub files: Vec<(u32, NewFile)>,
    /// No sequence number inside is higher.
    pub last_seqno: SeqNo,
}

/// The present versions and their MANIFEST. See the module's text.
#[derive(Debug)]
pub struct VersionSet {
    pub(super) files: Arc<dyn FileSystem>,
    pub(super) dir: PathBuf,
    pub(super) profile: Profile,
    pub(super) read_only: bool,
    pub(super) families: BTreeMap<u32, FamilyVersions>,
    pub(super) numbers: Arc<FileNumbers>,
    pub(super) recorded: RecordedNumbers,
    /// `None` before the first edit, and after a failed write.
    pub(super) manifest: Option<RecordWriter>,
    pub(super) manifest_number: u64,
    /// Size of the live MANIFEST when it was new.
    pub(super) snapshot_bytes: u64,
    /// The files that left the versions.
    pub(super) left: Left,
    /// Which WAL files hold sections of two-phase commit.
    pub(super) sections: Arc<SectionWals>,
    /// WAL files from here on are kept for their sections, as the MANIFEST says.
    pub(super) kept_from: u64,
    /// What the next edits are to those who follow changes, and the last sequence number it takes.
    pub(super) next_change: Option<(Vec<u8>, SeqNo)>,
    /// Writing failed and no new MANIFEST was made since: the disk may hold edits that were not
    /// installed, so nothing may be deleted.
    pub(super) in_doubt: bool,
    /// A failure that a new MANIFEST made good.
    pub(super) healed: Option<Error>,
    /// Why nothing can be written any more.
    pub(super) poison: Option<Error>,
    /// Where a set for reading goes on in its MANIFEST.
    pub(super) tail: Option<ManifestTail>,
}

impl VersionSet {
    /// The families, by id.
    pub fn families(&self) -> &BTreeMap<u32, FamilyVersions> {
        &self.families
    }

    /// Writes edits as `profile` says from the next new MANIFEST on, which the first edit begins.
    pub fn set_profile(&mut self, profile: Profile) {
        self.profile = profile;
    }

    /// Keeps the files that left the present versions until nobody reads them.
    pub(super) fn note_left(&mut self, leaving: Leaving) {
        for table in &leaving.tables {
            self.left.tables.add(table.number, table);
        }
        for blob in &leaving.blobs {
            self.left.blobs.add(blob.number, blob);
        }
    }

    /// The family with this id.
    pub fn family(&self, id: u32) -> Option<&FamilyVersions> {
        self.families.get(&id)
    }

    /// The family with this name.
    pub fn family_named(&self, name: &str) -> Option<&FamilyVersions> {
        self.families.values().find(|family| family.name == name)
    }

    /// Where file numbers come from; may be used without this set's lock.
    pub fn numbers(&self) -> &Arc<FileNumbers> {
        &self.numbers
    }

    /// A file number nobody else has.
    pub fn new_file_number(&self) -> u64 {
        self.numbers.take()
    }

    /// The last sequence number the MANIFEST knows of: that of the tables, not of the memtables.
    pub fn last_seqno(&self) -> SeqNo {
        self.recorded.last_seqno.unwrap_or(0)
    }

    /// The database's id, if the MANIFEST holds one.
    pub fn db_id(&self) -> Option<&str> {
        self.recorded.db_id.as_deref()
    }

    /// Sets the id that the next new MANIFEST holds.
    pub fn set_db_id(&mut self, id: &str) {
        self.recorded.db_id = Some(id.to_owned());
    }

    /// The last change that is no write, where the WAL may lack it.
    pub fn last_change(&self) -> Option<&[u8]> {
        self.recorded.change.as_deref()
    }

    /// Runs `edit`, whose edits say that they are `change`, which takes the sequence numbers up to `last`.
    pub fn with_change<R>(
        &mut self,
        change: Option<(Vec<u8>, SeqNo)>,
        edit: impl FnOnce(&mut Self) -> R,
    ) -> R {
        self.next_change = change;
        let edited = edit(self);
        self.next_change = None; // Where it was refused.
        edited
    }

    /// The past that is kept.
    pub fn history(&self) -> &History {
        &self.recorded.history
    }

    /// Sets the past that the next new MANIFEST says is kept, which the first edit begins.
    pub fn set_history(&mut self, history: History) {
        self.recorded.history = history;
    }

    /// The highest family id ever given out.
    pub fn max_family_id(&self) -> u32 {
        self.recorded.max_family
    }

    /// Gives no new family `id` or one below it from now on.
    pub fn mark_family_id_used(&mut self, id: u32) {
        self.recorded.max_family = self.recorded.max_family.max(id);
    }

    /// WAL files below this number hold nothing any family still needs, and no section of two-phase commit.
    pub fn min_log_number(&self) -> u64 {
        let oldest = self.oldest_log(&Changed::new());
        let needed = oldest.max(self.recorded.min_log_number_to_keep);
        needed.min(self.kept_from)
    }

    /// Where sections of two-phase commit are noted, so that their WAL files are kept.
    pub fn sections(&self) -> &Arc<SectionWals> {
        &self.sections
    }

    /// The number of the live MANIFEST.
    pub fn manifest_number(&self) -> u64 {
        self.manifest_number
    }

    /// The bytes of the live MANIFEST that hold all that is in force; `None` where nothing may be written, or a new one has
    /// to be begun first.
    pub fn manifest_bytes(&self) -> Option<u64> {
        self.manifest.as_ref().map(RecordWriter::len)
    }

    /// The failure that made a new MANIFEST necessary, once: the caller got a success.
    pub fn take_healed(&mut self) -> Option<Error> {
        self.healed.take()
    }

    /// Why edits are refused, if they are.
    pub fn poison(&self) -> Option<&Error> {
        self.poison.as_ref()
    }

    /// Makes `edits`, in order and all or none, durable, and installs the versions they lead to.
    ///
    /// Missing numbers are filled in: the next file number, the last sequence number, and epochs
    /// (a table new in L0 gets the next one, the output of a compaction the lowest of its inputs).
    /// The names of new tables are synced first, so that the caller need not.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown family, `Corruption` for an edit that does not fit the
    /// present versions: nothing was written. `Poisoned` after an earlier failure, else the failure
    /// of writing: nothing is installed, and since the content of the disk is unknown, every file that the
    /// edits name must stay where it is. `Io` poisons this set; after `NoSpace` the next call tries
    /// a whole new MANIFEST again.
    pub fn log_and_apply(&mut self, mut edits: Vec<VersionEdit>) -> Result<()> {
        self.check_writable()?;
        if let Some(edit) = edits
            .iter()
            .find(|edit| edit.add_family.is_some() || edit.drop_family)
        {
            let message = format!("family {} has its own method", edit.column_family);
            return Err(Error::invalid_argument(message));
        }
        self.complete(&mut edits)?;
        let mut leaving = Leaving::default();
        let next = self.build(&edits, &mut leaving)?;
        let (kept_before, needed) = (self.kept_from, self.oldest_log(&next));
        if !self.sections.is_used() && self.recorded.section_wals.is_empty() {
            let mut moving = edits.iter_mut().filter(|edit| edit.log_number.is_some());
            if let Some(edit) = moving.next_back() {
                // Or who opens it looks for sections in all WAL files since the MANIFEST was new.
                edit.min_log_number_to_keep = Some(needed);
            }
            return self.commit(edits, next, leaving);
        }
        self.keep_sections(&mut edits, needed);
        let done = self.commit(edits, next, leaving);
        match &done {
            Ok(()) => self.sections.forget_below(needed),
            Err(_) => self.kept_from = kept_before,
        }
        done
    }

    /// Has `edits` say from where on WAL files are kept, when families need them from `needed` on.
    fn keep_sections(&mut self, edits: &mut [VersionEdit], needed: u64) {
        let moves = edits.iter().any(|edit| edit.log_number.is_some());
        if let (Some(last), true) = (edits.last_mut(), moves) {
            let oldest = match drumlin_base::bug!("wal-of-a-section-let-go") {
                true => None,
                false => self.sections.oldest(needed),
            };
            self.kept_from = oldest.unwrap_or(u64::MAX);
            last.min_log_number_to_keep = Some(needed.min(self.kept_from));
            last.section_wals = Some(self.sections.below(needed));
        }
    }

    /// Creates a family; its id.
    ///
    /// # Errors
    /// `InvalidArgument` when the name is taken or empty; else as [`VersionSet::log_and_apply`].
    pub fn add_family(&mut self, name: &str, order: KeyOrder, log_number: u64) -> Result<u32> {
        self.add_family_of(name, order, log_number, NewTables::default())
    }

    /// Creates a family that has `tables`: it is there with all of them, or not at all. (A power cut may leave it without
    /// them where the directory is one of RocksDB 5, which knows no groups of edits.)
    ///
    /// # Errors
    /// As [`VersionSet::add_family`]; `Corruption` for tables that are no levels of one family.
    pub fn add_family_of(
        &mut self,
        name: &str,
        order: KeyOrder,
        log_number: u64,
        tables: NewTables,
    ) -> Result<u32> {
        self.check_writable()?;
        if name.is_empty() || self.family_named(name).is_some() {
            let message = format!("a family cannot be called {name:?}: empty or taken");
            return Err(Error::invalid_argument(message));
        }
        let Some(id) = self.recorded.max_family.checked_add(1) else {
            return Err(Error::invalid_argument("every family id was given out"));
        };
        let mut edits = vec![VersionEdit {
            add_family: Some(name.to_owned()),
            comparator: Some(order.name().to_owned()),
            log_number: Some(log_number),
            max_column_family: Some(id),
            ..VersionEdit::of_family(id)
        }];
        // Records of their own: RocksDB reads nothing else in one that adds a family.
        edits.extend(
            tables
                .files
                .chunks(FILES_PER_RECORD)
                .map(|files| VersionEdit {
                    new_files: files.to_vec(),
                    last_seqno: Some(tables.last_seqno),
                    ..VersionEdit::of_family(id)
                }),
        );
        let mut family = FamilyVersions::new(id, name, order, log_number);
        let mut next_epoch = family.next_epoch;
        for edit in &mut edits {
            fill_epochs(edit, &family, &mut next_epoch);
        }
        apply_edits(&mut family, &edits, &mut Leaving::default())?;
        self.fill_numbers(&mut edits);
        if !drumlin_base::bug!("imported-family-first-alone") {
            self.mark_group(&mut edits);
        }
        let next = Changed::from([(id, Some(family))]);
        self.commit(edits, next, Leaving::default())?;
        Ok(id)
    }

    /// Drops family `id`. Its tables go once nobody reads them. Its writes, whose WAL may go, have sequence numbers up to
    /// `last_seqno`: none is given twice.
    ///
    /// # Errors
    /// `InvalidArgument` when it is not there or is `default`; else as
    /// [`VersionSet::log_and_apply`].
    pub fn drop_family(&mut self, id: u32, last_seqno: SeqNo) -> Result<()> {
        self.check_writable()?;
        let Some(family) = self.families.get(&id).filter(|_| id != 0) else {
            let message = format!("family {id} cannot be dropped: default, or not there");
            return Err(Error::invalid_argument(message));
        };
        let mut edits = vec![VersionEdit {
            drop_family: true,
            last_seqno: Some(last_seqno),
            max_column_family: Some(self.recorded.max_family),
            ..VersionEdit::of_family(id)
        }];
        self.fill_numbers(&mut edits);
        let mut leaving = Leaving::default();
        leaving.take_all(family);
        self.commit(edits, Changed::from([(id, None)]), leaving)
    }

    fn check_writable(&self) -> Result<()> {
        if self.read_only {
            let error = Error::new(ErrorKind::ReadOnly, "the database is open for reading only");
            return Err(error.with_file(&self.dir));
        }
        match &self.poison {
            None => Ok(()),
            Some(cause) => {
                let message = format!("the MANIFEST could not be written earlier: {cause}");
                Err(Error::new(ErrorKind::Poisoned, message))
            }
        }
    }

    /// Fills in the fields that the caller may leave out, and marks several edits as one atomic group.
    fn complete(&self, edits: &mut [VersionEdit]) -> Result<()> {
        let mut epochs = BTreeMap::new();
        for edit in edits.iter_mut() {
            let Some(family) = self.families.get(&edit.column_family) else {
                let message = format!("family {} is not there", edit.column_family);
                return Err(Error::invalid_argument(message));
            };
            let next_epoch = epochs.entry(family.id).or_insert(family.next_epoch);
            fill_epochs(edit, family, next_epoch);
        }
        self.fill_numbers(edits);
        self.mark_group(edits);
        Ok(())
    }

    /// Has readers take several edits together or not at all.
    fn mark_group(&self, edits: &mut [VersionEdit]) {
        if edits.len() > 1 && self.profile == Profile::RocksDb {
            let count = edits.len() as u32; // Far below 2^32: one edit a family, or a thousand tables.
            for (edit, at) in edits.iter_mut().zip(1..) {
                edit.atomic_group_remaining = Some(count - at);
            }
        }
    }

    /// RecordedNumbers never go back from one edit to the next: RocksDB believes the last edit it reads.
    fn fill_numbers(&self, edits: &mut [VersionEdit]) {
        let mut last_seqno = self.recorded.last_seqno;
        for edit in edits.iter_mut() {
            edit.next_file_number = Some(self.numbers.next());
            let tables = edit.new_files.iter();
            let in_tables = tables.map(|(_, file)| file.largest_seqno).max();
            last_seqno = last_seqno.max(edit.last_seqno).max(in_tables);
            edit.last_seqno = last_seqno;
        }
    }

    /// The families that `edits` change, as they leave them.
    fn build(&self, edits: &[VersionEdit], leaving: &mut Leaving) -> Result<Changed> {
        let mut next = Changed::new();
        for edit in edits {
            let id = edit.column_family;
            if let Some(family) = self.families.get(&id) {
                next.entry(id).or_insert_with(|| Some(family.clone()));
            }
        }
        let mut changed = next.values_mut().flatten();
        changed.try_for_each(|family| apply_edits(family, edits, leaving))?;
        Ok(next)
    }

    /// Installs `next`; what was there before.
    fn install(&mut self, next: Changed) -> Changed {
        let mut before = Changed::new();
        for (id, family) in next {
            let old = match family {
                Some(family) => self.families.insert(id, family),
                None => self.families.remove(&id),
            };
            before.insert(id, old);
        }
        before
    }

    /// The oldest WAL that a family needs once `next` is installed.
    fn oldest_log(&self, next: &Changed) -> u64 {
        let stay = self
            .families
            .iter()
            .filter(|(id, _)| !next.contains_key(id));
        let stay = stay.map(|(_, family)| family);
        let logs = stay
            .chain(next.values().flatten())
            .map(|family| family.log_number);
        logs.min().unwrap_or(0)
    }

    /// Writes `edits`, then installs `next`.
    fn commit(
        &mut self,
        mut edits: Vec<VersionEdit>,
        next: Changed,
        leaving: Leaving,
    ) -> Result<()> {
        if let (Some((change, last)), Some(edit)) = (self.next_change.take(), edits.last_mut()) {
            edit.change = Some(change);
            edit.last_seqno = edit.last_seqno.max(Some(last));
        }
        edits.extend(self.forget_wals(&next));
        if let (Some(manifest), Profile::RocksDb) = (&self.manifest, self.profile) {
            let from = manifest.len();
            let later = edits.iter_mut().skip(1);
            later.for_each(|edit| edit.synced_from = Some(from));
        }
        let mut records = Vec::with_capacity(edits.len());
        for edit in &edits {
            records.push(edit.encode(self.profile)?);
        }
        let brings_files = edits
            .iter()
            .any(|edit| !edit.new_files.is_empty() || !edit.blob_additions.is_empty());
        if brings_files && !drumlin_base::bug!("table-names-unsynced") {
            // A file's name must be on disk before the MANIFEST names it. Nothing was written
            // yet, so a failure here leaves everything as it was.
            self.files.sync_dir(&self.dir)?;
        }
        if !self.append(&records) {
            self.roll_with(&edits, next)?;
        } else {
            self.install(next);
            edits.iter().for_each(|edit| self.recorded.apply(edit));
        }
        self.note_left(leaving);
        Ok(())
    }

    /// An edit that ends the tracking of WAL files no family of `next` needs; a record of its own,
    /// as other readers want it.
    fn forget_wals(&self, next: &Changed) -> Option<VersionEdit> {
        let (oldest, _) = self.recorded.wals.first_key_value()?;
        let needed = self.oldest_log(next).min(self.kept_from);
        (*oldest < needed).then(|| VersionEdit {
            wals_deleted_below: Some(needed),
            ..VersionEdit::default()
        })
    }

    /// Appends `records` to the live MANIFEST and syncs it. False when a new one must be written:
    /// because there is none of this incarnation, the present one is large, or writing failed.
    fn append(&mut self, records: &[Vec<u8>]) -> bool {
        let Some(mut writer) = self.manifest.take() else {
            return false;
        };
        if writer.len() > MANIFEST_BYTES_MIN.max(2 * self.snapshot_bytes) {
            return false;
        }
        let written = records
            .iter()
            .try_for_each(|record| writer.gather(record))
            .and_then(|()| writer.hand_over())
            .and_then(|()| match drumlin_base::bug!("manifest-edit-unsynced") {
                true => Ok(()),
                false => writer.sync(),
            });
        match written {
            Ok(()) => {
                self.manifest = Some(writer);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "writing the MANIFEST failed; trying a new one");
                self.healed = Some(error);
                false
            }
        }
    }

    /// Writes a new MANIFEST of `next` and of the numbers after `edits`; installs both.
    fn roll_with(&mut self, edits: &[VersionEdit], next: Changed) -> Result<()> {
        let families_before = self.install(next);
        let recorded = self.recorded.clone();
        edits.iter().for_each(|edit| self.recorded.apply(edit));
        let (before, number) = (self.manifest_number, self.numbers.take());
        let rolled = self.roll(number);
        self.in_doubt = rolled.is_err();
        // Once the doubt is over nobody needs the one of the two that is not live.
        let obsolete = if rolled.is_ok() { before } else { number };
        self.left
            .manifests
            .extend(Some(obsolete).filter(|&number| number != 0));
        if let Err(error) = &rolled {
            self.install(families_before);
            self.recorded = recorded;
            if error.kind() != ErrorKind::NoSpace {
                self.poison = Some(error.duplicate());
            }
        }
        rolled
    }

    pub(super) fn roll(&mut self, number: u64) -> Result<()> {
        let snapshot = self.snapshot();
        let writer = write_and_make_live(&*self.files, &self.dir, number, self.profile, &snapshot)?;
        self.snapshot_bytes = writer.len();
        self.manifest = Some(writer);
        self.manifest_number = number;
        Ok(())
    }

    /// A MANIFEST of the present versions, to be written into a copy of the database.
    ///
    /// # Errors
    /// `NotSupported` of what the directory's format cannot say.
    pub fn copy(&self) -> Result<ManifestCopy> {
        ManifestCopy::take(self.numbers.next(), self.profile, &self.snapshot())
    }

    /// A MANIFEST of a database that has `tables` of a family with keys in `order`, as those of `default`, and nothing else.
    ///
    /// # Errors
    /// `Corruption` for tables that are no levels of one family; `NotSupported` of what the directory's format cannot say.
    pub fn copy_of_family(
        &self,
        order: KeyOrder,
        tables: Vec<(u32, NewFile)>,
    ) -> Result<ManifestCopy> {
        let log_number = self.min_log_number();
        let mut alone = FamilyVersions::new(0, DEFAULT_FAMILY, order, log_number);
        let edit = VersionEdit {
            new_files: tables,
            ..VersionEdit::default()
        };
        apply_edits(&mut alone, &[edit], &mut Leaving::default())?;
        let families = BTreeMap::from([(0, alone)]);
        let snapshot = Snapshot {
            families: &families,
            db_id: None,
            wals: &BTreeMap::new(),
            log_number,
            min_log_number_to_keep: log_number,
            max_family: 0,
            change: None,
            section_wals: &[],
            history: None,
            ..self.snapshot()
        };
        ManifestCopy::take(self.numbers.next(), self.profile, &snapshot)
    }

    fn snapshot(&self) -> Snapshot<'_> {
        let default_log = self.families.get(&0).map(|family| family.log_number);
        Snapshot {
            families: &self.families,
            db_id: self.recorded.db_id.as_deref(),
            wals: &self.recorded.wals,
            log_number: default_log.unwrap_or(0),
            min_log_number_to_keep: self.min_log_number(),
            next_file_number: self.numbers.next() + 1,
            last_seqno: self.last_seqno(),
            max_family: self.recorded.max_family,
            change: self.recorded.change.as_ref(),
            section_wals: &self.recorded.section_wals,
            history: Some(&self.recorded.history).filter(|it| it.is_on()),
        }
    }
}

/// Has `family` as those of `edits` that concern it leave it.
pub(super) fn apply_edits(
    family: &mut FamilyVersions,
    edits: &[VersionEdit],
    leaving: &mut Leaving,
) -> Result<()> {
    let mut builder = VersionBuilder::new(Arc::clone(&family.current));
    let mut changed = false;
    for edit in edits.iter().filter(|edit| edit.column_family == family.id) {
        builder.apply(edit)?;
        changed |= edit.changes_tables()
            || !edit.blob_additions.is_empty()
            || !edit.blob_garbage.is_empty();
        family.log_number = family.log_number.max(edit.log_number.unwrap_or(0));
        if edit.full_history_ts_low.is_some() {
            family
                .full_history_ts_low
                .clone_from(&edit.full_history_ts_low);
        }
        family.cursors.extend(edit.compact_cursors.iter().cloned());
        let epochs = edit.new_files.iter().map(|(_, file)| file.epoch + 1);
        family.next_epoch = epochs.fold(family.next_epoch, u64::max);
    }
    if changed {
        let built = builder.build(&family.order)?;
        family.current = built.version;
        leaving.tables.extend(built.removed);
        leaving.blobs.extend(built.removed_blobs);
    }
    Ok(())
}

/// Gives the tables of `edit` that have no epoch one.
pub(super) fn fill_epochs(edit: &mut VersionEdit, family: &FamilyVersions, next_epoch: &mut u64) {
    let inputs = edit.deleted_files.iter().filter_map(|&(level, number)| {
        let files = family.current.level(level as usize);
        files.iter().find(|file| file.number == number)
    });
    let inherited = inputs.map(|file| file.epoch).min();
    let unknown = |file: &&mut (u32, NewFile)| file.1.epoch == 0;
    for (_, file) in edit.new_files.iter_mut().filter(unknown) {
        file.epoch = inherited.unwrap_or_else(|| {
            let epoch = *next_epoch;
            *next_epoch += 1;
            epoch
        });
    }
}
