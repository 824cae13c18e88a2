//! Goal: commands do what MongoDB's are documented to do. Method: commands as JSON on a store in memory, and their replies. More of them
//! are asked by the driver, in `clients`.

mod embedded;

use drumlin_doc::{Code, Document};
use drumlin_mongo::Embedded;

use embedded::json::doc;
use embedded::{all, open, run};

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
fn a_compaction_leaves_what_is_there() {
    let server = open();
    let text = "a review ".repeat(60);
    for first in (0..3000).step_by(100) {
        let documents: Vec<_> = (first..first + 100)
            .map(|id| format!(r#"{{"_id": {id}, "a": {}, "text": "{text}"}}"#, id % 7))
            .collect();
        let insert = format!(
            r#"{{"insert": "c", "documents": [{}]}}"#,
            documents.join(",")
        );
        assert_eq!(run(&server, &insert).1, 0);
    }
    let index = r#"{"createIndexes": "c", "indexes": [{"name": "a_1", "key": {"a": 1}}]}"#;
    assert_eq!(run(&server, index).1, 0);
    let compact = |name: &str| {
        let (reply, code) = run(&server, &format!(r#"{{"compact": "{name}"}}"#));
        let freed = Document(&reply).get("bytesFreed");
        (code, freed.and_then(|freed| freed.as_whole()))
    };
    assert_eq!(compact("c").0, 0);
    let deletes = r#"{"delete": "c", "deletes": [{"q": {"_id": {"$gte": 20}}, "limit": 0}]}"#;
    assert_eq!(run(&server, deletes).1, 0);
    let (code, freed) = compact("c");
    assert!(
        code == 0 && freed.is_some_and(|freed| freed > 1000),
        "{freed:?}"
    );
    assert_eq!(all(&server, "c").len(), 20);
    let (reply, _) = run(&server, r#"{"validate": "c"}"#);
    assert!(
        Document(&reply)
            .get("valid")
            .is_some_and(|valid| valid.is_truthy())
    );
    assert_eq!(compact("missing").0, Code::NamespaceNotFound.number());
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

/// `document` with one of the names first.
fn first_of(document: Document<'_>, names: &[&str]) -> Vec<u8> {
    let mut out = drumlin_doc::Builder::new();
    let mut all: Vec<_> = document.iter().collect();
    all.sort_by_key(|element| !names.contains(&element.name_str()));
    for element in all {
        out.value(element.name, element.value);
    }
    out.finish()
}

/// The reply to a `bulkWrite`, whose operations have their names first.
fn bulk_write(server: &Embedded, command: &str) -> Vec<u8> {
    let whole = doc(command);
    let mut out = drumlin_doc::Builder::new();
    for element in Document(&first_of(Document(&whole), &["bulkWrite"])) {
        let Some(ops) = element.value.as_array().filter(|_| element.name == b"ops") else {
            out.value(element.name, element.value);
            continue;
        };
        out.open(drumlin_doc::Kind::Array, "ops");
        for (at, op) in ops.iter().enumerate() {
            let names = ["insert", "update", "delete", "replace"];
            let op = first_of(Document(op.value.bytes), &names);
            out.document(at.to_string(), Document(&op));
        }
        out.close();
    }
    out.str("$db", "admin");
    server.run(&out.finish()).expect("a document")
}

#[test]
fn writes_of_several_collections_go_in_one_command() {
    let server = open();
    let two = r#""nsInfo": [{"ns": "d.a"}, {"ns": "d.b"}]"#;
    let number = |reply: &[u8], name: &str| Document(reply).get(name).and_then(|it| it.as_whole());
    let ops = r#"[{"insert": 0, "document": {"_id": 1, "x": 1}}, {"insert": 0, "document": {"_id": 2, "x": 2}},
        {"insert": 1, "document": {"_id": 1}}, {"insert": 1, "document": {"_id": 1}},
        {"update": 0, "filter": {}, "updateMods": {"$inc": {"x": 1}}, "multi": true},
        {"update": 1, "filter": {"_id": 7}, "updateMods": {"$set": {"x": 1}}, "upsert": true},
        {"delete": 0, "filter": {"x": 3}}]"#;
    // Where one fails, those behind it are done only without an order.
    for (is_ordered, counts) in [(true, [1, 3, 0, 0, 0, 0]), (false, [1, 3, 2, 2, 1, 1])] {
        for name in ["a", "b"] {
            run(&server, &format!(r#"{{"drop": "{name}"}}"#));
        }
        let command =
            format!(r#"{{"bulkWrite": 1, "ops": {ops}, {two}, "ordered": {is_ordered}}}"#);
        let reply = bulk_write(&server, &command);
        let names = [
            "nErrors",
            "nInserted",
            "nMatched",
            "nModified",
            "nUpserted",
            "nDeleted",
        ];
        let found = names.map(|name| number(&reply, name).expect(name));
        assert_eq!(found, counts, "ordered: {is_ordered}");
        let cursor = Document(&reply)
            .get("cursor")
            .and_then(|it| it.as_document());
        let batch = cursor
            .and_then(|it| it.get("firstBatch")?.as_array())
            .expect("a batch");
        let results: Vec<_> = batch
            .iter()
            .filter_map(|it| it.value.as_document())
            .collect();
        assert_eq!(results.len(), if is_ordered { 4 } else { 7 });
        let codes: Vec<_> = results.iter().map(|it| number(it.0, "code")).collect();
        let duplicate = Some(i64::from(Code::DuplicateKey.number()));
        assert_eq!(codes.iter().position(|code| *code == duplicate), Some(3));
    }
    assert_eq!(all(&server, "a"), [doc(r#"{"_id": 1, "x": 2}"#)]);
    assert_eq!(
        all(&server, "b"),
        [r#"{"_id": 1}"#, r#"{"_id": 7, "x": 1}"#].map(doc)
    );
    for (rest, code) in [
        (r#""ops": []"#, Code::InvalidLength),
        (r#""ops": [{"insert": 2, "document": {}}]"#, Code::BadValue),
        (r#""ops": [{"insert": -1, "document": {}}]"#, Code::BadValue),
        (r#""ops": [{"insert": 0}]"#, Code::MissingField),
        (
            r#""ops": [{"insert": 0, "document": 1}]"#,
            Code::TypeMismatch,
        ),
        (r#""ops": [{"replace": 0}]"#, Code::UnknownField),
        (
            r#""ops": [{"update": 0, "filter": {}, "updateMods": 1}]"#,
            Code::FailedToParse,
        ),
        (
            r#""ops": [{"delete": 0, "filter": {}, "hint": 1}]"#,
            Code::FailedToParse,
        ),
        (
            r#""ops": [{"delete": 0, "filter": {}, "collation": {"locale": "en"}}]"#,
            Code::CommandNotSupported,
        ),
        (
            r#""nothing": 1, "ops": [{"insert": 0, "document": {}}]"#,
            Code::UnknownField,
        ),
    ] {
        let reply = bulk_write(&server, &format!(r#"{{"bulkWrite": 1, {rest}, {two}}}"#));
        assert_eq!(
            number(&reply, "code"),
            Some(i64::from(code.number())),
            "{rest}"
        );
    }
}

#[test]
fn arguments_of_other_kinds_are_refused_as_defined() {
    let server = open();
    run(
        &server,
        r#"{"insert": "c", "documents": [{"_id": 1, "x": 3}, {"_id": 2, "x": 1}]}"#,
    );
    for (command, code) in [
        (r#"{"find": "c", "maxTimeMS": "x"}"#, 14),
        (r#"{"find": "c", "maxTimeMS": 1.5}"#, 9),
        (r#"{"find": "c", "maxTimeMS": -1}"#, 2),
        (r#"{"find": "c", "readConcern": 1}"#, 14),
        (r#"{"find": "c", "readConcern": {"level": 1}}"#, 14),
        (r#"{"find": "c", "readConcern": {"level": "Local"}}"#, 2),
        (
            r#"{"find": "c", "readConcern": {"level": "snapshot"}}"#,
            123,
        ),
        (r#"{"find": "c", "readConcern": {"nothing": 1}}"#, 40415),
        (
            r#"{"find": "c", "readConcern": {"level": null, "provenance": "clientSupplied"}}"#,
            0,
        ),
        (r#"{"find": "c", "readConcern": {"level": "majority"}}"#, 0),
        (r#"{"find": "c", "writeConcern": {"w": 1}}"#, 72),
        (r#"{"find": "c", "singleBatch": 1}"#, 14),
        (r#"{"find": "c", "collation": {"locale": "simple"}}"#, 0),
        (r#"{"find": "c", "collation": {"locale": "en"}}"#, 115),
        (
            r#"{"find": "c", "filter": {"x": 3, "$expr": true}, "projection": {"x.$": 1}}"#,
            224,
        ),
        (
            r#"{"insert": "c", "documents": [{}], "writeConcern": null}"#,
            0,
        ),
        (
            r#"{"insert": "c", "documents": [{}], "writeConcern": 1}"#,
            14,
        ),
        (
            r#"{"insert": "c", "documents": [{}], "writeConcern": {"w": 51}}"#,
            9,
        ),
        (
            r#"{"insert": "c", "documents": [{}], "writeConcern": {"w": {"a": 1}}}"#,
            0,
        ),
        (r#"{"insert": "c", "documents": [], "ordered": true}"#, 16),
        (r#"{"insert": "c", "ordered": true}"#, 40414),
        (r#"{"insert": "c", "documents": [{}], "ordered": 1}"#, 14),
        (r#"{"update": "c", "updates": [{"q": 1, "u": {}}]}"#, 14),
        (r#"{"update": "c", "updates": [{"u": {}}]}"#, 40414),
        (r#"{"killCursors": "c", "cursors": [1]}"#, 14),
        (r#"{"killCursors": 1, "cursors": []}"#, 73),
        (r#"{"killCursors": "c"}"#, 40414),
        (
            r#"{"killCursors": "c", "cursors": [], "readConcern": {"level": "majority"}}"#,
            72,
        ),
    ] {
        assert_eq!(run(&server, command).1, code, "{command}");
    }
    // The first one in the order is changed.
    run(
        &server,
        r#"{"update": "c", "updates": [{"q": {"x": {"$gt": 0}}, "sort": {"x": 1}, "u": {"$set": {"x": 9}}}]}"#,
    );
    let (reply, _) = run(&server, r#"{"find": "c", "filter": {"x": 9}}"#);
    let cursor = Document(&reply)
        .get("cursor")
        .and_then(|it| it.as_document());
    let batch = cursor
        .and_then(|it| it.get("firstBatch")?.as_array())
        .expect("a batch");
    let first = batch.iter().next().and_then(|it| it.value.as_document());
    assert_eq!(
        first.map(|it| it.0.to_vec()),
        Some(doc(r#"{"_id": 2, "x": 9}"#))
    );
}

#[test]
fn a_cursor_goes_on_for_its_collection_and_session_alone() {
    let server = open();
    run(
        &server,
        r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}"#,
    );
    let open = |session: &str| {
        let find = format!(r#"{{"find": "c", "batchSize": 1{session}}}"#);
        let (reply, _) = run(&server, &find);
        let cursor = Document(&reply)
            .get("cursor")
            .and_then(|it| it.as_document());
        cursor
            .and_then(|it| it.get("id")?.as_whole())
            .expect("a cursor")
    };
    let [one, two] = ["1", "2"].map(|id| format!(r#", "lsid": {{"id": {id}}}"#));
    for (begin, go_on, code) in [
        ("", r#", "collection": "c""#.to_owned(), 0),
        ("", r#", "collection": "c", "batchSize": 1.9"#.to_owned(), 0),
        (
            "",
            r#", "collection": "c", "batchSize": -1.0"#.to_owned(),
            2,
        ),
        ("", r#", "collection": "c", "maxTimeMS": 5"#.to_owned(), 2),
        ("", r#", "collection": "c", "term": 1"#.to_owned(), 14),
        ("", r#", "collection": "e""#.to_owned(), 13),
        ("", r#", "collection": 1"#.to_owned(), 14),
        ("", String::new(), 40414),
        (&one, format!(r#", "collection": "c"{one}"#), 0),
        (&one, format!(r#", "collection": "c"{two}"#), 50738),
        (&one, r#", "collection": "c""#.to_owned(), 50737),
        ("", format!(r#", "collection": "c"{one}"#), 50736),
    ] {
        let id = open(begin);
        let more = format!(r#"{{"getMore": {{"$long": {id}}}{go_on}}}"#);
        assert_eq!(run(&server, &more).1, code, "{begin} {go_on}");
    }
}

#[test]
fn work_on_one_document_ends_when_its_time_is_over() {
    let server = open();
    run(&server, r#"{"insert": "c", "documents": [{"_id": 1}]}"#);
    // A million times a million elements.
    let range = r#"{"$range": [0, 1000000]}"#;
    let inner = format!(r#"{{"$map": {{"input": {range}, "in": 1}}}}"#);
    let long = [
        format!(r#"{{"$map": {{"input": {range}, "in": {{"$size": {inner}}}}}}}"#),
        format!(
            r#"{{"$filter": {{"input": {range}, "cond": {{"$eq": [0, {{"$size": {inner}}}]}}}}}}"#
        ),
        format!(
            r#"{{"$reduce": {{"input": {range}, "initialValue": 0, "in": {{"$size": {inner}}}}}}}"#
        ),
    ];
    for of in &long {
        for command in [
            format!(r#"{{"find": "c", "maxTimeMS": 20, "projection": {{"x": {of}}}}}"#),
            format!(r#"{{"find": "c", "maxTimeMS": 20, "filter": {{"_id": 1, "$expr": {of}}}}}"#),
            format!(
                r#"{{"aggregate": "c", "maxTimeMS": 20, "cursor": {{}}, "pipeline": [{{"$project": {{"x": {of}}}}}]}}"#
            ),
            format!(
                r#"{{"update": "c", "maxTimeMS": 20, "updates": [{{"q": {{"_id": 1}}, "u": [{{"$set": {{"x": {of}}}}}]}}]}}"#
            ),
            format!(
                r#"{{"delete": "c", "maxTimeMS": 20, "deletes": [{{"q": {{"$expr": {of}}}, "limit": 0}}]}}"#
            ),
        ] {
            let (_, code) = run(&server, &command);
            assert_eq!(code, Code::MaxTimeMsExpired.number(), "{command}");
        }
    }
    assert_eq!(all(&server, "c"), [doc(r#"{"_id": 1}"#)]);
}

/// A part of a reply, as text.
fn part(reply: &[u8], path: &str) -> String {
    let value = drumlin_doc::value_at(Document(reply), &drumlin_doc::Path::new(path));
    value.map(drumlin_doc::show).unwrap_or_default()
}

/// What `explain` tells of a `find` of ten.
fn explained(server: &Embedded, filter: &str) -> Vec<u8> {
    let mut out = drumlin_doc::Builder::new();
    out.open(drumlin_doc::Kind::Document, "explain")
        .str("find", "c")
        .document("filter", Document(&doc(filter)))
        .i32("limit", 10)
        .close()
        .str("$db", "d");
    server.run(&out.finish()).expect("a document")
}

#[test]
fn places_are_found_by_their_indexes() {
    let server = open();
    let index = r#"{"createIndexes": "c", "indexes": [{"name": "p", "key": {"p": "2dsphere"}},
        {"name": "f", "key": {"f": "2d"}, "bits": 20, "min": -500, "max": 500}]}"#;
    assert_eq!(run(&server, index).1, 0);
    for first in (0..4000).step_by(1000) {
        let place = |id: i32| format!("[{}, {}]", id % 80, id / 80);
        let documents: Vec<_> = (first..first + 1000)
            .map(|id| format!(r#"{{"_id": {id}, "p": {}, "f": {}}}"#, place(id), place(id)))
            .collect();
        let insert = format!(
            r#"{{"insert": "c", "documents": [{}]}}"#,
            documents.join(",")
        );
        assert_eq!(run(&server, &insert).1, 0);
    }
    let (reply, _) = run(&server, r#"{"listIndexes": "c"}"#);
    assert_eq!(
        part(&reply, "cursor.firstBatch.1.2dsphereIndexVersion"),
        "3"
    );
    assert_eq!(part(&reply, "cursor.firstBatch.2.bits"), "20");
    assert_eq!(part(&reply, "cursor.firstBatch.2.min"), "-500.0");
    let point = r#"{"type": "Point", "coordinates": [20.1, 20]}"#;
    let near = format!(r#"{{"p": {{"$near": {{"$geometry": {point}}}}}}}"#);
    for (filter, stage) in [
        (near.as_str(), "GEO_NEAR_2DSPHERE"),
        (r#"{"f": {"$near": [20.1, 20]}}"#, "GEO_NEAR_2D"),
    ] {
        let reply = explained(&server, filter);
        assert!(
            part(&reply, "queryPlanner.winningPlan.stage").contains(stage),
            "{filter}"
        );
        let read: u32 = part(&reply, "executionStats.totalDocsExamined")
            .parse()
            .expect("a number");
        assert!(
            (10..15).contains(&read),
            "{filter}: {read} documents were read"
        );
        let (reply, _) = run(
            &server,
            &format!(r#"{{"find": "c", "filter": {filter}, "batchSize": 2}}"#),
        );
        assert_eq!(part(&reply, "cursor.firstBatch.0._id"), "1620");
        assert_eq!(part(&reply, "cursor.firstBatch.1._id"), "1621");
        let id = part(&reply, "cursor.id");
        let more =
            format!(r#"{{"getMore": {{"$long": {id}}}, "collection": "c", "batchSize": 1}}"#);
        let (reply, _) = run(&server, &more);
        assert!(["1540", "1700"].contains(&part(&reply, "cursor.nextBatch.0._id").as_str()));
    }
    // Conditions read what is in their cells.
    let within = r#"{"f": {"$geoWithin": {"$box": [[3, 3], [5, 5]]}}}"#;
    let reply = explained(&server, within);
    assert!(part(&reply, "queryPlanner.winningPlan.inputStage.stage").contains("IXSCAN"));
    assert_eq!(part(&reply, "executionStats.nReturned"), "9");
    // The stage tells how far it is.
    let stage = r#"{"aggregate": "c", "cursor": {}, "pipeline": [{"$geoNear": {"near": [20, 21], "distanceField": "a.b",
        "key": "f", "query": {"_id": {"$gt": 1700}}, "distanceMultiplier": 10, "includeLocs": "l"}}, {"$limit": 2}]}"#;
    let (reply, _) = run(&server, stage);
    assert_eq!(part(&reply, "cursor.firstBatch.0.a.b"), "10.0");
    assert_eq!(part(&reply, "cursor.firstBatch.1.l"), "[ 20, 22 ]");
    let (reply, _) = run(&server, r#"{"validate": "c"}"#);
    assert_eq!(part(&reply, "valid"), "true");
    for (command, code) in [
        (
            format!(r#"{{"find": "c", "filter": {{"f": {{"$near": {{"$geometry": {point}}}}}}}}}"#),
            Code::NoPlan,
        ),
        (
            format!(r#"{{"aggregate": "c", "cursor": {{}}, "pipeline": [{{"$match": {near}}}]}}"#),
            Code::NearNotAllowed,
        ),
        (
            r#"{"aggregate": "x", "cursor": {}, "pipeline": [{"$geoNear": {"near": [0, 0]}}]}"#
                .to_owned(),
            Code::NamespaceNotFound,
        ),
        (
            r#"{"createIndexes": "c", "indexes": [{"name": "x", "key": {"a": 1, "q": "2d"}}]}"#
                .to_owned(),
            Code::PlacesFirst,
        ),
        (
            r#"{"createIndexes": "c", "indexes": [{"name": "x", "key": {"q": "2d"}, "bits": 33}]}"#
                .to_owned(),
            Code::InvalidOptions,
        ),
    ] {
        assert_eq!(run(&server, &command).1, code.number(), "{command}");
    }
}
