//! What tools ask about the server.

use drumlin_base::sync::atomic::Ordering;
use drumlin_doc::{Builder, Code, Kind, Refusal};
use drumlin_doc_store::{Outcome, StoredBytes};

use crate::statistics::{scale, storage};

use super::call::Call;

/// Parameters, by MongoDB's names.
const EXPIRY_SECONDS: &str = "ttlMonitorSleepSecs";
const SORT_MEMORY: &str = "internalQueryMaxBlockingSortMemoryUsageBytes";

/// `hostInfo`.
pub(super) fn host(call: &Call<'_>) -> Outcome<Builder> {
    let mut reply = Builder::new();
    reply
        .open(Kind::Document, "system")
        .date("currentTime", call.shared.now_ms())
        .str("hostname", "localhost")
        .close();
    reply
        .open(Kind::Document, "os")
        .str("type", "Linux")
        .close();
    Ok(reply)
}

/// `getCmdLineOpts`.
pub(super) fn command_line(_: &Call<'_>) -> Outcome<Builder> {
    let mut reply = Builder::new();
    reply
        .open(Kind::Array, "argv")
        .str("0", "drumlin")
        .close()
        .open(Kind::Document, "parsed")
        .close();
    Ok(reply)
}

/// `getLog`: there is none to be read this way.
pub(super) fn log(_: &Call<'_>) -> Outcome<Builder> {
    let mut reply = Builder::new();
    reply
        .i32("totalLinesWritten", 0)
        .open(Kind::Array, "log")
        .close();
    Ok(reply)
}

/// `getParameter`.
pub(super) fn parameters(call: &Call<'_>) -> Outcome<Builder> {
    let first = call.body.iter().next().map(|first| first.value);
    let is_all = first.is_some_and(|first| first.as_str() == Some("*"));
    let asks = |name: &str| is_all || call.body.get(name).is_some();
    let mut reply = Builder::new();
    if asks("featureCompatibilityVersion") {
        reply
            .open(Kind::Document, "featureCompatibilityVersion")
            .str("version", "7.0")
            .close();
    }
    if asks("enableTestCommands") {
        reply.bool("enableTestCommands", false);
    }
    if asks(EXPIRY_SECONDS) {
        let seconds = call.shared.expiry_seconds.load(Ordering::Relaxed);
        reply.i32(EXPIRY_SECONDS, i32::try_from(seconds).unwrap_or(i32::MAX));
    }
    if asks(SORT_MEMORY) {
        reply.count(SORT_MEMORY, call.shared.scratch.asked_limit() as u64);
    }
    match reply.is_empty() {
        true => Err(Refusal::new(Code::InvalidOptions, "no option found to get").into()),
        false => Ok(reply),
    }
}

/// `setParameter`: how often documents are looked for whose time is over, and what a sort may have in memory.
pub(super) fn set_parameter(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&[EXPIRY_SECONDS, SORT_MEMORY], &[])?;
    let given = |name: &str| Ok::<_, Refusal>(call.count(name)?.filter(|value| *value > 0));
    let mut reply = Builder::new();
    if let Some(seconds) = given(EXPIRY_SECONDS)? {
        let was = call.shared.expiry_seconds.swap(seconds, Ordering::Relaxed);
        reply.count("was", was);
    } else if let Some(bytes) = given(SORT_MEMORY)? {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        reply.count("was", call.shared.scratch.set_limit(bytes) as u64);
    } else {
        let text = format!("setParameter takes {EXPIRY_SECONDS} or {SORT_MEMORY}, above 0");
        return Err(Refusal::new(Code::InvalidOptions, text).into());
    }
    Ok(reply)
}

/// `collStats`.
pub(super) fn collection_stats(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["scale"], &[])?;
    let name = call.collection()?;
    let scale = scale(call.body.get("scale"))?;
    let mut reply = Builder::new();
    reply.str("ns", &name.to_string());
    storage(&mut reply, &call.shared.store.reads(), &name, scale)?;
    Ok(reply)
}

/// `compact`: a collection without what was deleted.
pub(super) fn compact(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["force", "freeSpaceTargetMB"], &["dryRun"])?;
    let name = call.collection()?;
    let stored = || {
        let reads = call.shared.store.reads();
        let collection = reads.collection(&name).ok_or_else(|| {
            let text = format!("the collection {name} does not exist");
            Refusal::new(Code::NamespaceNotFound, text)
        })?;
        collection.refuse_view()?;
        let bytes = reads.stored_bytes(&collection)?;
        let bytes = bytes.documents + bytes.indexes.iter().sum::<u64>();
        Outcome::Ok((collection, bytes))
    };
    let (collection, before) = stored()?;
    call.shared.store.compact(&collection)?;
    let mut reply = Builder::new();
    reply.count("bytesFreed", before.saturating_sub(stored()?.1));
    Ok(reply)
}

/// `dbStats`.
pub(super) fn database_stats(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["scale", "freeStorage"], &[])?;
    let scale = scale(call.body.get("scale"))?;
    let reads = call.shared.store.reads();
    let (mut collections, mut views, mut objects, mut size, mut indexes) = (0, 0, 0, 0, 0);
    let mut stored = StoredBytes::default();
    for collection in reads.catalog().iter() {
        if collection.name.database != call.database {
            continue;
        }
        if collection.options.view.is_some() {
            views += 1;
            continue;
        }
        collections += 1;
        objects += collection.documents();
        size += collection.bytes();
        indexes += collection.index_count() as u64;
        let own = reads.stored_bytes(collection)?;
        stored.documents += own.documents;
        stored.indexes.extend(own.indexes);
    }
    let in_indexes: u64 = stored.indexes.iter().sum();
    let mut reply = Builder::new();
    reply
        .str("db", call.database)
        .count("collections", collections)
        .count("views", views)
        .count("objects", objects)
        .f64("avgObjSize", size as f64 / objects.max(1) as f64)
        .count("dataSize", size / scale)
        .count("storageSize", stored.documents / scale)
        .count("indexes", indexes)
        .count("indexSize", in_indexes / scale)
        .count("totalSize", (stored.documents + in_indexes) / scale)
        .count("scaleFactor", scale);
    Ok(reply)
}

/// `validate`: all documents and indexes are read and compared.
pub(super) fn validate(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(
        &["full", "background"],
        &["repair", "metadata", "checkBSONConformance"],
    )?;
    let name = call.collection()?;
    let reads = call.shared.store.reads();
    let missing = || {
        Refusal::new(
            Code::NamespaceNotFound,
            format!("Collection '{name}' does not exist to validate."),
        )
    };
    let collection = reads.collection(&name).ok_or_else(missing)?;
    collection.refuse_view()?;
    let outcome = reads.check(&collection);
    let mut reply = Builder::new();
    reply
        .str("ns", &name.to_string())
        .count("nrecords", collection.documents());
    reply
        .count("nIndexes", collection.index_count() as u64)
        .bool("valid", outcome.is_ok());
    reply.open(Kind::Array, "errors");
    if let Err(error) = outcome {
        reply.str("0", &error.to_string());
    }
    reply.close();
    Ok(reply)
}
