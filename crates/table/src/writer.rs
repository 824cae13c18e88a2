//! Writing a table of the format its options ask for.
//!
//! One owner; every call is one `match`.

use drumlin_base::{KeyOrder, Result, SeqNo, ValueCode};
use drumlin_fs::WritableFile;

use crate::block::BlockTableWriter;
use crate::format::{FinishedTable, foreign_code};
use crate::options::{TableFormat, TableWriterOptions};
use crate::plain::PlainTableWriter;
use crate::searchable::SearchableTableWriter;

/// Writes one table. Entries come in ascending internal-key order.
///
/// After an error the file is useless: drop the writer and remove the file.
#[derive(Debug)]
pub enum TableWriter {
    /// A block-based table.
    Block(Box<BlockTableWriter>),
    /// A plain table.
    Plain(Box<PlainTableWriter>),
    /// A searchable table.
    Searchable(Box<SearchableTableWriter>),
}

impl TableWriter {
    /// A writer into `file`, which must be empty.
    pub fn new(file: Box<dyn WritableFile>, options: TableWriterOptions) -> Self {
        match options.format {
            TableFormat::Block => Self::Block(Box::new(BlockTableWriter::new(file, options))),
            TableFormat::Plain => Self::Plain(Box::new(PlainTableWriter::new(file, options))),
            TableFormat::Searchable if !matches!(options.order, KeyOrder::Bytewise) => {
                Self::Block(Box::new(BlockTableWriter::new(file, options)))
            }
            TableFormat::Searchable => {
                Self::Searchable(Box::new(SearchableTableWriter::new(file, options)))
            }
        }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// `InvalidArgument` when the key is not after the one before, is no internal key, or is a range
    /// tombstone's; `TooLarge`; `Io`, `NoSpace`.
    #[inline]
    pub fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        match self {
            Self::Block(writer) => writer.add(internal_key, value),
            Self::Plain(writer) => writer.add(internal_key, value),
            Self::Searchable(writer) => writer.add(internal_key, value),
        }
    }

    /// Adds an entry whose value is copied as it is stored elsewhere.
    ///
    /// # Errors
    /// `InvalidArgument` when the table does not name the code's model; as [`TableWriter::add`].
    #[inline]
    pub fn add_code(&mut self, internal_key: &[u8], code: &ValueCode<'_>) -> Result<()> {
        match self {
            Self::Block(_) | Self::Plain(_) => Err(foreign_code()),
            Self::Searchable(writer) => writer.add_code(internal_key, code),
        }
    }

    /// Adds a range tombstone. They come by begin ascending, then newest first, and may come before,
    /// between or after the entries.
    ///
    /// # Errors
    /// `InvalidArgument` when the order is broken, the range is empty or the format has none of them.
    pub fn add_range_tombstone(&mut self, begin: &[u8], end: &[u8], seqno: SeqNo) -> Result<()> {
        match self {
            Self::Block(writer) => writer.add_range_tombstone(begin, end, seqno),
            Self::Plain(writer) => writer.add_range_tombstone(begin, end, seqno),
            Self::Searchable(writer) => writer.add_range_tombstone(begin, end, seqno),
        }
    }

    /// Bytes the file would have if it were finished now, about.
    #[inline]
    pub fn size_estimate(&self) -> u64 {
        match self {
            Self::Block(writer) => writer.size_estimate(),
            Self::Plain(writer) => writer.size_estimate(),
            Self::Searchable(writer) => writer.size_estimate(),
        }
    }

    /// Entries added so far, range tombstones included.
    pub fn entries(&self) -> u64 {
        match self {
            Self::Block(writer) => writer.entries(),
            Self::Plain(writer) => writer.entries(),
            Self::Searchable(writer) => writer.entries(),
        }
    }

    /// The id of the model in a file of its own that the table names, if it does.
    pub fn shared_model(&self) -> Option<u64> {
        match self {
            Self::Block(_) | Self::Plain(_) => None,
            Self::Searchable(writer) => writer.shared_model(),
        }
    }

    /// Writes everything that is left, then syncs and closes the file.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn finish(self) -> Result<FinishedTable> {
        match self {
            Self::Block(writer) => writer.finish(),
            Self::Plain(writer) => writer.finish(),
            Self::Searchable(writer) => writer.finish(),
        }
    }
}
