//! Goal: the log tells an operator what happened, and nobody's secrets. Method: a server whose lines are kept, clients that are
//! refused, denied, and log by scripts; then what was written.

use std::sync::Arc;

use drumlin_fs::Env;
use drumlin_fs::net::Address;
use drumlin_redis::LogSink;
use drumlin_resp::encode_command;
use drumlin_testkit::redis::{Link, answers_until_closed};
use parking_lot::Mutex;

use crate::ours::{free_address, open, port};

#[derive(Debug, Default)]
struct Lines(Mutex<String>);

impl LogSink for Lines {
    fn line(&self, line: &str) {
        self.0.lock().push_str(line);
    }
}

/// What a server of these settings logs while clients at its port say these lines, each on a connection of its own.
fn logged(settings: &[(&str, &str)], said: &[&[u8]]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("socket");
    let address = free_address();
    let (name, port) = (socket.to_str().expect("UTF-8"), port(&address));
    let all = [("unixsocket", name), ("port", &port)];
    let env = Env::system();
    let mut server = open(dir.path(), &[&all[..], settings].concat(), &env).expect("opens");
    let lines = Arc::new(Lines::default());
    server.log_to(Arc::<Lines>::clone(&lines));
    let pidfile = settings.iter().find(|(name, _)| *name == "pidfile");
    let serve = Box::new(move || server.run().expect("serves"));
    let thread = env.spawner.spawn("server", serve).expect("a thread");
    for bytes in said {
        talk(&address, bytes);
    }
    if let Some((_, path)) = pidfile {
        let text = std::fs::read_to_string(path).expect("a file");
        assert_eq!(text, format!("{}\n", std::process::id()));
    }
    let mut bytes = Vec::new();
    encode_command(&mut bytes, &["SHUTDOWN", "NOSAVE"]);
    answers_until_closed(&socket, &bytes);
    thread.join().expect("ends");
    lines.0.lock().clone()
}

fn talk(address: &Address, bytes: &[u8]) {
    let mut link = Link::to(address);
    link.send(bytes);
    while link.receive().is_some() {}
}

#[test]
fn an_operator_reads_what_happened() {
    let said: [&[u8]; 6] = [
        b"ACL SETUSER u on >hidden1 +@all -get\r\nAUTH u hidden1\r\nGET a\r\nGET a\r\nQUIT\r\n",
        b"AUTH u hidden2\r\nQUIT\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"host: hidden3\r\n",
        b"EVAL \"redis.log(redis.LOG_WARNING,'from a script',7) redis.log(redis.LOG_DEBUG,'hidden4')\" 0\r\nQUIT\r\n",
        b"REPLICAOF 127.0.0.1 1\r\nREPLICAOF NO ONE\r\nCONFIG SET masterauth hidden5\r\nQUIT\r\n",
    ];
    let pid = tempfile::tempdir().expect("a directory");
    let pid = pid.path().join("pid");
    let settings = [
        ("daemonize", "yes"),
        ("pidfile", pid.to_str().expect("UTF-8")),
    ];
    let logged = logged(&settings, &said);
    assert!(!pid.exists(), "it is removed at the end");
    for wanted in [
        "* ready to accept connections version=",
        "# the configuration asks for what this server does not do name=daemonize value=yes\n",
        "* users were denied something; ACL LOG has what count=",
        "# a request over HTTP came, perhaps from a browser that a page misuses address=127.0.0.1:",
        "# from a script 7\n",
        "# the server ends reason=SHUTDOWN NOSAVE\n",
    ] {
        assert!(logged.contains(wanted), "{wanted:?} is not in\n{logged}");
    }
    assert!(!logged.contains("hidden"), "{logged}");
    assert_eq!(
        logged.matches("over HTTP").count(),
        1,
        "the second is counted"
    );
}

#[test]
fn lines_are_json_if_the_operator_likes() {
    let settings = [("log-format", "json"), ("maxclients", "1")];
    let mut first = b"CONFIG SET loglevel warning\r\n".to_vec();
    first.extend(b"EVAL \"redis.log(redis.LOG_NOTICE,'too low') redis.log(redis.LOG_WARNING,'\\\"quoted\\\"')\" 0\r\nQUIT\r\n");
    let logged = logged(&settings, &[&first]);
    for line in logged.lines() {
        let is_object = line.starts_with("{\"time\":\"2") && line.ends_with("\"}");
        assert!(is_object && line.contains("\"event\":"), "{line}");
    }
    assert!(logged.contains("\"event\":\"start\""), "{logged}");
    assert!(
        logged.contains("\"message\":\"\\\"quoted\\\"\""),
        "{logged}"
    );
    assert!(!logged.contains("too low"), "{logged}");
}
