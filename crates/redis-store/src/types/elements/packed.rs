//! Elements in one piece of memory: the payload of a whole value.

use std::ops::Range;

use drumlin_base::coding::{Reader, put_slice, put_varint64, varint_len};
use drumlin_base::{Error, Result};

use crate::keys::{from_u48, u48};
use crate::record::{EXPIRE_MS_MAX, FieldTimes, Kind};

/// The flags of an element without any.
const PLAIN: u8 = 0;
/// The element has an expiry.
const TIMED: u8 = 1;

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

/// An element.
#[derive(Clone, Copy, Debug)]
pub(in crate::types) struct Element<'p> {
    pub(in crate::types) name: &'p [u8],
    /// Empty where elements have none.
    pub(in crate::types) value: &'p [u8],
    /// Fields only.
    pub(in crate::types) expire_ms: Option<u64>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    count: usize,
    /// Elements with an expiry.
    timed: usize,
    shape: Shape,
}

impl Packed {
    /// Without elements.
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            bytes: Vec::new(),
            count: 0,
            timed: 0,
            shape,
        }
    }

    /// The elements in a record's payload.
    pub(super) fn decode(payload: &[u8], shape: Shape) -> Result<Self> {
        let damaged = || Error::corruption("a value of the keyspace is not whole");
        let mut reader = Reader::new(payload);
        let count = reader.varint32().ok_or_else(damaged)?;
        let bytes = reader.rest().to_vec();
        let mut reader = Reader::new(&bytes);
        let mut timed = 0;
        for _ in 0..count {
            let element = read(&mut reader, shape).ok_or_else(damaged)?;
            timed += usize::from(element.expire_ms.is_some());
        }
        if count == 0 || !reader.is_empty() {
            return Err(damaged());
        }
        Ok(Self {
            bytes,
            count: count as usize,
            timed,
            shape,
        })
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

    /// When they expire; `None` if none of them does.
    pub(super) fn times(&self) -> Option<FieldTimes> {
        if self.timed == 0 {
            return None;
        }
        let times = || self.iter().filter_map(|element| element.expire_ms);
        let last_ms = match self.timed == self.count {
            true => times().max(),
            false => None,
        };
        Some(FieldTimes {
            first_ms: times().min()?,
            last_ms: last_ms.unwrap_or(EXPIRE_MS_MAX),
        })
    }

    /// The elements, in the order in which they came, with their places in the bytes.
    fn entries(&self) -> impl Iterator<Item = (Element<'_>, Range<usize>)> {
        let mut reader = Reader::new(&self.bytes);
        (0..self.count).filter_map(move |_| {
            let start = self.bytes.len() - reader.rest().len();
            let element = read(&mut reader, self.shape)?;
            let end = self.bytes.len() - reader.rest().len();
            Some((element, start..end))
        })
    }

    /// The elements, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = Element<'_>> {
        self.entries().map(|(element, _)| element)
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<Element<'_>> {
        self.iter().find(|element| element.name == name)
    }

    /// The place of an element, and whether it has an expiry.
    fn place(&self, name: &[u8]) -> Option<(Range<usize>, bool)> {
        let mut entries = self.entries();
        let (element, place) = entries.find(|(element, _)| element.name == name)?;
        Some((place, element.expire_ms.is_some()))
    }

    /// Adds an element at the end, or puts it in the place of the one of this name.
    pub(super) fn put(&mut self, element: Element<'_>) {
        let place = self.place(element.name);
        let was_timed = place.as_ref().is_some_and(|(_, is_timed)| *is_timed);
        self.count += usize::from(place.is_none());
        self.timed += usize::from(element.expire_ms.is_some());
        self.timed -= usize::from(was_timed);
        let end = self.bytes.len()..self.bytes.len();
        let place = place.map_or(end, |(place, _)| place);
        let mut entry = Vec::with_capacity(entry_bytes(self.shape, element));
        if self.shape == Shape::Pairs {
            put_flags(&mut entry, element.expire_ms);
        }
        put_slice(&mut entry, element.name);
        if self.shape == Shape::Pairs {
            put_slice(&mut entry, element.value);
        }
        self.bytes.splice(place, entry);
    }

    /// Whether there was such an element.
    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        let Some((place, was_timed)) = self.place(name) else {
            return false;
        };
        self.bytes.drain(place);
        self.count -= 1;
        self.timed -= usize::from(was_timed);
        true
    }
}

/// Most bytes that an element takes.
pub(super) fn entry_bytes(shape: Shape, element: Element<'_>) -> usize {
    let slice = |bytes: &[u8]| varint_len(bytes.len() as u64) + bytes.len();
    let flags = if element.expire_ms.is_some() { 7 } else { 1 };
    match shape {
        Shape::Names => slice(element.name),
        Shape::Pairs => flags + slice(element.name) + slice(element.value),
    }
}

/// Appends the flags of a field, and its expiry.
pub(super) fn put_flags(out: &mut Vec<u8>, expire_ms: Option<u64>) {
    match expire_ms {
        None => out.push(PLAIN),
        Some(ms) => {
            out.push(TIMED);
            out.extend_from_slice(&u48(ms));
        }
    }
}

/// The expiry of a field, from its flags on.
pub(super) fn read_flags(reader: &mut Reader<'_>) -> Option<Option<u64>> {
    match reader.u8()? {
        PLAIN => Some(None),
        TIMED => {
            let ms = from_u48(*reader.bytes(6)?.first_chunk()?);
            (ms < EXPIRE_MS_MAX).then_some(Some(ms))
        }
        _ => None,
    }
}

fn read<'p>(reader: &mut Reader<'p>, shape: Shape) -> Option<Element<'p>> {
    let expire_ms = match shape {
        Shape::Names => None,
        Shape::Pairs => read_flags(reader)?,
    };
    let name = reader.slice()?;
    let value = match shape {
        Shape::Names => &[],
        Shape::Pairs => reader.slice()?,
    };
    Some(Element {
        name,
        value,
        expire_ms,
    })
}
