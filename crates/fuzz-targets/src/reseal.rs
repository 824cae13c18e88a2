//! Checksums made to fit again after a mutation.
//!
//! Behind a checksum nearly every mutation looks the same. These walks follow a mutated file with
//! decoders of their own, as far as it can be followed, and rewrite each checksum on the way; so
//! the mutation reaches the decoder it was aimed at.

use drumlin::internals::record::{BLOCK_BYTES, HEADER_BYTES, RECYCLABLE_HEADER_BYTES};
use drumlin_base::checksum::{crc32c, mask, xxh3_64};
use drumlin_base::coding::{Reader, unzigzag};
use drumlin_table::blob::{BLOB_FOOTER_BYTES, BLOB_HEADER_BYTES, BLOB_RECORD_HEADER_BYTES};
use drumlin_table::compress::{Framing, decompress};
use drumlin_table::format::{
    BLOCK_TRAILER_BYTES, FOOTER_BYTES_MAX, FORMAT_VERSION_WRITTEN, context_modifier,
};
use drumlin_table::{BlockHandle, Footer};

/// The last bytes of a plain table.
const PLAIN_MAGIC: [u8; 8] = [0x4d, 0x0f, 0xb2, 0xe6, 0x51, 0x3c, 0x7a, 0x9d];

/// The last bytes of a searchable table.
const SEARCHABLE_MAGIC: [u8; 8] = [0x6f, 0xe2, 0xd4, 0x90, 0xb3, 0xa7, 0x1e, 0x5c];

/// Most blocks resealed in one file, and most bytes of one block.
const BLOCKS_MAX: usize = 512;
const BLOCK_LIMIT: usize = 1 << 20;

/// Rewrites the CRC of every fragment of a log, walking it by its lengths.
pub(crate) fn log(bytes: &mut [u8]) {
    let mut at = 0;
    while at + HEADER_BYTES <= bytes.len() {
        let left = BLOCK_BYTES - at % BLOCK_BYTES;
        if left < HEADER_BYTES {
            at += left;
            continue;
        }
        let length = usize::from(u16::from_le_bytes([bytes[at + 4], bytes[at + 5]]));
        let header = match bytes[at + 6] {
            0 => return, // zeros: space reserved and not written
            5..=8 | 11 | 131 => RECYCLABLE_HEADER_BYTES,
            _ => HEADER_BYTES,
        };
        let end = at + header + length;
        if header + length > left || end > bytes.len() {
            return;
        }
        let crc = mask(crc32c(&bytes[at + 6..end]));
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
        at = end;
    }
}

/// Rewrites both checksums of every record of a blob file, walking it by its lengths, and the
/// footer's.
pub(crate) fn blob_file(bytes: &mut [u8]) {
    let Some(end) = bytes.len().checked_sub(BLOB_FOOTER_BYTES) else {
        return;
    };
    let (front, footer) = bytes.split_at_mut(end);
    let (covered, checksum) = footer.split_at_mut(BLOB_FOOTER_BYTES - 4);
    checksum.copy_from_slice(&mask(crc32c(covered)).to_le_bytes());
    let mut at = BLOB_HEADER_BYTES;
    while at + BLOB_RECORD_HEADER_BYTES <= front.len() {
        let record = &mut front[at..];
        let crc = mask(crc32c(&record[..24]));
        record[24..28].copy_from_slice(&crc.to_le_bytes());
        let mut lengths = Reader::new(record);
        let both = lengths.fixed64().zip(lengths.fixed64());
        let body = both.and_then(|(key, value)| key.checked_add(value));
        let size = body.and_then(|body| usize::try_from(body).ok()?.checked_add(32));
        let Some(body) = size.and_then(|size| record.get(BLOB_RECORD_HEADER_BYTES..size)) else {
            return;
        };
        let (length, crc) = (body.len(), mask(crc32c(body)));
        record[28..32].copy_from_slice(&crc.to_le_bytes());
        at += BLOB_RECORD_HEADER_BYTES + length;
    }
}

