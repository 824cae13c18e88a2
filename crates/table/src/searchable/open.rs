//! Opening a searchable table: everything behind the pages, and the keys.

use std::sync::Arc;

use drumlin_base::checksum::xxh3_64;
use drumlin_base::coding::Reader;
use drumlin_base::{Error, KeyOrder, MemoryUse, RangeTombstone, Result, SEQNO_MAX, SeqNo};
use drumlin_fs::RandomAccessFile;
use drumlin_succinct::{HeldBytes, KeyIndex, Model};

use super::coded::value_bytes_max;
use super::format::{FOOTER_BYTES, PAGE_BYTES, SearchableFooter, Section, SectionKind};
use super::locator::Locator;
use super::model_file::{StoredModel, missing, reference, shared_id};
use super::table::SearchableTable;
use crate::block::MetaBlock;
use crate::cache::SlotArray;
use crate::compress::zeros;
use crate::format::TableProperties;
use crate::options::TableReaderOptions;

impl SearchableTable {
    /// Opens `file`: reads keys, locator, model and range tombstones, and charges them to the budget.
    ///
    /// # Errors
    /// `Corruption` for damage, `NotSupported` for a later version, `InvalidArgument` when the table
    /// is sorted by another order, `Io`.
    pub fn open(file: Arc<dyn RandomAccessFile>, options: TableReaderOptions) -> Result<Arc<Self>> {
        let path = options.path.clone();
        let table = open_parts(file, options).map_err(|error| error.with_file(&path))?;
        table
            .budget
            .charge(MemoryUse::TableMeta, table.resident_bytes);
        Ok(Arc::new(table))
    }
}

/// The footer and the sections behind the pages, as they are in the file.
struct Tail {
    footer: SearchableFooter,
    /// The bytes from the first section to the footer.
    bytes: Vec<u8>,
}

impl Tail {
    /// Reads the end of `file`, and checks all of it.
    fn read(file: &dyn RandomAccessFile) -> Result<Self> {
        let (footer, footer_at) = read_footer(file)?;
        let start = footer.tail_start();
        let bytes = read_exactly(file, start, footer_at - start)?;
        let tail = Self { footer, bytes };
        for section in &tail.footer.sections {
            if xxh3_64(tail.bytes_of(*section)) != section.checksum {
                return Err(Error::corruption("a section's checksum does not match")
                    .with_offset(section.offset));
            }
        }
        Ok(tail)
    }

    fn bytes_of(&self, section: Section) -> &[u8] {
        let from = (section.offset - self.footer.tail_start()) as usize;
        let bytes = self.bytes.get(from..from + section.len as usize);
        bytes.expect("the footer was checked: its sections are in the tail")
    }

    fn section(&self, kind: SectionKind) -> &[u8] {
        self.bytes_of(self.footer.section(kind))
    }

    fn properties(&self) -> Result<TableProperties> {
        let block = MetaBlock::parse(self.section(SectionKind::Properties))?;
        TableProperties::decode(block.iter().map(Ok))
    }

    fn locator(&self) -> Result<Locator> {
        let kinds = [
            SectionKind::Jumps,
            SectionKind::Places,
            SectionKind::Versioned,
        ];
        let sections = kinds.map(|kind| self.section(kind));
        Locator::decode(sections, self.footer.keys, self.footer.pages)
    }

    /// The keys, whose blocks are in `extents` of `file`. They must be as many as the footer says, and enough for
    /// its pages.
    fn keys(&self, file: &dyn RandomAccessFile, extents: &[Section]) -> Result<KeyIndex> {
        let key_tail = self.section(SectionKind::KeyTail);
        let keys = KeyIndex::open(read_keys(file, extents)?, key_tail)?;
        // A page has a row at least. A file with a hole can have far more pages than bytes that were written.
        let pages_max = self
            .footer
            .keys
            .min(self.footer.tail_start() / PAGE_BYTES as u64);
        if keys.len() != self.footer.keys || self.footer.pages > pages_max {
            return Err(Error::corruption(
                "a searchable table's footer counts other keys or pages than there are",
            ));
        }
        Ok(keys)
    }
}

/// The footer of the searchable table `file`, and where it begins.
fn read_footer(file: &dyn RandomAccessFile) -> Result<(SearchableFooter, u64)> {
    let size = file.size();
    let at = size
        .checked_sub(FOOTER_BYTES as u64)
        .ok_or_else(|| Error::corruption("the file is too short to be a searchable table"))?;
    let bytes = read_exactly(file, at, FOOTER_BYTES as u64)?;
    let footer = SearchableFooter::decode(&bytes, size).map_err(|error| error.with_offset(at))?;
    Ok((footer, at))
}

