//! Lists.
//!
//! *Whole*, up to 2 KiB and without an element over 512 bytes: varint of the elements, then each with the varint of its
//! length. *Collection*: the handle of a counted tree, whose entries are the elements by rank.

use std::collections::VecDeque;
use std::ops::Range;

use drumlin_base::coding::{Reader, put_slice, put_varint64, varint_len};
use drumlin_base::{Error, Result};

use crate::events::EventClass;
use crate::failure::Outcome;
use crate::keyspace::{Keyspace, Old};
use crate::record::{Kind, NewRecord, Record};
use crate::tree::{Shape, Tree};
use crate::walk::Direction;

/// Largest payload of a whole list, and its longest element.
const WHOLE_BYTES_MAX: usize = 2 << 10;
const WHOLE_ELEMENT_BYTES_MAX: usize = 512;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first element's.
    Left,
    /// The last element's.
    Right,
}

#[derive(Debug)]
enum Form {
    Whole(VecDeque<Vec<u8>>),
    Tree(Tree),
}

/// A list as a command reads and changes it. What was changed has to be saved.
#[derive(Debug)]
pub struct List {
    record: Option<Record>,
    form: Form,
}

fn damaged() -> Error {
    Error::corruption("a list is not whole")
}

fn decode_whole(payload: &[u8]) -> Result<VecDeque<Vec<u8>>> {
    let mut reader = Reader::new(payload);
    let count = reader.varint32().filter(|count| *count > 0);
    let mut elements = VecDeque::new();
    for _ in 0..count.ok_or_else(damaged)? {
        elements.push_back(reader.slice().ok_or_else(damaged)?.to_vec());
    }
    match reader.is_empty() {
        true => Ok(elements),
        false => Err(damaged()),
    }
}

impl List {
    /// The list at `key`; `None` where there is none.
    ///
    /// # Errors
    /// `WrongType`; the keyspace's.
    pub fn open(keys: &Keyspace<'_>, key: &[u8]) -> Outcome<Option<Self>> {
        let Some(record) = keys.lookup_as(key, Kind::List)? else {
            return Ok(None);
        };
        let form = match record.collection() {
            None => Form::Whole(decode_whole(record.payload())?),
            Some(of) => {
                let mut reader = Reader::new(record.payload());
                let tree = Tree::decode(of, Shape::BY_RANK, &mut reader)?;
                if tree.is_empty() || !reader.is_empty() {
                    return Err(damaged().into());
                }
                Form::Tree(tree)
            }
        };
        let record = Some(record);
        Ok(Some(Self { record, form }))
    }

    /// That at `key`, or an empty one.
    ///
    /// # Errors
    /// As [`List::open`].
    pub fn open_or_new(keys: &Keyspace<'_>, key: &[u8]) -> Outcome<Self> {
        let found = Self::open(keys, key)?;
        Ok(found.unwrap_or_else(|| Self {
            record: None,
            form: Form::Whole(VecDeque::new()),
        }))
    }

