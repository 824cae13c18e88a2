//! XPENDING and XCLAIM: what is pending, and how it goes to another consumer.

use drumlin_redis_store::types::stream::{Group, Pending, Stream, StreamId};
use drumlin_redis_store::{Direction, EventClass, Failure, Outcome};
use drumlin_resp::integer;

use super::args::{Range, id, integer_or, range_end, range_start, reply_entries, reply_id};
use super::effects::{tell_group, tell_pending, tell_settled};
use crate::call::{Call, SYNTAX};

/// The stream and the group of the first two arguments.
pub(super) fn open(call: &Call<'_, '_>) -> Outcome<(Stream, Group)> {
    let (key, name) = (call.arg(1), call.arg(2));
    let missing = || {
        Failure::because(format!(
            "NOGROUP No such key '{}' or consumer group '{}'",
            String::from_utf8_lossy(key),
            String::from_utf8_lossy(name)
        ))
    };
    let stream = Stream::open(call.keys, key)?.ok_or_else(missing)?;
    let group = stream.group(call.keys, name)?.ok_or_else(missing)?;
    Ok((stream, group))
}

pub(super) fn xpending(call: &mut Call<'_, '_>) -> Outcome<()> {
    match call.len() {
        3 => summary(call),
        6..=9 => list(call),
        _ => Err(SYNTAX),
    }
}

fn summary(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (_, group) = open(call)?;
    call.reply.array(4);
    call.reply.integer(group.pending_len() as i64);
    if group.pending_len() == 0 {
        call.reply.null();
        call.reply.null();
        call.reply.null_array();
        return Ok(());
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let mut end = StreamId::MIN;
        let all = (StreamId::MIN, StreamId::MAX);
        group.each_pending(call.keys, all, direction, |id, _| {
            end = id;
            Ok(false)
        })?;
        reply_id(call.reply, end);
    }
    let mut consumers = group.consumers(call.keys)?;
    consumers.retain(|consumer| consumer.pending > 0);
    call.reply.array(consumers.len());
    for consumer in consumers {
        call.reply.array(2);
        call.reply.bulk(&consumer.name);
        call.reply.bulk_integer(consumer.pending as i64);
    }
    Ok(())
}

fn list(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (mut at, mut idle_min) = (3, 0);
    if call.is(3, "idle") {
        idle_min = call.integer(4)?;
        if call.len() < 8 {
            return Err(SYNTAX);
        }
        at = 5;
    }
    let count = usize::try_from(call.integer(at + 2)?).unwrap_or(0);
    let range = (range_start(call.arg(at))?, range_end(call.arg(at + 1))?);
    let (_, group) = open(call)?;
    let consumer = call.args.get(at + 3);
    let now_ms = call.keys.now_ms();
    let mut found: Vec<(StreamId, Pending)> = Vec::new();
    let idle = |pending: &Pending| (now_ms as i64).saturating_sub(pending.delivered_ms as i64);
    let is_empty = count == 0 || range.0 > range.1;
    match consumer {
        _ if is_empty => {}
        Some(consumer) => group.each_owned(call.keys, consumer, range, |id| {
            if let Some(pending) = group.pending(call.keys, id)?
                && (idle_min == 0 || idle(&pending) >= idle_min)
            {
                found.push((id, pending));
            }
            Ok(found.len() < count)
        })?,
        None => group.each_pending(call.keys, range, Direction::Forward, |id, pending| {
            if idle_min == 0 || idle(&pending) >= idle_min {
                found.push((id, pending));
            }
            Ok(found.len() < count)
        })?,
    }
    call.reply.array(found.len());
    for (id, pending) in found {
        call.reply.array(4);
        reply_id(call.reply, id);
        call.reply.bulk(&pending.consumer);
        call.reply.integer(idle(&pending).max(0));
        call.reply.integer(pending.deliveries as i64);
    }
    Ok(())
}

/// The arguments of XCLAIM behind the consumer.
#[derive(Debug)]
struct Claim {
    idle_min: i64,
    ids: Vec<StreamId>,
    is_forced: bool,
    only_ids: bool,
    delivered_ms: u64,
    deliveries: Option<u64>,
    last: StreamId,
}

