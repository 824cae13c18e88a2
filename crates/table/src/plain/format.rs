//! Header and footer of a plain table: its version, and the places of its sections.
//!
//! The sections follow each other in a fixed order, each on a cache line of its own; the bytes
//! between them are zero. So every byte of a file is either checked or known.

use std::ops::Range;

use drumlin_base::checksum::xxh3_64;
use drumlin_base::coding::{fixed32_at, fixed64_at, put_fixed32, put_fixed64};
use drumlin_base::{Error, Result};

/// On disk: the first and the last eight bytes of a plain table.
pub(crate) const PLAIN_MAGIC: u64 = 0x9d7a_3c51_e6b2_0f4d;
/// On disk: the version that is written, and the only one there is.
const VERSION: u32 = 1;
/// On disk: the header's bytes.
pub(crate) const HEADER_BYTES: usize = 64;
/// On disk: the footer's bytes.
pub(crate) const FOOTER_BYTES: usize = 256;
/// On disk: the alignment of sections, a cache line.
pub(crate) const SECTION_ALIGN: usize = 64;
/// On disk: the number of sections.
pub(crate) const SECTIONS: usize = 6;

const HEADER_CHECKSUM_AT: usize = HEADER_BYTES - 8;
const SECTION_BYTES: usize = 24;
const COUNTS_AT: usize = SECTIONS * SECTION_BYTES;
const FLAGS_AT: usize = COUNTS_AT + 24;
const CHECKSUM_AT: usize = FOOTER_BYTES - 24;
/// The offset of the version in RocksDB's footers too, so that RocksDB gets as far as the magic
/// number and names it.
const VERSION_AT: usize = FOOTER_BYTES - 12;

/// On disk: every prefix's keys follow each other, so a prefix's first record begins them all.
const FLAG_PREFIXES_CONTIGUOUS: u32 = 1;

/// The sections, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Entries in order.
    Records,
    /// Buckets over user keys.
    Keys,
    /// Buckets over prefixes.
    Prefixes,
    /// Every so many bytes, where a record begins.
    Anchors,
    /// Range tombstones.
    Tombstones,
    /// Table properties.
    Properties,
}

/// The place of a section, and the XXH3 of its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) checksum: u64,
}

impl Section {
    /// Its range in a file that is in memory.
    pub(crate) fn range(&self) -> Range<usize> {
        // Checked against the file's length when the footer was decoded.
        self.offset as usize..(self.offset + self.len) as usize
    }
}

/// The end of a plain table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlainFooter {
    pub(crate) sections: [Section; SECTIONS],
    /// Point entries.
    pub(crate) records: u64,
    /// Different user keys, all of which are in the key index (if that is there).
    pub(crate) keys: u64,
    /// Different prefixes.
    pub(crate) prefixes: u64,
    /// See [`FLAG_PREFIXES_CONTIGUOUS`].
    pub(crate) prefixes_contiguous: bool,
}

/// The first bytes of a plain table.
pub(crate) fn header() -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    put_fixed64(&mut out, PLAIN_MAGIC);
    put_fixed32(&mut out, VERSION);
    out.resize(HEADER_CHECKSUM_AT, 0);
    let checksum = xxh3_64(&out);
    put_fixed64(&mut out, checksum);
    out
}

impl PlainFooter {
    /// The section `part`.
    pub(crate) fn section(&self, part: Part) -> Section {
        let section = self.sections.get(part as usize);
        *section.expect("each part has a section")
    }

