//! Values between the keyspace and the forms of [`drumlin_rdb`].

use drumlin_base::Error;
use drumlin_rdb::{Collector, Field, Item, Kind as RdbKind, Value};
use drumlin_redis_store::record::EXPIRE_MS_MAX;
use drumlin_redis_store::types::list::{End, List};
use drumlin_redis_store::types::stream::Stream;
use drumlin_redis_store::types::{field_expiry, hash, set, string, zset};
use drumlin_redis_store::{Direction, Failure, Keyspace, Kind, Old, Outcome, Record};

use super::streams;

/// The type as files call it.
pub(crate) fn rdb_kind(kind: Kind) -> RdbKind {
    match kind {
        Kind::String => RdbKind::String,
        Kind::Hash => RdbKind::Hash,
        Kind::List => RdbKind::List,
        Kind::Set => RdbKind::Set,
        Kind::SortedSet => RdbKind::ZSet,
        Kind::Stream => RdbKind::Stream,
    }
}

fn twice() -> Failure {
    Failure::Engine(Error::corruption("a member or a field comes twice"))
}

/// How many items the value of `key` has: 1 for a string, the entries of a stream.
pub(crate) fn items(keys: &Keyspace<'_>, key: &[u8], kind: Kind) -> Outcome<u64> {
    match kind {
        Kind::String => Ok(1),
        Kind::Hash => hash::len(keys, key),
        Kind::List => Ok(List::open(keys, key)?.map_or(0, |list| list.len())),
        Kind::Set => set::len(keys, key),
        Kind::SortedSet => zset::len(keys, key),
        Kind::Stream => Ok(Stream::open(keys, key)?.map_or(0, |stream| stream.len())),
    }
}

/// Calls `take` with the items of the value of `key`, in Redis's order; its first error is the outcome.
pub(crate) fn each_item(
    keys: &Keyspace<'_>,
    key: &[u8],
    kind: Kind,
    mut take: impl FnMut(Item) -> Outcome<()>,
) -> Outcome<()> {
    let mut outcome = Ok(());
    let mut next = |item: Item| {
        outcome = std::mem::replace(&mut outcome, Ok(())).and_then(|()| take(item));
        outcome.is_ok()
    };
    match kind {
        Kind::String => {
            let record = string::get(keys, key)?;
            let bytes = record.as_ref().map_or(&[][..], Record::payload);
            next(Item::String(bytes.to_vec()));
        }
        Kind::Hash => field_expiry::each(keys, key, |(name, value, expire_ms)| {
            let (name, value) = (name.to_vec(), value.to_vec());
            next(Item::Field(Field {
                name,
                value,
                expire_ms,
            }));
        })?,
        Kind::List => {
            if let Some(list) = List::open(keys, key)? {
                list.visit(keys, 0, Direction::Forward, |element| {
                    next(Item::Element(element.to_vec()))
                })?;
            }
        }
        Kind::Set => set::each(keys, key, |member| next(Item::Member(member.to_vec())))?,
        Kind::SortedSet => zset::each(keys, key, |member, score| {
            next(Item::Scored(member.to_vec(), score))
        })?,
        Kind::Stream => streams::each_item(keys, key, &mut next)?,
    }
    outcome
}

/// Adds the items of `value` to the value of `key`, behind those that are there. Nothing is told of it.
///
/// # Errors
/// Corruption where a member or a field is there already; the keyspace's.
pub(crate) fn append(keys: &mut Keyspace<'_>, key: &[u8], value: Value) -> Outcome<()> {
    let told = keys.overlay().events();
    let (added, wanted) = match value {
        Value::String(bytes) => {
            string::set(keys, key, &bytes, None, Old::Unknown)?;
            (1, 1)
        }
        Value::List(elements) => {
            let mut list = List::open_or_new(keys, key)?;
            for element in &elements {
                list.push(keys, End::Right, element)?;
            }
            list.save(keys, key, None)?;
            (elements.len() as u64, elements.len())
        }
        Value::Set(members) => {
            let added = set::add(keys, key, members.iter().map(Vec::as_slice))?;
            (added, members.len())
        }
        Value::Hash(fields) => {
            let loaded = fields
                .iter()
                .map(|it| (it.name.as_slice(), it.value.as_slice(), it.expire_ms));
            let added = field_expiry::load(keys, key, loaded)?;
            (added, fields.len())
        }
        Value::ZSet(members) => {
            let items = members
                .iter()
                .map(|(member, score)| (*score, member.as_slice()));
            let items: Vec<_> = items.collect();
            let effects = zset::add(keys, key, &items, zset::AddOptions::default())?;
            (effects.added, members.len())
        }
        Value::Stream(stream) => {
            streams::Place::default().append(keys, key, streams::items(*stream))?;
            (0, 0)
        }
    };
    keys.overlay().forget_events(told);
    match added == wanted as u64 {
        true => Ok(()),
        false => Err(twice()),
    }
}

/// The value of `key`, whole.
pub(crate) fn whole(keys: &Keyspace<'_>, key: &[u8], kind: Kind) -> Outcome<Value> {
    if kind == Kind::Stream {
        let mut collector = Collector::new(RdbKind::Stream, usize::MAX);
        each_item(keys, key, kind, |item| Ok(collector.push(item)?))?;
        return Ok(collector.finish()?.unwrap_or(Value::Stream(Box::default())));
    }
    let mut value = match kind {
        Kind::String => Value::String(Vec::new()),
        Kind::Hash => Value::Hash(Vec::new()),
        Kind::List => Value::List(Vec::new()),
        Kind::Set => Value::Set(Vec::new()),
        Kind::SortedSet => Value::ZSet(Vec::new()),
        Kind::Stream => Value::Stream(Box::default()),
    };
    each_item(keys, key, kind, |item| {
        match (&mut value, item) {
            (Value::String(value), Item::String(bytes)) => *value = bytes,
            (Value::List(elements), Item::Element(element)) => elements.push(element),
            (Value::Set(members), Item::Member(member)) => members.push(member),
            (Value::ZSet(members), Item::Scored(member, score)) => members.push((member, score)),
            (Value::Hash(fields), Item::Field(field)) => fields.push(field),
            (value, item) => unreachable!("{item:?} in a {:?}", value.kind()),
        }
        Ok(())
    })?;
    Ok(value)
}

/// Gives the value of `key`, which is there, an expiry; the latest there is for a later one.
pub(crate) fn set_expiry(keys: &mut Keyspace<'_>, key: &[u8], expire_ms: u64) -> Outcome<()> {
    match keys.lookup(key)? {
        Some(record) => keys.put(
            key,
            Old::Is(Some(&record)),
            record.with_expire(Some(expire_ms.min(EXPIRE_MS_MAX))),
        ),
        None => Ok(()),
    }
}
