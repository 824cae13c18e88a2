//! Writing a searchable table: one pass, pages and key blocks as they are full, the rest at the end.
//!
//! Without a model to name, the first entries wait as a sample to learn one from. Apart from them, the keys'
//! sample and the bytes that wait for the file, memory grows by less than half a byte a key, for the locator
//! and the lengths of key blocks. [`SearchableTableWriter::memory`] counts it.

use std::sync::Arc;

use drumlin_base::checksum::xxh3_64;
use drumlin_base::coding::{put_slice, put_varint64};
use drumlin_base::key::{ValueKind, split_internal, tag_kind, user_key};
use drumlin_base::{Error, ErrorKind, KeyOrder, PrefixExtractor, Result, SeqNo, ValueCode};
use drumlin_fs::WritableFile;
use drumlin_succinct::{Effort, Encoder, KeyIndexBuilder, Model};

use super::coded::{CODED_VALUES, Coded, LONGEST_VALUE};
use super::format::{FOOTER_BYTES, PAGE_BYTES, SECTIONS, SearchableFooter, Section};
use super::locator::{Locator, RowPlace};
use super::model_file::reference;
use super::page::{PageBuilder, large_page};
use super::row::{PLAIN_TAG, Version, encode_versions};
use crate::block::properties_block;
use crate::format::TableProperties;
use crate::format::{FinishedTable, check_entry, foreign_code, tombstone_key};
use crate::options::TableWriterOptions;

/// Pages are handed to the file when this many bytes of them wait.
const FLUSH_BYTES: usize = 256 << 10;
/// Key blocks go to the file when this many bytes of them wait.
const EXTENT_BYTES: usize = 1 << 20;
/// Bytes of keys and values that the model is learned from.
const SAMPLE_BYTES: usize = 2 << 20;

/// Writes one searchable table. Entries come in ascending internal-key order.
///
/// After an error the file is useless: drop the writer and remove the file.
pub struct SearchableTableWriter {
    file: Box<dyn WritableFile>,
    options: TableWriterOptions,
    /// Entries that wait for the model; `None` once it is there.
    sample: Option<Sample>,
    encoder: Encoder,
    keys: KeyIndexBuilder,
    key: PendingKey,
    page: PageBuilder,
    pages: u32,
    locator: Locator,
    /// Whole pages that wait for the file.
    buffer: Vec<u8>,
    /// Bytes handed to the file.
    written: u64,
    extents: Vec<Section>,
    tombstones: Vec<u8>,
    last_tombstone: Vec<u8>,
    last_key: Vec<u8>,
    properties: TableProperties,
    coded: Coded,
}

/// The reason why an entry is where the ends of a sample say.
const IN_SAMPLE: &str = "the entries of a sample are one behind the other";

/// Entries one after the other.
#[derive(Debug, Default)]
struct Sample {
    bytes: Vec<u8>,
    /// Where each key, and each value behind it, ends.
    ends: Vec<(usize, usize)>,
}

/// The versions of the key that came last.
#[derive(Debug, Default)]
struct PendingKey {
    key: Vec<u8>,
    versions: Vec<Version>,
    /// The bytes of the versions.
    bytes: Vec<u8>,
    /// The list of versions is made here.
    row: Vec<u8>,
}

impl PendingKey {
    fn row(&self, versioned: bool) -> &[u8] {
        if versioned { &self.row } else { &self.bytes }
    }
}

impl SearchableTableWriter {
    /// A writer into `file`, which must be empty. Requires that keys are in bytewise order.
    pub fn new(file: Box<dyn WritableFile>, options: TableWriterOptions) -> Self {
        debug_assert!(matches!(options.order, KeyOrder::Bytewise));
        Self {
            file,
            sample: options.model.is_none().then(Sample::default),
            encoder: Encoder::new(match &options.model {
                Some(model) => Arc::clone(model),
                None => Arc::new(Model::raw()),
            }),
            keys: KeyIndexBuilder::new(),
            key: PendingKey::default(),
            page: PageBuilder::default(),
            pages: 0,
            locator: Locator::default(),
            buffer: Vec::new(),
            written: 0,
            extents: Vec::new(),
            tombstones: Vec::new(),
            last_tombstone: Vec::new(),
            last_key: Vec::new(),
            coded: Coded::default(),
            properties: TableProperties {
                user: options.user_properties.clone(),
                ..TableProperties::default()
            },
            options,
        }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// `InvalidArgument` when the key is not after the one before, is no internal key, or is a range
    /// tombstone's; `TooLarge`; `Io`, `NoSpace`.
    pub fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let (_, tag) = check_entry(&self.options.order, &self.last_key, internal_key, value)?;
        self.last_key.clear();
        self.last_key.extend_from_slice(internal_key);
        self.properties
            .count_entry(internal_key.len(), value.len(), tag);
        let Some(sample) = &mut self.sample else {
            return self.add_version(internal_key, value);
        };
        sample.bytes.extend_from_slice(internal_key);
        let key_end = sample.bytes.len();
        sample.bytes.extend_from_slice(value);
        sample.ends.push((key_end, sample.bytes.len()));
        if sample.bytes.len() >= SAMPLE_BYTES {
            self.learn()
        } else {
            Ok(())
        }
    }

