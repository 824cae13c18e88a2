//! Options that are set by name while a store runs: RocksDB's names, the kinds of their values, and what each changes.
//!
//! Pure: a list of names and values becomes other settings, or an error, and then nothing has changed. An option that
//! only says how RocksDB does something is recorded in the OPTIONS file, as RocksDB records it, and changes nothing
//! here. The beginnings of the errors are RocksDB's (7.8), because programs look for them.

use drumlin_base::{Error, Result};
use drumlin_table::{Codec, Compression, TableFormat};

use crate::compaction::{CompactionStyle, FifoOptions, style_text};
use crate::family::settings::FamilySettings;
use crate::options::file::{BLOB_BYTES, BLOBS, Section};
use crate::options::settings::{OPEN_FILES_MAX, THREADS_MAX, Tuning, check_memory_budget};

/// The kind of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A number from 0 on, `4K`, `1M`, `2G` or `1T` (of 1024).
    Unsigned,
    /// A number of 32 bits.
    Signed,
    Decimal,
    Flag,
    Codec,
    /// Fields in braces, or a word that is only recorded.
    Text,
}

/// Options of a family that may change.
#[rustfmt::skip]
const FAMILY: &[(&str, Kind)] = &[
    ("arena_block_size", Kind::Unsigned),
    ("blob_compaction_readahead_size", Kind::Unsigned),
    ("blob_compression_type", Kind::Codec),
    ("blob_file_size", Kind::Unsigned),
    ("blob_file_starting_level", Kind::Signed),
    ("blob_garbage_collection_age_cutoff", Kind::Decimal),
    ("blob_garbage_collection_force_threshold", Kind::Decimal),
    (TABLES, Kind::Text),
    ("bottommost_compression", Kind::Codec),
    ("bottommost_compression_opts", Kind::Text),
    ("check_flush_compaction_key_order", Kind::Flag),
    (FIFO, Kind::Text),
    (UNIVERSAL, Kind::Text),
    ("compression", Kind::Codec),
    ("compression_opts", Kind::Text),
    ("disable_auto_compactions", Kind::Flag),
    (BLOBS, Kind::Flag),
    ("enable_blob_garbage_collection", Kind::Flag),
    ("experimental_mempurge_threshold", Kind::Decimal),
    ("hard_pending_compaction_bytes_limit", Kind::Unsigned),
    ("ignore_max_compaction_bytes_for_input", Kind::Flag),
    ("inplace_update_num_locks", Kind::Unsigned),
    ("last_level_temperature", Kind::Text),
    ("level0_file_num_compaction_trigger", Kind::Signed),
    ("level0_slowdown_writes_trigger", Kind::Signed),
    ("level0_stop_writes_trigger", Kind::Signed),
    ("max_bytes_for_level_base", Kind::Unsigned),
    ("max_bytes_for_level_multiplier", Kind::Decimal),
    ("max_bytes_for_level_multiplier_additional", Kind::Text),
    ("max_compaction_bytes", Kind::Unsigned),
    ("max_sequential_skip_in_iterations", Kind::Unsigned),
    ("max_successive_merges", Kind::Unsigned),
    ("max_write_buffer_number", Kind::Signed),
    ("memtable_huge_page_size", Kind::Unsigned),
    ("memtable_prefix_bloom_size_ratio", Kind::Decimal),
    ("memtable_protection_bytes_per_key", Kind::Unsigned),
    ("memtable_whole_key_filtering", Kind::Flag),
    (BLOB_BYTES, Kind::Unsigned),
    ("paranoid_file_checks", Kind::Flag),
    ("periodic_compaction_seconds", Kind::Unsigned),
    ("prepopulate_blob_cache", Kind::Text),
    ("report_bg_io_stats", Kind::Flag),
    ("sample_for_compression", Kind::Unsigned),
    ("soft_pending_compaction_bytes_limit", Kind::Unsigned),
    ("target_file_size_base", Kind::Unsigned),
    ("target_file_size_multiplier", Kind::Signed),
    (TTL, Kind::Unsigned),
    ("write_buffer_size", Kind::Unsigned),
];

