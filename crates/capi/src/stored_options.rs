//! The options of a database as its OPTIONS file has them.

use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::Arc;

use drumlin::internals::options_file::{FamilySection, OptionsFile, read_newest};
use drumlin::{Env, Error, ErrorKind, FixedPrefix, KeyOrder, Result, StringAppend, UInt64Add};
use drumlin_ffi::bytes::{self, path_of, to_c_text};
use drumlin_ffi::error::end_process;
use drumlin_ffi::handle::{self, Handle};

use crate::cache::Cache;
use crate::env::Environment;
use crate::error::{guard, set};
use crate::options::{OpenOptions, PRIORITIES};
use crate::snapshot::ErrPtr;
use crate::table_options::BlockOptions;

/// RocksDB's names of compressions and of shapes of the tree, with their numbers.
const COMPRESSIONS: [(&str, c_int); 8] = [
    ("kNoCompression", 0),
    ("kSnappyCompression", 1),
    ("kZlibCompression", 2),
    ("kBZip2Compression", 3),
    ("kLZ4Compression", 4),
    ("kLZ4HCCompression", 5),
    ("kZSTD", 7),
    ("kDisableCompressionOption", 255),
];
const STYLES: [(&str, c_int); 4] = [
    ("kCompactionStyleLevel", 0),
    ("kCompactionStyleUniversal", 1),
    ("kCompactionStyleFIFO", 2),
    ("kCompactionStyleNone", 3),
];
const RECOVERIES: [(&str, c_int); 4] = [
    ("kTolerateCorruptedTailRecords", 0),
    ("kAbsoluteConsistency", 1),
    ("kPointInTimeRecovery", 2),
    ("kSkipAnyCorruptedRecords", 3),
];

fn number_in(names: &[(&str, c_int)], name: Option<&str>) -> Option<c_int> {
    let found = names.iter().find(|(known, _)| Some(*known) == name);
    found.map(|(_, number)| *number)
}

/// Options of `family`, and those of the database, which are the same for all. Objects that are not built in are left out: the
/// program sets them again.
fn options_of(file: &OptionsFile, family: &FamilySection, cache: Option<&Cache>) -> OpenOptions {
    let mut options = OpenOptions::default();
    let entries = file.database.entries().chain(family.options.entries());
    for (key, value) in entries {
        // Values of other types, and keys that the interface has no name for.
        let _ = options.fields.set_by_name(key, value);
    }
    let fields = &mut options.fields;
    fields.compression = number_in(&COMPRESSIONS, family.compression());
    let bottom = family.options.get("bottommost_compression");
    fields.bottommost_compression = number_in(&COMPRESSIONS, bottom);
    fields.compaction_style = number_in(&STYLES, family.options.get("compaction_style"));
    fields.compaction_pri = number_in(&PRIORITIES, family.options.get("compaction_pri"));
    fields.wal_recovery_mode = number_in(&RECOVERIES, file.database.get("wal_recovery_mode"));
    options.order = family
        .comparator()
        .and_then(KeyOrder::by_name)
        .unwrap_or_default();
    options.merge_operator = match family.merge_operator() {
        Some("UInt64AddOperator" | "uint64add") => Some(Arc::new(UInt64Add)),
        Some("StringAppendOperator" | "stringappend") => Some(Arc::new(StringAppend::default())),
        _ => None,
    };
    let cut = family.prefix_extractor().unwrap_or_default();
    let fixed = cut.strip_prefix("rocksdb.FixedPrefix.");
    let fixed = fixed.and_then(|len| len.parse().ok());
    options.prefix_extractor = fixed.map(|len| Arc::new(FixedPrefix::new(len)) as Arc<_>);
    let wal_dir = file.database.get("wal_dir").filter(|dir| !dir.is_empty());
    options.wal_dir = wal_dir.map(Into::into);
    if family.is_block_based() {
        let mut blocks = BlockOptions::default();
        for (key, value) in family.table.entries() {
            let _ = blocks.fields.set_by_name(key, value);
        }
        blocks.cache = cache.cloned();
        options.blocks = Some(blocks);
    }
    options
}

