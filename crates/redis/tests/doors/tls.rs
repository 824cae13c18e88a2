//! Goal: clients over TLS are served as plain ones, and nobody else comes in by that door. Method: redis-cli and a client of our
//! own, certificates made for the test, garbage, half a handshake.

use std::io::Write;
use std::process::{Command, Stdio};

use drumlin_base::rng::Rng;
use drumlin_fs::Env;
use drumlin_fs::net::Address;
use drumlin_resp::encode_command;
use drumlin_testkit::redis::{Link, installed};
use rustls::version::{TLS12, TLS13};
use tempfile::TempDir;

use crate::ours::{Ours, free_address, open, port};
use crate::secure::{Authority, Secure};

/// A server whose clients need a certificate, and who signs them.
struct World {
    ours: Ours,
    address: Address,
    authority: Authority,
    dir: TempDir,
}

impl World {
    fn start(settings: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let authority = Authority::new(&dir.path().join("ours"), "ours");
        let address = free_address();
        let (port, files) = (port(&address), files(&authority));
        let mut all = vec![("tls-port", port.as_str())];
        all.extend(files.iter().map(|(name, file)| (*name, file.as_str())));
        all.extend(settings);
        Self {
            ours: Ours::start(&all),
            address,
            authority,
            dir,
        }
    }

    fn client(&self) -> Secure {
        let config = self
            .authority
            .client(Some(&self.authority), &[&TLS12, &TLS13]);
        Secure::connect(&self.address, &config)
    }
}

fn files(authority: &Authority) -> [(&'static str, String); 3] {
    [
        ("tls-cert-file", authority.file("server.pem")),
        ("tls-key-file", authority.file("server.key")),
        ("tls-ca-cert-file", authority.file("ca.pem")),
    ]
}

/// What redis-cli says to some words, with these bytes to read.
fn redis_cli(world: &World, words: &[&str], input: &[u8]) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["-h", "127.0.0.1", "-p", &port(&world.address), "--tls"]);
    for (flag, name) in [
        ("--cacert", "ca.pem"),
        ("--cert", "client.pem"),
        ("--key", "client.key"),
    ] {
        command.args([flag, &world.authority.file(name)]);
    }
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("an input");
    stdin.write_all(input).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("ends");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    String::from_utf8_lossy(&output.stdout).into_owned() + &errors
}

#[test]
fn redis_cli_is_served() {
    if !installed() {
        return;
    }
    let world = World::start(&[]);
    assert_eq!(redis_cli(&world, &["SET", "a", "1"], b""), "OK\n");
    assert_eq!(redis_cli(&world, &["GET", "a"], b""), "1\n");
    let mut bytes = Vec::new();
    for number in 0..2_000 {
        let key = format!("key:{number}");
        encode_command(&mut bytes, &[&b"SET"[..], key.as_bytes(), &[b'v'; 10_000]]);
    }
    let said = redis_cli(&world, &["--pipe"], &bytes);
    assert!(said.contains("errors: 0, replies: 2000"), "{said}");
    assert_eq!(redis_cli(&world, &["DBSIZE"], b""), "2001\n");
    let value = redis_cli(&world, &["GET", "key:1999"], b"");
    assert_eq!(value.trim_end().len(), 10_000);
}

/// Goal: no byte is lost, doubled or held back, whatever the sizes. Method: ECHOs of all sizes, many
/// of them before replies are read, in both versions; then records of one byte, in pieces of one byte.
#[test]
fn pipelines_come_back_as_they_are() {
    let world = World::start(&[]);
    for version in [&TLS12, &TLS13] {
        let config = world.authority.client(Some(&world.authority), &[version]);
        let mut client = Secure::connect(&world.address, &config);
        client.greet().expect("a handshake");
        let mut rng = Rng::new(7);
        let (mut wanted, mut heard) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            let len = rng.next_u64() >> (44 + rng.next_u64() % 20);
            let text: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
            let mut command = Vec::new();
            encode_command(&mut command, &[&b"ECHO"[..], &text]);
            client.say(&command);
            wanted.extend(format!("${len}\r\n").into_bytes());
            wanted.extend(&text);
            wanted.extend(b"\r\n");
            // With more than a mebibyte of replies to send, a server takes no commands.
            if wanted.len() - heard.len() > 700_000 {
                heard.extend(
                    client
                        .hear(wanted.len() - heard.len() - 200_000)
                        .expect("replies"),
                );
            }
        }
        assert!(wanted.len() > 4 << 20, "{} are few", wanted.len());
        heard.extend(client.hear(wanted.len() - heard.len()).expect("replies"));
        assert!(heard == wanted, "the replies are others");
        let pieces: Vec<u8> = b"PING\r\n"
            .iter()
            .flat_map(|byte| client.encrypted(&[*byte]))
            .collect();
        for byte in pieces {
            client.link.send(&[byte]);
        }
        assert_eq!(client.hear(7).expect("a reply"), b"+PONG\r\n");
        client.say(b"QUIT\r\n");
        assert_eq!(client.hear(5).expect("a reply"), b"+OK\r\n");
        assert_eq!(client.hear(1).expect("an end"), b"");
        assert!(client.is_over, "the end is told");
    }
}

