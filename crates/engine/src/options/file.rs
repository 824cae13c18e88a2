//! RocksDB's OPTIONS file: the options of a database's last opening, as text.
//!
//! It is a comfort, not a truth: a database opens without it, and its content is checked against
//! the MANIFEST where both speak. Reading is loose (unknown keys are kept as text); writing is
//! strict: only sections and keys that RocksDB 7.8 knows, because it refuses a file with any other
//! and crashes on a table factory it has never heard of. Format page: `docs/format/options-file.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use drumlin_base::{Error, Result};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, WritableFile};
use drumlin_table::TableFormat;

use crate::files::names::{self, FileName};
use crate::options::added;
use crate::version::obsolete::OPTIONS_FILES_KEPT;

/// Largest OPTIONS file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The RocksDB version written files claim: the oldest that is supported in full.
const ROCKSDB_VERSION: &str = "7.8.3";
const FILE_VERSION: &str = "1.1";
/// The key in `DBOptions` that has flushes and compactions pass the page cache by.
pub(crate) const DIRECT_IO: &str = "use_direct_io_for_flush_and_compaction";
/// The key in `DBOptions` that allows two-phase commit.
pub(crate) const TWO_PHASE: &str = "allow_2pc";
/// The key in `DBOptions` that names the directory of the WAL, where that is not the database's.
pub(crate) const WAL_DIR: &str = "wal_dir";
/// The keys in `DBOptions` that bound how long changes are kept.
pub(crate) const KEEP_SECONDS: &str = "WAL_ttl_seconds";
pub(crate) const KEEP_MIB: &str = "WAL_size_limit_MB";
const BLOCK_BASED: &str = "BlockBasedTable";
/// In `CFOptions`: whether large values go to blob files, and the least size of those that do.
pub(crate) const BLOBS: &str = "enable_blob_files";
/// See [`BLOBS`].
pub(crate) const BLOB_BYTES: &str = "min_blob_size";
/// RocksDB's name of its own plain tables, which are others than ours.
const PLAIN: &str = "PlainTable";
/// Beside it, the key and value for searchable tables. RocksDB 7.8 crashes on a factory that it does not
/// know, but refuses an option that it does not know.
const OWN_FORMAT: &str = "drumlin_format";
/// See [`OWN_FORMAT`].
const SEARCHABLE: &str = "searchable";
/// Beside it, how many bytes of a key name its scope, where that is any.
const SCOPE_BYTES: &str = "drumlin_scope_bytes";
/// RocksDB writes it for each family with its own plain tables; we never do.
const THEIR_PLAIN: &str = "user_key_len";

/// Keys and values in the order of the file. Values are text as it stands there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    entries: Vec<(String, String)>,
}

impl Section {
    /// A section with `entries`.
    pub fn of(entries: &[(String, String)]) -> Self {
        let mut section = Self::default();
        for (key, value) in entries {
            section.set(key, value);
        }
        section
    }

    /// The value of `key`; the last one when it comes twice.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut matching = self.entries.iter().rev().filter(|(name, _)| name == key);
        matching.next().map(|(_, value)| value.as_str())
    }

    /// The value of `key` as a number.
    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok()
    }

    /// The value of `key` as a truth value.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }

    /// The name of the object that `key` configures: `name`, or the id in `{id=name;...}`. `None`
    /// for an absent key and for `nullptr`.
    pub fn object(&self, key: &str) -> Option<&str> {
        let value = self.get(key)?;
        let name = match value.strip_prefix('{') {
            None => value,
            Some(inner) => inner
                .trim_end_matches('}')
                .split(';')
                .find_map(|field| field.trim().strip_prefix("id="))?,
        };
        let name = name.trim();
        (!name.is_empty() && name != "nullptr").then_some(name)
    }

    /// Sets `key` to `value`.
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        let value = value.into();
        match self.entries.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.entries.push((key.to_owned(), value)),
        }
    }

    /// Sets every key that `other` has to its value there.
    pub(crate) fn take(&mut self, other: &Self) {
        for (key, value) in &other.entries {
            self.set(key, value.as_str());
        }
    }

    /// Keys and values in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.entries.iter();
        entries.map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// Where a section has what makes the filters of compactions. RocksDB's time to live is one of these, and its merge operator one
