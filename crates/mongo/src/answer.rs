//! From the bytes of a message to those of its reply.

use std::time::Duration;

use drumlin_doc::{Builder, Code, Document, Refusal};

use crate::command;
use crate::shared::Shared;
use crate::wire::compressed;
use crate::wire::header::{Header, OP_COMPRESSED, OP_MSG};
use crate::wire::request::{Request, Wrong};
use crate::wire::{reply, request};

/// What is to be done about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Send these bytes; none where the client waits for nothing.
    Send(Vec<u8>),
    /// Close the connection, for this reason.
    Close(String),
    /// Send these bytes, if any, and have [`answer_waited`] answer this message after so long.
    Wait {
        /// What is sent now.
        reply: Vec<u8>,
        /// The message.
        message: Vec<u8>,
        /// How long nothing is said.
        pause: Duration,
    },
}

/// Carries out the whole message `bytes` of a connection. May wait for the disk.
pub fn answer(shared: &Shared, connection: u64, bytes: &[u8]) -> Answer {
    respond(shared, connection, bytes, false)
}

/// As [`answer`], for a message that has waited.
pub fn answer_waited(shared: &Shared, connection: u64, bytes: &[u8]) -> Answer {
    respond(shared, connection, bytes, true)
}

/// Where the first field of an `OP_MSG`'s document begins, if that is its first section: the name of the command, behind its type.
const FIRST_FIELD: usize = 21 + 4;
/// The commands that may be answered at once, as fields.
const AT_ONCE: [&[u8]; 3] = [b"\x02find\0", b"\x02insert\0", b"\x02update\0"];
/// The longest of their messages.
const AT_ONCE_BYTES_MAX: usize = 16 << 10;

/// The reply to a message, if it is about one document by its `_id`, or inserts some, and need not wait: for the disk, for other writers,
/// for room in memory. It takes microseconds, and of a large document as long as it takes to copy it.
pub(crate) fn answer_at_once(shared: &Shared, connection: u64, bytes: &[u8]) -> Option<Vec<u8>> {
    let field = bytes.get(FIRST_FIELD..)?;
    if bytes.len() > AT_ONCE_BYTES_MAX || !AT_ONCE.iter().any(|name| field.starts_with(name)) {
        return None;
    }
    let header = Header::read(bytes).ok()??;
    if header.opcode != OP_MSG || header.len != bytes.len() {
        return None;
    }
    let request = request::read(header, bytes).ok()?;
    if request.is_silent {
        return None;
    }
    let document = command::run_at_once(shared, connection, request.body, &request.sequences)?;
    Some(reply::write(header, &document, request.has_checksum))
}

fn respond(shared: &Shared, connection: u64, bytes: &[u8], has_waited: bool) -> Answer {
    let header = match Header::read(bytes) {
        Ok(Some(header)) if header.len == bytes.len() => header,
        Ok(_) => return Answer::Close("a message that is not whole".to_owned()),
        Err(text) => return Answer::Close(text),
    };
    if header.opcode == OP_COMPRESSED {
        let (inner, compressor) = match compressed::open(header, bytes) {
            Ok(inner) => inner,
            Err(text) => return Answer::Close(text),
        };
        // Who greets does not compress, so no greeting is kept waiting here.
        return match respond(shared, connection, &inner, true) {
            Answer::Send(reply) if !reply.is_empty() => {
                Answer::Send(compressed::close(reply, compressor))
            }
            Answer::Wait { pause, .. } => Answer::Wait {
                reply: Vec::new(),
                message: bytes.to_vec(),
                pause,
            },
            other => other,
        };
    }
    let request = match request::read(header, bytes) {
        Ok(request) => request,
        Err(Wrong::Close(text)) => return Answer::Close(text),
        Err(Wrong::Refuse(refusal)) => {
            return Answer::Send(reply::write(header, &command::refused(&refusal), false));
        }
    };
    let pause = command::pause_of(shared, &request);
    if let Some(pause) = pause.filter(|_| !has_waited) {
        return Answer::Wait {
            reply: Vec::new(),
            message: bytes.to_vec(),
            pause,
        };
    }
    let document = match run(shared, connection, &request) {
        Ok(document) => document,
        Err(pause) => {
            return Answer::Wait {
                reply: Vec::new(),
                message: bytes.to_vec(),
                pause,
            };
        }
    };
    if let Some(pause) = pause.filter(|_| request.takes_more && !request.has_checksum) {
        return go_on(shared, header, &document, (bytes, pause));
    }
    match request.is_silent {
        true => Answer::Send(Vec::new()),
        false => Answer::Send(reply::write(header, &document, request.has_checksum)),
    }
}