    /// The footer's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        for section in &self.sections {
            put_fixed64(&mut out, section.offset);
            put_fixed64(&mut out, section.len);
            put_fixed64(&mut out, section.checksum);
        }
        for count in [self.records, self.keys, self.prefixes] {
            put_fixed64(&mut out, count);
        }
        let contiguous = u32::from(self.prefixes_contiguous) * FLAG_PREFIXES_CONTIGUOUS;
        put_fixed32(&mut out, contiguous);
        out.resize(CHECKSUM_AT, 0);
        let checksum = xxh3_64(&out);
        put_fixed64(&mut out, checksum);
        put_fixed32(&mut out, 0);
        put_fixed32(&mut out, VERSION);
        put_fixed64(&mut out, PLAIN_MAGIC);
        out
    }

    /// Checks header, footer and every section of a whole `file`.
    ///
    /// # Errors
    /// `Corruption` naming the damaged part, with its offset; `NotSupported` for other versions.
    pub(crate) fn check(file: &[u8]) -> Result<Self> {
        let footer_at = file.len().checked_sub(FOOTER_BYTES);
        let footer_at = footer_at
            .filter(|at| *at >= HEADER_BYTES)
            .ok_or_else(|| Error::corruption("the file is too short to be a plain table"))?;
        let (_, footer) = file.split_at(footer_at);
        let footer = Self::decode(footer).map_err(|error| error.with_offset(footer_at as u64))?;
        check_header(file)?;
        let mut end = HEADER_BYTES as u64;
        for section in &footer.sections {
            let start = end.next_multiple_of(SECTION_ALIGN as u64);
            let fits = section.offset == start
                && section
                    .offset
                    .checked_add(section.len)
                    .is_some_and(|end| end <= footer_at as u64);
            if !fits {
                return Err(Error::corruption("a section does not lie where it must"));
            }
            check_zeros(file, end, start)?;
            let bytes = file.get(section.range());
            let bytes = bytes.expect("a section that ends before the footer is in the file");
            if xxh3_64(bytes) != section.checksum {
                return Err(Error::corruption("a section's checksum does not match")
                    .with_offset(section.offset));
            }
            end = section.offset + section.len;
        }
        if end.next_multiple_of(SECTION_ALIGN as u64) != footer_at as u64 {
            return Err(Error::corruption("bytes that belong to no section"));
        }
        check_zeros(file, end, footer_at as u64)?;
        Ok(footer)
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let number = |at| fixed64_at(bytes, at).expect("the footer is long enough");
        if bytes.len() != FOOTER_BYTES || number(FOOTER_BYTES - 8) != PLAIN_MAGIC {
            return Err(Error::corruption("not the footer of a plain table"));
        }
        let version = fixed32_at(bytes, VERSION_AT).expect("the footer is long enough");
        if version != VERSION {
            return Err(Error::not_supported(format!(
                "plain tables of version {version} ({VERSION} is read)"
            )));
        }
        let covered = bytes.get(..CHECKSUM_AT).expect("its length was checked");
        let sound = xxh3_64(covered) == number(CHECKSUM_AT);
        if !sound || fixed32_at(bytes, CHECKSUM_AT + 8) != Some(0) {
            return Err(Error::corruption("the footer's checksum does not match"));
        }
        let section = |at: usize| Section {
            offset: number(at * SECTION_BYTES),
            len: number(at * SECTION_BYTES + 8),
            checksum: number(at * SECTION_BYTES + 16),
        };
        let flags = fixed32_at(bytes, FLAGS_AT).expect("the footer is long enough");
        Ok(Self {
            sections: std::array::from_fn(section),
            records: number(COUNTS_AT),
            keys: number(COUNTS_AT + 8),
            prefixes: number(COUNTS_AT + 16),
            prefixes_contiguous: flags & FLAG_PREFIXES_CONTIGUOUS != 0,
        })
    }
}

fn check_header(file: &[u8]) -> Result<()> {
    // All of it is known: no other version has a footer of this one.
    if file.starts_with(&header()) {
        Ok(())
    } else {
        Err(Error::corruption("the header is damaged").with_offset(0))
    }
}

fn check_zeros(file: &[u8], from: u64, to: u64) -> Result<()> {
    let gap = file.get(from as usize..to as usize).unwrap_or(&[1]);
    if gap.iter().all(|byte| *byte == 0) {
        Ok(())
    } else {
        Err(Error::corruption("bytes between sections are not zero").with_offset(from))
    }
}