/// over the user's.
const FILTERS: &str = "compaction_filter_factory";
const TTL_FILTERS: &str = "TtlCompactionFilterFactory";
const FILTER: &str = "compaction_filter";
const TTL_FILTER: &str = "TtlCompactionFilter";
const TTL_OPERATOR: &str = "TtlMergeOperator";
const TTL_UNDER: &str = "user_operator=";

/// The options of one family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilySection {
    /// The family's name.
    pub name: String,
    /// `CFOptions`.
    pub options: Section,
    /// The table factory's name; `BlockBasedTable` or `PlainTable` in all files written here.
    pub table_factory: String,
    /// The options of the table factory.
    pub table: Section,
}

impl FamilySection {
    /// The options of family `name` with the one every family should have: its key order.
    pub fn new(name: &str, comparator: &str) -> Self {
        let mut options = Section::default();
        options.set("comparator", comparator);
        Self {
            name: name.to_owned(),
            options,
            table_factory: BLOCK_BASED.to_owned(),
            table: Section::default(),
        }
    }

    /// The format of new tables that the file names: ours, or block-based for all else, RocksDB's
    /// own plain tables among it, which we do not write.
    pub fn table_format(&self) -> TableFormat {
        match self.table_factory.as_str() {
            PLAIN if self.table.get(THEIR_PLAIN).is_some() => TableFormat::Block,
            PLAIN if self.table.get(OWN_FORMAT) == Some(SEARCHABLE) => TableFormat::Searchable,
            PLAIN => TableFormat::Plain,
            _ => TableFormat::Block,
        }
    }

    /// Names the format of new tables, so that RocksDB refuses ours before it reads any. The options of
    /// another table factory go.
    pub fn set_table_format(&mut self, format: TableFormat) {
        let is_block = format == TableFormat::Block;
        if self.table_format() == format && self.is_block_based() == is_block {
            return;
        }
        let factory = if is_block { BLOCK_BASED } else { PLAIN };
        self.options.set("table_factory", factory);
        factory.clone_into(&mut self.table_factory);
        self.table = Section::default();
        if format == TableFormat::Searchable {
            self.table.set(OWN_FORMAT, SEARCHABLE);
        }
    }

