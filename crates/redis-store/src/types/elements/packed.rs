//! Elements in one piece of memory: the payload of a whole value.

use std::ops::Range;

use drumlin_base::coding::{Reader, put_slice, put_varint64, varint_len};
use drumlin_base::{Error, Result};

use crate::record::Kind;

/// The flags of an element without any.
pub(super) const PLAIN: u8 = 0;

/// What an element consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Names,
    Pairs,
}

impl Shape {
    pub(super) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Hash => Self::Pairs,
            _ => Self::Names,
        }
    }
}

/// An element and its place in the bytes.
#[derive(Clone, Debug)]
pub(super) struct Entry<'p> {
    pub(super) name: &'p [u8],
    /// Empty where elements have none.
    pub(super) value: &'p [u8],
    place: Range<usize>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    count: usize,
    shape: Shape,
}

impl Packed {
    /// Without elements.
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            bytes: Vec::new(),
            count: 0,
            shape,
        }
    }

    /// The elements in a record's payload.
    pub(super) fn decode(payload: &[u8], shape: Shape) -> Result<Self> {
        let damaged = || Error::corruption("a value of the keyspace is not whole");
        let mut reader = Reader::new(payload);
        let count = reader.varint32().ok_or_else(damaged)?;
        let packed = Self {
            bytes: reader.rest().to_vec(),
            count: count as usize,
            shape,
        };
        let mut reader = Reader::new(&packed.bytes);
        for _ in 0..count {
            read(&mut reader, shape).ok_or_else(damaged)?;
        }
        match count > 0 && reader.is_empty() {
            true => Ok(packed),
            false => Err(damaged()),
        }
    }

    /// Appends the payload.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.count as u64);
        out.extend_from_slice(&self.bytes);
    }

    /// Bytes of the payload.
    pub(super) fn size(&self) -> usize {
        varint_len(self.count as u64) + self.bytes.len()
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The elements, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut reader = Reader::new(&self.bytes);
        (0..self.count).filter_map(move |_| {
            let start = self.bytes.len() - reader.rest().len();
            let (name, value) = read(&mut reader, self.shape)?;
            let end = self.bytes.len() - reader.rest().len();
            Some(Entry {
                name,
                value,
                place: start..end,
            })
        })
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<Entry<'_>> {
        self.iter().find(|entry| entry.name == name)
    }

    /// Adds an element at the end, or gives the one of this name another value.
    pub(super) fn put(&mut self, name: &[u8], value: &[u8]) {
        let place = self.find(name).map(|entry| entry.place);
        self.count += usize::from(place.is_none());
        let place = place.unwrap_or(self.bytes.len()..self.bytes.len());
        let mut entry = Vec::with_capacity(entry_bytes(self.shape, name, value));
        if self.shape == Shape::Pairs {
            entry.push(PLAIN);
        }
        put_slice(&mut entry, name);
        if self.shape == Shape::Pairs {
            put_slice(&mut entry, value);
        }
        self.bytes.splice(place, entry);
    }

    /// Whether there was such an element.
    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        let place = self.find(name).map(|entry| entry.place);
        let Some(place) = place else {
            return false;
        };
        self.bytes.drain(place);
        self.count -= 1;
        true
    }
}

/// Most bytes that an element takes.
pub(super) fn entry_bytes(shape: Shape, name: &[u8], value: &[u8]) -> usize {
    let slice = |bytes: &[u8]| varint_len(bytes.len() as u64) + bytes.len();
    match shape {
        Shape::Names => slice(name),
        Shape::Pairs => 1 + slice(name) + slice(value),
    }
}

fn read<'p>(reader: &mut Reader<'p>, shape: Shape) -> Option<(&'p [u8], &'p [u8])> {
    match shape {
        Shape::Names => Some((reader.slice()?, &[])),
        Shape::Pairs => {
            let flags = reader.u8()?;
            let pair = (reader.slice()?, reader.slice()?);
            (flags == PLAIN).then_some(pair)
        }
    }
}
