//! Tables made outside the database, and taking them in.
//!
//! An external table holds each key once, with sequence number 0, and says so in a property. Taking
//! one in gives all its entries one new sequence number, which only the MANIFEST records: the file's
//! bytes stay as they are, so it can be linked (RocksDB since 5.16 does the same).

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::key::{append_internal, split_internal, tag_kind, tag_seqno, user_key};
use drumlin_base::limits::KEY_BYTES_MAX;
use drumlin_base::{
    Error, ErrorKind, InternalIterator, KeyOrder, Result, SEQNO_MAX, SeqNo, ValueKind,
};
use drumlin_fs::{CreateOptions, Env, FileKind, RandomAccessFile};
use drumlin_table::properties::{EXTERNAL_VERSION, GLOBAL_SEQNO};
use drumlin_table::{
    Table, TableIter, TableProperties, TableReadOptions, TableReaderOptions, TableWriter,
    TableWriterOptions,
};

use crate::caches::table_cache::Ahead;
use crate::db::engine::Engine;
use crate::db::ttl;
use crate::family::column_family::{ColumnFamily, Family};
use crate::files::names;
use crate::maintenance::change_log;
use crate::maintenance::checkpoint::copy_file;
use crate::version::{NewFile, VersionEdit};
use crate::wal::change::WhatChanged;
use crate::watch::events::IngestInfo;
use crate::watch::notices::Notice;

/// The version of the rules that external tables are made by, in their property [`EXTERNAL_VERSION`].
const VERSION: u32 = 2;

/// Writes a table outside any database, to be taken in by [`crate::Db::ingest`].
///
/// Keys must come in ascending order, each once; ranges to be deleted in any order.
#[derive(Debug)]
pub struct SstFileWriter {
    writer: TableWriter,
    order: KeyOrder,
    key: Vec<u8>,
    /// Kept to the end, where they are sorted: a table has them in order.
    deleted: Vec<(Vec<u8>, Vec<u8>)>,
}

impl SstFileWriter {
    /// Creates the file `path` for keys in `order`, compressed as `options` says. A file that has the name
    /// loses it and keeps its bytes: a database that took it in may have them by another name.
    ///
    /// # Errors
    /// `Io`, `NoSpace`; `NotSupported` for compression that this build is without.
    pub fn create(env: &Env, path: &Path, mut options: TableWriterOptions) -> Result<Self> {
        options.compression.codec.check_built()?;
        match env.files.remove(path) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        let file = env
            .files
            .create(path, CreateOptions::new(FileKind::Table))?;
        let properties = &mut options.user_properties;
        properties.insert(EXTERNAL_VERSION.to_owned(), VERSION.to_le_bytes().to_vec());
        properties.insert(GLOBAL_SEQNO.to_owned(), 0u64.to_le_bytes().to_vec());
        Ok(Self {
            order: options.order.clone(),
            writer: TableWriter::new(file, options),
            key: Vec::new(),
            deleted: Vec::new(),
        })
    }

