//! RocksDB's command-line tools, as processes.

use std::path::Path;
use std::process::Command;

use crate::rows::Rows;

/// The output of a tool.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Whether it exited with 0.
    pub success: bool,
    /// Its output.
    pub stdout: Vec<u8>,
    /// Its complaints.
    pub stderr: String,
}

impl Ran {
    /// The output, of a tool that must have succeeded.
    ///
    /// # Panics
    /// When it failed.
    #[track_caller]
    pub fn ok(self) -> String {
        let text = String::from_utf8_lossy(&self.stdout).into_owned();
        assert!(self.success, "the tool failed: {text}\n{}", self.stderr);
        text
    }

    /// Output and complaints, of a tool that must have failed.
    ///
    /// # Panics
    /// When it succeeded.
    #[track_caller]
    pub fn failed(self) -> String {
        let text = String::from_utf8_lossy(&self.stdout).into_owned();
        assert!(!self.success, "the tool succeeded: {text}");
        format!("{text}\n{}", self.stderr)
    }
}

/// Runs `tool`.
///
/// # Panics
/// When it is not installed.
pub fn run(tool: &str, arguments: &[&str]) -> Ran {
    let output = Command::new(tool).args(arguments).output();
    let output = output.unwrap_or_else(|error| {
        panic!("cannot run {tool}: {error}. Install Debian's rocksdb-tools (`make deps`)")
    });
    Ran {
        success: output.status.success(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs `ldb --db=dir arguments`.
pub fn ldb(dir: &Path, arguments: &[&str]) -> Ran {
    let db = format!("--db={}", dir.display());
    run("ldb", &[&[db.as_str()], arguments].concat())
}

/// Runs `sst_dump --file=path arguments`.
pub fn sst_dump(path: &Path, arguments: &[&str]) -> Ran {
    let file = format!("--file={}", path.display());
    run("sst_dump", &[&[file.as_str()], arguments].concat())
}

/// Runs `db_bench --db=dir arguments`.
pub fn db_bench(dir: &Path, arguments: &[&str]) -> Ran {
    let db = format!("--db={}", dir.display());
    run("db_bench", &[&[db.as_str()], arguments].concat())
}

/// Every row of `family` as `ldb scan` prints it, with the options of the directory's OPTIONS file.
///
/// # Panics
/// When `ldb` fails or prints a line that is no row.
#[track_caller]
pub fn ldb_scan(dir: &Path, family: &str) -> Rows {
    let family = format!("--column_family={family}");
    let text = ldb(dir, &["scan", "--hex", "--try_load_options", &family]).ok();
    let row = |line: &str| {
        let (key, value) = line
            .split_once(" : ")
            .unwrap_or_else(|| panic!("no row: {line}"));
        (from_hex(key), from_hex(value))
    };
    text.lines()
        .filter(|line| line.starts_with("0x"))
        .map(row)
        .collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text
        .trim()
        .strip_prefix("0x")
        .expect("ldb prints 0x")
        .as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}
