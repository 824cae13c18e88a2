//! The Redis server as an engine of the laboratory: it runs in the agent's process, and sessions are its clients, each with a
//! connection of its own over the loopback.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::Mutex;
use drumlin_base::{Error, Result};
use drumlin_bench::{DrumlinStore, Flags, NoCursor, Session, Store, mark};
use drumlin_fs::net::{Address, PosixNetwork};
use drumlin_fs::{Env, JoinHandle};
use drumlin_redis::{Config, Server, ServerOptions, Stopper};
use drumlin_resp::{ReplyLimits, ReplyParser, Value, encode_command};

use super::link::{Link, failed, no_walks};

/// Memory beside the cache and the memtables that the flags name, as of the engine alone.
const OTHER_BYTES: u64 = 64 << 20;
/// Between looks whether a compaction is over.
const LOOK: Duration = Duration::from_millis(20);

/// See the module.
#[derive(Debug)]
pub(crate) struct ServedStore {
    address: Address,
    stopper: Stopper,
    /// Taken when the store is closed. Handles are no thing to be shared, and stores are.
    thread: Mutex<Option<Box<dyn JoinHandle>>>,
    env: Env,
}

fn configuration(flags: &Flags) -> Result<Config> {
    let budget = flags.cache_size.max(0) as u64 + 2 * flags.write_buffer_size + OTHER_BYTES;
    let mut config = Config::default();
    let values = [
        ("dir", flags.db.clone()),
        // The loopback, and a port that is free.
        ("port", "0".to_owned()),
        ("maxmemory", budget.to_string()),
        // As the engine alone, and the others: without the flag nothing is synced.
        (
            "appendfsync",
            if flags.sync { "always" } else { "no" }.to_owned(),
        ),
    ];
    for (name, value) in values {
        let set = config.set_at_start(name.as_bytes(), value.as_bytes());
        set.map_err(Error::invalid_argument)?;
    }
    Ok(config)
}

impl Store for ServedStore {
    type Session<'a> = Client;

    fn open(flags: &Flags, env: &Env) -> Result<Self> {
        let server = Server::open(ServerOptions {
            config: configuration(flags)?,
            env: env.clone(),
            network: Arc::new(PosixNetwork::new()),
        })?;
        mark::set(Path::new(&flags.db), env)?;
        let addresses = server.addresses();
        let address = addresses.into_iter().next();
        let address = address.ok_or_else(|| failed("the server listens nowhere"))?;
        let stopper = server.stopper();
        let serve = Box::new(move || {
            if let Err(error) = server.run() {
                crate::output::remark(format!("drumlin: the server ended: {error}"));
            }
        });
        Ok(Self {
            address,
            stopper,
            thread: Mutex::new(Some(env.spawner.spawn("server", serve)?)),
            env: env.clone(),
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
        Client {
            asker: Asker::connect(&self.address),
        }
    }

    fn flush(&self) -> Result<()> {
        // The laboratory's plans of the server have no step that needs it.
        Err(Error::not_supported("flushing a server"))
    }

    fn compact(&self) -> Result<()> {
        Asker::connect(&self.address)?.ask(&[b"COMPACT"])?;
        self.wait_for_background()
    }

    fn wait_for_background(&self) -> Result<()> {
        let mut asker = Asker::connect(&self.address)?;
        loop {
            let info = asker.ask(&[b"INFO", b"stats"])?;
            let text = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
            if text.lines().any(|line| line == "compactions_asked_for:0") {
                return Ok(());
            }
            self.env.clock.sleep(LOOK);
        }
    }

    fn version() -> String {
        let version = env!("CARGO_PKG_VERSION");
        format!("Drumlin's Redis server: version {version}")
    }
}

/// A connection, and what came over it.
struct Asker {
    link: Link,
    request: Vec<u8>,
    parser: ReplyParser,
}

impl Asker {
    fn connect(address: &Address) -> Result<Self> {
        Ok(Self {
            link: Link::connect(address)?,
            request: Vec::new(),
            parser: ReplyParser::new(ReplyLimits::default()),
        })
    }

    /// Sends a command and waits for its reply, which is no error.
    fn ask(&mut self, args: &[&[u8]]) -> Result<Value> {
        self.request.clear();
        encode_command(&mut self.request, args);
        self.link.send(&self.request)?;
        loop {
            let value = self.parser.value();
            match value.map_err(|error| failed(error.to_string()))? {
                Some(Value::Error(text)) => return Err(failed(String::from_utf8_lossy(&text))),
                Some(value) => return Ok(value),
                None => {}
            }
            let parser = &mut self.parser;
            self.link.receive(|bytes| parser.push(bytes))?;
        }
    }
}

/// A client of the server. What keeps it from connecting is told by its first command.
pub(crate) struct Client {
    asker: Result<Asker>,
}

impl Client {
    fn asker(&mut self) -> Result<&mut Asker> {
        self.asker.as_mut().map_err(|error| error.duplicate())
    }
}

impl Session for Client {
    type Cursor<'a> = NoCursor;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.asker()?.ask(&[b"SET", key, value]).map(drop)
    }

    fn get(&mut self, key: &[u8], on_value: impl FnOnce(&[u8])) -> Result<bool> {
        let reply = self.asker()?.ask(&[b"GET", key])?;
        let value = reply.as_bytes();
        let is_found = value.is_some();
        if let Some(value) = value {
            on_value(value);
        }
        Ok(is_found)
    }

    fn cursor(&mut self, _lower: Option<&[u8]>, _upper: Option<&[u8]>) -> Result<NoCursor> {
        Err(no_walks())
    }
}