    /// How many first bytes of a key name its scope, as the file says of a family of searchable tables; else 0.
    pub fn scope_bytes(&self) -> usize {
        let bytes = match self.table_format() {
            TableFormat::Searchable => self.table.get(SCOPE_BYTES),
            _ => None,
        };
        bytes.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Names the scopes of a family of searchable tables.
    pub fn set_scope_bytes(&mut self, bytes: usize) {
        if self.table_format() == TableFormat::Searchable && self.scope_bytes() != bytes {
            self.table.set(SCOPE_BYTES, bytes.to_string());
        }
    }

    /// Size from which values go to blob files, as set in the file: `None` where it sets nothing,
    /// `Some(None)` where they have none.
    pub fn blobs(&self) -> Option<Option<u64>> {
        let bytes = self.options.get(BLOB_BYTES);
        // A program that knows blob files and does not say that it wants them wants none, as in RocksDB.
        let unsaid = bytes.map(|_| false);
        let enabled = self.options.flag(BLOBS).or(unsaid)?;
        let bytes = bytes.and_then(|text| text.parse().ok());
        Some(enabled.then(|| bytes.unwrap_or(0)))
    }

    /// Has values of `from_bytes` and more go to blob files, or none.
    pub fn set_blobs(&mut self, from_bytes: Option<u64>) {
        self.options.set(BLOBS, from_bytes.is_some().to_string());
        if let Some(bytes) = from_bytes {
            self.options.set(BLOB_BYTES, bytes.to_string());
        }
    }

    /// Whether the family's new tables are block-based.
    pub fn is_block_based(&self) -> bool {
        let named = self.options.object("table_factory");
        self.table_factory == BLOCK_BASED && named.is_none_or(|name| name == BLOCK_BASED)
            || self.table_factory.is_empty() && named.is_none()
    }

    /// The stored name of the key order.
    pub fn comparator(&self) -> Option<&str> {
        self.options.object("comparator")
    }

    /// The stored name of the merge operator.
    pub fn merge_operator(&self) -> Option<&str> {
        self.options.object("merge_operator")
    }

    /// The merge operator as the file describes it: its name, or `{id=name;key=value;}`. Of a family with a time to live
    /// that under the operator of the times.
    pub fn merge_operator_text(&self) -> Option<&str> {
        let text = self.options.get("merge_operator")?;
        let under = (self.merge_operator()? == TTL_OPERATOR)
            .then(|| text.split_once(TTL_UNDER)?.1.strip_suffix(";}"));
        under
            .unwrap_or(Some(text))
            .filter(|text| *text != "nullptr")
    }

    /// Names the merge operator that `text` describes, as one over values with times where the family has a time to live.
    pub(crate) fn set_merge_operator(&mut self, text: &str) {
        let text = match self.ttl() {
            None => text.to_owned(),
            Some(_) => format!("{{id={TTL_OPERATOR};{TTL_UNDER}{text};}}"),
        };
        self.options.set("merge_operator", text);
    }

    /// Seconds that values live, where each has a time behind it; 0 is for ever.
    pub fn ttl(&self) -> Option<u64> {
        let fields = |key| {
            self.options
                .get(key)
                .into_iter()
                .flat_map(|text| text.split(';'))
        };
        let seconds = |field: &str| {
            field
                .trim_matches(['{', '}', ' '])
                .strip_prefix("ttl=")
                .map(str::to_owned)
        };
        // RocksDB's own is the last field of a factory, and the first of a filter; others may be in the user's.
        let told = if self.options.object(FILTERS) == Some(TTL_FILTERS) {
            fields(FILTERS).filter_map(seconds).next_back()
        } else if self.options.object(FILTER) == Some(TTL_FILTER) {
            fields(FILTER).find_map(seconds)
        } else {
            return None;
        };
        // What is none, or below 0, is for ever in RocksDB.
        let told = told.and_then(|seconds| seconds.parse::<u32>().ok());
        Some(told.unwrap_or(0).into())
    }

    /// Says that each value has a time behind it and lives so many seconds, as RocksDB does.
    pub(crate) fn set_ttl(&mut self, seconds: u64) {
        let (key, id, rest) = match self.options.object(FILTER) {
            // It is over a filter of the user's, whose name stays.
            Some(TTL_FILTER) => (FILTER, TTL_FILTER, self.options.get(FILTER)),
            _ => (FILTERS, TTL_FILTERS, None),
        };
        let users = rest.and_then(|text| text.split_once("user_filter="));
        let text = match users {
            Some((_, users)) => format!("{{id={id};ttl={seconds};user_filter={users}"),
            None => format!("{{id={id};user_filter_factory=nullptr;ttl={seconds};}}"),
        };
        self.options.set(key, text);
    }

    /// The stored name of the prefix extractor, such as `rocksdb.FixedPrefix.8`.
    pub fn prefix_extractor(&self) -> Option<&str> {
        self.options.object("prefix_extractor")
    }

    /// The compression of tables by RocksDB's name, such as `kSnappyCompression`.
    pub fn compression(&self) -> Option<&str> {
        self.options.object("compression")
    }
}

/// A whole OPTIONS file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionsFile {
    /// The version of RocksDB that wrote it, or that it is written for; the oldest that is supported in
    /// full when empty.
    pub rocksdb_version: String,
    /// `DBOptions`.
    pub database: Section,
    /// The families, in the order of the file; `default` first.
    pub families: Vec<FamilySection>,
}

impl OptionsFile {
    /// The options of family `name`.
    pub fn family(&self, name: &str) -> Option<&FamilySection> {
        self.families.iter().find(|family| family.name == name)
    }

    /// Names no directory for the WAL where the file names one: it is beside the tables, and another place would
    /// be looked for, and by RocksDB in vain.
    pub(crate) fn keep_wal_beside(&mut self) {
        if self.database.get(WAL_DIR).is_some() {
            self.database.set(WAL_DIR, "");
        }
    }

