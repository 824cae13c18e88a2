//! Goal: validators refuse what they are to refuse and say why, and views are what their pipelines make. Method: commands as JSON on a
//! store in memory, and their replies.

mod embedded;

use std::path::Path;
use std::sync::Arc;

use drumlin::Options;
use drumlin_doc::{Code, Document, Kind};
use drumlin_fs::{Env, StrictMemFileSystem};
use drumlin_mongo::Embedded;

use embedded::json::doc;
use embedded::{all, open, run};

/// Whether two documents say the same, in whatever order.
fn same(a: &[u8], b: &[u8]) -> bool {
    let sorted = |it: &[u8]| {
        let text = drumlin_doc::show(Document(it).as_value());
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    sorted(a) == sorted(b)
}

/// The `errInfo` of a reply: of its first write error, or its own.
fn error_info(reply: &[u8]) -> Vec<u8> {
    let errors = Document(reply)
        .get("writeErrors")
        .and_then(|it| it.as_array());
    let first = errors.and_then(|it| it.iter().next()?.value.as_document());
    let of = first.unwrap_or(Document(reply));
    let info = of.get("errInfo").and_then(|it| it.as_document());
    info.expect("what is wrong").0.to_vec()
}

#[test]
fn what_does_not_pass_the_validator_is_refused_with_the_reason() {
    let server = open();
    let create = r#"{"create": "c", "validator": {"$jsonSchema": {"bsonType": "object", "required": ["name", "n"], "properties": {
        "name": {"bsonType": "string", "description": "who", "maxLength": 5},
        "n": {"bsonType": "int", "minimum": 0},
        "in": {"bsonType": "object", "properties": {"x": {"enum": [1, 2]}}, "additionalProperties": false}}}}}"#;
    assert_eq!(run(&server, create).1, 0);
    let insert = |document: &str, more: &str| {
        run(
            &server,
            &format!(r#"{{"insert": "c", "documents": [{document}]{more}}}"#),
        )
        .0
    };
    let count = |reply: &[u8]| Document(reply).get("n").and_then(|it| it.as_whole());
    assert_eq!(
        count(&insert(
            r#"{"_id": 1, "name": "a", "n": 1, "in": {"x": 1}}"#,
            ""
        )),
        Some(1)
    );
    let wrong = r#"{"_id": 2, "n": -1, "name": "longer", "in": {"x": 3, "y": 1}}"#;
    let reply = insert(wrong, "");
    assert_eq!(count(&reply), Some(0));
    let expected = doc(
        r#"{"failingDocumentId": 2, "details": {"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [
        {"operatorName": "properties", "propertiesNotSatisfied": [
            {"propertyName": "name", "description": "who", "details": [
                {"operatorName": "maxLength", "specifiedAs": {"maxLength": 5}, "reason": "specified string length was not satisfied", "consideredValue": "longer"}]},
            {"propertyName": "n", "details": [
                {"operatorName": "minimum", "specifiedAs": {"minimum": 0}, "reason": "comparison failed", "consideredValue": -1}]},
            {"propertyName": "in", "details": [
                {"operatorName": "additionalProperties", "specifiedAs": {"additionalProperties": false}},
                {"operatorName": "properties", "propertiesNotSatisfied": [
                    {"propertyName": "x", "details": [
                        {"operatorName": "enum", "specifiedAs": {"enum": [1, 2]}, "reason": "value was not found in enum", "consideredValue": 3}]}]}]}]}]}}"#,
    );
    let told = error_info(&reply);
    assert!(
        same(&told, &expected),
        "{}",
        drumlin_doc::show(Document(&told).as_value())
    );
    let reply = insert(r#"{"_id": 3, "n": 1}"#, "");
    let required = doc(
        r#"{"failingDocumentId": 3, "details": {"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": [
        {"operatorName": "required", "specifiedAs": {"required": ["name", "n"]}, "missingProperties": ["name"]}]}}"#,
    );
    assert!(same(&error_info(&reply), &required));
    // Who says so writes what is wrong; in a moderate collection such a document may be changed.
    assert_eq!(
        count(&insert(wrong, r#", "bypassDocumentValidation": true"#)),
        Some(1)
    );
    let update = |id: i32| {
        let text = format!(
            r#"{{"findAndModify": "c", "query": {{"_id": {id}}}, "update": {{"$set": {{"n": "text"}}}}}}"#
        );
        run(&server, &text)
    };
    assert_eq!(update(2).1, Code::DocumentValidationFailure.number());
    assert_eq!(
        run(
            &server,
            r#"{"collMod": "c", "validationLevel": "moderate"}"#
        )
        .1,
        0
    );
    assert_eq!(update(2).1, 0);
    let (reply, code) = update(1);
    assert_eq!(code, Code::DocumentValidationFailure.number());
    error_info(&reply);
    for lax in [
        r#"{"collMod": "c", "validationLevel": "off"}"#,
        r#"{"collMod": "c", "validationLevel": "strict", "validationAction": "warn"}"#,
        r#"{"collMod": "c", "validationAction": "error", "validator": {}}"#,
    ] {
        assert_eq!(run(&server, lax).1, 0);
        assert_eq!(update(1).1, 0, "{lax}");
    }
}

#[test]
fn a_validator_of_conditions_tells_which_of_them_failed() {
    let server = open();
    let create = r#"{"create": "c", "validator": {"a": {"$gte": 5}, "b": {"$exists": true}}}"#;
    assert_eq!(run(&server, create).1, 0);
    let (reply, _) = run(
        &server,
        r#"{"insert": "c", "documents": [{"_id": 1, "a": 3}]}"#,
    );
    let expected = doc(
        r#"{"failingDocumentId": 1, "details": {"operatorName": "$and", "clausesNotSatisfied": [
        {"index": 0, "details": {"operatorName": "$gte", "specifiedAs": {"a": {"$gte": 5}}, "reason": "comparison failed", "consideredValue": 3}},
        {"index": 1, "details": {"operatorName": "$exists", "specifiedAs": {"b": {"$exists": true}}, "reason": "path does not exist"}}]}}"#,
    );
    let told = error_info(&reply);
    let shown = drumlin_doc::show(Document(&told).as_value());
    assert!(same(&told, &expected), "{shown}");
    for (refused, code) in [
        (
            r#"{"create": "d", "validator": {"a": {"$near": [0, 0]}}}"#,
            Code::NearNotAllowed,
        ),
        (
            r#"{"create": "d", "validator": {"$expr": {"$gt": ["$t", "$$NOW"]}}}"#,
            Code::CommandNotSupported,
        ),
        (
            r#"{"create": "d", "validator": {"a": {"$nothing": 1}}}"#,
            Code::BadValue,
        ),
        (r#"{"create": "d", "validator": 1}"#, Code::TypeMismatch),
        (
            r#"{"create": "d", "validationLevel": "lax"}"#,
            Code::BadValue,
        ),
        (
            r#"{"create": "d", "validationAction": "errorAndLog"}"#,
            Code::CommandNotSupported,
        ),
    ] {
        assert_eq!(run(&server, refused).1, code.number(), "{refused}");
    }
}