/// Options of a family that are there, and are fixed from its opening on. RocksDB changes the prefix extractor, too:
/// here open memtables and walks hold theirs.
const FAMILY_FIXED: &[&str] = &[
    "bloom_locality",
    "comparator",
    "compaction_filter",
    "compaction_filter_factory",
    "compaction_pri",
    "compaction_style",
    "force_consistency_checks",
    "inplace_update_support",
    "level_compaction_dynamic_file_size",
    "level_compaction_dynamic_level_bytes",
    "max_write_buffer_number_to_maintain",
    "max_write_buffer_size_to_maintain",
    "memtable_factory",
    "memtable_insert_with_hint_prefix_extractor",
    "merge_operator",
    "min_write_buffer_number_to_merge",
    "num_levels",
    "optimize_filters_for_hits",
    "preclude_last_level_data_seconds",
    "prefix_extractor",
    "preserve_internal_time_seconds",
    "sst_partitioner_factory",
    "table_factory",
];

/// Options of block-based tables that may change.
const BLOCK_TABLES: &[(&str, Kind)] = &[
    ("block_restart_interval", Kind::Signed),
    ("block_size", Kind::Unsigned),
    ("detect_filter_construct_corruption", Kind::Flag),
    ("initial_auto_readahead_size", Kind::Unsigned),
    ("max_auto_readahead_size", Kind::Unsigned),
    ("num_file_reads_for_auto_readahead", Kind::Unsigned),
    ("prepopulate_block_cache", Kind::Text),
];

/// Those that are there and are fixed.
#[rustfmt::skip]
const BLOCK_TABLES_FIXED: &[&str] = &[
    "block_align", "block_size_deviation", "cache_index_and_filter_blocks",
    "cache_index_and_filter_blocks_with_high_priority", "checksum", "data_block_hash_table_util_ratio",
    "data_block_index_type", "enable_index_compression", "filter_policy", "flush_block_policy_factory",
    "format_version", "index_block_restart_interval", "index_shortening", "index_type", "metadata_block_size",
    "metadata_cache_options", "no_block_cache", "optimize_filters_for_memory", "partition_filters",
    "pin_l0_filter_and_index_blocks_in_cache", "pin_top_level_index_and_filter", "read_amp_bytes_per_bit",
    "verify_compression", "whole_key_filtering",
];

const UNIVERSAL_FIELDS: &[(&str, Kind)] = &[
    ("allow_trivial_move", Kind::Flag),
    ("compression_size_percent", Kind::Signed),
    ("incremental", Kind::Flag),
    ("max_merge_width", Kind::Unsigned),
    ("max_size_amplification_percent", Kind::Unsigned),
    ("min_merge_width", Kind::Unsigned),
    ("size_ratio", Kind::Unsigned),
    ("stop_style", Kind::Text),
];

const FIFO_FIELDS: &[(&str, Kind)] = &[
    ("age_for_warm", Kind::Unsigned),
    ("allow_compaction", Kind::Flag),
    ("max_table_files_size", Kind::Unsigned),
    (TTL, Kind::Unsigned),
];

/// Options of the database that may change. The last is this engine's own.
const DATABASE: &[(&str, Kind)] = &[
    ("avoid_flush_during_shutdown", Kind::Flag),
    ("bytes_per_sync", Kind::Unsigned),
    ("compaction_readahead_size", Kind::Unsigned),
    ("delayed_write_rate", Kind::Unsigned),
    ("delete_obsolete_files_period_micros", Kind::Unsigned),
    ("max_background_compactions", Kind::Signed),
    ("max_background_flushes", Kind::Signed),
    (JOBS, Kind::Signed),
    (OPEN_FILES, Kind::Signed),
    ("max_subcompactions", Kind::Unsigned),
    (WAL_BYTES, Kind::Unsigned),
    ("stats_dump_period_sec", Kind::Unsigned),
    ("stats_history_buffer_size", Kind::Unsigned),
    ("stats_persist_period_sec", Kind::Unsigned),
    ("strict_bytes_per_sync", Kind::Flag),
    ("wal_bytes_per_sync", Kind::Unsigned),
    ("writable_file_max_buffer_size", Kind::Unsigned),
    (MEMORY, Kind::Unsigned),
];