    /// What the file `bytes` says, without a family that was not added whole.
    ///
    /// # Errors
    /// As [`OptionsFile::parse`]; `NotSupported` for text that is not UTF-8.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(added::sound_part(bytes))
            .map_err(|_| Error::not_supported("the options file is not UTF-8"))?;
        Self::parse(text)
    }

    /// The file's text.
    ///
    /// # Errors
    /// `Corruption` naming the line when a section or a statement cannot be read; `NotSupported`
    /// for a file format newer than 1.x.
    pub fn parse(text: &str) -> Result<Self> {
        let mut file = Self::default();
        let mut version = Section::default();
        let mut at = Place::Nowhere;
        let mut names = BTreeSet::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = without_comment(text);
            let fails = |what: &str| Error::corruption(format!("{what} in line {line}: {text:?}"));
            if text.is_empty() {
                continue;
            }
            if let Some(title) = text.strip_prefix('[') {
                let title = title.strip_suffix(']');
                let title = title.ok_or_else(|| fails("a section title has no end"))?;
                at = file
                    .enter(title, &mut names)
                    .ok_or_else(|| fails("the section is unknown or out of place"))?;
                continue;
            }
            let (key, value) = text
                .split_once('=')
                .ok_or_else(|| fails("there is no '='"))?;
            let entry = (key.trim().to_owned(), value.trim().to_owned());
            let section = match at {
                Place::Nowhere => return Err(fails("a statement stands before every section")),
                Place::Version => Some(&mut version),
                Place::Database => Some(&mut file.database),
                Place::Family => file.families.last_mut().map(|family| &mut family.options),
                Place::Table => file.families.last_mut().map(|family| &mut family.table),
            };
            if let Some(section) = section {
                section.entries.push(entry);
            }
        }
        let file_version = version.get("options_file_version");
        match file_version.map(|text| text.split('.').next()) {
            Some(Some("1")) => {}
            None => return Err(Error::corruption("the options file gives no version")),
            Some(_) => {
                let message = format!("options file version {}", file_version.unwrap_or("?"));
                return Err(Error::not_supported(message));
            }
        }
        file.rocksdb_version = version.get("rocksdb_version").unwrap_or("").to_owned();
        Ok(file)
    }

    /// Opens the section called `title`; `None` when there is none or it cannot stand here. `names` are the families so far.
    fn enter(&mut self, title: &str, names: &mut BTreeSet<String>) -> Option<Place> {
        let (kind, argument) = match title.split_once('"') {
            None => (title.trim(), None),
            Some((kind, rest)) => (kind.trim(), Some(unescape(rest.strip_suffix('"')?))),
        };
        match (kind, argument) {
            ("Version", None) => Some(Place::Version),
            ("DBOptions", None) => Some(Place::Database),
            ("CFOptions", Some(name)) => {
                if !names.insert(name.clone()) {
                    return None;
                }
                self.families.push(FamilySection {
                    name,
                    ..FamilySection::default()
                });
                Some(Place::Family)
            }
            (kind, Some(name)) => {
                let factory = kind.strip_prefix("TableOptions/")?;
                let family = self
                    .families
                    .last_mut()
                    .filter(|family| family.name == name)?;
                factory.clone_into(&mut family.table_factory);
                Some(Place::Table)
            }
            _ => None,
        }
    }

    /// The file as text that RocksDB 7.8 reads, provided that the keys are ones it knows.
    pub fn to_text(&self) -> String {
        let mut out = String::from("# This is a RocksDB option file.\n\n[Version]\n");
        let version = match self.rocksdb_version.as_str() {
            "" => ROCKSDB_VERSION,
            version => version,
        };
        let _ = writeln!(out, "  rocksdb_version={version}");
        let _ = writeln!(out, "  options_file_version={FILE_VERSION}");
        out.push_str("\n[DBOptions]\n");
        put_section(&mut out, &self.database);
        for family in &self.families {
            put_family(&mut out, family);
        }
        out.push('\n');
        out.push_str(added::END);
        out
    }
}

#[derive(Clone, Copy)]
enum Place {
    Nowhere,
    Version,
    Database,
    Family,
    Table,
}

fn put_family(out: &mut String, family: &FamilySection) {
    let name = escape(&family.name);
    let _ = writeln!(out, "\n[CFOptions \"{name}\"]");
    put_section(out, &family.options);
    let factory = match family.table_format() {
        TableFormat::Block => BLOCK_BASED,
        _ => PLAIN,
    };
    let _ = writeln!(out, "\n[TableOptions/{factory} \"{name}\"]");
    put_section(out, &family.table);
}

