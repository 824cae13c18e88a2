//! Goal: every message of a connection is answered once, in order, however many come at a time, and a server that is asked to end does,
//! whatever it works on. Method: a server at a socket, clients that send their messages in pieces cut by a seed, several at once, some of
//! which leave in the middle or send nothing more and wait.

#![expect(
    clippy::disallowed_methods,
    reason = "the clients of a server at a socket are no part of it: they have sockets and threads of their own"
)]

#[path = "../../doc/tests/doc/json.rs"]
mod json;

use core::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use drumlin_base::rng::Rng;
use drumlin_doc::{Builder, Document, OwnedValue, Value};
use drumlin_fs::Env;
use drumlin_fs::net::{Address, PosixNetwork};
use drumlin_mongo::{Server, ServerOptions, Stopper};
use drumlin_testkit::redis::Link;

use json::doc;

const MESSAGES: u32 = 300;

/// A message with that number: a ping, or a write of a document and its reading back.
fn message(number: u32, client: u64) -> Vec<u8> {
    let mut body = Builder::new();
    match number % 3 {
        0 => drop(body.i32("ping", 1)),
        1 => {
            body.str("insert", "c")
                .open(drumlin_doc::Kind::Array, "documents")
                .open(drumlin_doc::Kind::Document, "0");
            body.i64("_id", i64::from(number) << 8 | client as i64)
                .close()
                .close();
        }
        _ => {
            body.str("find", "c")
                .open(drumlin_doc::Kind::Document, "filter");
            body.i64("_id", i64::from(number - 1) << 8 | client as i64)
                .close();
        }
    }
    framed(number, body)
}

/// The message of a command.
fn framed(number: u32, mut body: Builder) -> Vec<u8> {
    body.str("$db", "test");
    let body = body.finish();
    let len = u32::try_from(body.len() + 21).expect("small");
    let mut bytes = len.to_le_bytes().to_vec();
    for word in [number, 0, 2013, 0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.push(0);
    [bytes, body].concat()
}

/// The replies that are whole, checked: each is for the message after the one before, and what was written is found.
fn heard(bytes: &mut Vec<u8>, next: &mut u32) {
    let word =
        |bytes: &[u8], at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("a header"));
    while bytes.len() >= 16 && word(bytes, 0) as usize <= bytes.len() {
        let rest = bytes.split_off(word(bytes, 0) as usize);
        let reply = std::mem::replace(bytes, rest);
        assert_eq!(word(&reply, 8), *next, "the reply to another message");
        let body = Document(&reply[21..]);
        assert_eq!(body.get("ok").and_then(Value::as_whole), Some(1));
        if next.is_multiple_of(3) || *next % 3 == 1 {
            *next += 1;
            continue;
        }
        let cursor = body.get("cursor").and_then(Value::as_document);
        let batch = cursor.and_then(|it| it.get("firstBatch")?.as_array());
        assert_eq!(batch.expect("a batch").iter().count(), 1, "of {next}");
        *next += 1;
    }
}

/// Bytes that come within half a minute.
fn received(link: &mut Link) -> Vec<u8> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let bytes = link.received().expect("the server is there");
        if !bytes.is_empty() {
            return bytes;
        }
        assert!(Instant::now() < until, "a message is not answered");
        thread::sleep(Duration::from_micros(100));
    }
}

fn client(address: &Address, number: u64, seed: u64) {
    let mut random = Rng::new(seed << 8 | number);
    let mut link = Link::to(address);
    let (mut unsent, mut made) = (Vec::new(), 0);
    let (mut bytes, mut next) = (Vec::new(), 0);
    let leaves_at = match number % 4 {
        3 => random.below(u64::from(MESSAGES)) as u32,
        _ => MESSAGES,
    };
    while next < leaves_at {
        for _ in 0..random.below(6) {
            if made < MESSAGES {
                unsent.extend_from_slice(&message(made, number));
                made += 1;
            }
        }
        let len = match random.below(3) {
            0 => unsent.len(),
            _ => random.below(unsent.len() as u64 + 1) as usize,
        };
        if len > 0 && next < leaves_at {
            assert!(link.send(&unsent[..len]), "it is taken");
            unsent.drain(..len);
        }
        // Whoever has sent all, or at times anybody, waits for something.
        let has_all = unsent.is_empty() && next < made;
        if has_all && (made == MESSAGES || random.below(3) == 0) {
            bytes.extend_from_slice(&received(&mut link));
            heard(&mut bytes, &mut next);
        }
    }
}

/// A server, its address, and what ends it.
fn started() -> (tempfile::TempDir, thread::JoinHandle<()>, Address, Stopper) {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::open(ServerOptions {
        dir: dir.path().join("data"),
        listen: Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        auth: false,
        tls: None,
        metrics: None,
        memory: Some(4 << 20),
        env: Env::system(),
        network: Arc::new(PosixNetwork::new()),
    });
    let server = server.expect("opens");
    let (address, stopper) = (server.address(), server.stopper());
    let running = thread::spawn(move || server.run().expect("ends well"));
    (dir, running, address, stopper)
}

#[test]
fn messages_are_answered_in_order_however_they_come() {
    let (_dir, running, address, stopper) = started();
    for seed in 0..3 {
        thread::scope(|threads| {
            for number in 0..8 {
                let address = &address;
                threads.spawn(move || client(address, seed << 3 | number, seed));
            }
        });
    }
    stopper.stop().expect("wakes");
    running.join().expect("the server");
}

#[test]
fn a_server_ends_while_it_works_on_a_document_that_takes_days() {
    let (_dir, running, address, stopper) = started();
    let mut link = Link::to(&address);
    let mut next = 0;
    assert!(
        link.send(&[message(0, 0), message(1, 0)].concat()),
        "it is taken"
    );
    let mut bytes = Vec::new();
    while next < 2 {
        bytes.extend_from_slice(&received(&mut link));
        heard(&mut bytes, &mut next);
    }
    // A million times a million elements.
    let mut body = Builder::new();
    body.value("aggregate", OwnedValue::string("c").get());
    let within = doc(
        r#"{"cursor": {}, "pipeline": [{"$project": {"x": {"$map": {"input": {"$range": [0, 1000000]}, "in":
            {"$size": {"$map": {"input": {"$range": [0, 1000000]}, "in": 1}}}}}}}]}"#,
    );
    for element in Document(&within) {
        body.value(element.name, element.value);
    }
    assert!(link.send(&framed(2, body)), "it is taken");
    thread::sleep(Duration::from_millis(50));
    stopper.stop().expect("wakes");
    running.join().expect("the server");
}
