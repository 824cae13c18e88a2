//! Elements in either form, as hashes and sets read and change them.

use std::ops::Deref;

use drumlin::PinnedSlice;
use drumlin_base::coding::{Reader, put_varint64};
use drumlin_base::{Error, Result};

use super::packed::{Element, Packed, Shape, entry_bytes, put_flags, read_flags};
use crate::events::EventClass;
use crate::failure::Outcome;
use crate::keys::{ELEMENT, split_u48, u48};
use crate::keyspace::{Keyspace, Old, sub_rest};
use crate::record::{Collection, EXPIRE_MS_MAX, FieldTimes, Kind, NewRecord, Record};
use crate::walk::Direction;

/// Largest payload of a whole value.
const WHOLE_BYTES_MAX: usize = 2 << 10;
/// Longest name or value in one.
const WHOLE_ELEMENT_BYTES_MAX: usize = 512;
/// The kind of the entries of elements by their expiries.
const TIME: u8 = b't';

/// A name with its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// A value where it was read.
#[derive(Debug)]
pub struct FieldValue {
    stored: PinnedSlice,
    /// Bytes before it.
    skipped: usize,
    expire_ms: Option<u64>,
}

impl FieldValue {
    /// When the field expires.
    pub fn expire_ms(&self) -> Option<u64> {
        self.expire_ms
    }
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
    Many {
        of: Collection,
        len: u64,
        timing: Timing,
    },
}

/// The expiries in a collection.
#[derive(Clone, Copy, Debug)]
struct Timing {
    /// Elements that have one.
    timed: u64,
    /// None is before.
    first_ms: u64,
}

impl Timing {
    const NONE: Self = Self {
        timed: 0,
        first_ms: EXPIRE_MS_MAX,
    };
}

