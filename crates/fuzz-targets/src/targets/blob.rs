//! Blob files and references to them: every value a file lists is found by its reference, checked or
//! not, alone or with its neighbours; damage is an error, never a panic, and lengths are no claim to
//! memory.

use std::path::Path;

use drumlin_table::blob::{
    BlobAhead, BlobFooter, BlobHeader, BlobIndex, BlobReader, BlobRecordHeader, get_sorted,
};

use super::expect::{memory_file, or_blamed};
use crate::reseal;

const NUMBER: u64 = 7;
/// Key, reference, and the value if it unpacks.
type Record = (Vec<u8>, BlobIndex, Option<Vec<u8>>);

/// Most records that are looked up one by one.
const RECORDS_MAX: usize = 256;

/// A reference: an accepted one is written the same, and names no bytes outside a file.
pub(crate) fn run_index(data: &[u8]) {
    let Some(index) = or_blamed(BlobIndex::decode(data)) else {
        return;
    };
    let mut written = Vec::new();
    index.encode(&mut written);
    assert_eq!(BlobIndex::decode(&written).ok(), Some(index));
    let _ = index.record_bytes(data);
    let (rest, _) = data.split_at(data.len() / 2);
    let _ = or_blamed(BlobHeader::decode(rest));
    let _ = or_blamed(BlobFooter::decode(rest));
    let _ = or_blamed(BlobRecordHeader::decode(rest));
}

/// A whole file, as it is and with checksums that fit.
pub(crate) fn run_file(data: &[u8]) {
    read(data);
    let mut sealed = data.to_vec();
    reseal::blob_file(&mut sealed);
    if sealed != data {
        read(&sealed);
    }
}

fn read(bytes: &[u8]) {
    let path = Path::new("/000007.blob");
    let file = memory_file(bytes.to_vec());
    let Some(reader) = or_blamed(BlobReader::over(file, path, NUMBER)) else {
        return;
    };
    let mut found: Vec<Record> = Vec::new();
    let mut records = reader.records();
    while or_blamed(records.next()) == Some(true) {
        if found.len() < RECORDS_MAX {
            let value = or_blamed(records.value());
            found.push((records.key().to_vec(), records.index(), value));
        }
    }
    let mut ahead = BlobAhead::default();
    for (key, index, value) in found.iter().chain(found.iter().rev()) {
        for verify in [true, false] {
            let one = or_blamed(reader.get(key, index, verify));
            assert_eq!(one.as_deref(), value.as_deref(), "by its reference");
        }
        let near = or_blamed(ahead.get(&reader, key, index, true));
        assert_eq!(near.as_deref(), value.as_deref(), "read ahead");
    }
    let wanted = found.iter().map(|(key, index, _)| (&key[..], *index));
    let wanted: Vec<_> = wanted.collect();
    let mut values = found.iter().map(|(_, _, value)| value);
    get_sorted(&reader, &wanted, true, |value| {
        let expected = values.next().expect("one for each");
        assert_eq!(or_blamed(value).as_deref(), expected.as_deref(), "together");
    });
    lie(&reader, &found);
}

/// References made from foreign bytes: refused or read within the file.
fn lie(reader: &BlobReader, found: &[Record]) {
    let codec = reader.header().codec;
    for (key, index, _) in found.iter().take(8) {
        for (offset, size) in [
            (index.offset + 1, index.size),
            (index.offset, index.size.wrapping_sub(1)),
            (index.offset, u64::MAX),
            (index.size, index.offset),
            (u64::MAX, index.size),
        ] {
            let file = NUMBER;
            let lie = BlobIndex {
                file,
                offset,
                size,
                codec,
            };
            for verify in [true, false] {
                let _ = or_blamed(reader.get(key, &lie, verify));
            }
        }
    }
}
