//! Items of one key gathered to a value.

use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result};

use crate::unique::any_twice;
use crate::value::{Bytes, Entry, Field, Item, Kind, Stream, Value};

/// Approximate memory of a string or an item beside its bytes: its place in a vector that doubles, and the heap's
/// share.
const OVERHEAD_BYTES: usize = 64;

/// Gathers the items of one key.
#[derive(Debug)]
pub struct Collector {
    value: Value,
    bytes: usize,
    bytes_max: usize,
    has_any: bool,
}

impl Collector {
    /// One for a value of `kind` that may take about `bytes_max` bytes of memory.
    pub fn new(kind: Kind, bytes_max: usize) -> Self {
        let value = match kind {
            Kind::String => Value::String(Vec::new()),
            Kind::List => Value::List(Vec::new()),
            Kind::Set => Value::Set(Vec::new()),
            Kind::ZSet => Value::ZSet(Vec::new()),
            Kind::Hash => Value::Hash(Vec::new()),
            Kind::Stream => Value::Stream(Box::default()),
        };
        Self {
            value,
            bytes: 0,
            bytes_max,
            has_any: false,
        }
    }

    /// Takes the next item.
    ///
    /// # Errors
    /// TooLarge when the value would take more memory than it may; InvalidArgument for an item of another type.
    pub fn push(&mut self, item: Item) -> Result<()> {
        self.bytes = self.bytes.saturating_add(self.memory(&item));
        if self.bytes > self.bytes_max {
            let message = format!("a value takes more than {} bytes of memory", self.bytes_max);
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        self.has_any = true;
        match (&mut self.value, item) {
            (Value::String(value), Item::String(bytes)) => *value = bytes,
            (Value::List(elements), Item::Element(element)) => elements.push(element),
            (Value::Set(members), Item::Member(member)) => members.push(member),
            (Value::ZSet(members), Item::Scored(member, score)) => members.push((member, score)),
            (Value::Hash(fields), Item::Field(field)) => fields.push(field),
            (Value::Stream(stream), item) => return push_to_stream(stream, item),
            _ => {
                return Err(Error::invalid_argument(
                    "an item is of another type than its value",
                ));
            }
        }
        Ok(())
    }

    /// The approximate memory of an item.
    fn memory(&self, item: &Item) -> usize {
        let own = match item {
            Item::String(bytes) | Item::Element(bytes) | Item::Member(bytes) => bytes.len(),
            Item::Scored(bytes, _) => bytes.len(),
            Item::Field(field) => field.name.len() + field.value.len() + OVERHEAD_BYTES,
            Item::Entry(entry) => self.entry_memory(entry),
            Item::Group(group) => group.name.len() + OVERHEAD_BYTES,
            Item::Consumer(consumer) => consumer.name.len(),
            Item::Head(..) | Item::Pending(_) => 0,
        };
        own.saturating_add(OVERHEAD_BYTES)
    }

    /// Names that the entry before has too are shared with it.
    fn entry_memory(&self, entry: &Entry) -> usize {
        let before = match &self.value {
            Value::Stream(stream) => stream.entries.last(),
            _ => None,
        };
        let mut names = before.into_iter().flat_map(|before| &before.fields);
        let field = |(name, value): &(Arc<[u8]>, Bytes)| {
            let shared = names
                .next()
                .is_some_and(|(before, _)| Arc::ptr_eq(before, name));
            let name = if shared {
                0
            } else {
                name.len() + OVERHEAD_BYTES
            };
            name + value.len() + OVERHEAD_BYTES
        };
        entry.fields.iter().map(field).sum()
    }

    /// The value; none for an empty list, set, sorted set or hash, which to Redis is an absent key.
    ///
    /// # Errors
    /// Corruption when a member or field comes twice.
    pub fn finish(mut self) -> Result<Option<Value>> {
        let twice = match &mut self.value {
            Value::Set(members) => any_twice(&mut references(members, |it| it), Ord::cmp),
            Value::ZSet(members) => any_twice(&mut references(members, |it| &it.0), Ord::cmp),
            Value::Hash(fields) => {
                any_twice(&mut references(fields, |it: &Field| &it.name), Ord::cmp)
            }
            Value::String(_) | Value::List(_) => false,
            Value::Stream(stream) => {
                let groups = stream.groups.iter_mut();
                groups.for_each(|group| group.pending.sort_unstable_by_key(|pending| pending.id));
                false
            }
        };
        if twice && !drumlin_base::bug!("plain-names-may-repeat") {
            return Err(Error::corruption("a member or a field comes twice"));
        }
        Ok(self.has_any.then_some(self.value))
    }
}

fn references<'a, T>(items: &'a [T], name: impl Fn(&'a T) -> &'a Vec<u8>) -> Vec<&'a [u8]> {
    items.iter().map(|item| name(item).as_slice()).collect()
}

fn push_to_stream(stream: &mut Stream, item: Item) -> Result<()> {
    let group = stream.groups.last_mut();
    match (item, group) {
        (Item::Entry(entry), _) => stream.entries.push(entry),
        (Item::Head(head, _), _) => stream.head = head,
        (Item::Group(group), _) => stream.groups.push(group),
        (Item::Consumer(consumer), Some(group)) => group.consumers.push(consumer),
        (Item::Pending(pending), Some(group)) if pending.consumer < group.consumers.len() => {
            group.pending.push(pending);
        }
        _ => {
            return Err(Error::invalid_argument(
                "an item is of another type than its value, or before its owner",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::StreamId;

    #[test]
    fn a_member_that_comes_twice_is_refused() {
        for (members, sound) in [(["a", "b"], true), (["a", "a"], false)] {
            let mut collector = Collector::new(Kind::Set, 1000);
            for member in members {
                collector.push(Item::Member(member.into())).unwrap();
            }
            assert_eq!(collector.finish().is_ok(), sound);
        }
    }

    #[test]
    fn memory_is_bounded_and_types_do_not_mix() {
        let mut collector = Collector::new(Kind::List, 1000);
        assert!(collector.push(Item::Member(Vec::new())).is_err());
        let outcomes = (0..20).map(|_| collector.push(Item::Element(vec![0; 10])));
        let error = outcomes.filter_map(Result::err).next().unwrap();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert_eq!(Collector::new(Kind::List, 0).finish().unwrap(), None);
    }

    #[test]
    fn a_name_counts_once_for_the_entries_that_share_it() {
        let name: Arc<[u8]> = vec![0; 500].into();
        let entry = |ms, name: &Arc<[u8]>| {
            let fields = vec![(name.clone(), Vec::new())];
            Item::Entry(Entry {
                id: StreamId::new(ms, 0),
                fields,
            })
        };
        let mut collector = Collector::new(Kind::Stream, 1600);
        (0..5).for_each(|ms| collector.push(entry(ms, &name)).unwrap());
        let other = name.to_vec().into();
        assert!(collector.push(entry(5, &other)).is_err());
    }
}
