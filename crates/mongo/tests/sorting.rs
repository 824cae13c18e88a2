//! Goal: sorts that memory has no room for give what others give, and leave no files. Method: the same sort with much memory and with
//! little, by find and by aggregate, with batches, limits and a disk that is full.

#[path = "../../doc/tests/doc/json.rs"]
mod json;

use std::path::Path;
use std::sync::Arc;

use drumlin::Options;
use drumlin_doc::{Builder, Document, Kind};
use drumlin_fs::{CreateOptions, Env, FileKind, FileSystem, StrictMemFileSystem};
use drumlin_mongo::Embedded;

use json::doc;

const DOCUMENTS: i32 = 3000;
const SORTS: &str = "/mongo/sorts";

fn open(files: &StrictMemFileSystem) -> Embedded {
    let options = Options {
        env: Env::system().with_files(Arc::new(files.clone())),
        background_threads: Some(0),
        memory_budget: Some(64 << 20),
        ..Options::default()
    };
    Embedded::open(Path::new("/mongo"), options).expect("opens")
}

/// Documents with few values of `a`, so that many are equal, and some text.
fn fill(server: &Embedded) {
    let mut insert = Builder::new();
    insert.str("insert", "c").str("$db", "d");
    insert.open(Kind::Array, "documents");
    for number in 0..DOCUMENTS {
        insert.open(Kind::Document, number.to_string());
        insert.i32("_id", number).i32("a", (number * 7919) % 83);
        insert.str(
            "text",
            &"text ".repeat(usize::try_from(number % 40).expect("is small")),
        );
        insert.close();
    }
    insert.close();
    let reply = server.run(&insert.finish()).expect("a document");
    assert_eq!(
        Document(&reply).get("n").and_then(|n| n.as_whole()),
        Some(i64::from(DOCUMENTS))
    );
}

/// The reply to a command, whose name is the first one in its text.
fn run(server: &Embedded, command: &str) -> Vec<u8> {
    let whole = doc(command);
    let name = command.split('"').nth(1).expect("a name");
    let mut elements: Vec<_> = Document(&whole).iter().collect();
    elements.sort_by_key(|element| element.name_str() != name);
    let mut out = Builder::new();
    for element in elements {
        out.value(element.name, element.value);
    }
    server.run(&out.finish()).expect("a document")
}

fn limit(server: &Embedded, bytes: usize) {
    let parameter = "internalQueryMaxBlockingSortMemoryUsageBytes";
    let set = format!(r#"{{"setParameter": 1, "{parameter}": {bytes}, "$db": "admin"}}"#);
    assert!(Document(&run(server, &set)).get("was").is_some());
    let get = format!(r#"{{"getParameter": 1, "{parameter}": 1, "$db": "admin"}}"#);
    let reply = run(server, &get);
    let told = Document(&reply).get(parameter).and_then(|it| it.as_whole());
    assert_eq!(told.map(|told| told.try_into()), Some(Ok(bytes)));
}

fn code(reply: &[u8]) -> i64 {
    Document(reply)
        .get("code")
        .and_then(|code| code.as_whole())
        .unwrap_or(0)
}

/// All documents of a cursor's batches.
fn all(server: &Embedded, command: &str, batch: u32) -> Vec<Vec<u8>> {
    let mut reply = run(server, command);
    let mut found = Vec::new();
    let mut name = "firstBatch";
    loop {
        let cursor = Document(&reply)
            .get("cursor")
            .and_then(|it| it.as_document());
        let cursor = cursor.unwrap_or_else(|| panic!("{command}: {:?}", Document(&reply)));
        let documents = cursor
            .get(name)
            .and_then(|it| it.as_array())
            .expect("a batch");
        found.extend(documents.iter().map(|it| it.value.bytes.to_vec()));
        let id = cursor
            .get("id")
            .and_then(|id| id.as_whole())
            .expect("an id");
        if id == 0 {
            return found;
        }
        let mut more = Builder::new();
        more.i64("getMore", id)
            .str("collection", "c")
            .str("$db", "d");
        more.i32("batchSize", i32::try_from(batch).expect("is small"));
        reply = server.run(&more.finish()).expect("a document");
        name = "nextBatch";
    }
}

fn files_of_sorts(files: &StrictMemFileSystem) -> usize {
    files.list(Path::new(SORTS)).map_or(0, |names| names.len())
}

const QUERIES: [&str; 7] = [
    r#"{"find": "c", "sort": {"a": 1}, "batchSize": 100, "$db": "d"}"#,
    r#"{"find": "c", "sort": {"a": -1, "text": 1}, "batchSize": 0, "$db": "d"}"#,
    r#"{"find": "c", "sort": {"text": 1}, "skip": 700, "limit": 1500, "projection": {"a": 1}, "$db": "d"}"#,
    r#"{"find": "c", "sort": {"text": 1}, "skip": 5000, "$db": "d"}"#,
    r#"{"aggregate": "c", "pipeline": [{"$project": {"a": 1, "b": "$text"}}, {"$sort": {"a": -1}}, {"$skip": 3}],
        "cursor": {"batchSize": 7}, "$db": "d"}"#,
    r#"{"aggregate": "c", "pipeline": [{"$sort": {"a": 1}}, {"$limit": 2500}, {"$project": {"b": {"$add": ["$a", 1]}}}],
        "cursor": {}, "$db": "d"}"#,
    r#"{"aggregate": "c", "pipeline": [{"$sortByCount": "$a"}], "cursor": {}, "$db": "d"}"#,
];

