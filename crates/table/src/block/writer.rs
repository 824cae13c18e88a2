//! Writing a table: data blocks as entries come, everything about them at the end.
//!
//! ```text
//! data blocks · filter · index · dictionary · range tombstones · properties · metaindex · footer
//! ```
//!
//! Blocks are built where they are written from (see [`super::builder`]) and go to the file in
//! large pieces. With a dictionary, the first blocks wait uncompressed until there is enough to
//! train on.

use drumlin_base::key::user_key;
use drumlin_base::{Error, Result, SeqNo};
use drumlin_fs::WritableFile;

use super::builder::BlockBuilder;
use super::filter_writer::FilterWriter;
use super::index_builder::{IndexBuilder, IndexStyle};
use crate::compress::{Codec, Framing, PreparedDict, compress, train_dictionary};
use crate::format::TableProperties;
use crate::format::{
    BlockHandle, ChecksumKind, FORMAT_VERSION_WRITTEN, TableStyle, append_trailer,
};
use crate::format::{check_entry, tombstone_key};
use crate::options::TableWriterOptions;

/// Finished blocks are handed to the file when this many bytes of them wait.
const FLUSH_BYTES: usize = 256 << 10;
/// Sample bytes per dictionary byte: zstd's trainer asks for about a hundred.
const SAMPLE_RATIO: usize = 100;
/// Most sample bytes kept waiting.
const SAMPLE_BYTES_MAX: usize = 8 << 20;

/// How many bytes of blocks wait for a dictionary of `dictionary_bytes`.
pub(super) fn sample_bytes(dictionary_bytes: usize) -> usize {
    dictionary_bytes
        .saturating_mul(SAMPLE_RATIO)
        .min(SAMPLE_BYTES_MAX)
}

/// Writes one table. Entries come in ascending internal-key order.
///
/// After an error the file is useless: drop the writer and remove the file.
pub struct BlockTableWriter {
    pub(crate) output: TableOutput,
    pub(crate) options: TableWriterOptions,
    pub(crate) data: BlockBuilder,
    pub(crate) index: IndexBuilder,
    pub(crate) filter: FilterWriter,
    pub(crate) tombstones: BlockBuilder,
    pub(crate) tombstone_count: u64,
    pub(crate) properties: TableProperties,
    /// Whether index (and perhaps filter) are cut into partitions.
    pub(crate) partitioned: bool,
    /// The dictionary, once it is trained.
    pub(crate) dict: Option<PreparedDict>,
    samples: Option<Samples>,
}

/// Blocks that wait for the dictionary.
#[derive(Debug)]
struct Samples {
    blocks: Vec<Vec<u8>>,
    bytes: usize,
    bytes_wanted: usize,
}

/// The file and how blocks are put into it.
pub(crate) struct TableOutput {
    file: Box<dyn WritableFile>,
    /// Bytes handed to the file.
    written: u64,
    framing: Framing,
    checksum: ChecksumKind,
    pub(crate) format_version: u32,
    /// The base of context checksums, which format versions 6 and later have.
    pub(crate) context: Option<u32>,
    /// Compressed blocks are made here.
    scratch: Vec<u8>,
}

impl TableOutput {
    /// Ends the block that fills `buffer` from `start` on: appends the trailer. `buffer` begins
    /// where the file now ends.
    #[inline]
    fn seal(&self, buffer: &mut Vec<u8>, start: usize, codec: Codec) -> BlockHandle {
        assert!(start <= buffer.len(), "a block begins in its buffer");
        let handle = BlockHandle {
            offset: self.written + start as u64,
            size: (buffer.len() - start) as u64,
        };
        let kind = codec.id(self.framing.style());
        let kind = kind.expect("blocks are compressed by codecs of the file's style");
        append_trailer(
            buffer,
            start,
            kind,
            self.checksum,
            self.context,
            handle.offset,
        );
        handle
    }

    /// Hands finished blocks to the file.
    fn append(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        self.file.append(buffer)?;
        self.written += buffer.len() as u64;
        buffer.clear();
        Ok(())
    }

    /// Writes one block of the tail, uncompressed.
    pub(crate) fn write_block(&mut self, mut contents: Vec<u8>) -> Result<BlockHandle> {
        let handle = self.seal(&mut contents, 0, Codec::None);
        self.append(&mut contents)?;
        Ok(handle)
    }

    /// Writes bytes that are no block: the footer.
    pub(crate) fn write_raw(&mut self, mut bytes: Vec<u8>) -> Result<()> {
        self.append(&mut bytes)
    }

    /// Where the next byte goes.
    pub(crate) fn offset(&self) -> u64 {
        self.written
    }

