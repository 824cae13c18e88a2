//! An open table of any format: the engine's interface to tables.
//!
//! The magic number at the end of the file says which format it is ([`Table::open`]), so a family's
//! tables may be of several formats at once, and compaction moves data from one to another. A call
//! is one `match`, no dynamic dispatch: a new format is a new variant here, of [`TableValue`], of
//! [`crate::TableIter`] and of [`crate::TableWriter`], and the compiler lists the methods it needs.
//!
//! Thread safety: as the formats': immutable, shared by any number of threads.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use drumlin_base::key::ValueKind;
use drumlin_base::{KeyOrder, PinnedSlice, RangeTombstone, Result, SeqNo};
use drumlin_fs::RandomAccessFile;

use crate::block::read_footer;
use crate::block::{BlockTable, BlockValue};
use crate::format::TableProperties;
use crate::hint::Hint;
use crate::iter::TableIter;
use crate::options::{TableFormat, TableReadOptions, TableReaderOptions};
use crate::plain::{PLAIN_MAGIC, PlainTable, PlainValue};
use crate::searchable::{
    SEARCHABLE_MAGIC, SearchableTable, SearchableValue, properties_of, shared_model_of,
};

/// An open table file.
#[derive(Debug)]
pub enum Table {
    /// RocksDB's block-based table, or LevelDB's.
    Block(Arc<BlockTable>),
    /// For data that lives in memory.
    Plain(Arc<PlainTable>),
    /// Keys and values compressed apart.
    Searchable(Arc<SearchableTable>),
}

/// A value in its table.
#[derive(Debug)]
pub enum TableValue<'a> {
    /// In a data block.
    Block(BlockValue<'a>),
    /// In a plain table.
    Plain(PlainValue<'a>),
    /// In a page of a searchable table, or decoded from it.
    Searchable(SearchableValue<'a>),
}

impl TableValue<'_> {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Block(value) => value.bytes(),
            Self::Plain(value) => value.bytes(),
            Self::Searchable(value) => value.bytes(),
        }
    }

    /// The bytes, pinned in their memory. Few bytes are copied instead; a decoded value is moved.
    #[inline]
    pub fn pin(self) -> PinnedSlice {
        match self {
            Self::Block(value) => value.pin(),
            Self::Plain(value) => value.pin(),
            Self::Searchable(value) => value.pin(),
        }
    }
}

impl Table {
    /// Opens `file`, whose magic number tells its format. Reads and checks the parts that every lookup needs,
    /// and charges them to the budget.
    ///
    /// # Errors
    /// `Corruption` for damage, `NotSupported` naming a feature that cannot be read faithfully,
    /// `InvalidArgument` when the table is sorted by another order, `Io`.
    pub fn open(file: Arc<dyn RandomAccessFile>, options: TableReaderOptions) -> Result<Arc<Self>> {
        let magic = read_magic(&*file).map_err(|error| error.with_file(&options.path))?;
        let table = match magic {
            Some(PLAIN_MAGIC) => Self::Plain(PlainTable::open(file, options)?),
            Some(SEARCHABLE_MAGIC) => Self::Searchable(SearchableTable::open(file, options)?),
            _ => Self::Block(BlockTable::open(file, options)?), // Refuses other numbers by name.
        };
        Ok(Arc::new(table))
    }

    /// Gives all entries of `table` the sequence number `seqno`. For a table made outside a database and
    /// opened before its number was known. False, and nothing done, if the table is not a plain one or
    /// has other owners.
    pub fn set_seqno(table: &mut Arc<Self>, seqno: SeqNo) -> bool {
        let Some(Self::Plain(plain)) = Arc::get_mut(table) else {
            return false;
        };
        let own = Arc::get_mut(plain);
        own.map(|plain| plain.set_seqno(seqno)).is_some()
    }

