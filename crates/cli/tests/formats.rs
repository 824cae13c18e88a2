//! Goal: entries go out and come back in every format, nothing that is no entry is lost without a word, and programs get
//! JSON of every fact. Method: each promise by the command itself; JSON is parsed, not searched.

#[path = "support/shell.rs"]
mod shell;

use std::path::Path;

use drumlin_base::rng::Rng;
use drumlin_testkit::untidy_bytes;
use serde_json::Value;
use shell::{Shell, code, success};

/// The objects that a command prints.
fn objects(shell: &Shell, arguments: &[&str]) -> Vec<Value> {
    let mut words = arguments.to_vec();
    words.push("--json");
    let text = shell.print(&words);
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let objects: Vec<Value> = text.lines().map(parse).collect();
    assert!(objects.iter().all(Value::is_object), "{text}");
    objects
}

fn untidy_store(shell: &Shell) -> String {
    let mut rng = Rng::new(41);
    let mut lines = Vec::new();
    for index in 0..200u32 {
        let mut key = untidy_bytes(&mut rng, 10);
        key.extend(index.to_be_bytes());
        let value = untidy_bytes(&mut rng, 40);
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        lines.push(format!("{}\t{}\n", hex(&key), hex(&value)));
    }
    let load = ["load", "-", "--hex"];
    success(shell.run_on(&shell.path("db"), &load, lines.concat().as_bytes()));
    shell.print(&["scan", "--hex"])
}

#[test]
fn what_scan_prints_in_any_format_load_takes() {
    let shell = Shell::new();
    let reference = untidy_store(&shell);
    for (name, flags) in [
        ("text", &["--format", "text"][..]),
        ("csv", &["--format", "csv"]),
        ("csv-hex", &["--format", "csv", "--hex"]),
        ("json", &["--format", "json"]),
        ("json-hex", &["--format", "json", "--hex"]),
        ("binary", &["--format", "binary"]),
    ] {
        let mut scan = vec!["scan"];
        scan.extend(flags);
        let printed = shell.run(&scan);
        assert_eq!(code(&printed), 0, "{name}: {printed:?}");
        let copy = shell.path(name);
        let mut load = vec!["load", "-"];
        load.extend(flags);
        success(shell.run_on(&copy, &load, &printed.stdout));
        let again = success(shell.run_on(&copy, &["scan", "--hex"], b""));
        assert_eq!(again, reference, "{name}");
    }
}

#[test]
fn raw_lines_hold_what_they_can_and_refuse_the_rest() {
    let shell = Shell::new();
    let db = shell.path("db");
    let raw = ["load", "-", "--format", "lines"];
    success(shell.run_on(&db, &raw, b"a\\t\tb\tc\nk\xff\t\n"));
    assert_eq!(shell.print(&["scan"]), "a\\\\t\tb\\tc\nk\\xFF\t\n");
    let printed = shell.run(&["scan", "--format", "lines"]);
    assert_eq!(printed.stdout, b"a\\t\tb\tc\nk\xff\t\n");
    shell.print(&["put", "b", "two\\nlines"]);
    let refused = shell.run(&["scan", "--format", "lines"]);
    assert_eq!(code(&refused), 2);
    assert_eq!(refused.stdout, b"a\\t\tb\tc\n");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("the entry 'b'") && said.contains("a line's end"),
        "{said}"
    );
    assert_eq!(
        code(&shell.run(&["scan", "--format", "binary", "--hex"])),
        2
    );
}

#[test]
fn bad_lines_are_skipped_only_on_request_and_counted() {
    let shell = Shell::new();
    let db = shell.path("db");
    let mut lines = String::from("none\n");
    for number in 0..40 {
        lines += &format!("key{number:02}\tvalue\nbad {number}\n");
    }
    let refused = shell.run_on(&db, &["load", "-"], lines.as_bytes());
    assert_eq!(code(&refused), 2);
    assert!(!db.exists_here());
    let loaded = shell.run_on(
        &db,
        &["load", "-", "--skip-bad", "--json"],
        lines.as_bytes(),
    );
    let said = String::from_utf8_lossy(&loaded.stderr).into_owned();
    assert!(
        said.contains("line 1 is skipped: there is no TAB"),
        "{said}"
    );
    assert!(said.contains("no entries: 41 lines"), "{said}");
    assert_eq!(said.matches("is skipped").count(), 10, "{said}");
    let told: Value = serde_json::from_str(&success(loaded)).expect("an object");
    assert_eq!(
        (told["rows"].as_u64(), told["skipped"].as_u64()),
        (Some(40), Some(41))
    );
    assert_eq!(shell.print(&["scan", "--count"]), "40\n");
    // A stream of lengths that is wrong has no next entry.
    let cut = shell.run_on(
        &db,
        &["load", "-", "--format", "binary", "--skip-bad"],
        &[1, 0, 0, 0],
    );
    assert_eq!(code(&cut), 2);
    assert!(
        String::from_utf8_lossy(&cut.stderr).contains("entry 1: the input ends"),
        "{cut:?}"
    );
}

