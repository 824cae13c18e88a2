//! File names and other small texts: parsing never panics and inverts writing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use drumlin::internals::names::{self, FileName};
use drumlin_table::{ChecksumKind, Codec};

pub(crate) fn run(data: &[u8]) {
    let name = Path::new(OsStr::from_bytes(data));
    if let Some(parsed) = FileName::parse(name) {
        check(parsed);
    }
    let codec = std::str::from_utf8(data)
        .ok()
        .and_then(|text| text.parse::<Codec>().ok());
    assert_eq!(
        codec.and_then(|codec| codec.to_string().parse().ok()),
        codec
    );
    for &byte in data.iter().take(4) {
        if let Ok(kind) = ChecksumKind::from_byte(byte) {
            assert_eq!(kind as u8, byte);
        }
    }
}

/// The name made from a parsed one is parsed the same. Leading zeros are lost, so the text may
/// differ.
fn check(parsed: FileName) {
    let empty = Path::new("");
    let again = match parsed {
        FileName::Wal(number) => names::wal(empty, number),
        FileName::Table(number) => names::table(empty, number),
        FileName::Manifest(number) => names::manifest(empty, number),
        FileName::Options(number) => names::options(empty, number),
        FileName::Blob(number) => names::blob(empty, number),
        FileName::Model(id) => names::model(empty, id),
        FileName::Temp(number) => names::temp(empty, number),
        FileName::Current => names::current(empty),
        FileName::Lock => names::lock(empty),
        FileName::Identity => names::identity(empty),
        FileName::Archive => names::archive(empty),
        FileName::Restoring => names::restoring(empty),
        FileName::InfoLog | FileName::Trash(_) => return, // Of many names one number.
    };
    assert_eq!(FileName::parse(&again), Some(parsed), "{again:?}");
}