/// Rewrites header and footer checksum of a plain table, and that of each section whose place and
/// length in the footer are inside the file.
fn plain_table(bytes: &mut [u8]) {
    const FOOTER: usize = 256;
    let Some(footer_at) = bytes.len().checked_sub(FOOTER) else {
        return;
    };
    if footer_at >= 64 {
        let checksum = xxh3_64(&bytes[..56]);
        bytes[56..64].copy_from_slice(&checksum.to_le_bytes());
    }
    for section in 0..6 {
        let at = footer_at + section * 24;
        let mut fields = Reader::new(&bytes[at..]);
        let both = fields.fixed64().zip(fields.fixed64());
        let range = both.and_then(|(offset, len)| {
            let start = usize::try_from(offset).ok()?;
            Some(start..start.checked_add(usize::try_from(len).ok()?)?)
        });
        if let Some(covered) = range.and_then(|range| bytes.get(range)) {
            let checksum = xxh3_64(covered);
            bytes[at + 16..at + 24].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    let checksum = xxh3_64(&bytes[footer_at..footer_at + 232]);
    bytes[footer_at + 232..footer_at + 240].copy_from_slice(&checksum.to_le_bytes());
}

/// Rewrites the checksums of a model file: the model's own and the trailer's.
pub(crate) fn model_file(bytes: &mut [u8]) {
    const TRAILER: usize = 56;
    let Some(model_end) = bytes.len().checked_sub(TRAILER) else {
        return;
    };
    if let Some(at) = model_end.checked_sub(8) {
        let checksum = xxh3_64(&bytes[..at]);
        bytes[at..model_end].copy_from_slice(&checksum.to_le_bytes());
    }
    let at = bytes.len() - 16;
    let checksum = xxh3_64(&bytes[..at]);
    bytes[at..at + 8].copy_from_slice(&checksum.to_le_bytes());
}

/// Rewrites the checksums of a searchable table: of the pages that end at a multiple of a page's size,
/// the extents, the model, the sections and the footer.
fn searchable_table(bytes: &mut [u8]) {
    const FOOTER: usize = 256;
    const PAGE: usize = 4096;
    let Some(footer_at) = bytes.len().checked_sub(FOOTER) else {
        return;
    };
    let section = |bytes: &[u8], at: usize| {
        let mut fields = Reader::new(bytes.get(at..)?);
        let start = usize::try_from(fields.fixed64()?).ok()?;
        let end = start.checked_add(usize::try_from(fields.fixed64()?).ok()?)?;
        bytes.get(start..end).map(|_| start..end)
    };
    let tail = section(bytes, footer_at).map_or(0, |extents| extents.start);
    let pages = bytes.get_mut(..tail).unwrap_or_default();
    for page in pages.chunks_exact_mut(PAGE) {
        let crc = mask(crc32c(&page[..PAGE - 4]));
        page[PAGE - 4..].copy_from_slice(&crc.to_le_bytes());
    }
    let extents = section(bytes, footer_at).unwrap_or(0..0);
    for at in extents.step_by(24) {
        let Some(range) = section(bytes, at) else {
            continue;
        };
        let end = range.end.next_multiple_of(PAGE);
        if let Some(covered) = bytes.get(range.start..end) {
            let checksum = xxh3_64(covered);
            if let Some(stored) = bytes.get_mut(at + 16..at + 24) {
                stored.copy_from_slice(&checksum.to_le_bytes());
            }
        }
    }
    for number in 0..8 {
        let at = footer_at + number * 24;
        let Some(range) = section(bytes, at) else {
            continue;
        };
        // A model in the table ends in its own checksum; a reference to a model has 16 bytes.
        if number == 5 && range.len() > 16 {
            let checksum = xxh3_64(&bytes[range.start..range.end - 8]);
            bytes[range.end - 8..range.end].copy_from_slice(&checksum.to_le_bytes());
        }
        let checksum = xxh3_64(&bytes[range]);
        bytes[at + 16..at + 24].copy_from_slice(&checksum.to_le_bytes());
    }
    let checksum = xxh3_64(&bytes[footer_at..footer_at + 240]);
    bytes[footer_at + 240..footer_at + 248].copy_from_slice(&checksum.to_le_bytes());
}

/// Rewrites the checksum of every block that a table's footer leads to, or of every section.
pub(crate) fn table(bytes: &mut [u8]) {
    if bytes.ends_with(&PLAIN_MAGIC) {
        return plain_table(bytes);
    }
    if bytes.ends_with(&SEARCHABLE_MAGIC) {
        return searchable_table(bytes);
    }
    let tail = &bytes[bytes.len().saturating_sub(FOOTER_BYTES_MAX)..];
    let Ok(footer) = Footer::decode(tail, bytes.len() as u64) else {
        return;
    };
    let mut walk = Walk {
        bytes,
        footer,
        blocks: 0,
    };
    let metaindex = walk.reseal(footer.metaindex).unwrap_or_default();
    let mut indexes = Vec::from_iter(footer.index);
    for (name, value) in entries(&metaindex) {
        let Ok((handle, _)) = BlockHandle::decode(&value) else {
            continue;
        };
        match name.as_slice() {
            b"rocksdb.index" => indexes.push(handle),
            _ => drop(walk.reseal(handle)),
        }
    }
    for index in indexes {
        walk.index(index, 2);
    }
}

struct Walk<'a> {
    bytes: &'a mut [u8],
    footer: Footer,
    blocks: usize,
}

impl Walk<'_> {
    /// Writes the checksum of the block at `handle`; its contents.
    fn reseal(&mut self, handle: BlockHandle) -> Option<Vec<u8>> {
        self.blocks += 1;
        let start = usize::try_from(handle.offset).ok()?;
        let size = usize::try_from(handle.size).ok()?;
        let typed = start.checked_add(size)?.checked_add(1)?;
        let end = typed.checked_add(BLOCK_TRAILER_BYTES - 1)?;
        if self.blocks > BLOCKS_MAX || size > BLOCK_LIMIT || end > self.bytes.len() {
            return None;
        }
        let covered = &self.bytes[start..typed];
        let checksum = self.footer.checksum.compute(covered);
        let checksum = checksum.wrapping_add(context_modifier(self.footer.context, handle.offset));
        self.bytes[typed..end].copy_from_slice(&checksum.to_le_bytes());
        let framing = Framing::of(self.footer.style, self.footer.format_version);
        let (&kind, body) = self.bytes[start..typed].split_last()?;
        decompress(kind, body, None, framing, BLOCK_LIMIT).ok()
    }

    /// Reseals an index block and everything it points at, `depth` levels of it.
    fn index(&mut self, handle: BlockHandle, depth: u32) {
        let Some(contents) = self.reseal(handle) else {
            return;
        };
        for child in self.children(&contents) {
            if depth > 1 {
                self.index(child, depth - 1);
            } else {
                self.reseal(child);
            }
        }
    }

    /// The handles in an index block: with lengths as any block's values, and as deltas.
    fn children(&self, contents: &[u8]) -> Vec<BlockHandle> {
        let mut handles = Vec::new();
        if self.footer.format_version + 1 < FORMAT_VERSION_WRITTEN {
            let values = entries(contents).into_iter().map(|(_, value)| value);
            handles.extend(values.filter_map(|value| Some(BlockHandle::decode(&value).ok()?.0)));
            return handles;
        }
        let mut input = Reader::new(contents);
        let mut last = BlockHandle::default();
        while let Some(handle) = next_delta(&mut input, last) {
            handles.push(handle);
            last = handle;
        }
        handles
    }
}