#[test]
fn a_sort_beyond_memory_gives_what_one_in_memory_gives() {
    let files = StrictMemFileSystem::new();
    let server = open(&files);
    fill(&server);
    let expected: Vec<_> = QUERIES
        .iter()
        .map(|query| all(&server, query, 900))
        .collect();
    assert_eq!(files_of_sorts(&files), 0);
    // The second writes more files than are merged at once.
    for bytes in [100_000, 2_000] {
        limit(&server, bytes);
        for (query, expected) in QUERIES.iter().zip(&expected) {
            for batch in [1000, 13] {
                assert!(
                    all(&server, query, batch) == *expected,
                    "{query} with {bytes}"
                );
            }
            assert_eq!(files_of_sorts(&files), 0, "{query}");
        }
    }
    let status = run(&server, r#"{"serverStatus": 1, "$db": "admin"}"#);
    let mut metrics = Document(&status);
    for name in ["metrics", "query", "sort"] {
        metrics = metrics
            .get(name)
            .and_then(|it| it.as_document())
            .expect(name);
    }
    let spilled = metrics.get("spillToDisk").and_then(|it| it.as_whole());
    assert!(spilled.is_some_and(|spilled| spilled > 1000), "{spilled:?}");
}

#[test]
fn a_cursor_keeps_its_files_until_it_is_closed() {
    let files = StrictMemFileSystem::new();
    let server = open(&files);
    fill(&server);
    limit(&server, 50_000);
    let reply = run(&server, QUERIES[0]);
    let cursor = Document(&reply)
        .get("cursor")
        .and_then(|it| it.as_document());
    let id = cursor
        .and_then(|it| it.get("id")?.as_whole())
        .expect("an id");
    assert!(files_of_sorts(&files) > 5);
    let mut kill = Builder::new();
    kill.str("killCursors", "c").str("$db", "d");
    kill.open(Kind::Array, "cursors").i64("0", id).close();
    let reply = server.run(&kill.finish()).expect("a document");
    let killed = Document(&reply)
        .get("cursorsKilled")
        .and_then(|it| it.as_array());
    assert_eq!(killed.map(|killed| killed.iter().count()), Some(1));
    assert_eq!(files_of_sorts(&files), 0);
}

#[test]
fn a_sort_that_may_use_no_disk_or_finds_none_is_refused_and_leaves_nothing() {
    let files = StrictMemFileSystem::new();
    let server = open(&files);
    fill(&server);
    limit(&server, 50_000);
    for query in [QUERIES[0], QUERIES[4]] {
        let refused = query.replacen(r#", "$db""#, r#", "allowDiskUse": false, "$db""#, 1);
        assert_eq!(code(&run(&server, &refused)), 292, "{refused}");
        assert_eq!(files_of_sorts(&files), 0);
    }
    files.set_quota(512 << 20);
    assert_eq!(code(&run(&server, QUERIES[0])), 14031);
    assert_eq!(files_of_sorts(&files), 0);
    files.set_quota(u64::MAX);
    assert_eq!(all(&server, QUERIES[0], 100).len(), 3000);
}

#[test]
fn who_may_use_no_disk_is_refused_nothing_that_less_memory_was_enough_for() {
    let server = open(&StrictMemFileSystem::new());
    fill(&server);
    // The longest texts stay when the others are cut.
    let query =
        r#"{"find": "c", "sort": {"text": -1}, "limit": 600, "allowDiskUse": false, "$db": "d"}"#;
    let codes = (1..=60).map(|step| {
        limit(&server, step * 10_000);
        code(&run(&server, query))
    });
    let codes: Vec<_> = codes.collect();
    let enough = codes.iter().position(|code| *code == 0).expect("enough");
    assert!(codes[..enough].iter().all(|code| *code == 292), "{codes:?}");
    assert!(codes[enough..].iter().all(|code| *code == 0), "{codes:?}");
    assert!(enough > 0, "{codes:?}");
}

#[test]
fn what_a_killed_server_left_is_removed() {
    let files = StrictMemFileSystem::new();
    drop(open(&files));
    files.create_dir_all(Path::new(SORTS)).expect("is made");
    for name in ["0.run", "17.run"] {
        let path = Path::new(SORTS).join(name);
        let mut file = files
            .create(&path, CreateOptions::new(FileKind::Other))
            .expect("a file");
        file.append(b"left").expect("is written");
    }
    drop(open(&files));
    assert_eq!(files_of_sorts(&files), 0);
}
