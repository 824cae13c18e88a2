//! Settings read from a directory for the families' options that the user leaves open.
//!
//! RocksDB keeps the name of each family's key order in the MANIFEST and the names of its merge
//! operator and prefix extractor in the OPTIONS file. A named one that is built in here is used
//! where the user set nothing, so that a directory of another program opens without its code. The
//! OPTIONS file is a comfort: one that is missing or makes no sense is passed over.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::operators::{CappedPrefix, FixedPrefix};
use drumlin_base::{Error, ErrorKind, KeyOrder, PrefixExtractor, Result};
use drumlin_table::{Codec, TableFormat};

use crate::compaction::{CompactionStyle, style_text};
use crate::db::foreign;
use crate::family::column_family::{DEFAULT_FAMILY, Family};
use crate::family::merge_operators;
use crate::family::settings::FamilySettings;
use crate::options::file as options_file;
use crate::options::file::{FamilySection, OptionsFile, Section};
use crate::options::settings::{FamilyOptions, Options, Tuning};
use crate::options::vintage::Vintage;
use crate::store::state::State;
use crate::store::store::Store;
use crate::version::VersionSet;
use crate::wal::archive::KeepChanges;

/// Every family of `dir` (the default one where there is no database yet) with `options.family`,
/// in the key order it was written in where that is a built-in one.
pub(crate) fn all_families(dir: &Path, options: &Options) -> Result<Vec<(String, FamilyOptions)>> {
    foreign::refuse(&*options.env.files, dir)?;
    let stored = match VersionSet::list_family_orders(&*options.env.files, dir) {
        Err(error) if error.is_not_found() => vec![(DEFAULT_FAMILY.to_owned(), None)],
        other => other?,
    };
    let stored = stored.into_iter();
    Ok(stored
        .map(|(name, order)| (name, of_order(options, order.as_deref())))
        .collect())
}

/// `options.family`, in the key order `order` where that is a built-in one.
pub(crate) fn of_order(options: &Options, order: Option<&str>) -> FamilyOptions {
    let mut family = options.family.clone();
    if let Some(order) = order.filter(|order| *order != family.order.name())
        && let Some(order) = KeyOrder::by_name(order)
    {
        family.order = order;
    }
    family
}

/// The key order of the family `name`, which was written in the order called `written_in`, where that is known.
///
/// # Errors
/// `InvalidArgument` where it is no built-in one and not that of `options.family`.
pub(crate) fn order_of(
    options: &Options,
    name: &str,
    written_in: Option<&str>,
) -> Result<KeyOrder> {
    let order = of_order(options, written_in).order;
    match written_in.filter(|written_in| *written_in != order.name()) {
        None => Ok(order),
        Some(written_in) => Err(Error::invalid_argument(format!(
            "family {name:?} was written in the order of {written_in}, not of {}",
            order.name()
        ))),
    }
}

/// The newest OPTIONS file of `dir`, if there is one that makes sense.
pub(crate) fn read(dir: &Path, options: &Options) -> Result<Option<OptionsFile>> {
    match options_file::read_newest(&*options.env.files, dir) {
        Err(error) if error.is_not_found() => Ok(None),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::Corruption | ErrorKind::NotSupported
            ) =>
        {
            tracing::warn!(%error, "the OPTIONS file is passed over");
            Ok(None)
        }
        other => other,
    }
}

/// Gives `family` the operators, the number of levels and the table format that `stored` names, where it has none,
/// and the style it names, where neither the family nor the database (`style`) sets one.
pub(crate) fn complete(family: &mut FamilyOptions, stored: &FamilySection, style: CompactionStyle) {
    if style == CompactionStyle::Auto && family.compaction_style.is_none() {
        family.compaction_style = style_text::read(&stored.options);
    }
    if family.levels_max.is_none() {
        family.levels_max = style_text::levels(&stored.options);
    }
    if family.table_format.is_none() {
        family.table_format = Some(stored.table_format());
    }
    if family.scope_bytes.is_none() {
        family.scope_bytes = Some(stored.scope_bytes());
    }
    if family.ttl.is_none() && !drumlin_base::bug!("stored-ttl-not-taken") {
        family.ttl = stored.ttl().map(Duration::from_secs);
    }
    if family.merge_operator.is_none() || drumlin_base::bug!("stored-operator-over-the-callers") {
        family.merge_operator = stored
            .merge_operator_text()
            .and_then(merge_operators::from_options);
    }
    if family.prefix_extractor.is_none() {
        family.prefix_extractor = stored.prefix_extractor().and_then(prefix_extractor);
    }
}