fn put_section(out: &mut String, section: &Section) {
    for (key, value) in section.entries() {
        let _ = writeln!(out, "  {key}={value}"); // Writing to a string cannot fail.
    }
}

/// The line without blanks around it and without a comment: from a `#` that no `\` precedes.
fn without_comment(line: &str) -> &str {
    let mut escaped = false;
    for (at, letter) in line.char_indices() {
        match letter {
            '#' if !escaped => return line[..at].trim(),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    line.trim()
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' | '#' | ':' if !drumlin_base::bug!("family-name-unescaped") => {
                out.push('\\');
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            _ => out.push(letter),
        }
    }
    out
}

/// The newest OPTIONS file of `dir`; `None` when there is none.
///
/// # Errors
/// `Corruption`, `NotSupported`, `Io`.
pub fn read_newest(files: &dyn FileSystem, dir: &Path) -> Result<Option<OptionsFile>> {
    let listing = files.list(dir)?;
    let numbers = listing
        .iter()
        .filter_map(|name| match FileName::parse(name)? {
            FileName::Options(number) => Some(number),
            _ => None,
        });
    let newest = match drumlin_base::bug!("oldest-options-file-read") {
        true => numbers.min(),
        false => numbers.max(),
    };
    let Some(number) = newest else {
        return Ok(None);
    };
    let path = names::options(dir, number);
    let bytes = files.read_file(&path, FILE_BYTES_MAX)?;
    let file = OptionsFile::read(&bytes).map_err(|error| error.with_file(&path))?;
    Ok(Some(file))
}

/// Removes all OPTIONS files of `dir` but the newest two.
///
/// # Errors
/// `Io`.
pub fn remove_older(files: &dyn FileSystem, dir: &Path) -> Result<()> {
    let mut numbers: Vec<u64> = files
        .list(dir)?
        .iter()
        .filter_map(|name| match FileName::parse(name)? {
            FileName::Options(number) => Some(number),
            _ => None,
        })
        .collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers
        .iter()
        .skip(OPTIONS_FILES_KEPT)
        .try_for_each(|number| files.remove(&names::options(dir, *number)))
}

/// The OPTIONS file of an open store, to which families are added.
#[derive(Debug)]
pub struct LiveFile(Box<dyn WritableFile>);

impl LiveFile {
    /// Adds the options of a family that the file does not name yet.
    ///
    /// # Errors
    /// `Io`, `NoSpace`; nothing may be added to this file then.
    pub(crate) fn add(&mut self, family: &FamilySection) -> Result<()> {
        let mut text = String::new();
        put_family(&mut text, family);
        self.0.append(added::piece(&text).as_bytes())?;
        match drumlin_base::bug!("added-options-unsynced") {
            true => Ok(()),
            false => self.0.sync(),
        }
    }
}

/// Writes `options` as OPTIONS file `number` of `dir`: whole under a temporary name, then renamed.
///
/// # Errors
/// `Io`, `NoSpace`.
pub fn write(
    files: &dyn FileSystem,
    dir: &Path,
    number: u64,
    options: &OptionsFile,
) -> Result<LiveFile> {
    let temp = names::temp(dir, number);
    let mut file = files.create(&temp, CreateOptions::new(FileKind::Other))?;
    file.append(options.to_text().as_bytes())?;
    file.sync()?;
    files.rename(&temp, &names::options(dir, number))?;
    files.sync_dir(dir)?;
    Ok(LiveFile(file))
}

#[cfg(test)]
mod tests {
    use drumlin_base::ErrorKind;

    use super::*;

    const ROCKSDB: &str = r#"
# This is a RocksDB option file.
[Version]
  rocksdb_version=7.8.3
  options_file_version=1.1

[DBOptions]
  max_open_files=-1   # as many as it takes
  create_if_missing=true

[CFOptions "default"]
  compression=kSnappyCompression
  prefix_extractor=nullptr
  merge_operator={id=StringAppendOperator;delimiter=\:;}
  comparator=leveldb.BytewiseComparator

[TableOptions/BlockBasedTable "default"]
  block_size=4096

[CFOptions "a\#b"]
  prefix_extractor=rocksdb.FixedPrefix.8
  a_key_of_the_future=17
[TableOptions/BlockBasedTable "a\#b"]
"#;

