//! Goal: replies keep what `appendfsync` promises. Method: a server over a file system in memory, writes of one client, and
//! the image of the disk after a power cut, taken while the server runs on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::Options;
use drumlin_fs::net::PosixNetwork;
use drumlin_fs::{CrashPolicy, Env, JoinHandle, StrictMemFileSystem};
use drumlin_redis::{Config, Server, ServerOptions, Stopper};
use drumlin_redis_store::{Keyspace, Overlay, ReadFrom, Store, StoreOptions};
use drumlin_resp::{ReplyLimits, ReplyParser, Value, encode_command};
use drumlin_testkit::redis::answers_until_closed;
use tempfile::TempDir;

struct World {
    files: Arc<StrictMemFileSystem>,
    stopper: Stopper,
    thread: Option<Box<dyn JoinHandle>>,
    socket: PathBuf,
    _dir: TempDir,
}

impl World {
    fn start(fsync: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("socket");
        let mut config = Config::default();
        for (name, value) in [
            ("dir", "/redis"),
            ("port", "0"),
            ("appendfsync", fsync),
            ("unixsocket", socket.to_str().expect("UTF-8")),
        ] {
            let set = config.set_at_start(name.as_bytes(), value.as_bytes());
            set.expect("a setting");
        }
        let files = Arc::new(StrictMemFileSystem::new());
        let env = Env::system().with_files(Arc::<StrictMemFileSystem>::clone(&files));
        let server = Server::open(ServerOptions {
            config,
            env: env.clone(),
            network: Arc::new(PosixNetwork::new()),
        });
        let server = server.expect("opens");
        let stopper = server.stopper();
        let serve = Box::new(move || server.run().expect("serves"));
        let thread = env.spawner.spawn("server", serve).expect("a thread");
        Self {
            files,
            stopper,
            thread: Some(thread),
            socket,
            _dir: dir,
        }
    }

    /// The replies to `commands` on a connection of their own.
    fn ask(&self, commands: &[String]) -> Vec<Value> {
        let mut bytes = Vec::new();
        for command in commands {
            let words: Vec<&str> = command.split(' ').collect();
            encode_command(&mut bytes, &words);
        }
        encode_command(&mut bytes, &["QUIT"]);
        let mut parser = ReplyParser::new(ReplyLimits::default());
        parser.push(&answers_until_closed(&self.socket, &bytes));
        let mut values = Vec::new();
        while let Some(value) = parser.value().expect("a reply") {
            values.push(value);
        }
        assert_eq!(values.len(), commands.len() + 1, "all are answered");
        values
    }

    /// The value of each key after a power cut now.
    fn after_power_cut(&self, seed: u64, keys: &[String]) -> Vec<Option<Vec<u8>>> {
        let files = Arc::new(self.files.crash_image(seed, CrashPolicy::KeepNothing));
        let engine = Options {
            env: Env::system().with_files(files),
            ..Options::default()
        };
        let store = Store::open(Path::new("/redis"), StoreOptions { engine }).expect("opens");
        let (view, mut overlay) = (store.view(), Overlay::new());
        let keyspace = Keyspace::new(&store, &view, &mut overlay, 0, 1_000, ReadFrom::Disk);
        let find = |key: &String| keyspace.lookup(key.as_bytes()).expect("reads");
        let found = keys.iter().map(find);
        found
            .map(|record| record.map(|record| record.payload().to_vec()))
            .collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stopper.stop().expect("wakes");
        if let Some(thread) = self.thread.take() {
            thread.join().expect("ends");
        }
    }
}

#[test]
fn under_always_no_acknowledged_write_is_lost_to_a_power_cut() {
    let world = World::start("always");
    for round in 0..30u64 {
        let key = |n: u64| format!("key-{round}-{n}");
        let mut commands: Vec<String> = (0..40).map(|n| format!("SET {} {n}", key(n))).collect();
        commands.push("MULTI".to_owned());
        commands.extend((40..50).map(|n| format!("SET {} {n}", key(n))));
        commands.push("EXEC".to_owned());
        let replies = world.ask(&commands);
        assert_eq!(replies[0], Value::Simple(b"OK".to_vec()));
        let keys: Vec<String> = (0..50).map(key).collect();
        let found = world.after_power_cut(round, &keys);
        for (n, value) in found.into_iter().enumerate() {
            assert_eq!(value, Some(n.to_string().into_bytes()), "{}", keys[n]);
        }
    }
}

#[test]
fn under_everysec_a_power_cut_leaves_the_writes_up_to_some_moment() {
    let world = World::start("everysec");
    let mut keys: Vec<String> = Vec::new();
    for round in 0..12u64 {
        let first = keys.len();
        keys.extend((0..200).map(|n| format!("key-{round}-{n}")));
        let commands: Vec<String> = keys[first..]
            .iter()
            .map(|key| format!("SET {key} v"))
            .collect();
        world.ask(&commands);
        if round == 5 {
            world.ask(&["SAVE".to_owned()]);
        }
        let found = world.after_power_cut(round, &keys);
        let present = found.iter().filter(|value| value.is_some()).count();
        // All that was there when SAVE was answered, in round 5, is there for ever.
        let saved = if round < 5 { 0 } else { 1_200 };
        assert!(present >= saved, "round {round}: {present} are present");
        assert!(
            found[..present].iter().all(Option::is_some),
            "round {round}: {present} of {} are present, with gaps",
            keys.len()
        );
    }
}
