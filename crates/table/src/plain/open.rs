//! Opening a plain table: the whole file into memory, every section checked, anchors decoded.

use std::sync::Arc;

use drumlin_base::bytes::ResidentBytes;
use drumlin_base::key::{ParsedKey, ValueKind};
use drumlin_base::{Error, KeyOrder, MemoryBudget, MemoryUse, RangeTombstone, Result, SeqNo};
use drumlin_fs::RandomAccessFile;

use super::anchors::Anchors;
use super::format::{HEADER_BYTES, Part, PlainFooter};
use super::hash_index::HashIndex;
use super::record::Record;
use super::table::PlainTable;
use crate::block::MetaBlock;
use crate::cache::BlockCache;
use crate::format::TableProperties;
use crate::options::TableReaderOptions;

impl PlainTable {
    /// Takes `file` into memory and checks all of it. Charges the memory it allocates to the budget; records on
    /// a file system in memory are mapped and cost none.
    ///
    /// # Errors
    /// `Corruption` for damage, `NotSupported` for another version, `InvalidArgument` when the table
    /// is sorted by another order, `TooLarge` without memory for it, `Io`. Cost: a scan of the file.
    pub fn open(file: Arc<dyn RandomAccessFile>, options: TableReaderOptions) -> Result<Arc<Self>> {
        let path = options.path.clone();
        let resident = file.resident().map_err(|error| error.with_file(&path))?;
        let table = open_parts(file, resident, options).map_err(|error| error.with_file(&path))?;
        table
            .budget
            .charge(MemoryUse::TableMeta, table.resident_bytes);
        Ok(Arc::new(table))
    }

    /// The same file taken into memory and checked again.
    pub(crate) fn reopen(&self) -> Result<Arc<Self>> {
        let budget = MemoryBudget::new(usize::MAX / 2);
        let cache = BlockCache::new(Arc::clone(&budget));
        let mut options = TableReaderOptions::new(self.path.clone(), 0, cache, budget);
        options.order = self.order.clone();
        options.prefix = self.prefix.clone();
        options.largest_seqno = self.global_seqno;
        Self::open(Arc::clone(&self.file), options)
    }
}

fn open_parts(
    file: Arc<dyn RandomAccessFile>,
    resident: ResidentBytes,
    options: TableReaderOptions,
) -> Result<PlainTable> {
    let bytes = resident.bytes();
    let footer = PlainFooter::check(bytes)?;
    let part = |part| {
        let section = bytes.get(footer.section(part).range());
        section.expect("the footer was checked: its sections are inside the file")
    };
    let properties = MetaBlock::parse(part(Part::Properties))?;
    let properties = TableProperties::decode(properties.iter().map(Ok))?;
    check_order(&properties, &options.order)?;
    let records_end = footer.section(Part::Records).range().end;
    let records = bytes.get(..records_end);
    let records = records.expect("the footer was checked: its sections are inside the file");
    let count = footer.keys as usize;
    let anchors = part(Part::Anchors);
    let anchors = Anchors::read(&options.order, anchors, records, HEADER_BYTES, count)?;
    let global_seqno = properties.seqno_of_all(options.largest_seqno)?;
    let range_tombstones = read_tombstones(part(Part::Tombstones), global_seqno)?;
    let same_prefix = options
        .prefix
        .as_ref()
        .is_some_and(|prefix| prefix.name() == properties.prefix_extractor_name);
    let prefix = options
        .prefix
        .filter(|_| same_prefix && footer.prefixes > 0);
    let keys = match options.order.equality_is_bytewise() {
        true => HashIndex::new(bytes, footer.section(Part::Keys).range()),
        false => None, // Keys that count as equal may hash differently.
    };
    let prefixes = HashIndex::new(bytes, footer.section(Part::Prefixes).range());
    let tombstone_bytes: usize = range_tombstones
        .iter()
        .map(|t| t.begin.len() + t.end.len() + size_of::<RangeTombstone>())
        .sum();
    Ok(PlainTable {
        resident_bytes: resident.own_bytes()
            + anchors.resident_bytes()
            + properties.resident_bytes()
            + tombstone_bytes
            + size_of::<PlainTable>(),
        size: bytes.len() as u64,
        records_end,
        counts: (footer.records, footer.keys),
        keys,
        prefixes: prefix.as_ref().and(prefixes),
        prefix,
        prefixes_contiguous: footer.prefixes_contiguous,
        anchors,
        order: options.order,
        budget: options.budget,
        path: options.path,
        file,
        resident,
        properties,
        range_tombstones,
        global_seqno,
    })
}

fn check_order(properties: &TableProperties, order: &KeyOrder) -> Result<()> {
    let stored = &properties.comparator_name;
    if stored == order.name() {
        Ok(())
    } else {
        Err(Error::invalid_argument(format!(
            "the table is sorted by {stored}, not by {}",
            order.name()
        )))
    }
}

fn read_tombstones(bytes: &[u8], global_seqno: Option<SeqNo>) -> Result<Vec<RangeTombstone>> {
    let damaged = || Error::corruption("damaged range tombstones of a plain table");
    let mut tombstones = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let record = Record::at(bytes, at).ok_or_else(damaged)?;
        let key = ParsedKey::parse(record.key(bytes))?;
        if key.kind != ValueKind::RangeDeletion {
            return Err(damaged());
        }
        tombstones.push(RangeTombstone {
            begin: key.user_key.to_vec(),
            end: record.value(bytes).to_vec(),
            seqno: global_seqno.unwrap_or(key.seqno),
        });
        at = record.next_at();
    }
    Ok(tombstones)
}