/// Keeps blob files out of `family` where `stored` says so and nobody says otherwise: other features of
/// the program that comes back may not bear them. `tuning` is the database's, complete.
pub(crate) fn keep_blobs_out(family: &mut FamilyOptions, stored: &FamilySection, tuning: &Tuning) {
    if stored.blobs() == Some(None) {
        let own = family.tuning.get_or_insert_with(|| tuning.clone());
        own.blob_from_bytes.get_or_insert(usize::MAX);
    }
}

/// The oldest version that must be able to read new files in a RocksDB directory.
pub(crate) fn vintage(stored: Option<&OptionsFile>, versions: &VersionSet) -> Vintage {
    let told = stored.and_then(|file| Vintage::parse(&file.rocksdb_version));
    told.unwrap_or_else(|| {
        let mut families = versions.families().values();
        let has_tables = families.any(|family| family.current.files().next().is_some());
        Vintage::of_manifest(versions.db_id().is_some(), has_tables)
    })
}

/// Settings that are to hold once an OPTIONS file has them; for the others those that hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proposed<'a> {
    /// Of the family with this number.
    pub(crate) family: Option<(u32, &'a FamilySettings)>,
    /// Options of the database that were set by name.
    pub(crate) database: Option<&'a Section>,
}

/// Writes an OPTIONS file of the families in `state` that RocksDB's tools read, and removes all
/// but the newest two, unless the removal of files is paused.
///
/// # Errors
/// `Io`, `NoSpace`; the older files are then still there.
pub(crate) fn write_options(store: &Store, state: &State, proposed: &Proposed<'_>) -> Result<()> {
    // Nothing is added to a file that may not be the newest, or may name families that are gone.
    let mut live = store.files.options.lock();
    *live = None;
    let stored = read(&store.id.dir, &store.id.options)?;
    let mut options = present_options(store, state, stored, proposed);
    if store.id.wal_dir != store.id.dir {
        // As RocksDB: a path that a later open from another working directory finds as well.
        let path =
            std::path::absolute(&store.id.wal_dir).unwrap_or_else(|_| store.id.wal_dir.clone());
        let path = path.display().to_string();
        options.database.set(options_file::WAL_DIR, path);
    } else {
        options.keep_wal_beside();
    }
    let files = &*store.id.env.files;
    let number = store.files.numbers.take();
    let written = options_file::write(files, &store.id.dir, number, &options)?;
    *live = Some(written);
    match state.removal_pauses {
        0 => options_file::remove_older(files, &store.id.dir),
        _ => Ok(()),
    }
}

/// Adds the options of `family`, which is new, to the OPTIONS file.
///
/// # Errors
/// As [`write_options`], which is tried where nothing can be added.
pub(crate) fn add_family(store: &Store, state: &State, family: &Family) -> Result<()> {
    let section = section_of(store, family, &family.settings(), None);
    let added = store
        .files
        .options
        .lock()
        .as_mut()
        .map(|live| live.add(&section));
    match added {
        Some(Ok(())) => return Ok(()),
        Some(Err(error)) => store.watch.report_error(&error),
        None => {}
    }
    write_options(store, state, &Proposed::default())
}

/// The OPTIONS file for a copy of the database as it is in `state`; the copy has its WAL beside its
/// tables.
pub(crate) fn options_of_copy(
    store: &Store,
    state: &State,
    stored: Option<OptionsFile>,
) -> OptionsFile {
    let mut options = present_options(store, state, stored, &Proposed::default());
    options.keep_wal_beside();
    options
}