fn claim(call: &Call<'_, '_>) -> Outcome<Claim> {
    let now_ms = call.keys.now_ms() as i64;
    let idle_min = integer_or(call, 4, "ERR Invalid min-idle-time argument for XCLAIM")?;
    let texts = call.args.from(5);
    let ids = texts.iter().map_while(|text| id(text, 0).ok());
    let mut claim = Claim {
        idle_min: idle_min.max(0),
        ids: ids.collect(),
        is_forced: false,
        only_ids: false,
        delivered_ms: now_ms as u64,
        deliveries: None,
        last: StreamId::MIN,
    };
    let mut delivered = -1;
    let mut at = 5 + claim.ids.len();
    while at < call.len() {
        let has_more = at + 1 < call.len();
        let number = |error| integer(call.arg(at + 1)).ok_or(Failure::refused(error));
        match () {
            () if call.is(at, "force") => claim.is_forced = true,
            () if call.is(at, "justid") => claim.only_ids = true,
            () if !has_more => return Err(unknown(call, at)),
            () if call.is(at, "idle") => {
                let idle = number("ERR Invalid IDLE option argument for XCLAIM")?;
                delivered = now_ms.wrapping_sub(idle);
            }
            () if call.is(at, "time") => {
                delivered = number("ERR Invalid TIME option argument for XCLAIM")?;
            }
            () if call.is(at, "retrycount") => {
                let count = number("ERR Invalid RETRYCOUNT option argument for XCLAIM")?;
                claim.deliveries = u64::try_from(count).ok();
            }
            () if call.is(at, "lastid") => claim.last = id(call.arg(at + 1), 0)?,
            () => return Err(unknown(call, at)),
        }
        let is_word = call.is(at, "force") || call.is(at, "justid");
        at += if is_word { 1 } else { 2 };
    }
    // A primary tells its own time, at which nothing here has expired.
    if delivered >= 0 && (delivered <= now_ms || call.session.is_primary) {
        claim.delivered_ms = delivered as u64;
    }
    Ok(claim)
}

fn unknown(call: &Call<'_, '_>, at: usize) -> Failure {
    let option = String::from_utf8_lossy(call.arg(at));
    Failure::because(format!("ERR Unrecognized XCLAIM option '{option}'"))
}

pub(super) fn xclaim(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (stream, mut group) = open(call)?;
    let claim = claim(call)?;
    let (key, consumer) = (call.arg(1), call.arg(3));
    let now_ms = call.keys.now_ms() as i64;
    call.tell_replicas_nothing();
    let names = (key, call.arg(2));
    if claim.last > group.last {
        group.last = claim.last;
        tell_group(call, names, &group);
    }
    let mark = call.reply.begin_array();
    let (mut told, mut is_seen) = (0, false);
    for id in &claim.ids {
        let old = group.pending(call.keys, *id)?;
        if !stream.contains(call.keys, *id)? {
            if let Some(old) = old {
                group.settle(call.keys, *id, &old);
                tell_settled(call, names, *id);
            }
            continue;
        }
        let idle = |old: &Pending| now_ms.saturating_sub(old.delivered_ms as i64);
        match &old {
            None if !claim.is_forced => continue,
            Some(old) if claim.idle_min > 0 && idle(old) < claim.idle_min => continue,
            _ => {}
        }
        if !is_seen && group.see(call.keys, consumer)? {
            call.keys
                .event(EventClass::Stream, "xgroup-createconsumer", key);
        }
        is_seen = true;
        let before = old.as_ref().map_or(1, |old| old.deliveries);
        let counted = before.saturating_add(u64::from(!claim.only_ids));
        let new = Pending {
            consumer: consumer.to_vec(),
            delivered_ms: claim.delivered_ms,
            deliveries: claim.deliveries.unwrap_or(counted),
        };
        group.put_pending(call.keys, *id, old.as_ref(), &new);
        tell_pending(call, names, *id, &new);
        match claim.only_ids {
            true => reply_id(call.reply, *id),
            false => {
                reply_entries(call.reply, call.keys, &stream, Range::one(*id), |_| {})?;
            }
        }
        told += 1;
    }
    call.reply.finish(mark, told);
    group.save(call.keys)
}
