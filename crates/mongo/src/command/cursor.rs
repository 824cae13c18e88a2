//! Batches of cursors: the first one, `getMore`, `killCursors`.

use std::time::Duration;

use drumlin_doc::{Builder, Code, Document, Kind, Refusal, Value};
use drumlin_doc_store::{Name, Outcome, Reads};

use crate::cursors::{Cursor, Source, Tail, Walking};
use crate::wire::limits::{BATCH_BYTES_MAX, FIRST_BATCH};

use super::call::Call;
use super::concerns::time_limit;
use super::shape::{Shape, required};

/// How long a `getMore` waits for new documents that does not say it.
const AWAIT: Duration = Duration::from_secs(1);

/// A batch that is filled: documents up to a number and a size.
struct Batch {
    out: Builder,
    count: u64,
    most: u64,
    bytes: usize,
}

impl Batch {
    fn has_room(&self, document: &[u8]) -> bool {
        let fits = self.bytes + document.len() <= BATCH_BYTES_MAX;
        self.count < self.most && (fits || self.count == 0)
    }

    fn push(&mut self, document: &[u8]) {
        self.out
            .document(self.count.to_string(), Document(document));
        self.count += 1;
        self.bytes += document.len();
    }
}

/// Replies with the first batch of `source`, and keeps a cursor for the rest if there is one.
pub(super) fn first_batch(
    call: &Call<'_>,
    reads: &Reads<'_>,
    name: Name,
    source: Source,
    batch: Option<u64>,
    single: bool,
) -> Outcome<Builder> {
    let session = session_of(call).map(<[u8]>::to_vec);
    let mut cursor = Cursor {
        name,
        source,
        session,
        awaited: None,
    };
    let mut out = Builder::new();
    out.open(Kind::Document, "cursor")
        .open(Kind::Array, "firstBatch");
    let most = batch.unwrap_or(FIRST_BATCH);
    let (mut out, _, is_over) = fill(call, out, &mut cursor, reads, most)?;
    let name = cursor.name.to_string();
    let id = match is_over || single {
        true => 0,
        false => call
            .shared
            .cursors
            .open(cursor, call.shared.env.clock.monotonic())?,
    };
    out.close().i64("id", id).str("ns", &name).close();
    Ok(out)
}

/// The session of a command, as its client names it.
fn session_of<'a>(call: &Call<'a>) -> Option<&'a [u8]> {
    let session = call.body.get("lsid").and_then(Value::as_document)?;
    session.get("id").map(|id| id.bytes)
}

/// The first batch of what is all there, such as a list of collections.
pub(super) fn batch_of(
    call: &Call<'_>,
    collection: &str,
    documents: Vec<Vec<u8>>,
) -> Outcome<Builder> {
    let batch = call
        .document("cursor")?
        .and_then(|cursor| cursor.get("batchSize")?.as_whole());
    let batch = batch.and_then(|batch| u64::try_from(batch).ok());
    let name = Name::new(call.database, collection);
    first_batch(
        call,
        &call.shared.store.reads(),
        name,
        Source::Ready(documents.into()),
        batch,
        false,
    )
}

/// `getMore`.
pub(super) fn get_more(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(
        &[
            "collection",
            "batchSize",
            "term",
            "lastKnownCommittedOpTime",
        ],
        &[],
    )?;
    call.check(&[("lastKnownCommittedOpTime", Shape::Document)])?;
    let long = |name: &str, value: Value<'_>| match value.kind {
        Kind::Int64 => Ok(value.as_whole().unwrap_or_default()),
        _ => Err(call.mismatch(name, value, "long")),
    };
    let id = required(call.name, call.body, call.name, Shape::Any)?;
    let id = long(call.name, id)?;
    if let Some(term) = call.body.get("term").filter(|it| it.kind != Kind::Null) {
        long("term", term)?;
    }
    let name = required(call.name, call.body, "collection", Shape::Text)?;
    let name = call.collection_of(Some(name))?;
    let most = call
        .count("batchSize")?
        .filter(|most| *most > 0)
        .unwrap_or(u64::MAX);
    let time_limit = time_limit(call.name, call.body)?;
    let shared = call.shared;
    let now = shared.env.clock.monotonic();
    let mut cursor = shared.cursors.take(id, &name, session_of(call))?;
    let is_awaiting = matches!(cursor.tail(), Some((Tail::Await, _)));
    if time_limit.is_some() && !is_awaiting {
        shared.cursors.put_back(id, cursor, now);
        let text = "cannot set maxTimeMS on getMore command for a non-awaitData cursor";
        return Err(Refusal::bad_value(text).into());
    }
    let until = match cursor.awaited.take() {
        Some((connection, until)) if connection == call.connection => until,
        _ => now + time_limit.map_or(AWAIT, Duration::from_millis),
    };
    let may_wait = is_awaiting && now < until && call.pause.is_some();
    if let Some(collection) = shared.store.collection(&name).filter(|_| may_wait) {
        let tailed = (name.clone(), collection.uuid);
        shared.tails.begin(call.connection, id, tailed);
    }
    let mut out = Builder::new();
    out.open(Kind::Document, "cursor")
        .open(Kind::Array, "nextBatch");
    let reads = shared.store.reads();
    let filled = fill(call, out, &mut cursor, &reads, most);
    if may_wait && matches!(filled, Ok((_, 0, false))) {
        cursor.awaited = Some((call.connection, until));
        shared.cursors.put_back(id, cursor, now);
        call.pause.iter().for_each(|it| it.set(Some(until - now)));
        return Ok(Builder::new());
    }
    shared.tails.end(call.connection);
    let (mut out, _, is_over) = filled?;
    if !is_over {
        shared
            .cursors
            .put_back(id, cursor, shared.env.clock.monotonic());
    }
    out.close()
        .i64("id", if is_over { 0 } else { id })
        .str("ns", &name.to_string())
        .close();
    Ok(out)
}