const TABLES: &str = "block_based_table_factory";
const FIFO: &str = "compaction_options_fifo";
const UNIVERSAL: &str = "compaction_options_universal";
const TTL: &str = "ttl";
const JOBS: &str = "max_background_jobs";
const OPEN_FILES: &str = "max_open_files";
const WAL_BYTES: &str = "max_total_wal_size";
/// Never in an OPTIONS file: RocksDB refuses one with a name that it does not know.
const MEMORY: &str = "memory_budget";
/// RocksDB's level of compression where nobody set one.
const LEVEL_UNSET: i64 = 32767;
/// RocksDB's times where nobody set one.
const TIME_UNSET: u64 = u64::MAX - 1;

/// Changes of a database's own options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DatabaseChange {
    /// Threads for flushes and compactions.
    pub(crate) threads: Option<usize>,
    /// Open tables kept at most.
    pub(crate) open_files: Option<usize>,
    /// The bound of WAL files; 0 for the one that follows from the memtables.
    pub(crate) wal_bytes_max: Option<u64>,
    pub(crate) memory_budget: Option<usize>,
    /// For the OPTIONS file.
    pub(crate) named: Section,
}

/// Puts `options` into `settings`, which are then those of a family whose tables have `format`. What follows from them is
/// not brought up to date.
///
/// # Errors
/// `InvalidArgument` naming the first option that cannot be set; the settings are then of no use.
pub(crate) fn change_family(
    settings: &mut FamilySettings,
    format: TableFormat,
    options: &[(&str, &str)],
) -> Result<()> {
    refuse_nothing(options)?;
    for (name, value) in options {
        change_one(settings, format, name.trim(), value.trim())?;
        if let Err(error) = settings
            .tuning
            .validate()
            .and_then(|()| settings.style.validate())
        {
            return Err(unparsed(name.trim(), &error.to_string()));
        }
    }
    Ok(())
}

/// The changes that `options` ask for.
///
/// # Errors
/// `InvalidArgument` naming the first option that cannot be set; `NotFound` as RocksDB has it for one that is not there.
pub(crate) fn change_database(options: &[(&str, &str)]) -> Result<DatabaseChange> {
    refuse_nothing(options)?;
    let mut change = DatabaseChange::default();
    for (name, value) in options {
        let (name, value) = (name.trim(), value.trim());
        let Some(kind) = kind_of(DATABASE, name) else {
            return Err(Error::new(
                drumlin_base::ErrorKind::NotFound,
                format!("Unrecognized option: {name}"),
            ));
        };
        let text = canonical(name, value, kind)?;
        let number = || text.parse::<i64>().ok();
        match name {
            JOBS => {
                let count = number().and_then(|count| usize::try_from(count).ok());
                let count = count.filter(|count| (1..=THREADS_MAX).contains(count));
                let why = "there are from 1 to 1024 background threads";
                change.threads = Some(count.ok_or_else(|| unparsed(name, why))?);
            }
            OPEN_FILES => {
                let count = number().map(|count| usize::try_from(count).unwrap_or(OPEN_FILES_MAX));
                change.open_files = count;
            }
            WAL_BYTES => change.wal_bytes_max = text.parse().ok(),
            MEMORY => {
                let bytes = text.parse().unwrap_or(usize::MAX);
                let checked = check_memory_budget(bytes);
                checked.map_err(|error| unparsed(name, &error.to_string()))?;
                change.memory_budget = Some(bytes);
            }
            _ => {}
        }
        if name != MEMORY {
            change.named.set(name, text);
        }
    }
    Ok(change)
}

