//! Streams between the keyspace and the forms of [`drumlin_rdb`].
//!
//! A stream comes into the keyspace in parts of any size, and goes into a file in parts, so that neither needs memory for all
//! of it. The nodes that its entries stand in are not kept: entries that come in are cut into nodes as XADD does.

use std::collections::HashMap;
use std::sync::Arc;

use drumlin_base::{Error, Result};
use drumlin_rdb::{self as rdb, Item, KeyFacts, NodeCutter, StreamPart};
use drumlin_redis_store::types::stream::{self, Group, NodeLimits, Stream, StreamId};
use drumlin_redis_store::{Direction, Failure, Keyspace, Outcome};

const ALL: (StreamId, StreamId) = (StreamId::MIN, StreamId::MAX);

fn damaged(part: &str) -> Failure {
    Failure::Engine(Error::corruption(format!("a stream: {part}")))
}

fn ours(id: rdb::StreamId) -> StreamId {
    StreamId {
        ms: id.ms,
        seq: id.seq,
    }
}

fn theirs(id: StreamId) -> rdb::StreamId {
    rdb::StreamId::new(id.ms, id.seq)
}

/// A time before 1970 is taken for 1970.
fn ms(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}

fn time(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

// Out of the keyspace.

/// Entries in the form of files. Names that an entry has in the same places as the one before are shared with it.
#[derive(Debug, Default)]
struct Names(Vec<Arc<[u8]>>);

impl Names {
    fn entry(&mut self, found: &stream::Entry<'_>) -> rdb::Entry {
        let mut parts = found.parts();
        let mut fields = Vec::new();
        while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            let before = self.0.get(fields.len()).filter(|it| ***it == *name);
            let name = before.map_or_else(|| Arc::from(name), Arc::clone);
            fields.push((name, value.to_vec()));
        }
        self.0 = fields.iter().map(|(name, _)| Arc::clone(name)).collect();
        let id = theirs(found.id);
        rdb::Entry { id, fields }
    }
}

fn head_of(stream: &Stream) -> rdb::StreamHead {
    rdb::StreamHead {
        last_id: theirs(stream.last),
        max_deleted_id: theirs(stream.max_deleted),
        entries_added: stream.entries_added,
    }
}

fn group_of(group: &Group) -> rdb::Group {
    rdb::Group {
        name: group.name.clone(),
        last_id: theirs(group.last),
        entries_read: group.entries_read,
        ..rdb::Group::default()
    }
}

fn consumer_of(consumer: &stream::Consumer) -> rdb::Consumer {
    let seen_ms = time(consumer.seen_ms);
    rdb::Consumer {
        name: consumer.name.clone(),
        seen_ms,
        active_ms: seen_ms,
    }
}

fn pending_of(id: StreamId, pending: &stream::Pending, consumer: usize) -> rdb::Pending {
    rdb::Pending {
        id: theirs(id),
        delivered_ms: time(pending.delivered_ms),
        deliveries: pending.deliveries,
        consumer,
    }
}

