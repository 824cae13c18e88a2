//! Documents: what passes the look at foreign bytes is walked to its end and written back; keys sort as values do and give them
//! back; filters agree with their opposite, and with what indexes of places have; updates leave whole documents with the same `_id`; pipelines give the same over a
//! collection, where a query takes over their first stages, and over a list.

use std::path::Path;
use std::sync::Arc;

use drumlin::Options;
use drumlin_doc::{
    Builder, Document, Filter, Grid, Kind, Moment, PlaceKind, Predicate, Test, Update, Value,
    compare, keystring, validate,
};
use drumlin_doc_store::{Store, StoreOptions};
use drumlin_fs::{Env, StrictMemFileSystem};
use drumlin_mongo::{Answer, Embedded, Shared, answer, answer_waited};

/// Most documents that a pipeline is run over.
const DOCUMENTS_MAX: usize = 12;
/// Most values of one input that are compared with each other.
const VALUES_MAX: usize = 24;

/// A document.
pub(crate) fn run_bson(data: &[u8]) {
    match validate(data) {
        Err(refusal) => assert!(!refusal.message.is_empty()),
        Ok(()) => {
            let mut out = Builder::new();
            copy(Document(data), &mut out);
            assert_eq!(out.finish(), data);
        }
    }
}

/// Recurses as deep as documents may be.
fn copy(document: Document<'_>, out: &mut Builder) {
    for element in document {
        match element.value.kind {
            kind @ (Kind::Document | Kind::Array) => {
                out.open(kind, element.name);
                copy(Document(element.value.bytes), out);
                out.close();
            }
            _ => {
                out.value(element.name, element.value);
            }
        }
    }
}

/// A document, whose values are compared; its bytes are also taken for keys.
pub(crate) fn run_keystring(data: &[u8]) {
    for (kind, _) in Kind::NAMES {
        if let Some(value) = keystring::decode(kind, data) {
            assert_eq!(keystring::key_of(value.get()), data);
        }
    }
    if validate(data).is_err() {
        return;
    }
    let mut values = Vec::new();
    collect(Document(data), &mut values);
    let keys: Vec<_> = values
        .iter()
        .map(|value| keystring::key_of(*value))
        .collect();
    for (a, key_a) in values.iter().zip(&keys) {
        if keystring::is_reversible(*a) {
            let back = keystring::decode(a.kind, key_a).expect("it is reversible");
            assert_eq!(back.get(), *a);
        }
        for (b, key_b) in values.iter().zip(&keys) {
            assert_eq!(key_a.cmp(key_b), compare(*a, *b), "{a:?} and {b:?}");
            assert!(key_a == key_b || !key_b.starts_with(key_a));
        }
    }
}

fn collect<'a>(document: Document<'a>, values: &mut Vec<Value<'a>>) {
    for element in document {
        if values.len() >= VALUES_MAX {
            return;
        }
        values.push(element.value);
        if let Some(inner) = element.value.as_document() {
            collect(inner, values);
        }
    }
}

/// Two documents, one behind the other.
fn pair(data: &[u8]) -> Option<(Document<'_>, Document<'_>)> {
    let len = u32::from_le_bytes(*data.first_chunk::<4>()?);
    let (first, second) = data.split_at_checked(usize::try_from(len).ok()?)?;
    (validate(first).is_ok() && validate(second).is_ok())
        .then_some((Document(first), Document(second)))
}

/// A filter and a document.
pub(crate) fn run_filter(data: &[u8]) {
    let Some((filter, document)) = pair(data) else {
        return;
    };
    let Ok(parsed) = Filter::new(filter) else {
        return;
    };
    let mut nor = Builder::new();
    nor.open(Kind::Array, "$nor").document("0", filter).close();
    // One level more may be too deep.
    if let Ok(opposite) = Filter::new(Document(&nor.finish())) {
        // What cannot be answered cannot be answered the other way round either.
        match parsed.matches(document) {
            Ok(answer) => assert_eq!(opposite.matches(document), Ok(!answer)),
            Err(_) => assert!(opposite.matches(document).is_err()),
        }
    }
    check_places(&parsed, document);
}

/// What is found has keys in an index of places, among those that the filter is about.
fn check_places(filter: &Filter, document: Document<'_>) {
    let Filter::Field(path, Test::Any(Predicate::Geo(query))) = filter else {
        return;
    };
    for kind in [PlaceKind::Sphere, PlaceKind::Flat(Grid::default())] {
        let keys = kind.keys_of(document, path);
        let ranges = kind.ranges(query, true).expect("nobody ends it");
        let (Ok(keys), Some(ranges)) = (keys, ranges) else {
            continue;
        };
        let is_meant = |key: &Vec<u8>| ranges.iter().any(|(low, high)| low <= key && key < high);
        let is_found = filter.matches(document) == Ok(true);
        assert!(!is_found || keys.keys.iter().any(is_meant), "{filter:?}");
    }
}

/// An update and a document.
pub(crate) fn run_update(data: &[u8]) {
    let Some((update, document)) = pair(data) else {
        return;
    };
    let Ok(update) = Update::new(update) else {
        return;
    };
    let filter = Filter::And(Vec::new());
    let Ok(applied) = update.apply(document, &filter, &Moment::default()) else {
        return;
    };
    assert_eq!(applied.is_changed, applied.document != document.0);
    assert_eq!(validate(&applied.document), Ok(()));
    let id = |document: Document<'_>| document.get("_id").map(keystring::key_of);
    assert!(id(document).is_none() || id(document) == id(Document(&applied.document)));
}

