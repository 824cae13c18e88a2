//! Goal: users come from files and go into them, and nothing of them is told to those who should not know. Method: files that are
//! right and wrong, written anew and read again; logs after commands with passwords.

use std::fs::{read_to_string, write};
use std::path::Path;

use drumlin_fs::Env;
use drumlin_redis::Config;

use crate::ours::{Ours, open, open_config};

const ALICE: &str = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Why these settings make no server.
fn refusal(settings: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let opened = open(dir.path(), settings, &Env::system());
    opened.map(|_| ()).expect_err("is refused").to_string()
}

#[test]
fn users_come_from_their_file_and_go_into_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("users.acl");
    let lines =
        format!("user alice on #{ALICE} ~a* +@read (+set %W~b*)\n\n  user bob on nopass\t\n");
    write(&path, &lines).expect("writes");
    let ours = Ours::start(&[("aclfile", text(&path)), ("requirepass", "unused")]);
    let said = ours.say(&[
        "ACL USERS",
        "AUTH alice wrong",
        "AUTH alice alice",
        "GET a1",
        "SET b 1",
    ]);
    // The default user is not in the file, so that it is as at first.
    assert!(
        said.starts_with("*3\r\n$5\r\nalice\r\n$3\r\nbob\r\n$7\r\ndefault\r\n-WRONGPASS"),
        "{said}"
    );
    assert!(said.ends_with("+OK\r\n$-1\r\n+OK\r\n+OK\r\n"), "{said}");
    // Changes are written, and the same users are read again.
    let said = ours.say(&[
        "ACL SETUSER carol on >pw &c* +publish",
        "ACL SAVE",
        "ACL DELUSER alice",
        "ACL LOAD",
        "ACL LIST",
    ]);
    let written = read_to_string(&path).expect("reads");
    assert_eq!(written.lines().count(), 4);
    for line in written.lines() {
        assert!(said.contains(line), "{line} is not in {said}");
    }
    // What is wrong changes nothing.
    for (lines, error) in [
        (
            "alice on\n",
            "users.acl:1 should start with user keyword followed by the username. ",
        ),
        (
            "user a on\nuser a off\n",
            "WARNING: Duplicate user 'a' found on line 2. ",
        ),
        (
            "user a (+get\n",
            "users.acl:1: Unmatched parenthesis in selector definition.",
        ),
        (
            "user a +nothing >pw\n",
            "users.acl:1: Error in applying operation '+nothing': Unknown command",
        ),
        (
            "user a on\nuser b secret\n",
            "users.acl:2: Syntax error. WARNING: ACL errors detected",
        ),
    ] {
        write(&path, lines).expect("writes");
        let said = ours.say(&["ACL LOAD", "ACL USERS"]);
        assert!(said.contains(error) && said.contains("carol"), "{said}");
        assert!(!said.contains("secret"), "{said}");
        assert!(refusal(&[("aclfile", text(&path))]).contains(error));
    }
    assert!(refusal(&[("aclfile", "/no/such/file")]).contains("/no/such/file"));
    let both = [("aclfile", text(&path)), ("user", "alice on")];
    assert!(refusal(&both).contains("aclfile"));
}

#[test]
fn clients_of_users_who_are_gone_from_the_file_are_closed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("users.acl");
    write(&path, "user alice on nopass +@all\n").expect("writes");
    let ours = Ours::start(&[("aclfile", text(&path))]);
    let said = ours.say(&["AUTH alice x", "ACL LOAD", "GET a"]);
    assert_eq!(
        said, "+OK\r\n+OK\r\n",
        "the connection ends behind the reply"
    );
}