fn refuse_nothing(options: &[(&str, &str)]) -> Result<()> {
    match options.is_empty() {
        true => Err(Error::invalid_argument("empty input")),
        false => Ok(()),
    }
}

fn change_one(
    settings: &mut FamilySettings,
    format: TableFormat,
    name: &str,
    value: &str,
) -> Result<()> {
    // `a.b=c` is `a={b=c;}`.
    let within = name.split_once('.');
    let within = within.map(|(outer, inner)| (outer, format!("{{{inner}={value};}}")));
    let (name, value) = match &within {
        Some((outer, value)) => (*outer, value.as_str()),
        None => (name, value),
    };
    let is_group = value.starts_with('{');
    let name = match name {
        "table_factory" if is_group => TABLES,
        name => name,
    };
    let Some(kind) = kind_of(FAMILY, name).filter(|kind| within.is_none() || *kind == Kind::Text)
    else {
        return Err(match FAMILY_FIXED.contains(&name) {
            true => fixed(name),
            false => unknown(name),
        });
    };
    let text = canonical(name, value, kind)?;
    match name {
        TABLES => return change_tables(settings, &text),
        UNIVERSAL => {
            let fields = fields(name, &text, UNIVERSAL_FIELDS)?;
            if let CompactionStyle::Universal(limits) = &mut settings.style {
                for (key, value) in &fields {
                    style_text::set_universal(limits, key, value);
                }
                return Ok(());
            }
        }
        FIFO => {
            // A number alone is the size.
            let text = match is_group {
                true => text.clone(),
                false => format!("{{max_table_files_size={text};}}"),
            };
            let fields = fields(name, &text, FIFO_FIELDS)?;
            if let CompactionStyle::Fifo(limits) = &mut settings.style {
                for (key, value) in &fields {
                    style_text::set_fifo(limits, key, value);
                }
                return Ok(());
            }
        }
        "compression_opts" => change_compression(&mut settings.compression, name, &text)?,
        _ => {}
    }
    settings.named.set(name, text.as_str());
    apply(settings, format, name, &text)
}

/// The effect of an option with one value.
fn apply(settings: &mut FamilySettings, format: TableFormat, name: &str, text: &str) -> Result<()> {
    let tuning = &mut settings.tuning;
    let bytes = || text.parse::<u64>().unwrap_or(u64::MAX);
    let count = || usize::try_from(text.parse::<i64>().unwrap_or(0)).unwrap_or(0);
    match name {
        "write_buffer_size" => {
            let bytes = usize::try_from(bytes()).unwrap_or(usize::MAX);
            tuning.write_buffer_bytes = Some(bytes);
        }
        "max_write_buffer_number" => tuning.memtables_max = count().max(2),
        "target_file_size_base" => tuning.target_file_bytes = bytes(),
        "max_bytes_for_level_base" => tuning.level_base_bytes = Some(bytes()),
        "max_bytes_for_level_multiplier" => {
            let times = text.parse::<f64>().unwrap_or(0.0);
            // As at the opening: a whole number. One that is none was refused.
            tuning.level_multiplier = (times as u64).max(2);
        }
        "level0_file_num_compaction_trigger" => {
            tuning.l0_trigger = count();
            if let CompactionStyle::Universal(limits) = &mut settings.style {
                limits.runs_trigger = count().max(2);
            }
        }
        "level0_slowdown_writes_trigger" => tuning.l0_slowdown = count(),
        "disable_auto_compactions" => tuning.automatic_compactions = text != "true",
        "compression" => settings.compression.codec = codec(text).unwrap_or(Codec::None),
        TTL => change_ttl(settings, bytes()),
        BLOBS | BLOB_BYTES => {
            tuning.blob_from_bytes = Some(blob_from(&settings.named, tuning, format));
        }
        _ => {}
    }
    Ok(())
}

