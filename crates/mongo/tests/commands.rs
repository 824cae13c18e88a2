//! Goal: commands do what MongoDB's are documented to do. Method: commands as JSON on a store in memory, and their replies. More of them
//! are asked by the driver, in `clients`.

#[path = "../../doc/tests/doc/json.rs"]
mod json;

use std::path::Path;
use std::sync::Arc;

use drumlin::Options;
use drumlin_doc::{Code, Document};
use drumlin_fs::{Env, StrictMemFileSystem};
use drumlin_mongo::Embedded;

use json::doc;

fn open() -> Embedded {
    let options = Options {
        env: Env::system().with_files(Arc::new(StrictMemFileSystem::new())),
        background_threads: Some(0),
        memory_budget: Some(4 << 20),
        ..Options::default()
    };
    Embedded::open(Path::new("/mongo"), options).expect("opens")
}

/// The reply, and its code where it is an error.
fn run(server: &Embedded, command: &str) -> (Vec<u8>, i32) {
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
fn all(server: &Embedded, collection: &str) -> Vec<Vec<u8>> {
    let (reply, _) = run(server, &format!(r#"{{"find": "{collection}"}}"#));
    let cursor = Document(&reply)
        .get("cursor")
        .and_then(|it| it.as_document());
    let batch = cursor.and_then(|it| it.get("firstBatch")?.as_array());
    let documents = batch.expect("a batch").iter();
    documents.map(|it| it.value.bytes.to_vec()).collect()
}

#[test]
fn a_pipeline_changes_documents_stage_by_stage() {
    let server = open();
    run(
        &server,
        r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 5}]}"#,
    );
    let update = r#"{"update": "c", "updates": [{"q": {}, "multi": true, "u": [{"$set": {"b": {"$add": ["$a", 1]}}}, {"$unset": "a"}]}]}"#;
    assert_eq!(run(&server, update).1, 0);
    let after = [r#"{"_id": 1, "b": 2}"#, r#"{"_id": 2, "b": 6}"#].map(doc);
    assert_eq!(all(&server, "c"), after);
    // The key of a document stays, whatever a pipeline says.
    let moves = r#"{"findAndModify": "c", "query": {"_id": 1}, "update": [{"$set": {"_id": 9}}]}"#;
    assert_eq!(run(&server, moves).1, Code::ImmutableField.number());
    assert_eq!(all(&server, "c"), after);
}

#[test]
fn no_stage_makes_a_name_with_a_zero_in_it() {
    let server = open();
    run(
        &server,
        r#"{"insert": "c", "documents": [{"_id": 1, "a": [1]}]}"#,
    );
    for (stage, code) in [
        (r#"{"$count": "n\u0000"}"#, Code::CountName),
        (r#"{"$unset": "n\u0000"}"#, Code::PathNull),
        (r#"{"$unset": ["a", "n\u0000"]}"#, Code::PathNull),
        (
            r#"{"$unwind": {"path": "$a", "includeArrayIndex": "n\u0000"}}"#,
            Code::BadValue,
        ),
        (
            r#"{"$lookup": {"from": "c", "localField": "a", "foreignField": "a", "as": "n\u0000"}}"#,
            Code::CommandNotSupported,
        ),
        (
            r#"{"$replaceWith": {"$setField": {"field": {"$literal": "n\u0000"}, "input": "$$ROOT", "value": 1}}}"#,
            Code::PathNull,
        ),
    ] {
        let command = format!(r#"{{"aggregate": "c", "cursor": {{}}, "pipeline": [{stage}]}}"#);
        assert_eq!(run(&server, &command).1, code.number(), "{stage}");
    }
}

#[test]
fn the_stable_api_is_kept_to_where_a_client_says_so() {
    let server = open();
    for (command, code) in [
        (r#"{"ping": 1, "apiVersion": "1", "apiStrict": true}"#, 0),
        (r#"{"distinct": "c", "key": "a", "apiVersion": "1"}"#, 0),
        (
            r#"{"distinct": "c", "key": "a", "apiVersion": "1", "apiStrict": true}"#,
            323,
        ),
        (
            r#"{"aggregate": 1, "cursor": {}, "pipeline": [{"$listLocalSessions": {}}], "apiVersion": "1", "apiStrict": true}"#,
            323,
        ),
        (r#"{"ping": 1, "apiVersion": "2"}"#, 322),
        (r#"{"ping": 1, "apiStrict": true}"#, 72),
    ] {
        assert_eq!(run(&server, command).1, code, "{command}");
    }
}