/// The families and their options, the database's first.
fn load(
    env: &Env,
    dir: &Path,
    cache: Option<&Cache>,
) -> Result<(OpenOptions, Vec<(String, OpenOptions)>)> {
    let file = read_newest(&*env.files, dir)?.ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            "No options files found in the DB directory.",
        )
    })?;
    let families = file.families.iter().map(|family| {
        let options = options_of(&file, family, cache);
        (family.name.clone(), options)
    });
    let families: Vec<_> = families.collect();
    let database = families.first().map(|(_, options)| options.clone());
    Ok((database.unwrap_or_default(), families))
}

/// A new array of C's with `values`.
fn array_of<T>(values: Vec<T>, function: &str) -> *mut T {
    // SAFETY: malloc has no conditions.
    let array: *mut T = unsafe { libc::malloc(size_of::<T>() * values.len().max(1)) }.cast();
    if array.is_null() {
        end_process(function, "no memory is left for a result");
    }
    for (at, value) in values.into_iter().enumerate() {
        // SAFETY: the array has a place for each.
        unsafe { set(array, at, value) };
    }
    array
}

/// Unknown keys are never an error here: the file stays as it is.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_load_latest_options(
    dir: *const c_char,
    env: *mut Handle<Environment>,
    _ignore_unknown: bool,
    cache: *mut Handle<Cache>,
    database: *mut *mut Handle<OpenOptions>,
    count: *mut usize,
    names: *mut *mut *mut c_char,
    options: *mut *mut *mut Handle<OpenOptions>,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_load_latest_options";
    // SAFETY: the C program's promise.
    let dir = path_of(unsafe { bytes::text(dir, NAME) });
    // SAFETY: as above.
    let env = (!env.is_null()).then(|| unsafe { handle::get(env, NAME) });
    let env = env.map_or_else(Env::system, |env| env.env.clone());
    // SAFETY: as above.
    let cache = (!cache.is_null()).then(|| unsafe { handle::get(cache, NAME) });
    // SAFETY: as above.
    let loaded = unsafe { guard(NAME, errptr, || load(&env, &dir, cache)) };
    let Some((of_database, families)) = loaded else {
        // SAFETY: as above.
        unsafe { set(count, 0, 0) };
        return;
    };
    let (family_names, family_options): (Vec<_>, Vec<_>) = families
        .into_iter()
        .map(|(name, options)| (to_c_text(&name), handle::create(options)))
        .unzip();
    // SAFETY: as above.
    unsafe { set(count, 0, family_names.len()) };
    // SAFETY: as above.
    unsafe { set(database, 0, handle::create(of_database)) };
    // SAFETY: as above.
    unsafe { set(names, 0, array_of(family_names, NAME)) };
    // SAFETY: as above.
    unsafe { set(options, 0, array_of(family_options, NAME)) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_load_latest_options_destroy(
    database: *mut Handle<OpenOptions>,
    names: *mut *mut c_char,
    options: *mut *mut Handle<OpenOptions>,
    count: usize,
) {
    const NAME: &str = "rocksdb_load_latest_options_destroy";
    if !database.is_null() {
        // SAFETY: the C program says that the function above made them all.
        unsafe { handle::destroy(database, NAME) };
    }
    for at in 0..count {
        if !names.is_null() {
            // SAFETY: as above, and there are as many.
            let name = unsafe { names.add(at) };
            // SAFETY: as above.
            let name = unsafe { *name };
            // SAFETY: as above.
            unsafe { libc::free(name.cast()) };
        }
        if !options.is_null() {
            // SAFETY: as above.
            let of_family = unsafe { options.add(at) };
            // SAFETY: as above.
            let of_family = unsafe { *of_family };
            // SAFETY: as above.
            unsafe { handle::destroy(of_family, NAME) };
        }
    }
    // SAFETY: as above.
    unsafe { libc::free(names.cast()) };
    // SAFETY: as above.
    unsafe { libc::free(options.cast()) };
}
