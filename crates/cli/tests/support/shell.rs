//! The command, run as a user runs it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use drumlin_testkit::{TempDir, temp_dir};

/// A directory with a database in it, or not yet.
pub(crate) struct Shell {
    dir: TempDir,
}

impl Shell {
    /// Without a database.
    pub(crate) fn new() -> Self {
        Self { dir: temp_dir() }
    }

    /// A path in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs `drumlin` with `arguments` on the database `db`.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_on(&self.path("db"), arguments, b"")
    }

    /// Runs it on another database, with `input` to read.
    pub(crate) fn run_on(&self, db: &Path, arguments: &[&str], input: &[u8]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_drumlin"))
            .args(arguments)
            .arg("--db")
            .arg(db)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut stdin = child.stdin.take().expect("it was piped");
        stdin.write_all(input).expect("the command reads its input");
        drop(stdin);
        child.wait_with_output().expect("the command ends")
    }

    /// Runs, expects success, and returns the output.
    pub(crate) fn print(&self, arguments: &[&str]) -> String {
        success(self.run(arguments))
    }
}

/// The output of a command that must have succeeded.
pub(crate) fn success(output: Output) -> String {
    let remarks = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {remarks}", output.status);
    String::from_utf8(output.stdout).expect("output is text")
}

/// The code a command ended with.
pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}
