//! A store in memory that is asked in JSON.

#[path = "../../../doc/tests/doc/json.rs"]
pub(crate) mod json;

use std::path::Path;
use std::sync::Arc;

use drumlin::Options;
use drumlin_doc::Document;
use drumlin_fs::{Env, StrictMemFileSystem};
use drumlin_mongo::Embedded;

use json::doc;

/// A store in memory.
pub(crate) fn open() -> Embedded {
    let options = Options {
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        background_threads: Some(0),
        memory_budget: Some(4 << 20),
        ..Options::default()
    };
    Embedded::open(Path::new("/mongo"), options).expect("opens")
}

/// The reply, and its code where it is an error.
pub(crate) fn run(server: &Embedded, command: &str) -> (Vec<u8>, i32) {
    let command = command.replacen('{', r#"{"$db": "d", "#, 1);
    // The name of the command is first.
    let mut out = drumlin_doc::Builder::new();
    let whole = doc(&command);
    let name = command.split('"').nth(5).expect("a command");
    let mut rest: Vec<_> = Document(&whole).iter().collect();
    rest.sort_by_key(|element| element.name_str() != name);
    for element in rest {
        out.value(element.name, element.value);
    }
    let reply = server.run(&out.finish()).expect("a document");
    let code = Document(&reply)
        .get("code")
        .and_then(|code| code.as_whole());
    (
        reply,
        code.map_or(0, |code| i32::try_from(code).expect("a code")),
    )
}

/// All documents of a collection.
pub(crate) fn all(server: &Embedded, collection: &str) -> Vec<Vec<u8>> {
    let (reply, _) = run(server, &format!(r#"{{"find": "{collection}"}}"#));
    let cursor = Document(&reply)
        .get("cursor")
        .and_then(|it| it.as_document());
    let batch = cursor.and_then(|it| it.get("firstBatch")?.as_array());
    let documents = batch.expect("a batch").iter();
    documents.map(|it| it.value.bytes.to_vec()).collect()
}