    pub(crate) fn checksum(&self) -> ChecksumKind {
        self.checksum
    }

    /// Syncs and closes the file.
    pub(crate) fn close(mut self) -> Result<()> {
        self.file.sync()?;
        self.file.close()
    }
}

impl BlockTableWriter {
    /// A writer into `file`, which must be empty.
    pub fn new(file: Box<dyn WritableFile>, options: TableWriterOptions) -> Self {
        let leveldb = options.style == TableStyle::LevelDb;
        let (checksum, format_version) = if leveldb {
            (ChecksumKind::Crc32c, 0)
        } else {
            (options.checksum, options.format_version)
        };
        let large = options.expected_bytes > options.partition_index_above_bytes;
        let partitioned = large && format_version >= FORMAT_VERSION_WRITTEN;
        let style = IndexStyle::of(format_version);
        let dictionary_bytes = options.compression.dictionary_bytes as usize;
        let takes_dictionary =
            !leveldb && dictionary_bytes > 0 && options.compression.codec.takes_dictionary();
        Self {
            output: TableOutput {
                file,
                written: 0,
                framing: Framing::of(options.style, format_version),
                checksum,
                format_version,
                context: None,
                scratch: Vec::new(),
            },
            data: BlockBuilder::new(options.restart_interval),
            index: IndexBuilder::new(options.order.clone(), style),
            filter: FilterWriter::new(&options, partitioned && options.partition_filters),
            tombstones: BlockBuilder::new(1),
            tombstone_count: 0,
            properties: TableProperties {
                user: options.user_properties.clone(),
                ..TableProperties::default()
            },
            partitioned,
            dict: None,
            samples: takes_dictionary.then(|| Samples {
                blocks: Vec::new(),
                bytes: 0,
                bytes_wanted: sample_bytes(dictionary_bytes),
            }),
            options,
        }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// `InvalidArgument` when the key is not after the one before, is no internal key, or is a range
    /// tombstone's; `TooLarge`; `Io`, `NoSpace`.
    pub fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let (user_key, tag) = check_entry(
            &self.options.order,
            self.data.last_key(),
            internal_key,
            value,
        )?;
        if self.block_is_full(internal_key.len() + value.len()) {
            self.index
                .push_separator(self.data.last_key(), Some(internal_key));
            self.finish_block()?;
        }
        if self.data.is_empty() {
            let offset = self.data_offset();
            self.filter.start_block(offset);
        }
        self.filter.add(user_key);
        self.data.add(internal_key, value);
        self.properties
            .count_entry(internal_key.len(), value.len(), tag);
        Ok(())
    }

    /// Whether the present block ends before an entry of `entry_bytes`. A block grows past its size only if it
    /// is less than nine tenths full.
    #[inline]
    fn block_is_full(&self, entry_bytes: usize) -> bool {
        let (size, limit) = (self.data.size(), self.options.block_bytes);
        !self.data.is_empty()
            && (size >= limit || (size + entry_bytes > limit && size * 10 > limit * 9))
    }

    /// Adds a range tombstone. They come by begin ascending, then newest first, and may come before,
    /// between or after the entries.
    ///
    /// # Errors
    /// `InvalidArgument` when the order is broken, the range is empty or the style has none of them.
    pub fn add_range_tombstone(&mut self, begin: &[u8], end: &[u8], seqno: SeqNo) -> Result<()> {
        if self.options.style == TableStyle::LevelDb {
            return Err(Error::invalid_argument(
                "LevelDB tables hold no range tombstones",
            ));
        }
        let last = self.tombstones.last_key();
        let key = tombstone_key(&self.options.order, last, begin, end, seqno)?;
        self.tombstones.add(&key, end);
        self.tombstone_count += 1;
        self.properties.count_range_tombstone(key.len(), end, seqno);
        Ok(())
    }

    /// Bytes the file would have if it were finished now, about.
    pub fn size_estimate(&self) -> u64 {
        let waiting = self.data.buffered() + self.samples.as_ref().map_or(0, |s| s.bytes);
        self.output.offset()
            + (waiting
                + self.index.size_estimate()
                + self.filter.size_estimate()
                + self.tombstones.size()) as u64
    }

    /// Entries added so far, range tombstones included.
    pub fn entries(&self) -> u64 {
        self.properties.num_entries
    }

    /// Writes the rest of the data blocks.
    pub(super) fn finish_blocks(&mut self) -> Result<()> {
        if !self.data.is_empty() {
            self.index.push_separator(self.data.last_key(), None);
            self.finish_block()?;
        }
        self.train()?;
        assert!(
            self.samples.is_none(),
            "no block waits for a dictionary any more"
        );
        self.output.append(self.data.buffer_mut())
    }