/// How long changes are kept as `stored` says; `None` where they are not.
pub(crate) fn keep_changes(stored: &OptionsFile) -> Option<KeepChanges> {
    keep_changes_in(&stored.database)
}

fn keep_changes_in(database: &Section) -> Option<KeepChanges> {
    let bound = |key| {
        let number = database.number(key)?;
        u64::try_from(number).ok().filter(|&number| number > 0)
    };
    let keep = KeepChanges {
        age: bound(options_file::KEEP_SECONDS).map(Duration::from_secs),
        bytes: bound(options_file::KEEP_MIB).map(|mib| mib.saturating_mul(1 << 20)),
    };
    keep.is_on().then_some(keep)
}

/// Sets how long changes are kept, where the section says otherwise.
fn set_keep_changes(database: &mut Section, keep: KeepChanges) {
    if keep_changes_in(database).unwrap_or_default() == keep {
        return;
    }
    let seconds = |age: Duration| age.as_secs() + u64::from(age.subsec_nanos() > 0);
    let mib = |bytes: u64| bytes.div_ceil(1 << 20).max(1);
    let seconds = keep.age.map_or(0, seconds);
    let mib = keep.bytes.map_or(0, mib);
    database.set(options_file::KEEP_SECONDS, seconds.to_string());
    database.set(options_file::KEEP_MIB, mib.to_string());
}

/// Everything in `stored`, with the settings that differ now; only families that the MANIFEST names are
/// included. A read-only store changes nothing of `stored`.
fn present_options(
    store: &Store,
    state: &State,
    stored: Option<OptionsFile>,
    proposed: &Proposed<'_>,
) -> OptionsFile {
    let known = stored.iter().flat_map(|file| &file.families);
    let known: BTreeMap<&str, &FamilySection> = known.map(|it| (&*it.name, it)).collect();
    let families = state.versions.families().iter().map(|(id, found)| {
        let stored = known.get(&*found.name).copied();
        match (stored, state.families.get(id)) {
            (Some(stored), _) if store.id.read_only => stored.clone(),
            (stored, Some(family)) => {
                let present = family.family.settings();
                let next = proposed.family.filter(|(changed, _)| changed == id);
                let settings = next.map_or(&*present, |(_, settings)| settings);
                section_of(store, &family.family, settings, stored)
            }
            (_, None) => FamilySection::new(&found.name, found.order.name()),
        }
    });
    let families = families.collect();
    let mut database = Section::default();
    let mut rocksdb_version = String::new();
    if let Some(stored) = stored {
        (database, rocksdb_version) = (stored.database, stored.rocksdb_version);
    }
    if let Some(direct) = store.id.options.tuning.background_direct_io
        && database.flag(options_file::DIRECT_IO) != Some(direct)
        && !store.id.read_only
    {
        database.set(options_file::DIRECT_IO, direct.to_string());
    }
    database.take(proposed.database.unwrap_or(&state.named));
    let mut options = OptionsFile {
        database,
        families,
        rocksdb_version: store.id.vintage.older_name().unwrap_or(rocksdb_version),
    };
    if let (Some(keep), false) = (store.id.options.keep_changes, store.id.read_only) {
        set_keep_changes(&mut options.database, keep);
    }
    options
}