/// The next handle of an index block whose values are size deltas.
fn next_delta(input: &mut Reader<'_>, last: BlockHandle) -> Option<BlockHandle> {
    let shared = input.varint32()?;
    let unshared = input.varint32()? as usize;
    input.bytes(unshared)?;
    if shared == 0 {
        return BlockHandle::read(input);
    }
    let delta = unzigzag(input.varint64()?);
    Some(BlockHandle {
        offset: last.end_with_trailer()?,
        size: last.size.checked_add_signed(delta)?,
    })
}

/// The entries of a block, as far as they decode. The restart points behind them decode to nothing
/// that matters.
pub(crate) fn entries(contents: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut input = Reader::new(contents);
    let mut key = Vec::new();
    let mut found = Vec::new();
    while let Some(value) = next_entry(&mut input, &mut key) {
        found.push((key.clone(), value));
    }
    found
}

fn next_entry(input: &mut Reader<'_>, key: &mut Vec<u8>) -> Option<Vec<u8>> {
    let (shared, unshared) = (input.varint32()?, input.varint32()?);
    let value_len = input.varint32()? as usize;
    if shared as usize > key.len() {
        return None;
    }
    key.truncate(shared as usize);
    key.extend_from_slice(input.bytes(unshared as usize)?);
    Some(input.bytes(value_len)?.to_vec())
}
