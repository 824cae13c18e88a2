//! A server of ours with settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumlin_fs::net::{Address, ListenOptions, Network, PosixNetwork};
use drumlin_fs::{Clock, Env, JoinHandle, SystemClock};
use drumlin_redis::{Config, Server, ServerOptions, Stopper};
use drumlin_resp::encode_command;
use drumlin_testkit::redis::{Link, answers_until_closed};
use tempfile::TempDir;

/// A port of the loopback that nobody listens at.
pub(crate) fn free_address() -> Address {
    let any = "127.0.0.1:0".parse().expect("an address");
    let listener = PosixNetwork::new().listen(&Address::Tcp(any), ListenOptions::default());
    listener.expect("listens").local_address().clone()
}

/// The port of an address.
pub(crate) fn port(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.port().to_string(),
        other => panic!("{other} has no port"),
    }
}

/// A configuration of `settings`; why it makes no server.
pub(crate) fn open(
    dir: &Path,
    settings: &[(&str, &str)],
    env: &Env,
) -> Result<Server, drumlin_base::Error> {
    let mut config = Config::default();
    let data = dir.join("data");
    let data = data.to_str().expect("UTF-8");
    for (name, value) in [("dir", data), ("port", "0")].iter().chain(settings) {
        let set = config.set_at_start(name.as_bytes(), value.as_bytes());
        set.unwrap_or_else(|reason| panic!("{name} {value}: {reason}"));
    }
    open_config(config, env)
}

/// A server of this configuration; why it is none.
pub(crate) fn open_config(config: Config, env: &Env) -> Result<Server, drumlin_base::Error> {
    Server::open(ServerOptions {
        config,
        env: env.clone(),
        network: Arc::new(PosixNetwork::new()),
    })
}

/// The machine's clock, that can be put forward.
#[derive(Debug, Default)]
struct Forward {
    machine: SystemClock,
    seconds: AtomicU64,
}

impl Clock for Forward {
    fn monotonic(&self) -> Duration {
        self.machine.monotonic() + Duration::from_secs(self.seconds.load(Ordering::Relaxed))
    }

    fn unix_time(&self) -> Duration {
        self.machine.unix_time()
    }

    fn sleep(&self, duration: Duration) {
        self.machine.sleep(duration);
    }
}

/// See the module. It ends with this.
pub(crate) struct Ours {
    stopper: Stopper,
    thread: Option<Box<dyn JoinHandle>>,
    socket: PathBuf,
    clock: Arc<Forward>,
    _dir: TempDir,
}

impl Ours {
    /// One that listens at a unix socket, too.
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("socket");
        let at = [("unixsocket", socket.to_str().expect("UTF-8"))];
        let settings = [&at[..], settings].concat();
        let clock = Arc::new(Forward::default());
        let env = Env::system().with_clock(Arc::<Forward>::clone(&clock));
        let server = open(dir.path(), &settings, &env).expect("opens");
        Self::run((dir, socket), server, clock, env)
    }

    /// One of the configuration in the file at `path`, with a unix socket besides.
    pub(crate) fn from_file(path: &Path) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("socket");
        let clock = Arc::new(Forward::default());
        let env = Env::system().with_clock(Arc::<Forward>::clone(&clock));
        let mut config = Config::default();
        config.read_file(&env, path).expect("a configuration");
        for (name, value) in [("dir", dir.path()), ("unixsocket", &socket)] {
            let value = value.to_str().expect("UTF-8").as_bytes();
            config
                .set_at_start(name.as_bytes(), value)
                .expect("a setting");
        }
        let server = open_config(config, &env).expect("opens");
        Self::run((dir, socket), server, clock, env)
    }

    fn run(
        (dir, socket): (TempDir, PathBuf),
        server: Server,
        clock: Arc<Forward>,
        env: Env,
    ) -> Self {
        let stopper = server.stopper();
        let serve = Box::new(move || server.run().expect("serves"));
        let thread = env.spawner.spawn("server", serve).expect("a thread");
        Self {
            stopper,
            thread: Some(thread),
            socket,
            clock,
            _dir: dir,
        }
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// A connection to the unix socket.
    pub(crate) fn link(&self) -> Link {
        Link::connect(&self.socket)
    }

    /// Has so many seconds pass for the server.
    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Waits a moment for what the server does by itself.
    pub(crate) fn pause(&self) {
        self.clock.machine.sleep(Duration::from_millis(20));
    }

    /// All that it says to the commands of some lines, at the unix socket.
    pub(crate) fn say(&self, lines: &[&str]) -> String {
        let mut bytes = Vec::new();
        for line in lines.iter().chain(&["QUIT"]) {
            let words: Vec<&str> = line.split(' ').collect();
            encode_command(&mut bytes, &words);
        }
        let said = answers_until_closed(&self.socket, &bytes);
        String::from_utf8_lossy(&said).into_owned()
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.stopper.stop().expect("wakes");
        if let Some(thread) = self.thread.take() {
            thread.join().expect("ends");
        }
    }
}