/// A document with a `pipeline`, and documents that it is run over.
pub(crate) fn run_pipeline(data: &[u8]) {
    let mut all = Vec::new();
    let mut rest = data;
    while let Some(len) = rest
        .first_chunk::<4>()
        .filter(|_| all.len() <= DOCUMENTS_MAX)
    {
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        let Some((one, more)) = rest.split_at_checked(len) else {
            break;
        };
        if validate(one).is_err() {
            return;
        }
        all.push(Document(one));
        rest = more;
    }
    let Some((first, documents)) = all.split_first() else {
        return;
    };
    let pipeline = first.get("pipeline").filter(|it| it.kind == Kind::Array);
    let Some(stages) = pipeline.and_then(Value::as_array) else {
        return;
    };
    // What is there by chance differs each time; what begins with a list of its own has no collection.
    let has = |name: &[u8]| data.windows(name.len()).any(|it| it == name);
    if [&b"$sample"[..], b"$rand", b"$documents"]
        .into_iter()
        .any(has)
    {
        return;
    }
    let server = Embedded::open(Path::new("/mongo"), options()).expect("opens");
    let numbered: Vec<Vec<u8>> = documents.iter().zip(0..).map(numbered).collect();
    let literal = |out: &mut Builder, name: &str| {
        out.open(Kind::Array, name);
        for (document, at) in numbered.iter().zip(0..) {
            out.document(format!("{at}"), Document(document));
        }
        out.close();
    };
    let mut insert = Builder::new();
    insert.str("insert", "c").str("$db", "d");
    literal(&mut insert, "documents");
    if !numbered.is_empty() {
        let reply = server.run(&insert.finish()).expect("a document");
        // Documents may be too deep with a level more.
        if Document(&reply).get("n").and_then(Value::as_whole) != i64::try_from(numbered.len()).ok()
        {
            return;
        }
    }
    let ask = |is_list: bool| {
        let mut out = Builder::new();
        match is_list {
            true => out.i32("aggregate", 1),
            false => out.str("aggregate", "c"),
        };
        out.str("$db", "d").open(Kind::Document, "cursor");
        out.i32("batchSize", 1_000_000)
            .close()
            .open(Kind::Array, "pipeline");
        if is_list {
            out.open(Kind::Document, "0")
                .open(Kind::Document, "$documents");
            literal(&mut out, "$literal");
            out.close().close();
        }
        for (stage, at) in stages.iter().zip(usize::from(is_list)..) {
            out.value(at.to_string(), stage.value);
        }
        out.close();
        server.run(&out.finish()).ok()
    };
    let replies = [ask(false), ask(true)];
    let batches = replies.each_ref().map(|reply| {
        let reply = Document(reply.as_ref()?);
        assert_eq!(validate(reply.0), Ok(()));
        let cursor = reply.get("cursor").and_then(Value::as_document)?;
        let is_all = cursor.get("id").and_then(Value::as_whole) == Some(0);
        cursor.get("firstBatch").filter(|_| is_all)
    });
    // A stage that ends early may spare one of them an error.
    if let [Some(a), Some(b)] = batches {
        assert_eq!(a.bytes, b.bytes, "{first:?}");
    }
}

/// The document under a number.
fn numbered((document, at): (&Document<'_>, i32)) -> Vec<u8> {
    let mut out = Builder::new();
    out.i32("_id", at);
    for element in document.iter().filter(|element| element.name != b"_id") {
        out.value(element.name, element.value);
    }
    out.finish()
}

fn options() -> Options {
    Options {
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        background_threads: Some(0),
        memory_budget: Some(1 << 20),
        ..Options::default()
    }
}

/// Messages, one behind the other, to a server over files in memory.
pub(crate) fn run_message(data: &[u8]) {
    let engine = options();
    let env = engine.env.clone();
    let store = Store::open(Path::new("/mongo"), StoreOptions { engine }).expect("opens");
    let shared = Shared::new(store, env);
    let mut rest = data;
    while let Some(len) = rest.first_chunk::<4>() {
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        let message = rest.get(..len.max(4)).unwrap_or(rest);
        rest = rest.get(message.len()..).unwrap_or_default();
        match answer(&shared, 1, message) {
            Answer::Close(reason) => assert!(!reason.is_empty()),
            Answer::Send(reply) if reply.is_empty() => {}
            Answer::Send(reply) => look_at(&reply, message),
            Answer::Wait { message: kept, .. } => {
                match answer_waited(&shared, 1, &kept) {
                    Answer::Close(reason) => panic!("what waited is answered, and not {reason}"),
                    // Nothing has come that it waits for.
                    Answer::Wait { reply, .. } if reply.is_empty() => {}
                    Answer::Send(reply) | Answer::Wait { reply, .. } => look_at(&reply, &kept),
                }
            }
        }
    }
}

fn look_at(reply: &[u8], message: &[u8]) {
    let number = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(*bytes[at..].first_chunk::<4>().expect("a header"))
    };
    assert_eq!(number(reply, 0) as usize, reply.len());
    assert_eq!(
        number(reply, 8),
        number(message, 4),
        "it is for the request"
    );
    let (from, has_checksum) = match number(reply, 12) {
        1 => (36, false),
        _ => (21, number(reply, 16) & 1 == 1),
    };
    let document = &reply[from..reply.len() - if has_checksum { 4 } else { 0 }];
    assert_eq!(validate(document), Ok(()));
    assert!(Document(document).get("ok").is_some());
}
