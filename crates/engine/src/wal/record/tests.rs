//! Writer and reader against each other, and the reader against damage of every kind.

use std::sync::Arc;

use drumlin_base::rng::Rng;
use drumlin_base::{ErrorKind, Result};
use drumlin_fs::{FileSyncer, RandomAccessFile, WritableFile};
use parking_lot::Mutex;

use super::*;
use crate::write::batch::WriteBatch;

#[derive(Clone, Debug, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl WritableFile for Bytes {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.lock().extend_from_slice(bytes);
        Ok(())
    }
    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
    fn len(&self) -> u64 {
        self.0.lock().len() as u64
    }
    fn syncer(&self) -> Arc<dyn FileSyncer> {
        Arc::new(self.clone())
    }
}

impl FileSyncer for Bytes {
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Image(Vec<u8>);

impl RandomAccessFile for Image {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let from = self.0.get(offset as usize..).unwrap_or_default();
        let len = from.len().min(buffer.len());
        buffer[..len].copy_from_slice(&from[..len]);
        Ok(len)
    }
    fn size(&self) -> u64 {
        self.0.len() as u64
    }
}

const LOG: u64 = 7;

/// A log of `payloads`; its bytes, and where each record begins and the last one ends.
fn log_of(payloads: &[Vec<u8>], recyclable: bool) -> (Vec<u8>, Vec<usize>) {
    log_numbered(payloads, recyclable.then_some(LOG))
}

fn log_numbered(payloads: &[Vec<u8>], number: Option<u64>) -> (Vec<u8>, Vec<usize>) {
    let bytes = Bytes::default();
    let file = Box::new(bytes.clone());
    let mut writer = match number {
        Some(number) => RecordWriter::recyclable(file, number),
        None => RecordWriter::new(file),
    };
    let mut offsets = Vec::new();
    for payload in payloads {
        offsets.push(bytes.0.lock().len());
        writer.append(payload).unwrap();
    }
    let bytes = bytes.0.lock().clone();
    offsets.push(bytes.len());
    (bytes, offsets)
}

fn read_all(bytes: &[u8]) -> (Vec<Vec<u8>>, RecordReader) {
    let mut reader = RecordReader::new(Arc::new(Image(bytes.to_vec())), LOG);
    let mut payloads = Vec::new();
    while let Some(record) = reader.read().unwrap() {
        payloads.push(record.payload.to_vec());
    }
    (payloads, reader)
}