trait Here {
    fn exists_here(&self) -> bool;
}

impl Here for Path {
    fn exists_here(&self) -> bool {
        drumlin_fs::Env::system()
            .files
            .exists(self)
            .expect("readable")
    }
}

#[test]
fn a_csv_load_that_stops_says_where_to_go_on() {
    let shell = Shell::new();
    let input = b"a,1\n\"b\r\nc\",\"2\r\n3\"\nd,4,5\ne,6\n";
    let load = ["load", "-", "--format", "csv"];
    let stopped = shell.run_on(&shell.path("db"), &load, input);
    let said = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert_eq!(code(&stopped), 2, "{said}");
    assert!(
        said.contains("line 5: a record has two fields, this one has 3"),
        "{said}"
    );
    assert!(
        said.contains("lines in the store: 2; load what is left from line 5 on"),
        "{said}"
    );
    assert_eq!(shell.print(&["scan"]), "a\t1\nb\\r\\nc\t2\\r\\n3\n");
}

#[test]
fn facts_are_objects_with_plain_numbers() {
    let shell = Shell::new();
    let rows: String = (0..3000)
        .map(|n| format!("key{n:06}\tvalue {n}\n"))
        .collect();
    success(shell.run_on(&shell.path("db"), &["load", "-"], rows.as_bytes()));
    let compacted = objects(&shell, &["compact"]);
    assert!(
        compacted[0]["bytes_after"].as_u64() > Some(0),
        "{compacted:?}"
    );
    let verified = objects(&shell, &["verify"]);
    assert_eq!(verified[0]["entries"], 3000);
    assert_eq!(verified[0]["damaged"], serde_json::json!([]));
    let property = objects(&shell, &["stats", "rocksdb.estimate-num-keys"]);
    assert_eq!(property[0]["value"], 3000);
    let figures = objects(&shell, &["stats"]);
    assert_eq!(figures[0]["families"][0]["levels"][6]["tables"], 1);
    assert!(figures[0]["tickers"]["rocksdb.wal.bytes"].is_number());
    let told = objects(&shell, &["explain", "key000007"]);
    assert_eq!(told[0]["read"]["tables"][0]["level"], 6);
    let told = objects(&shell, &["explain", "zz"]);
    assert_eq!(told[0]["read"]["tables"], serde_json::json!([]));
    let text = shell.print(&["stats", "--prometheus"]);
    let level = "drumlin_engine_level_tables{family=\"default\",level=\"6\"} 1\n";
    assert!(text.contains(level), "{text}");
    assert_eq!(objects(&shell, &["scan", "--count"])[0]["count"], 3000);
    assert_eq!(objects(&shell, &["family", "list"])[0]["family"], "default");
    let got = objects(&shell, &["get", "key000007"]);
    assert_eq!(
        got[0],
        serde_json::json!({"key": "key000007", "value": "value 7"})
    );
    let levels = objects(&shell, &["levels"]);
    assert_eq!(
        (levels.len(), &levels[0]["smallest"]),
        (1, &Value::from("key000000"))
    );
    let edits = objects(&shell, &["dump-manifest"]);
    assert!(
        edits.iter().any(|edit| edit["add_tables"][0]["level"] == 6),
        "{edits:?}"
    );
    let number = levels[0]["number"].as_u64().expect("a number");
    let table = shell.path("db").join(format!("{number:06}.sst"));
    let dumped = objects(
        &shell,
        &["dump-table", table.to_str().expect("text"), "--entries"],
    );
    assert_eq!(
        (dumped.len(), &dumped[0]["entries"]),
        (3001, &Value::from(3000))
    );
    assert_eq!(dumped[1]["kind"], "put");
    shell.print(&["put", "last", "of all"]);
    let logged = objects(&shell, &["dump-wal"]);
    assert!(
        logged.iter().any(|entry| entry["key"] == "last"),
        "{logged:?}"
    );
    let backups = shell.path("backups");
    let backups = backups.to_str().expect("text");
    assert_eq!(
        objects(&shell, &["backup", "create", backups, "--note", "n"])[0]["id"],
        1
    );
    assert_eq!(
        objects(&shell, &["backup", "list", backups])[0]["note"],
        "n"
    );
    assert_eq!(
        objects(&shell, &["backup", "verify", backups])[0]["backups"],
        1
    );
}
