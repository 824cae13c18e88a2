//! Writing a plain table: records as entries come, everything about them at the end.
//!
//! The hash and the place of each user key wait in memory until then, twelve bytes together.

use drumlin_base::checksum::{Xxh3, xxh3_64};
use drumlin_base::key::{split_internal, user_key};
use drumlin_base::{Error, ErrorKind, PrefixExtractor, Result, SeqNo};
use drumlin_fs::WritableFile;

use super::anchors::ANCHOR_BYTES;
use super::format::{FOOTER_BYTES, PlainFooter, SECTION_ALIGN, Section, header};
use super::hash_index::{HashIndexBuilder, KeyHash};
use super::record::{UNIT_BYTES, append_record};
use crate::block::properties_block;
use crate::format::TableProperties;
use crate::format::{FinishedTable, check_entry, tombstone_key};
use crate::options::TableWriterOptions;

/// Records are handed to the file when this many bytes of them wait.
const FLUSH_BYTES: usize = 256 << 10;

/// Writes one plain table. Entries come in ascending internal-key order.
///
/// After an error the file is useless: drop the writer and remove the file.
pub struct PlainTableWriter {
    file: Box<dyn WritableFile>,
    options: TableWriterOptions,
    /// Bytes handed to the file.
    written: u64,
    /// Records that follow them.
    buffer: Vec<u8>,
    /// The checksum of all records handed to the file.
    checksum: Xxh3,
    last_key: Vec<u8>,
    /// Absent where keys that count as equal may have different bytes.
    keys: Option<HashIndexBuilder>,
    prefixes: HashIndexBuilder,
    footer: PlainFooter,
    /// Where records begin that are anchors, 32 bits each.
    anchors: Vec<u8>,
    last_anchor: Option<u64>,
    /// Range tombstones as records.
    tombstones: Vec<u8>,
    last_tombstone: Vec<u8>,
    properties: TableProperties,
}

