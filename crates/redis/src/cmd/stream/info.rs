//! XINFO.

use drumlin_redis_store::types::stream::{Group, Stream, StreamId};
use drumlin_redis_store::{Direction, Failure, Outcome};

use super::args::{Range, reply_entries, reply_id, reply_range};
use super::groups::{no_group, no_option};
use crate::call::Call;
use crate::cmd::reply_help;

/// Entries that FULL tells where no count is given.
const FULL_ENTRIES: u64 = 10;

pub(super) fn xinfo(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.is(1, "help") {
        return reply_help(call, HELP);
    }
    let no_key = Failure::refused("ERR no such key");
    let stream = Stream::open(call.keys, call.arg(2))?.ok_or(no_key)?;
    match () {
        () if call.is(1, "consumers") => consumers(call, &stream),
        () if call.is(1, "groups") => groups(call, &stream),
        () => about(call, &stream),
    }
}

fn reply_number(call: &mut Call<'_, '_>, name: &str, number: Option<i64>) {
    call.reply.bulk(name.as_bytes());
    match number {
        Some(number) => call.reply.integer(number),
        None => call.reply.null(),
    }
}

fn reply_named_id(call: &mut Call<'_, '_>, name: &str, id: StreamId) {
    call.reply.bulk(name.as_bytes());
    reply_id(call.reply, id);
}

fn reply_name(call: &mut Call<'_, '_>, name: &[u8]) {
    call.reply.bulk(b"name");
    call.reply.bulk(name);
}

fn consumers(call: &mut Call<'_, '_>, stream: &Stream) -> Outcome<()> {
    let (key, name) = (call.arg(2), call.arg(3));
    let group = stream.group(call.keys, name)?;
    let group = group.ok_or_else(|| no_group(name, key))?;
    let consumers = group.consumers(call.keys)?;
    let now_ms = call.keys.now_ms();
    call.reply.array(consumers.len());
    for consumer in consumers {
        call.reply.map(3);
        reply_name(call, &consumer.name);
        reply_number(call, "pending", Some(consumer.pending as i64));
        let idle = now_ms.saturating_sub(consumer.seen_ms);
        reply_number(call, "idle", Some(idle as i64));
    }
    Ok(())
}

fn reply_progress(call: &mut Call<'_, '_>, stream: &Stream, group: &Group) {
    reply_named_id(call, "last-delivered-id", group.last);
    let read = group.entries_read.map(|read| read as i64);
    reply_number(call, "entries-read", read);
    reply_number(call, "lag", group.lag(stream));
}

fn groups(call: &mut Call<'_, '_>, stream: &Stream) -> Outcome<()> {
    let groups = stream.groups(call.keys)?;
    call.reply.array(groups.len());
    for group in groups {
        call.reply.map(6);
        reply_name(call, &group.name);
        reply_number(call, "consumers", Some(group.consumers_len() as i64));
        reply_number(call, "pending", Some(group.pending_len() as i64));
        reply_progress(call, stream, &group);
    }
    Ok(())
}

fn about(call: &mut Call<'_, '_>, stream: &Stream) -> Outcome<()> {
    let (is_full, mut count) = (call.len() > 3, FULL_ENTRIES);
    if is_full {
        let has_count = call.len() == 6 && call.is(4, "count");
        if !call.is(3, "full") || !(call.len() == 4 || has_count) {
            return Err(no_option(call, "XINFO"));
        }
        if has_count {
            count = u64::try_from(call.integer(5)?).unwrap_or(FULL_ENTRIES);
        }
    }
    call.reply.map(if is_full { 9 } else { 10 });
    reply_number(call, "length", Some(stream.len() as i64));
    let nodes = stream.nodes() as i64;
    reply_number(call, "radix-tree-keys", Some(nodes));
    // There is no such tree here: in Redis it would have so many at least.
    reply_number(call, "radix-tree-nodes", Some(nodes + 1));
    reply_named_id(call, "last-generated-id", stream.last);
    reply_named_id(call, "max-deleted-entry-id", stream.max_deleted);
    let added = stream.entries_added as i64;
    reply_number(call, "entries-added", Some(added));
    reply_named_id(call, "recorded-first-entry-id", stream.first());
    match is_full {
        true => full(call, stream, count),
        false => ends(call, stream),
    }
}

