//! Document servers as engines of the laboratory: this program's own, which runs in the agent's process, and another one, which a
//! command line starts. A record is a document: its key is `_id`, and the parts of its value between TABs are fields, as a program that
//! keeps reviews has them.

use core::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_base::{Error, Result};
use drumlin_bench::{DrumlinStore, Flags, NoCursor, Session, Store, mark};
use drumlin_doc::{Builder, Document, Kind, Value, validate};
use drumlin_fs::net::{Address, ListenOptions, Network, PosixNetwork};
use drumlin_fs::{Env, JoinHandle};
use drumlin_mongo::{Server, ServerOptions, Stopper};

use super::link::{Link, failed, no_walks};

/// The variable of the environment with the command line of the other server.
pub(crate) const PEER: &str = "DRUMLIN_MONGO_PEER";
/// How often, and how far apart, it is asked whether it listens.
const LOOKS: u32 = 600;
const LOOK: Duration = Duration::from_millis(50);

const DATABASE: &str = "lab";
const COLLECTION: &str = "records";
/// The fields of a value.
const FIELDS: [&str; 5] = ["helpfulness", "score", "time", "summary", "text"];
/// A command that a server does not know.
const COMMAND_NOT_FOUND: i64 = 59;
/// The opcode of OP_MSG.
const OP_MSG: u32 = 2013;
/// Length, two numbers, opcode, flags and the kind of the only section are before a document.
const BEFORE_DOCUMENT: usize = 21;

/// The loopback, at a port that is free.
fn anywhere() -> Address {
    Address::Tcp((Ipv4Addr::LOCALHOST, 0).into())
}

/// What the server is asked for that stands beside the store: the engines are opened past the page cache where memory cannot be
/// limited, and servers cannot be.
fn check(flags: &Flags) -> Result<()> {
    match flags.use_direct_reads {
        true => Err(Error::not_supported(
            "memory of a server is limited by a control group alone, and none can be made here",
        )),
        false => Ok(()),
    }
}

fn compact(address: &Address) -> Result<()> {
    let mut asker = Asker::connect(address)?;
    let mut command = Builder::new();
    command.str("compact", COLLECTION).str("$db", DATABASE);
    asker.ask(&command.finish()).map(drop)
}

/// This program's server.
#[derive(Debug)]
pub(crate) struct MongoStore {
    address: Address,
    stopper: Stopper,
    /// Taken when the store is closed.
    thread: Mutex<Option<Box<dyn JoinHandle>>>,
}

impl Store for MongoStore {
    type Session<'a> = Client;

    fn open(flags: &Flags, env: &Env) -> Result<Self> {
        check(flags)?;
        let server = Server::open(ServerOptions {
            dir: flags.db.clone().into(),
            listen: anywhere(),
            auth: false,
            tls: None,
            metrics: None,
            memory: usize::try_from(flags.memory_budget)
                .ok()
                .filter(|it| *it > 0),
            env: env.clone(),
            network: Arc::new(PosixNetwork::new()),
        })?;
        mark::set(Path::new(&flags.db), env)?;
        let (address, stopper) = (server.address(), server.stopper());
        let serve = Box::new(move || {
            if let Err(error) = server.run() {
                crate::output::remark(format!("drumlin: the server ended: {error}"));
            }
        });
        Ok(Self {
            address,
            stopper,
            thread: Mutex::new(Some(env.spawner.spawn("server", serve)?)),
        })
    }

    fn destroy(flags: &Flags, env: &Env) -> Result<()> {
        DrumlinStore::destroy(flags, env)
    }

    fn close(self) -> Result<()> {
        self.stopper.stop()?;
        let thread = self.thread.lock().take();
        thread.map_or(Ok(()), |thread| thread.join())
    }

    fn session(&self, _flags: &Flags) -> Client {
        Client::connect(&self.address)
    }

    fn flush(&self) -> Result<()> {
        // The laboratory's plans of the server have no step that needs it.
        Err(Error::not_supported("flushing a server"))
    }

