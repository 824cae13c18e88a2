//! Goal: what looks at a directory tells the truth of it and changes nothing. Method: directories harmed in each way that
//! `doctor` knows, compared byte for byte before and after; sizes of `du` against rows that were counted.

#[path = "support/shell.rs"]
mod shell;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use drumlin_base::rng::Rng;
use drumlin_fs::{CreateOptions, Env, FileKind};
use serde_json::Value;
use shell::{Shell, code, success};

fn objects(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Every file of a directory with its bytes.
fn image(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = Env::system().files;
    let names = files.list(dir).expect("readable");
    let regular = names
        .into_iter()
        .filter(|name| !files.info(&dir.join(name)).expect("there").is_dir);
    regular
        .map(|name| {
            let bytes = files
                .read_file(&dir.join(&name), 1 << 26)
                .expect("readable");
            (name, bytes)
        })
        .collect()
}

fn write_file(path: &Path, bytes: &[u8]) {
    let files = Env::system().files;
    let options = CreateOptions::new(FileKind::Other);
    let mut file = files.create(path, options).expect("writable");
    file.append(bytes).expect("writable");
    file.close().expect("writable");
}

/// A store with a table, and a log behind it.
fn store() -> Shell {
    let shell = Shell::new();
    let rows: String = (0..3000)
        .map(|n| format!("user:{n:06}\tvalue {n}\n"))
        .collect();
    let mut rng = Rng::new(3);
    let mut noise = || {
        (0..20)
            .map(|_| format!("{:016x}", rng.next_u64()))
            .collect::<String>()
    };
    let rows = rows
        + &(0..1000)
            .map(|n| format!("cart:{n:06}\t{}\n", noise()))
            .collect::<String>();
    success(shell.run_on(&shell.path("db"), &["load", "-"], rows.as_bytes()));
    shell.print(&["compact"]);
    shell.print(&["put", "zz", "last"]);
    shell
}

fn named(shell: &Shell, part: &str) -> PathBuf {
    let names = Env::system()
        .files
        .list(&shell.path("db"))
        .expect("readable");
    let mut found: Vec<_> = names
        .into_iter()
        .filter(|name| name.to_string_lossy().contains(part))
        .collect();
    found.sort();
    shell.path("db").join(found.pop().expect("there is one"))
}

/// What `doctor` finds, and its exit code; nothing changes.
fn diagnose(shell: &Shell) -> (Vec<(String, String)>, i32) {
    let before = image(&shell.path("db"));
    let output = shell.run(&["doctor", "--json"]);
    assert!(
        image(&shell.path("db")) == before,
        "the directory was changed"
    );
    let found = objects(&String::from_utf8_lossy(&output.stdout));
    let field = |it: &Value, name: &str| it[name].as_str().expect("text").to_owned();
    let found = found
        .iter()
        .map(|it| (field(it, "danger"), field(it, "finding")))
        .collect();
    (found, code(&output))
}

#[test]
fn a_sound_directory_has_no_danger() {
    let shell = store();
    let (found, code) = diagnose(&shell);
    assert_eq!(code, 0, "{found:?}");
    assert!(
        found.iter().all(|(danger, _)| danger == "note"),
        "{found:?}"
    );
    let nothing = Shell::new();
    assert_eq!(shell::code(&nothing.run(&["doctor"])), 1);
}

#[test]
fn every_harm_is_found_and_named() {
    let files = Env::system().files;
    type Harm<'a> = (&'a str, &'a dyn Fn(&Shell) -> String, &'a str);
    let harms: [Harm<'_>; 6] = [
        (
            "a table is missing",
            &|shell| {
                files.remove(&named(shell, ".sst")).expect("ours");
                "tables are missing".to_owned()
            },
            "danger",
        ),
        (
            "a table is cut",
            &|shell| {
                let table = named(shell, ".sst");
                let size = files.info(&table).expect("there").size;
                files.truncate(&table, size - 1).expect("ours");
                table
                    .file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned()
            },
            "danger",
        ),
        (
            "the MANIFEST is gone",
            &|shell| {
                files.remove(&named(shell, "MANIFEST-")).expect("ours");
                "MANIFEST-".to_owned()
            },
            "danger",
        ),
        (
            "CURRENT is garbage",
            &|shell| {
                let current = shell.path("db").join("CURRENT");
                files.truncate(&current, 3).expect("ours");
                "CURRENT does not name".to_owned()
            },
            "danger",
        ),
        (
            "a stranger's file",
            &|shell| {
                write_file(&shell.path("db").join("notes.txt"), b"mine");
                "notes.txt".to_owned()
            },
            "note",
        ),
        (
            "a table that nobody names",
            &|shell| {
                write_file(&shell.path("db").join("999990.sst"), b"what is it");
                "999990.sst".to_owned()
            },
            "note",
        ),
    ];
    for (name, harm, danger) in harms {
        let shell = store();
        let sentence = harm(&shell);
        let (found, code) = diagnose(&shell);
        let is_it = |(word, what): &&(String, String)| word == danger && what.contains(&sentence);
        assert!(found.iter().any(|it| is_it(&it)), "{name}: {found:?}");
        assert_eq!(
            code,
            if danger == "danger" { 3 } else { 0 },
            "{name}: {found:?}"
        );
        let order = ["danger", "trouble", "note"];
        let ranks: Vec<_> = found
            .iter()
            .map(|(word, _)| order.iter().position(|it| it == word))
            .collect();
        assert!(ranks.is_sorted(), "{name}: {found:?}");
    }
}