fn payload(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

#[test]
fn records_of_every_length_around_a_block_round_trip() {
    let mut rng = Rng::new(1);
    for recyclable in [false, true] {
        for around in [0, BLOCK_BYTES, 2 * BLOCK_BYTES] {
            for first in around.saturating_sub(30)..around + 5 {
                let lens = [first, 0, 1, 200_000 * (first % 2), 3];
                let payloads: Vec<_> = lens.map(|len| payload(&mut rng, len)).into();
                let (bytes, offsets) = log_of(&payloads, recyclable);
                let (read, mut reader) = read_all(&bytes);
                assert!(read == payloads, "first record of {first} bytes");
                let end = reader.end().unwrap();
                assert_eq!(end.reason, EndReason::Complete);
                assert_eq!(end.offset as usize, *offsets.last().unwrap());
                assert_eq!(reader.judge(Later::Any).unwrap(), Verdict::Clean);
            }
        }
    }
}

#[test]
fn a_record_in_parts_equals_the_record_in_one_piece() {
    let mut rng = Rng::new(2);
    for _ in 0..50 {
        let whole_len = rng.below(100_000) as usize;
        let whole = payload(&mut rng, whole_len);
        let cut = rng.below(whole.len() as u64 + 1) as usize;
        let (bytes, parts) = (Bytes::default(), Bytes::default());
        let mut writer = RecordWriter::new(Box::new(bytes.clone()));
        writer.append(&whole).unwrap();
        let mut writer = RecordWriter::new(Box::new(parts.clone()));
        writer
            .append_parts(&[&whole[..cut], b"", &whole[cut..], b""])
            .unwrap();
        assert!(*bytes.0.lock() == *parts.0.lock());
    }
}

#[test]
fn a_log_cut_anywhere_gives_a_prefix_and_is_torn_not_corrupt() {
    let mut rng = Rng::new(3);
    let payloads: Vec<_> = [40, 3, 33_000, 0, 90]
        .map(|len| payload(&mut rng, len))
        .into();
    for recyclable in [false, true] {
        let (bytes, offsets) = log_of(&payloads, recyclable);
        for cut in (0..bytes.len()).filter(|cut| cut % 97 == 0 || cut % 32_768 < 60 || *cut < 120) {
            let whole = offsets[1..].iter().filter(|&&end| end <= cut).count();
            let (read, mut reader) = read_all(&bytes[..cut]);
            assert!(read == payloads[..whole], "cut at {cut}");
            let verdict = reader.judge(Later::Any).unwrap();
            match offsets.contains(&cut) {
                true => assert_eq!(verdict, Verdict::Clean),
                // Up to ten bytes of a header may all be zero, which is no record yet.
                false => assert!(
                    matches!(verdict, Verdict::Clean | Verdict::Torn { .. }),
                    "cut at {cut}: {verdict:?}"
                ),
            }
            if let Verdict::Torn { offset, .. } = verdict {
                assert_eq!(offset as usize, offsets[whole]);
            }
        }
    }
}

#[test]
fn a_zero_filled_tail_is_a_clean_end() {
    let payloads = vec![b"one".to_vec(), b"two".to_vec()];
    for recyclable in [false, true] {
        for zeros in [1, 6, 7, 11, 40, 100_000] {
            let (mut bytes, _) = log_of(&payloads, recyclable);
            bytes.resize(bytes.len() + zeros, 0);
            let (read, mut reader) = read_all(&bytes);
            assert_eq!(read, payloads);
            assert_eq!(reader.judge(Later::Any).unwrap(), Verdict::Clean);
        }
    }
}

#[test]
fn every_flipped_bit_of_the_last_record_is_corruption() {
    let payloads = vec![b"first".to_vec(), b"the last record".to_vec()];
    for recyclable in [false, true] {
        let (bytes, offsets) = log_of(&payloads, recyclable);
        for at in offsets[1]..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                let (read, mut reader) = read_all(&bad);
                assert_eq!(read, payloads[..1]);
                let verdict = reader.judge(Later::Marks).unwrap();
                let Verdict::Corrupt { offset, .. } = verdict else {
                    panic!("byte {at}, bit {bit}: {verdict:?}");
                };
                assert_eq!(offset as usize, offsets[1]);
            }
        }
    }
}

#[test]
fn the_last_record_with_a_flipped_bit_can_be_mended_in_a_log_that_may_be_recycled() {
    let payloads = vec![b"first".to_vec(), b"the last record".to_vec()];
    let (bytes, offsets) = log_of(&payloads, true);
    let mended = |bytes: &[u8]| match read_all(bytes).1.judge(Later::Marks).unwrap() {
        Verdict::Corrupt { mended, .. } => mended,
        other => panic!("{other:?}"),
    };
    let (stale, _) = log_numbered(&vec![vec![b'o'; 70]; 3], Some(LOG - 1));
    for at in offsets[1]..bytes.len() {
        for bit in 0..8 {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << bit;
            let expected = Some(Mended {
                payload: payloads[1].clone(),
                offset: offsets[1] as u64,
                end: offsets[2] as u64,
            });
            assert_eq!(mended(&bad), expected, "byte {at}, bit {bit}");
            bad.extend_from_slice(&stale[bad.len()..]);
            assert_eq!(
                mended(&bad),
                expected,
                "before stale bytes: byte {at}, bit {bit}"
            );
            let other = log_of(&[b"later".to_vec()], true).0;
            bad.truncate(bytes.len());
            bad.extend_from_slice(&other);
            assert_eq!(mended(&bad), None, "a record follows: byte {at}, bit {bit}");
        }
    }
}