    /// Visits the versions of `user_key` with a sequence number of at most `seqno`, newest first,
    /// until `visit` breaks. Range tombstones are not consulted.
    ///
    /// # Errors
    /// `Corruption`, `Io`; `Incomplete` when only the cache may be read and does not suffice.
    #[inline]
    pub fn get(
        &self,
        user_key: &[u8],
        seqno: SeqNo,
        options: &TableReadOptions,
        mut visit: impl FnMut(SeqNo, ValueKind, TableValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        match self {
            Self::Block(table) => table.get(user_key, seqno, options, |seqno, kind, value| {
                visit(seqno, kind, TableValue::Block(value))
            }),
            Self::Plain(table) => table.get(user_key, seqno, |seqno, kind, value| {
                visit(seqno, kind, TableValue::Plain(value))
            }),
            Self::Searchable(table) => table.get(user_key, seqno, options, |seqno, kind, value| {
                visit(seqno, kind, TableValue::Searchable(value))
            }),
        }
    }

    /// Takes the next step for one key of a batch; see [`Hint`].
    #[inline]
    pub fn step(&self, hint: &mut Hint, user_key: &[u8], seqno: SeqNo) {
        match self {
            Self::Block(table) => table.step(hint, user_key, seqno),
            Self::Plain(table) => table.step(hint, user_key),
            Self::Searchable(table) => table.step(hint, user_key),
        }
    }

    /// Looks up `keys` together, at most [`crate::TOGETHER_MAX`], as far as memory alone allows. Gives values to
    /// `visit` with the places of their keys, at most one version of each key, and notes in the hints, one for each
    /// key, how far the search for the others got. False, and nothing done, where the table's format has steps instead
    /// ([`Table::step`]).
    pub fn get_together(
        &self,
        keys: &[&[u8]],
        hints: &mut [Hint],
        seqno: SeqNo,
        mut visit: impl FnMut(usize, SeqNo, ValueKind, TableValue<'_>),
    ) -> bool {
        let Self::Searchable(table) = self else {
            return false;
        };
        table.get_together(keys, hints, seqno, |at, seqno, kind, value| {
            visit(at, seqno, kind, TableValue::Searchable(value));
        });
        true
    }

    /// As [`Table::get`], after steps for the same key and sequence number.
    ///
    /// # Errors
    /// As [`Table::get`].
    #[inline]
    pub fn get_hinted(
        &self,
        hint: &Hint,
        user_key: &[u8],
        seqno: SeqNo,
        options: &TableReadOptions,
        mut visit: impl FnMut(SeqNo, ValueKind, TableValue<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        match self {
            Self::Block(table) => {
                table.get_hinted(hint, user_key, seqno, options, |seqno, kind, value| {
                    visit(seqno, kind, TableValue::Block(value))
                })
            }
            Self::Plain(table) => table.get_hinted(hint, user_key, seqno, |seqno, kind, value| {
                visit(seqno, kind, TableValue::Plain(value))
            }),
            Self::Searchable(table) => {
                table.get_hinted(hint, user_key, seqno, options, |seqno, kind, value| {
                    visit(seqno, kind, TableValue::Searchable(value))
                })
            }
        }
    }

    /// Whether `user_key` may be in the table, as far as that is known without reading entries. True
    /// when it cannot be told.
    ///
    /// # Errors
    /// `Corruption`, `Io` while loading a part of a filter.
    pub fn may_contain(&self, user_key: &[u8]) -> Result<bool> {
        match self {
            Self::Block(table) => table.may_contain(user_key),
            Self::Plain(table) => Ok(table.may_contain(user_key)),
            Self::Searchable(table) => Ok(table.may_contain(user_key)),
        }
    }

    /// Whether a key with `key`'s prefix may be in the table. True when it cannot be told: without
    /// knowledge of prefixes, with another extractor, or when `key` has no prefix.
    ///
    /// # Errors
    /// As [`Table::may_contain`].
    pub fn may_contain_prefix(&self, key: &[u8]) -> Result<bool> {
        match self {
            Self::Block(table) => table.may_contain_prefix(key),
            Self::Plain(table) => Ok(table.may_contain_prefix(key)),
            Self::Searchable(table) => Ok(table.may_contain_prefix(key)),
        }
    }

    /// A cursor over the table's entries, not yet positioned.
    pub fn iter(&self, options: TableReadOptions) -> TableIter {
        match self {
            Self::Block(table) => TableIter::Block(table.iter(options)),
            Self::Plain(table) => TableIter::Plain(table.iter(options)),
            Self::Searchable(table) => TableIter::Searchable(Box::new(table.iter(options))),
        }
    }

    /// Every range tombstone in the table, as stored: by begin ascending, then newest first.
    #[inline]
    pub fn range_tombstones(&self) -> &[RangeTombstone] {
        match self {
            Self::Block(table) => table.range_tombstones(),
            Self::Plain(table) => table.range_tombstones(),
            Self::Searchable(table) => table.range_tombstones(),
        }
    }

    /// The table's properties.
    pub fn properties(&self) -> &TableProperties {
        match self {
            Self::Block(table) => table.properties(),
            Self::Plain(table) => table.properties(),
            Self::Searchable(table) => table.properties(),
        }
    }

    /// The properties of the table `file`, which is at `path`: a few small reads, where opening it takes in its index, too.
    /// `None` of a plain table, which is checked as a whole when it is opened.
    ///
    /// # Errors
    /// `Corruption` for damage, `NotSupported` for another format, `Io`.
    pub fn properties_of(
        file: Arc<dyn RandomAccessFile>,
        path: &Path,
    ) -> Result<Option<TableProperties>> {
        let read = match read_magic(&*file) {
            Ok(Some(PLAIN_MAGIC)) => return Ok(None),
            Ok(Some(SEARCHABLE_MAGIC)) => properties_of(&*file),
            Ok(_) => BlockTable::properties_of(file, path),
            Err(error) => Err(error),
        };
        read.map(Some).map_err(|error| error.with_file(path))
    }

    /// How many user keys the table has, range tombstones aside; `None` where it does not tell: a block-based table tells
    /// by its filter, if that has whole keys and nothing else.
    pub fn user_keys(&self) -> Option<u64> {
        match self {
            Self::Block(table) => {
                let properties = table.properties();
                let is_only_keys = matches!(&properties.prefix_extractor_name[..], "" | "nullptr");
                let keys = properties.num_filter_entries;
                (is_only_keys && keys > 0).then_some(keys)
            }
            Self::Plain(table) => Some(table.counts().1),
            Self::Searchable(table) => Some(table.user_keys()),
        }
    }

    /// About where in the file the entries at or after `internal_key` begin. On failure the answer
    /// is the end of the data.
    pub fn approximate_offset(&self, internal_key: &[u8]) -> u64 {
        match self {
            Self::Block(table) => table.approximate_offset(internal_key),
            Self::Plain(table) => table.approximate_offset(internal_key),
            Self::Searchable(table) => table.approximate_offset(internal_key),
        }
    }

    /// At most `count_max` user keys that cut the table's data into parts of about one size,
    /// ascending; they need not be keys of the table. From memory, nothing is read.
    pub fn key_samples(&self, count_max: usize) -> Vec<Vec<u8>> {
        match self {
            Self::Block(table) => table.key_samples(count_max),
            Self::Plain(table) => table.key_samples(count_max),
            Self::Searchable(table) => table.key_samples(count_max),
        }
    }

    /// How keys and values are encoded, in lines for people. Empty for formats in which all tables encode
    /// them alike.
    pub fn describe(&self) -> Vec<String> {
        match self {
            Self::Block(_) | Self::Plain(_) => Vec::new(),
            Self::Searchable(table) => table.describe(),
        }
    }

    /// Reads every byte and checks checksums, the order of entries, that lookups find every key,
    /// and that the counts in the properties are right. Gives the number of entries that refer to values
    /// in blob files; those values are not checked.
    ///
    /// # Errors
    /// `Corruption` naming the mismatch; `Io`. Cost: a scan of the file.
    pub fn verify(&self) -> Result<u64> {
        match self {
            Self::Block(table) => table.verify(),
            Self::Plain(table) => table.verify(),
            Self::Searchable(table) => table.verify(),
        }
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Block(table) => table.size(),
            Self::Plain(table) => table.size(),
            Self::Searchable(table) => table.size(),
        }
    }

    /// Memory that the table takes while it is open, charged to the budget.
    pub fn resident_bytes(&self) -> usize {
        match self {
            Self::Block(table) => table.resident_bytes(),
            Self::Plain(table) => table.resident_bytes(),
            Self::Searchable(table) => table.resident_bytes(),
        }
    }

    /// The id of the model in a file of its own that the table names, if it does.
    pub fn shared_model(&self) -> Option<u64> {
        match self {
            Self::Block(_) | Self::Plain(_) => None,
            Self::Searchable(table) => table.shared_model(),
        }
    }

    /// The same of the table `file`, which need not be opened for it.
    ///
    /// # Errors
    /// `Corruption` when it is a damaged searchable table; `Io`.
    pub fn shared_model_of(file: &dyn RandomAccessFile) -> Result<Option<u64>> {
        match read_magic(file)? {
            Some(SEARCHABLE_MAGIC) => shared_model_of(file),
            _ => Ok(None),
        }
    }

    /// The order of the table's keys.
    pub fn order(&self) -> &KeyOrder {
        match self {
            Self::Block(table) => table.order(),
            Self::Plain(table) => table.order(),
            Self::Searchable(table) => table.order(),
        }
    }
}

/// The last eight bytes of a file; `None` when it is shorter.
fn read_magic(file: &dyn RandomAccessFile) -> Result<Option<u64>> {
    let mut magic = [0; 8];
    let Some(at) = file.size().checked_sub(8) else {
        return Ok(None);
    };
    let read = file.read_at(at, &mut magic)?;
    Ok((read == 8).then_some(u64::from_le_bytes(magic)))
}

impl TableFormat {
    /// The format of the table `file`, by its last bytes alone.
    ///
    /// # Errors
    /// `Corruption` when it is no table; `NotSupported` for formats and versions of other engines
    /// that are not read; `Io`.
    pub fn of(file: &dyn RandomAccessFile) -> Result<Self> {
        match read_magic(file)? {
            Some(PLAIN_MAGIC) => Ok(Self::Plain),
            Some(SEARCHABLE_MAGIC) => Ok(Self::Searchable),
            _ => read_footer(file, file.size()).map(|_| Self::Block),
        }
    }

    /// Whether tables of the format are mapped while they are read: values pinned in one may be read
    /// long after it was closed, so its file must be neither overwritten nor cut; only its name may
    /// be removed.
    pub fn is_read_in_place(self) -> bool {
        match self {
            Self::Block | Self::Searchable => false,
            Self::Plain => true,
        }
    }
}
