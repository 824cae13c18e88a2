//! Logs: any file is read to an end that makes sense, and the records written come back, cut or
//! not.

use std::path::Path;

use drumlin::internals::record::{Later, RecordReader, RecordWriter, SyncedMark, Verdict};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

use super::expect::{memory_file, or_blamed};
use crate::input::Input;
use crate::reseal;

/// The log number that recyclable fragments are written with.
const LOG_NUMBER: u64 = 7;

/// Odd first bytes take the rest as a file, even ones as payloads to write.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    if input.below(2) == 0 {
        return written(&mut input);
    }
    let bytes = input.rest();
    foreign(bytes);
    let mut sealed = bytes.to_vec();
    reseal::log(&mut sealed);
    if sealed != bytes {
        foreign(&sealed);
    }
}

fn foreign(bytes: &[u8]) {
    for (later, log_number) in [(Later::Marks, LOG_NUMBER), (Later::Any, 0)] {
        let first = read(bytes, later, log_number);
        assert_eq!(
            first,
            read(bytes, later, log_number),
            "reading is repeatable"
        );
    }
}

/// Payloads and verdict, or `None` when reading or judging refused the file.
fn read(bytes: &[u8], later: Later, log_number: u64) -> Option<(Vec<Vec<u8>>, Verdict)> {
    let size = bytes.len() as u64;
    let mut reader = RecordReader::new(memory_file(bytes.to_vec()), log_number);
    let mut payloads = Vec::new();
    let mut last = None;
    while let Some(record) = or_blamed(reader.read())? {
        assert!(
            last.is_none_or(|last| last < record.offset),
            "offsets ascend"
        );
        assert!(record.offset < size);
        last = Some(record.offset);
        let _ = SyncedMark::in_batch(record.payload);
        payloads.push(record.payload.to_vec());
    }
    let end = reader.end().expect("the log was read to its end");
    assert!(end.offset <= end.fragment && end.fragment <= size);
    let total: usize = payloads.iter().map(Vec::len).sum();
    assert!(
        total as u64 <= end.offset,
        "payloads come from the sound part"
    );
    let verdict = or_blamed(reader.judge(later))?;
    if let Verdict::Torn { offset, .. } | Verdict::Corrupt { offset, .. } = &verdict {
        assert!(*offset <= size);
    }
    Some((payloads, verdict))
}

/// Writes payloads of sizes around a block's, reads them back whole, then cut.
fn written(input: &mut Input<'_>) {
    let recyclable = input.below(2) == 1;
    let cut = input.u64();
    let payloads = payloads(input);
    let bytes = write(&payloads, recyclable);
    let (back, verdict) = read(&bytes, Later::Any, LOG_NUMBER).expect("a sound log");
    assert_eq!((&back, verdict), (&payloads, Verdict::Clean));
    let cut = (cut % (bytes.len() as u64 + 1)) as usize;
    let (back, verdict) = read(&bytes[..cut], Later::Any, LOG_NUMBER).expect("a cut log");
    assert!(payloads.starts_with(&back), "a cut log is a prefix");
    assert!(
        !matches!(verdict, Verdict::Corrupt { .. }),
        "a cut is no damage: {verdict:?}"
    );
}

fn payloads(input: &mut Input<'_>) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    while !input.is_empty() && payloads.len() < 64 {
        let len = match input.below(4) {
            0 => 0,
            1 => usize::from(input.byte()),
            2 => usize::from(input.byte()) * 129,
            _ => 32_768 - 40 + usize::from(input.byte()),
        };
        payloads.push(vec![input.byte(); len]);
    }
    payloads
}

fn write(payloads: &[Vec<u8>], recyclable: bool) -> Vec<u8> {
    let files = StrictMemFileSystem::new();
    let path = Path::new("/log");
    let file = files.create(path, CreateOptions::new(FileKind::Wal));
    let file = file.expect("memory has no limit");
    let mut writer = match recyclable {
        true => RecordWriter::recyclable(file, LOG_NUMBER),
        false => RecordWriter::new(file),
    };
    for payload in payloads {
        writer.append(payload).expect("memory has no limit");
    }
    writer.close().expect("memory has no limit");
    let bytes = files.read_file(path, u64::MAX);
    bytes.expect("the file is there")
}