#[test]
fn a_damaged_log_is_found() {
    let shell = store();
    for index in 0..50 {
        shell.print(&["put", &format!("more{index}"), "value"]);
    }
    let log = named(&shell, ".log");
    let files = Env::system().files;
    let bytes = files.read_file(&log, 1 << 26).expect("readable");
    let at = bytes
        .windows(4)
        .position(|four| four == b"more")
        .expect("it is logged");
    let mut harmed = bytes;
    harmed[at] ^= 1;
    files.remove(&log).expect("ours");
    write_file(&log, &harmed);
    let (found, _) = diagnose(&shell);
    let name = log
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert!(
        found.iter().any(|(_, what)| what.contains(&name)),
        "{found:?}"
    );
}

#[test]
fn du_groups_keys_and_counts_their_rows() {
    let shell = store();
    let text = shell.print(&["du", "--delimiter", ":", "--json"]);
    let told = objects(&text);
    let groups: Vec<_> = told.iter().filter(|it| it["prefix"].is_string()).collect();
    assert_eq!(groups.len(), 3, "{text}");
    assert_eq!(
        groups[0]["prefix"], "cart:",
        "the largest comes first: {text}"
    );
    let entries = |index: usize| groups[index]["entries"].as_u64().expect("a number");
    // One table holds both, and rows of either are counted by its mean.
    assert!((entries(0) + entries(1)).abs_diff(4000) < 100, "{text}");
    let sum: u64 = groups
        .iter()
        .filter_map(|group| group["bytes"].as_u64())
        .sum();
    let all = shell
        .print(&["approxsize"])
        .trim()
        .parse::<u64>()
        .expect("a number");
    assert!(sum.abs_diff(all) <= all / 10, "{sum} of {all}");
    let part = shell.print(&["approxsize", "--from", "user:", "--to", "user;"]);
    assert!(part.trim().parse::<u64>().expect("a number") < all);
    assert!(told.iter().any(|it| it["sizes_of"] == "values"), "{text}");
    let deeper = shell.print(&[
        "du", "--prefix", "user:", "--length", "3", "--top", "2", "--json",
    ]);
    let deeper = objects(&deeper);
    assert!(
        deeper[0]["prefix"]
            .as_str()
            .is_some_and(|it| it.starts_with("user:00")),
        "{deeper:?}"
    );
    assert_eq!(deeper[2]["other_prefixes"], 1, "{deeper:?}");
}
