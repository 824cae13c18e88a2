//! Goal: a load that is killed loses nothing it wrote, and can simply be repeated. Method: a real
//! file, Debian's package index, goes through a pipe into `drumlin load`, which is killed with
//! SIGKILL at random moments; after each death the rows in the store are compared byte for byte
//! with the front of the file, and at the end with all of it.
//!
//! The pipe tells which rows must be present: the command writes a row before it reads a batch and
//! a buffer further, so the database has acknowledged every row that is further back than these
//! from the end of the bytes taken.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use drumlin_base::rng::Rng;
use drumlin_testkit::temp_dir;

const SEED: u64 = 0x1d_eb1a;
const KILLS: usize = 4;
/// How much of the index is loaded; all of it when the variable is set.
const BYTES_MAX: usize = 3 << 20;
const WHOLE_VARIABLE: &str = "DRUMLIN_EXHAUSTIVE";
const BATCH_BYTES: usize = 16 << 10;
/// Bytes the command may have taken from the pipe and not written: its input buffer, the pipe
/// itself, a batch that is being gathered.
const UNDERWAY_BYTES: usize = (1 << 20) + (64 << 10) + 2 * BATCH_BYTES;

/// The text of Debian's package index, or at least of the installed packages.
fn index() -> String {
    let lists = std::fs::read_dir("/var/lib/apt/lists")
        .into_iter()
        .flatten();
    let mut lists: Vec<PathBuf> = lists.flatten().map(|entry| entry.path()).collect();
    lists.retain(|path| path.to_string_lossy().contains("_Packages"));
    lists.sort_by_key(|path| std::fs::metadata(path).map_or(0, |facts| facts.len()));
    let largest = lists.last().and_then(|path| {
        // Apt keeps its lists compressed as it likes, and reads them all.
        let helper = Command::new("/usr/lib/apt/apt-helper")
            .arg("cat-file")
            .arg(path)
            .output();
        let helper = helper.ok().filter(|output| output.status.success())?;
        String::from_utf8(helper.stdout).ok()
    });
    largest.unwrap_or_else(|| {
        let installed = std::fs::read_to_string("/var/lib/dpkg/status");
        // A little file, repeated: the keys carry the place and differ.
        let installed = installed.expect("a Debian system has /var/lib/dpkg/status");
        installed.repeat(1 + BYTES_MAX / installed.len().max(1))
    })
}

/// `key TAB value` lines in the order of the index, which is not that of the keys.
fn lines() -> Vec<String> {
    let bytes_max = match std::env::var_os(WHOLE_VARIABLE) {
        Some(_) => usize::MAX,
        None => BYTES_MAX,
    };
    let text = index();
    let (mut lines, mut bytes) = (Vec::new(), 0);
    for stanza in text.split("\n\n").filter(|stanza| !stanza.is_empty()) {
        if bytes > bytes_max {
            break;
        }
        let name = stanza.lines().next().unwrap_or_default();
        let hash = (lines.len() as u32).wrapping_mul(0x9E37_79B9);
        let line = format!("{hash:08x} {}\t{}\n", escaped(name), escaped(stanza));
        bytes += line.len();
        lines.push(line);
    }
    lines
}

/// Bytes that a line cannot hold, escaped as the command does.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            '\0'..' ' | '\x7f' => out.push_str(&format!("\\x{:02X}", u32::from(character))),
            other => out.push(other),
        }
    }
    out
}

fn drumlin(db: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drumlin"));
    command.args(arguments).arg("--db").arg(db);
    command
}

fn start_load(db: &Path) -> Child {
    let batch = BATCH_BYTES.to_string();
    drumlin(db, &["load", "-", "--batch-bytes", &batch])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts")
}

/// The lines `drumlin` prints, which must end well.
fn printed(db: &Path, arguments: &[&str]) -> Vec<String> {
    let output = drumlin(db, arguments).output().expect("the command runs");
    let remarks = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {remarks}");
    let text = String::from_utf8(output.stdout).expect("output is text");
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// How many lines, from the first on, are in the database; nothing else may be in it.
fn rows_found(db: &Path, lines: &[String]) -> usize {
    let found = printed(db, &["scan"]);
    let front = lines
        .get(..found.len())
        .expect("no more rows than were loaded");
    let mut want: Vec<_> = front.iter().collect();
    want.sort_by(|a, b| a.split('\t').next().cmp(&b.split('\t').next()));
    for (at, (found, want)) in found.iter().zip(&want).enumerate() {
        assert!(found == *want, "row {at} is {found}not {want}");
    }
    found.len()
}

/// How many of the first lines were surely written when the pipe had taken `taken` of them.
fn acknowledged(lines: &[String], taken: usize) -> usize {
    let mut underway = 0;
    let later = lines.iter().take(taken).rev().take_while(|line| {
        underway += line.len();
        underway <= UNDERWAY_BYTES
    });
    // The line with the bound in it may be half read.
    taken.saturating_sub(later.count() + 1)
}

#[test]
fn a_load_killed_again_and_again_keeps_what_it_wrote_and_can_be_repeated() {
    let lines = lines();
    let dir = temp_dir();
    let db = dir.path().join("db");
    let mut rng = Rng::new(SEED);
    let mut there = 0;
    for kill in 0..KILLS {
        let mut child = start_load(&db);
        let mut stdin = child.stdin.take().expect("it was piped");
        // The first in any case so late that rows must be there.
        let from = if kill == 0 { lines.len() / 2 } else { 0 };
        let taken = from + rng.below((lines.len() - from) as u64) as usize;
        for line in lines.iter().take(taken) {
            stdin.write_all(line.as_bytes()).expect("the command reads");
        }
        child.kill().expect("killed");
        child.wait().expect("dead");
        drop(stdin);
        let must = acknowledged(&lines, taken).max(there);
        if !db.join("CURRENT").exists() {
            assert_eq!(must, 0);
            continue;
        }
        let before = std::mem::replace(&mut there, rows_found(&db, &lines));
        assert!(
            must <= there && there <= taken.max(before),
            "kill {kill} of seed {SEED:#x}: {taken} rows went in, {must} were written, {there} \
             are there"
        );
        assert!(kill > 0 || must > 0, "the index is too small for the test");
        printed(&db, &["verify"]);
    }
    let mut child = start_load(&db);
    let mut stdin = child.stdin.take().expect("it was piped");
    for line in &lines {
        stdin.write_all(line.as_bytes()).expect("the command reads");
    }
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(rows_found(&db, &lines), lines.len());
    printed(&db, &["verify"]);
}