fn open_parts(
    file: Arc<dyn RandomAccessFile>,
    options: TableReaderOptions,
) -> Result<SearchableTable> {
    let tail = Tail::read(&*file)?;
    let properties = tail.properties()?;
    check_readable(&properties, &options.order)?;
    let (footer, tail_start) = (tail.footer, tail.footer.tail_start());
    let extents = extents(tail.section(SectionKind::Extents), tail_start)?;
    let keys = tail.keys(&*file, &extents)?;
    let locator = tail.locator()?;
    let (model, shared_model) = find_model(tail.section(SectionKind::Model), &options)?;
    let global_seqno = properties.seqno_of_all(options.largest_seqno)?;
    let range_tombstones = read_tombstones(tail.section(SectionKind::Tombstones), global_seqno)?;
    let tombstone_bytes: usize = range_tombstones
        .iter()
        .map(|t| t.begin.len() + t.end.len() + size_of::<RangeTombstone>())
        .sum();
    let slots = SlotArray::new(footer.pages as usize, &options.cache);
    Ok(SearchableTable {
        resident_bytes: keys.memory()
            + locator.resident_bytes()
            + shared_model.map_or_else(|| model.memory(), |_| 0)
            + slots.resident_bytes()
            + properties.resident_bytes()
            + tombstone_bytes
            + size_of::<SearchableTable>(),
        rows_of_a_page: (footer.keys / footer.pages.max(1)).max(1) as usize,
        values_are_raw: model.id() == Model::raw().id(),
        value_bytes_max: value_bytes_max(&properties),
        tail_start,
        size: file.size(),
        extents,
        keys,
        locator,
        model,
        shared_model,
        slots,
        order: options.order,
        prefix: options.prefix,
        cache: options.cache,
        budget: options.budget,
        path: options.path,
        file,
        properties,
        range_tombstones,
        global_seqno,
    })
}

/// The model that a table's section holds, or names; then its id too.
fn find_model(section: &[u8], options: &TableReaderOptions) -> Result<(Arc<Model>, Option<u64>)> {
    match StoredModel::decode(section)? {
        StoredModel::Own(model) => Ok((model, None)),
        StoredModel::Shared(id) => {
            let models = options.models.as_ref().ok_or_else(|| missing(id))?;
            let model = models.model(id)?;
            if model.id() == id {
                Ok((model, Some(id)))
            } else {
                Err(missing(id))
            }
        }
    }
}

/// The id of the model in a file of its own that the searchable table `file` names; `None` when it
/// holds its own. Reads the footer and that section alone.
///
/// # Errors
/// `Corruption`, `NotSupported`, `Io`.
pub(crate) fn shared_model_of(file: &dyn RandomAccessFile) -> Result<Option<u64>> {
    let section = read_footer(file)?.0.section(SectionKind::Model);
    let named = reference(0).len() as u64;
    if section.len != named {
        return Ok(None);
    }
    shared_id(&read_section(file, section)?).transpose()
}

/// The properties of the searchable table `file`, of which nothing else is read.
pub(crate) fn properties_of(file: &dyn RandomAccessFile) -> Result<TableProperties> {
    let section = read_footer(file)?.0.section(SectionKind::Properties);
    let block = MetaBlock::parse(&read_section(file, section)?)?;
    TableProperties::decode(block.iter().map(Ok))
}

fn read_section(file: &dyn RandomAccessFile, section: Section) -> Result<Vec<u8>> {
    let bytes = read_exactly(file, section.offset, section.len)?;
    if xxh3_64(&bytes) != section.checksum {
        let damaged = Error::corruption("a section's checksum does not match");
        return Err(damaged.with_offset(section.offset));
    }
    Ok(bytes)
}

/// The `len` bytes at `offset`, which are in the file.
pub(super) fn read_exactly(file: &dyn RandomAccessFile, offset: u64, len: u64) -> Result<Vec<u8>> {
    let len = usize::try_from(len).map_err(|_| Error::corruption("a section is too large"))?;
    let mut bytes = zeros(len)?;
    if file.read_at(offset, &mut bytes)? != len {
        return Err(Error::corruption("the file ends before its size").with_offset(offset));
    }
    Ok(bytes)
}

fn check_readable(properties: &TableProperties, order: &KeyOrder) -> Result<()> {
    let stored = &properties.comparator_name;
    if stored != order.name() || !matches!(order, KeyOrder::Bytewise) {
        return Err(Error::invalid_argument(format!(
            "the table is sorted by {stored}, not by {}",
            order.name()
        )));
    }
    Ok(())
}