/// Calls `next` with the entries of a stream until it says no.
fn each_entry(
    keys: &Keyspace<'_>,
    stream: &Stream,
    next: &mut dyn FnMut(rdb::Entry) -> bool,
) -> Outcome<bool> {
    let mut names = Names::default();
    let mut entries = stream.entries(keys, ALL, Direction::Forward);
    while let Some(entry) = entries.next()? {
        if !next(names.entry(&entry)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Calls `next` with the items of the stream at `key` until it says no.
pub(super) fn each_item(
    keys: &Keyspace<'_>,
    key: &[u8],
    next: &mut dyn FnMut(Item) -> bool,
) -> Outcome<()> {
    let Some(stream) = Stream::open(keys, key)? else {
        return Ok(());
    };
    let goes_on = each_entry(keys, &stream, &mut |entry| next(Item::Entry(entry)))?;
    if !goes_on || !next(Item::Head(head_of(&stream), stream.len())) {
        return Ok(());
    }
    for group in stream.groups(keys)? {
        let consumers = group.consumers(keys)?;
        let goes_on = next(Item::Group(group_of(&group)))
            && consumers
                .iter()
                .all(|it| next(Item::Consumer(consumer_of(it))));
        if !goes_on {
            return Ok(());
        }
        let places = consumers.iter().map(|it| it.name.as_slice()).zip(0..);
        let places: HashMap<&[u8], usize> = places.collect();
        group.each_pending(keys, ALL, Direction::Forward, |id, pending| {
            let place = places.get(pending.consumer.as_slice());
            let place = place.ok_or_else(|| damaged("a consumer is missing"))?;
            Ok(next(Item::Pending(pending_of(id, &pending, *place))))
        })?;
    }
    Ok(())
}

/// Writes the stream at `key` in parts: no more of it is in memory than a node, and the names of a group's consumers.
pub(super) fn export<S: rdb::Sink>(
    keys: &Keyspace<'_>,
    key: &[u8],
    facts: &KeyFacts,
    writer: &mut rdb::FileWriter<S>,
) -> Outcome<()> {
    let Some(stream) = Stream::open(keys, key)? else {
        return Ok(());
    };
    // The number of nodes stands before them.
    let (mut cutter, mut nodes) = (NodeCutter::default(), 0);
    each_entry(keys, &stream, &mut |entry| {
        nodes += u64::from(!cutter.takes(&entry));
        true
    })?;
    writer.begin_stream(key, facts, nodes)?;
    write_entries(keys, &stream, &mut |part| writer.stream_part(&part))?;
    let groups = stream.groups(keys)?;
    writer.stream_part(&StreamPart::Head {
        head: head_of(&stream),
        entries: stream.len(),
        first: theirs(stream.first()),
        groups: groups.len() as u64,
    })?;
    for group in &groups {
        write_group(keys, group, &mut |part| writer.stream_part(&part))?;
    }
    Ok(writer.end_stream()?)
}

type Write<'w> = &'w mut dyn FnMut(StreamPart<'_>) -> Result<()>;

fn write_entries(keys: &Keyspace<'_>, stream: &Stream, write: Write<'_>) -> Outcome<()> {
    let (mut cutter, mut node) = (NodeCutter::default(), Vec::new());
    let mut written = Ok(());
    let mut count = 0;
    each_entry(keys, stream, &mut |entry| {
        if !cutter.takes(&entry) && !node.is_empty() {
            written = write(StreamPart::Node(&node));
            node.clear();
        }
        node.push(entry);
        count += 1;
        written.is_ok()
    })?;
    written?;
    if !node.is_empty() {
        write(StreamPart::Node(&node))?;
    }
    match count == stream.len() {
        true => Ok(()),
        false => Err(damaged("it has another number of entries than it says")),
    }
}

fn write_group(keys: &Keyspace<'_>, group: &Group, write: Write<'_>) -> Outcome<()> {
    let miscounted = || damaged("a group has other pending entries than it says");
    write(StreamPart::Group(&group_of(group), group.pending_len()))?;
    let mut left = group.pending_len();
    group.each_pending(keys, ALL, Direction::Forward, |id, pending| {
        left = left.checked_sub(1).ok_or_else(miscounted)?;
        write(StreamPart::Pending(&pending_of(id, &pending, 0)))?;
        Ok(true)
    })?;
    let consumers = group.consumers(keys)?;
    write(StreamPart::Consumers(consumers.len() as u64))?;
    for consumer in &consumers {
        let mut owned = consumer.pending;
        left = left.checked_add(owned).ok_or_else(miscounted)?;
        write(StreamPart::Consumer(&consumer_of(consumer), owned))?;
        group.each_owned(keys, &consumer.name, ALL, |id| {
            owned = owned.checked_sub(1).ok_or_else(miscounted)?;
            write(StreamPart::Owned(theirs(id)))?;
            Ok(true)
        })?;
        if owned > 0 {
            return Err(miscounted());
        }
    }
    match left == group.pending_len() {
        true => Ok(()),
        false => Err(miscounted()),
    }
}

// Into it.

/// Where a stream that comes in parts goes on.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// The last group, and its consumers so far.
    group: Option<Vec<u8>>,
    consumers: Vec<Vec<u8>>,
}

impl Place {
    /// Adds the next items of the stream at `key`. Nothing is told of it.
    ///
    /// # Errors
    /// Corruption for items that no stream has; the keyspace's.
    pub(super) fn append(
        &mut self,
        keys: &mut Keyspace<'_>,
        key: &[u8],
        items: impl IntoIterator<Item = Item>,
    ) -> Outcome<()> {
        let mut stream = Stream::open_or_new(keys, key)?;
        let mut group = None;
        if let Some(name) = &self.group {
            group = stream.group(keys, name)?;
        }
        for item in items {
            match item {
                Item::Entry(entry) => append_entry(keys, &mut stream, &entry)?,
                Item::Head(head, _) => {
                    stream.last = ours(head.last_id);
                    stream.max_deleted = ours(head.max_deleted_id);
                    stream.entries_added = head.entries_added;
                }
                Item::Group(new) => {
                    if let Some(before) = group.take() {
                        Group::save(before, keys)?;
                    }
                    let last = ours(new.last_id);
                    stream.create_group(keys, &new.name, last, new.entries_read)?;
                    group = stream.group(keys, &new.name)?;
                    self.group = Some(new.name);
                    self.consumers.clear();
                }
                Item::Consumer(consumer) => {
                    let group = group.as_mut().ok_or_else(|| damaged("no group"))?;
                    group.add_consumer(keys, &consumer.name, ms(consumer.seen_ms))?;
                    self.consumers.push(consumer.name);
                }
                Item::Pending(pending) => {
                    let group = group.as_mut().ok_or_else(|| damaged("no group"))?;
                    self.append_pending(keys, group, &pending)?;
                }
                _ => return Err(damaged("an item of another type")),
            }
        }
        if let Some(group) = group {
            group.save(keys)?;
        }
        stream.save(keys, key)
    }

    fn append_pending(
        &self,
        keys: &mut Keyspace<'_>,
        group: &mut Group,
        pending: &rdb::Pending,
    ) -> Outcome<()> {
        let owner = self.consumers.get(pending.consumer);
        let owner = owner.ok_or_else(|| damaged("a pending entry without an owner"))?;
        let new = stream::Pending {
            consumer: owner.clone(),
            delivered_ms: ms(pending.delivered_ms),
            deliveries: pending.deliveries,
        };
        group.put_pending(keys, ours(pending.id), None, &new);
        Ok(())
    }
}

fn append_entry(keys: &mut Keyspace<'_>, stream: &mut Stream, entry: &rdb::Entry) -> Outcome<()> {
    let id = ours(entry.id);
    if id <= stream.last {
        return Err(damaged("an entry without a number of its own"));
    }
    let parts = entry.fields.iter();
    let parts = parts.flat_map(|(name, value)| [&name[..], value.as_slice()]);
    let parts: Vec<&[u8]> = parts.collect();
    stream.append(keys, id, &parts, NodeLimits::default());
    Ok(())
}

/// The items of a whole stream.
pub(super) fn items(stream: rdb::Stream) -> impl Iterator<Item = Item> {
    let rdb::Stream {
        entries,
        head,
        groups,
    } = stream;
    let head = Item::Head(head, entries.len() as u64);
    let entries = entries.into_iter().map(Item::Entry);
    let groups = groups.into_iter().flat_map(|mut group| {
        let consumers = std::mem::take(&mut group.consumers);
        let pending = std::mem::take(&mut group.pending);
        let consumers = consumers.into_iter().map(Item::Consumer);
        let pending = pending.into_iter().map(Item::Pending);
        std::iter::once(Item::Group(group))
            .chain(consumers)
            .chain(pending)
    });
    entries.chain(std::iter::once(head)).chain(groups)
}
