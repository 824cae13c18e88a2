//! A value that comes item by item, and goes into the keyspace in parts.

use drumlin_rdb::{Collector, Item, Kind};
use drumlin_redis_store::{Keyspace, Outcome};

use super::streams::Place;
use super::values;

/// Memory of a part.
const PART_BYTES_MAX: usize = 1 << 30;

/// Items that have not gone into the keyspace yet.
#[derive(Debug)]
enum Items {
    Collection(Collector),
    Stream(Vec<Item>, Place),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Parts {
    kind: Kind,
    items: Items,
    waiting: usize,
    has_any: bool,
}

impl Parts {
    /// Without an item.
    pub(super) fn new(kind: Kind) -> Self {
        let items = match kind {
            Kind::Stream => Items::Stream(Vec::new(), Place::default()),
            kind => Items::Collection(Collector::new(kind, PART_BYTES_MAX)),
        };
        Self {
            kind,
            items,
            waiting: 0,
            has_any: false,
        }
    }

    /// How many items wait to go into the keyspace.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether any item has come: a collection without one is no value.
    pub(super) fn has_any(&self) -> bool {
        self.has_any
    }

    /// Takes the next item.
    ///
    /// # Errors
    /// `TooLarge`; `InvalidArgument` for one of another type.
    pub(super) fn push(&mut self, item: Item) -> Outcome<()> {
        self.has_any = true;
        self.waiting += 1;
        match &mut self.items {
            Items::Collection(collector) => collector.push(item)?,
            Items::Stream(items, _) => items.push(item),
        }
        Ok(())
    }

    /// Notes an item that is passed over.
    pub(super) fn skip(&mut self) {
        self.has_any = true;
    }

    /// Puts the items that wait behind those of the value of `key`.
    ///
    /// # Errors
    /// Corruption where a member or a field is there already; the keyspace's.
    pub(super) fn flush(&mut self, keys: &mut Keyspace<'_>, key: &[u8]) -> Outcome<()> {
        self.waiting = 0;
        match &mut self.items {
            Items::Collection(collector) => {
                let empty = Collector::new(self.kind, PART_BYTES_MAX);
                let value = std::mem::replace(collector, empty).finish()?;
                value.map_or(Ok(()), |value| values::append(keys, key, value))
            }
            Items::Stream(items, place) => place.append(keys, key, items.drain(..)),
        }
    }
}
