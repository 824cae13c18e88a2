//! The footer of a searchable table, and the list of its sections.
//!
//! The sections it names are before the footer, one directly after the other. Pages and extents, which the
//! sections describe, are before these. So every byte of a file is covered by one checksum.
//!
//! ```text
//!   at  bytes  the footer; numbers are little-endian
//!    0    192  eight sections: offset u64 · bytes u64 · XXH3-64 u64
//!  192      8  pages
//!  200      8  keys
//!  208     24  0
//!  232      4  version
//!  236      4  0
//!  240      8  XXH3-64 of all before it
//!  248      8  the magic number
//! ```

use drumlin_base::checksum::xxh3_64;
use drumlin_base::coding::{Reader, fixed32_at, fixed64_at, put_fixed32, put_fixed64};
use drumlin_base::{Error, Result};

/// On disk: the last eight bytes of a searchable table.
pub(crate) const SEARCHABLE_MAGIC: u64 = 0x5c1e_a7b3_90d4_e26f;
/// On disk: the version that is written, and the only one there is.
const VERSION: u32 = 1;
/// On disk: the alignment of pages and extents.
pub(super) const PAGE_BYTES: usize = 4096;
/// On disk: the number of sections.
pub(super) const SECTIONS: usize = 8;

// On disk: the offsets of the footer's fields, each behind the one before.
const SECTION_BYTES: usize = 3 * size_of::<u64>();
const PAGES_AT: usize = SECTIONS * SECTION_BYTES;
const KEYS_AT: usize = PAGES_AT + size_of::<u64>();
const UNUSED_AT: usize = KEYS_AT + size_of::<u64>();
const UNUSED_BYTES: usize = 24;
const VERSION_AT: usize = UNUSED_AT + UNUSED_BYTES;
const PADDING_AT: usize = VERSION_AT + size_of::<u32>();
const CHECKSUM_AT: usize = PADDING_AT + size_of::<u32>();
const MAGIC_AT: usize = CHECKSUM_AT + size_of::<u64>();
/// On disk: the footer's bytes.
pub(super) const FOOTER_BYTES: usize = MAGIC_AT + size_of::<u64>();
const _: () = assert!(
    FOOTER_BYTES == 256,
    "files on disk have footers of 256 bytes"
);

/// The sections, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionKind {
    /// Where the extents with key blocks are.
    Extents,
    /// The tail of the key index.
    KeyTail,
    /// Where the pages are: the jumps of [`super::locator`].
    Jumps,
    /// For each key block where its rows begin.
    Places,
    /// For each key block the rows that are lists of versions; empty if none is.
    Versioned,
    /// The model of the values.
    Model,
    /// Range tombstones.
    Tombstones,
    /// Table properties.
    Properties,
}

/// Where bytes are and their XXH3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) checksum: u64,
}

impl Section {
    /// Appends the section as it is stored.
    pub(super) fn store(&self, out: &mut Vec<u8>) {
        put_fixed64(out, self.offset);
        put_fixed64(out, self.len);
        put_fixed64(out, self.checksum);
    }

    /// Decodes the bytes that [`Section::store`] wrote.
    pub(super) fn load(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            offset: from.fixed64()?,
            len: from.fixed64()?,
            checksum: from.fixed64()?,
        })
    }

    /// Where it ends; `None` past all numbers.
    pub(super) fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.len)
    }
}

/// The end of a searchable table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SearchableFooter {
    pub(super) sections: [Section; SECTIONS],
    /// Pages, a row larger than a page counting as one.
    pub(super) pages: u64,
    /// Different user keys.
    pub(super) keys: u64,
}

impl SearchableFooter {
    /// The section `part`.
    pub(super) fn section(&self, part: SectionKind) -> Section {
        self.sections
            .get(part as usize)
            .copied()
            .expect("a section for each part")
    }

    /// Where the sections begin: the end of pages and extents.
    pub(super) fn tail_start(&self) -> u64 {
        self.section(SectionKind::Extents).offset
    }

    /// The footer's bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        for section in &self.sections {
            section.store(&mut out);
        }
        put_fixed64(&mut out, self.pages);
        put_fixed64(&mut out, self.keys);
        out.resize(VERSION_AT, 0);
        put_fixed32(&mut out, VERSION);
        put_fixed32(&mut out, 0);
        let checksum = xxh3_64(&out);
        put_fixed64(&mut out, checksum);
        debug_assert_eq!(out.len(), MAGIC_AT);
        put_fixed64(&mut out, SEARCHABLE_MAGIC);
        assert_eq!(out.len(), FOOTER_BYTES, "footers have one size");
        out
    }

    /// Decodes the last [`FOOTER_BYTES`] of a file of `size` bytes.
    ///
    /// # Errors
    /// `Corruption`; `NotSupported` for other versions.
    pub(super) fn decode(bytes: &[u8], size: u64) -> Result<Self> {
        let number = |at| fixed64_at(bytes, at).expect("the footer is long enough");
        if bytes.len() != FOOTER_BYTES || number(MAGIC_AT) != SEARCHABLE_MAGIC {
            return Err(Error::corruption("not the footer of a searchable table"));
        }
        let covered = bytes.get(..CHECKSUM_AT).expect("its length was checked");
        if xxh3_64(covered) != number(CHECKSUM_AT) {
            return Err(Error::corruption("the footer's checksum does not match"));
        }
        let version = fixed32_at(bytes, VERSION_AT).expect("the footer is long enough");
        if version != VERSION {
            return Err(Error::not_supported(format!(
                "searchable tables of version {version} ({VERSION} is read)"
            )));
        }
        let footer = Self {
            sections: std::array::from_fn(|at| Section {
                offset: number(at * SECTION_BYTES),
                len: number(at * SECTION_BYTES + 8),
                checksum: number(at * SECTION_BYTES + 16),
            }),
            pages: number(PAGES_AT),
            keys: number(KEYS_AT),
        };
        let mut end = Some(footer.tail_start());
        for section in &footer.sections {
            end = section.end().filter(|_| end == Some(section.offset));
        }
        let whole_pages = footer.tail_start().is_multiple_of(PAGE_BYTES as u64);
        if end != size.checked_sub(FOOTER_BYTES as u64) || !whole_pages {
            return Err(Error::corruption("a section does not lie where it must"));
        }
        Ok(footer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_comes_back_and_every_flipped_bit_is_seen() {
        let mut footer = SearchableFooter {
            pages: 7,
            keys: 9,
            ..SearchableFooter::default()
        };
        let mut at = 2 * PAGE_BYTES as u64;
        for (len, section) in footer.sections.iter_mut().enumerate() {
            (section.offset, section.len) = (at, len as u64);
            at += len as u64;
        }
        let size = at + FOOTER_BYTES as u64;
        let bytes = footer.encode();
        assert_eq!(SearchableFooter::decode(&bytes, size).unwrap(), footer);
        assert!(SearchableFooter::decode(&bytes, size + 1).is_err());
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SearchableFooter::decode(&bytes, size).is_err(), "bit {bit}");
        }
    }
}
