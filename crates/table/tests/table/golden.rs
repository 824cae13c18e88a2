//! Tables written by Debian's RocksDB 7.8.3 and LevelDB 1.23 read as their own tools read them.
//!
//! `digests.txt` has a line per file: its entries, its range tombstones, and the CRC-32C of the
//! lines `key seqno kind value` (hexadecimal but for the numbers) that `sst_dump --command=scan
//! --output_hex` gave.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use drumlin_base::checksum::crc32c_extend;
use drumlin_base::key::{ParsedKey, seek_key};
use drumlin_base::operators::FixedPrefix;
use drumlin_base::{InternalIterator, KeyOrder};
use drumlin_fs::{FileSystem, PosixFileSystem};
use drumlin_table::{Table, TableReadOptions};

use crate::common::{Bytes, reader_options};

fn golden_file(name: &str) -> Vec<u8> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden");
    let files = PosixFileSystem::new();
    files.read_file(&dir.join(name), 1 << 20).unwrap()
}

fn open_golden(name: &str) -> Arc<Table> {
    let bytes = golden_file(name);
    let mut options = reader_options(&KeyOrder::Bytewise, 8 << 20);
    options.prefix = Some(Arc::new(FixedPrefix::new(6)));
    let file = Bytes {
        bytes,
        ..Bytes::default()
    };
    Table::open(Arc::new(file), options).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02X}");
        out
    })
}

/// Entries and digest of a walk over the table, which also looks every entry up.
fn digest(table: &Arc<Table>) -> (usize, u32) {
    let mut iter = table.iter(TableReadOptions::default());
    let (mut count, mut crc) = (0, 0);
    iter.seek_to_first();
    while iter.valid() {
        let key = ParsedKey::parse(iter.key()).unwrap();
        let (name, value) = (hex(key.user_key), hex(iter.value()));
        let line = format!("{name} {} {} {value}\n", key.seqno, key.kind as u8);
        crc = crc32c_extend(crc, line.as_bytes());
        count += 1;
        let mut found = None;
        let options = TableReadOptions::default();
        table
            .get(key.user_key, key.seqno, &options, |seqno, kind, value| {
                found = Some((seqno, kind, value.bytes().to_vec()));
                ControlFlow::Break(())
            })
            .unwrap();
        assert_eq!(found, Some((key.seqno, key.kind, iter.value().to_vec())));
        assert!(table.may_contain_prefix(key.user_key).unwrap());
        let mut seeker = table.iter(TableReadOptions::default());
        seeker.seek(&seek_key(key.user_key, key.seqno));
        assert_eq!(seeker.key(), iter.key());
        iter.next();
    }
    iter.status().unwrap();
    (count, crc)
}

#[test]
fn tables_of_the_peers_read_as_their_tools_read_them() {
    let digests = golden_file("digests.txt");
    for line in std::str::from_utf8(&digests).unwrap().lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let table = open_golden(fields[0]);
        let (count, crc) = digest(&table);
        assert_eq!(count.to_string(), fields[1], "entries of {}", fields[0]);
        assert_eq!(
            table.range_tombstones().len().to_string(),
            fields[2],
            "range tombstones of {}",
            fields[0]
        );
        assert_eq!(format!("{crc:08x}"), fields[3], "digest of {}", fields[0]);
        table.verify().unwrap();
    }
}

#[test]
fn filters_of_the_peers_deny_most_keys_that_are_not_there() {
    for name in ["fv2.sst", "fv5.sst", "partitioned.sst", "ribbon.sst"] {
        let table = open_golden(name);
        let admitted = (0..1000)
            .filter(|n| {
                table
                    .may_contain(format!("no such key {n}").as_bytes())
                    .unwrap()
            })
            .count();
        assert!(admitted < 50, "{name} admits {admitted} of 1000");
    }
}

#[test]
fn entries_of_an_ingested_table_take_its_sequence_number() {
    let table = open_golden("ingested.sst");
    let mut iter = table.iter(TableReadOptions::default());
    // The file was ingested at 3: readers before that see nothing of it.
    for (seqno, expected) in [(4, "key000010"), (3, "key000010"), (2, "key000011")] {
        iter.seek(&seek_key(b"key000010", seqno));
        let key = ParsedKey::parse(iter.key()).unwrap();
        assert_eq!((key.user_key, key.seqno), (expected.as_bytes(), 3));
        let mut found = false;
        let options = TableReadOptions::default();
        table
            .get(b"key000010", seqno, &options, |at, _, _| {
                assert_eq!(at, 3);
                found = true;
                ControlFlow::Break(())
            })
            .unwrap();
        assert_eq!(found, seqno >= 3);
    }
    assert_eq!(table.range_tombstones()[0].seqno, 3);
}
