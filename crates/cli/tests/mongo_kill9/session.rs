//! A connection that speaks OP_MSG, one command at a time.

use drumlin_doc::{Builder, Document, Kind, Value};
use drumlin_fs::net::Address;
use drumlin_testkit::redis::Link;

const OP_MSG: u32 = 2013;
/// Header, flags and the kind of the section in front of a body.
const BEFORE_BODY: usize = 21;

pub(crate) struct Session {
    link: Link,
    requests: u32,
}

impl Session {
    /// One to the server at `address`, which is there.
    pub(crate) fn to(address: &Address) -> Self {
        Self {
            link: Link::to(address),
            requests: 0,
        }
    }

    /// The reply to a command of `database`; none when the server is gone.
    pub(crate) fn ask(&mut self, database: &str, mut command: Builder) -> Option<Vec<u8>> {
        command.str("$db", database);
        let body = command.finish();
        self.requests += 1;
        let len = u32::try_from(body.len() + BEFORE_BODY).expect("small");
        let mut message = Vec::with_capacity(body.len() + BEFORE_BODY);
        for word in [len, self.requests, 0, OP_MSG, 0] {
            message.extend_from_slice(&word.to_le_bytes());
        }
        message.push(0);
        message.extend_from_slice(&body);
        if !self.link.send(&message) {
            return None;
        }
        let mut reply = Vec::new();
        loop {
            reply.extend_from_slice(&self.link.receive()?);
            let len = reply.first_chunk::<4>().map(|len| u32::from_le_bytes(*len));
            if len.is_some_and(|len| len as usize <= reply.len()) {
                return Some(reply.split_off(BEFORE_BODY));
            }
        }
    }

    /// The reply of a server that is there, which has to be `ok`.
    pub(crate) fn done(&mut self, database: &str, command: Builder) -> Vec<u8> {
        let reply = self.ask(database, command).expect("the server is there");
        let shown = drumlin_doc::show(Document(&reply).as_value());
        assert_eq!(whole(&reply, "ok"), Some(1), "{shown}");
        reply
    }

    /// All documents of a command's cursor, which has to give them in one batch.
    pub(crate) fn batch(&mut self, database: &str, command: Builder) -> Vec<Vec<u8>> {
        batch_of(&self.done(database, command))
    }
}

/// All documents of a reply with a cursor, which has to give them in one batch.
pub(crate) fn batch_of(reply: &[u8]) -> Vec<Vec<u8>> {
    let cursor = Document(reply).get("cursor").and_then(Value::as_document);
    let cursor = cursor.expect("a cursor");
    let id = cursor.get("id").and_then(Value::as_whole);
    assert_eq!(id, Some(0), "one batch");
    let batch = cursor.get("firstBatch").and_then(Value::as_array);
    let documents = batch.expect("a batch").iter();
    documents.map(|it| it.value.bytes.to_vec()).collect()
}

/// A whole number of a reply.
pub(crate) fn whole(reply: &[u8], name: &str) -> Option<i64> {
    Document(reply).get(name)?.as_whole()
}

/// Appends a document with whole numbers.
pub(crate) fn numbers(out: &mut Builder, name: &str, fields: &[(&str, i64)]) {
    out.open(Kind::Document, name);
    for (name, number) in fields {
        out.i64(name, *number);
    }
    out.close();
}