    /// Adds an entry whose value's code is copied as it is: several times as fast as encoding it.
    ///
    /// # Errors
    /// `InvalidArgument` when the table does not name the code's model; as
    /// [`SearchableTableWriter::add`].
    pub fn add_code(&mut self, internal_key: &[u8], code: &ValueCode<'_>) -> Result<()> {
        let order = &self.options.order;
        let (user_key, tag) = check_entry(order, &self.last_key, internal_key, code.bytes)?;
        if self.sample.is_some()
            || self.encoder.model().id() != code.model
            || tag_kind(tag) != ValueKind::Value as u8
        {
            return Err(foreign_code());
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(internal_key);
        self.properties.count_entry(internal_key.len(), 0, tag);
        self.coded.copied_bytes += code.value_bytes;
        let longest = self.coded.value_bytes_max.max(code.value_bytes_max);
        self.coded.value_bytes_max = longest;
        self.coded.code_bytes += code.bytes.len() as u64;
        let start = self.start_version(user_key)?;
        self.key.bytes.extend_from_slice(code.bytes);
        self.end_version(tag, start);
        Ok(())
    }

    /// Learns the model from the entries that wait, and encodes these.
    fn learn(&mut self) -> Result<()> {
        let Some(sample) = self.sample.take() else {
            return Ok(());
        };
        let mut start = 0;
        let entries: Vec<(&[u8], &[u8])> = sample
            .ends
            .iter()
            .map(|&(key_end, end)| {
                let entry = sample.bytes.get(start..end).expect(IN_SAMPLE);
                let entry = entry.split_at_checked(key_end - start).expect(IN_SAMPLE);
                start = end;
                entry
            })
            .collect();
        let is_value = |key: &[u8]| {
            split_internal(key).is_some_and(|(_, tag)| tag_kind(tag) == ValueKind::Value as u8)
        };
        let values: Vec<&[u8]> = entries
            .iter()
            .filter(|(key, _)| is_value(key))
            .map(|(_, value)| *value)
            .collect();
        let model = Model::train(&values, Effort::Small);
        self.encoder = Encoder::new(Arc::new(model));
        for (key, value) in entries {
            self.add_version(key, value)?;
        }
        Ok(())
    }

    /// Adds an entry to the key it is a version of.
    #[inline]
    fn add_version(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let (user_key, tag) = split_internal(internal_key).expect("checked when it was added");
        let start = self.start_version(user_key)?;
        if tag_kind(tag) == ValueKind::Value as u8 {
            self.encoder.encode(value, &mut self.key.bytes);
            self.coded.encoded_bytes += value.len() as u64;
            self.coded.value_bytes_max = self.coded.value_bytes_max.max(value.len());
            self.coded.code_bytes += (self.key.bytes.len() - start) as u64;
        } else {
            self.key.bytes.extend_from_slice(value)
        }
        self.end_version(tag, start);
        Ok(())
    }

    /// Begins a version of `user_key`, after finishing the key before. Gives where its bytes begin.
    #[inline]
    fn start_version(&mut self, user_key: &[u8]) -> Result<usize> {
        if self.key.versions.is_empty() || self.key.key != user_key {
            self.finish_key()?;
            self.key.key.clear();
            self.key.key.extend_from_slice(user_key);
        }
        Ok(self.key.bytes.len())
    }

    #[inline]
    fn end_version(&mut self, tag: u64, start: usize) {
        let range = start..self.key.bytes.len();
        self.key.versions.push(Version { tag, range });
    }

    /// Makes the row of the present key, if there is one, and adds both.
    fn finish_key(&mut self) -> Result<()> {
        let Some(versioned) = self.make_row()? else {
            return Ok(());
        };
        let rank = self.keys.len();
        self.keys.add(&self.key.key)?;
        let place = self.add_row(versioned)?;
        self.locator.push(rank, place);
        self.key.versions.clear();
        self.key.bytes.clear();
        if self.keys.blocks_bytes() >= EXTENT_BYTES {
            let blocks = self.keys.blocks();
            self.write_extent(blocks)?;
        }
        if self.buffer.len() >= FLUSH_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Makes the row of the present key: a list of versions, which is true, or the one value as it is. `None`
    /// where the key has no version.
    fn make_row(&mut self) -> Result<Option<bool>> {
        let key = &mut self.key;
        let versioned = match key.versions.as_slice() {
            [] => return Ok(None),
            [only] => only.tag != PLAIN_TAG,
            _ => true,
        };
        key.row.clear();
        if versioned {
            encode_versions(&key.versions, &key.bytes, &mut key.row);
        }
        if key.row(versioned).len() > u32::MAX as usize {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "the versions of one key take more than 4 GiB",
            ));
        }
        Ok(Some(versioned))
    }

