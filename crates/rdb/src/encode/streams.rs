//! Streams as Redis writes them: nodes of a hundred entries or 4 KiB, then the head and the groups.

use drumlin_base::{Error, Result};

use crate::encode::{Body, Version};
use crate::listpack;
use crate::value::{Consumer, Entry, Group, Pending, Stream, StreamHead, StreamId, estimated_read};

/// Entries and bytes after which a node is closed; Redis's defaults.
const NODE_ENTRIES_MAX: usize = 100;
const NODE_BYTES_MAX: usize = 4096;
/// In the flags of an entry: its names are those of the node's first.
const SAME_FIELDS: i64 = 2;

/// The oldest version that holds all of `stream`: an older one leaves out counters, and its reader has to
/// compute them correctly from the rest.
pub(super) fn oldest_for(stream: &Stream) -> Version {
    let consumers = stream.groups.iter().flat_map(|group| &group.consumers);
    let mut consumers = consumers.map(|consumer| consumer.active_ms == consumer.seen_ms);
    if !consumers.all(|same| same) {
        return Version::V11;
    }
    let len = stream.entries.len() as u64;
    let head = StreamHead {
        last_id: stream.head.last_id,
        max_deleted_id: StreamId::default(),
        entries_added: len,
    };
    let first = first_id(stream);
    let mut groups = stream.groups.iter();
    let same =
        |group: &Group| estimated_read(&head, len, first, group.last_id) == group.entries_read;
    if stream.head == head && groups.all(same) {
        Version::V9
    } else {
        Version::V10
    }
}

fn first_id(stream: &Stream) -> StreamId {
    stream
        .entries
        .first()
        .map_or_else(StreamId::default, |entry| entry.id)
}