    fn compact(&self) -> Result<()> {
        compact(&self.address)
    }

    fn wait_for_background(&self) -> Result<()> {
        // What a server does behind its replies is its own.
        Ok(())
    }

    fn version() -> String {
        let version = env!("CARGO_PKG_VERSION");
        format!("Drumlin's document server: version {version}")
    }
}

/// Another server, by the command line in [`PEER`].
#[derive(Debug)]
pub(crate) struct MongoPeer {
    address: Address,
    child: Mutex<Child>,
}

impl Drop for MongoPeer {
    fn drop(&mut self) {
        // It has ended, unless it was not asked to.
        drop(self.child.lock().kill());
    }
}

impl Store for MongoPeer {
    type Session<'a> = Client;

    fn open(flags: &Flags, env: &Env) -> Result<Self> {
        check(flags)?;
        let line = std::env::var(PEER)
            .map_err(|_| Error::invalid_argument(format!("{PEER} is not set")))?;
        let network = PosixNetwork::new();
        let listener = network.listen(&anywhere(), ListenOptions::default())?;
        let address = listener.local_address().clone();
        drop(listener);
        let port = match &address {
            Address::Tcp(socket) => socket.port(),
            _ => return Err(failed("the loopback has no port")),
        };
        // Half of what the others have for blocks: its process takes two to three times its cache, and is killed where a group has no more.
        let cache_mb = (flags.cache_size >> 21).max(1);
        let words = line.split_whitespace().map(|word| {
            word.replace("{port}", &port.to_string())
                .replace("{dir}", &flags.db)
                .replace("{cache_mb}", &cache_mb.to_string())
        });
        let words: Vec<_> = words.collect();
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| Error::invalid_argument(format!("{PEER} names no program")))?;
        let mut command = Command::new(program);
        // The answers of this process go over its standard output.
        command
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command
            .spawn()
            .map_err(|error| failed(format!("{program} cannot be run: {error}")))?;
        let store = Self {
            address,
            child: Mutex::new(child),
        };
        for _ in 0..LOOKS {
            if Link::connect(&store.address).is_ok() {
                return Ok(store);
            }
            env.clock.sleep(LOOK);
        }
        Err(failed(format!("{program} does not listen at port {port}")))
    }

    fn destroy(_flags: &Flags, _env: &Env) -> Result<()> {
        // The laboratory gives each fresh store an empty directory.
        Ok(())
    }

    fn close(self) -> Result<()> {
        let mut child = self.child.lock();
        let asked = Command::new("kill").arg(child.id().to_string()).status();
        let ended = asked.and_then(|_| child.wait());
        ended
            .map(drop)
            .map_err(|error| failed(format!("the server does not end: {error}")))
    }

    fn session(&self, _flags: &Flags) -> Client {
        Client::connect(&self.address)
    }

    fn flush(&self) -> Result<()> {
        Err(Error::not_supported("flushing a server"))
    }

    fn compact(&self) -> Result<()> {
        compact(&self.address)
    }

    fn wait_for_background(&self) -> Result<()> {
        Ok(())
    }

    fn version() -> String {
        let line = std::env::var(PEER).unwrap_or_default();
        let program = line.split_whitespace().next().unwrap_or_default();
        let name = Path::new(program).file_name().unwrap_or_default();
        format!("The document server {}", name.display())
    }
}

/// A connection, and what came over it.
struct Asker {
    link: Link,
    received: Vec<u8>,
}

impl Asker {
    fn connect(address: &Address) -> Result<Self> {
        Ok(Self {
            link: Link::connect(address)?,
            received: Vec::new(),
        })
    }