    /// How many elements it has.
    pub fn len(&self) -> u64 {
        match &self.form {
            Form::Whole(elements) => elements.len() as u64,
            Form::Tree(tree) => tree.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position that `index` means: from the end if it is negative; `None` beyond either end.
    pub fn position(&self, index: i64) -> Option<u64> {
        let at = match u64::try_from(index) {
            Ok(at) => at,
            Err(_) => self.len().checked_sub(index.unsigned_abs())?,
        };
        (at < self.len()).then_some(at)
    }

    /// The positions from `start` to `end`, both included and from the end if negative, as far as there are any.
    pub fn positions(&self, start: i64, end: i64) -> Range<u64> {
        let len = i64::try_from(self.len()).unwrap_or(i64::MAX);
        let from_end = |at: i64| if at < 0 { at.saturating_add(len) } else { at };
        let (start, end) = (from_end(start).max(0), from_end(end).min(len - 1));
        match start <= end {
            true => start.unsigned_abs()..end.unsigned_abs() + 1,
            false => 0..0,
        }
    }

    /// The element at `at`, counted from the first.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn get(&self, keys: &Keyspace<'_>, at: u64) -> Outcome<Option<Vec<u8>>> {
        match &self.form {
            Form::Whole(elements) => Ok(elements.get(at as usize).cloned()),
            Form::Tree(tree) => tree.get(keys, at),
        }
    }

    /// Calls `visit` with the elements from `at` on; it says whether to go on.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn visit(
        &self,
        keys: &Keyspace<'_>,
        at: u64,
        direction: Direction,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Outcome<()> {
        match &self.form {
            Form::Whole(elements) => {
                let mut at = at as usize;
                while let Some(element) = elements.get(at)
                    && visit(element)
                {
                    at = match direction {
                        Direction::Forward => at + 1,
                        Direction::Backward => at.wrapping_sub(1),
                    };
                }
            }
            Form::Tree(tree) => {
                let mut walk = tree.walk(keys, at, direction);
                while let Some(element) = walk.next()? {
                    if !visit(element) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds an element at an end.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn push(&mut self, keys: &mut Keyspace<'_>, end: End, element: &[u8]) -> Outcome<()> {
        let at = match end {
            End::Left => 0,
            End::Right => self.len(),
        };
        self.insert(keys, at, element)
    }

    /// Takes the element at an end out.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn pop(&mut self, keys: &mut Keyspace<'_>, end: End) -> Outcome<Option<Vec<u8>>> {
        let at = match end {
            End::Left => 0,
            End::Right => self.len().saturating_sub(1),
        };
        if let Form::Tree(tree) = &mut self.form
            && !tree.is_empty()
        {
            return tree.take_at(keys, at).map(Some);
        }
        let element = self.get(keys, at)?;
        if element.is_some() {
            self.remove(keys, at..at + 1)?;
        }
        Ok(element)
    }

    /// Inserts an element before that at `at`, or at the end.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn insert(&mut self, keys: &mut Keyspace<'_>, at: u64, element: &[u8]) -> Outcome<()> {
        match &mut self.form {
            Form::Whole(elements) => {
                elements.insert(at as usize, element.to_vec());
                Ok(())
            }
            Form::Tree(tree) => tree.insert_at(keys, at, element),
        }
    }

    /// Puts an element in the place of that at `at`.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn replace(&mut self, keys: &mut Keyspace<'_>, at: u64, element: &[u8]) -> Outcome<()> {
        match &mut self.form {
            Form::Whole(elements) => {
                if let Some(place) = elements.get_mut(at as usize) {
                    *place = element.to_vec();
                }
                Ok(())
            }
            Form::Tree(tree) => tree.replace_at(keys, at, element),
        }
    }

    /// Takes the elements of `range` out.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn remove(&mut self, keys: &mut Keyspace<'_>, range: Range<u64>) -> Outcome<()> {
        match &mut self.form {
            Form::Whole(elements) => {
                elements.drain(range.start as usize..range.end as usize);
                Ok(())
            }
            Form::Tree(tree) => tree.remove(keys, range),
        }
    }

    /// Writes the list back under `key` and tells `event`. An empty one is deleted, with a `del` after the event. One that has
    /// outgrown its record becomes a collection.
    ///
    /// # Errors
    /// The keyspace's.
    pub fn save(
        self,
        keys: &mut Keyspace<'_>,
        key: &[u8],
        event: Option<&'static str>,
    ) -> Outcome<()> {
        if let Some(event) = event {
            keys.event(EventClass::List, event, key);
        }
        if self.is_empty() {
            if let Some(record) = &self.record {
                keys.remove(key, record);
                keys.event(EventClass::Generic, "del", key);
            }
            return Ok(());
        }
        let old = self.record;
        let form = match self.form {
            Form::Whole(elements) if !fits(&elements) => {
                let tree = Tree::new(keys.new_collection(key)?, Shape::BY_RANK);
                Form::Tree(tree.build(keys, &elements)?)
            }
            form => form,
        };
        let of = match &form {
            Form::Whole(_) => None,
            Form::Tree(tree) => Some(tree.of()),
        };
        let expire_ms = old.as_ref().and_then(Record::expire_ms);
        let mut new = NewRecord::new(Kind::List, of, expire_ms, 0);
        match &form {
            Form::Whole(elements) => {
                put_varint64(new.payload(), elements.len() as u64);
                for element in elements {
                    put_slice(new.payload(), element);
                }
            }
            Form::Tree(tree) => tree.encode(new.payload()),
        }
        keys.put(key, Old::Is(old.as_ref()), new)
    }
}

/// Whether the elements fit a record.
fn fits(elements: &VecDeque<Vec<u8>>) -> bool {
    let mut bytes = varint_len(elements.len() as u64);
    for element in elements {
        bytes += varint_len(element.len() as u64) + element.len();
        if element.len() > WHOLE_ELEMENT_BYTES_MAX || bytes > WHOLE_BYTES_MAX {
            return false;
        }
    }
    true
}
