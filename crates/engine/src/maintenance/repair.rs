//! Making a database openable again when its MANIFEST is lost or damaged.
//!
//! Every table is read whole; the sound ones go to L0 of the family they name, ordered by their
//! newest sequence number; damaged ones are moved to the folder `lost`, never deleted, with the
//! models that tables there may name. The WAL
//! files stay and are replayed by the next open; `repair_families` says which families there are. Blob files that a sound table refers to stay, the
//! others go to `lost` too; values of one that is damaged throughout are reported as missing when they are
//! read. Limit: a table that a compaction had already
//! replaced, and that a crash kept from being deleted, comes back; so may keys deleted since.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::key::ParsedKey;
use drumlin_base::{
    Error, ErrorKind, InternalIterator, KeyOrder, MemoryBudget, Result, SEQNO_MAX, ValueKind,
};
use drumlin_fs::FileSystem;
use drumlin_table::blob::BlobIndex;
use drumlin_table::{
    BlockCache, ModelSource, Table, TableProperties, TableReadOptions, TableReaderOptions,
};

use crate::caches::models::ModelStore;
use crate::db::foreign;
use crate::db::identity::stored_identity;
use crate::family::column_family::DEFAULT_FAMILY;
use crate::files::names::{self, FileName};
use crate::maintenance::repair_blobs::{self, FamilyBlobs, References};
use crate::maintenance::repair_families::{self, Families, Signs};
use crate::options::file as options_file;
use crate::options::settings::{DirectoryFormat, Options};
use crate::options::vintage::Vintage;
use crate::version::{
    NewFile, Profile, Told, VersionEdit, VersionSet, VersionSetOptions, refuse_tables_elsewhere,
};

/// The result of a repair.
#[derive(Debug, Default)]
pub struct RepairReport {
    /// Tables that are part of the database again.
    pub tables: usize,
    /// Entries in them.
    pub entries: u64,
    /// Blob files that they refer to.
    pub blob_files: usize,
    /// The families found, by name.
    pub families: Vec<String>,
    /// Files moved to `lost`, each with its damage.
    pub lost: Vec<(PathBuf, Error)>,
}

struct Found {
    family: (u32, String),
    order: KeyOrder,
    entries: u64,
    file: NewFile,
    references: References,
    /// Whether its properties show RocksDB 6.6 or later, or us.
    is_dated: bool,
}

struct Repairer<'a> {
    dir: &'a Path,
    options: &'a Options,
    profile: Profile,
    cache: Arc<BlockCache>,
    budget: Arc<MemoryBudget>,
    models: Arc<ModelStore>,
    report: RepairReport,
}

/// Rebuilds the MANIFEST of `dir` from its tables. See [`crate::Db::repair`].
pub(crate) fn repair(dir: &Path, options: &Options) -> Result<RepairReport> {
    options.validate()?;
    let files = &options.env.files;
    foreign::refuse(&**files, dir)?;
    refuse_no_database(&**files, dir)?;
    let _lock = files.lock(&names::lock(dir))?;
    refuse_tables_elsewhere(&**files, dir)?;
    let budget = MemoryBudget::new(options.memory_budget_bytes());
    let cache = BlockCache::new(Arc::clone(&budget));
    let listing = files.list(dir)?;
    let models = ModelStore::open(Arc::clone(files), dir, &budget)?;
    let mut repairer = Repairer {
        dir,
        options,
        profile: Profile::RocksDb,
        cache,
        budget,
        models,
        report: RepairReport::default(),
    };
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    let mut highest = 0;
    for name in &listing {
        let parsed = FileName::parse(name);
        highest = highest.max(parsed.and_then(FileName::number).unwrap_or(0));
        if let Some(FileName::Table(number)) = parsed {
            let path = dir.join(name);
            match repairer.read_table(&path, number) {
                Ok(table) => found.push(table),
                Err(error) => damaged.push((path, error)),
            }
        }
    }
    if found.is_empty() && !damaged.is_empty() {
        let (_, error) = damaged.swap_remove(0);
        return Err(
            error.context("no table can be read, so nothing would be left; nothing was changed")
        );
    }
    let wals = repairer.wals(&listing)?;
    let families = repairer.families(&found, &wals)?;
    for (path, error) in damaged {
        repairer.lose(&path, error)?;
    }
    let told = told_vintage(dir, options);
    repairer.profile = profile(options, &listing, told, &found);
    let mut references = References::default();
    for table in &mut found {
        references.append(std::mem::take(&mut table.references));
    }
    let accounts = repair_blobs::accounts(&**files, dir, &listing, references)?;
    for (path, error) in accounts.lost {
        repairer.lose(&path, error)?;
    }
    repairer.keep_models(&found)?;
    repairer.put_aside_manifests(&listing)?;
    let oldest_wal = wals.first().map_or(0, |&(number, _)| number);
    repairer.rebuild(families, found, accounts.families, (highest, oldest_wal))?;
    Ok(repairer.report)
}