/// The documents of the first batch of a reply.
fn first_batch(reply: &[u8]) -> Vec<Vec<u8>> {
    let cursor = Document(reply)
        .get("cursor")
        .and_then(|it| it.as_document());
    let batch = cursor.and_then(|it| it.get("firstBatch")?.as_array());
    let documents = batch.expect("a batch").iter();
    documents.map(|it| it.value.bytes.to_vec()).collect()
}

#[test]
fn a_view_is_what_its_pipeline_makes_and_is_not_written() {
    let server = open();
    let ok = |command: &str| {
        let (reply, code) = run(&server, command);
        assert_eq!(code, 0, "{command}");
        reply
    };
    ok(
        r#"{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": "x"}, {"_id": 2, "a": 2, "b": "y"}, {"_id": 3, "a": 3, "b": "x"}, {"_id": 4, "a": 4, "b": "x"}]}"#,
    );
    ok(
        r#"{"create": "large", "viewOn": "c", "pipeline": [{"$match": {"a": {"$gt": 1}}}, {"$addFields": {"d": {"$multiply": ["$a", 2]}}}]}"#,
    );
    // A view of a view, and one that reads another one beside its own.
    ok(
        r#"{"create": "x", "viewOn": "large", "pipeline": [{"$match": {"b": "x"}}, {"$project": {"d": 1}}]}"#,
    );
    ok(
        r#"{"create": "joined", "viewOn": "c", "pipeline": [{"$lookup": {"from": "x", "localField": "_id", "foreignField": "_id", "as": "of_x"}}, {"$unionWith": "x"}]}"#,
    );
    let x = [r#"{"_id": 3, "d": 6}"#, r#"{"_id": 4, "d": 8}"#].map(doc);
    assert_eq!(all(&server, "x"), x);
    let found = ok(
        r#"{"find": "x", "filter": {"d": {"$gte": 6}}, "sort": {"d": -1}, "skip": 1, "limit": 5, "projection": {"_id": 0}}"#,
    );
    assert_eq!(first_batch(&found), [doc(r#"{"d": 6}"#)]);
    let made = ok(
        r#"{"aggregate": "x", "pipeline": [{"$group": {"_id": null, "sum": {"$sum": "$d"}}}], "cursor": {}}"#,
    );
    assert_eq!(first_batch(&made), [doc(r#"{"_id": null, "sum": 14}"#)]);
    assert_eq!(all(&server, "joined").len(), 4 + 2);
    let of_x = ok(
        r#"{"aggregate": "joined", "pipeline": [{"$match": {"of_x.d": 8}}, {"$project": {"a": 1}}], "cursor": {}}"#,
    );
    assert_eq!(first_batch(&of_x), [doc(r#"{"_id": 4, "a": 4}"#)]);
    let number = |reply: &[u8]| Document(reply).get("n").and_then(|it| it.as_whole());
    assert_eq!(number(&ok(r#"{"count": "x"}"#)), Some(2));
    assert_eq!(
        number(&ok(r#"{"count": "large", "query": {"b": "x"}, "skip": 1}"#)),
        Some(1)
    );
    let values = ok(r#"{"distinct": "large", "key": "b"}"#);
    let values = Document(&values).get("values").and_then(|it| it.as_array());
    assert_eq!(values.map(|it| it.iter().count()), Some(2));
    let explain = r#"{"explain": {"count": "large", "query": {"_id": 3}}}"#;
    let explained = drumlin_doc::show(Document(&ok(explain)).as_value());
    assert!(
        explained.contains(r#"namespace: "d.c""#) && explained.contains("nReturned: 3"),
        "{explained}"
    );
    for refused in [
        r#"{"insert": "x", "documents": [{"_id": 9}]}"#,
        r#"{"findAndModify": "x", "query": {}, "remove": true}"#,
        r#"{"createIndexes": "x", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#,
        r#"{"dropIndexes": "x", "index": "*"}"#,
        r#"{"listIndexes": "x"}"#,
        r#"{"collStats": "x"}"#,
        r#"{"aggregate": "x", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}}"#,
        r#"{"validate": "x"}"#,
        r#"{"convertToCapped": "x", "size": 1000}"#,
    ] {
        let code = run(&server, refused).1;
        assert_eq!(code, Code::CommandNotSupportedOnView.number(), "{refused}");
    }
    for statement in [
        r#"{"update": "x", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "upsert": true}]}"#,
        r#"{"delete": "x", "deletes": [{"q": {}, "limit": 0}]}"#,
    ] {
        let (reply, _) = run(&server, statement);
        let errors = Document(&reply)
            .get("writeErrors")
            .and_then(|it| it.as_array());
        let first = errors.and_then(|it| it.iter().next()?.value.as_document());
        let code = first.and_then(|it| it.get("code")?.as_whole());
        let expected = Code::CommandNotSupportedOnView.number();
        assert_eq!(code, Some(i64::from(expected)), "{statement}");
    }
    ok(r#"{"collMod": "x", "pipeline": [{"$match": {"b": "y"}}]}"#);
    assert_eq!(
        all(&server, "x"),
        [doc(r#"{"_id": 2, "a": 2, "b": "y", "d": 4}"#)]
    );
    let listed = ok(r#"{"listCollections": 1, "filter": {"type": "view"}, "nameOnly": true}"#);
    let names = ["joined", "large", "x"]
        .map(|name| doc(&format!(r#"{{"name": "{name}", "type": "view"}}"#)));
    assert_eq!(first_batch(&listed), names);
    ok(r#"{"drop": "large"}"#);
    assert_eq!(
        all(&server, "x"),
        Vec::<Vec<u8>>::new(),
        "of what is not there"
    );
}

#[test]
fn views_make_no_circle_and_no_tower() {
    let server = open();
    let create = |name: &str, on: &str, pipeline: &str| {
        let text = format!(r#"{{"create": "{name}", "viewOn": "{on}", "pipeline": {pipeline}}}"#);
        run(&server, &text).1
    };
    assert_eq!(
        create("self", "self", "[]"),
        Code::GraphContainsCycle.number()
    );
    assert_eq!(create("a", "b", "[]"), 0);
    assert_eq!(create("b", "a", "[]"), Code::GraphContainsCycle.number());
    let reads_a = r#"[{"$facet": {"f": [{"$unionWith": {"coll": "other", "pipeline": [{"$lookup": {"from": "a", "pipeline": [], "as": "x"}}]}}]}}]"#;
    assert_eq!(create("b", "c", reads_a), Code::GraphContainsCycle.number());
    assert_eq!(create("b", "c", "[]"), 0);
    let circle = run(&server, r#"{"collMod": "b", "viewOn": "a"}"#).1;
    assert_eq!(circle, Code::GraphContainsCycle.number());
    assert_eq!(create("v1", "c", "[]"), 0);
    for at in 2..=20 {
        assert_eq!(create(&format!("v{at}"), &format!("v{}", at - 1), "[]"), 0);
    }
    let deep = Code::ViewDepthLimitExceeded.number();
    assert_eq!(create("v21", "v20", "[]"), deep);
    assert_eq!(
        run(&server, r#"{"insert": "c", "documents": [{"_id": 1}]}"#).1,
        0
    );
    assert_eq!(all(&server, "v20"), [doc(r#"{"_id": 1}"#)]);
    // What is put below them makes them deeper: then they are not read.
    assert_eq!(run(&server, r#"{"drop": "c"}"#).1, 0);
    assert_eq!(create("c", "ground", "[]"), 0);
    assert_eq!(run(&server, r#"{"find": "v20"}"#).1, deep);
    assert_eq!(run(&server, r#"{"find": "v19"}"#).1, 0);
    for (refused, code) in [
        (r#"{"create": "w", "pipeline": []}"#, Code::InvalidOptions),
        (r#"{"create": "w", "viewOn": ""}"#, Code::BadValue),
        (
            r#"{"create": "w", "viewOn": "c", "pipeline": [{"$out": "d"}]}"#,
            Code::OptionNotSupportedOnView,
        ),
        (
            r#"{"create": "w", "viewOn": "c", "pipeline": [{"$nothing": 1}]}"#,
            Code::UnknownStage,
        ),
        (
            r#"{"create": "a", "viewOn": "other"}"#,
            Code::NamespaceExists,
        ),
        (r#"{"create": "a"}"#, Code::NamespaceExists),
        (
            r#"{"find": "a", "tailable": true}"#,
            Code::InvalidPipelineOperator,
        ),
        (
            r#"{"find": "a", "projection": {"x": {"$elemMatch": {"y": 1}}}}"#,
            Code::InvalidPipelineOperator,
        ),
        (
            r#"{"collMod": "a", "validator": {"x": 1}}"#,
            Code::InvalidOptions,
        ),
    ] {
        assert_eq!(run(&server, refused).1, code.number(), "{refused}");
    }
}

#[test]
fn what_else_is_done_to_a_capped_collection_is_done_to_it_too() {
    let server = open();
    let ok = |command: &str| {
        let (reply, code) = run(&server, command);
        assert_eq!(code, 0, "{command}");
        reply
    };
    ok(r#"{"create": "c", "capped": true, "size": 100000, "max": 4}"#);
    ok(
        r#"{"createIndexes": "c", "indexes": [{"key": {"at": "2dsphere"}, "name": "at"}, {"key": {"tags": 1}, "name": "tags"}]}"#,
    );
    for id in [9, 7, 5, 3, 1] {
        let text = format!(
            r#"{{"insert": "c", "documents": [{{"_id": {id}, "at": [{id}, 0], "tags": ["all", {id}]}}]}}"#
        );
        ok(&text);
    }
    let ids = |reply: &[u8]| {
        let batch = first_batch(reply);
        let ids = batch.iter().map(|it| Document(it).get("_id")?.as_whole());
        ids.map(|id| id.expect("a number")).collect::<Vec<_>>()
    };
    let find = |filter: &str| ids(&ok(&format!(r#"{{"find": "c", "filter": {filter}}}"#)));
    assert_eq!(find("{}"), [7, 5, 3, 1]);
    let near = |x: &str| {
        format!(
            r#"{{"at": {{"$near": {{"$geometry": {{"type": "Point", "coordinates": [{x}, 0]}}}}}}}}"#
        )
    };
    assert_eq!(find(&near("8")), [7, 5, 3, 1]);
    assert_eq!(find(&near("2.5")), [3, 1, 5, 7]);
    assert_eq!(find(r#"{"tags": "all"}"#).len(), 4);
    assert_eq!(find(r#"{"_id": {"$gte": 3, "$lt": 7}}"#), [3, 5]);
    assert_eq!(find(r#"{"_id": {"$in": [1, 9, 7]}}"#).len(), 2);
    let last = r#"{"findAndModify": "c", "query": {"tags": "all"}, "sort": {"at": -1}, "update": {"$set": {"tags": ["none"]}}}"#;
    ok(last);
    assert_eq!(find(r#"{"tags": "none"}"#), [7]);
    ok(
        r#"{"update": "c", "updates": [{"q": {"_id": 20}, "u": {"$set": {"tags": "all"}}, "upsert": true}]}"#,
    );
    assert_eq!(find("{}"), [5, 3, 1, 20], "what is made anew is the last");
    ok(r#"{"delete": "c", "deletes": [{"q": {"tags": "all", "_id": {"$lt": 4}}, "limit": 0}]}"#);
    assert_eq!(find("{}"), [5, 20]);
    let valid = ok(r#"{"validate": "c"}"#);
    let is_valid = Document(&valid).get("valid").and_then(|it| it.as_bool());
    assert_eq!(is_valid, Some(true));
}

#[test]
fn views_that_look_up_in_each_other_end_in_a_refusal() {
    let server = open();
    run(&server, r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    // From the top down: none of them stands on a view when it is made.
    for at in 0..1000 {
        let create = format!(
            r#"{{"create": "v{at}", "viewOn": "c", "pipeline": [{{"$lookup": {{"from": "v{}", "localField": "_id", "foreignField": "_id", "as": "x"}}}}]}}"#,
            at + 1
        );
        assert_eq!(run(&server, &create).1, 0);
    }
    for (view, code) in [("v990", 0), ("v0", Code::PipelineDepth.number())] {
        assert_eq!(
            run(&server, &format!(r#"{{"find": "{view}"}}"#)).1,
            code,
            "{view}"
        );
    }
    // A field that comes twice is one collection to who looks for circles, and another one to who reads.
    let mut lookup = drumlin_doc::Builder::new();
    lookup.str("aggregate", "c").str("$db", "d");
    lookup.open(Kind::Document, "cursor").close();
    lookup
        .open(Kind::Array, "pipeline")
        .open(Kind::Document, "0");
    lookup.open(Kind::Document, "$lookup");
    for (name, text) in [
        ("from", "c"),
        ("from", "v0"),
        ("localField", "_id"),
        ("foreignField", "_id"),
        ("as", "x"),
    ] {
        lookup.str(name, text);
    }
    lookup.close().close().close();
    let reply = server.run(&lookup.finish()).expect("a document");
    let code = Document(&reply).get("code").and_then(|it| it.as_whole());
    assert_eq!(code, Some(i64::from(Code::FailedToParse.number())));
}

#[test]
fn a_view_shows_nothing_of_the_server_and_stays_where_others_are_renamed() {
    let server = open();
    run(&server, r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    assert_eq!(run(&server, r#"{"create": "v", "viewOn": "c"}"#).1, 0);
    for (command, code) in [
        (
            r#"{"create": "u", "viewOn": "system.users"}"#,
            Code::Unauthorized,
        ),
        (
            r#"{"collMod": "v", "viewOn": "system.users"}"#,
            Code::Unauthorized,
        ),
        (
            r#"{"create": "u", "viewOn": "c", "validator": {"a": 1}}"#,
            Code::InvalidOptions,
        ),
        (
            r#"{"create": "u", "viewOn": "c", "capped": true, "size": 4096}"#,
            Code::InvalidOptions,
        ),
        (
            r#"{"explain": {"update": "v", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}}"#,
            Code::CommandNotSupportedOnView,
        ),
    ] {
        assert_eq!(run(&server, command).1, code.number(), "{command}");
    }
    let mut rename = drumlin_doc::Builder::new();
    rename.str("renameCollection", "d.c").str("to", "d.v");
    rename.bool("dropTarget", true).str("$db", "admin");
    let reply = server.run(&rename.finish()).expect("a document");
    let code = Document(&reply).get("code").and_then(|it| it.as_whole());
    assert_eq!(code, Some(i64::from(Code::NamespaceExists.number())));
    assert_eq!(all(&server, "v"), [doc(r#"{"_id": 1}"#)]);
}

#[test]
fn what_is_taken_for_an_option_can_be_read_back() {
    let files = Arc::new(StrictMemFileSystem::new());
    let open = || {
        let options = Options {
            env: Env::system().with_files(Arc::clone(&files) as _),
            background_threads: Some(0),
            memory_budget: Some(4 << 20),
            ..Options::default()
        };
        Embedded::open(Path::new("/mongo"), options)
    };
    let server = open().expect("opens");
    let mut taken = 0;
    for levels in 90..105 {
        let nested = format!("{}1{}", r#"{"a": "#.repeat(levels), "}".repeat(levels));
        let mut create = drumlin_doc::Builder::new();
        create.str("create", &format!("c{levels}")).str("$db", "d");
        create.document("validator", Document(&doc(&nested)));
        let reply = server.run(&create.finish());
        let is_ok = |reply: Vec<u8>| Document(&reply).get("code").is_none();
        taken += usize::from(reply.is_ok_and(is_ok));
    }
    assert!((1..15).contains(&taken), "{taken} of 15 were taken");
    drop(server);
    let server = open().expect("all that was taken can be read");
    let (reply, _) = run(&server, r#"{"listCollections": 1}"#);
    assert_eq!(first_batch(&reply).len(), taken);
}

#[test]
fn only_the_first_refusals_of_an_update_say_what_is_not_met() {
    let server = open();
    let create = r#"{"create": "c", "validator": {"n": {"$gt": 0}}}"#;
    assert_eq!(run(&server, create).1, 0);
    let insert = r#"{"insert": "c", "documents": [{"_id": 1, "n": 1}]}"#;
    assert_eq!(run(&server, insert).1, 0);
    let statements = vec![r#"{"q": {"_id": 1}, "u": {"$set": {"n": 0}}}"#; 150].join(", ");
    let update = format!(r#"{{"update": "c", "ordered": false, "updates": [{statements}]}}"#);
    let (reply, _) = run(&server, &update);
    let errors = Document(&reply)
        .get("writeErrors")
        .and_then(|it| it.as_array());
    let has: Vec<bool> = errors
        .expect("all fail")
        .iter()
        .map(|it| it.value.as_document()?.get("errInfo")?.as_document())
        .map(|info| info.expect("it says which").get("details").is_some())
        .collect();
    let expected: Vec<bool> = (0..150).map(|at| at < 100).collect();
    assert_eq!(has, expected);
}