/// One reply of several to a message. The next one is for this one, whose number stands in the message from now on.
fn go_on(
    shared: &Shared,
    header: Header,
    document: &[u8],
    (bytes, pause): (&[u8], Duration),
) -> Answer {
    let mut reply = reply::write(header, document, false);
    let number = shared.next_reply();
    reply::more_to_come(&mut reply, number);
    let mut message = bytes.to_vec();
    let place = message
        .get_mut(4..)
        .and_then(|it| it.first_chunk_mut::<4>());
    if let Some(place) = place.filter(|_| !drumlin_base::bug!("mongo-replies-to-the-first")) {
        *place = number.to_le_bytes();
    }
    Answer::Wait {
        reply,
        message,
        pause,
    }
}

/// The reply, or for how long it is to be waited for.
fn run(shared: &Shared, connection: u64, request: &Request<'_>) -> Result<Vec<u8>, Duration> {
    let Some(of) = request.query_of else {
        return command::run_or_wait(shared, connection, request.body, &request.sequences);
    };
    // Some drivers wrap the command when they have more to say.
    let body = ["$query", "query"]
        .iter()
        .find_map(|name| request.body.get(name)?.as_document());
    let body = body.unwrap_or(request.body);
    let name = body
        .iter()
        .next()
        .map(|first| first.name_str())
        .unwrap_or_default();
    let served = [
        "hello",
        "isMaster",
        "ismaster",
        "ping",
        "buildInfo",
        "buildinfo",
    ];
    let Some(database) = of.strip_suffix(".$cmd").filter(|_| served.contains(&name)) else {
        let text = format!(
            "Unsupported OP_QUERY command: {name}. The client driver may require an upgrade."
        );
        return Ok(command::refused(&Refusal::new(
            Code::UnsupportedOpQuery,
            text,
        )));
    };
    let mut with = Builder::new();
    for element in body {
        with.value(element.name, element.value);
    }
    with.str("$db", database);
    Ok(command::run(
        shared,
        connection,
        Document(&with.finish()),
        &[],
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use drumlin::Options;
    use drumlin_doc::Kind;
    use drumlin_doc_store::{CollectionOptions, Name, Store, StoreOptions, Validator};
    use drumlin_fs::{Env, StrictMemFileSystem};

    use super::*;
    use crate::wire::header::{OP_MSG, OP_QUERY};

    fn shared() -> Arc<Shared> {
        over(Arc::new(StrictMemFileSystem::new()))
    }

    fn over(files: Arc<StrictMemFileSystem>) -> Arc<Shared> {
        let env = Env::system().with_files(files);
        let engine = Options {
            env: env.clone(),
            background_threads: Some(0),
            memory_budget: Some(4 << 20),
            ..Options::default()
        };
        let store = Store::open(Path::new("/mongo"), StoreOptions { engine }).expect("opens");
        Shared::new(store, env)
    }

    fn command(name: &str) -> Vec<u8> {
        let mut out = Builder::new();
        out.i32(name, 1).str("$db", "admin");
        out.finish()
    }

    /// A message of flags and sections, with a checksum where the flags say so.
    fn message(flags: u32, sections: &[(u8, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        for number in [9, 0, OP_MSG, flags] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for (kind, section) in sections {
            bytes.push(*kind);
            bytes.extend_from_slice(section);
        }
        let len = bytes.len() as u32 + 4 * (flags & 1);
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        if flags & 1 == 1 {
            let sum = drumlin_base::checksum::crc32c(&bytes);
            bytes.extend_from_slice(&sum.to_le_bytes());
        }
        bytes
    }

    fn reply(shared: &Shared, message: &[u8]) -> Vec<u8> {
        match answer(shared, 1, message) {
            Answer::Send(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    fn ok(document: &[u8]) -> bool {
        Document(document)
            .get("ok")
            .is_some_and(|ok| ok.as_whole() == Some(1))
    }

    /// A write of one document, in a section of its own behind the body, as drivers send it.
    fn write(name: &str, field: &str, one: &[u8], more: &dyn Fn(&mut Builder)) -> Vec<u8> {
        let mut body = Builder::new();
        body.str(name, "c").str("$db", "d");
        more(&mut body);
        let mut section = vec![0; 4];
        section.extend_from_slice(field.as_bytes());
        section.push(0);
        section.extend_from_slice(one);
        let len = section.len() as u32;
        section[..4].copy_from_slice(&len.to_le_bytes());
        message(0, &[(0, &body.finish()), (1, &section)])
    }

    #[test]
    fn a_write_at_once_does_what_it_does_in_turn() {
        let plain = |_: &mut Builder| {};
        let insert = |id: i32, text: &str| {
            let mut new = Builder::new();
            new.i32("_id", id).i32("n", 0).str("a", text);
            write("insert", "documents", &new.finish(), &plain)
        };
        let update = |field: &str, operator: &str, value: i32, more: &dyn Fn(&mut Builder)| {
            let mut one = Builder::new();
            one.open(Kind::Document, "q").i32(field, 1).close();
            one.open(Kind::Document, "u");
            one.open(Kind::Document, operator).i32("n", value).close();
            one.close();
            more(&mut one);
            write("update", "updates", &one.finish(), &plain)
        };
        let (quick, slow) = (shared(), shared());
        // A collection is made in its turn.
        assert_eq!(answer_at_once(&quick, 1, &insert(1, "x")), None);
        for shared in [&quick, &slow] {
            assert!(ok(&reply(shared, &insert(1, "x"))[21..]));
        }
        let writes = [
            insert(2, "y"),
            // Their errors are final.
            insert(2, "y"),
            update("_id", "$inc", 5, &plain),
            update("_id", "$set", 5, &plain),
            update("_id", "$nothing", 5, &plain),
        ];
        for message in &writes {
            let at_once = answer_at_once(&quick, 1, message).expect("nothing is in its way");
            assert_eq!(at_once[8..], reply(&slow, message)[8..]);
        }
        let journaled = |body: &mut Builder| {
            body.open(Kind::Document, "writeConcern")
                .bool("j", true)
                .close();
        };
        let mut new = Builder::new();
        new.i32("_id", 9);
        let mut options = Builder::new();
        options.i32("n", 0);
        let validator = Validator::new(Document(&options.finish())).expect("a filter");
        let options = CollectionOptions {
            validator: Some(validator),
            ..CollectionOptions::default()
        };
        let name = Name::new("d", "checked");
        assert!(quick.store.create_with(&name, options).expect("creates"));
        let mut body = Builder::new();
        body.str("insert", "checked").str("$db", "d");
        body.open(Kind::Array, "documents");
        body.open(Kind::Document, "0").i32("n", 1).close().close();
        let checked = message(0, &[(0, &body.finish())]);
        let others = [
            // A validator may take its time.
            checked,
            write("insert", "documents", &new.finish(), &journaled),
            write("delete", "deletes", &[5, 0, 0, 0, 0], &plain),
            update("n", "$inc", 1, &plain),
            update("_id", "$inc", 1, &|one| {
                one.bool("upsert", true);
            }),
            update("_id", "$inc", 1, &|one| {
                one.bool("multi", true);
            }),
            insert(10, &"long ".repeat(4000)),
            // More documents than one batch has: the first batch must not be in when the others have to wait.
            write("insert", "documents", &[5, 0, 0, 0, 0].repeat(1001), &plain),
            update("_id", "$pull", 1, &plain),
        ];
        let documents = || {
            let collection = quick.store.collection(&Name::new("d", "c"));
            collection.expect("a collection").documents()
        };
        let before = documents();
        for other in &others {
            assert_eq!(answer_at_once(&quick, 1, other), None);
            assert_eq!(documents(), before);
        }
        // Nor is a long document changed.
        let mut find = Builder::new();
        find.str("find", "c").str("$db", "d");
        let find = message(0, &[(0, &find.finish())]);
        assert_eq!(reply(&quick, &find)[8..], reply(&slow, &find)[8..]);
        let counts = |shared: &Shared| {
            let counters = &shared.counters;
            [
                &counters.inserts,
                &counters.inserted,
                &counters.updates,
                &counters.updated,
            ]
            .map(|it| it.get())
        };
        assert_eq!(counts(&quick), counts(&slow));
        for long in ["x", "longer "] {
            let mut one = Builder::new();
            one.open(Kind::Document, "q").i32("_id", 2).close();
            one.open(Kind::Document, "u").open(Kind::Document, "$set");
            one.str("a", &long.repeat(10_000)).close().close();
            let whole = write("update", "updates", &one.finish(), &plain);
            assert!(ok(&reply(&quick, &whole)[21..]));
        }
        let mut one = Builder::new();
        one.open(Kind::Document, "q").i32("_id", 2).close();
        one.open(Kind::Document, "u").open(Kind::Document, "$inc");
        one.i32("n", 1).close().close();
        let of_long = write("update", "updates", &one.finish(), &plain);
        assert_eq!(answer_at_once(&quick, 1, &of_long), None);
        assert!(ok(&reply(&quick, &of_long)[21..]));
    }

    #[test]
    fn a_lookup_at_once_gives_what_it_gives_in_turn() {
        let files = Arc::new(StrictMemFileSystem::new());
        let shared = over(Arc::clone(&files));
        let find = |more: &dyn Fn(&mut Builder)| {
            let mut body = Builder::new();
            body.str("find", "c");
            more(&mut body);
            body.str("$db", "d");
            message(0, &[(0, &body.finish())])
        };
        let by = |body: &mut Builder, name: &str, value: i32| {
            body.open(Kind::Document, "filter").i32(name, value).close();
        };
        let mut insert = Builder::new();
        insert.str("insert", "c").open(Kind::Array, "documents");
        for n in 0..9 {
            let name = n.to_string();
            insert
                .open(Kind::Document, name)
                .i32("_id", n)
                .str("a", "x")
                .close();
        }
        insert.close().str("$db", "d");
        assert!(ok(
            &reply(&shared, &message(0, &[(0, &insert.finish())]))[21..]
        ));

        let lookups = [
            find(&|body| by(body, "_id", 3)),
            find(&|body| by(body, "_id", 99)),
            find(&|body| {
                by(body, "_id", 3);
                body.open(Kind::Document, "projection").i32("a", 1).close();
                body.i32("limit", 1).bool("singleBatch", true);
            }),
            // What is wrong is refused in the same words.
            find(&|body| {
                by(body, "_id", 3);
                body.open(Kind::Document, "projection")
                    .i32("a", 1)
                    .i32("b", 0)
                    .close();
            }),
        ];
        for lookup in lookups {
            let at_once = answer_at_once(&shared, 1, &lookup).expect("it is in memory");
            // Each reply has a number of its own.
            assert_eq!(at_once[8..], reply(&shared, &lookup)[8..]);
        }
        let others = [
            find(&|_| {}),
            find(&|body| by(body, "a", 3)),
            find(&|body| {
                body.open(Kind::Document, "filter")
                    .i32("_id", 3)
                    .str("a", "x")
                    .close();
            }),
            find(&|body| {
                body.open(Kind::Document, "filter")
                    .open(Kind::Document, "_id");
                body.i32("$gt", 3).close().close();
            }),
            find(&|body| {
                by(body, "_id", 3);
                body.open(Kind::Document, "readConcern")
                    .str("level", "majority")
                    .close();
            }),
            find(&|body| {
                by(body, "_id", 3);
                body.open(Kind::Document, "projection")
                    .open(Kind::Document, "b");
                body.str("$concat", "a").close().close();
            }),
            message(0, &[(0, &command("ping"))]),
            message(2, &[(0, &command("find"))]),
        ];
        for other in others {
            assert_eq!(answer_at_once(&shared, 1, &other), None);
        }
        // What only the disk has waits for it elsewhere.
        shared.store.db().flush().expect("flushes");
        drop(shared);
        let shared = over(files);
        let lookup = find(&|body| by(body, "_id", 4));
        assert_eq!(answer_at_once(&shared, 1, &lookup), None);
        let before = reply(&shared, &lookup);
        let at_once = answer_at_once(&shared, 1, &lookup).expect("its block was read");
        assert_eq!(at_once[8..], before[8..]);
    }

    #[test]
    fn a_checksum_is_looked_at_and_answered() {
        let shared = shared();
        let whole = message(1, &[(0, &command("ping"))]);
        let bytes = reply(&shared, &whole);
        let (covered, sum) = bytes.split_last_chunk::<4>().expect("a checksum");
        assert_eq!(drumlin_base::checksum::crc32c(covered).to_le_bytes(), *sum);
        assert!(ok(&covered[21..]));
        for at in 21..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 4;
            assert!(
                matches!(answer(&shared, 1, &wrong), Answer::Close(_)),
                "byte {at}"
            );
        }
    }

    #[test]
    fn lists_beside_the_body_stand_for_its_fields() {
        let shared = shared();
        let mut body = Builder::new();
        body.str("insert", "c").str("$db", "d");
        let body = body.finish();
        let document = command("x");
        let mut list = b"documents\0".to_vec();
        list.extend_from_slice(&document);
        let list = [&(list.len() as u32 + 4).to_le_bytes(), list.as_slice()].concat();
        let bytes = reply(&shared, &message(0, &[(1, &list), (0, &body)]));
        assert_eq!(
            Document(&bytes[21..]).get("n").and_then(|n| n.as_whole()),
            Some(1)
        );
        // Nothing is said where nobody listens, but it is done.
        assert_eq!(reply(&shared, &message(2, &[(0, &body), (1, &list)])), b"");
        let name = Name::new("d", "c");
        assert_eq!(shared.store.collection(&name).expect("made").documents(), 2);
        for wrong in [
            message(0, &[(0, &body), (1, &list), (1, &list)]),
            message(0, &[(0, &body), (0, &body)]),
            message(0, &[(1, &list)]),
            message(4, &[(0, &body)]),
            message(0, &[(7, &body)]),
            message(0, &[(0, &body[..body.len() - 1])]),
        ] {
            assert!(matches!(answer(&shared, 1, &wrong), Answer::Close(_)));
        }
    }

    #[test]
    fn greetings_wait_for_news_and_go_on_where_the_client_takes_more() {
        let shared = shared();
        let number = |bytes: &[u8], at: usize| {
            u32::from_le_bytes(*bytes[at..].first_chunk().expect("a header"))
        };
        let hello = |process: &[u8; 12], flags: u32| {
            let mut out = Builder::new();
            out.i32("hello", 1)
                .str("$db", "admin")
                .i32("maxAwaitTimeMS", 250);
            out.open(Kind::Document, "topologyVersion");
            let process = drumlin_doc::Value {
                kind: Kind::ObjectId,
                bytes: process,
            };
            out.value("processId", process).i64("counter", 0).close();
            message(flags, &[(0, &out.finish())])
        };
        let own = *shared.process_id();
        let first = hello(&own, 1 << 16);
        let Answer::Wait {
            reply,
            mut message,
            pause,
        } = answer(&shared, 1, &first)
        else {
            panic!("there is no news");
        };
        assert_eq!((reply.len(), pause), (0, Duration::from_millis(250)));
        let mut before = number(&first, 4);
        for _ in 0..3 {
            let Answer::Wait {
                reply,
                message: next,
                ..
            } = answer_waited(&shared, 1, &message)
            else {
                panic!("it goes on");
            };
            assert_eq!(number(&reply, 16), 2, "more is to come");
            assert_eq!(number(&reply, 8), before, "each is for the one before");
            assert!(ok(&reply[21..]));
            before = number(&reply, 4);
            message = next;
        }
        // Who did not say that it takes more gets one reply; who knows another server's topology gets it at once.
        let once = hello(&own, 0);
        assert!(matches!(answer(&shared, 1, &once), Answer::Wait { .. }));
        assert!(matches!(answer_waited(&shared, 1, &once), Answer::Send(_)));
        let other = hello(&[7; 12], 1 << 16);
        assert!(matches!(answer(&shared, 1, &other), Answer::Send(_)));
    }

    #[test]
    fn a_body_that_is_no_document_is_refused_and_the_connection_goes_on() {
        let shared = shared();
        let mut body = command("ping");
        body[4] = 0x20;
        let bytes = reply(&shared, &message(0, &[(0, &body)]));
        assert_eq!(
            Document(&bytes[21..])
                .get("code")
                .and_then(|code| code.as_whole()),
            Some(22)
        );
    }

    #[test]
    fn old_queries_are_for_the_handshake_only() {
        let shared = shared();
        let query = |of: &str, name: &str| {
            let mut bytes = vec![0; 4];
            for number in [9, 0, OP_QUERY, 0] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.extend_from_slice(of.as_bytes());
            bytes.extend_from_slice(&[0; 9]);
            let mut body = Builder::new();
            body.i32(name, 1);
            bytes.extend_from_slice(&body.finish());
            let len = bytes.len() as u32;
            bytes[..4].copy_from_slice(&len.to_le_bytes());
            reply(&shared, &bytes)
        };
        assert!(ok(&query("admin.$cmd", "isMaster")[36..]));
        for refused in [
            query("admin.$cmd", "dropDatabase"),
            query("d.c", "isMaster"),
        ] {
            assert_eq!(
                Document(&refused[36..])
                    .get("code")
                    .and_then(|code| code.as_whole()),
                Some(352)
            );
        }
    }
}