/// The OPTIONS section of `family`: everything in `stored`, with the settings that differ now.
fn section_of(
    store: &Store,
    family: &Family,
    settings: &FamilySettings,
    stored: Option<&FamilySection>,
) -> FamilySection {
    let order = family.options.order.name();
    let mut section = match stored {
        Some(stored) => stored.clone(),
        None => FamilySection::new(&family.name, order),
    };
    if section.comparator() != Some(order) {
        section.options.set("comparator", order);
    }
    let is_asked = family.options.compression.is_some()
        || settings.compression.codec != Options::default().compression.codec;
    if section.compression().is_none() || is_asked {
        let name = compression_name(settings.compression.codec);
        section.options.set("compression", name);
    }
    let deepest = family
        .super_version
        .load()
        .version
        .deepest_level()
        .unwrap_or(0);
    let levels = settings.compaction.levels.max(deepest + 1);
    style_text::write(&settings.style, levels, &mut section.options);
    if !settings.tuning.dynamic_levels {
        section.options.set(style_text::DYNAMIC, "false");
    }
    let ttl = family.options.ttl.map(|_| settings.ttl_seconds);
    describe(&mut section, &family.options, ttl);
    if store.id.vintage.takes_all() {
        let format = family.options.table_format.unwrap_or_default();
        let bytes = settings.tuning.blob_from(format);
        let bytes = (bytes < usize::MAX).then_some(bytes as u64);
        let told = section.blobs();
        // The size of theirs is left alone where nobody asks for another.
        let is_asked = settings.tuning.blob_from_bytes.is_some() && told != Some(bytes);
        if is_asked || told.is_none_or(|told| told.is_some() != bytes.is_some()) {
            section.set_blobs(bytes);
        }
    }
    section.options.take(&settings.named);
    if section.is_block_based() {
        section.table.take(&settings.named_table);
    }
    section
}

/// Puts the table format, the operators and the time to live of `family` into `section`. Names there that nothing here
/// implements are kept: the program that knows them will want them back.
fn describe(section: &mut FamilySection, family: &FamilyOptions, ttl_seconds: Option<u64>) {
    section.set_table_format(match family.table_format.unwrap_or_default() {
        // The format actually written: RocksDB must still be able to read it.
        TableFormat::Searchable if !matches!(family.order, KeyOrder::Bytewise) => {
            TableFormat::Block
        }
        format => format,
    });
    section.set_scope_bytes(family.scope_bytes.unwrap_or(0));
    let described = section.merge_operator_text().map(str::to_owned);
    let told = described.as_deref().and_then(merge_operators::from_options);
    let is_new_here = ttl_seconds.is_some() && section.ttl().is_none();
    if let Some(seconds) = ttl_seconds
        && section.ttl() != Some(seconds)
    {
        section.set_ttl(seconds);
    }
    if let Some(operator) = &family.merge_operator
        // By whichever of its names.
        && (is_new_here || told.is_none_or(|told| told.options_text() != operator.options_text()))
    {
        section.set_merge_operator(&operator.options_text());
    } else if let (true, Some(described)) = (is_new_here, described) {
        section.set_merge_operator(&described);
    }
    if let Some(extractor) = &family.prefix_extractor
        && section.prefix_extractor() != Some(extractor.name())
    {
        section.options.set("prefix_extractor", extractor.name());
    }
}

/// RocksDB's name of a codec in OPTIONS files.
fn compression_name(codec: Codec) -> &'static str {
    match codec {
        Codec::None => "kNoCompression",
        Codec::Snappy => "kSnappyCompression",
        Codec::Zlib => "kZlibCompression",
        Codec::Bzip2 => "kBZip2Compression",
        Codec::Lz4 => "kLZ4Compression",
        Codec::Lz4Hc => "kLZ4HCCompression",
        Codec::Zstd => "kZSTD",
    }
}

