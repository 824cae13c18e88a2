//! Elements in either form, as hashes and sets read and change them.

use std::ops::Deref;

use drumlin::PinnedSlice;
use drumlin_base::coding::{Reader, put_varint64};
use drumlin_base::{Error, Result};

use super::packed::{PLAIN, Packed, Shape, entry_bytes};
use crate::events::EventClass;
use crate::failure::Outcome;
use crate::keys::element_key;
use crate::keyspace::{Keyspace, Old, sub_rest};
use crate::record::{Collection, Kind, NewRecord, Record};
use crate::walk::Direction;

/// Largest payload of a whole value.
const WHOLE_BYTES_MAX: usize = 2 << 10;
/// Longest name or value in one.
const WHOLE_ELEMENT_BYTES_MAX: usize = 512;
/// The kind of the entries of elements.
const ELEMENT: u8 = b'e';

/// A name with its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// A value where it was read.
#[derive(Debug)]
pub struct FieldValue {
    stored: PinnedSlice,
    /// Bytes before it.
    skipped: usize,
}

impl Deref for FieldValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.stored.get(self.skipped..).unwrap_or(&[])
    }
}

#[derive(Debug)]
enum Form {
    Whole(Packed),
    Many { of: Collection, len: u64 },
}

/// See the module. What is changed has to be saved.
#[derive(Debug)]
pub(in crate::types) struct Elements {
    kind: Kind,
    record: Option<Record>,
    form: Form,
    /// The extras of the record.
    pub(in crate::types) extras: u8,
}

pub(super) fn damaged(part: &str) -> Error {
    Error::corruption(format!("a hash or set: {part}"))
}

impl Elements {
    /// None, for a key that has no value or whose value goes.
    pub(in crate::types) fn new(kind: Kind) -> Self {
        Self {
            kind,
            record: None,
            form: Form::Whole(Packed::new(Shape::of(kind))),
            extras: 0,
        }
    }

    /// Those at `key`.
    pub(in crate::types) fn open(
        keyspace: &Keyspace<'_>,
        key: &[u8],
        kind: Kind,
    ) -> Outcome<Option<Self>> {
        let record = keyspace.lookup_as(key, kind)?;
        Ok(record.map(Self::decode).transpose()?)
    }

    /// Those in a record.
    pub(in crate::types) fn decode(record: Record) -> Result<Self> {
        let kind = record.kind();
        let form = match record.collection() {
            None => Form::Whole(Packed::decode(record.payload(), Shape::of(kind))?),
            Some(of) => {
                let mut reader = Reader::new(record.payload());
                let len = reader.varint64().filter(|len| *len > 0);
                let len = len.filter(|_| reader.is_empty());
                let len = len.ok_or_else(|| damaged("its record is not whole"))?;
                Form::Many { of, len }
            }
        };
        Ok(Self {
            kind,
            extras: record.extras(),
            record: Some(record),
            form,
        })
    }

    /// Those at `key`, or none.
    pub(in crate::types) fn open_or_new(
        keyspace: &Keyspace<'_>,
        key: &[u8],
        kind: Kind,
    ) -> Outcome<Self> {
        let found = Self::open(keyspace, key, kind)?;
        Ok(found.unwrap_or_else(|| Self::new(kind)))
    }

    pub(in crate::types) fn len(&self) -> u64 {
        match &self.form {
            Form::Whole(packed) => packed.len() as u64,
            Form::Many { len, .. } => *len,
        }
    }

    fn shape(&self) -> Shape {
        Shape::of(self.kind)
    }

    /// The value of an element.
    pub(in crate::types) fn get(
        &self,
        keyspace: &Keyspace<'_>,
        name: &[u8],
    ) -> Outcome<Option<FieldValue>> {
        let of = match &self.form {
            Form::Whole(packed) => {
                let value = packed.find(name).map(|entry| entry.value.to_vec());
                return Ok(value.map(|value| FieldValue {
                    stored: PinnedSlice::owned(value),
                    skipped: 0,
                }));
            }
            Form::Many { of, .. } => *of,
        };
        let key = element_key(keyspace.store().seed, ELEMENT, name);
        let Some(stored) = keyspace.sub_get(of, &key)? else {
            return Ok(None);
        };
        let skipped = stored.len() - value_in(self.shape(), &stored)?.len();
        Ok(Some(FieldValue { stored, skipped }))
    }

