//! XAUTOCLAIM: entries that are pending for long go to another consumer, a page at a time.

use drumlin_redis_store::types::stream::{Group, Pending, Stream, StreamId};
use drumlin_redis_store::{Direction, EventClass, Failure, Outcome};

use super::args::{Range, integer_or, range_start, reply_entries, reply_id};
use super::effects::{tell_pending, tell_settled};
use super::pending::open;
use crate::call::{Call, SYNTAX};

/// Entries of a page, and how many are looked at for each.
const PAGE_ENTRIES: usize = 100;
const LOOKS: usize = 10;
/// Largest count, as in Redis.
const COUNT_MAX: i64 = i64::MAX / 16;

/// The options behind the first id.
struct Page {
    idle_min: i64,
    from: StreamId,
    count: usize,
    only_ids: bool,
}

fn page(call: &Call<'_, '_>) -> Outcome<Page> {
    let idle_min = integer_or(call, 4, "ERR Invalid min-idle-time argument for XAUTOCLAIM")?;
    let mut page = Page {
        idle_min: idle_min.max(0),
        from: range_start(call.arg(5))?,
        count: PAGE_ENTRIES,
        only_ids: false,
    };
    let mut at = 6;
    while at < call.len() {
        match () {
            () if call.is(at, "count") && at + 1 < call.len() => {
                let error = "ERR COUNT must be > 0";
                let count = integer_or(call, at + 1, error)?;
                if !(1..=COUNT_MAX).contains(&count) {
                    return Err(Failure::refused(error));
                }
                page.count = count as usize;
                at += 1;
            }
            () if call.is(at, "justid") => page.only_ids = true,
            () => return Err(SYNTAX),
        }
        at += 1;
    }
    Ok(page)
}

/// A pending entry that is taken, and whether the stream still has it.
type Taken = (StreamId, Pending, bool);

/// The pending entries that a page takes, and the first behind them.
fn looked_at(
    call: &Call<'_, '_>,
    (stream, group): (&Stream, &Group),
    page: &Page,
) -> Outcome<(Vec<Taken>, StreamId)> {
    let now_ms = call.keys.now_ms() as i64;
    let (mut looks, mut left) = (page.count.saturating_mul(LOOKS), page.count);
    let (mut taken, mut next) = (Vec::new(), StreamId::MIN);
    let range = (page.from, StreamId::MAX);
    group.each_pending(call.keys, range, Direction::Forward, |id, pending| {
        if looks == 0 || left == 0 {
            next = id;
            return Ok(false);
        }
        looks -= 1;
        let is_there = stream.contains(call.keys, id)?;
        let idle = now_ms.saturating_sub(pending.delivered_ms as i64);
        if !is_there || page.idle_min == 0 || idle >= page.idle_min {
            taken.push((id, pending, is_there));
            left -= 1;
        }
        Ok(true)
    })?;
    Ok((taken, next))
}

pub(super) fn xautoclaim(call: &mut Call<'_, '_>) -> Outcome<()> {
    let page = page(call)?;
    let (stream, mut group) = open(call)?;
    let (key, consumer) = (call.arg(1), call.arg(3));
    let (taken, next) = looked_at(call, (&stream, &group), &page)?;
    call.tell_replicas_nothing();
    let names = (key, call.arg(2));
    call.reply.array(3);
    reply_id(call.reply, next);
    let mark = call.reply.begin_array();
    let (mut told, mut gone) = (0, Vec::new());
    for (id, old, is_there) in taken {
        if !is_there {
            group.settle(call.keys, id, &old);
            tell_settled(call, names, id);
            gone.push(id);
            continue;
        }
        if told == 0 && group.see(call.keys, consumer)? {
            call.keys
                .event(EventClass::Stream, "xgroup-createconsumer", key);
        }
        let counted = u64::from(!page.only_ids);
        let new = Pending {
            consumer: consumer.to_vec(),
            delivered_ms: call.keys.now_ms(),
            deliveries: old.deliveries.saturating_add(counted),
        };
        group.put_pending(call.keys, id, Some(&old), &new);
        tell_pending(call, names, id, &new);
        match page.only_ids {
            true => reply_id(call.reply, id),
            false => {
                reply_entries(call.reply, call.keys, &stream, Range::one(id), |_| {})?;
            }
        }
        told += 1;
    }
    call.reply.finish(mark, told);
    call.reply.array(gone.len());
    gone.iter().for_each(|id| reply_id(call.reply, *id));
    group.save(call.keys)
}
