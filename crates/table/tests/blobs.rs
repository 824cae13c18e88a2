//! Goal: the values of a blob file are read back whole, by reference and in order; a damaged file or
//! a wrong reference is refused or harmless. Method: small files in memory, each bit flipped, each
//! length cut.

use std::path::Path;
use std::sync::Arc;

use drumlin_base::rng::Rng;
use drumlin_base::{ErrorKind, Result};
use drumlin_fs::{
    CreateOptions, Fault, FaultFileSystem, FaultRule, FileKind, FileSystem, OpKind,
    RandomAccessFile, StrictMemFileSystem,
};
use drumlin_table::blob::{BlobAhead, BlobFileInfo, BlobIndex, BlobReader, BlobRecords};
use drumlin_table::blob::{BlobWriter, get_sorted};
use drumlin_table::{Codec, Compression};

const NUMBER: u64 = 12;
const FAMILY: u32 = 3;
const PATH: &str = "000012.blob";

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn rows(seed: u64, count: usize, longest: u64) -> Rows {
    let mut rng = Rng::new(seed);
    (0..count)
        .map(|n| {
            let mut value = vec![b'v'; 1 + rng.below(longest) as usize];
            let noise = rng.below(value.len() as u64 + 1) as usize;
            rng.fill(&mut value[..noise]);
            (format!("key{n:04}").into_bytes(), value)
        })
        .collect()
}

fn write(files: &dyn FileSystem, codec: Codec, rows: &Rows) -> (Vec<BlobIndex>, BlobFileInfo) {
    let _ = files.remove(Path::new(PATH)); // Of the round before.
    let file = files
        .create(Path::new(PATH), CreateOptions::new(FileKind::Blob))
        .expect("memory takes a file");
    let writer = BlobWriter::new(file, NUMBER, FAMILY, Compression::new(codec));
    let mut writer = writer.expect("memory takes a header");
    let indexes = rows
        .iter()
        .map(|(key, value)| writer.add(key, value).expect("memory takes a blob"))
        .collect();
    (indexes, writer.finish().expect("memory takes a footer"))
}

/// A disk with `bytes` as the blob file.
fn disk(bytes: &[u8]) -> StrictMemFileSystem {
    let files = StrictMemFileSystem::new();
    let mut file = files
        .create(Path::new(PATH), CreateOptions::new(FileKind::Blob))
        .expect("memory takes a file");
    file.append(bytes).expect("memory takes bytes");
    file.close().expect("memory closes");
    files
}

fn bytes_of(files: &dyn FileSystem) -> Vec<u8> {
    files
        .read_file(Path::new(PATH), 1 << 30)
        .expect("the file is there")
}

fn open(files: &dyn FileSystem) -> Result<BlobReader> {
    BlobReader::open(files, Path::new(PATH), NUMBER)
}

/// Everything the file answers: each value by reference, then all records in order.
fn answers(files: &dyn FileSystem, indexes: &[BlobIndex], rows: &Rows) -> Result<Rows> {
    let reader = open(files)?;
    let mut found = Rows::new();
    for (index, (key, _)) in indexes.iter().zip(rows) {
        found.push((key.clone(), reader.get(key, index, true)?.to_vec()));
    }
    let mut records = reader.records();
    while records.next()? {
        found.push((records.key().to_vec(), records.value()?));
    }
    Ok(found)
}

#[test]
fn what_was_added_is_read_back_under_every_codec() {
    for codec in Codec::ALL {
        let files = StrictMemFileSystem::new();
        let rows = rows(1, 60, 30_000);
        let (indexes, info) = write(&files, codec, &rows);
        assert_eq!((info.number, info.blob_count), (NUMBER, 60));
        let records = indexes.iter().zip(&rows);
        let accounted: u64 = records
            .map(|(index, (key, _))| index.record_bytes(key))
            .sum();
        assert_eq!(info.blob_bytes, accounted);
        let reader = open(&files).unwrap();
        assert_eq!(reader.file_bytes(), info.file_bytes);
        assert_eq!(info.file_bytes, info.blob_bytes + 30 + 32);
        assert_eq!(reader.blob_count(), 60);
        assert_eq!(reader.header().family_id, FAMILY);
        assert_eq!(reader.header().codec, codec);
        for (index, (key, value)) in indexes.iter().zip(&rows) {
            assert_eq!(reader.get(key, index, true).unwrap(), value[..], "{codec}");
            assert_eq!(reader.get(key, index, false).unwrap(), value[..], "{codec}");
        }
        let mut records = reader.records();
        for (index, (key, value)) in indexes.iter().zip(&rows) {
            assert!(records.next().unwrap());
            assert_eq!(records.index(), *index);
            assert_eq!(records.key(), key);
            assert_eq!(records.value().unwrap(), *value);
        }
        assert!(!records.next().unwrap());
    }
}