    /// Whether there is such an element.
    pub(in crate::types) fn contains(&self, keyspace: &Keyspace<'_>, name: &[u8]) -> Outcome<bool> {
        match &self.form {
            Form::Whole(packed) => Ok(packed.find(name).is_some()),
            Form::Many { .. } => Ok(self.get(keyspace, name)?.is_some()),
        }
    }

    /// Calls `take` with each name and value until it says no.
    pub(in crate::types) fn each(
        &self,
        keyspace: &Keyspace<'_>,
        mut take: impl FnMut(&[u8], &[u8]) -> Outcome<bool>,
    ) -> Outcome<()> {
        match &self.form {
            Form::Whole(packed) => {
                for entry in packed.iter() {
                    if !take(entry.name, entry.value)? {
                        break;
                    }
                }
            }
            Form::Many { .. } => {
                self.each_from(keyspace, 0, |_, name, value| take(name, value))?;
            }
        }
        Ok(())
    }

    /// As [`Elements::each`], of a collection, from a hash on, and with the hashes; whether `take` always said yes.
    pub(super) fn each_from(
        &self,
        keyspace: &Keyspace<'_>,
        hash: u64,
        mut take: impl FnMut(u64, &[u8], &[u8]) -> Outcome<bool>,
    ) -> Outcome<bool> {
        let Form::Many { of, .. } = self.form else {
            return Ok(true);
        };
        let from = [&[ELEMENT][..], &hash.to_be_bytes()].concat();
        let mut walk = keyspace.sub_walk(of, &from, &[ELEMENT + 1], Direction::Forward);
        while let Some((key, stored)) = walk.next()? {
            let split = || sub_rest(key).get(1..)?.split_first_chunk::<8>();
            let (hash, name) = split().ok_or_else(|| damaged("the key of an element is cut"))?;
            let value = value_in(self.shape(), stored)?;
            if !take(u64::from_be_bytes(*hash), name, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A step of a scan: about `count` elements from `cursor` on, and the next cursor, 0 at the end. An element that is there
    /// all the time is told. Those of a whole value come at once; a collection's come by their hash, which is the cursor.
    pub(in crate::types) fn scan(
        &self,
        keyspace: &Keyspace<'_>,
        cursor: u64,
        count: u64,
    ) -> Outcome<(u64, Vec<Pair>)> {
        let mut pairs = Vec::new();
        if let Form::Whole(packed) = &self.form {
            pairs.extend(
                packed
                    .iter()
                    .map(|it| (it.name.to_vec(), it.value.to_vec())),
            );
            return Ok((0, pairs));
        }
        let (mut next, mut last) = (0, cursor);
        self.each_from(keyspace, cursor, |hash, name, value| {
            // Elements of one hash come together.
            if pairs.len() as u64 >= count.max(1) && hash != last {
                next = match drumlin_base::bug!("redis-scan-passes-an-element") {
                    true => hash.wrapping_add(1),
                    false => hash,
                };
                return Ok(false);
            }
            last = hash;
            pairs.push((name.to_vec(), value.to_vec()));
            Ok(true)
        })?;
        Ok((next, pairs))
    }

    // Changes.

    /// Adds an element or changes its value; whether it is new.
    pub(in crate::types) fn put(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        key: &[u8],
        name: &[u8],
        value: &[u8],
    ) -> Outcome<bool> {
        let is_new = !self.contains(keyspace, name)?;
        self.put_known(keyspace, key, (name, value), is_new)?;
        Ok(is_new)
    }

    /// As [`Elements::put`], where it is known whether the element is new.
    pub(in crate::types) fn put_known(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        key: &[u8],
        (name, value): (&[u8], &[u8]),
        is_new: bool,
    ) -> Outcome<()> {
        let shape = self.shape();
        if let Form::Whole(packed) = &mut self.form {
            let is_long = name.len().max(value.len()) > WHOLE_ELEMENT_BYTES_MAX;
            // One more may need a longer count.
            let size = packed.size() + entry_bytes(shape, name, value) + 1;
            if !is_long && size <= WHOLE_BYTES_MAX {
                packed.put(name, value);
                return Ok(());
            }
            self.grow(keyspace, key)?;
        }
        if let Form::Many { of, len } = &mut self.form {
            *len += u64::from(is_new);
            put_element(keyspace, *of, shape, (name, value));
        }
        Ok(())
    }

    /// Makes a collection of a whole value.
    fn grow(&mut self, keyspace: &mut Keyspace<'_>, key: &[u8]) -> Outcome<()> {
        if let Form::Whole(packed) = &self.form {
            let of = keyspace.new_collection(key)?;
            for entry in packed.iter() {
                put_element(keyspace, of, self.shape(), (entry.name, entry.value));
            }
            let len = packed.len() as u64;
            self.form = Form::Many { of, len };
        }
        Ok(())
    }

    /// Removes an element; whether there was one.
    pub(in crate::types) fn remove(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        name: &[u8],
    ) -> Outcome<bool> {
        if matches!(self.form, Form::Many { .. }) && !self.contains(keyspace, name)? {
            return Ok(false);
        }
        match &mut self.form {
            Form::Whole(packed) => return Ok(packed.remove(name)),
            Form::Many { of, len } => {
                let key = element_key(keyspace.store().seed, ELEMENT, name);
                keyspace.sub_delete(*of, &key);
                *len = len
                    .checked_sub(1)
                    .ok_or_else(|| damaged("more elements than its count"))?;
            }
        }
        Ok(true)
    }

    /// Removes all elements. Costs no more than removing one: the collection dies.
    pub(in crate::types) fn clear(&mut self) {
        self.form = Form::Whole(Packed::new(self.shape()));
    }

    /// Stores them, or deletes the key if there are none, and tells so. Of [`Elements::new`], whatever the key had goes.
    pub(in crate::types) fn save(self, keyspace: &mut Keyspace<'_>, key: &[u8]) -> Outcome<()> {
        let old = self.record.as_ref();
        if self.len() == 0 && !drumlin_base::bug!("redis-emptied-value-stays") {
            if let Some(record) = old {
                keyspace.remove(key, record);
                keyspace.event(EventClass::Generic, "del", key);
            }
            return Ok(());
        }
        let expire_ms = old.and_then(Record::expire_ms);
        let of = match &self.form {
            Form::Whole(_) => None,
            Form::Many { of, .. } => Some(*of),
        };
        let mut new = NewRecord::new(self.kind, of, expire_ms, self.extras);
        match &self.form {
            Form::Whole(packed) => packed.encode(new.payload()),
            Form::Many { len, .. } => put_varint64(new.payload(), *len),
        }
        let old = match old {
            Some(record) => Old::Is(Some(record)),
            None => Old::Unknown,
        };
        keyspace.put(key, old, new)
    }
}

/// The value in an entry of a collection.
fn value_in(shape: Shape, stored: &[u8]) -> Result<&[u8]> {
    let value = match shape {
        Shape::Names => stored.is_empty().then_some(stored),
        Shape::Pairs => stored.strip_prefix(&[PLAIN]),
    };
    value.ok_or_else(|| damaged("an element's entry has another form"))
}

fn put_element(
    keyspace: &mut Keyspace<'_>,
    of: Collection,
    shape: Shape,
    (name, value): (&[u8], &[u8]),
) {
    let key = element_key(keyspace.store().seed, ELEMENT, name);
    let stored = match shape {
        Shape::Names => Vec::new(),
        Shape::Pairs => [&[PLAIN], value].concat(),
    };
    keyspace.sub_put(of, &key, stored);
}
