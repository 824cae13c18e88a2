//! Goal: who follows a store that other processes write sees what they wrote, in whole lines, and a signal ends it in order.
//! Method: commands that follow beside commands that write, ended by SIGINT and SIGTERM while more is coming.

#[path = "support/shell.rs"]
mod shell;

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;
use shell::{Shell, code};

/// A command that goes on.
struct Following {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    remarks: ChildStderr,
}

impl Following {
    fn new(shell: &Shell, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_drumlin"))
            .args(arguments)
            .arg("--db")
            .arg(shell.path("db"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self {
            input: child.stdin.take(),
            lines,
            remarks: child.stderr.take().expect("piped"),
            child,
        }
    }

    fn line(&mut self) -> String {
        let line = self.lines.next().expect("the command goes on");
        line.expect("text")
    }

    fn object(&mut self) -> Value {
        serde_json::from_str(&self.line()).expect("JSON")
    }

    fn type_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{line}").expect("it is read");
    }

    /// Sends a signal; the lines until the end, the remarks and the exit code.
    fn end(mut self, signal: &str) -> (Vec<String>, String, Option<i32>) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.expect("kill is there").success());
        let lines = self.lines.map(|line| line.expect("text")).collect();
        let mut remarks = String::new();
        let read = self.remarks.read_to_string(&mut remarks);
        read.expect("text");
        let status = self.child.wait().expect("it ended");
        (lines, remarks, status.code())
    }
}

#[test]
fn follow_tells_how_far_it_is_until_a_signal() {
    let shell = Shell::new();
    shell.print(&["put", "a", "1"]);
    for signal in ["-TERM", "-INT"] {
        let mut following = Following::new(&shell, &["follow", "--interval", "0.1", "--json"]);
        let first = following.object();
        assert_eq!(first["error"], Value::Null);
        // Opened anew by each writer: new WAL files, a new MANIFEST.
        for key in ["b", "c"] {
            shell.print(&["put", key, "2"]);
        }
        let wanted = first["seqno"].as_u64().expect("a number") + 2;
        let mut seen = first;
        for _ in 0..600 {
            if seen["seqno"].as_u64() >= Some(wanted) {
                break;
            }
            seen = following.object();
        }
        assert_eq!(seen["seqno"].as_u64(), Some(wanted), "{seen}");
        let behind = seen["seconds_behind"].as_f64().expect("a number");
        assert!((0.0..60.0).contains(&behind), "{seen}");
        let (_, _, code) = following.end(signal);
        assert_eq!(code, Some(0), "{signal}");
    }
}

#[test]
fn follow_says_why_it_cannot_go_on() {
    let shell = Shell::new();
    shell.print(&["put", "a", "1"]);
    let mut following = Following::new(&shell, &["follow", "--interval", "0.1"]);
    let line = following.line();
    assert!(
        line.starts_with("write number 1, 0/s, ") && line.ends_with(" ms behind"),
        "{line}"
    );
    let files = drumlin_fs::Env::system().files;
    files
        .rename(&shell.path("db"), &shell.path("away"))
        .expect("ours");
    let told = (0..600)
        .map(|_| following.line())
        .find(|it| it.contains("it cannot go on: "));
    assert!(told.is_some());
    files
        .rename(&shell.path("away"), &shell.path("db"))
        .expect("ours");
    let told = (0..600)
        .map(|_| following.line())
        .find(|it| it.ends_with(" ms behind"));
    assert!(told.is_some());
    assert_eq!(following.end("-TERM").2, Some(0));
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let shell = Shell::new();
    assert_eq!(code(&shell.run(&["follow"])), 1);
    assert_eq!(code(&shell.run(&["shell", "--follow"])), 1);
    shell.print(&["put", "a", "1"]);
    assert_eq!(code(&shell.run(&["follow", "--interval", "0"])), 2);
    assert_eq!(code(&shell.run(&["shell", "--follow", "--read-only"])), 2);
    let ran = shell.run_on(&shell.path("db"), &["shell"], b"follow\n");
    assert_eq!(code(&ran), 2);
}