    /// Sends a command and waits for its reply, which is no error.
    fn ask(&mut self, command: &[u8]) -> Result<Document<'_>> {
        let len = u32::try_from(BEFORE_DOCUMENT + command.len());
        let len = len.map_err(|_| Error::invalid_argument("a command is too long"))?;
        let mut message = Vec::with_capacity(BEFORE_DOCUMENT + command.len());
        for number in [len, 1, 0, OP_MSG, 0] {
            message.extend_from_slice(&number.to_le_bytes());
        }
        message.push(0);
        message.extend_from_slice(command);
        self.link.send(&message)?;
        self.received.clear();
        loop {
            let received = &mut self.received;
            self.link
                .receive(|bytes| received.extend_from_slice(bytes))?;
            let len = self.received.first_chunk::<4>().copied();
            let len = len.map_or(usize::MAX, |len| u32::from_le_bytes(len) as usize);
            if self.received.len() >= len {
                break;
            }
        }
        let reply = self.received.get(BEFORE_DOCUMENT..).unwrap_or_default();
        validate(reply).map_err(|error| failed(error.to_string()))?;
        let reply = Document(reply);
        if reply.get("ok").is_some_and(Value::is_truthy) && reply.get("writeErrors").is_none() {
            return Ok(reply);
        }
        let code = reply.get("code").and_then(Value::as_whole);
        let text = reply
            .get("errmsg")
            .and_then(Value::as_str)
            .unwrap_or("a write failed");
        match code {
            Some(COMMAND_NOT_FOUND) => Err(Error::not_supported(text)),
            _ => Err(failed(text)),
        }
    }
}

/// A client. What keeps it from connecting is told by its first command.
pub(crate) struct Client(Result<Asker>);

impl Client {
    fn connect(address: &Address) -> Self {
        Self(Asker::connect(address))
    }

    fn asker(&mut self) -> Result<&mut Asker> {
        self.0.as_mut().map_err(|error| error.duplicate())
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    str::from_utf8(bytes).map_err(|_| Error::invalid_argument("a record is no text"))
}

impl Session for Client {
    type Cursor<'a> = NoCursor;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut command = Builder::with_room(key.len() + value.len() + 256);
        command.str("insert", COLLECTION).str("$db", DATABASE);
        command
            .open(Kind::Array, "documents")
            .open(Kind::Document, "0");
        command.str("_id", text(key)?);
        let mut parts = text(value)?.splitn(FIELDS.len(), '\t');
        for name in FIELDS {
            let part = parts.next();
            let part = part.ok_or_else(|| {
                Error::invalid_argument(format!(
                    "a record has no {name}: this is measured with reviews"
                ))
            })?;
            command.str(name, part);
        }
        command.close().close();
        self.asker()?.ask(&command.finish()).map(drop)
    }

    fn get(&mut self, key: &[u8], on_value: impl FnOnce(&[u8])) -> Result<bool> {
        let mut command = Builder::with_room(key.len() + 160);
        command.str("find", COLLECTION);
        command
            .open(Kind::Document, "filter")
            .str("_id", text(key)?)
            .close();
        command
            .i32("limit", 1)
            .bool("singleBatch", true)
            .str("$db", DATABASE);
        let reply = self.asker()?.ask(&command.finish())?;
        let cursor = reply.get("cursor").and_then(Value::as_document);
        let batch = cursor.and_then(|cursor| cursor.get("firstBatch")?.as_array());
        let batch = batch.ok_or_else(|| failed("a reply to find has no batch"))?;
        let Some(found) = batch
            .iter()
            .next()
            .and_then(|first| first.value.as_document())
        else {
            return Ok(false);
        };
        let mut value = Vec::with_capacity(found.0.len());
        for (place, name) in FIELDS.iter().enumerate() {
            if place > 0 {
                value.push(b'\t');
            }
            let part = found.get(name).and_then(Value::as_str);
            value.extend_from_slice(part.unwrap_or_default().as_bytes());
        }
        on_value(&value);
        Ok(true)
    }

    fn cursor(&mut self, _lower: Option<&[u8]>, _upper: Option<&[u8]>) -> Result<NoCursor> {
        Err(no_walks())
    }
}