#[test]
fn users_of_the_configuration_are_rewritten_with_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ours.conf");
    let lines = "# ours\nport 0\nuser alice on >hidden-word ~\"a*\" \"+get\n";
    write(&path, lines).expect("writes");
    let error = Config::default().read_file(&Env::system(), &path);
    let error = error.expect_err("is refused").to_string();
    assert!(
        error.contains("line 3") && !error.contains("hidden-word"),
        "{error}"
    );
    let lines = "# ours\nport 0\nuser alice on >hidden-word ~a* \"+get\" (+set ~b)\n# theirs\nuser bob off\n";
    write(&path, lines).expect("writes");
    let ours = Ours::from_file(&path);
    let said = ours.say(&["AUTH alice hidden-word", "GET a", "SET b 1", "SET a 1"]);
    assert!(said.starts_with("+OK\r\n$-1\r\n+OK\r\n-NOPERM"), "{said}");
    ours.say(&[
        "ACL DELUSER bob",
        "ACL SETUSER carol on nopass +@read",
        "CONFIG REWRITE",
    ]);
    let written = read_to_string(&path).expect("reads");
    assert!(
        written.contains("# ours\nport 0\nuser alice on #"),
        "{written}"
    );
    assert!(
        written.contains("# theirs\nuser carol on nopass resetchannels -@all +@read\n"),
        "{written}"
    );
    assert!(
        !written.contains("user bob") && !written.contains("hidden-word"),
        "{written}"
    );
    drop(ours);
    let ours = Ours::from_file(&path);
    assert!(
        ours.say(&["AUTH alice hidden-word", "SET b 1"])
            .starts_with("+OK\r\n+OK\r\n")
    );
    ours.say(&["CONFIG REWRITE"]);
    let again = read_to_string(&path).expect("reads");
    let users = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("user "));
        let lines = lines.filter(|line| !line.starts_with("user default"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(users(&again), users(&written), "nothing changes any more");
}

#[test]
fn wrong_users_of_the_configuration_are_told_with_their_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ours.conf");
    for (lines, place) in [
        ("user alice on\nuser alice off\n", "line 2"),
        ("port 0\nuser alice +nothing\n", "line 2"),
        ("port 0\n\nuser alice (+get\n", "line 3"),
        ("port 0\nrename-command GET\n", "line 2"),
        ("port 0\nmaxmemory much\n", "line 2"),
        ("port 0\nno-such-name 1\n", "line 2"),
    ] {
        write(&path, lines).expect("writes");
        let mut config = Config::default();
        let read = config.read_file(&Env::system(), &path);
        let data = text(dir.path()).as_bytes();
        config.set_at_start(b"dir", data).expect("a setting");
        let opened = read.and_then(|()| open_config(config, &Env::system()).map(|_| ()));
        let error = opened.expect_err("is refused").to_string();
        assert!(
            error.contains(place) && error.contains("ours.conf"),
            "{error}"
        );
    }
}

#[test]
fn commands_have_the_names_that_the_operator_gives_them() {
    let ours = Ours::start(&[
        ("rename-command", "CONFIG secret"),
        ("rename-command", "flushall \"\""),
        ("rename-command", "blpop pause"),
    ]);
    let said = ours.say(&[
        "CONFIG GET port",
        "SECRET GET port",
        "FLUSHALL",
        "COMMAND INFO flushall",
        "COMMAND COUNT",
    ]);
    assert!(said.starts_with("-ERR unknown command 'CONFIG'"), "{said}");
    assert!(
        said.contains("$4\r\nport\r\n$1\r\n0\r\n-ERR unknown command 'FLUSHALL'"),
        "{said}"
    );
    assert!(said.contains("*1\r\n*-1\r\n"), "{said}");
    // Wherever commands are kept meanwhile, they are found again.
    let said = ours.say(&["MULTI", "SECRET GET port", "EXEC", "LPUSH l a", "PAUSE l 0"]);
    assert!(said.contains("*1\r\n*2\r\n$4\r\nport"), "{said}");
    // Users are allowed commands by their own names.
    let said = ours.say(&[
        "ACL SETUSER u on nopass +config|get",
        "AUTH u x",
        "SECRET GET port",
        "SECRET SET port 1",
    ]);
    assert!(
        said.contains("$4\r\nport") && said.contains("'config|set' command"),
        "{said}"
    );
    assert!(refusal(&[("rename-command", "nothing x")]).contains("nothing"));
    assert!(refusal(&[("rename-command", "get set")]).contains("'set'"));
}

#[test]
fn passwords_are_in_no_log() {
    let ours = Ours::start(&[
        ("slowlog-log-slower-than", "0"),
        ("enable-debug-command", "yes"),
    ]);
    let mut lines = vec![
        "ACL SETUSER u on >hidden",
        "AUTH u hidden1",
        "AUTH hidden1",
        "HELLO 2 AUTH u hidden2 SETNAME n",
        "CONFIG SET masterauth hidden",
        "CONFIG SET tls-key-file-pass hidden",
        "MIGRATE 127.0.0.1 1 k 0 1 AUTH hidden",
        "MIGRATE 127.0.0.1 1 k 0 1 AUTH2 u hidden",
        "ACL SETUSER u >hidden (wrong",
        "ACL SETUSER u <hidden9",
    ];
    lines.push("ACL LOG");
    lines.push("SLOWLOG GET 100");
    lines.push("ACL LIST");
    let said = ours.say(&lines);
    // Only an operator who words a rule wrongly sees it again.
    let shown: Vec<&str> = said
        .split("\r\n")
        .filter(|line| line.contains("hidden"))
        .collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(
        shown[0].starts_with("-ERR Error in ACL SETUSER modifier '<hidden9'"),
        "{shown:?}"
    );
}
