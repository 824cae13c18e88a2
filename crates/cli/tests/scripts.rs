//! Goal: the command keeps the promises that scripts and first-time users rely on: numbers that can be
//! counted with, messages about the file that is meant, and nothing lost or left behind on the way to
//! an error. Method: each promise once, by the command itself.

#[path = "support/shell.rs"]
mod shell;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;

use drumlin_fs::{CreateOptions, Env, FileKind};
use shell::{Shell, code, success};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn write_file(path: &Path, bytes: &[u8]) {
    let options = CreateOptions::new(FileKind::Other);
    let files = Env::system().files;
    let mut file = files.create(path, options).expect("writable");
    file.append(bytes).expect("writable");
    file.close().expect("writable");
}

fn exists(path: &Path) -> bool {
    Env::system().files.exists(path).expect("readable")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

fn lines(count: u32) -> String {
    (0..count).fold(String::new(), |mut lines, number| {
        writeln!(lines, "key{number:06}\tvalue").expect("a string takes all");
        lines
    })
}

#[test]
fn keys_of_tables_that_nobody_opened_are_counted() {
    let shell = Shell::new();
    success(shell.run_on(&shell.path("db"), &["load", "-"], lines(3000).as_bytes()));
    shell.print(&["put", "zz", "1"]);
    shell.print(&["compact"]);
    let keys = shell.print(&["stats", "rocksdb.estimate-num-keys"]);
    assert_eq!(keys, "3001\n");
}

#[test]
fn a_count_in_a_pipe_is_a_plain_number() {
    let shell = Shell::new();
    success(shell.run_on(&shell.path("db"), &["load", "-"], lines(1234).as_bytes()));
    assert_eq!(shell.print(&["scan", "--count"]), "1234\n");
}

#[test]
fn a_missing_file_is_named_and_only_a_missing_database_can_be_created() {
    let shell = Shell::new();
    let missing = shell.run(&["get", "key"]);
    assert!(said(&missing).contains("create a database"), "{missing:?}");
    for command in ["levels", "scan", "stats", "dump-manifest", "verify"] {
        let output = shell.run(&[command]);
        assert_eq!(code(&output), 1, "{command}: {}", said(&output));
        assert!(
            said(&output).contains("there is no database in"),
            "{output:?}"
        );
    }
    shell.print(&["put", "key", "value"]);
    shell.print(&["compact"]);
    for arguments in [
        &["load", "/nosuch.tsv"][..],
        &["dump-table", "/nosuch.tsv"],
        &["dump-manifest", "/nosuch.tsv"],
    ] {
        let output = shell.run(arguments);
        let said = said(&output);
        assert_eq!(code(&output), 1, "{arguments:?}: {said}");
        assert!(said.contains("/nosuch.tsv"), "{arguments:?}: {said}");
        assert!(!said.contains("create a database"), "{arguments:?}: {said}");
    }
    // A file of the database that is missing is no key that is missing.
    let files = Env::system().files;
    let names = files.list(&shell.path("db")).expect("readable");
    let manifest = names
        .iter()
        .find(|name| name.to_string_lossy().starts_with("MANIFEST-"));
    let manifest = shell.path("db").join(manifest.expect("one"));
    files.remove(&manifest).expect("ours");
    let output = shell.run(&["get", "key"]);
    assert!(code(&output) > 1, "{output:?}");
    assert!(said(&output).contains("MANIFEST-"), "{output:?}");
    assert!(!said(&output).contains("create a database"), "{output:?}");
}

#[test]
fn a_file_of_another_kind_is_not_dumped() {
    let shell = Shell::new();
    shell.print(&["put", "key", "value"]);
    let words = shell.path("words.txt");
    let zeros = shell.path("zeros");
    write_file(
        &words,
        "a few words, and more of them\n".repeat(400).as_bytes(),
    );
    write_file(&zeros, &[0; 5000]);
    let current = shell.path("db").join("CURRENT");
    for command in ["dump-manifest", "dump-wal", "dump-table", "dump-blob"] {
        for file in [&words, &zeros, &current] {
            let output = shell.run(&[command, text(file)]);
            let said = said(&output);
            assert_eq!(code(&output), 1, "{command} {}: {said}", file.display());
            assert!(said.contains(" is no "), "{command}: {said}");
        }
    }
    assert_eq!(code(&shell.run(&["dump-wal"])), 0);
    assert_eq!(code(&shell.run(&["dump-manifest"])), 0);
}

#[test]
fn a_benchmark_empties_only_what_a_benchmark_made() {
    let shell = Shell::new();
    let fill = ["bench", "--benchmarks=fillseq", "--num=10"];
    shell.print(&["put", "apple", "red"]);
    let refused = shell.run(&fill);
    assert_eq!(code(&refused), 2, "{refused:?}");
    assert!(
        said(&refused).contains("--overwrite-existing-store"),
        "{refused:?}"
    );
    assert_eq!(shell.print(&["get", "apple"]), "red\n");
    // A log of somebody's beside a store of its own is not emptied either.
    let (own, logs) = (shell.path("own"), shell.path("logs"));
    Env::system().files.create_dir_all(&logs).expect("ours");
    let log = logs.join("000001.log");
    write_file(&log, b"somebody's");
    let wal_dir = format!("--wal_dir={}", logs.display());
    let mut elsewhere = fill.to_vec();
    elsewhere.push(&wal_dir);
    assert_eq!(code(&shell.run_on(&own, &elsewhere, b"")), 2);
    assert!(exists(&log));
    // Its own stores it fills as often as it likes.
    success(shell.run_on(&own, &fill, b""));
    success(shell.run_on(&own, &fill, b""));
    let mut anyway = fill.to_vec();
    anyway.push("--overwrite-existing-store");
    shell.print(&anyway);
    assert_eq!(code(&shell.run(&["get", "apple"])), 1);
}

#[test]
fn a_load_that_stops_says_what_is_in_and_the_rest_can_follow() {
    for more in [&[][..], &["--no-wal"]] {
        let shell = Shell::new();
        let input = format!("{}no tab\nlast\tvalue\n", lines(5000));
        let mut load = vec!["load", "-", "--batch-bytes", "4k"];
        load.extend(more);
        let stopped = shell.run_on(&shell.path("db"), &load, input.as_bytes());
        let said = said(&stopped);
        assert_eq!(code(&stopped), 2, "{said}");
        assert!(said.contains("line 5001: there is no TAB"), "{said}");
        assert!(said.contains("lines in the store: 5000"), "{said}");
        assert!(said.contains("from line 5001 on"), "{said}");
        assert_eq!(shell.print(&["scan", "--count"]), "5000\n");
    }
}

#[test]
fn a_load_whose_first_line_is_none_leaves_no_database() {
    let shell = Shell::new();
    let stopped = shell.run_on(&shell.path("db"), &["load", "-"], b"\nno tab\n");
    assert_eq!(code(&stopped), 2);
    assert!(said(&stopped).contains("line 2: "), "{stopped:?}");
    assert!(
        said(&stopped).contains("nothing was written"),
        "{stopped:?}"
    );
    assert!(!exists(&shell.path("db")));
}

#[test]
fn lines_may_end_in_cr_lf() {
    let shell = Shell::new();
    let input = b"a\tone\r\n\r\nb\ttwo\\r\r\nc\tthree\r";
    let loaded = shell.run_on(&shell.path("db"), &["load", "-"], input);
    assert!(
        said(&loaded).contains("4 lines ended in CR LF"),
        "{loaded:?}"
    );
    assert_eq!(shell.print(&["scan"]), "a\tone\nb\ttwo\\r\nc\tthree\n");
}

#[test]
fn a_value_comes_from_standard_input() {
    let shell = Shell::new();
    let db = shell.path("db");
    // Longer than an argument may be, and no text.
    let long: Vec<u8> = (0..300_000u32).map(|number| (number % 251) as u8).collect();
    success(shell.run_on(&db, &["put", "long", "-"], &long));
    let digits = shell.print(&["get", "6c6f6e67", "--hex"]);
    let expected: String = long.iter().map(|byte| format!("{byte:02X}")).collect();
    assert!(digits.trim_end() == format!("0x{expected}"), "other bytes");
    success(shell.run_on(&db, &["put", "6b", "-", "--hex"], b"0x0009\n"));
    assert_eq!(shell.print(&["get", "k"]), "\\x00\\t\n");
    shell.print(&["put", "k", "-", "--literal"]);
    assert_eq!(shell.print(&["get", "k"]), "-\n");
    let odd = shell.run_on(&db, &["put", "6b", "-", "--hex"], b"0x000\n");
    assert_eq!(code(&odd), 2);
    assert!(said(&odd).contains("standard input"), "{odd:?}");
}

#[test]
fn a_report_without_a_directory_is_refused_before_anything_is_measured() {
    let shell = Shell::new();
    let out = shell.path("nosuch").join("report");
    let words = ["lab", "r5", "--against", "none", "--out", text(&out)];
    let mut words = words.to_vec();
    words.extend(["--scale", "0.001", "--rounds", "1", "--seconds", "1"]);
    let refused = shell.run(&words);
    assert_eq!(code(&refused), 2, "{refused:?}");
    assert!(said(&refused).contains("no directory"), "{refused:?}");
}

#[test]
fn lines_and_long_writes_are_measured_as_asked_for() {
    let shell = Shell::new();
    let dir = shell.path("lab");
    std::fs::create_dir(&dir).expect("the shell's directory takes another");
    let measure = |words: &[&str], name: &str| -> String {
        let out = dir.join(name);
        let (dir, out) = (dir.display().to_string(), out.display().to_string());
        let mut all = vec!["lab"];
        all.extend(words);
        all.extend([
            "--against",
            "none",
            "--rounds",
            "1",
            "--dir",
            &dir,
            "--out",
            &out,
        ]);
        let table = shell.print(&all);
        assert!(dir_has(&out, "html") && dir_has(&out, "json"), "{table}");
        table
    };
    let lines = "fillbatch,readseq,fillrandom@2,readrandom,overwrite:disable_wal,compact";
    let words = ["compare", "--num", "1500,3000", "--benchmarks", lines];
    let table = measure(&words, "lines");
    for line in [
        "fillbatch, 1500 entries",
        "readseq after fillbatch, 3000 entries",
        "readrandom after fillrandom, 3000 entries",
        "overwrite without WAL after fillrandom, 1500 entries",
        "compact after overwrite without WAL, 3000 entries",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
    let words = [
        "sustain",
        "--value-size",
        "100",
        "--store-bytes",
        "100000",
        "--writes",
        "3000",
    ];
    let table = measure(&words, "sustain");
    assert!(table.contains("fill, values of 100 bytes"), "{table}");
    assert!(table.contains("write, values of 100 bytes"), "{table}");
    let odd = shell.run(&[
        "lab",
        "compare",
        "--against",
        "none",
        "--benchmarks",
        "readseq",
    ]);
    assert!(
        said(&odd).contains("before anything was written"),
        "{odd:?}"
    );
}

/// Whether the report `out` has a file of this kind.
fn dir_has(out: &str, extension: &str) -> bool {
    Path::new(out).with_extension(extension).exists()
}
