//! Answers as text in a history: short, and the same for the same bytes.

use std::fmt::Write as _;

use crate::op::Escaped;

/// FNV-1a over pieces, each with its length, so that no two lists of pieces run into one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest {
    hash: u64,
    pieces: u64,
}

impl Digest {
    pub(crate) fn new() -> Self {
        Self {
            hash: 0xCBF2_9CE4_8422_2325,
            pieces: 0,
        }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let len = (bytes.len() as u64).to_le_bytes();
        for byte in len.iter().chain(bytes) {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
        self.pieces += 1;
    }

    pub(crate) fn text(self) -> String {
        format!("{} of {:016x}", self.pieces, self.hash)
    }
}

/// A value, or that there is none.
pub(crate) fn value(value: Option<&[u8]>) -> String {
    match value {
        None => "none".to_owned(),
        Some(bytes) if bytes.len() <= 16 => format!("{}", Escaped(bytes)),
        Some(bytes) => {
            let mut digest = Digest::new();
            digest.add(bytes);
            format!("{} bytes, {:016x}", bytes.len(), digest.hash)
        }
    }
}

/// Several values.
pub(crate) fn values<'a>(values: impl IntoIterator<Item = Option<&'a [u8]>>) -> String {
    let mut digest = Digest::new();
    for value in values {
        digest.add(&[u8::from(value.is_some())]);
        digest.add(value.unwrap_or_default());
    }
    digest.text()
}

/// Where an iterator stands.
pub(crate) fn row(row: Option<(&[u8], &[u8])>) -> String {
    match row {
        None => "end".to_owned(),
        Some((key, bytes)) => format!("{} = {}", Escaped(key), value(Some(bytes))),
    }
}

/// Rows in the order given.
pub(crate) fn rows<'a>(rows: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> String {
    let mut digest = Digest::new();
    for (key, value) in rows {
        digest.add(key);
        digest.add(value);
    }
    digest.text()
}

/// Families with the answer for each.
pub(crate) fn families(families: impl IntoIterator<Item = (String, String)>) -> String {
    let mut text = String::new();
    for (name, said) in families {
        let gap = if text.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{gap}{name}: {said}");
    }
    text
}
