//! One operation, and its line in an op file.
//!
//! ```text
//! put-synced f=a1 e=put:default:k007:40.17
//! iter-new f=default s=2 k=k003 k=k090
//! ```
//!
//! A line is the kind's name and then fields, in this order and only those in use: `f` family, `s`
//! slot (of an iterator or a snapshot), `a` slot of the snapshot to read at, `n` number, `k` keys, `e`
//! edits. Bytes that are not letters or digits stand as `%` and two hexadecimal digits. Values are
//! given as length and seed, so that a line stays short.

use std::fmt;

use drumlin_base::rng::Rng;
use drumlin_testkit::model::Change;

use crate::verb::Verb;

/// The kind of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditKind {
    /// Sets the key.
    Put,
    /// Removes the key.
    Delete,
    /// Removes the key, put once.
    Single,
    /// Adds the value as an operand.
    Merge,
    /// Removes from the key to the end.
    Range,
}

const EDIT_NAMES: [(EditKind, &str); 5] = [
    (EditKind::Put, "put"),
    (EditKind::Delete, "delete"),
    (EditKind::Single, "single"),
    (EditKind::Merge, "merge"),
    (EditKind::Range, "range"),
];

/// One change of one key or range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The kind of change.
    pub kind: EditKind,
    /// The family.
    pub family: String,
    /// The key, or the first key of a range.
    pub key: Vec<u8>,
    /// The end of a range, which is not in it.
    pub end: Vec<u8>,
    /// The value.
    pub value: ValueSpec,
}

/// A value, by length and seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueSpec {
    /// Bytes.
    pub len: u32,
    /// The seed of the bytes: even seeds make text that compresses.
    pub seed: u32,
}

impl ValueSpec {
    /// The bytes.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.len as usize];
        Rng::new(u64::from(self.seed)).fill(&mut bytes);
        if self.seed.is_multiple_of(2) {
            bytes.iter_mut().for_each(|byte| *byte = b'a' + *byte % 4);
        }
        bytes
    }
}

impl Edit {
    /// The change, for the model.
    pub fn change(&self) -> Change {
        let (key, value) = (self.key.clone(), || self.value.bytes());
        match self.kind {
            EditKind::Put => Change::Put(key, value()),
            EditKind::Delete => Change::Delete(key),
            EditKind::Single => Change::SingleDelete(key),
            EditKind::Merge => Change::Merge(key, value()),
            EditKind::Range => Change::DeleteRange(key, self.end.clone()),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let name = parts.next()?;
        let kind = EDIT_NAMES.iter().find(|(_, known)| *known == name)?.0;
        let family = parts.next()?.to_owned();
        let key = bytes_of(parts.next()?)?;
        let (mut end, mut value) = (Vec::new(), ValueSpec::default());
        match (kind, parts.next()) {
            (EditKind::Range, Some(text)) => end = bytes_of(text)?,
            (EditKind::Put | EditKind::Merge, Some(text)) => {
                let (len, seed) = text.split_once('.')?;
                value.len = len.parse().ok()?;
                value.seed = seed.parse().ok()?;
            }
            (EditKind::Delete | EditKind::Single, None) => {}
            _ => return None,
        }
        Some(Self {
            kind,
            family,
            key,
            end,
            value,
        })
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = EDIT_NAMES.iter().find(|(kind, _)| *kind == self.kind);
        let name = name.map_or("", |(_, name)| *name);
        write!(f, "{name}:{}:{}", self.family, Escaped(&self.key))?;
        match self.kind {
            EditKind::Range => write!(f, ":{}", Escaped(&self.end)),
            EditKind::Put | EditKind::Merge => {
                write!(f, ":{}.{}", self.value.len, self.value.seed)
            }
            EditKind::Delete | EditKind::Single => Ok(()),
        }
    }
}

/// One operation. Its two performers know the fields that a kind uses; the others stay empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// Its kind.
    pub verb: Verb,
    /// The family it is about.
    pub family: String,
    /// The iterator or snapshot it is about.
    pub slot: usize,
    /// The snapshot to read at.
    pub at: usize,
    /// A number: a distance, a count or a seed.
    pub count: u64,
    /// Keys.
    pub keys: Vec<Vec<u8>>,
    /// Changes.
    pub edits: Vec<Edit>,
}

impl Op {
    /// An operation with only the kind set.
    pub fn new(verb: Verb) -> Self {
        Self {
            verb,
            family: String::new(),
            slot: 0,
            at: 0,
            count: 0,
            keys: Vec::new(),
            edits: Vec::new(),
        }
    }

    /// The key at `index`, or an empty one.
    pub fn key(&self, index: usize) -> &[u8] {
        self.keys.get(index).map_or(b"", Vec::as_slice)
    }

    /// Reads a line.
    ///
    /// # Errors
    /// The line, when it is none.
    pub fn parse(line: &str) -> Result<Self, String> {
        Self::parse_fields(line).ok_or_else(|| format!("no operation: {line}"))
    }

    fn parse_fields(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let mut op = Self::new(Verb::from_name(words.next()?)?);
        for word in words {
            let (name, text) = word.split_once('=')?;
            match name {
                "f" => op.family = text.to_owned(),
                "s" => op.slot = text.parse().ok()?,
                "a" => op.at = text.parse().ok()?,
                "n" => op.count = text.parse().ok()?,
                "k" => op.keys.push(bytes_of(text)?),
                "e" => op.edits.push(Edit::parse(text)?),
                _ => return None,
            }
        }
        Some(op)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.name())?;
        if !self.family.is_empty() {
            write!(f, " f={}", self.family)?;
        }
        for (name, number) in [("s", self.slot as u64), ("a", self.at as u64)] {
            if number > 0 {
                write!(f, " {name}={number}")?;
            }
        }
        if self.count > 0 {
            write!(f, " n={}", self.count)?;
        }
        for key in &self.keys {
            write!(f, " k={}", Escaped(key))?;
        }
        self.edits
            .iter()
            .try_for_each(|edit| write!(f, " e={edit}"))
    }
}

/// Reads an op file: a line each, `#` begins a comment.
///
/// # Errors
/// The first line that is no operation.
pub fn parse_ops(text: &str) -> Result<Vec<Op>, String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(Op::parse).collect()
}

/// Bytes as an op file shows them.
#[derive(Debug)]
pub struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() => write!(f, "{}", char::from(*byte)),
            byte => write!(f, "%{byte:02x}"),
        })
    }
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = rest.get(2..)?;
    }
    Some(bytes)
}