/// A part of a stream that is written in parts: its nodes, the head, and for each group the group, its pending entries by number,
/// the count of its consumers, and for each consumer the consumer and the numbers of its pending entries.
#[derive(Clone, Copy, Debug)]
pub enum StreamPart<'a> {
    /// Entries of one node, at least one: see [`NodeCutter`].
    Node(&'a [Entry]),
    /// What stands behind the entries.
    Head {
        /// The counters.
        head: StreamHead,
        /// How many entries there are, and the first one; 0-0 if there is none.
        entries: u64,
        /// See `entries`.
        first: StreamId,
        /// How many groups follow.
        groups: u64,
    },
    /// A group, of which only what it knows itself is written, and how many entries are pending.
    Group(&'a Group, u64),
    /// A pending entry; its consumer is not written here.
    Pending(&'a Pending),
    /// How many consumers the group has.
    Consumers(u64),
    /// A consumer, and how many entries are pending for it.
    Consumer(&'a Consumer, u64),
    /// One of these.
    Owned(StreamId),
}

/// Cuts entries into nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeCutter {
    entries: usize,
    bytes: usize,
}

impl NodeCutter {
    /// Whether the next entry goes into the node of those before; else it begins one, as the first does.
    pub fn takes(&mut self, entry: &Entry) -> bool {
        let fields = entry.fields.iter();
        let bytes: usize = fields.map(|(name, value)| name.len() + value.len()).sum();
        let goes_in = (1..NODE_ENTRIES_MAX).contains(&self.entries)
            && self.bytes.saturating_add(bytes) <= NODE_BYTES_MAX;
        *self = match goes_in {
            true => Self {
                entries: self.entries + 1,
                bytes: self.bytes + bytes,
            },
            false => Self { entries: 1, bytes },
        };
        goes_in
    }
}

/// The type of a stream in `version`.
pub(super) fn code(version: Version) -> u8 {
    match version {
        Version::V9 => 15,
        Version::V10 => 19,
        Version::V11 | Version::V12 => 21,
    }
}

/// Appends the body of `stream`, and returns its type.
pub(super) fn write(body: &mut Body<'_>, stream: &Stream) -> Result<u8> {
    check(stream)?;
    let nodes = nodes(&stream.entries);
    body.length(nodes.len() as u64);
    for node in nodes {
        write_part(body, &StreamPart::Node(node))?;
    }
    let head = StreamPart::Head {
        head: stream.head,
        entries: stream.entries.len() as u64,
        first: first_id(stream),
        groups: stream.groups.len() as u64,
    };
    write_part(body, &head)?;
    for group in &stream.groups {
        write_group(body, group)?;
    }
    Ok(code(body.encoding.version))
}

/// Appends one part.
pub(super) fn write_part(body: &mut Body<'_>, part: &StreamPart<'_>) -> Result<()> {
    let version = body.encoding.version;
    match *part {
        StreamPart::Node(entries) => write_node(body, entries)?,
        StreamPart::Head {
            head,
            entries,
            first,
            groups,
        } => {
            body.length(entries);
            write_id(body, head.last_id);
            if version >= Version::V10 {
                write_id(body, first);
                write_id(body, head.max_deleted_id);
                body.length(head.entries_added);
            }
            body.length(groups);
        }
        StreamPart::Group(group, pending) => {
            body.string(&group.name);
            write_id(body, group.last_id);
            if version >= Version::V10 {
                body.length(group.entries_read.unwrap_or(u64::MAX));
            }
            body.length(pending);
        }
        StreamPart::Pending(pending) => {
            body.out.extend_from_slice(&pending.id.to_be());
            let delivered = pending.delivered_ms.to_le_bytes();
            body.out.extend_from_slice(&delivered);
            body.length(pending.deliveries);
        }
        StreamPart::Consumers(count) => body.length(count),
        StreamPart::Consumer(consumer, owned) => {
            body.string(&consumer.name);
            body.out.extend_from_slice(&consumer.seen_ms.to_le_bytes());
            if version >= Version::V11 {
                let active = consumer.active_ms.to_le_bytes();
                body.out.extend_from_slice(&active);
            }
            body.length(owned);
        }
        StreamPart::Owned(id) => body.out.extend_from_slice(&id.to_be()),
    }
    Ok(())
}

fn check(stream: &Stream) -> Result<()> {
    let ascend = stream.entries.is_sorted_by(|one, next| one.id < next.id);
    let last = stream.entries.last();
    if !ascend || last.is_some_and(|last| last.id > stream.head.last_id) {
        return Err(Error::invalid_argument(
            "the numbers of a stream's entries do not ascend",
        ));
    }
    Ok(())
}

/// `entries` cut into nodes.
fn nodes(entries: &[Entry]) -> Vec<&[Entry]> {
    let mut cutter = NodeCutter::default();
    entries.first().map(|first| cutter.takes(first));
    let nodes = entries.chunk_by(|_, next| cutter.takes(next));
    nodes.collect()
}

fn write_node(body: &mut Body<'_>, entries: &[Entry]) -> Result<()> {
    let Some(master) = entries.first() else {
        return Ok(());
    };
    let mut node = listpack::Writer::new();
    node.push_integer(entries.len() as i64);
    node.push_integer(0);
    node.push_integer(master.fields.len() as i64);
    master.fields.iter().for_each(|(name, _)| node.push(name));
    node.push_integer(0);
    for entry in entries {
        let mut names = master.fields.iter().zip(&entry.fields);
        let same = master.fields.len() == entry.fields.len()
            && names.all(|((master, _), (name, _))| master == name);
        node.push_integer(if same { SAME_FIELDS } else { 0 });
        node.push_integer(entry.id.ms.wrapping_sub(master.id.ms) as i64);
        node.push_integer(entry.id.seq.wrapping_sub(master.id.seq) as i64);
        let fields = entry.fields.len() as i64;
        if !same {
            node.push_integer(fields);
        }
        for (name, value) in &entry.fields {
            if !same {
                node.push(name);
            }
            node.push(value);
        }
        node.push_integer(if same { fields + 3 } else { 2 * fields + 4 });
    }
    let node = node.finish()?;
    body.string(&master.id.to_be());
    body.string(&node);
    Ok(())
}

fn write_id(body: &mut Body<'_>, id: StreamId) {
    body.length(id.ms);
    body.length(id.seq);
}

fn write_group(body: &mut Body<'_>, group: &Group) -> Result<()> {
    let mut pending: Vec<&Pending> = group.pending.iter().collect();
    pending.sort_by_key(|pending| pending.id);
    write_part(body, &StreamPart::Group(group, pending.len() as u64))?;
    for pending in &pending {
        write_part(body, &StreamPart::Pending(pending))?;
    }
    // By owner, and by number within.
    pending.sort_by_key(|pending| pending.consumer);
    let mut owned = pending
        .chunk_by(|one, next| one.consumer == next.consumer)
        .peekable();
    write_part(body, &StreamPart::Consumers(group.consumers.len() as u64))?;
    for (number, consumer) in group.consumers.iter().enumerate() {
        let own = owned.next_if(|own| owner(own) == Some(number));
        let own = own.unwrap_or_default();
        write_part(body, &StreamPart::Consumer(consumer, own.len() as u64))?;
        for pending in own {
            write_part(body, &StreamPart::Owned(pending.id))?;
        }
    }
    if owned.next().is_some() {
        return Err(Error::invalid_argument(
            "a pending entry belongs to no consumer",
        ));
    }
    Ok(())
}

fn owner(pending: &[&Pending]) -> Option<usize> {
    pending.first().map(|pending| pending.consumer)
}
