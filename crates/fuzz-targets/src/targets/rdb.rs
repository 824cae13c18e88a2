//! Redis's files: an accepted input is a value that can be written and reads back, and no claim costs
//! memory.

use drumlin_base::{ErrorKind, Result};
use drumlin_rdb::crc64::crc64;
use drumlin_rdb::{Encoding, Event, Limits, Reader, Value, Version, dump};
use drumlin_rdb::{intset, listpack, lzf, ziplist, zipmap};

use super::expect::blames_the_bytes;
use crate::input::Input;

/// Memory that a value may take.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// The value of `result`, or `None` when it rightly blames the bytes or their number.
fn taken<T>(result: Result<T>) -> Option<T> {
    let blamed = result.inspect_err(|error| {
        if error.kind() != ErrorKind::TooLarge {
            blames_the_bytes(error);
        }
    });
    blamed.ok()
}

/// A payload as it is, then as a body that gets its version and a right checksum.
pub(crate) fn run_dump(data: &[u8]) {
    payload(data);
    let mut sealed = [data, &12u16.to_le_bytes()].concat();
    let checksum = crc64(&sealed);
    sealed.extend_from_slice(&checksum.to_le_bytes());
    payload(&sealed);
}

fn payload(bytes: &[u8]) {
    let Some(value) = taken(dump::decode(bytes, VALUE_BYTES_MAX)) else {
        return;
    };
    let again = [
        dump::encode_for_most(&value),
        dump::encode(&value, &Encoding::compact(Version::V12)),
    ];
    let value = in_order(value);
    for payload in again {
        let payload = payload.expect("what was read can be written");
        let back = dump::decode(&payload, 2 * VALUE_BYTES_MAX).expect("what is written reads");
        assert_eq!(in_order(back), value);
    }
}

/// `value` in an order that no packing changes.
fn in_order(mut value: Value) -> Value {
    match &mut value {
        Value::Set(members) => members.sort(),
        Value::ZSet(members) => members.sort_by(|one, other| one.0.cmp(&other.0)),
        Value::Hash(fields) => fields.sort_by(|one, other| one.name.cmp(&other.name)),
        Value::String(_) | Value::List(_) | Value::Stream(_) => {}
    }
    value
}

/// A file as it is, then without a checksum, each time whole and in pieces of a length that the first byte says.
pub(crate) fn run_file(data: &[u8]) {
    let mut input = Input::new(data);
    let piece = 1 + usize::from(input.byte());
    let file = input.rest();
    pieces(file, piece);
    let mut unchecked = file.to_vec();
    let end = unchecked.len().saturating_sub(8);
    unchecked[end..].fill(0);
    pieces(&unchecked, piece);
}

/// Both readers say the same, event by event, and fail alike.
fn pieces(file: &[u8], piece: usize) {
    let limits = Limits {
        string_bytes_max: VALUE_BYTES_MAX,
        file_bytes: Some(file.len() as u64),
    };
    let (mut whole, mut pieced) = (Reader::new(limits), Reader::new(limits));
    whole.push(file);
    let mut pieces = file.chunks(piece);
    loop {
        let expected = taken(whole.event());
        let found = loop {
            match taken(pieced.event()) {
                Some(None) => match pieces.next() {
                    Some(piece) => pieced.push(piece),
                    None => break Some(None),
                },
                other => break other,
            }
        };
        assert_eq!(found, expected);
        match found {
            Some(Some(Event::End)) => assert!(pieced.finish().is_ok()),
            Some(Some(_)) => {}
            Some(None) | None => break,
        }
    }
    assert_eq!(whole.offset(), pieced.offset());
    assert_eq!(whole.finish().is_ok(), pieced.finish().is_ok());
}

pub(crate) fn run_listpack(data: &[u8]) {
    let mut writer = listpack::Writer::new();
    let mut texts = Vec::new();
    let walked = listpack::walk(data, |_, held| {
        texts.push(held.to_bytes());
        writer.push(&held.to_bytes());
        Ok(())
    });
    if taken(walked).is_none() {
        return;
    }
    let written = writer.finish().expect("as small as it was");
    let mut again = texts.iter();
    let count = listpack::walk(&written, |_, held| {
        assert_eq!(Some(&held.to_bytes()), again.next());
        Ok(())
    });
    assert_eq!(count.expect("what is written reads"), texts.len() as u64);
}

/// As a ziplist and as a zipmap.
pub(crate) fn run_ziplist(data: &[u8]) {
    for converted in [ziplist::to_listpack(data), zipmap::to_listpack(data)] {
        if let Some(listpack) = taken(converted) {
            listpack::walk(&listpack, |_, _| Ok(())).expect("what is written reads");
        }
    }
}

pub(crate) fn run_intset(data: &[u8]) {
    let mut members = Vec::new();
    if taken(intset::walk(data, |member| members.push(member))).is_none() {
        return;
    }
    let written = intset::encode(&mut members).expect("members that ascend");
    assert!(written.len() <= data.len(), "the narrowest width is taken");
    let mut again = members.iter();
    let walked = intset::walk(&written, |member| assert_eq!(Some(&member), again.next()));
    walked.expect("what is written reads");
}

/// The input: a claimed length in three bytes, then bytes that are taken as compressed and as a
/// string to compress.
pub(crate) fn run_lzf(data: &[u8]) {
    let mut input = Input::new(data);
    let claimed = (0..3).fold(0, |sum, _| sum << 8 | usize::from(input.byte()));
    let bytes = input.rest();
    if let Some(out) = taken(lzf::decompress(bytes, claimed)) {
        assert_eq!(out.len(), claimed);
    }
    let mut compressor = lzf::Compressor::new();
    for _ in 0..2 {
        if let Some(packed) = compressor.compress(bytes) {
            assert!(packed.len() + 4 <= bytes.len());
            let back = lzf::decompress(&packed, bytes.len()).expect("what is written reads");
            assert_eq!(back, bytes);
        }
    }
}