    /// Adds the row that was made to the present page, to the next one, or as a page of its own.
    fn add_row(&mut self, versioned: bool) -> Result<RowPlace> {
        let row = self.key.row(versioned);
        let is_large = !PageBuilder::can_hold(row);
        if is_large || !self.page.add(row) {
            if self.page.len() > 0 {
                self.locator
                    .page_lies_at(self.pages, next_block(self.written, &self.buffer)?);
                self.page.finish(&mut self.buffer);
                self.pages += 1;
            }
            if is_large {
                self.locator
                    .page_lies_at(self.pages, next_block(self.written, &self.buffer)?);
                large_page(row, &mut self.buffer);
                self.pages += 1;
            } else {
                self.page.add(row);
            }
        }
        Ok(RowPlace {
            page: self.pages - u32::from(is_large),
            row: self.page.len().saturating_sub(1),
            versioned,
        })
    }

    /// Hands the pages that wait to the file.
    fn flush(&mut self) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes key blocks, up to a whole page.
    fn write_extent(&mut self, mut blocks: Vec<u8>) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let len = blocks.len() as u64;
        blocks.resize(blocks.len().next_multiple_of(PAGE_BYTES), 0);
        self.flush()?;
        assert!(
            self.written.is_multiple_of(PAGE_BYTES as u64),
            "pages and extents are aligned"
        );
        self.extents.push(Section {
            offset: self.written,
            len,
            checksum: xxh3_64(&blocks),
        });
        self.file.append(&blocks)?;
        self.written += blocks.len() as u64;
        Ok(())
    }

    /// Adds a range tombstone. They come by begin ascending, then newest first, and may come before,
    /// between or after the entries.
    ///
    /// # Errors
    /// `InvalidArgument` when the order is broken or the range is empty.
    pub fn add_range_tombstone(&mut self, begin: &[u8], end: &[u8], seqno: SeqNo) -> Result<()> {
        let (order, last) = (&self.options.order, &self.last_tombstone);
        let key = tombstone_key(order, last, begin, end, seqno)?;
        put_slice(&mut self.tombstones, begin);
        put_slice(&mut self.tombstones, end);
        put_varint64(&mut self.tombstones, seqno);
        self.properties.count_range_tombstone(key.len(), end, seqno);
        self.last_tombstone = key;
        Ok(())
    }

    /// Bytes the file would have if it were finished now, about.
    #[inline]
    pub fn size_estimate(&self) -> u64 {
        let sample = self.sample.as_ref().map_or(0, |sample| sample.bytes.len());
        let waiting = self.buffer.len() + self.page.bytes() + sample + self.tombstones.len();
        let locator = self.locator.stored_bytes() + FOOTER_BYTES;
        let extents: u64 = self.extents.iter().map(|extent| extent.len).sum();
        self.written - extents + self.keys.size_estimate() + (waiting + locator) as u64
    }

    /// Bytes of memory it holds, without the model. While entries come these are a few megabytes (the samples
    /// and the bytes that wait for the file, both bounded), less than half a byte a key, the largest row and
    /// the range tombstones; while the tail is written, the tail once more.
    pub fn memory(&self) -> usize {
        let sample = self.sample.as_ref().map_or(0, |sample| {
            sample.bytes.capacity() + sample.ends.capacity() * size_of::<(usize, usize)>()
        });
        let key = &self.key;
        let row = key.key.capacity() + key.bytes.capacity() + key.row.capacity();
        let versions = key.versions.capacity() * size_of::<Version>();
        let waiting = self.buffer.capacity() + self.page.bytes() + self.tombstones.capacity();
        let places = self.locator.resident_bytes();
        let extents = self.extents.capacity() * size_of::<Section>();
        sample + self.keys.memory() + row + versions + waiting + places + extents
    }

    /// Entries added so far, range tombstones included.
    pub fn entries(&self) -> u64 {
        self.properties.num_entries
    }

    /// The id of the model that the table names; `None` when it will hold its own.
    pub fn shared_model(&self) -> Option<u64> {
        self.options.model.as_ref().map(|model| model.id())
    }

    /// Writes everything that is left, then syncs and closes the file.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn finish(mut self) -> Result<FinishedTable> {
        self.learn()?;
        self.finish_key()?;
        if self.page.len() > 0 {
            self.locator
                .page_lies_at(self.pages, next_block(self.written, &self.buffer)?);
            self.page.finish(&mut self.buffer);
            self.pages += 1;
        }
        let keys = std::mem::take(&mut self.keys);
        let key_count = keys.len();
        let (blocks, key_tail) = keys.finish()?;
        self.write_extent(blocks)?;
        self.flush()?;
        let tail_start = self.written;
        assert!(
            tail_start.is_multiple_of(PAGE_BYTES as u64),
            "pages and extents are aligned"
        );
        self.complete_properties(key_tail.len());
        let sections = self.sections(key_tail);
        self.write_tail(sections, key_count)?;
        let size = self.written;
        self.file.sync()?;
        self.file.close()?;
        Ok(FinishedTable {
            size,
            tail_size: size - tail_start,
            properties: self.properties,
        })
    }

    /// Fills in the properties that are known once all pages and extents are written.
    fn complete_properties(&mut self, key_tail_bytes: usize) {
        let extents: u64 = self.extents.iter().map(|extent| extent.len).sum();
        let properties = &mut self.properties;
        properties.data_size = self.written - extents;
        properties.index_size = extents + key_tail_bytes as u64;
        properties.num_data_blocks = u64::from(self.pages);
        properties.tail_start_offset = self.written;
        if self.options.model.is_some() {
            let coded = self.coded.encode();
            properties.user.insert(CODED_VALUES.to_owned(), coded);
        }
        let longest = (self.coded.value_bytes_max as u64).to_le_bytes();
        properties
            .user
            .insert(LONGEST_VALUE.to_owned(), longest.to_vec());
        let copied = self.coded.copied_bytes.round() as u64;
        properties.raw_value_size = properties.raw_value_size.saturating_add(copied);
    }

    /// The sections, in the order of [`SectionKind`].
    fn sections(&mut self, key_tail: Vec<u8>) -> [Vec<u8>; SECTIONS] {
        let mut extent_list = Vec::new();
        self.extents
            .iter()
            .for_each(|extent| extent.store(&mut extent_list));
        let [jumps, places, versioned] = self.locator.encode();
        let model = match self.shared_model() {
            Some(id) => reference(id),
            None => self.encoder.model().to_bytes(),
        };
        let tombstones = std::mem::take(&mut self.tombstones);
        let prefix = prefix_of(&self.options);
        let properties = properties_block(&mut self.properties, &self.options, prefix);
        [
            extent_list,
            key_tail,
            jumps,
            places,
            versioned,
            model,
            tombstones,
            properties,
        ]
    }

    /// Writes the sections and the footer that names them.
    fn write_tail(&mut self, sections: [Vec<u8>; SECTIONS], keys: u64) -> Result<()> {
        let mut footer = SearchableFooter {
            pages: u64::from(self.pages),
            keys,
            ..SearchableFooter::default()
        };
        for (section, bytes) in footer.sections.iter_mut().zip(sections) {
            *section = Section {
                offset: self.written + self.buffer.len() as u64,
                len: bytes.len() as u64,
                checksum: xxh3_64(&bytes),
            };
            self.buffer.extend_from_slice(&bytes);
        }
        self.buffer.extend_from_slice(&footer.encode());
        self.flush()?;
        assert_eq!(
            footer.sections.last().and_then(Section::end),
            Some(self.written - FOOTER_BYTES as u64),
            "sections follow each other up to the footer"
        );
        Ok(())
    }
}

