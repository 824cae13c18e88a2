//! Changes that are no writes, as log data of the WAL: families that come and go, tables that are taken in.
//!
//! Only where changes are kept. Each takes a sequence number, one for each table, so that it has a place among the
//! writes. The MANIFEST has it first, in the edit that makes it; the WAL has it as log data of a record whose batch
//! begins with the number after it. Recovery logs it again where a crash came between.
//!
//! Format page: `docs/format/changes.md`.

use std::path::Path;

use drumlin_base::coding::{Reader, put_fixed64, put_slice, put_varint32, put_varint64};
use drumlin_base::{SEQNO_MAX, SeqNo};

use crate::files::names::FILE_NUMBER_MAX;
use crate::write::batch::BatchView;

/// Before a change in log data. On disk.
const TAG: &[u8] = b"drumlin.change";
/// Kinds of changes. On disk.
const CREATED: u8 = 1;
const DROPPED: u8 = 2;
const INGESTED: u8 = 3;

/// A change that is no write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangeMark {
    /// The first sequence number it takes.
    pub(crate) seqno: SeqNo,
    /// The family's id.
    pub(crate) family: u32,
    pub(crate) what: WhatChanged,
}

/// See [`ChangeMark`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WhatChanged {
    /// The family was created.
    Created { name: String, order: String },
    /// It was dropped.
    Dropped,
    /// These tables were taken in, in this order; `wal` is in the names they are kept by.
    Ingested { wal: u64, tables: Vec<u64> },
}

impl ChangeMark {
    /// The last sequence number it takes.
    pub(crate) fn last(&self) -> SeqNo {
        match &self.what {
            WhatChanged::Ingested { tables, .. } => self.seqno + tables.len() as u64 - 1,
            WhatChanged::Created { .. } | WhatChanged::Dropped => self.seqno,
        }
    }

    /// The change as log data.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut data = TAG.to_vec();
        data.push(match &self.what {
            WhatChanged::Created { .. } => CREATED,
            WhatChanged::Dropped => DROPPED,
            WhatChanged::Ingested { .. } => INGESTED,
        });
        put_fixed64(&mut data, self.seqno);
        put_varint32(&mut data, self.family);
        match &self.what {
            WhatChanged::Created { name, order } => {
                put_slice(&mut data, name.as_bytes());
                put_slice(&mut data, order.as_bytes());
            }
            WhatChanged::Dropped => {}
            WhatChanged::Ingested { wal, tables } => {
                put_varint64(&mut data, *wal);
                tables.iter().for_each(|it| put_varint64(&mut data, *it));
            }
        }
        data
    }

    /// The change in `log_data`, if it is one.
    pub(crate) fn parse(log_data: &[u8]) -> Option<Self> {
        let mut rest = Reader::new(log_data.strip_prefix(TAG)?);
        let kind = rest.u8()?;
        let seqno = rest.fixed64()?;
        let family = rest.varint32()?;
        let mut text = || String::from_utf8(rest.slice()?.to_vec()).ok();
        let what = match kind {
            CREATED => WhatChanged::Created {
                name: text()?,
                order: text()?,
            },
            DROPPED => WhatChanged::Dropped,
            INGESTED => {
                let wal = rest.varint64()?;
                let mut tables = Vec::new();
                while !rest.is_empty() {
                    tables.push(rest.varint64().filter(|it| *it <= FILE_NUMBER_MAX)?);
                }
                if tables.is_empty() || wal > FILE_NUMBER_MAX {
                    return None;
                }
                WhatChanged::Ingested { wal, tables }
            }
            _ => return None,
        };
        let is_sound = rest.is_empty() && seqno > 0 && seqno <= SEQNO_MAX - log_data.len() as u64;
        let change = Self {
            seqno,
            family,
            what,
        };
        is_sound.then_some(change)
    }

    /// The change that `batch`, a record of a WAL, tells of. Log data of a program that looks like one is none: the
    /// batch then does not begin with the number after it.
    pub(crate) fn of(batch: &BatchView<'_>) -> Option<Self> {
        let mut found = batch.log_data().filter_map(Self::parse);
        found.find(|change| change.last() + 1 == batch.seqno())
    }
}

/// The change in the bytes `stored`, which the MANIFEST of `dir` has.
///
/// # Errors
/// `Corruption`.
pub(crate) fn stored_change(stored: &[u8], dir: &Path) -> drumlin_base::Result<ChangeMark> {
    ChangeMark::parse(stored).ok_or_else(|| {
        let message = "the last change that the MANIFEST tells of cannot be read";
        drumlin_base::Error::corruption(message).with_file(dir)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::batch::WriteBatch;

    fn samples() -> Vec<ChangeMark> {
        let change = |what| ChangeMark {
            seqno: 77,
            family: 300,
            what,
        };
        vec![
            change(WhatChanged::Created {
                name: "users".to_owned(),
                order: "leveldb.BytewiseComparator".to_owned(),
            }),
            change(WhatChanged::Dropped),
            change(WhatChanged::Ingested {
                wal: 12,
                tables: vec![13, 1 << 40],
            }),
        ]
    }

    #[test]
    fn changes_come_back_as_they_went_in_and_no_piece_of_one_does() {
        for change in samples() {
            let data = change.encode();
            assert_eq!(ChangeMark::parse(&data), Some(change));
            for cut in 0..data.len() {
                let found = ChangeMark::parse(&data[..cut]);
                let whole = found.as_ref().map(ChangeMark::encode);
                assert!(
                    whole.is_none_or(|whole| whole == data[..cut]),
                    "cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_format_page() {
        let [_, dropped, ingested] = samples().try_into().unwrap();
        let tag = b"drumlin.change";
        let head = b"\x4d\0\0\0\0\0\0\0\xac\x02";
        assert_eq!(dropped.encode(), [&tag[..], b"\x02", head].concat());
        let tables = b"\x0c\x0d\x80\x80\x80\x80\x80\x20";
        assert_eq!(
            ingested.encode(),
            [&tag[..], b"\x03", head, tables].concat()
        );
    }

    #[test]
    fn log_data_of_a_program_is_no_change() {
        let change = samples().remove(2);
        assert_eq!(change.last(), 78);
        let mut batch = WriteBatch::new();
        batch.put_log_data(&change.encode()).unwrap();
        for (seqno, expected) in [(77, None), (78, None), (79, Some(change)), (80, None)] {
            batch.set_seqno(seqno);
            let view = BatchView::new(batch.bytes()).unwrap();
            assert_eq!(ChangeMark::of(&view), expected, "{seqno}");
        }
    }
}
