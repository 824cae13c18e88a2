//! A family that comes with its tables: those that another database, or [`super::export`], has in its `default`.
//!
//! Tables keep their bytes, levels and sequence numbers; they get new names. The family is in the MANIFEST with all of
//! them or not at all. No sequence number of the store is below one of theirs afterwards.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::{Error, Result, SEQNO_MAX};

use crate::caches::models::ModelHold;
use crate::caches::table_cache::TableCache;
use crate::db::engine::Engine;
use crate::family::column_family::Family;
use crate::files::names;
use crate::maintenance::checkpoint::link_or_copy;
use crate::maintenance::families;
use crate::maintenance::ingest::check_vintage;
use crate::options::settings::FamilyOptions;
use crate::version::{NewTables, Version};

/// Makes the family `name` of what `source`, which is open for reading, has in its default family; `moves` removes the
/// names of tables there afterwards.
///
/// # Errors
/// `InvalidArgument` for a name that is taken, and for writes in `source` that are in no table; `NotSupported` of values in
/// blob files, where changes are kept, and of tables that the directory's RocksDB does not read; `Corruption` naming a
/// damaged table; `NoSpace`, `Io`. There is no family then.
pub(crate) fn import(
    engine: &Engine,
    name: &str,
    options: FamilyOptions,
    source: &Engine,
    moves: bool,
) -> Result<Arc<Family>> {
    families::check_new(engine, name, &options)?;
    if engine
        .store
        .families
        .load()
        .values()
        .any(|it| it.name == name)
    {
        let message = format!("there is a column family {name:?} already");
        return Err(Error::invalid_argument(message));
    }
    if engine.store.files.archive.is_on() {
        let message = "a family that comes with its tables where changes are kept: who follows them could not make it";
        return Err(Error::not_supported(message));
    }
    let _pending = engine.store.begin_job()?;
    let from = importable(source, &options)?;
    let mut brought = Brought::new(engine);
    let paths = brought.take_all(source, &from, &options)?;
    let family = install(engine, name, options, &mut brought)?;
    for path in paths.iter().filter(|_| moves) {
        // The family is there; an original that stays is reported.
        match engine.store.id.env.files.remove(path) {
            Err(error) if !error.is_not_found() => engine.store.file_stays(&error),
            _ => {}
        }
    }
    Ok(family)
}

/// The version of `source` whose tables are taken, and where they are.
fn importable(source: &Engine, options: &FamilyOptions) -> Result<(Arc<TableCache>, Arc<Version>)> {
    let dir = &source.store.id.dir;
    let refuse = |why: &str| Err(Error::invalid_argument(why).with_file(dir));
    if source.store.id.leveldb {
        return refuse("tables of LevelDB do not say their sequence numbers");
    }
    if source.store.visible_seqno() > SEQNO_MAX / 2 {
        return refuse("its sequence numbers leave none for what is written later");
    }
    let mut state = source.store.lock_state();
    let family = state.family_mut(0)?;
    let (stored, given) = (family.family.options.order.name(), options.order.name());
    if stored != given {
        return refuse(&format!(
            "its tables are in the order of {stored}, not of {given}"
        ));
    }
    if !family.mutable.is_empty() || !family.immutables.is_empty() {
        return refuse("its WAL has writes that are in no table: export the family, or flush it");
    }
    if !family.version.blobs().is_empty() && !drumlin_base::bug!("import-takes-blob-references") {
        let message =
            "its tables refer to blob files, by numbers that mean others here: export the family";
        return Err(Error::not_supported(message).with_file(dir));
    }
    let tables = Arc::clone(&family.family.reads.tables);
    Ok((tables, Arc::clone(&family.version)))
}

/// Tables that have names in the directory and are in no version yet. Gives the names back when it is dropped.
struct Brought<'a> {
    engine: &'a Engine,
    tables: NewTables,
    /// The models that the tables name, held until a version names them.
    models: Vec<ModelHold>,
    /// Whether the MANIFEST may name them: then they stay, and the next open decides.
    is_told: bool,
}