#[test]
fn a_shell_that_follows_sees_what_was_written_before_each_command() {
    let shell = Shell::new();
    shell.print(&["put", "key", "0"]);
    let mut following = Following::new(&shell, &["shell", "--follow", "--keep-going"]);
    for round in 1..20 {
        shell.print(&["put", "key", &round.to_string()]);
        if round % 5 == 0 {
            shell.print(&["compact"]);
        }
        following.type_line("get key");
        assert_eq!(following.line(), round.to_string());
    }
    shell.print(&["put", "there", "1", "--family", "later"]);
    following.type_line("scan --family later");
    assert_eq!(following.line(), "there\t1");
    following.type_line("put key mine");
    following.type_line("get key");
    assert_eq!(following.line(), "19");
    drop(following.input.take());
    let ended = following.child.wait().expect("it ended");
    assert_eq!(ended.code(), Some(4), "the refused write's");
}

#[test]
fn changes_end_between_two_batches_and_say_where_to_go_on() {
    let shell = Shell::new();
    shell.print(&["put", "a", "1"]);
    shell.print(&["keep-changes", "--seconds", "1000"]);
    let rows: String = (0..60_000)
        .map(|n| format!("key {n:06}\tvalue {n}\n"))
        .collect();
    for signal in ["-TERM", "-INT"] {
        let mut following = Following::new(&shell, &["changes", "--follow"]);
        following.line();
        // Ended at once in the first round of two: what is printed is less than all of it.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                shell.run_on(&shell.path("db"), &["load", "-"], rows.as_bytes());
            });
            let mut seen = Vec::new();
            for _ in 0..5_000 {
                seen.push(following.line());
            }
            let (rest, remarks, code) = following.end(signal);
            assert_eq!(code, Some(0), "{signal}: {remarks}");
            let last = rest.last().or(seen.last()).expect("there are lines");
            let number = |line: &str| line.split(' ').next().and_then(|it| it.parse::<u64>().ok());
            let next = number(last).expect("a whole line") + 1;
            assert!(
                remarks.contains(&format!("go on with --from {next}\n")),
                "{last}: {remarks}"
            );
        });
        let all = shell.print(&["changes"]);
        let numbers: Vec<u64> = all
            .lines()
            .map(|line| {
                line.split(' ')
                    .next()
                    .and_then(|it| it.parse().ok())
                    .expect("a number")
            })
            .collect();
        assert!(numbers.is_sorted_by(|a, b| a < b));
    }
}

#[test]
fn the_past_is_read_by_time() {
    let shell = Shell::new();
    shell.print(&["put", "key", "first"]);
    assert_eq!(shell.print(&["history"]), "");
    let none = shell.run(&["get", "key", "--at", "-1"]);
    assert_eq!(code(&none), 1);
    assert!(String::from_utf8_lossy(&none.stderr).contains("no history is kept"));
    assert_eq!(
        code(&shell.run(&["keep-history", "--seconds", "2000", "--every", "1"])),
        2
    );
    shell.print(&["keep-history", "--seconds", "2000"]);
    let told = shell.print(&["history", "--json"]);
    let moment: Value = serde_json::from_str(&told).expect("one object");
    assert_eq!(moment["seqno"], 1);
    let time = moment["unix_seconds"].as_u64().expect("a number");
    // Writers that say nothing of it keep it.
    shell.print(&["put", "key", "second"]);
    shell.print(&["compact"]);
    let at = time.to_string();
    assert_eq!(shell.print(&["get", "key"]), "second\n");
    assert_eq!(shell.print(&["get", "key", "--at", &at]), "first\n");
    assert_eq!(shell.print(&["scan", "--at", &at]), "key\tfirst\n");
    let before = (time - 1).to_string();
    let refused = shell.run(&["scan", "--at", &before]);
    assert_eq!(code(&refused), 1);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains(&format!("kept from {time} on")), "{said}");
    shell.print(&["keep-history"]);
    assert_eq!(shell.print(&["history"]), "");
}