#[test]
fn a_value_moves_to_another_file_as_it_is_stored() {
    let files = StrictMemFileSystem::new();
    let rows = rows(2, 5, 5_000);
    let (indexes, _) = write(&files, Codec::Zstd, &rows);
    let reader = open(&files).unwrap();
    let path = Path::new("000013.blob");
    let file = files.create(path, CreateOptions::new(FileKind::Blob));
    let compression = Compression::new(Codec::Zstd);
    let mut writer = BlobWriter::new(file.unwrap(), 13, FAMILY, compression).unwrap();
    let mut moved = Vec::new();
    for (index, (key, _)) in indexes.iter().zip(&rows) {
        let stored = reader.stored(key, index, true).unwrap();
        moved.push(writer.add_stored(key, &stored).unwrap());
    }
    writer.finish().unwrap();
    let reader = BlobReader::open(&files, path, 13).unwrap();
    for (index, (key, value)) in moved.iter().zip(&rows) {
        assert_eq!(reader.get(key, index, true).unwrap(), value[..]);
    }
}

#[test]
fn a_flipped_bit_is_reported_or_changes_nothing() {
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        let files = StrictMemFileSystem::new();
        let rows = rows(3, 4, 40);
        let (indexes, _) = write(&files, codec, &rows);
        let sound = bytes_of(&files);
        let expected = answers(&files, &indexes, &rows).unwrap();
        for bit in 0..sound.len() * 8 {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let files = disk(&bytes);
            match answers(&files, &indexes, &rows) {
                Ok(found) => {
                    assert!(found == expected, "{codec}: bit {bit} changes answers");
                    // The engine compares the family of the file.
                    assert!((8..12).contains(&(bit / 8)), "{codec}: bit {bit} unseen");
                    assert_ne!(open(&files).unwrap().header().family_id, FAMILY);
                }
                Err(error) => {
                    assert!(
                        matches!(
                            error.kind(),
                            ErrorKind::Corruption | ErrorKind::NotSupported
                        ),
                        "{error}"
                    );
                    assert_eq!(error.file(), Some(Path::new(PATH)), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_refused_and_its_whole_records_can_be_salvaged() {
    let files = StrictMemFileSystem::new();
    let rows = rows(4, 6, 50);
    let (indexes, info) = write(&files, Codec::None, &rows);
    let sound = bytes_of(&files);
    for cut in 0..sound.len() {
        let files = disk(&sound[..cut]);
        let error = open(&files).unwrap_err();
        assert!(error.is_corruption(), "cut at {cut}: {error}");
        let records = BlobRecords::open_unfinished(&files, Path::new(PATH), NUMBER);
        let Ok(mut records) = records else {
            assert!(cut < 30, "cut at {cut}");
            continue;
        };
        let whole = indexes
            .iter()
            .filter(|index| index.offset + index.size <= cut as u64)
            .count();
        let mut salvaged = 0;
        while let Ok(true) = records.next() {
            assert_eq!(records.key(), rows[salvaged].0);
            assert_eq!(records.stored(), rows[salvaged].1);
            salvaged += 1;
        }
        assert_eq!(salvaged, whole, "cut at {cut}");
    }
    assert_eq!(sound.len() as u64, info.file_bytes);
}

#[test]
fn references_that_lie_are_refused_before_anything_is_allocated_by_them() {
    let files = StrictMemFileSystem::new();
    let rows = rows(5, 3, 100);
    let (indexes, info) = write(&files, Codec::None, &rows);
    let reader = open(&files).unwrap();
    let (key, index) = (&rows[1].0, indexes[1]);
    let lies = [
        BlobIndex { file: 13, ..index },
        BlobIndex {
            codec: Codec::Snappy,
            ..index
        },
        BlobIndex {
            size: u64::MAX,
            ..index
        },
        BlobIndex {
            size: info.file_bytes,
            ..index
        },
        BlobIndex {
            offset: u64::MAX,
            ..index
        },
        BlobIndex { offset: 0, ..index },
        BlobIndex {
            offset: 30 + 32,
            ..index
        },
        BlobIndex {
            offset: info.file_bytes - 32,
            size: 1,
            ..index
        },
    ];
    for lie in lies {
        for verify in [true, false] {
            let error = reader.get(key, &lie, verify).unwrap_err();
            assert!(error.is_corruption(), "{lie:?}: {error}");
        }
    }
    // Inside the file, only a check tells.
    let off_by_one = BlobIndex {
        offset: index.offset + 1,
        ..index
    };
    assert!(reader.get(key, &off_by_one, true).is_err());
    let shorter = BlobIndex {
        size: index.size - 1,
        ..index
    };
    assert!(reader.get(key, &shorter, true).is_err());
    let error = reader.get(&rows[0].0, &index, true).unwrap_err();
    assert!(error.is_corruption(), "another key's: {error}");
}

#[test]
fn a_read_that_came_back_wrong_is_repeated_once() {
    let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
    let rows = rows(6, 2, 1_000);
    for codec in [Codec::None, Codec::Lz4] {
        let (indexes, _) = write(&files, codec, &rows);
        let reader = open(&files).unwrap();
        files.add_rule(FaultRule::once(0, Fault::FlippedBit).on(OpKind::Read));
        let value = reader.get(&rows[0].0, &indexes[0], true).unwrap();
        assert_eq!(value, rows[0].1[..]);
        files.clear_rules();
        files.add_rule(FaultRule::once(0, Fault::Io).on(OpKind::Read));
        let error = reader.get(&rows[0].0, &indexes[0], true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        files.clear_rules();
    }
}

#[test]
fn a_file_without_blobs_is_not_finished() {
    let files = StrictMemFileSystem::new();
    let file = files
        .create(Path::new(PATH), CreateOptions::new(FileKind::Blob))
        .unwrap();
    let writer = BlobWriter::new(file, NUMBER, FAMILY, Compression::none()).unwrap();
    assert_eq!((writer.len(), writer.is_empty()), (30, true));
    let error = writer.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

/// Reads every value in `order` with read-ahead, and returns the number of reads.
fn read_ahead(
    files: &FaultFileSystem,
    order: impl Iterator<Item = usize>,
    indexes: &[BlobIndex],
    rows: &Rows,
) -> u64 {
    let reader = open(files).expect("a sound file");
    let mut ahead = BlobAhead::default();
    let before = files.operations();
    for n in order {
        let (key, value) = &rows[n];
        let found = ahead.get(&reader, key, &indexes[n], true);
        assert_eq!(found.expect("a sound file"), value[..]);
    }
    files.operations() - before
}

#[test]
fn reading_ahead_gives_the_same_values_with_few_reads_in_either_direction() {
    for codec in [Codec::None, Codec::Lz4] {
        let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
        let rows = rows(7, 400, 3_000);
        let (indexes, info) = write(&files, codec, &rows);
        let windows = info.file_bytes / (256 << 10);
        for reads in [
            read_ahead(&files, 0..400, &indexes, &rows),
            read_ahead(&files, (0..400).rev(), &indexes, &rows),
            // Every other value is garbage.
            read_ahead(&files, (0..400).step_by(2), &indexes, &rows),
        ] {
            assert!(reads <= windows + 8, "{codec}: {reads} reads");
        }
        let mut rng = Rng::new(8);
        let jumps: Vec<_> = (0..400).map(|_| rng.below(400) as usize).collect();
        read_ahead(&files, jumps.into_iter(), &indexes, &rows);
    }
}

#[test]
fn a_list_of_values_is_read_with_few_reads_and_each_fails_alone() {
    let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
    let rows = rows(9, 100, 3_000);
    let (indexes, _) = write(&files, Codec::Zstd, &rows);
    let reader = open(&files).unwrap();
    let mut wanted: Vec<(&[u8], BlobIndex)> = rows
        .iter()
        .zip(&indexes)
        .map(|((key, _), index)| (&key[..], *index))
        .collect();
    wanted[50].0 = b"other!!";
    wanted[60].1.size = u64::MAX;
    let before = files.operations();
    let mut found = Vec::new();
    get_sorted(&reader, &wanted, true, |value| found.push(value));
    assert!(files.operations() - before < 10);
    assert_eq!(found.len(), rows.len());
    for (n, (found, (_, value))) in found.iter().zip(&rows).enumerate() {
        match found {
            Ok(found) => assert_eq!(*found, value[..]),
            Err(error) => assert!([50, 60].contains(&n), "{error}"),
        }
    }
    assert!(found[50].is_err() && found[60].is_err());
}

/// A file whose middle was never written: `front`, then zeros up to `size`, of which the last are `end`.
#[derive(Debug)]
struct Hollow {
    front: Vec<u8>,
    end: Vec<u8>,
    size: u64,
}

impl RandomAccessFile for Hollow {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let end_at = self.size - self.end.len() as u64;
        for (at, byte) in (offset..self.size).zip(&mut *buffer) {
            let front = self.front.get(at as usize);
            let end = at.checked_sub(end_at);
            let end = end.and_then(|from| self.end.get(from as usize));
            *byte = front.or(end).map_or(0, |it| *it);
        }
        Ok(buffer.len())
    }

    fn size(&self) -> u64 {
        self.size
    }
}

/// References and records claim bytes in a hole of the file: that takes no memory, and does not
/// abort.
#[test]
fn a_hole_in_a_blob_file_is_not_taken_for_memory() {
    const SIZE: u64 = 1 << 60;
    let files = StrictMemFileSystem::new();
    let rows = rows(4, 1, 100);
    let (indexes, _) = write(&files, Codec::None, &rows);
    let bytes = bytes_of(&files);
    let file = Hollow {
        front: bytes[..30].to_vec(),
        end: bytes[bytes.len() - 32..].to_vec(),
        size: SIZE,
    };
    let reader = BlobReader::over(Arc::new(file), Path::new(PATH), NUMBER).expect("sound ends");
    let mut index = indexes[0];
    for size in [1 << 40, 1 << 59] {
        index.size = size;
        for verify in [true, false] {
            let error = reader.get(&rows[0].0, &index, verify).expect_err("a lie");
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            assert!(error.to_string().contains(PATH), "{error}");
        }
    }
}