/// Refuses a directory that shows no database. A WAL's name is a common one, so one alone is no sign.
fn refuse_no_database(files: &dyn FileSystem, dir: &Path) -> Result<()> {
    let listing = files.list(dir)?;
    let has = |wanted: fn(&FileName) -> bool| {
        let mut names = listing.iter().filter_map(|name| FileName::parse(name));
        names.any(|name| wanted(&name))
    };
    let is_sure = |name: &FileName| {
        matches!(
            name,
            FileName::Current | FileName::Manifest(_) | FileName::Table(_)
        )
    };
    let is_beside = |name: &FileName| {
        matches!(
            name,
            FileName::Identity | FileName::Options(_) | FileName::Lock
        )
    };
    let is_data = |name: &FileName| name.is_evidence_of_a_database();
    match has(is_sure) || has(is_data) && has(is_beside) {
        true => Ok(()),
        false => {
            let message = "there is no database in the directory, so there is nothing to repair";
            Err(Error::not_supported(message).with_file(dir))
        }
    }
}

/// The profile of the MANIFEST to write: LevelDB's if the directory has no file that RocksDB always
/// leaves. The OPTIONS file names its version, and without one the tables do: since 6.6 they have a
/// creation time.
fn profile(
    options: &Options,
    listing: &[PathBuf],
    told: Option<Vintage>,
    found: &[Found],
) -> Profile {
    let is_rocksdb = |name: &PathBuf| {
        let parsed = FileName::parse(name);
        matches!(parsed, Some(FileName::Identity | FileName::Options(_)))
    };
    let has_tables_of_5 = !found.is_empty() && !found.iter().any(|table| table.is_dated);
    let is_of_5 = told.map_or(has_tables_of_5, |vintage| !vintage.skips_unknown_records());
    match options.format {
        DirectoryFormat::LevelDb => Profile::LevelDb,
        DirectoryFormat::Auto if !listing.iter().any(is_rocksdb) => Profile::LevelDb,
        _ if is_of_5 => Profile::RocksDb5,
        _ => Profile::RocksDb,
    }
}

/// The version that the newest OPTIONS file names. An unreadable file names none.
fn told_vintage(dir: &Path, options: &Options) -> Option<Vintage> {
    let stored = options_file::read_newest(&*options.env.files, dir).ok()??;
    Vintage::parse(&stored.rocksdb_version)
}

