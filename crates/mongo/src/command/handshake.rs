//! What drivers ask first.

use std::time::Duration;

use drumlin_doc::{Builder, Code, DOCUMENT_BYTES_MAX, Document, Kind, Refusal, Value};
use drumlin_doc_store::Outcome;

use crate::shared::Shared;
use crate::wire::compressed::Compressor;
use crate::wire::limits::{MESSAGE_BYTES_MAX, PAUSE_MS_MAX, WIRE_VERSION, WRITES_MAX};
use crate::wire::request::Request;

use super::call::Call;
use super::{sasl, users};

/// The version of MongoDB whose behaviour is served.
pub(super) const VERSION: &str = "7.0.0";

fn small(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// How long a greeting waits for news of the server, of which there are none: who says which topology it knows is told again after the
/// time that it names. `None` of other messages, and where that topology is another server's.
pub(crate) fn pause_of(shared: &Shared, request: &Request<'_>) -> Option<Duration> {
    let first = request.body.iter().next()?;
    if !matches!(first.name_str(), "hello" | "isMaster" | "ismaster") || request.is_silent {
        return None;
    }
    let known = request.body.get("topologyVersion")?.as_document()?;
    let is_known = known.get("processId")?.bytes == shared.process_id().as_slice()
        && known.get("counter")?.as_whole() == Some(0);
    let ms = request.body.get("maxAwaitTimeMS")?.as_whole()?;
    let is_known = is_known && !drumlin_base::bug!("mongo-greetings-never-wait");
    let ms = u64::try_from(ms).ok().filter(|_| is_known)?;
    Some(Duration::from_millis(ms.min(PAUSE_MS_MAX)))
}

/// `hello`, and its older names.
pub(super) fn hello(call: &Call<'_>) -> Outcome<Builder> {
    let has = |name: &str| call.body.get(name).is_some();
    if has("topologyVersion") != has("maxAwaitTimeMS") {
        let text = "hello takes topologyVersion and maxAwaitTimeMS together";
        return Err(Refusal::new(Code::AwaitTogether, text).into());
    }
    let wait = call.body.get("maxAwaitTimeMS");
    if wait.is_some_and(|wait| wait.as_whole().is_none_or(|ms| ms < 0)) {
        let text = "maxAwaitTimeMS must be a non-negative integer";
        return Err(Refusal::new(Code::AwaitNegative, text).into());
    }
    let mut reply = Builder::new();
    match call.name {
        "hello" => reply.bool("isWritablePrimary", true),
        _ => reply.bool("ismaster", true),
    };
    reply
        .bool("helloOk", true)
        .i32("maxBsonObjectSize", small(DOCUMENT_BYTES_MAX));
    reply
        .i32("maxMessageSizeBytes", small(MESSAGE_BYTES_MAX))
        .i32("maxWriteBatchSize", small(WRITES_MAX));
    reply
        .date("localTime", call.shared.now_ms())
        .i32("logicalSessionTimeoutMinutes", 30);
    reply.i32(
        "connectionId",
        i32::try_from(call.connection).unwrap_or(i32::MAX),
    );
    reply
        .i32("minWireVersion", 0)
        .i32("maxWireVersion", WIRE_VERSION)
        .bool("readOnly", false);
    reply.open(Kind::Document, "topologyVersion");
    let process = Value {
        kind: Kind::ObjectId,
        bytes: call.shared.process_id(),
    };
    reply.value("processId", process).i64("counter", 0).close();
    compressors(call.body, &mut reply);
    if let Some(user) = call.body.get("saslSupportedMechs").and_then(Value::as_str) {
        users::mechanisms(call, user, &mut reply);
    }
    let begins = call.body.get("speculativeAuthenticate");
    if let Some(begins) = begins.and_then(Value::as_document) {
        sasl::begin_with_hello(call, begins, &mut reply);
    }
    Ok(reply)
}

/// Those of the compressors that a client offers which are served, in its order.
fn compressors(of: Document<'_>, reply: &mut Builder) {
    let Some(offered) = of.get("compression").and_then(Value::as_array) else {
        return;
    };
    let names = offered.iter().filter_map(|item| item.value.as_str());
    let served: Vec<&str> = names.filter(|name| Compressor::serves(name)).collect();
    if !served.is_empty() {
        reply.open(Kind::Array, "compression");
        for (at, name) in served.iter().enumerate() {
            reply.str(at.to_string(), name);
        }
        reply.close();
    }
}

/// `buildInfo`.
pub(super) fn build_info(_: &Call<'_>) -> Outcome<Builder> {
    let mut reply = Builder::new();
    reply
        .str("version", VERSION)
        .str("gitVersion", "drumlin")
        .open(Kind::Array, "modules")
        .close();
    reply
        .str("drumlinVersion", env!("CARGO_PKG_VERSION"))
        .open(Kind::Array, "versionArray");
    for (at, number) in [7, 0, 0, 0].into_iter().enumerate() {
        reply.i32(at.to_string(), number);
    }
    reply
        .close()
        .i32("bits", 64)
        .bool("debug", false)
        .i32("maxBsonObjectSize", small(DOCUMENT_BYTES_MAX));
    reply
        .open(Kind::Array, "storageEngines")
        .str("0", "drumlin")
        .close();
    Ok(reply)
}

/// Commands that say nothing: `ping`, `endSessions`.
pub(super) fn ok(_: &Call<'_>) -> Outcome<Builder> {
    Ok(Builder::new())
}

pub(super) fn connection_status(call: &Call<'_>) -> Outcome<Builder> {
    let peer = call.shared.peers.get(call.connection);
    let mut reply = Builder::new();
    reply
        .open(Kind::Document, "authInfo")
        .open(Kind::Array, "authenticatedUsers");
    for (at, user) in peer.users.iter().enumerate() {
        reply
            .open(Kind::Document, at.to_string())
            .str("user", &user.name)
            .str("db", &user.database)
            .close();
    }
    reply.close().open(Kind::Array, "authenticatedUserRoles");
    for (at, role) in peer.roles().iter().enumerate() {
        reply
            .open(Kind::Document, at.to_string())
            .str("role", &role.name)
            .str("db", &role.database)
            .close();
    }
    reply.close().close();
    Ok(reply)
}

pub(super) fn start_session(call: &Call<'_>) -> Outcome<Builder> {
    let mut reply = Builder::new();
    reply
        .open(Kind::Document, "id")
        .binary("id", 4, &call.shared.store.random_bytes::<16>())
        .close();
    reply.i32("timeoutMinutes", 30);
    Ok(reply)
}

pub(super) fn uri(call: &Call<'_>) -> Outcome<Builder> {
    let mut reply = Builder::new();
    reply.str("you", &format!("connection {}", call.connection));
    Ok(reply)
}