    /// Adds a value.
    ///
    /// # Errors
    /// `InvalidArgument` when `key` is not after the one before; `Io`, `NoSpace`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.add(key, ValueKind::Value, value)
    }

    /// Adds an operand for the merge operator.
    ///
    /// # Errors
    /// As [`SstFileWriter::put`].
    pub fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        refuse_timestamps(&self.order)?;
        self.add(key, ValueKind::Merge, operand)
    }

    /// Adds a deletion.
    ///
    /// # Errors
    /// As [`SstFileWriter::put`].
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        let kind = match self.order.timestamp_bytes() {
            0 => ValueKind::Deletion,
            _ => ValueKind::DeletionWithTimestamp,
        };
        self.add(key, kind, b"")
    }

    /// Adds the deletion of all keys from `begin` up to, not including, `end`: of those that are in the database when the
    /// table is taken in, not of those in the table. May come at any time. A range from a key to itself is nothing.
    ///
    /// Memory: the keys, until [`SstFileWriter::finish`].
    ///
    /// # Errors
    /// `InvalidArgument` when `end` is before `begin`; `TooLarge`; `NotSupported` where keys end with timestamps.
    pub fn delete_range(&mut self, begin: &[u8], end: &[u8]) -> Result<()> {
        refuse_timestamps(&self.order)?;
        for key in [begin, end] {
            if key.len() > KEY_BYTES_MAX {
                let message = format!("the key has {} bytes, more than {KEY_BYTES_MAX}", key.len());
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
        }
        match self.order.compare(begin, end) {
            Ordering::Less => self.deleted.push((begin.to_vec(), end.to_vec())),
            Ordering::Equal => {}
            Ordering::Greater => {
                return Err(Error::invalid_argument("the range ends before it begins"));
            }
        }
        Ok(())
    }

    /// Completes and syncs the file; its size in bytes.
    ///
    /// # Errors
    /// `InvalidArgument` when nothing was added; `Io`, `NoSpace`.
    pub fn finish(mut self) -> Result<u64> {
        let ranges = std::mem::take(&mut self.deleted);
        let ranges = match drumlin_base::bug!("external-ranges-as-they-came") {
            true => ranges,
            false => joined(&self.order, ranges),
        };
        for (begin, end) in ranges {
            self.writer.add_range_tombstone(&begin, &end, 0)?;
        }
        if self.writer.entries() == 0 {
            return Err(Error::invalid_argument("an external table without entries"));
        }
        self.writer.finish().map(|finished| finished.size)
    }

    fn add(&mut self, key: &[u8], kind: ValueKind, value: &[u8]) -> Result<()> {
        self.key.clear();
        append_internal(&mut self.key, key, 0, kind as u8);
        self.writer.add(&self.key, value)
    }
}

fn refuse_timestamps(order: &KeyOrder) -> Result<()> {
    match order.timestamp_bytes() {
        0 => Ok(()),
        _ => Err(Error::not_supported(
            "ranges and operands of keys with timestamps",
        )),
    }
}