impl Repairer<'_> {
    /// Opens a table in the order it says it has: the one of the options, or a built-in one.
    fn open_table(&self, path: &Path, number: u64) -> Result<(Arc<Table>, KeyOrder)> {
        let given = self.options.family.order.clone();
        let built_in = [KeyOrder::Bytewise, KeyOrder::ReverseBytewise];
        let others: Vec<_> = built_in
            .into_iter()
            .filter(|order| *order != given)
            .collect();
        let mut opened = self.open_ordered(path, number, given);
        for order in others {
            // This kind of error says that the order is another one, before any key was read.
            match &opened {
                Err(error) if error.kind() == ErrorKind::InvalidArgument => {}
                _ => break,
            }
            opened = self.open_ordered(path, number, order);
        }
        let table = opened?;
        let order = table.order().clone();
        Ok((table, order))
    }

    fn open_ordered(&self, path: &Path, number: u64, order: KeyOrder) -> Result<Arc<Table>> {
        let file = self.options.env.files.open(path)?;
        let mut options = TableReaderOptions::new(
            path.to_path_buf(),
            number,
            Arc::clone(&self.cache),
            Arc::clone(&self.budget),
        );
        options.order = order;
        options.models = Some(Arc::clone(&self.models) as Arc<dyn ModelSource>);
        Table::open(file, options)
    }

    fn read_table(&self, path: &Path, number: u64) -> Result<Found> {
        let (table, order) = self.open_table(path, number)?;
        let size = table.size();
        table.verify()?;
        let properties = table.properties();
        let mut described = NewFile {
            number,
            size,
            smallest_seqno: SEQNO_MAX,
            creation_time: properties.creation_time,
            model: table.shared_model(),
            ..NewFile::default()
        };
        let mut references = References::default();
        let entries = scan(&table, &order, &mut described, &mut references)?;
        described.oldest_blob_file = references.oldest();
        let family = family_of(properties)?;
        Ok(Found {
            family,
            order,
            entries,
            file: described,
            references,
            is_dated: properties.counts_tombstones(),
        })
    }

    fn lose(&mut self, path: &Path, error: Error) -> Result<()> {
        let files = &self.options.env.files;
        let lost = self.dir.join("lost");
        files.create_dir_all(&lost)?;
        files.rename(
            path,
            &lost.join(path.file_name().expect("a listed file has a name")),
        )?;
        self.report.lost.push((path.to_path_buf(), error));
        Ok(())
    }

    /// Gives the tables in `lost` every model beside them: without it nobody could look into them.
    fn keep_models(&self, found: &[Found]) -> Result<()> {
        if self.report.lost.is_empty() {
            return Ok(());
        }
        let files = &self.options.env.files;
        let lost = self.dir.join("lost");
        for id in self.models.ids() {
            let (from, to) = (names::model(self.dir, id), names::model(&lost, id));
            let is_needed = found.iter().any(|table| table.file.model == Some(id));
            match is_needed {
                true if files.exists(&to)? => {}
                true => files.link(&from, &to)?,
                false => files.rename(&from, &to)?,
            }
        }
        Ok(())
    }

    fn put_aside_manifests(&self, listing: &[PathBuf]) -> Result<()> {
        let files = &self.options.env.files;
        for name in listing {
            if matches!(
                FileName::parse(name),
                Some(FileName::Manifest(_) | FileName::Current)
            ) {
                let lost = self.dir.join("lost");
                files.create_dir_all(&lost)?;
                files.rename(&self.dir.join(name), &lost.join(name))?;
            }
        }
        files.sync_dir(self.dir)
    }

    /// The WAL files that are there, by number. What was in those before them is in tables: they were removed.
    fn wals(&self, listing: &[PathBuf]) -> Result<Vec<(u64, PathBuf)>> {
        let of = |dir: &Path, listing: &[PathBuf]| {
            let numbers = listing.iter().filter_map(|name| FileName::parse(name));
            let wals = numbers.filter_map(|name| match name {
                FileName::Wal(number) => Some((number, names::wal(dir, number))),
                _ => None,
            });
            wals.collect::<Vec<_>>()
        };
        let mut wals = of(self.dir, listing);
        if let Some(wal_dir) = &self.options.wal_dir {
            wals.extend(of(wal_dir, &self.options.env.files.list(wal_dir)?));
        }
        wals.sort();
        Ok(wals)
    }

    /// Which families there are, by the sound tables `found`, the `wals` and what else the directory has.
    fn families(&self, found: &[Found], wals: &[(u64, PathBuf)]) -> Result<Families> {
        let files = &self.options.env.files;
        let mut in_wal = BTreeSet::new();
        for (number, path) in wals {
            repair_families::written_in(files.open(path)?, *number, &mut in_wal);
        }
        let stored = options_file::read_newest(&**files, self.dir).ok().flatten();
        let named = |families: Vec<options_file::FamilySection>| {
            families.into_iter().map(|family| family.name).collect()
        };
        let tables = found.iter().map(|table| {
            let (id, name) = &table.family;
            (table.file.number, (*id, name.as_str()), &table.order)
        });
        Families::find(&Signs {
            told: &Told::by_the_manifest(&**files, self.dir)?,
            tables: tables.collect(),
            in_wal,
            options: stored.map(|file| named(file.families)),
            given: &self.options.family.order,
        })
    }

    /// Writes a MANIFEST of `families` with the tables `found` and their blob files. No new file takes a number up to
    /// `highest`, which old ones have.
    fn rebuild(
        &mut self,
        families: Families,
        found: Vec<Found>,
        blobs: FamilyBlobs,
        (highest, oldest_wal): (u64, u64),
    ) -> Result<()> {
        let mut set = self.empty_set(&families, oldest_wal)?;
        set.numbers().mark_used(highest);
        let mut edits: BTreeMap<u32, VersionEdit> = BTreeMap::new();
        for &id in families.by_id.keys() {
            let mut edit = VersionEdit::of_family(id);
            edit.log_number =
                Some(oldest_wal + u64::from(drumlin_base::bug!("repair-skips-a-wal")));
            edits.insert(id, edit);
        }
        if families.highest > 0 && !drumlin_base::bug!("repair-gives-ids-again") {
            // The WAL may have writes of families that are gone.
            set.mark_family_id_used(families.highest);
            let edit = edits.entry(0).or_default();
            edit.max_column_family = Some(families.highest);
        }
        self.add_tables(found, &families, &mut edits);
        self.add_blobs(blobs, &mut edits);
        set.log_and_apply(edits.into_values().collect())?;
        if let (Profile::RocksDb, Some(id)) =
            (self.profile, stored_identity(&self.options.env, self.dir)?)
        {
            // Shows later opens that these are no tables of RocksDB 5, should there be no OPTIONS file.
            set.set_db_id(&id);
            set.copy()?.write(&*self.options.env.files, self.dir)?;
        }
        let families = families.by_id.into_values();
        self.report.families = families.map(|(name, _)| name).collect();
        Ok(())
    }

    /// A new MANIFEST of `families` without tables.
    fn empty_set(&self, families: &Families, oldest_wal: u64) -> Result<VersionSet> {
        let set_options = VersionSetOptions {
            profile: self.profile,
            families: vec![families.by_id[&0].clone()],
            check_tables: true,
        };
        let files = Arc::clone(&self.options.env.files);
        let mut set = VersionSet::create(files, self.dir, &set_options)?;
        for (&id, (name, order)) in families.by_id.range(1..) {
            // Ids are given out in turn: the families in between were dropped.
            set.mark_family_id_used(id - 1);
            let given = set.add_family(name, order.clone(), oldest_wal)?;
            assert_eq!(given, id, "a family keeps its id");
        }
        Ok(set)
    }

    /// Adds the tables to the edits of their families, the oldest first: lower epochs are older.
    fn add_tables(
        &mut self,
        mut found: Vec<Found>,
        families: &Families,
        edits: &mut BTreeMap<u32, VersionEdit>,
    ) {
        found.sort_by_key(|table| table.file.largest_seqno);
        if drumlin_base::bug!("repair-turns-ages-round") {
            found.reverse();
        }
        for table in found {
            self.report.tables += 1;
            self.report.entries += table.entries;
            let family = families.of_tables.get(&table.file.number);
            let edit = family.and_then(|family| edits.get_mut(family));
            let edit = edit.expect("each table has a family, and each family an edit");
            edit.new_files.push((0, table.file));
        }
    }

    /// Adds the blob files to the edits of their families. Those of a family without tables are nobody's.
    fn add_blobs(&mut self, blobs: FamilyBlobs, edits: &mut BTreeMap<u32, VersionEdit>) {
        for (family, files) in blobs {
            self.report.blob_files += files.len();
            if let Some(edit) = edits.get_mut(&family) {
                (edit.blob_additions, edit.blob_garbage) = files.into_iter().unzip();
                edit.blob_garbage
                    .retain(|garbage| garbage.garbage_count > 0);
            }
        }
    }
}