impl<'a> Brought<'a> {
    fn new(engine: &'a Engine) -> Self {
        Self {
            engine,
            tables: NewTables::default(),
            models: Vec::new(),
            is_told: false,
        }
    }

    /// Brings the tables of `version` in, and what they need; their names in `source`.
    fn take_all(
        &mut self,
        source: &Engine,
        (from, version): &(Arc<TableCache>, Arc<Version>),
        options: &FamilyOptions,
    ) -> Result<Vec<PathBuf>> {
        let store = &self.engine.store;
        let mut models = BTreeSet::new();
        let mut paths = Vec::new();
        for (level, file) in version.files() {
            store.check_open()?;
            let mut described = file.described().clone();
            described.number = store.files.numbers.take();
            described.model = file.model();
            models.extend(described.model);
            let (path, to) = (
                from.path(file.number),
                names::table(&store.id.dir, described.number),
            );
            self.tables.files.push((level as u32, described));
            link_or_copy(source, &path, &to)?;
            store.id.env.files.sync_file(&to)?;
            paths.push(path);
        }
        self.tables.last_seqno = source.store.visible_seqno();
        for id in models {
            let (known, number) = (&store.caches.models, store.files.numbers.take());
            let held = known.take_in(&source.store.caches.models, id, number)?;
            self.models.push(held);
        }
        self.check(options)?;
        store.id.env.files.sync_dir(&store.id.dir)?;
        Ok(paths)
    }

    /// Opens each table as the family will.
    fn check(&self, options: &FamilyOptions) -> Result<()> {
        let store = &self.engine.store;
        let tables = store
            .caches
            .table_cache
            .for_family(options.order.clone(), options.prefix_extractor.clone());
        for (_, file) in &self.tables.files {
            let path = names::table(&store.id.dir, file.number);
            let table = tables.open_unnumbered(file.number, file.size)?;
            check_vintage(self.engine, &table, &*store.id.env.files.open(&path)?)
                .map_err(|error| error.with_file(&path))?;
        }
        Ok(())
    }
}

impl Drop for Brought<'_> {
    fn drop(&mut self) {
        let store = &self.engine.store;
        let given_up = match self.is_told || drumlin_base::bug!("refused-import-leaves-names") {
            true => &[],
            false => self.tables.files.as_slice(),
        };
        for (_, file) in given_up {
            // The error that led here is the one that matters; leftovers go at the next open.
            let _ = store
                .id
                .env
                .files
                .remove(&names::table(&store.id.dir, file.number));
        }
    }
}

/// Between two write groups: the MANIFEST gets the family, the sequence numbers go on behind those of its tables, and
/// readers see it.
fn install(
    engine: &Engine,
    name: &str,
    options: FamilyOptions,
    brought: &mut Brought<'_>,
) -> Result<Arc<Family>> {
    engine.store.sync_closed_wals()?;
    engine.writes.run_exclusive(|log| {
        engine.store.check_open()?;
        // The family outlives a power cut from here on, and so must what was written before it.
        engine.writes.sync_logged(log)?;
        let mut state = engine.store.lock_state();
        let tables = std::mem::take(&mut brought.tables);
        let last_seqno = tables.last_seqno;
        let (order, wal) = (options.order.clone(), log.wal.number());
        brought.is_told = true;
        let id = engine.store.edit_manifest(&mut state, |set| {
            set.add_family_of(name, order, wal, tables)
        })?;
        if last_seqno > log.last_seqno && !drumlin_base::bug!("import-keeps-old-numbers") {
            log.last_seqno = last_seqno;
            engine.store.published.set(last_seqno);
        }
        let family = families::show_new(engine, &mut state, (id, name), options, wal)?;
        // A compaction may be due now.
        engine.store.changed.notify_all();
        Ok(family)
    })
}