impl PlainTableWriter {
    /// A writer into `file`, which must be empty.
    pub fn new(file: Box<dyn WritableFile>, options: TableWriterOptions) -> Self {
        let equality_is_bytewise = options.order.equality_is_bytewise();
        Self {
            file,
            written: 0,
            buffer: header(),
            checksum: Xxh3::new(),
            last_key: Vec::new(),
            keys: equality_is_bytewise.then(HashIndexBuilder::default),
            prefixes: HashIndexBuilder::default(),
            footer: PlainFooter {
                prefixes_contiguous: true,
                ..PlainFooter::default()
            },
            anchors: Vec::new(),
            last_anchor: None,
            tombstones: Vec::new(),
            last_tombstone: Vec::new(),
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
    /// tombstone's; `TooLarge`, also for a table of more than 16 GiB; `Io`, `NoSpace`.
    pub fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let (user_key, tag) =
            check_entry(&self.options.order, &self.last_key, internal_key, value)?;
        let at = self.written + self.buffer.len() as u64;
        let place = u32::try_from(at / UNIT_BYTES as u64)
            .map_err(|_| Error::new(ErrorKind::TooLarge, "a plain table of more than 16 GiB"))?;
        self.index(user_key, place);
        let far = |last| at - last >= ANCHOR_BYTES as u64;
        if self.last_anchor.is_none_or(far) {
            self.anchors.extend_from_slice(&place.to_le_bytes());
            self.last_anchor = Some(at);
        }
        append_record(&mut self.buffer, internal_key, value);
        self.last_key.clear();
        self.last_key.extend_from_slice(internal_key);
        self.footer.records += 1;
        self.properties
            .count_entry(internal_key.len(), value.len(), tag);
        if self.buffer.len() >= FLUSH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Notes where the first record of a user key, and of a prefix, begins.
    #[inline]
    fn index(&mut self, user_key: &[u8], place: u32) {
        let last = match self.footer.records {
            0 => None,
            _ => split_internal(&self.last_key).map(|(last, _)| last),
        };
        if last == Some(user_key) {
            return;
        }
        self.footer.keys += 1;
        let Some(keys) = &mut self.keys else { return };
        keys.add(KeyHash::of(user_key), place);
        let extractor = prefix_of(&self.options);
        let Some(prefix) = extractor.and_then(|by| by.prefix(user_key)) else {
            return;
        };
        if extractor.zip(last).and_then(|(by, last)| by.prefix(last)) == Some(prefix) {
            return;
        }
        // All keys that begin with this prefix follow from here, if the key before does not begin with it.
        let alone =
            user_key.starts_with(prefix) && !last.is_some_and(|last| last.starts_with(prefix));
        self.footer.prefixes_contiguous &= alone;
        self.prefixes.add(KeyHash::of(prefix), place);
    }

    /// Adds a range tombstone. They come by begin ascending, then newest first, and may come before,
    /// between or after the entries.
    ///
    /// # Errors
    /// `InvalidArgument` when the order is broken or the range is empty.
    pub fn add_range_tombstone(&mut self, begin: &[u8], end: &[u8], seqno: SeqNo) -> Result<()> {
        let (order, last) = (&self.options.order, &self.last_tombstone);
        let key = tombstone_key(order, last, begin, end, seqno)?;
        append_record(&mut self.tombstones, &key, end);
        self.properties.count_range_tombstone(key.len(), end, seqno);
        self.last_tombstone = key;
        Ok(())
    }

    /// Bytes the file would have if it were finished now, about.
    #[inline]
    pub fn size_estimate(&self) -> u64 {
        let keys = self.keys.as_ref().map_or(0, HashIndexBuilder::size);
        let waiting = self.buffer.len() + self.anchors.len() + self.tombstones.len();
        self.written + (waiting + keys + self.prefixes.size() + FOOTER_BYTES) as u64
    }

    /// Entries added so far, range tombstones included.
    pub fn entries(&self) -> u64 {
        self.properties.num_entries
    }

    /// Writes everything that is left, then syncs and closes the file.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn finish(mut self) -> Result<FinishedTable> {
        self.flush()?;
        let records = Section {
            offset: SECTION_ALIGN as u64,
            len: self.written - SECTION_ALIGN as u64,
            checksum: self.checksum.finish(),
        };
        let keys = self.keys.take().and_then(HashIndexBuilder::finish);
        let prefixes = std::mem::take(&mut self.prefixes);
        self.footer.prefixes = prefixes.len() as u64;
        let parts = [
            keys.unwrap_or_default(),
            prefixes.finish().unwrap_or_default(),
            std::mem::take(&mut self.anchors),
            std::mem::take(&mut self.tombstones),
        ];
        let [keys, prefixes, anchors, _] = &parts;
        let index_bytes = keys.len() + prefixes.len() + anchors.len();
        self.properties.index_size = index_bytes as u64;
        self.properties.data_size = records.len;
        self.properties.tail_start_offset = self.written;
        let tail_start = self.written;
        let prefix = prefix_of(&self.options);
        let properties = properties_block(&mut self.properties, &self.options, prefix);
        let mut sections = vec![records];
        for part in parts.into_iter().chain([properties]) {
            let section = self.write_section(&part)?;
            sections.push(section);
        }
        self.align()?;
        for (to, section) in self.footer.sections.iter_mut().zip(sections) {
            *to = section;
        }
        self.write(&self.footer.encode())?;
        let size = self.written;
        self.file.sync()?;
        self.file.close()?;
        Ok(FinishedTable {
            size,
            tail_size: size - tail_start,
            properties: self.properties,
        })
    }

    /// Hands the records that wait to the file.
    fn flush(&mut self) -> Result<()> {
        let records_at = match self.written {
            0 => SECTION_ALIGN, // The header comes first.
            _ => 0,
        };
        let records = self.buffer.get(records_at..);
        let records = records.expect("the header is in the buffer until the first flush");
        self.checksum.update(records);
        self.file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn write_section(&mut self, bytes: &[u8]) -> Result<Section> {
        self.align()?;
        let section = Section {
            offset: self.written,
            len: bytes.len() as u64,
            checksum: xxh3_64(bytes),
        };
        self.write(bytes)?;
        Ok(section)
    }

    /// Writes zeros up to where a section may begin.
    fn align(&mut self) -> Result<()> {
        let end = self.written.next_multiple_of(SECTION_ALIGN as u64);
        let zeros = vec![0; (end - self.written) as usize];
        self.write(&zeros)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

fn prefix_of(options: &TableWriterOptions) -> Option<&dyn PrefixExtractor> {
    options.filter.as_ref()?.prefix.as_deref()
}

impl std::fmt::Debug for PlainTableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlainTableWriter")
            .field("entries", &self.entries())
            .field("last_key", &user_key(&self.last_key))
            .finish_non_exhaustive()
    }
}
