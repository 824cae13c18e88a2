//! What drivers ask first.

use drumlin_doc::{Builder, DOCUMENT_BYTES_MAX, Kind};
use drumlin_doc_store::Outcome;

use crate::wire::limits::{MESSAGE_BYTES_MAX, WIRE_VERSION, WRITES_MAX};

use super::call::Call;

/// The version of MongoDB whose behaviour is served.
const VERSION: &str = "7.0.0";

fn small(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// `hello`, and its older names.
pub(super) fn hello(call: &Call<'_>) -> Outcome<Builder> {
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
    Ok(reply)
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

pub(super) fn connection_status(_: &Call<'_>) -> Outcome<Builder> {
    let mut reply = Builder::new();
    reply.open(Kind::Document, "authInfo");
    reply
        .open(Kind::Array, "authenticatedUsers")
        .close()
        .open(Kind::Array, "authenticatedUserRoles")
        .close();
    reply.close();
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