/// The ranges in order, those that meet as one: all have one sequence number.
fn joined(order: &KeyOrder, mut ranges: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<(Vec<u8>, Vec<u8>)> {
    ranges.sort_by(|a, b| order.compare(&a.0, &b.0));
    let mut out: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (begin, end) in ranges {
        match out.last_mut() {
            Some(last) if order.compare(&begin, &last.1).is_le() => {
                if order.compare(&end, &last.1).is_gt() {
                    last.1 = end;
                }
            }
            _ => out.push((begin, end)),
        }
    }
    out
}

/// A checked external table, under its new name in the database's directory.
struct Incoming {
    number: u64,
    size: u64,
    smallest: Vec<u8>,
    largest: Vec<u8>,
    properties: Arc<TableProperties>,
}

/// Takes the tables at `paths` in, in order: later ones win. Everything is checked before
/// anything changes; either all are taken or none.
pub(crate) fn ingest(
    engine: &Engine,
    family: &ColumnFamily,
    paths: &[PathBuf],
    move_files: bool,
) -> Result<()> {
    if engine.store.id.leveldb {
        return Err(Error::not_supported(
            "taking external tables into a LevelDB directory",
        ));
    }
    engine.store.check_writable()?;
    family.0.check_alive()?;
    let _pending = engine.store.begin_job()?;
    let check = |path: &PathBuf| check_external(engine, &family.0, path);
    // All of them, before the first one gets a name here.
    let checked = paths.iter().map(check).collect::<Result<Vec<_>>>()?;
    let mut incoming = Vec::new();
    let taken = paths.iter().zip(checked).try_for_each(|(path, checked)| {
        incoming.push(bring_in(engine, path, checked)?);
        Ok(())
    });
    let brought = taken.and_then(|()| engine.store.id.env.files.sync_dir(&engine.store.id.dir));
    if let Err(error) = brought {
        give_back(engine, &incoming);
        return Err(error);
    }
    let mut opened = Vec::new();
    if family.0.reads.in_memory {
        // Before writers are held up: it reads them whole. The error of one that cannot be opened goes
        // to its first reader.
        let tables = &family.0.reads.tables;
        let open = |file: &Incoming| tables.open_unnumbered(file.number, file.size).ok();
        opened.extend(incoming.iter().map(open));
    }
    let mut told = false;
    let installed = install_external(engine, &family.0, &incoming, opened, &mut told);
    if let Ok(first) = installed {
        for (at, (path, file)) in paths.iter().zip(&incoming).enumerate() {
            engine.store.watch.notices.note(|| {
                Notice::Ingested(IngestInfo {
                    family: family.0.name.clone(),
                    path: path.clone(),
                    table: file.number,
                    seqno: first + at as u64 + u64::from(drumlin_base::bug!("ingested-told-late")),
                    properties: Arc::clone(&file.properties),
                })
            });
        }
    }
    if let Err(error) = installed {
        // After the write to the MANIFEST it is unknown whether it names the tables: they stay, and the next
        // open decides.
        if !told {
            give_back(engine, &incoming);
        }
        return Err(error);
    }
    for path in paths.iter().filter(|_| move_files) {
        // All were taken in, as the caller asked; an original that stays is reported. A path that
        // was given twice is gone already.
        match engine.store.id.env.files.remove(path) {
            Err(error) if !error.is_not_found() => engine.store.file_stays(&error),
            _ => {}
        }
    }
    Ok(())
}

/// Takes the names away that [`bring_in`] gave.
fn give_back(engine: &Engine, incoming: &[Incoming]) {
    let given_up = match drumlin_base::bug!("refused-ingest-leaves-names") {
        true => &[],
        false => incoming,
    };
    for file in given_up {
        // The error that led here is the one that matters; leftovers go at the next open.
        let _ = engine
            .store
            .id
            .env
            .files
            .remove(&names::table(&engine.store.id.dir, file.number));
    }
}

/// Refuses the table in `file` where the RocksDB that the directory is kept for does not read it.
///
/// # Errors
/// `NotSupported`; `Corruption`, `Io` of its footer.
pub(super) fn check_vintage(
    engine: &Engine,
    table: &Table,
    file: &dyn RandomAccessFile,
) -> Result<()> {
    let vintage = engine.store.id.vintage;
    if let Table::Block(_) = table
        && let Some(newer) = vintage.refuses(&drumlin_table::read_footer(file, file.size())?)
    {
        let message = format!(
            "an external table with {newer} in a directory of RocksDB {vintage}, which does not read it"
        );
        return Err(Error::not_supported(message));
    }
    Ok(())
}

/// Reads the whole table: a sound external table of this family's order.
fn check_external(engine: &Engine, family: &Family, path: &Path) -> Result<Incoming> {
    let file = engine.store.id.env.files.open(path)?;
    let size = file.size();
    let footer = Arc::clone(&file);
    let mut options = TableReaderOptions::new(
        path.to_path_buf(),
        0,
        Arc::clone(&engine.store.caches.block_cache),
        Arc::clone(&engine.store.caches.budget),
    );
    options.order = family.options.order.clone();
    let table = Table::open(file, options)?;
    check_vintage(engine, &table, &*footer).map_err(|error| error.with_file(path))?;
    let refuse = |why: String| Err(Error::invalid_argument(why).with_file(path));
    if !table.properties().user.contains_key(EXTERNAL_VERSION) {
        return refuse("the table was not made by an SST file writer".to_owned());
    }
    if !table.range_tombstones().is_empty() {
        refuse_timestamps(&family.options.order).map_err(|error| error.with_file(path))?;
    }
    let references = table.verify()?;
    if references > 0 && !drumlin_base::bug!("blob-references-taken-in") {
        return refuse("external tables with values in blob files are not taken in".to_owned());
    }
    if let Some(ttl) = &family.reads.ttl
        && let Some(key) = ttl::without_time(ttl, &table)?
    {
        return refuse(format!(
            "the family has times behind its values, and that of the key \"{}\" has none",
            key.escape_ascii()
        ));
    }
    let mut cursor = table.iter(TableReadOptions {
        fill_cache: false,
        ..Default::default()
    });
    let mut bounds = NewFile::default();
    for seek in [TableIter::seek_to_first, TableIter::seek_to_last] {
        seek(&mut cursor);
        cursor.status()?; // The next seek forgets an error.
        if cursor.valid() {
            bounds.widen(table.order(), cursor.key(), cursor.key());
        }
    }
    for tombstone in table.range_tombstones() {
        // One over nothing, which only others write, has no part in the bounds.
        if table
            .order()
            .compare(&tombstone.begin, &tombstone.end)
            .is_lt()
            && !drumlin_base::bug!("external-range-out-of-bounds")
        {
            bounds.widen_by_range(table.order(), tombstone);
        }
    }
    if bounds.smallest.is_empty() {
        return refuse("the table holds no entry".to_owned());
    }
    Ok(Incoming {
        number: 0,
        size,
        smallest: bounds.smallest,
        largest: bounds.largest,
        properties: Arc::new(table.properties().clone()),
    })
}

/// Gives the file a second name among the tables, or copies it where that cannot be.
fn bring_in(engine: &Engine, path: &Path, mut checked: Incoming) -> Result<Incoming> {
    checked.number = engine.store.files.numbers.take();
    let to = names::table(&engine.store.id.dir, checked.number);
    match engine.store.id.env.files.link(path, &to) {
        Err(error) if error.kind() == ErrorKind::NotSupported => {
            copy_file(engine, path, &to, checked.size)?;
        }
        linked => linked?,
    }
    if let Err(error) = engine.store.id.env.files.sync_file(&to) {
        give_back(engine, &[checked]);
        return Err(error);
    }
    Ok(checked)
}

/// Between two write groups: memtables go first, so that the ingested tables are newer than them,
/// then the tables get their sequence numbers and their place in L0.
///
/// Sets `told` once the MANIFEST may name the tables. Of those in `opened` a lookup finds the tables open as soon as
/// it can find them at all.
///
/// Gives the sequence number of the first one's entries; the others have those after it.
fn install_external(
    engine: &Engine,
    family: &Arc<Family>,
    incoming: &[Incoming],
    opened: Vec<Option<Arc<Table>>>,
    told: &mut bool,
) -> Result<SeqNo> {
    engine.flush_family(family.id)?; // Most of it without holding up writers.
    engine.store.sync_closed_wals()?;
    engine.writes.run_exclusive(|log| {
        engine.store.check_open()?;
        if !drumlin_base::bug!("ingested-under-the-memtable") {
            engine.writes.env.rotate(log, family.id, false)?;
        }
        // The tables outlive a power cut from here on, and so must what was written before them, in whichever family.
        if !drumlin_base::bug!("ingest-outlives-earlier-writes") {
            engine.writes.sync_logged(log)?;
        }
        let change = change_log::next(engine, log, family.id, || WhatChanged::Ingested {
            wal: log.wal.number(),
            tables: incoming.iter().map(|file| file.number).collect(),
        });
        change_log::keep_tables(engine, &change)?;
        let mut state = engine.background.wait_for_flushed(family.id)?;
        let mut edit = VersionEdit::of_family(family.id);
        let mut seqno = log.last_seqno;
        let first = seqno + 1;
        let mut ahead = Ahead::new(&family.reads.tables);
        let mut opened = opened.into_iter();
        for file in incoming {
            seqno += u64::from(!drumlin_base::bug!("ingested-at-an-old-number"));
            edit.new_files
                .push((0, file.described(&family.options.order, seqno)));
            if let Some(table) = opened.next().flatten() {
                ahead.take(file.number, table, seqno);
            }
        }
        edit.last_seqno = Some(seqno);
        *told = true;
        edit.change = change_log::told(&change).map(|(change, _)| change);
        engine.store.log_and_apply(&mut state, vec![edit])?;
        ahead.keep();
        if change.is_none() {
            log.last_seqno = seqno;
            engine.store.published.set(seqno);
        }
        // A compaction may be due now.
        engine.store.changed.notify_all();
        drop(state);
        change_log::end(engine, log, &change).map(|()| first)
    })
}

impl Incoming {
    fn described(&self, order: &KeyOrder, seqno: SeqNo) -> NewFile {
        let bound = |key: &[u8]| {
            let mut out = Vec::new();
            let tag = split_internal(key).map_or(0, |(_, tag)| tag);
            let seqno = match tag_seqno(tag) {
                SEQNO_MAX => SEQNO_MAX, // The end of a range.
                _ => seqno,
            };
            append_internal(&mut out, user_key(key), seqno, tag_kind(tag));
            out
        };
        debug_assert!(
            order
                .compare(user_key(&self.smallest), user_key(&self.largest))
                .is_le()
        );
        NewFile {
            number: self.number,
            size: self.size,
            smallest: bound(&self.smallest),
            largest: bound(&self.largest),
            smallest_seqno: seqno,
            largest_seqno: seqno,
            ..NewFile::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use drumlin_base::rng::Rng;
    use drumlin_table::TableFormat;
    use drumlin_testkit::memory_dir;

    use super::*;
    use crate::{Db, Options, ReadOptions};

    fn is_laid_out(db: &Db) -> bool {
        let family = &db.default_family().0;
        let super_version = family.super_version.load();
        super_version
            .resident_runs(&family.reads.order, &family.reads.tables)
            .is_some()
    }

    fn options() -> Options {
        let mut options = Options::default();
        options.family.table_format = Some(TableFormat::Plain);
        options
    }

    /// An external table of `keys`, each with `value`.
    fn external(path: PathBuf, format: TableFormat, keys: &[&str], value: &[u8]) -> PathBuf {
        let options = TableWriterOptions {
            format,
            ..TableWriterOptions::default()
        };
        let mut writer = SstFileWriter::create(&Env::system(), &path, options).unwrap();
        for key in keys {
            writer.put(key.as_bytes(), value).unwrap();
        }
        writer.finish().unwrap();
        path
    }

    #[test]
    fn tables_taken_in_are_open_and_laid_out_before_the_first_lookup() {
        let dir = memory_dir();
        let db = Db::open(dir.path(), options()).unwrap();
        db.put(b"b", b"old").unwrap();
        db.flush().unwrap();
        let before = ReadOptions {
            snapshot: Some(db.snapshot()),
            ..ReadOptions::default()
        };
        let at = |name: &str| dir.path().join(name);
        let tables = [
            external(at("one"), TableFormat::Plain, &["a", "b"], b"one"),
            external(at("two"), TableFormat::Plain, &["b", "c"], b"two"),
        ];
        db.ingest(db.default_family(), &tables, true).unwrap();
        let check = |db: &Db| {
            assert!(is_laid_out(db));
            for (key, value) in [("a", "one"), ("b", "two"), ("c", "two")] {
                let found = db.get(key).unwrap();
                assert_eq!(found.as_deref(), Some(value.as_bytes()), "{key}");
            }
        };
        check(&db);
        let old = ["a", "b", "c"].map(|key| db.get_cf(db.default_family(), key, &before).unwrap());
        assert_eq!(old.each_ref().map(Option::is_some), [false, true, false]);
        assert_eq!(old[1].as_deref(), Some(&b"old"[..]));
        drop((before, old));
        db.close().unwrap();
        let db = Db::open(dir.path(), options()).unwrap();
        check(&db);
    }

    #[test]
    fn a_table_of_another_format_is_taken_in_and_opened_by_its_first_reader() {
        let dir = memory_dir();
        let db = Db::open(dir.path(), options()).unwrap();
        let table = external(dir.path().join("one"), TableFormat::Block, &["a"], b"one");
        db.ingest(db.default_family(), &[table], true).unwrap();
        assert!(!is_laid_out(&db));
        assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"one"[..]));
    }

    type Map = BTreeMap<Vec<u8>, Vec<u8>>;

    fn rows(db: &Db) -> Map {
        let mut iter = db.iter(ReadOptions::default());
        let mut rows = Map::new();
        iter.seek_to_first();
        while iter.valid() {
            rows.insert(iter.key().to_vec(), iter.value().to_vec());
            iter.next();
        }
        iter.status().unwrap();
        rows
    }

    fn key(rng: &mut Rng) -> Vec<u8> {
        format!("{:03}", rng.below(200)).into_bytes()
    }

    /// Writes a table of ranges and points at random, and has `map` be what it makes of it.
    fn random_external(
        path: PathBuf,
        format: TableFormat,
        rng: &mut Rng,
        map: &mut Map,
    ) -> PathBuf {
        let options = TableWriterOptions {
            format,
            ..TableWriterOptions::default()
        };
        let mut writer = SstFileWriter::create(&Env::system(), &path, options).unwrap();
        for _ in 0..1 + rng.below(8) {
            let (a, b) = (key(rng), key(rng));
            let (begin, end) = (a.clone().min(b.clone()), a.max(b));
            writer.delete_range(&begin, &end).unwrap();
            map.retain(|key, _| *key < begin || *key >= end);
        }
        let points: BTreeSet<_> = (0..rng.below(20)).map(|_| key(rng)).collect();
        for key in points {
            if rng.one_in(4) {
                writer.delete(&key).unwrap();
                map.remove(&key);
            } else {
                let value = format!("{} of {}", rng.below(9), path.display()).into_bytes();
                writer.put(&key, &value).unwrap();
                map.insert(key, value);
            }
        }
        match writer.finish() {
            Ok(_) => path,
            // Ranges over nothing, and no point.
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                external(path, format, &["999"], b"")
            }
        }
    }

    #[test]
    fn ranges_of_external_tables_delete_what_was_before_and_nothing_in_their_table() {
        let formats = [
            TableFormat::Block,
            TableFormat::Plain,
            TableFormat::Searchable,
        ];
        for (format, seed) in formats
            .into_iter()
            .flat_map(|format| (0..8).map(move |seed| (format, seed)))
        {
            let mut rng = Rng::new(seed);
            let dir = memory_dir();
            let mut options = options();
            options.family.table_format = Some(format);
            let mut db = Db::open(dir.path(), options.clone()).unwrap();
            let mut map = Map::new();
            for round in 0..12 {
                for _ in 0..30 {
                    let key = key(&mut rng);
                    db.put(&key, b"written").unwrap();
                    map.insert(key, b"written".to_vec());
                }
                let snapshot = db.snapshot();
                let before = map.clone();
                let tables: Vec<_> = (0..1 + rng.below(3))
                    .map(|at| {
                        let path = dir.path().join(format!("{round}-{at}"));
                        random_external(path, format, &mut rng, &mut map)
                    })
                    .collect();
                map.remove(&b"999"[..]);
                db.ingest(db.default_family(), &tables, rng.one_in(2))
                    .unwrap();
                db.delete("999").unwrap();
                let place = format!("{format:?}, seed {seed}, round {round}");
                match rng.below(4) {
                    0 => db.compact_range(db.default_family(), None, None).unwrap(),
                    1 => {
                        drop(snapshot);
                        db.close().unwrap();
                        db = Db::open(dir.path(), options.clone()).unwrap();
                        assert_eq!(rows(&db), map, "{place}, opened again");
                        continue;
                    }
                    _ => {}
                }
                assert_eq!(rows(&db), map, "{place}");
                let old = ReadOptions {
                    snapshot: Some(snapshot),
                    ..ReadOptions::default()
                };
                for number in 0..200 {
                    let key = format!("{number:03}").into_bytes();
                    let found = db.get(&key).unwrap();
                    assert_eq!(
                        found.as_deref(),
                        map.get(&key).map(Vec::as_slice),
                        "{place}: {number}"
                    );
                    let found = db.get_cf(db.default_family(), &key, &old).unwrap();
                    assert_eq!(
                        found.as_deref(),
                        before.get(&key).map(Vec::as_slice),
                        "{place}: {number}"
                    );
                }
            }
            assert!(db.verify().unwrap().damaged.is_empty());
        }
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_refused_and_one_over_nothing_is_nothing() {
        let dir = memory_dir();
        let path = dir.path().join("ranges");
        let options = TableWriterOptions::default();
        let mut writer = SstFileWriter::create(&Env::system(), &path, options).unwrap();
        let error = writer.delete_range(b"b", b"a").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        writer.delete_range(b"b", b"b").unwrap();
        let error = writer.delete_range(b"b", &vec![b'c'; KEY_BYTES_MAX + 1]);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::TooLarge);
        let error = writer.finish().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}
