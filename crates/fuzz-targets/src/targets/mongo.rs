//! Documents: what passes the look at foreign bytes is walked to its end and written back; keys sort as values do and give them
//! back; filters agree with their opposite; updates leave whole documents with the same `_id`.

use std::path::Path;
use std::sync::Arc;

use drumlin::Options;
use drumlin_doc::{
    Builder, Document, Filter, Kind, Moment, Update, Value, compare, keystring, validate,
};
use drumlin_doc_store::{Store, StoreOptions};
use drumlin_fs::{Env, StrictMemFileSystem};
use drumlin_mongo::{Answer, Shared, answer};

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

/// Messages, one behind the other, to a server over files in memory.
pub(crate) fn run_message(data: &[u8]) {
    let env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
    let engine = Options {
        env: env.clone(),
        background_threads: Some(0),
        memory_budget: Some(1 << 20),
        ..Options::default()
    };
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