/// See the module. What is changed has to be saved.
#[derive(Debug)]
pub(in crate::types) struct Elements {
    kind: Kind,
    record: Option<Record>,
    form: Form,
    /// What was to expire before is there no more.
    expired_ms: u64,
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
            expired_ms: 0,
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
        let decode = |record| Self::decode(record, keyspace.expired_ms());
        Ok(record.map(decode).transpose()?)
    }

    /// Those in a record, but for those that expired before a time.
    pub(in crate::types) fn decode(record: Record, expired_ms: u64) -> Result<Self> {
        let kind = record.kind();
        let damaged = || damaged("its record is not whole");
        let form = match record.collection() {
            None => {
                let packed = Packed::decode(record.payload(), Shape::of(kind))?;
                if packed.times() != record.field_times() {
                    return Err(damaged());
                }
                Form::Whole(packed)
            }
            Some(of) => {
                let (len, timing) = read_counts(&record).ok_or_else(damaged)?;
                Form::Many { of, len, timing }
            }
        };
        Ok(Self {
            kind,
            extras: record.extras(),
            record: Some(record),
            form,
            expired_ms,
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

    /// How many there are, with those that have expired and are not deleted yet.
    pub(in crate::types) fn len(&self) -> u64 {
        match &self.form {
            Form::Whole(packed) => packed.len() as u64,
            Form::Many { len, .. } => *len,
        }
    }

    /// The collection that has them, if they are one.
    pub(super) fn collection(&self) -> Option<Collection> {
        match self.form {
            Form::Whole(_) => None,
            Form::Many { of, .. } => Some(of),
        }
    }

    /// Whether an element that was found in this round is there still.
    pub(super) fn is_left(&self, keyspace: &Keyspace<'_>, name: &[u8]) -> bool {
        let is_deleted = |of| keyspace.has_deleted(of, name);
        let is_deleted = self.collection().is_some_and(is_deleted);
        !is_deleted || drumlin_base::bug!("redis-pop-of-one-that-is-gone")
    }

    fn shape(&self) -> Shape {
        Shape::of(self.kind)
    }

    /// How many there are. Costs a step for each one of a collection that has expired and is not deleted yet.
    pub(in crate::types) fn live_len(&self, keyspace: &Keyspace<'_>) -> Outcome<u64> {
        let mut len = self.len();
        match &self.form {
            Form::Whole(packed) => {
                let over = packed.iter().filter(|it| self.is_over(it.expire_ms));
                len -= over.count() as u64;
            }
            Form::Many { of, timing, .. } => {
                let (from, until) = (
                    time_key(timing.first_ms, b""),
                    time_key(self.expired_ms, b""),
                );
                if timing.first_ms < self.expired_ms {
                    let mut walk = keyspace.sub_walk(*of, &from, &until, Direction::Forward);
                    while walk.next()?.is_some() {
                        len = len.checked_sub(1).ok_or_else(too_few)?;
                    }
                }
            }
        }
        Ok(len)
    }

    /// Whether an element with this expiry is there no more.
    fn is_over(&self, expire_ms: Option<u64>) -> bool {
        expire_ms.is_some_and(|ms| ms < self.expired_ms)
    }

    /// The value of an element.
    pub(in crate::types) fn get(
        &self,
        keyspace: &Keyspace<'_>,
        name: &[u8],
    ) -> Outcome<Option<FieldValue>> {
        let found = self.stored(keyspace, name)?;
        Ok(found.filter(|value| !self.is_over(value.expire_ms)))
    }

    /// The value of an element that may have expired.
    fn stored(&self, keyspace: &Keyspace<'_>, name: &[u8]) -> Outcome<Option<FieldValue>> {
        let of = match &self.form {
            Form::Whole(packed) => {
                return Ok(packed.find(name).map(|element| FieldValue {
                    stored: PinnedSlice::owned(element.value.to_vec()),
                    skipped: 0,
                    expire_ms: element.expire_ms,
                }));
            }
            Form::Many { of, .. } => *of,
        };
        let Some(stored) = keyspace.element(of, name)? else {
            return Ok(None);
        };
        let (expire_ms, value) = split_entry(self.shape(), &stored)?;
        let skipped = stored.len() - value.len();
        Ok(Some(FieldValue {
            stored,
            skipped,
            expire_ms,
        }))
    }

    /// The expiry of an element that is stored: none if it is not.
    fn stored_expiry(&self, keyspace: &Keyspace<'_>, name: &[u8]) -> Outcome<Option<Option<u64>>> {
        match &self.form {
            Form::Whole(packed) => Ok(packed.find(name).map(|element| element.expire_ms)),
            Form::Many { .. } => {
                let value = self.stored(keyspace, name)?;
                Ok(value.map(|value| value.expire_ms))
            }
        }
    }

    /// Whether there is such an element.
    pub(in crate::types) fn contains(&self, keyspace: &Keyspace<'_>, name: &[u8]) -> Outcome<bool> {
        let expiry = self.stored_expiry(keyspace, name)?;
        Ok(expiry.is_some_and(|expire_ms| !self.is_over(expire_ms)))
    }

    /// Calls `take` with each name and value until it says no.
    pub(in crate::types) fn each(
        &self,
        keyspace: &Keyspace<'_>,
        mut take: impl FnMut(&[u8], &[u8]) -> Outcome<bool>,
    ) -> Outcome<()> {
        self.each_element(keyspace, |element| take(element.name, element.value))
    }

    /// Calls `take` with each element until it says no.
    pub(in crate::types) fn each_element(
        &self,
        keyspace: &Keyspace<'_>,
        mut take: impl FnMut(Element<'_>) -> Outcome<bool>,
    ) -> Outcome<()> {
        match &self.form {
            Form::Whole(packed) => {
                for element in packed.iter() {
                    if !self.is_over(element.expire_ms) && !take(element)? {
                        break;
                    }
                }
            }
            Form::Many { .. } => {
                self.each_from(keyspace, 0, |_, element| take(element))?;
            }
        }
        Ok(())
    }

    /// As [`Elements::each`], of a collection, from a hash on, and with the hashes; whether `take` always said yes.
    pub(super) fn each_from(
        &self,
        keyspace: &Keyspace<'_>,
        hash: u64,
        mut take: impl FnMut(u64, Element<'_>) -> Outcome<bool>,
    ) -> Outcome<bool> {
        let Form::Many { of, .. } = self.form else {
            return Ok(true);
        };
        let from = [&[ELEMENT][..], &hash.to_be_bytes()].concat();
        let mut walk = keyspace.sub_walk(of, &from, &[ELEMENT + 1], Direction::Forward);
        while let Some((key, stored)) = walk.next()? {
            let split = || sub_rest(key).get(1..)?.split_first_chunk::<8>();
            let (hash, name) = split().ok_or_else(|| damaged("the key of an element is cut"))?;
            let (expire_ms, value) = split_entry(self.shape(), stored)?;
            let element = Element {
                name,
                value,
                expire_ms,
            };
            if !self.is_over(expire_ms) && !take(u64::from_be_bytes(*hash), element)? {
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
            let there = packed.iter().filter(|it| !self.is_over(it.expire_ms));
            pairs.extend(there.map(|it| (it.name.to_vec(), it.value.to_vec())));
            return Ok((0, pairs));
        }
        let (mut next, mut last) = (0, cursor);
        self.each_from(keyspace, cursor, |hash, element| {
            // Elements of one hash come together.
            if pairs.len() as u64 >= count.max(1) && hash != last {
                next = match drumlin_base::bug!("redis-scan-passes-an-element") {
                    true => hash.wrapping_add(1),
                    false => hash,
                };
                return Ok(false);
            }
            last = hash;
            pairs.push((element.name.to_vec(), element.value.to_vec()));
            Ok(true)
        })?;
        Ok((next, pairs))
    }

    // Changes.

    /// Adds an element, or puts it in the place of the one of this name; whether it is new.
    pub(in crate::types) fn put(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        key: &[u8],
        element: Element<'_>,
    ) -> Outcome<bool> {
        let before = self.stored_expiry(keyspace, element.name)?;
        self.put_known(keyspace, key, element, before.is_none())?;
        self.retime(keyspace, element, before.flatten())?;
        Ok(before.is_none_or(|expire_ms| self.is_over(expire_ms)))
    }

    /// As [`Elements::put`], where it is known whether the element is new, and where no element expires.
    pub(in crate::types) fn put_known(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        key: &[u8],
        element: Element<'_>,
        is_new: bool,
    ) -> Outcome<()> {
        let shape = self.shape();
        if let Form::Whole(packed) = &mut self.form {
            let longest = element.name.len().max(element.value.len());
            // One more may need a longer count.
            let size = packed.size() + entry_bytes(shape, element) + 1;
            if longest <= WHOLE_ELEMENT_BYTES_MAX && size <= WHOLE_BYTES_MAX {
                packed.put(element);
                return Ok(());
            }
            self.grow(keyspace, key)?;
        }
        if let Form::Many { of, len, .. } = &mut self.form {
            *len += u64::from(is_new);
            put_element(keyspace, *of, shape, element);
        }
        Ok(())
    }

    /// Has the entries by time of a collection follow an element that was put or removed, and had the expiry `before`.
    fn retime(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        element: Element<'_>,
        before: Option<u64>,
    ) -> Outcome<()> {
        let Form::Many { of, timing, .. } = &mut self.form else {
            return Ok(());
        };
        if before == element.expire_ms {
            return Ok(());
        }
        if let Some(ms) = before {
            timing.timed = timing.timed.checked_sub(1).ok_or_else(too_few)?;
            if !drumlin_base::bug!("redis-time-outlives-its-field") {
                keyspace.sub_delete(*of, &time_key(ms, element.name));
            }
        }
        if let Some(ms) = element.expire_ms {
            timing.timed += 1;
            timing.first_ms = timing.first_ms.min(ms);
            keyspace.sub_put(*of, &time_key(ms, element.name), Vec::new());
        }
        Ok(())
    }

    /// Makes a collection of a whole value.
    fn grow(&mut self, keyspace: &mut Keyspace<'_>, key: &[u8]) -> Outcome<()> {
        if let Form::Whole(packed) = &self.form {
            let of = keyspace.new_collection(key)?;
            let mut timing = Timing::NONE;
            for element in packed.iter() {
                put_element(keyspace, of, self.shape(), element);
                if let Some(ms) = element.expire_ms {
                    timing.timed += 1;
                    timing.first_ms = timing.first_ms.min(ms);
                    keyspace.sub_put(of, &time_key(ms, element.name), Vec::new());
                }
            }
            let len = packed.len() as u64;
            self.form = Form::Many { of, len, timing };
        }
        Ok(())
    }

    /// Removes an element; whether there was one.
    pub(in crate::types) fn remove(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        name: &[u8],
    ) -> Outcome<bool> {
        let before = self.stored_expiry(keyspace, name)?;
        let Some(expire_ms) = before.filter(|expire_ms| !self.is_over(*expire_ms)) else {
            return Ok(false);
        };
        self.remove_stored(keyspace, name, expire_ms)?;
        Ok(true)
    }

    /// Removes an element that is there and has this expiry.
    pub(super) fn remove_stored(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        name: &[u8],
        expire_ms: Option<u64>,
    ) -> Outcome<()> {
        match &mut self.form {
            Form::Whole(packed) => {
                packed.remove(name);
            }
            Form::Many { of, len, .. } => {
                keyspace.set_element(*of, name, None);
                *len = len.checked_sub(1).ok_or_else(too_few)?;
            }
        }
        let gone = Element {
            name,
            value: &[],
            expire_ms: None,
        };
        self.retime(keyspace, gone, expire_ms)
    }

    /// Removes up to `most` elements that have expired, all of a whole value; their names, and whether more are left.
    pub(in crate::types) fn remove_expired(
        &mut self,
        keyspace: &mut Keyspace<'_>,
        most: usize,
    ) -> Outcome<(Vec<Vec<u8>>, bool)> {
        let (mut due, mut next_ms) = (Vec::new(), EXPIRE_MS_MAX);
        match &self.form {
            Form::Whole(packed) => {
                let over = packed.iter().filter(|it| self.is_over(it.expire_ms));
                due.extend(over.map(|it| (it.expire_ms, it.name.to_vec())));
            }
            Form::Many { of, timing, .. } => {
                let (from, until) = (time_key(timing.first_ms, b""), [TIME + 1]);
                let mut walk = keyspace.sub_walk(*of, &from, &until, Direction::Forward);
                while let Some((key, _)) = walk.next()? {
                    let (ms, name) = split_time(key)?;
                    if due.len() == most || ms >= self.expired_ms {
                        next_ms = ms;
                        break;
                    }
                    due.push((Some(ms), name.to_vec()));
                }
            }
        }
        for (expire_ms, name) in &due {
            self.remove_stored(keyspace, name, *expire_ms)?;
        }
        if let Form::Many { timing, .. } = &mut self.form {
            if (timing.timed == 0) != (next_ms == EXPIRE_MS_MAX) {
                return Err(too_few().into());
            }
            timing.first_ms = next_ms;
        }
        let names = due.into_iter().map(|(_, name)| name);
        Ok((names.collect(), next_ms < self.expired_ms))
    }

    /// When they expire; `None` if none of them does.
    fn times(&self, keyspace: &Keyspace<'_>) -> Outcome<Option<FieldTimes>> {
        let (of, len, timing) = match &self.form {
            Form::Whole(packed) => return Ok(packed.times()),
            Form::Many { of, len, timing } => (*of, *len, *timing),
        };
        if timing.timed == 0 {
            return Ok(None);
        }
        let mut last_ms = EXPIRE_MS_MAX;
        if timing.timed == len {
            let mut walk = keyspace.sub_walk(of, &[TIME], &[TIME + 1], Direction::Backward);
            let (key, _) = walk.next()?.ok_or_else(too_few)?;
            (last_ms, _) = split_time(key)?;
        }
        let first_ms = timing.first_ms.min(last_ms);
        Ok(Some(FieldTimes { first_ms, last_ms }))
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
        let new = self.to_record(keyspace)?;
        let old = match old {
            Some(record) => Old::Is(Some(record)),
            None => Old::Unknown,
        };
        keyspace.put(key, old, new)
    }

    /// Stores them where nothing changed that a client sees.
    pub(in crate::types) fn save_unseen(
        &self,
        keyspace: &mut Keyspace<'_>,
        key: &[u8],
    ) -> Outcome<()> {
        let new = self.to_record(keyspace)?;
        keyspace.put_unseen(key, self.record.as_ref(), new);
        Ok(())
    }

    fn to_record(&self, keyspace: &Keyspace<'_>) -> Outcome<NewRecord> {
        let expire_ms = self.record.as_ref().and_then(Record::expire_ms);
        let of = match &self.form {
            Form::Whole(_) => None,
            Form::Many { of, .. } => Some(*of),
        };
        let times = self.times(keyspace)?;
        let mut new = NewRecord::timed(self.kind, of, expire_ms, self.extras, times);
        match &self.form {
            Form::Whole(packed) => packed.encode(new.payload()),
            Form::Many { len, timing, .. } => {
                put_varint64(new.payload(), *len);
                if times.is_some() {
                    put_varint64(new.payload(), timing.timed);
                }
            }
        }
        Ok(new)
    }
}

fn too_few() -> Error {
    damaged("it has less or more than its count")
}

/// The number of elements in the record of a collection, and their expiries.
fn read_counts(record: &Record) -> Option<(u64, Timing)> {
    let mut reader = Reader::new(record.payload());
    let len = reader.varint64().filter(|len| *len > 0)?;
    let mut timing = Timing::NONE;
    if let Some(times) = record.field_times() {
        timing.first_ms = times.first_ms;
        timing.timed = reader
            .varint64()
            .filter(|timed| (1..=len).contains(timed))?;
        let all_end = times.last_ms < EXPIRE_MS_MAX;
        if all_end != (timing.timed == len) {
            return None;
        }
    }
    reader.is_empty().then_some((len, timing))
}

/// The expiry and the value in an entry of a collection.
fn split_entry(shape: Shape, stored: &[u8]) -> Result<(Option<u64>, &[u8])> {
    let split = match shape {
        Shape::Names => stored.is_empty().then_some((None, stored)),
        Shape::Pairs => {
            let mut reader = Reader::new(stored);
            read_flags(&mut reader).map(|expire_ms| (expire_ms, reader.rest()))
        }
    };
    split.ok_or_else(|| damaged("an element's entry has another form"))
}

/// The key of an entry by time.
fn time_key(ms: u64, name: &[u8]) -> Vec<u8> {
    [&[TIME][..], &u48(ms), name].concat()
}

fn split_time(key: &[u8]) -> Result<(u64, &[u8])> {
    let split = sub_rest(key).get(1..).and_then(split_u48);
    split.ok_or_else(|| damaged("the key of a time is cut"))
}

fn put_element(keyspace: &mut Keyspace<'_>, of: Collection, shape: Shape, element: Element<'_>) {
    let mut stored = Vec::new();
    if shape == Shape::Pairs {
        stored.reserve_exact(entry_bytes(shape, element));
        put_flags(&mut stored, element.expire_ms);
        stored.extend_from_slice(element.value);
    }
    keyspace.set_element(of, element.name, Some(stored));
}
