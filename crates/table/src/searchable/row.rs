//! The row of a key that is not just one value without a sequence number.
//!
//! A row is the code of the value, if the key has one version, a value with sequence number zero.
//! Else it is a list of versions, newest first:
//!
//! ```text
//! versions varint | for each: kind u8, sequence number varint, bytes varint | bytes of all versions
//! ```
//!
//! The bytes of a value are its code under the table's model; those of other kinds are as they are.

use std::ops::Range;

use drumlin_base::coding::{Reader, put_varint64};
use drumlin_base::key::{ValueKind, pack_tag, tag_kind, tag_seqno};

/// The tag of a row that is the code of a value.
pub(super) const PLAIN_TAG: u64 = pack_tag(0, ValueKind::Value as u8);

/// One version: its tag, and where its bytes are in the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) tag: u64,
    pub(super) range: Range<usize>,
}

/// Appends the list of `versions`, whose bytes are ranges of `bytes`.
pub(super) fn encode_versions(versions: &[Version], bytes: &[u8], out: &mut Vec<u8>) {
    put_varint64(out, versions.len() as u64);
    for version in versions {
        out.push(tag_kind(version.tag));
        put_varint64(out, tag_seqno(version.tag));
        put_varint64(out, version.range.len() as u64);
    }
    out.extend_from_slice(bytes);
}

/// Walks the versions of a row that begins at `row.start` of its page. Stops where the row is damaged;
/// [`Versions::is_sound`] tells.
pub(super) struct Versions<'a> {
    heads: Reader<'a>,
    left: u64,
    /// Where the bytes of the next version begin, and the row ends.
    at: usize,
    end: usize,
    sound: bool,
}

impl<'a> Versions<'a> {
    /// The versions of the row at `range` of `page`.
    pub(super) fn new(page: &'a [u8], range: Range<usize>) -> Self {
        let bytes = page.get(range.clone()).expect("a row is in its page");
        let mut heads = Reader::new(bytes);
        let left = heads.varint64();
        // The bytes begin behind the headers: walk these once.
        let mut behind = heads;
        let mut sound = left.is_some_and(|left| left > 0 && left <= bytes.len() as u64);
        for _ in 0..left.filter(|_| sound).unwrap_or(0) {
            let head = (behind.u8(), behind.varint64(), behind.varint64());
            if let (Some(_), Some(_), Some(_)) = head {
                continue;
            }
            sound = false;
            break;
        }
        Self {
            heads,
            left: left.filter(|_| sound).unwrap_or(0),
            at: range.end - behind.rest().len().min(range.len()),
            end: range.end,
            sound,
        }
    }

    /// Whether nothing was damaged so far.
    pub(super) fn is_sound(&self) -> bool {
        self.sound
    }
}

impl Iterator for Versions<'_> {
    type Item = Version;

    #[inline]
    fn next(&mut self) -> Option<Version> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let kind = self.heads.u8()?;
        let seqno = self.heads.varint64()?;
        let len = usize::try_from(self.heads.varint64()?).ok();
        let end = len.and_then(|len| self.at.checked_add(len));
        let end = end.filter(|&end| end <= self.end && seqno <= drumlin_base::SEQNO_MAX);
        let Some(end) = end else {
            self.sound = false;
            self.left = 0;
            return None;
        };
        let range = self.at..end;
        if !drumlin_base::bug!("versions-share-a-value") {
            self.at = end;
        }
        Some(Version {
            tag: pack_tag(seqno, kind),
            range,
        })
    }
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    #[test]
    fn versions_come_back_in_order() {
        let versions = [
            Version {
                tag: pack_tag(900, 0),
                range: 0..0,
            },
            Version {
                tag: pack_tag(7, 1),
                range: 0..3,
            },
            Version {
                tag: pack_tag(0, 2),
                range: 3..5,
            },
        ];
        let mut page = b"before".to_vec();
        encode_versions(&versions, b"abcde", &mut page);
        let mut walk = Versions::new(&page, 6..page.len());
        let found: Vec<(u64, &[u8])> = walk
            .by_ref()
            .map(|version| (version.tag, &page[version.range]))
            .collect();
        assert!(walk.is_sound());
        assert_eq!(
            found,
            [
                (pack_tag(900, 0), &b""[..]),
                (pack_tag(7, 1), b"abc"),
                (pack_tag(0, 2), b"de")
            ]
        );
    }

    #[test]
    fn damaged_rows_give_no_range_outside_them() {
        let mut rng = Rng::new(3);
        for _ in 0..5000 {
            let mut page = vec![0; rng.below(40) as usize];
            rng.fill(&mut page);
            if let Some(first) = page.first_mut() {
                *first &= 7;
            }
            let end = page.len();
            for version in Versions::new(&page, 0..end) {
                assert!(version.range.end <= end);
            }
        }
    }
}