/// The id and the name of the family that a table says it was written for; the default family's where it names none.
fn family_of(properties: &TableProperties) -> Result<(u32, String)> {
    if properties.column_family_name.is_empty() {
        return Ok((0, DEFAULT_FAMILY.to_owned()));
    }
    let id = u32::try_from(properties.column_family_id).map_err(|_| {
        let id = properties.column_family_id;
        Error::corruption(format!("the table names the family id {id}, which is none"))
    })?;
    Ok((id, properties.column_family_name.clone()))
}

/// Walks the whole table and notes its bounds; how many entries it has.
fn scan(
    table: &Arc<Table>,
    order: &KeyOrder,
    file: &mut NewFile,
    references: &mut References,
) -> Result<u64> {
    let mut cursor = table.iter(TableReadOptions {
        fill_cache: false,
        ..Default::default()
    });
    let mut entries = 0;
    cursor.seek_to_first();
    while cursor.valid() {
        let key = ParsedKey::parse(cursor.key())?;
        file.widen(order, cursor.key(), cursor.key());
        note_seqno(file, key.seqno);
        if key.kind == ValueKind::BlobIndex {
            let index = BlobIndex::decode(cursor.value())?;
            references.add(file.number, key.user_key, &index);
        }
        entries += 1;
        cursor.next();
    }
    cursor.status()?;
    for tombstone in table.range_tombstones() {
        file.widen_by_range(order, tombstone);
        note_seqno(file, tombstone.seqno);
        entries += 1;
    }
    if entries == 0 {
        return Err(Error::corruption("the table holds nothing"));
    }
    Ok(entries)
}

fn note_seqno(file: &mut NewFile, seqno: u64) {
    file.smallest_seqno = file.smallest_seqno.min(seqno);
    file.largest_seqno = file.largest_seqno.max(seqno);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_of_the_family_it_names_and_of_no_other() {
        let of = |id, name: &str| {
            family_of(&TableProperties {
                column_family_id: id,
                column_family_name: name.to_owned(),
                ..TableProperties::default()
            })
        };
        assert_eq!(of(7, "users").unwrap(), (7, "users".to_owned()));
        assert_eq!(of(TableProperties::FAMILY_UNKNOWN, "").unwrap().0, 0);
        assert!(of(1 << 32, "users").unwrap_err().is_corruption());
    }
}