/// The built-in extractor called `name`.
fn prefix_extractor(name: &str) -> Option<Arc<dyn PrefixExtractor>> {
    let length = |short: &str, long: &str| {
        let rest = name
            .strip_prefix(short)
            .or_else(|| name.strip_prefix(long))?;
        rest.parse::<usize>().ok()
    };
    if let Some(length) = length("fixed:", "rocksdb.FixedPrefix.") {
        return Some(Arc::new(FixedPrefix::new(length)));
    }
    let length = length("capped:", "rocksdb.CappedPrefix.")?;
    Some(Arc::new(CappedPrefix::new(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: CompactionStyle = CompactionStyle::Auto;

    fn section(key: &str, value: &str) -> FamilySection {
        let mut section = FamilySection::new("default", "leveldb.BytewiseComparator");
        section.options.set(key, value);
        section
    }

    #[test]
    fn operators_named_on_disk_are_used_where_the_user_set_none() {
        let mut family = FamilyOptions::default();
        complete(
            &mut family,
            &section("prefix_extractor", "rocksdb.CappedPrefix.3"),
            AUTO,
        );
        complete(
            &mut family,
            &section("merge_operator", "UInt64AddOperator"),
            AUTO,
        );
        let extractor = family.prefix_extractor.clone().unwrap();
        assert_eq!(extractor.prefix(b"ab"), Some(&b"ab"[..]));
        assert_eq!(extractor.name(), "rocksdb.CappedPrefix.3");
        // A set option is kept.
        complete(
            &mut family,
            &section("prefix_extractor", "rocksdb.FixedPrefix.8"),
            AUTO,
        );
        complete(
            &mut family,
            &section("merge_operator", "stringappend"),
            AUTO,
        );
        assert_eq!(
            family.prefix_extractor.unwrap().name(),
            "rocksdb.CappedPrefix.3"
        );
        assert_eq!(family.merge_operator.unwrap().name(), "UInt64AddOperator");
    }

    #[test]
    fn the_table_format_is_kept_unless_it_is_set() {
        let mut written = FamilySection::new("default", "leveldb.BytewiseComparator");
        let plain = FamilyOptions {
            table_format: Some(TableFormat::Plain),
            ..FamilyOptions::default()
        };
        describe(&mut written, &plain, None);
        let text = OptionsFile {
            families: vec![written],
            ..OptionsFile::default()
        };
        let read = OptionsFile::parse(&text.to_text()).unwrap();
        let section = read.family("default").unwrap();
        assert!(!section.is_block_based());
        let mut family = FamilyOptions::default();
        complete(&mut family, section, AUTO);
        assert_eq!(family.table_format, Some(TableFormat::Plain));
        family.table_format = Some(TableFormat::Block);
        complete(&mut family, section, AUTO);
        assert_eq!(family.table_format, Some(TableFormat::Block));
        let mut back = section.clone();
        describe(&mut back, &family, None);
        assert!(back.is_block_based());
    }

    #[test]
    fn only_formats_that_are_written_keep_rocksdb_out() {
        for (order, block_based) in [
            (KeyOrder::Bytewise, false),
            (KeyOrder::ReverseBytewise, true),
        ] {
            let mut section = FamilySection::new("default", order.name());
            let searchable = FamilyOptions {
                order,
                table_format: Some(TableFormat::Searchable),
                ..FamilyOptions::default()
            };
            describe(&mut section, &searchable, None);
            assert_eq!(section.is_block_based(), block_based);
            let format = section.table_format();
            assert_eq!(format == TableFormat::Block, block_based);
        }
    }

    #[test]
    fn rocksdbs_plain_tables_are_not_taken_for_ours() {
        let text = "[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n\
                    [DBOptions]\n[CFOptions \"default\"]\n  table_factory=PlainTable\n\
                    [TableOptions/PlainTable \"default\"]\n  user_key_len=0\n  \
                    encoding_type=kPlain\n";
        let theirs = OptionsFile::parse(text).unwrap();
        let section = theirs.family("default").unwrap();
        assert!(!section.is_block_based());
        let mut family = FamilyOptions::default();
        complete(&mut family, section, AUTO);
        assert_eq!(family.table_format, Some(TableFormat::Block));
    }

    #[test]
    fn names_of_other_programs_are_kept_for_them() {
        let mut family = FamilyOptions::default();
        let stored = section("merge_operator", "{id=Theirs;depth=3;}");
        complete(&mut family, &stored, AUTO);
        assert!(family.merge_operator.is_none());
        let mut written = stored.clone();
        describe(&mut written, &family, None);
        assert_eq!(written.merge_operator_text(), Some("{id=Theirs;depth=3;}"));
        assert_eq!(written.prefix_extractor(), None);
        complete(
            &mut family,
            &section("prefix_extractor", "rocksdb.Noop"),
            AUTO,
        );
        assert!(family.prefix_extractor.is_none());
    }
}