/// Where the page after `buffer` will be, in blocks of a page's size.
fn next_block(written: u64, buffer: &[u8]) -> Result<u32> {
    let block = (written + buffer.len() as u64) / PAGE_BYTES as u64;
    u32::try_from(block)
        .ok()
        .filter(|&block| block < u32::MAX / 2)
        .ok_or_else(|| Error::new(ErrorKind::TooLarge, "a searchable table of more than 8 TiB"))
}

fn prefix_of(options: &TableWriterOptions) -> Option<&dyn PrefixExtractor> {
    options.filter.as_ref()?.prefix.as_deref()
}

impl std::fmt::Debug for SearchableTableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchableTableWriter")
            .field("entries", &self.entries())
            .field("last_key", &user_key(&self.last_key))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::Path;

    use drumlin_base::key::internal_key;
    use drumlin_base::{InternalIterator, MemoryBudget};
    use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

    use super::*;
    use crate::cache::BlockCache;
    use crate::options::{TableReadOptions, TableReaderOptions};
    use crate::searchable::SearchableTable;
    use crate::searchable::model_file::KnownModel;

    /// Writes `/table` by `fill`, and opens it.
    fn table_of(
        model: Option<&Arc<Model>>,
        fill: impl FnOnce(&mut SearchableTableWriter),
    ) -> Arc<SearchableTable> {
        let (files, path) = (StrictMemFileSystem::new(), Path::new("/table"));
        let file = files.create(path, CreateOptions::new(FileKind::Table));
        let options = TableWriterOptions {
            model: model.cloned(),
            ..TableWriterOptions::default()
        };
        let mut writer = SearchableTableWriter::new(file.expect("room"), options);
        fill(&mut writer);
        writer.finish().expect("room");
        let budget = MemoryBudget::new(8 << 20);
        let cache = BlockCache::new(Arc::clone(&budget));
        let mut options = TableReaderOptions::new(path.into(), 0, cache, budget);
        options.models = model.map(|model| Arc::new(KnownModel(Arc::clone(model))) as _);
        SearchableTable::open(files.open(path).expect("it"), options).expect("a table")
    }

    /// Goal: a row claims thousands of times its size only if such a value was written.
    #[test]
    fn no_row_decodes_to_more_than_the_longest_value_that_was_written() {
        const LONGEST: usize = 99_510;
        let fill = |writer: &mut SearchableTableWriter| {
            for number in 0..200u32 {
                let key = internal_key(&number.to_be_bytes(), 0, ValueKind::Value);
                let value = vec![b'v'; 10 + number as usize * 500];
                writer.add(&key, &value).expect("ascending");
            }
        };
        let model = Arc::new(Model::train(&[&[b'v'; 900]], Effort::Small));
        let named = table_of(Some(&model), fill);
        let copied = table_of(Some(&model), |writer| {
            let mut from = named.iter(TableReadOptions {
                codes_of: Some(model.id()),
                ..TableReadOptions::default()
            });
            from.seek_to_first();
            while from.valid() {
                let code = from.code().expect("of the model");
                writer.add_code(from.key(), &code).expect("ascending");
                from.next();
            }
        });
        for mut table in [table_of(None, fill), named, copied] {
            assert_eq!(table.value_bytes_max, LONGEST);
            table.verify().expect("sound");
            let got = |table: &SearchableTable, number: u32| {
                let (options, mut len) = (TableReadOptions::default(), None);
                let found = table.get(&number.to_be_bytes(), 9, &options, |_, _, value| {
                    len = Some(value.bytes().len());
                    ControlFlow::Break(())
                });
                found.map(|()| len)
            };
            assert_eq!(got(&table, 199).expect("sound"), Some(LONGEST));
            let table_mut = Arc::get_mut(&mut table).expect("no other handle");
            table_mut.value_bytes_max = LONGEST - 1;
            assert!(got(&table, 198).expect("sound").is_some());
            let error = got(&table, 199).expect_err("longer than it may be");
            assert!(error.is_corruption() && error.file().is_some(), "{error}");
            let mut cursor = table.iter(TableReadOptions::default());
            cursor.seek_to_last();
            assert!(!cursor.valid() && cursor.status().is_err());
        }
    }

    #[test]
    fn a_writer_holds_a_few_megabytes_and_half_a_byte_a_key() {
        let files = StrictMemFileSystem::new();
        let file = files
            .create(Path::new("/table"), CreateOptions::new(FileKind::Table))
            .expect("room");
        let mut writer = SearchableTableWriter::new(file, TableWriterOptions::default());
        let (mut early, mut late) = (0, 0);
        let (keys, half) = (160_000u64, 80_000);
        for number in 0..keys {
            let key = format!("{:08}|{}", number * 3, number % 7);
            let key = internal_key(key.as_bytes(), 0, ValueKind::Value);
            let value = format!(
                "{}|{}",
                number % 91,
                number.wrapping_mul(0x9e37_79b9) % 1000
            );
            writer.add(&key, value.as_bytes()).expect("ascending keys");
            let most = if number < half { &mut early } else { &mut late };
            *most = writer.memory().max(*most);
        }
        assert!(writer.sample.is_none(), "the model was learned on the way");
        assert!(early <= 8 << 20, "{early}");
        assert!(late <= early + half as usize / 2, "{late} after {early}");
        writer.finish().expect("room");
    }
}