    /// Where the present block will begin, if no block before it waits for a dictionary.
    fn data_offset(&self) -> u64 {
        self.output.offset() + self.data.start() as u64
    }

    /// Ends the present data block; its separator is already known.
    fn finish_block(&mut self) -> Result<()> {
        let start = self.data.finish();
        if let Some(samples) = &mut self.samples {
            let buffer = self.data.buffer_mut();
            samples.bytes += buffer.len() - start;
            samples.blocks.push(buffer.split_off(start));
            self.data.start_next();
            if samples.bytes >= samples.bytes_wanted {
                self.train()?;
            }
            return Ok(());
        }
        self.emit(start)
    }

    /// Compresses and seals the block that fills the buffer from `start` on.
    fn emit(&mut self, start: usize) -> Result<()> {
        let compression = self.options.compression;
        let buffer = self.data.buffer_mut();
        let mut codec = Codec::None;
        if compression.codec != Codec::None {
            let scratch = &mut self.output.scratch;
            scratch.clear();
            codec = compress(
                compression.codec,
                compression.level,
                self.dict.as_ref(),
                buffer
                    .get(start..)
                    .expect("a block ends where the buffer does"),
                self.output.framing,
                scratch,
            );
            if codec != Codec::None {
                buffer.truncate(start);
                buffer.extend_from_slice(scratch);
            } else {
                self.properties.num_blocks_rejected += 1;
            }
        } else {
            self.properties.num_blocks_bypassed += 1;
        }
        let handle = self.output.seal(buffer, start, codec);
        self.index.push_handle(handle);
        if buffer.len() >= FLUSH_BYTES {
            self.output.append(buffer)?;
        }
        self.data.start_next();
        Ok(())
    }

    /// Trains the dictionary on the blocks that wait, and writes them. Does nothing if none wait.
    fn train(&mut self) -> Result<()> {
        let Some(samples) = self.samples.take() else {
            return Ok(());
        };
        let views: Vec<&[u8]> = samples.blocks.iter().map(Vec::as_slice).collect();
        let raw = train_dictionary(&self.options.compression, &views);
        if !raw.is_empty() {
            self.dict = Some(PreparedDict::for_writing(raw, &self.options.compression));
        }
        for block in &samples.blocks {
            let start = self.data.start();
            self.data.buffer_mut().extend_from_slice(block);
            self.emit(start)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for BlockTableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockTableWriter")
            .field("entries", &self.entries())
            .field("last_key", &user_key(self.data.last_key()))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::Path;
    use std::sync::Arc;

    use drumlin_base::key::internal_key;
    use drumlin_base::{ErrorKind, MemoryBudget, SEQNO_MAX, ValueKind};
    use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

    use super::super::table::BlockTable;
    use super::*;
    use crate::cache::BlockCache;
    use crate::options::{TableReadOptions, TableReaderOptions};

    /// A table in the frame of a later format version, opened again.
    fn open_as(format_version: u32) -> Result<Arc<BlockTable>> {
        let files = StrictMemFileSystem::new();
        let path = Path::new("000001.sst");
        let file = files.create(path, CreateOptions::new(FileKind::Table))?;
        let options = TableWriterOptions {
            compression: crate::compress::Compression::none(),
            filter: Some(crate::options::FilterOptions::default()),
            block_bytes: 256,
            ..TableWriterOptions::default()
        };
        let mut writer = BlockTableWriter::new(file, options);
        writer.output.format_version = format_version;
        writer.output.context = Some(0x0bad_cafe);
        for n in 0..500u64 {
            let key = internal_key(format!("key{n:04}").as_bytes(), n, ValueKind::Value);
            writer.add(&key, b"value")?;
        }
        writer.finish()?;
        let budget = MemoryBudget::new(1 << 20);
        let cache = BlockCache::new(Arc::clone(&budget));
        let options = TableReaderOptions::new(path.to_path_buf(), 1, cache, budget);
        BlockTable::open(files.open(path)?, options)
    }

    #[test]
    fn context_checksums_and_an_index_named_by_the_metaindex_are_read() {
        let table = open_as(6).unwrap();
        table.verify().unwrap();
        let mut found = 0;
        let options = TableReadOptions::default();
        let visit = |_, _, _: super::super::table::BlockValue<'_>| {
            found += 1;
            ControlFlow::Break(())
        };
        table.get(b"key0123", SEQNO_MAX, &options, visit).unwrap();
        assert_eq!(found, 1);
    }

    #[test]
    fn a_compression_manager_that_is_not_known_is_refused_by_name() {
        // From version 7 on the property names the compressor; "NoCompression" is none.
        let error = open_as(7).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.to_string().contains("NoCompression"), "{error}");
    }
}
