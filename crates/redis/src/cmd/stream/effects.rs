//! What replicas are told of commands of streams that depend on the time, or on what was there.

use drumlin_redis_store::types::stream::{Group, Pending, StreamId};

use crate::call::Call;

/// An entry is pending.
pub(super) fn tell_pending(
    call: &mut Call<'_, '_>,
    (key, group): (&[u8], &[u8]),
    id: StreamId,
    pending: &Pending,
) {
    let (id, ms) = (id.to_string(), pending.delivered_ms.to_string());
    let count = pending.deliveries.to_string();
    call.tell_replicas(&[
        b"XCLAIM",
        key,
        group,
        &pending.consumer,
        b"0",
        id.as_bytes(),
        b"TIME",
        ms.as_bytes(),
        b"RETRYCOUNT",
        count.as_bytes(),
        b"FORCE",
        b"JUSTID",
    ]);
}

/// An entry is not pending any more.
pub(super) fn tell_settled(call: &mut Call<'_, '_>, (key, group): (&[u8], &[u8]), id: StreamId) {
    let id = id.to_string();
    call.tell_replicas(&[b"XACK", key, group, id.as_bytes()]);
}

/// A group has come to its newest entry.
pub(super) fn tell_group(call: &mut Call<'_, '_>, (key, name): (&[u8], &[u8]), group: &Group) {
    let last = group.last.to_string();
    let read = match group.entries_read {
        Some(read) => read.to_string(),
        None => "-1".to_owned(),
    };
    call.tell_replicas(&[
        b"XGROUP",
        b"SETID",
        key,
        name,
        last.as_bytes(),
        b"ENTRIESREAD",
        read.as_bytes(),
    ]);
}

/// A consumer has come.
pub(super) fn tell_consumer(
    call: &mut Call<'_, '_>,
    (key, group): (&[u8], &[u8]),
    consumer: &[u8],
) {
    call.tell_replicas(&[b"XGROUP", b"CREATECONSUMER", key, group, consumer]);
}