fn ends(call: &mut Call<'_, '_>, stream: &Stream) -> Outcome<()> {
    let groups = stream.groups(call.keys)?.len();
    reply_number(call, "groups", Some(groups as i64));
    let ends = [
        ("first-entry", Direction::Forward),
        ("last-entry", Direction::Backward),
    ];
    for (name, direction) in ends {
        call.reply.bulk(name.as_bytes());
        let range = whole(direction, 1);
        if reply_entries(call.reply, call.keys, stream, range, |_| {})? == 0 {
            call.reply.null();
        }
    }
    Ok(())
}

fn whole(direction: Direction, count: u64) -> Range {
    Range {
        from: StreamId::MIN,
        to: StreamId::MAX,
        direction,
        count,
    }
}

/// Entries, groups, consumers and what is pending; of each list up to `count`, all if that is 0.
fn full(call: &mut Call<'_, '_>, stream: &Stream, count: u64) -> Outcome<()> {
    call.reply.bulk(b"entries");
    reply_range(
        call.reply,
        call.keys,
        stream,
        whole(Direction::Forward, count),
    )?;
    call.reply.bulk(b"groups");
    let groups = stream.groups(call.keys)?;
    call.reply.array(groups.len());
    for group in groups {
        call.reply.map(7);
        reply_name(call, &group.name);
        reply_progress(call, stream, &group);
        reply_number(call, "pel-count", Some(group.pending_len() as i64));
        call.reply.bulk(b"pending");
        let mark = call.reply.begin_array();
        let mut told = 0;
        let (keys, reply) = (&*call.keys, &mut *call.reply);
        let all = (StreamId::MIN, StreamId::MAX);
        group.each_pending(keys, all, Direction::Forward, |id, pending| {
            reply.array(4);
            reply_id(reply, id);
            reply.bulk(&pending.consumer);
            reply.integer(pending.delivered_ms as i64);
            reply.integer(pending.deliveries as i64);
            told += 1;
            Ok(told as u64 != count)
        })?;
        call.reply.finish(mark, told);
        full_consumers(call, &group, count)?;
    }
    Ok(())
}

fn full_consumers(call: &mut Call<'_, '_>, group: &Group, count: u64) -> Outcome<()> {
    call.reply.bulk(b"consumers");
    let consumers = group.consumers(call.keys)?;
    call.reply.array(consumers.len());
    for consumer in consumers {
        call.reply.map(4);
        reply_name(call, &consumer.name);
        reply_number(call, "seen-time", Some(consumer.seen_ms as i64));
        reply_number(call, "pel-count", Some(consumer.pending as i64));
        call.reply.bulk(b"pending");
        let mark = call.reply.begin_array();
        let mut told = 0;
        let (keys, reply) = (&*call.keys, &mut *call.reply);
        let all = (StreamId::MIN, StreamId::MAX);
        group.each_owned(keys, &consumer.name, all, |id| {
            if let Some(pending) = group.pending(keys, id)? {
                reply.array(3);
                reply_id(reply, id);
                reply.integer(pending.delivered_ms as i64);
                reply.integer(pending.deliveries as i64);
                told += 1;
            }
            Ok(told as u64 != count)
        })?;
        call.reply.finish(mark, told);
    }
    Ok(())
}

const HELP: &[&str] = &[
    "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CONSUMERS <key> <groupname>",
    "    Show consumers of <groupname>.",
    "GROUPS <key>",
    "    Show the stream consumer groups.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    Show information about the stream.",
    "HELP",
    "    Prints this help.",
];
