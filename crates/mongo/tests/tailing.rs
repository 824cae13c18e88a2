//! Goal: who waits at the end of a capped collection is told what comes as it comes, holds nobody else up, and stops waiting when its
//! time is over, its cursor or collection is gone, or the server ends. Method: a server at a socket, and more clients that wait than it
//! has threads.

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

use drumlin_doc::{Builder, Document, Value};
use drumlin_fs::Env;
use drumlin_fs::net::{Address, PosixNetwork};
use drumlin_mongo::{Server, ServerOptions, Stopper};
use drumlin_testkit::redis::Link;

use crate::json::doc;

/// More than there are threads that answer.
const CLIENTS: usize = 20;
/// Longer than any test takes that goes well.
const LONG_MS: u32 = 60_000;

struct Running {
    address: Address,
    stopper: Stopper,
    thread: thread::JoinHandle<()>,
    _dir: tempfile::TempDir,
}

fn start() -> Running {
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
    Running {
        address,
        stopper,
        thread: thread::spawn(move || server.run().expect("ends well")),
        _dir: dir,
    }
}

struct Client(Link);

impl Client {
    fn send(&mut self, command: &str) {
        // The name of the command is first.
        let whole = doc(&command.replacen('{', r#"{"$db": "d", "#, 1));
        let name = command.split('"').nth(1).expect("a command");
        let mut fields: Vec<_> = Document(&whole).iter().collect();
        fields.sort_by_key(|element| element.name_str() != name);
        let mut body = Builder::new();
        for element in fields {
            body.value(element.name, element.value);
        }
        let body = body.finish();
        let len = u32::try_from(body.len() + 21).expect("small");
        let mut bytes = len.to_le_bytes().to_vec();
        for word in [7u32, 0, 2013, 0] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.push(0);
        assert!(self.0.send(&[bytes, body].concat()), "it is taken");
    }

    /// The reply, if it comes within `wait`.
    fn reply_within(&mut self, wait: Duration) -> Option<Vec<u8>> {
        let until = Instant::now() + wait;
        let mut bytes = Vec::new();
        loop {
            bytes.extend_from_slice(&self.0.received()?);
            let len = bytes
                .first_chunk()
                .map(|it| u32::from_le_bytes(*it) as usize);
            if len.is_some_and(|len| bytes.len() >= len) {
                return Some(bytes.split_off(21));
            }
            if Instant::now() > until {
                return None;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn reply(&mut self) -> Vec<u8> {
        self.reply_within(Duration::from_secs(30)).expect("a reply")
    }

    fn ask(&mut self, command: &str) -> Vec<u8> {
        self.send(command);
        self.reply()
    }

    /// Opens a cursor that stays open; its id.
    fn tail(&mut self, filter: &str) -> i64 {
        let reply = self.ask(&format!(
            r#"{{"find": "c", "filter": {filter}, "tailable": true, "awaitData": true}}"#
        ));
        let id = cursor(&reply).get("id").and_then(Value::as_whole);
        id.filter(|id| *id != 0).expect("an open cursor")
    }

    fn send_more(&mut self, id: i64, wait_ms: u32) {
        let id = format!(r#"{{"$long": {id}}}"#);
        self.send(&format!(
            r#"{{"getMore": {id}, "collection": "c", "maxTimeMS": {wait_ms}}}"#
        ));
    }
}

fn cursor(reply: &[u8]) -> Document<'_> {
    let cursor = Document(reply).get("cursor").and_then(Value::as_document);
    cursor.unwrap_or_else(|| panic!("{}", drumlin_doc::show(Document(reply).as_value())))
}

fn batch(reply: &[u8]) -> Vec<i64> {
    let batch = cursor(reply).get("nextBatch").and_then(Value::as_array);
    let documents = batch.expect("a batch").iter();
    let ids = documents.map(|it| {
        Document(it.value.bytes)
            .get("_id")
            .and_then(Value::as_whole)
    });
    ids.map(|id| id.expect("a number")).collect()
}

fn code(reply: &[u8]) -> Option<i64> {
    Document(reply).get("code").and_then(Value::as_whole)
}

impl Running {
    fn client(&self) -> Client {
        Client(Link::to(&self.address))
    }

    fn end(self) {
        self.stopper.stop().expect("wakes");
        self.thread.join().expect("the server");
    }
}

const CREATE: &str = r#"{"create": "c", "capped": true, "size": 4096, "max": 50}"#;

fn insert(client: &mut Client, id: i64) {
    let text = format!(
        r#"{{"insert": "c", "documents": [{{"_id": {id}, "even": {}}}]}}"#,
        id % 2 == 0
    );
    let reply = client.ask(&text);
    assert_eq!(Document(&reply).get("n").and_then(Value::as_whole), Some(1));
}

#[test]
fn all_who_wait_are_told_and_nobody_is_held_up() {
    let running = start();
    let mut writer = running.client();
    writer.ask(CREATE);
    insert(&mut writer, 0);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| running.client()).collect();
    let ids: Vec<_> = clients.iter_mut().map(|it| it.tail("{}")).collect();
    for round in 1..20 {
        for (client, id) in clients.iter_mut().zip(&ids) {
            client.send_more(*id, LONG_MS);
        }
        // In some rounds it comes before all of them wait.
        if round % 2 == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(code(&writer.ask(r#"{"ping": 1}"#)), None);
        let begin = Instant::now();
        insert(&mut writer, round);
        for client in &mut clients {
            assert_eq!(batch(&client.reply()), [round]);
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "they were woken");
    }
    running.end();
}

#[test]
fn what_the_filter_does_not_find_is_not_told_and_the_time_ends() {
    let running = start();
    let (mut writer, mut client) = (running.client(), running.client());
    writer.ask(CREATE);
    insert(&mut writer, 1);
    let id = client.tail(r#"{"even": true}"#);
    let begin = Instant::now();
    client.send_more(id, 400);
    for odd in [3, 5, 7] {
        insert(&mut writer, odd);
    }
    let reply = client.reply();
    assert_eq!(batch(&reply), Vec::<i64>::new());
    assert_eq!(cursor(&reply).get("id").and_then(Value::as_whole), Some(id));
    assert!(begin.elapsed() >= Duration::from_millis(400));
    client.send_more(id, LONG_MS);
    insert(&mut writer, 9);
    assert_eq!(client.reply_within(Duration::from_millis(100)), None);
    insert(&mut writer, 10);
    assert_eq!(batch(&client.reply()), [10]);
    running.end();
}

#[test]
fn a_wait_ends_with_its_cursor_and_its_collection() {
    let running = start();
    let (mut other, mut client) = (running.client(), running.client());
    other.ask(CREATE);
    insert(&mut other, 1);
    let id = client.tail("{}");
    client.send_more(id, LONG_MS);
    thread::sleep(Duration::from_millis(50));
    other.ask(&format!(
        r#"{{"killCursors": "c", "cursors": [{{"$long": {id}}}]}}"#
    ));
    assert_eq!(code(&client.reply()), Some(43));
    let id = client.tail("{}");
    client.send_more(id, LONG_MS);
    thread::sleep(Duration::from_millis(50));
    other.ask(r#"{"drop": "c"}"#);
    assert_eq!(code(&client.reply()), Some(175));
    other.ask(CREATE);
    insert(&mut other, 1);
    let id = client.tail("{}");
    client.send_more(id, LONG_MS);
    thread::sleep(Duration::from_millis(50));
    // A client that leaves while it waits is forgotten, and its place in the cursor with it.
    drop(client);
    insert(&mut other, 2);
    let mut again = running.client();
    again.send_more(id, LONG_MS);
    assert_eq!(batch(&again.reply()), [2]);
    running.end();
}

#[test]
fn a_server_that_ends_does_not_wait() {
    let running = start();
    let mut writer = running.client();
    writer.ask(CREATE);
    insert(&mut writer, 0);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| running.client()).collect();
    for client in &mut clients {
        let id = client.tail("{}");
        client.send_more(id, LONG_MS);
    }
    thread::sleep(Duration::from_millis(50));
    let begin = Instant::now();
    running.end();
    assert!(begin.elapsed() < Duration::from_secs(20));
    for client in &mut clients {
        assert_eq!(client.reply_within(Duration::from_secs(5)), None);
    }
}