/// Goal: what a handshake may have counts for the handshake alone. Method: its end and more commands than that in one piece.
#[test]
fn commands_may_come_with_the_end_of_the_handshake() {
    let world = World::start(&[]);
    let config = world.authority.client(Some(&world.authority), &[&TLS13]);
    let text = vec![b'x'; 200_000];
    let mut command = Vec::new();
    encode_command(&mut command, &[&b"ECHO"[..], &text]);
    for _ in 0..20 {
        let mut client = Secure::connect(&world.address, &config);
        client.agree().expect("a handshake");
        client.say(&command);
        let heard = client.hear(9 + text.len() + 2).expect("a reply");
        assert!(heard.starts_with(b"$200000\r\nx"), "{} bytes", heard.len());
    }
}

#[test]
fn a_client_that_ends_is_answered_and_let_go() {
    let world = World::start(&[]);
    let mut client = world.client();
    client.greet().expect("a handshake");
    client.say_and_end(b"SET last 1\r\n");
    assert_eq!(client.hear(5).expect("a reply"), b"+OK\r\n");
    assert_eq!(client.hear(1).expect("an end"), b"");
    assert!(world.ours.say(&["GET last"]).starts_with("$1\r\n1\r\n"));
}

#[test]
fn a_client_without_the_right_certificate_is_refused() {
    let world = World::start(&[]);
    let stranger = Authority::new(&world.dir.path().join("stranger"), "stranger");
    let ask = |identity: Option<&Authority>| {
        let config = world.authority.client(identity, &[&TLS12, &TLS13]);
        Secure::connect(&world.address, &config).ping()
    };
    ask(Some(&world.authority)).expect("it is known");
    ask(None).expect_err("it shows none");
    ask(Some(&stranger)).expect_err("nobody knows who signed it");
    let set = |value: &str| {
        let set = format!("CONFIG SET tls-auth-clients {value}");
        assert!(world.ours.say(&[&set]).starts_with("+OK"));
    };
    set("optional");
    ask(None).expect("it need not");
    ask(Some(&stranger)).expect_err("nobody knows who signed it");
    set("no");
    ask(None).expect("nobody asks");
    set("yes");
    ask(None).expect_err("it shows none");
}

#[test]
fn versions_are_those_of_the_configuration() {
    let world = World::start(&[("tls-protocols", "TLSv1 TLSv1.2")]);
    let ask = |version| {
        let config = world.authority.client(Some(&world.authority), &[version]);
        Secure::connect(&world.address, &config).ping()
    };
    ask(&TLS12).expect("it is spoken");
    ask(&TLS13).expect_err("it is not");
    let said = world.ours.say(&[
        "CONFIG SET tls-protocols TLSv1.3",
        "CONFIG SET tls-protocols SSLv3",
    ]);
    assert!(said.starts_with("+OK\r\n-ERR CONFIG SET failed"), "{said}");
    ask(&TLS13).expect("it is spoken");
    ask(&TLS12).expect_err("it is not any more");
}

#[test]
fn certificates_are_read_anew() {
    let world = World::start(&[]);
    let mut old = world.client();
    old.ping().expect("served");
    // Other files under the same names, as they are renewed.
    let renewed = Authority::new(&world.authority.path(""), "renewed");
    let file = world.authority.file("server.pem");
    let set = format!("CONFIG SET tls-cert-file {file}");
    assert!(world.ours.say(&[&set]).starts_with("+OK"));
    let mut new = Secure::connect(&world.address, &renewed.client(Some(&renewed), &[&TLS13]));
    new.ping().expect("served by the new one");
    old.ping().expect("served as before");
    let said = world.ours.say(&[
        "CONFIG SET tls-cert-file /no/such/file",
        "CONFIG GET tls-cert-file",
    ]);
    assert!(
        said.starts_with(
            "-ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - "
        ),
        "{said}"
    );
    assert!(said.contains(&file), "the old value stays: {said}");
    new = Secure::connect(&world.address, &renewed.client(Some(&renewed), &[&TLS12]));
    new.ping().expect("served as before");
}

