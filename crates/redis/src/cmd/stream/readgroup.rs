//! XREADGROUP: new entries for a consumer of a group, or those that are pending for it.

use drumlin_redis_store::types::stream::{Group, Pending, Stream, StreamId};
use drumlin_redis_store::{EventClass, Failure, Outcome};

use super::args::{Range, id, reply_entries, reply_id};
use super::effects::{tell_consumer, tell_group, tell_pending};
use super::read::{Request, reply_key, reply_only, reply_streams, request};
use crate::call::Call;

/// The id that stands for `>`, as in Redis.
const NEW: StreamId = StreamId::MAX;

pub(super) fn xreadgroup(call: &mut Call<'_, '_>) -> Outcome<()> {
    let request = request(call, true)?;
    let missing = Failure::refused("ERR Missing GROUP option for XREADGROUP");
    let (group, _) = request.group.ok_or(missing)?;
    call.tell_replicas_nothing();
    if call.woken_by.is_some() {
        return woken(call, &request);
    }
    let mut from = Vec::new();
    for (place, key) in request.keys.iter().enumerate() {
        let stream = Stream::open(call.keys, key)?;
        let found = match &stream {
            Some(stream) => stream.group(call.keys, group)?,
            None => None,
        };
        if found.is_none() {
            return Err(Failure::because(format!(
                "NOGROUP No such key '{}' or consumer group '{}' in XREADGROUP with GROUP option",
                String::from_utf8_lossy(key),
                String::from_utf8_lossy(group)
            )));
        }
        from.push(match call.arg(request.ids_at + place) {
            b">" => NEW,
            b"$" => {
                return Err(Failure::refused(
                    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the \
                     history of this consumer by specifying a proper ID, or use the > ID to get \
                     new messages. The $ ID would just return an empty result set.",
                ));
            }
            text => id(text, 0)?,
        });
    }
    let served = reply_streams(call, from.len(), |call, at| {
        let found = request.keys.get(at).zip(from.get(at));
        let Some((key, from)) = found else {
            return Ok(false);
        };
        let Some((stream, group)) = open(call, key, group)? else {
            return Ok(false);
        };
        if *from == NEW && !has_new(call, &stream, &group)? {
            return Ok(false);
        }
        reply_key(call, key);
        serve(call, &request, (key, &stream), group, *from)?;
        Ok(true)
    })?;
    if !served {
        request.wait(call, None);
    }
    Ok(())
}

fn open(call: &Call<'_, '_>, key: &[u8], group: &[u8]) -> Outcome<Option<(Stream, Group)>> {
    let Some(stream) = Stream::open(call.keys, key)? else {
        return Ok(None);
    };
    let group = stream.group(call.keys, group)?;
    Ok(group.map(|group| (stream, group)))
}

/// Whether there is an entry that the group has not read.
fn has_new(call: &Call<'_, '_>, stream: &Stream, group: &Group) -> Outcome<bool> {
    if stream.last <= group.last {
        return Ok(false);
    }
    Ok(stream.top(call.keys)?.is_some_and(|top| top > group.last))
}

/// The key that changed may have new entries, or be no stream any more, or have no such group.
fn woken(call: &mut Call<'_, '_>, request: &Request<'_>) -> Outcome<()> {
    let key = call.woken_by.unwrap_or_default();
    let stream = Stream::open(call.keys, key).or_else(|failure| match failure {
        Failure::WrongType => Ok(None),
        failure => Err(failure),
    })?;
    let Some(stream) = stream else {
        return Err(Failure::refused(
            "UNBLOCKED the stream key no longer exists",
        ));
    };
    let (name, _) = request.group.unwrap_or_default();
    let Some(group) = stream.group(call.keys, name)? else {
        return Err(Failure::refused(
            "NOGROUP the consumer group this client was blocked on no longer exists",
        ));
    };
    if stream.last <= group.last {
        request.wait(call, None);
        return Ok(());
    }
    reply_only(call, key);
    serve(call, request, (key, &stream), group, NEW)
}

/// Replies the entries of one stream and notes them as pending.
fn serve(
    call: &mut Call<'_, '_>,
    request: &Request<'_>,
    (key, stream): (&[u8], &Stream),
    mut group: Group,
    from: StreamId,
) -> Outcome<()> {
    let (name, consumer) = request.group.unwrap_or_default();
    if group.see(call.keys, consumer)? {
        call.keys
            .event(EventClass::Stream, "xgroup-createconsumer", key);
        tell_consumer(call, (key, name), consumer);
    }
    if from != NEW {
        return serve_pending(call, request, (key, stream), group, from);
    }
    let now_ms = call.keys.now_ms();
    let range = Range::behind(group.last, request.most(call));
    let mut ids = Vec::new();
    let mark = call.reply.begin_array();
    let told = reply_entries(call.reply, call.keys, stream, range, |id| ids.push(id))?;
    call.reply.finish(mark, told);
    for id in ids {
        group.read(stream, id);
        if request.is_acknowledged {
            continue;
        }
        // The group may have been set back: then the entry is another's perhaps.
        let old = group.pending(call.keys, id)?;
        let new = Pending {
            consumer: consumer.to_vec(),
            delivered_ms: now_ms,
            deliveries: 1,
        };
        group.put_pending(call.keys, id, old.as_ref(), &new);
        tell_pending(call, (key, name), id, &new);
    }
    tell_group(call, (key, name), &group);
    group.save(call.keys)
}

/// Replies what is pending for the consumer behind `from`; entries that are deleted without their fields.
fn serve_pending(
    call: &mut Call<'_, '_>,
    request: &Request<'_>,
    (key, stream): (&[u8], &Stream),
    mut group: Group,
    from: StreamId,
) -> Outcome<()> {
    let (name, consumer) = request.group.unwrap_or_default();
    let mut ids = Vec::new();
    let first = from.next().unwrap_or(StreamId::MAX);
    group.each_owned(call.keys, consumer, (first, StreamId::MAX), |id| {
        ids.push(id);
        Ok(request.count == 0 || (ids.len() as u64) < request.count)
    })?;
    let now_ms = call.keys.now_ms();
    call.reply.array(ids.len());
    for id in ids {
        let told = reply_entries(call.reply, call.keys, stream, Range::one(id), |_| {})?;
        if told == 0 {
            call.reply.array(2);
            reply_id(call.reply, id);
            call.reply.null_array();
            continue;
        }
        if let Some(old) = group.pending(call.keys, id)? {
            let new = Pending {
                consumer: old.consumer.clone(),
                delivered_ms: now_ms,
                deliveries: old.deliveries.saturating_add(1),
            };
            group.put_pending(call.keys, id, Some(&old), &new);
            tell_pending(call, (key, name), id, &new);
        }
    }
    group.save(call.keys)
}