/// The extents, which ascend, are before `limit` and are of whole pages.
fn extents(stored: &[u8], limit: u64) -> Result<Vec<Section>> {
    let damaged = || Error::corruption("the list of key extents is damaged");
    let mut from = Reader::new(stored);
    let mut extents = Vec::new();
    let mut end = 0;
    while !from.is_empty() {
        let extent = Section::load(&mut from).ok_or_else(damaged)?;
        let fits = extent.offset >= end && extent.offset.is_multiple_of(PAGE_BYTES as u64);
        end = stored_end(&extent)
            .filter(|&end| fits && end <= limit)
            .ok_or_else(damaged)?;
        extents.push(extent);
    }
    Ok(extents)
}

/// Where an extent's last page ends.
pub(super) fn stored_end(extent: &Section) -> Option<u64> {
    extent.end()?.checked_next_multiple_of(PAGE_BYTES as u64)
}

/// The key blocks of all extents, which are in the file.
fn read_keys(file: &dyn RandomAccessFile, extents: &[Section]) -> Result<HeldBytes> {
    let total: u64 = extents.iter().map(|extent| extent.len).sum();
    let total = usize::try_from(total).map_err(|_| Error::corruption("too many key blocks"))?;
    HeldBytes::filled(total, |mut room| {
        for extent in extents {
            let end = stored_end(extent).unwrap_or(extent.offset);
            let bytes = read_exactly(file, extent.offset, end - extent.offset)?;
            if xxh3_64(&bytes) != extent.checksum {
                return Err(
                    Error::corruption("the checksum of key blocks does not match")
                        .with_offset(extent.offset),
                );
            }
            let blocks = bytes.get(..extent.len as usize);
            let blocks = blocks.expect("an extent is stored with what fills its last page");
            let Some((into, rest)) = room.split_at_mut_checked(blocks.len()) else {
                return Err(Error::corruption(
                    "extents of keys are longer than all of them",
                ));
            };
            into.copy_from_slice(blocks);
            room = rest;
        }
        Ok(())
    })
}

fn read_tombstones(stored: &[u8], global: Option<SeqNo>) -> Result<Vec<RangeTombstone>> {
    let mut from = Reader::new(stored);
    let mut tombstones = Vec::new();
    while !from.is_empty() {
        let read = (from.slice(), from.slice(), from.varint64());
        let (Some(begin), Some(end), Some(seqno)) = read else {
            return Err(Error::corruption(
                "damaged range tombstones of a searchable table",
            ));
        };
        tombstones.push(RangeTombstone {
            begin: begin.to_vec(),
            end: end.to_vec(),
            seqno: global.unwrap_or(seqno).min(SEQNO_MAX),
        });
    }
    Ok(tombstones)
}

#[cfg(test)]
mod tests {
    use drumlin_base::{ErrorKind, MemoryBudget};

    use super::*;
    use crate::cache::BlockCache;

    /// A file of `size` bytes that are zeros, but for its end.
    #[derive(Debug)]
    struct Hollow {
        size: u64,
        end: Vec<u8>,
    }

    impl RandomAccessFile for Hollow {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
            let end_at = self.size - self.end.len() as u64;
            for (at, byte) in (offset..self.size).zip(&mut *buffer) {
                let from = at.checked_sub(end_at).map(|from| from as usize);
                *byte = from.and_then(|from| self.end.get(from)).map_or(0, |it| *it);
            }
            let left = self.size.saturating_sub(offset);
            Ok(usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(buffer.len()))
        }

        fn size(&self) -> u64 {
            self.size
        }
    }

    /// Most of such a file was never written: its claims are an error, and no abort.
    #[test]
    fn a_hole_in_a_file_is_not_taken_for_memory() {
        const HOLE_BYTES: u64 = 1 << 60;
        let mut footer = SearchableFooter::default();
        let (first, rest) = footer.sections.split_first_mut().expect("sections");
        first.len = HOLE_BYTES;
        rest.iter_mut().for_each(|it| it.offset = HOLE_BYTES);
        let end = footer.encode();
        let size = HOLE_BYTES + end.len() as u64;
        let file = Arc::new(Hollow { size, end });
        let budget = MemoryBudget::new(1 << 20);
        let cache = BlockCache::new(Arc::clone(&budget));
        let options = TableReaderOptions::new("hollow.sst".into(), 1, cache, budget);
        let error = SearchableTable::open(file, options).expect_err("no such memory");
        assert_eq!(error.kind(), ErrorKind::Io);
        let extent = Section {
            len: HOLE_BYTES,
            ..Section::default()
        };
        let file = Hollow {
            size,
            end: Vec::new(),
        };
        let error = read_keys(&file, &[extent]).expect_err("no such memory");
        assert_eq!(error.kind(), ErrorKind::Io);
    }
}
