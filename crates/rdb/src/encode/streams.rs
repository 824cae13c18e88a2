//! Streams as Redis writes them: nodes of a hundred entries or 4 KiB, then the head and the groups.

use std::cmp::Ordering;

use drumlin_base::{Error, Result};

use crate::encode::{Body, Version};
use crate::listpack;
use crate::value::{Entry, Group, Pending, Stream, StreamHead, StreamId, estimated_read};

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

/// Appends the body of `stream`, and returns its type.
pub(super) fn write(body: &mut Body<'_>, stream: &Stream) -> Result<u8> {
    let version = body.encoding.version;
    check(stream)?;
    let nodes = nodes(&stream.entries);
    body.length(nodes.len() as u64);
    for node in nodes {
        write_node(body, node)?;
    }
    body.length(stream.entries.len() as u64);
    write_id(body, stream.head.last_id);
    if version >= Version::V10 {
        write_id(body, first_id(stream));
        write_id(body, stream.head.max_deleted_id);
        body.length(stream.head.entries_added);
    }
    body.length(stream.groups.len() as u64);
    for group in &stream.groups {
        write_group(body, group)?;
    }
    Ok(match version {
        Version::V9 => 15,
        Version::V10 => 19,
        Version::V11 | Version::V12 => 21,
    })
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
    let mut nodes = Vec::new();
    let mut rest = entries;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            let fields = entry.fields.iter();
            bytes += fields
                .map(|(name, value)| name.len() + value.len())
                .sum::<usize>();
            bytes <= NODE_BYTES_MAX
        };
        let run = rest.iter().take(NODE_ENTRIES_MAX).take_while(fits).count();
        let (node, behind) = rest.split_at(run.max(1));
        nodes.push(node);
        rest = behind;
    }
    nodes
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
    let version = body.encoding.version;
    body.string(&group.name);
    write_id(body, group.last_id);
    if version >= Version::V10 {
        body.length(group.entries_read.unwrap_or(u64::MAX));
    }
    let mut pending: Vec<&Pending> = group.pending.iter().collect();
    pending.sort_by_key(|pending| pending.id);
    body.length(pending.len() as u64);
    for pending in &pending {
        body.out.extend_from_slice(&pending.id.to_be());
        body.out
            .extend_from_slice(&pending.delivered_ms.to_le_bytes());
        body.length(pending.deliveries);
    }
    // By owner, and by number within.
    pending.sort_by_key(|pending| pending.consumer);
    let mut owned = pending
        .chunk_by(|one, next| one.consumer == next.consumer)
        .peekable();
    body.length(group.consumers.len() as u64);
    for (number, consumer) in group.consumers.iter().enumerate() {
        body.string(&consumer.name);
        body.out.extend_from_slice(&consumer.seen_ms.to_le_bytes());
        if version >= Version::V11 {
            body.out
                .extend_from_slice(&consumer.active_ms.to_le_bytes());
        }
        let own = owned.next_if(|own| owner(own).cmp(&Some(number)) == Ordering::Equal);
        let own = own.unwrap_or_default();
        body.length(own.len() as u64);
        own.iter()
            .for_each(|own| body.out.extend_from_slice(&own.id.to_be()));
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