/// All that comes until the end.
fn rest(link: &mut Link) -> Vec<u8> {
    let mut said = Vec::new();
    while let Some(bytes) = link.receive() {
        said.extend(bytes);
    }
    said
}

#[test]
fn garbage_and_half_handshakes_are_cut() {
    let world = World::start(&[]);
    for garbage in [
        &b"PING\r\n"[..],
        b"*1\r\n$4\r\nPING\r\n",
        b"\x16\x03\x01\xff\xff",
        &[0; 40],
    ] {
        let mut link = Link::to(&world.address);
        link.send(garbage);
        let said = rest(&mut link);
        // An alert, if anything.
        assert!(said.is_empty() || said[0] == 0x15, "{garbage:?}: {said:?}");
    }
    let mut known = world.client();
    known.ping().expect("served");
    let mut half = world.client();
    let hello = half.encrypted(&[]);
    half.link.send(&hello[..hello.len() / 2]);
    let mut endless = Link::to(&world.address);
    endless.send(&[0x16; 300]);
    let mut silent = Link::to(&world.address);
    // All of them are let in before this is answered.
    world.ours.say(&["PING"]);
    world.ours.pass(11);
    for link in [&mut half.link, &mut endless, &mut silent] {
        let said = rest(link);
        assert!(said.is_empty() || said[0] == 0x15, "{said:?}");
    }
    known.ping().expect("served as before");
}

#[test]
fn what_cannot_be_served_is_told_at_the_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(&dir.path().join("ours"), "ours");
    let address = free_address();
    let port = port(&address);
    let encrypted = authority.path("encrypted.key");
    let text = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    std::fs::write(&encrypted, text).expect("writes");
    let encrypted = encrypted.to_str().expect("UTF-8");
    let empty = authority.path("empty.pem");
    std::fs::write(&empty, "nothing\n").expect("writes");
    let empty = empty.to_str().expect("UTF-8");
    let (good, ca_dir) = (files(&authority), authority.file(""));
    let of = |change: (&'static str, &str)| {
        let mut settings: Vec<(&str, &str)> = vec![("tls-port", &port)];
        let others = good.iter().filter(|(name, _)| *name != change.0);
        settings.extend(others.map(|(name, file)| (*name, file.as_str())));
        settings.push(change);
        open(dir.path(), &settings, &Env::system())
    };
    for (name, value, why) in [
        ("tls-cert-file", "", "No tls-cert-file configured!"),
        ("tls-key-file", "", "No tls-key-file configured!"),
        ("tls-key-file", encrypted, "the key is encrypted"),
        ("tls-key-file-pass", "secret", "encrypted keys are not read"),
        ("tls-cert-file", empty, "no certificate in it"),
        (
            "tls-ca-cert-file",
            "",
            "Either tls-ca-cert-file or tls-ca-cert-dir",
        ),
        ("tls-ca-cert-file", empty, "no certificate in it"),
        ("tls-cert-file", "/no/such/file", "/no/such/file"),
        ("tls-key-file", good[0].1.as_str(), "tls-key-file"),
        (
            "tls-protocols",
            "TLSv1.1",
            "only TLSv1.2 and TLSv1.3 are spoken",
        ),
        ("tls-protocols", "SSLv3", "Invalid tls-protocols"),
    ] {
        let error = of((name, value)).expect_err(name).to_string();
        assert!(error.contains(why), "{name} {value}: {error}");
    }
    // A directory of certificates has other files, too. Without `port` there is this one door.
    let server = open(
        dir.path(),
        &[
            ("bind", "127.0.0.1"),
            ("tls-port", &port),
            ("tls-cert-file", &good[0].1),
            ("tls-key-file", &good[1].1),
            ("tls-ca-cert-dir", &ca_dir),
        ],
        &Env::system(),
    );
    let server = server.expect("opens");
    assert_eq!(server.addresses(), [address]);
}