/// Fills a batch; how many documents it has, and whether the cursor is at its end.
fn fill(
    call: &Call<'_>,
    out: Builder,
    cursor: &mut Cursor,
    reads: &Reads<'_>,
    most: u64,
) -> Outcome<(Builder, u64, bool)> {
    let mut batch = Batch {
        out,
        count: 0,
        most,
        bytes: 0,
    };
    let is_over = match &mut cursor.source {
        Source::Ready(documents) => {
            while documents
                .front()
                .is_some_and(|document| batch.has_room(document))
            {
                documents
                    .pop_front()
                    .iter()
                    .for_each(|document| batch.push(document));
            }
            documents.is_empty()
        }
        Source::Results(results) => loop {
            let Some(document) = results.next()? else {
                break true;
            };
            if !batch.has_room(&document) {
                results.pending = Some(document);
                break false;
            }
            batch.push(&document);
        },
        Source::Walk(walking) => walk(walking, &cursor.name, reads, &mut batch)?,
    };
    call.shared.counters.returned.add(batch.count);
    Ok((batch.out, batch.count, is_over))
}

fn walk(walking: &mut Walking, name: &Name, reads: &Reads<'_>, batch: &mut Batch) -> Outcome<bool> {
    let killed = |what: &str| {
        Refusal::new(
            Code::QueryPlanKilled,
            format!("{what} of {name} was dropped while a cursor was open"),
        )
    };
    let collection = reads
        .collection(name)
        .filter(|collection| collection.uuid == walking.uuid);
    let collection = collection.ok_or_else(|| killed("the collection"))?;
    let is_there = |index| {
        let mut known = collection.indexes.iter();
        known.any(|known| std::sync::Arc::ptr_eq(known, index))
    };
    if !walking.walk.plan().access.indexes().all(is_there) {
        return Err(killed("an index").into());
    }
    if let Some(document) = walking.pending.take() {
        match batch.has_room(&document) {
            true => batch.push(&document),
            false => walking.pending = Some(document),
        }
    }
    if walking.pending.is_some() || walking.is_over || batch.most == 0 {
        return Ok(walking.is_over && walking.pending.is_none());
    }
    let Walking {
        walk,
        filter,
        projection,
        skip,
        limit,
        pending,
        ..
    } = walking;
    let is_over = *limit == 0
        || walk.go_on(reads, &collection, &mut |_, document| {
            if !filter.matches(document)? {
                return Ok(true);
            }
            if *skip > 0 {
                *skip -= 1;
                return Ok(true);
            }
            *limit -= 1;
            let made;
            let document = match projection {
                Some(projection) => {
                    made = projection.apply(document, Some(filter))?;
                    made.as_slice()
                }
                None => document.0,
            };
            match batch.has_room(document) {
                true => batch.push(document),
                false => *pending = Some(document.to_vec()),
            }
            Ok(*limit > 0 && pending.is_none() && batch.count < batch.most)
        })?;
    walking.is_over = match walking.tail {
        // One that has met no document has no place to stay at.
        Some(_) => walking.walk.is_at_beginning(),
        None => is_over || walking.limit == 0,
    };
    Ok(walking.is_over && walking.pending.is_none())
}

/// `killCursors`.
pub(super) fn kill_cursors(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["cursors"], &[])?;
    call.collection_of(call.body.get(call.name))?;
    let cursors = required(call.name, call.body, "cursors", Shape::Array)?;
    let mut ids = Vec::new();
    for id in cursors.as_array().into_iter().flatten() {
        match (id.value.kind, id.value.as_whole()) {
            (Kind::Int64, Some(id)) => ids.push(id),
            (Kind::Null, _) => {}
            _ => return Err(call.mismatch("cursors", id.value, "long").into()),
        }
    }
    let (killed, unknown): (Vec<i64>, Vec<i64>) =
        ids.iter().partition(|id| call.shared.cursors.kill(**id));
    call.shared.tails.killed(&killed);
    let mut reply = Builder::new();
    for (name, ids) in [
        ("cursorsKilled", killed),
        ("cursorsNotFound", unknown),
        ("cursorsAlive", vec![]),
        ("cursorsUnknown", vec![]),
    ] {
        reply.open(Kind::Array, name);
        for (at, id) in ids.into_iter().enumerate() {
            reply.i64(at.to_string(), id);
        }
        reply.close();
    }
    Ok(reply)
}