fn change_ttl(settings: &mut FamilySettings, seconds: u64) {
    match &mut settings.style {
        CompactionStyle::Fifo(FifoOptions { ttl_seconds, .. }) => {
            *ttl_seconds = (seconds > 0 && seconds < TIME_UNSET).then_some(seconds);
        }
        _ => {
            settings.tuning.age_max_seconds = match seconds {
                0 => None,
                TIME_UNSET.. => Tuning::default().age_max_seconds,
                seconds => Some(seconds),
            };
        }
    }
}

/// Size from which values go to blob files, by two options that are set one by one.
fn blob_from(named: &Section, tuning: &Tuning, format: TableFormat) -> usize {
    let present = Some(tuning.blob_from(format)).filter(|bytes| *bytes < usize::MAX);
    if !named.flag(BLOBS).unwrap_or(present.is_some()) {
        return usize::MAX;
    }
    let named = named.get(BLOB_BYTES).and_then(|text| text.parse().ok());
    let usual = || Tuning::default().blob_from(format);
    named.or(present).unwrap_or_else(usual).max(1)
}

fn change_tables(settings: &mut FamilySettings, text: &str) -> Result<()> {
    for (key, value) in pairs(TABLES, text)? {
        let Some(kind) = kind_of(BLOCK_TABLES, key) else {
            return Err(match BLOCK_TABLES_FIXED.contains(&key) {
                true => fixed(key),
                false => unknown(TABLES),
            });
        };
        let value = canonical(key, value, kind)?;
        let number = value.parse::<usize>();
        match key {
            "block_size" => settings.tuning.block_bytes = number.unwrap_or(usize::MAX),
            "block_restart_interval" => settings.tuning.restart_interval = number.unwrap_or(0),
            _ => {}
        }
        settings.named_table.set(key, value);
    }
    Ok(())
}

/// Compression's level and dictionary, of fields or of RocksDB's older `window:level:strategy:dictionary`.
fn change_compression(compression: &mut Compression, name: &str, text: &str) -> Result<()> {
    let set = |compression: &mut Compression, key: &str, value: &str| -> Result<()> {
        match key {
            "level" => {
                let level: i64 = canonical(key, value, Kind::Signed)?.parse().unwrap_or(0);
                let level = (level != LEVEL_UNSET).then(|| i32::try_from(level).unwrap_or(0));
                compression.level = level;
            }
            "max_dict_bytes" => {
                let bytes = canonical(key, value, Kind::Unsigned)?.parse();
                let why = "a dictionary has less than 4 GiB";
                compression.dictionary_bytes = bytes.map_err(|_| unparsed(key, why))?;
            }
            _ => {}
        }
        Ok(())
    };
    if text.starts_with('{') {
        return pairs(name, text)?
            .into_iter()
            .try_for_each(|(key, value)| set(compression, key, value));
    }
    let parts: Vec<&str> = text.split(':').collect();
    if !(3..=8).contains(&parts.len()) {
        return Err(unparsed(name, "stoi"));
    }
    for (at, part) in parts.iter().enumerate() {
        match at {
            1 => set(compression, "level", part)?,
            3 => set(compression, "max_dict_bytes", part)?,
            _ => {}
        }
    }
    Ok(())
}

fn kind_of(table: &[(&str, Kind)], name: &str) -> Option<Kind> {
    let found = table.iter().find(|(known, _)| *known == name);
    found.map(|(_, kind)| *kind)
}

/// The fields of `{key=value;key=value;}`, each checked.
fn fields<'a>(name: &str, text: &'a str, known: &[(&str, Kind)]) -> Result<Vec<(&'a str, String)>> {
    let pairs = pairs(name, text)?.into_iter();
    pairs
        .map(|(key, value)| match kind_of(known, key) {
            Some(kind) => Ok((key, canonical(key, value, kind)?)),
            None => {
                let message = format!("Unrecognized option: {name}.{key}");
                Err(Error::invalid_argument(message))
            }
        })
        .collect()
}