    #[test]
    fn a_time_to_live_is_told_as_rocksdb_tells_it() {
        let mut section = FamilySection::new("default", "x");
        assert_eq!(section.ttl(), None);
        let mut told = |key: &str, text: &str| {
            section.options.set(key, text);
            section.ttl()
        };
        // As RocksDB 7.8 writes them.
        let filters = "{id=TtlCompactionFilterFactory;user_filter_factory=nullptr;ttl=77;}";
        assert_eq!(told(FILTERS, filters), Some(77));
        let below = "{id=TtlCompactionFilterFactory;user_filter_factory={id=mine;ttl=5;};ttl=-1;}";
        assert_eq!(told(FILTERS, below), Some(0));
        assert_eq!(told(FILTERS, TTL_FILTERS), Some(0));
        assert_eq!(told(FILTERS, "{id=mine;ttl=77;}"), None);
        assert_eq!(told(FILTERS, "nullptr"), None);
        let filter = "{id=TtlCompactionFilter;ttl=500;user_filter={id=mine;ttl=5;};}";
        assert_eq!(told(FILTER, filter), Some(500));
        section.set_ttl(7);
        let changed = "{id=TtlCompactionFilter;ttl=7;user_filter={id=mine;ttl=5;};}";
        assert_eq!(section.options.get(FILTER), Some(changed));
        section.options.set(FILTER, "nullptr");
        section.set_ttl(77);
        assert_eq!(section.options.get(FILTERS), Some(filters));
        section.set_merge_operator("{id=mine;depth=3;}");
        let operator = "{id=TtlMergeOperator;user_operator={id=mine;depth=3;};}";
        assert_eq!(section.options.get("merge_operator"), Some(operator));
        assert_eq!(section.merge_operator_text(), Some("{id=mine;depth=3;}"));
    }

    #[test]
    fn what_rocksdb_writes_is_read() {
        let file = OptionsFile::parse(ROCKSDB).unwrap();
        assert_eq!(file.rocksdb_version, "7.8.3");
        assert_eq!(file.database.number("max_open_files"), Some(-1));
        assert_eq!(file.database.flag("create_if_missing"), Some(true));
        let default = file.family("default").unwrap();
        assert_eq!(default.comparator(), Some("leveldb.BytewiseComparator"));
        assert_eq!(default.merge_operator(), Some("StringAppendOperator"));
        assert_eq!(default.prefix_extractor(), None);
        assert_eq!(default.compression(), Some("kSnappyCompression"));
        assert_eq!(default.table.number("block_size"), Some(4096));
        let other = file.family("a#b").unwrap();
        assert_eq!(other.prefix_extractor(), Some("rocksdb.FixedPrefix.8"));
        assert_eq!(other.options.get("a_key_of_the_future"), Some("17"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut file = OptionsFile::default();
        file.database.set("create_if_missing", "false");
        for name in ["default", "od#d\\na:me\n", ""] {
            let mut family = FamilySection::new(name, "leveldb.BytewiseComparator");
            family.options.set("num_levels", "7");
            family.table.set("format_version", "5");
            file.families.push(family);
        }
        file.rocksdb_version = ROCKSDB_VERSION.to_owned();
        assert_eq!(OptionsFile::parse(&file.to_text()).unwrap(), file);
    }

    #[test]
    fn senseless_files_are_refused_with_their_line() {
        let version = "[Version]\nrocksdb_version=9.9.9\noptions_file_version=1.1\n";
        for (text, line) in [
            ("a=1\n", "line 1"),
            ("[Version\n", "line 1"),
            ("[Nonsense]\n", "line 1"),
            ("[Version]\nno statement\n", "line 2"),
            ("[TableOptions/BlockBasedTable \"x\"]\n", "line 1"),
            ("[CFOptions \"x\"]\n[CFOptions \"x\"]\n", "line 2"),
        ] {
            let error = OptionsFile::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{text}");
            assert!(error.to_string().contains(line), "{error}");
        }
        assert!(OptionsFile::parse(version).is_ok());
        let newer = version.replace("=1.1", "=2.0");
        let error = OptionsFile::parse(&newer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(OptionsFile::parse("").is_err_and(|error| error.is_corruption()));
    }
}