#[test]
fn a_flipped_bit_in_the_last_fragment_of_a_record_can_be_mended() {
    let payloads = vec![b"first".to_vec(), vec![b'x'; BLOCK_BYTES]];
    let (mut bytes, offsets) = log_of(&payloads, true);
    let end = bytes.len();
    bytes[end - 5] ^= 2;
    let verdict = read_all(&bytes).1.judge(Later::Marks).unwrap();
    let Verdict::Corrupt { mended, .. } = verdict else {
        panic!("{verdict:?}");
    };
    let expected = Mended {
        payload: payloads[1].clone(),
        offset: offsets[1] as u64,
        end: end as u64,
    };
    assert_eq!(mended, Some(expected));
}

#[test]
fn a_long_record_and_one_in_a_log_of_its_own_bytes_are_not_mended() {
    for (len, recyclable) in [(600, true), (100, false), (40_000, true)] {
        let payloads = vec![b"first".to_vec(), vec![b'x'; len]];
        let (mut bytes, offsets) = log_of(&payloads, recyclable);
        bytes[offsets[1] + 50] ^= 4;
        let verdict = read_all(&bytes).1.judge(Later::Marks).unwrap();
        let unmended = matches!(verdict, Verdict::Corrupt { mended: None, .. });
        assert!(unmended, "{len} bytes: {verdict:?}");
    }
}

#[test]
fn a_torn_write_that_lacks_a_single_bit_is_no_damage() {
    let payloads = vec![b"first".to_vec(), b"the last record\x08\0".to_vec()];
    for recyclable in [false, true] {
        let (mut bytes, offsets) = log_of(&payloads, recyclable);
        let end = offsets[2];
        bytes[end - 2] = 0;
        let judge = |bytes: &[u8]| {
            let (records, mut reader) = read_all(bytes);
            assert_eq!(records, payloads[..1]);
            reader.judge(Later::Any).unwrap()
        };
        assert!(matches!(judge(&bytes), Verdict::Torn { .. }));
        bytes.extend_from_within(..offsets[1]);
        let verdict = judge(&bytes);
        assert!(matches!(verdict, Verdict::Corrupt { .. }), "{verdict:?}");
        bytes.truncate(end);
        bytes[end - 3] ^= 1;
        bytes[end - 2] = 8;
        let verdict = judge(&bytes);
        assert!(matches!(verdict, Verdict::Corrupt { .. }), "{verdict:?}");
    }
}

#[test]
fn a_flipped_bit_behind_a_zero_byte_of_a_checksum_is_corruption() {
    let begins_with_zero =
        |payload: &Vec<u8>| log_of(std::slice::from_ref(payload), false).0[0] == 0;
    let mut payloads = (0..).map(|n: u64| n.to_string().into_bytes());
    let payload = payloads.find(begins_with_zero).unwrap();
    let (sound, _) = log_of(&[payload], false);
    for (at, bit) in (1..4).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << bit;
        let (_, mut reader) = read_all(&bytes);
        let verdict = reader.judge(Later::Any).unwrap();
        // Where all up to the bit is zeros, a write may have lacked its first bytes.
        let may_be_torn = bytes[..=at].iter().all(|byte| *byte == 0);
        let is_corrupt = matches!(verdict, Verdict::Corrupt { .. });
        assert_eq!(
            is_corrupt, !may_be_torn,
            "byte {at}, bit {bit}: {verdict:?}"
        );
    }
}