fn pairs<'a>(name: &str, text: &'a str) -> Result<Vec<(&'a str, &'a str)>> {
    let inner = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let inner = inner.unwrap_or(text);
    if inner.contains(['{', '}']) {
        return Err(unparsed(name, "a group within a group"));
    }
    let fields = inner.split(';').map(str::trim);
    fields
        .filter(|field| !field.is_empty())
        .map(|field| match field.split_once('=') {
            Some((key, value)) => Ok((key.trim(), value.trim())),
            None => Err(Error::invalid_argument(format!(
                "Mismatched key value pair, '=' expected in {name}: {field:?}"
            ))),
        })
        .collect()
}

/// `value` as an OPTIONS file has it.
fn canonical(name: &str, value: &str, kind: Kind) -> Result<String> {
    let fails = |why: &str| unparsed(name, &format!("{why}: {value:?}"));
    match kind {
        Kind::Unsigned => number(value)
            .and_then(|number| u64::try_from(number).ok())
            .map(|number| number.to_string())
            .ok_or_else(|| fails("stoull")),
        Kind::Signed => number(value)
            .and_then(|number| i32::try_from(number).ok())
            .map(|number| number.to_string())
            .ok_or_else(|| fails("stoi")),
        Kind::Decimal => value
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number >= 0.0)
            .map(|number| format!("{number:.6}"))
            .ok_or_else(|| fails("stod")),
        Kind::Flag => match value {
            "true" | "1" => Ok("true".to_owned()),
            "false" | "0" => Ok("false".to_owned()),
            _ => Err(fails("")),
        },
        Kind::Codec => match codec(value) {
            // The other names of compression are only kept.
            Some(codec) if name == "compression" => codec.check_built().map(|()| value.to_owned()),
            Some(_) => Ok(value.to_owned()),
            None if value == "kDisableCompressionOption" && name != "compression" => {
                Ok(value.to_owned())
            }
            // RocksDB's words, in its order.
            None => Err(Error::invalid_argument(format!(
                "Error parsing:: {name}: {value:?}"
            ))),
        },
        // What would end a line of the OPTIONS file, or begin a comment in it.
        Kind::Text if value.contains(['\n', '\r', '#', '\\']) => {
            Err(fails("a letter that no value has"))
        }
        Kind::Text if value.is_empty() => Err(fails("no value")),
        Kind::Text => Ok(value.to_owned()),
    }
}

/// A number, with RocksDB's letters behind it. RocksDB passes over what follows a number; here it is refused.
fn number(text: &str) -> Option<i128> {
    let letters = text.trim_start_matches(|letter: char| letter == '-' || letter.is_ascii_digit());
    let shift = match letters {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        _ => return None,
    };
    let digits = text.strip_suffix(letters)?;
    let number: i64 = match digits.parse::<u64>() {
        Ok(number) if shift == 0 => return Some(i128::from(number)),
        Ok(number) => return Some(i128::from(number) << shift),
        Err(_) => digits.parse().ok()?,
    };
    Some(i128::from(number) << shift)
}

fn codec(name: &str) -> Option<Codec> {
    Some(match name {
        "kNoCompression" => Codec::None,
        "kSnappyCompression" => Codec::Snappy,
        "kZlibCompression" => Codec::Zlib,
        "kBZip2Compression" => Codec::Bzip2,
        "kLZ4Compression" => Codec::Lz4,
        "kLZ4HCCompression" => Codec::Lz4Hc,
        "kZSTD" | "kZSTDNotFinalCompression" => Codec::Zstd,
        _ => return None,
    })
}

fn unknown(name: &str) -> Error {
    Error::invalid_argument(format!("Could not find option: : {name}"))
}

fn fixed(name: &str) -> Error {
    Error::invalid_argument(format!("Option not changeable: {name}"))
}

fn unparsed(name: &str, why: &str) -> Error {
    Error::invalid_argument(format!("Error parsing {name}:{why}"))
}
