//! A family alone, in a directory that is a database: its tables are those of `default` there. [`super::import`] takes it in.
//!
//! Tables are linked, as those of a checkpoint. One that refers to blob files is written anew with the values in it: it names
//! them by numbers that mean other files elsewhere. Everything is in tables, so there is no WAL.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use drumlin_base::key::{append_internal, split_internal, tag_kind, tag_seqno};
use drumlin_base::{InternalIterator, Result, ValueKind};
use drumlin_fs::{CreateOptions, FileKind};
use drumlin_table::blob::BlobIndex;
use drumlin_table::{TableReadOptions, TableWriter, TableWriterOptions};

use crate::db::engine::Engine;
use crate::family::column_family::{DEFAULT_FAMILY, Family};
use crate::files::names;
use crate::iter::range_tombstone::Fragments;
use crate::maintenance::checkpoint::{into_new_dir, link_or_copy};
use crate::options::file as options_file;
use crate::options::stored as stored_options;
use crate::version::{FileMeta, NewFile, Version};

/// Makes `target`, which must not exist, a database that has the family alone.
///
/// # Errors
/// `InvalidArgument` when `target` exists; `ReadOnly`, `NoSpace`, `Io`, `Shutdown`; `Corruption` of a table that is written
/// anew. A partial copy is removed again.
pub(crate) fn export(engine: &Engine, family: &Arc<Family>, target: &Path) -> Result<()> {
    engine.store.check_writable()?;
    family.check_alive()?;
    into_new_dir(engine, target, |dir| {
        if !drumlin_base::bug!("export-without-memtables") {
            engine.flush_family(family.id)?;
        }
        let version = Arc::clone(&engine.store.lock_state().family_mut(family.id)?.version);
        let tables = copy_tables(engine, family, &version, dir)?;
        describe(engine, family, tables, dir)
    })
}

/// Gives the tables of `version`, and the models they name, a name in `dir`.
fn copy_tables(
    engine: &Engine,
    family: &Arc<Family>,
    version: &Version,
    dir: &Path,
) -> Result<Vec<(u32, NewFile)>> {
    let mut models = BTreeSet::new();
    let mut tables = Vec::new();
    for (level, file) in version.files() {
        engine.store.check_open()?; // A closing thread waits for this.
        let to = names::table(dir, file.number);
        let described = match file.oldest_blob_file {
            0 => {
                link_or_copy(engine, &family.reads.tables.path(file.number), &to)?;
                models.extend(file.model());
                NewFile {
                    model: file.model(),
                    ..file.described().clone()
                }
            }
            _ => write_whole(engine, family, (version, level, file), &to)?,
        };
        tables.push((level as u32, described));
    }
    for id in models {
        let path = names::model(&engine.store.id.dir, id);
        link_or_copy(engine, &path, &names::model(dir, id))?;
    }
    Ok(tables)
}

/// Writes the table anew with the values that it refers to in it. Its entries keep their sequence numbers, and its bounds
/// their keys.
fn write_whole(
    engine: &Engine,
    family: &Arc<Family>,
    (version, level, file): (&Version, usize, &Arc<FileMeta>),
    to: &Path,
) -> Result<NewFile> {
    let table = family.reads.tables.find(file)?;
    let created = engine
        .store
        .id
        .env
        .files
        .create(to, CreateOptions::new(FileKind::Table))?;
    let options = TableWriterOptions {
        file_number: file.number,
        creation_time: file.creation_time,
        oldest_ancestor_time: file.oldest_ancestor_time,
        ..engine
            .background
            .table_writer(family, &family.settings(), level)
    };
    let mut writer = TableWriter::new(created, options);
    let reading = TableReadOptions {
        fill_cache: false,
        ..TableReadOptions::default()
    };
    let mut entries = table.iter(reading);
    entries.seek_to_first();
    while entries.valid() {
        engine.store.check_open()?;
        match split_internal(entries.key()) {
            Some((user_key, tag)) if tag_kind(tag) == ValueKind::BlobIndex as u8 => {
                let index = BlobIndex::decode(entries.value())?;
                let value = family
                    .reads
                    .blobs
                    .read(version, user_key, &index, &reading)?;
                writer.add(&with_value(entries.key()), &value)?;
            }
            _ => writer.add(entries.key(), entries.value())?,
        }
        entries.next();
    }
    entries.status()?;
    // Tables of others may have them in any order, and several of one begin.
    let tombstones = Fragments::new(table.order(), table.range_tombstones());
    for tombstone in tombstones.tombstones() {
        writer.add_range_tombstone(&tombstone.begin, &tombstone.end, tombstone.seqno)?;
    }
    let model = writer.shared_model();
    let finished = writer.finish()?;
    Ok(NewFile {
        size: finished.size,
        tail_size: finished.tail_size,
        smallest: with_value(&file.smallest),
        largest: with_value(&file.largest),
        oldest_blob_file: 0,
        blob_files: None,
        unique_id: None,
        checksum: None,
        model,
        ..file.described().clone()
    })
}

/// The internal key, that of a value where it is one of a reference.
fn with_value(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len());
    match split_internal(key) {
        Some((user_key, tag)) if tag_kind(tag) == ValueKind::BlobIndex as u8 => {
            append_internal(&mut out, user_key, tag_seqno(tag), ValueKind::Value as u8);
        }
        _ => out.extend_from_slice(key),
    }
    out
}

/// Writes the MANIFEST and the OPTIONS file of `tables`.
fn describe(
    engine: &Engine,
    family: &Family,
    tables: Vec<(u32, NewFile)>,
    dir: &Path,
) -> Result<()> {
    let files = &engine.store.id.env.files;
    let stored = stored_options::read(&engine.store.id.dir, &engine.store.id.options)?;
    let (options, manifest) = {
        let state = engine.store.lock_state();
        // The number before the MANIFEST, which records the next one. LevelDB's directories have no such file.
        let options = (!engine.store.id.leveldb).then(|| {
            let number = engine.store.files.numbers.take();
            (
                number,
                stored_options::options_of_copy(&engine.store, &state, stored),
            )
        });
        let order = family.options.order.clone();
        (options, state.versions.copy_of_family(order, tables)?)
    };
    manifest.write(&**files, dir)?;
    if let Some((number, mut options)) = options {
        options.families.retain(|it| it.name == family.name);
        for it in &mut options.families {
            it.name = DEFAULT_FAMILY.to_owned();
        }
        options_file::write(&**files, dir, number, &options)?;
    }
    files.sync_dir(dir)
}
