//! Goal: the shell runs every command on one open store, as scripts and as people use it. Method: scripts on standard input, and
//! keys typed into a terminal that Python's `pty` makes.

#[path = "support/shell.rs"]
mod shell;

use std::path::Path;
use std::process::{Command, Output};

use shell::{Shell, code};

fn script(shell: &Shell, lines: &str, more: &[&str]) -> Output {
    let mut words = vec!["shell"];
    words.extend(more);
    shell.run_on(&shell.path("db"), &words, lines.as_bytes())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_script_runs_every_command_on_one_open_store() {
    let shell = Shell::new();
    shell.print(&["put", "first", "1"]);
    let lines = "# a comment\n\nput 'a key' \"a value\"\nget 'a key'\nget --hex 61206b6579\nfamily create users\n\
                 put u 1 --family users\nscan --family users --json\nfamily list\nset write_buffer_size=1M\ncompact\n\
                 stats rocksdb.num-files-at-level6\nscan --count\ndelete first\nscan --keys-only\nverify\ndoctor\nexit\nget nothing\n";
    let ran = script(&shell, lines, &[]);
    assert_eq!(code(&ran), 0, "{}", text(&ran.stderr));
    let told = text(&ran.stdout);
    let begins = "a value\n0x612076616C7565\n{\"key\":\"u\",\"value\":\"1\"}\ndefault\nusers\nwrite_buffer_size=1M\n";
    assert!(told.starts_with(begins), "{told}");
    assert!(told.contains("\n1\n2\na key\n"), "{told}");
    assert!(told.contains("all of it is sound"), "{told}");
    // All of it was closed in order, and is there.
    assert_eq!(shell.print(&["scan"]), "a key\ta value\n");
    assert_eq!(shell.print(&["scan", "--family", "users"]), "u\t1\n");
}

#[test]
fn the_first_failure_ends_a_script_unless_it_shall_go_on() {
    let shell = Shell::new();
    shell.print(&["put", "first", "1"]);
    let lines = "put a 1\nget nothing\nput b 2\nput c\n";
    let ran = script(&shell, lines, &[]);
    assert_eq!(code(&ran), 1);
    let said = text(&ran.stderr);
    assert!(
        said.contains("line 2:") && said.contains("there is no key 'nothing'"),
        "{said}"
    );
    assert_eq!(shell.print(&["scan", "--keys-only"]), "a\nfirst\n");
    let ran = script(&shell, lines, &["--keep-going"]);
    assert_eq!(code(&ran), 1, "the first failure's");
    assert_eq!(shell.print(&["scan", "--keys-only"]), "a\nb\nfirst\n");
    for (line, why) in [
        ("nonsense", "unrecognized subcommand"),
        ("get 'a", "a ' is not closed"),
        ("get a --db elsewhere", "this shell has a store open"),
        ("put a -", "standard input has the commands"),
        ("repair", "not in the shell"),
        ("bench", "not in the shell"),
    ] {
        let ran = script(&shell, line, &[]);
        let said = text(&ran.stderr);
        assert_eq!(code(&ran), 2, "{line}: {said}");
        assert!(said.contains(why), "{line}: {said}");
    }
    let missing = shell.run_on(&shell.path("nowhere"), &["shell"], b"get a\n");
    assert_eq!(code(&missing), 1);
}

#[test]
fn a_shell_for_reading_takes_no_lock_and_writes_nothing() {
    let shell = Shell::new();
    shell.print(&["put", "first", "1"]);
    let ran = script(&shell, "get first\nput a 1\n", &["--read-only"]);
    assert_eq!(text(&ran.stdout), "1\n");
    assert_eq!(code(&ran), 4, "{}", text(&ran.stderr));
    assert_eq!(shell.print(&["scan", "--count"]), "1\n");
}

/// Types into a terminal, and prints what is shown there.
const TYPE: &str = r#"
import os, pty, signal, sys
signal.alarm(120)
keys = sys.argv[1].encode().decode("unicode_escape").encode()
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
def until(end):
    shown = b""
    while end not in shown:
        try:
            more = os.read(terminal, 65536)
        except OSError:
            break
        if not more:
            break
        shown += more
    sys.stdout.buffer.write(shown)
for line in keys.split(b"|"):
    # Each time a line is asked for, once: pasting is told apart from typing.
    until(b"\x1b[?2004h")
    os.write(terminal, line)
until(b"never")
sys.stdout.buffer.flush()
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"#;

fn type_into(shell: &Shell, home: &Path, keys: &str) -> Output {
    let db = shell.path("db");
    Command::new("python3")
        .args([
            "-c",
            TYPE,
            keys,
            env!("CARGO_BIN_EXE_drumlin"),
            "shell",
            "--db",
        ])
        .arg(db)
        .env("XDG_STATE_HOME", home)
        .env("TERM", "xterm")
        .output()
        .expect("Python makes a terminal")
}

#[test]
fn a_person_has_completion_history_and_goes_on_after_a_mistake() {
    let shell = Shell::new();
    shell.print(&["put", "first", "1"]);
    let home = shell.path("home");
    // A mistake; a word that TAB completes; the end by CTRL-D.
    let ran = type_into(
        &shell,
        &home,
        r"nonsense\r|put typed by\r|sca\t--keys-only\r|\x04",
    );
    let shown = text(&ran.stdout);
    assert_eq!(code(&ran), 0, "{shown}");
    assert!(
        shown.contains("unrecognized subcommand 'nonsense'"),
        "{shown}"
    );
    assert!(shown.contains("first\r\ntyped\r\n"), "{shown}");
    // The next shell has the lines of this one: the last is one key up.
    let ran = type_into(&shell, &home, r"\x1b[A\r|exit\r");
    let shown = text(&ran.stdout);
    assert_eq!(code(&ran), 0, "{shown}");
    assert!(shown.contains("first\r\ntyped\r\n"), "{shown}");
    assert_eq!(shell.print(&["get", "typed"]), "by\n");
}
