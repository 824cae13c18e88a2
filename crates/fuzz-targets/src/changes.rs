//! Seeds for the target `changes`: two WAL files with every kind of change, the second going on where the first ends.

use std::path::Path;

use drumlin::WriteBatch;
use drumlin::internals::record::RecordWriter;
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

/// A family is created at 77, dropped at 78; two tables are taken in at 80.
const CREATED: &[u8] = b"drumlin.change\x01\x4d\0\0\0\0\0\0\0\x01\x05users\x05order";
const DROPPED: &[u8] = b"drumlin.change\x02\x4e\0\0\0\0\0\0\0\x01";
const TAKEN_IN: &[u8] = b"drumlin.change\x03\x50\0\0\0\0\0\0\0\x01\x07\x0a\x0b";
const BEGAN: &[u8] = b"drumlin.began\0\x10\x5e\x5f\0\0\0\0";

/// The seeds: target, name, bytes.
pub(crate) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let logged = |seqno, data: &[&[u8]]| {
        let mut batch = WriteBatch::new();
        for data in data {
            batch.put_log_data(data).expect("a short note");
        }
        batch.set_seqno(seqno);
        batch
    };
    let put = |seqno| {
        let mut batch = WriteBatch::new();
        batch
            .put(b"key", b"value")
            .and_then(|()| batch.put_log_data(b"a note"))
            .expect("a short record");
        batch.set_seqno(seqno);
        batch.bytes().to_vec()
    };
    let step = |seqno: u8, count: u8, records: &[u8]| {
        let head = [seqno, 0, 0, 0, 0, 0, 0, 0, count, 0, 0, 0];
        [&head, records].concat()
    };
    let older = [
        logged(78, &[BEGAN, CREATED]).bytes().to_vec(),
        logged(79, &[DROPPED]).bytes().to_vec(),
        put(79),
        logged(80, &[b"alone"]).bytes().to_vec(),
        step(80, 1, b"\x09\x01\x01a\x011\x0a\x03xid"),
    ];
    let newer = [
        logged(82, &[BEGAN, TAKEN_IN]).bytes().to_vec(),
        step(82, 0, b"\x0b\x03xid"),
        put(83),
        step(84, 1, b"\x0c\x01x\x09\x01\x01a\x011\x0a\x01x\x0b\x01x"),
    ];
    let far = [logged(90, &[BEGAN]).bytes().to_vec(), put(90)];
    let again = [logged(78, &[BEGAN, CREATED]).bytes().to_vec(), put(78)];
    [
        ("goes-on", &newer[..]),
        ("gap", &far),
        ("first-given-up", &again),
    ]
    .map(|(name, second)| {
        let (mut first, mut second) = (write(&older, 7), write(second, 9));
        let half = first.len().max(second.len());
        // Reserved space, so that each is half of the whole.
        first.resize(half, 0);
        second.resize(half, 0);
        let bytes = [&[128], &first[..], &second[..]].concat();
        ("changes", name.to_owned(), bytes)
    })
    .into()
}

fn write(payloads: &[Vec<u8>], number: u64) -> Vec<u8> {
    let files = StrictMemFileSystem::new();
    let path = Path::new("/log");
    let file = files.create(path, CreateOptions::new(FileKind::Wal));
    let mut writer = RecordWriter::recyclable(file.expect("memory has no limit"), number);
    for payload in payloads {
        writer.append(payload).expect("memory has no limit");
    }
    writer.close().expect("memory has no limit");
    let bytes = files.read_file(path, u64::MAX);
    bytes.expect("the file is there")
}