#[test]
fn records_of_the_log_before_end_a_recycled_log_cleanly() {
    let mut rng = Rng::new(4);
    for _ in 0..200 {
        let old: Vec<_> = (0..6)
            .map(|_| {
                let len = rng.below(200) as usize;
                payload(&mut rng, len)
            })
            .collect();
        let (stale, _) = log_numbered(&old, Some(LOG - 1));
        let new: Vec<_> = (0..3)
            .map(|_| {
                let len = rng.below(100) as usize;
                payload(&mut rng, len)
            })
            .collect();
        let (mut bytes, offsets) = log_of(&new, true);
        if let Some(rest) = stale.get(bytes.len()..) {
            bytes.extend_from_slice(rest);
        }
        let (read, mut reader) = read_all(&bytes);
        assert!(read == new);
        assert_eq!(reader.end().unwrap().offset as usize, offsets[3]);
        let verdict = reader.judge(Later::Marks).unwrap();
        assert!(
            !matches!(verdict, Verdict::Corrupt { .. }),
            "what is left of another log proves nothing: {verdict:?}"
        );
    }
}

fn batch_with_mark(seqno: u64, bytes: u64) -> Vec<u8> {
    batch_with_mark_of(LOG, seqno, bytes)
}

fn batch_with_mark_of(log_number: u64, seqno: u64, bytes: u64) -> Vec<u8> {
    let mut batch = WriteBatch::new();
    batch
        .put(format!("key{seqno}").as_bytes(), &[b'v'; 50])
        .unwrap();
    batch.set_seqno(seqno);
    let mark = SyncedMark { log_number, bytes };
    batch.put_log_data(&mark.data()).unwrap();
    batch.bytes().to_vec()
}

/// Overwrites part of the record at `offsets[1]` in a log whose later records say that `synced`
/// bytes were synced.
fn damaged_with_marks(synced: impl Fn(usize) -> u64, recyclable: bool) -> (Vec<u8>, usize) {
    let sizes = log_of(&vec![batch_with_mark(1, 0); 4], recyclable).1;
    let payloads: Vec<_> = (0..4)
        .map(|at| batch_with_mark(at as u64 + 1, synced(sizes[at])))
        .collect();
    let (mut bytes, offsets) = log_of(&payloads, recyclable);
    bytes[offsets[1] + 20..offsets[1] + 40].fill(0xEE);
    (bytes, offsets[1])
}

#[test]
fn damage_below_a_later_mark_is_corruption() {
    for recyclable in [false, true] {
        // Each group was written when everything before it was synced.
        let (bytes, bad) = damaged_with_marks(|before| before as u64, recyclable);
        let (read, mut reader) = read_all(&bytes);
        assert_eq!(read.len(), 1);
        let verdict = reader.judge(Later::Marks).unwrap();
        let error = verdict.refuse_corruption().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert_eq!(error.offset(), Some(bad as u64));
    }
}

#[test]
fn damage_among_unsynced_groups_is_a_torn_tail() {
    for recyclable in [false, true] {
        let (bytes, bad) = damaged_with_marks(|_| 0, recyclable);
        let (read, mut reader) = read_all(&bytes);
        assert_eq!(read.len(), 1);
        let Verdict::Torn {
            offset,
            later_records,
            dropped_bytes,
            ..
        } = reader.judge(Later::Marks).unwrap()
        else {
            panic!("nothing was promised");
        };
        assert_eq!(offset, bad as u64);
        assert_eq!(dropped_bytes, (bytes.len() - bad) as u64);
        assert!(later_records);
        // A MANIFEST syncs each record before the next, so there the same is damage.
        let (_, mut reader) = read_all(&bytes);
        let verdict = reader.judge(Later::Any).unwrap();
        assert!(matches!(verdict, Verdict::Corrupt { .. }));
    }
}

#[test]
fn a_mark_of_another_log_proves_nothing() {
    let payloads: Vec<_> = (1..5)
        .map(|seqno| batch_with_mark_of(LOG - 1, seqno, u64::MAX))
        .collect();
    let (mut bytes, offsets) = log_of(&payloads, false);
    bytes[offsets[1] + 20..offsets[1] + 40].fill(0xEE);
    let (read, mut reader) = read_all(&bytes);
    assert_eq!(read.len(), 1);
    let verdict = reader.judge(Later::Marks).unwrap();
    assert!(matches!(verdict, Verdict::Torn { .. }), "{verdict:?}");
}

