//! `saslStart`, `saslContinue`, `logout`: who a connection is.

use drumlin_doc::{Builder, Code, Document, Kind, Refusal, Value};
use drumlin_doc_store::Outcome;

use crate::auth::{Exchange, Mechanism, Peer, User, failed, first};

use super::call::Call;

fn payload<'v>(of: Document<'v>) -> Result<&'v [u8], Refusal> {
    let payload = of
        .get("payload")
        .filter(|payload| payload.kind == Kind::Binary);
    let bytes = payload.and_then(|payload| payload.bytes.get(5..));
    bytes.ok_or_else(|| Refusal::bad_value("a SCRAM message needs binary data as payload"))
}

fn answered(reply: &mut Builder, conversation: i32, is_done: bool, text: &str) {
    reply
        .i32("conversationId", conversation)
        .bool("done", is_done)
        .binary("payload", 0, text.as_bytes());
}

/// `saslStart`.
pub(super) fn start(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["mechanism", "payload", "options", "autoAuthorize"], &[])?;
    let mut reply = Builder::new();
    begin(call, call.body, call.database, &mut reply)?;
    Ok(reply)
}

/// Begins a conversation: the user is looked up, and its salt told.
fn begin(call: &Call<'_>, of: Document<'_>, database: &str, reply: &mut Builder) -> Outcome<()> {
    let name = of
        .get("mechanism")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mechanism = Mechanism::of(name).ok_or_else(|| {
        let text = format!(
            "Received authentication for mechanism {name} which is not supported by this server"
        );
        Refusal::new(Code::MechanismUnavailable, text)
    })?;
    let first = first(payload(of)?)?;
    let shared = call.shared;
    let user = shared.users.find(&shared.store, database, &first.user)?;
    let kept = user
        .as_ref()
        .and_then(|user| user.credentials_of(mechanism).cloned());
    let kept = kept.unwrap_or_else(|| {
        let name = format!("{database}.{}", first.user);
        mechanism.nobody(&shared.users.secret, &name)
    });
    let (exchange, text) =
        Exchange::begin(mechanism, kept, &first, &shared.store.random_bytes::<24>());
    let user = user.unwrap_or_else(|| User {
        database: database.to_owned(),
        name: first.user.clone(),
        ..User::default()
    });
    let mut peer = shared.peers.get(call.connection);
    peer.conversation = Some((1, user, Some(exchange)));
    peer.skips_last = of
        .get("options")
        .and_then(Value::as_document)
        .and_then(|options| options.get("skipEmptyExchange"))
        .is_some_and(Value::is_truthy);
    shared.peers.set(call.connection, peer);
    answered(reply, 1, false, &text);
    Ok(())
}

/// The beginning of a conversation that comes with `hello`. What is wrong with it is told by what follows.
pub(super) fn begin_with_hello(call: &Call<'_>, of: Document<'_>, reply: &mut Builder) {
    let database = of.get("db").and_then(Value::as_str).unwrap_or("admin");
    let mut inner = Builder::new();
    if begin(call, of, database, &mut inner).is_ok() {
        reply.document("speculativeAuthenticate", Document(&inner.finish()));
    }
}

/// `saslContinue`: the client's proof, and then, if it wants that, nothing.
pub(super) fn go_on(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["conversationId", "payload"], &[])?;
    let shared = call.shared;
    let mut peer: Peer = shared.peers.get(call.connection);
    let message = payload(call.body)?;
    let wanted = call.body.get("conversationId").and_then(Value::as_whole);
    let Some((id, user, exchange)) = peer.conversation.take() else {
        return Err(Refusal::new(Code::ProtocolError, "No SASL session state found").into());
    };
    // A conversation that fails is over.
    shared.peers.set(call.connection, peer.clone());
    if wanted != Some(i64::from(id)) {
        return Err(Refusal::new(Code::ProtocolError, "sasl: Mismatched conversation id").into());
    }
    let mut reply = Builder::new();
    match exchange {
        Some(exchange) => {
            let text = exchange.finish(message)?;
            let is_done = peer.skips_last;
            answered(&mut reply, id, is_done, &text);
            match is_done {
                true => log_in(&mut peer, user),
                false => peer.conversation = Some((id, user, None)),
            }
        }
        None if message.is_empty() => {
            answered(&mut reply, id, true, "");
            log_in(&mut peer, user);
        }
        None => return Err(failed().into()),
    }
    shared.peers.set(call.connection, peer);
    Ok(reply)
}

fn log_in(peer: &mut Peer, user: User) {
    peer.users.retain(|known| known.database != user.database);
    peer.users.push(user);
}

/// `logout`: the connection is nobody of that database.
pub(super) fn logout(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&[], &[])?;
    let mut peer = call.shared.peers.get(call.connection);
    peer.users.retain(|user| user.database != call.database);
    peer.conversation = None;
    call.shared.peers.set(call.connection, peer);
    Ok(Builder::new())
}