#[test]
fn a_hole_of_zeros_is_judged_by_the_marks_past_it() {
    let (mut bytes, bad) = damaged_with_marks(|before| before as u64, false);
    let next = bad + (bytes.len() - bad) / 3;
    bytes[bad..next].fill(0);
    let (_, mut reader) = read_all(&bytes);
    let verdict = reader.judge(Later::Marks).unwrap();
    assert!(matches!(verdict, Verdict::Corrupt { .. }), "{verdict:?}");
}

#[test]
fn damage_in_one_block_is_proved_by_a_mark_in_a_later_one() {
    let mut rng = Rng::new(5);
    let mut payloads = vec![batch_with_mark(1, 0)];
    payloads.push(payload(&mut rng, 300_000));
    payloads.push(batch_with_mark(2, 250_000));
    let (mut bytes, offsets) = log_of(&payloads, false);
    bytes[offsets[1] + 100..offsets[1] + 200].fill(1);
    let (read, mut reader) = read_all(&bytes);
    assert_eq!(read.len(), 1);
    let verdict = reader.judge(Later::Marks).unwrap();
    assert!(matches!(verdict, Verdict::Corrupt { .. }), "{verdict:?}");
}

/// A sound fragment of type `kind` around `payload`.
fn fragment(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0u8; 4];
    bytes.extend_from_slice(&(payload.len() as u16).to_le_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(payload);
    let crc = drumlin_base::checksum::crc32c(&bytes[6..]);
    bytes[..4].copy_from_slice(&drumlin_base::checksum::mask(crc).to_le_bytes());
    bytes
}

#[test]
fn ignorable_types_are_passed_over_and_others_refused_by_name() {
    let (mut bytes, _) = log_of(&[b"a".to_vec()], false);
    bytes.extend(fragment(130, b"predecessor"));
    bytes.extend(fragment(200, b"future"));
    bytes.extend(fragment(1, b"b"));
    assert_eq!(read_all(&bytes).0, [b"a", b"b"]);

    for (kind, word) in [(9, "compressed"), (10, "timestamp"), (12, "unknown")] {
        let (mut bytes, _) = log_of(&[b"a".to_vec()], false);
        bytes.extend(fragment(kind, b"x"));
        let mut reader = RecordReader::new(Arc::new(Image(bytes)), LOG);
        assert!(reader.read().unwrap().is_some());
        let error = reader.read().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn an_empty_first_fragment_before_a_full_one_is_tolerated() {
    let mut bytes = fragment(2, b"");
    bytes.extend(fragment(1, b"whole"));
    assert_eq!(read_all(&bytes).0, [b"whole"]);
    let mut bytes = fragment(2, b"half");
    bytes.extend(fragment(1, b"whole"));
    let (read, reader) = read_all(&bytes);
    assert!(read.is_empty(), "what follows a hole is never replayed");
    assert_eq!(reader.end().unwrap().offset, 0);
}

#[test]
fn hostile_bytes_never_panic_and_never_invent_records() {
    let mut rng = Rng::new(6);
    let (sound, _) = log_of(&vec![vec![7; 300]; 120], false);
    for round in 0..150 {
        let mut bytes = match round % 2 {
            0 => payload(&mut rng, 5_000),
            _ => sound.clone(),
        };
        for _ in 0..rng.below(6) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        let cut = rng.below(bytes.len() as u64) as usize;
        let mut reader = RecordReader::new(Arc::new(Image(bytes[cut..].to_vec())), LOG);
        while let Ok(Some(record)) = reader.read() {
            assert!(record.payload.len() == 300 || round % 2 == 0);
        }
        if reader.end().is_some() {
            let _ = reader.judge(Later::Marks).unwrap();
        }
    }
}

#[test]
fn the_example_of_the_format_page_is_what_is_written() {
    let (bytes, _) = log_of(&[b"hi".to_vec()], false);
    assert_eq!(bytes, b"\x8b\x6e\xac\xe0\x02\x00\x01hi");
}
