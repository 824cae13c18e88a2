//! The server's state that commands may look at and change: clients, subscriptions, configuration, counters.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use drumlin::SeqNo;
use drumlin_base::rng::Rng;
use drumlin_fs::Env;
use drumlin_fs::net::Network;
use drumlin_redis_store::types::stream::NodeLimits;
use drumlin_redis_store::{DATABASES, LookUps, Overlay, Store};
use rustls::ServerConfig;

use crate::acl::Users;
use crate::clients::Clients;
use crate::config::Config;
use crate::hands::crew::Hands;
use crate::known::Known;
use crate::limits::Limits;
use crate::log::{Journal, Watch};
use crate::memory::bounds::Bounds;
use crate::memory::purse::Purse;
use crate::metrics::figures::Figures;
use crate::migrate::state::Migrations;
use crate::net::Net;
use crate::notify::Classes;
use crate::observe::observer::Observer;
use crate::pubsub::PubSub;
use crate::replica::state::Replication;
use crate::replicas::failover::Failover;
use crate::replicas::state::Replicas;
use crate::script::scripts::Scripts;
use crate::session::Watched;
use crate::tracking::tracker::Tracker;
use drumlin_scrape::Powers;

/// Clients that wait for a key, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    by_key: HashMap<(u16, Vec<u8>), VecDeque<u64>>,
    /// Keys that changed while somebody waits for them.
    ready: VecDeque<(u16, Vec<u8>)>,
}

impl Waiting {
    pub(crate) fn add(&mut self, db: u16, key: &[u8], client: u64) {
        let queue = self.by_key.entry((db, key.to_vec())).or_default();
        if !queue.contains(&client) {
            queue.push_back(client);
        }
    }

    /// Takes a client out of the queues of `keys`.
    pub(crate) fn remove(&mut self, db: u16, keys: &[Vec<u8>], client: u64) {
        for key in keys {
            let name = (db, key.clone());
            if let Some(queue) = self.by_key.get_mut(&name) {
                queue.retain(|waiting| {
                    *waiting != client && !drumlin_base::bug!("redis-all-waits-end-with-one")
                });
                if queue.is_empty() {
                    self.by_key.remove(&name);
                }
            }
        }
    }

    /// Notes that a key changed.
    pub(crate) fn signal(&mut self, db: u16, key: &[u8]) {
        if self.by_key.is_empty() {
            return;
        }
        let name = (db, key.to_vec());
        if self.by_key.contains_key(&name)
            && !self.ready.contains(&name)
            && !drumlin_base::bug!("redis-change-wakes-nobody")
        {
            self.ready.push_back(name);
        }
    }

    /// Notes that any key of a database may have changed.
    pub(crate) fn signal_db(&mut self, db: u16) {
        let keys: Vec<_> = self
            .by_key
            .keys()
            .filter(|(of, _)| *of == db)
            .cloned()
            .collect();
        for (db, key) in keys {
            self.signal(db, &key);
        }
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The next changed key, and who waits for it.
    pub(crate) fn next_ready(&mut self) -> Option<(Vec<u8>, Vec<u64>)> {
        let name = self.ready.pop_front()?;
        let clients = self.by_key.get(&name).into_iter().flatten();
        let mut clients: Vec<u64> = clients.copied().collect();
        if drumlin_base::bug!("redis-newest-waiter-first") {
            clients.reverse();
        }
        Some((name.1, clients))
    }
}

/// Clients that watch a key.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    by_key: HashMap<Watched, HashSet<u64>>,
}

impl Watching {
    pub(crate) fn add(&mut self, watched: Watched, client: u64) {
        self.by_key.entry(watched).or_default().insert(client);
    }

    pub(crate) fn remove<'a>(&mut self, watched: impl Iterator<Item = &'a Watched>, client: u64) {
        for key in watched {
            if let Some(clients) = self.by_key.get_mut(key) {
                clients.remove(&client);
                if clients.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
    }

    /// Whether nobody watches anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Who watches this key.
    pub(crate) fn of(&self, db: u16, key: &[u8]) -> Vec<u64> {
        if self.by_key.is_empty() {
            return Vec::new();
        }
        let watched = Watched {
            db,
            key: key.to_vec(),
        };
        self.by_key
            .get(&watched)
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }

    /// The watched keys of a database, and who watches them.
    pub(crate) fn of_db(&self, db: u16) -> Vec<(Watched, Vec<u64>)> {
        let of_db = self.by_key.iter().filter(|(watched, _)| watched.db == db);
        of_db
            .map(|(watched, clients)| (watched.clone(), clients.iter().copied().collect()))
            .collect()
    }
}

/// Counters of INFO.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: u64,
    pub(crate) rejected: u64,
    /// Clients that were cut off because all together had too much memory.
    pub(crate) evicted_clients: u64,
    pub(crate) counted: Counted,
    /// What hands counted.
    pub(crate) commands_of_hands: u64,
    pub(crate) looked_up_of_hands: LookUps,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Those of them that hands did; and how often a connection was lent to one.
    pub(crate) reads_of_hands: u64,
    pub(crate) writes_of_hands: u64,
    pub(crate) lent: u64,
    pub(crate) errors: u64,
    pub(crate) rounds: u64,
    pub(crate) cold: u64,
    pub(crate) stalls: u64,
    /// Commands and microseconds of turns of the loop.
    pub(crate) round_commands: Powers,
    pub(crate) round_micros: Powers,
}

impl Counters {
    /// Commands that ran, wherever that was.
    pub(crate) fn all_commands(&self) -> u64 {
        self.counted.commands + self.commands_of_hands
    }

    /// Keys that were looked up, wherever that was.
    pub(crate) fn all_looked_up(&self) -> LookUps {
        let mut all = self.counted.looked_up;
        all += self.looked_up_of_hands;
        all
    }
}

/// What commands on the loop add to, and is as before once they are undone to run again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Commands that ran to their end, or that wait for keys.
    pub(crate) commands: u64,
    pub(crate) expired: u64,
    pub(crate) looked_up: LookUps,
}

/// A pause that CLIENT PAUSE asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    /// By the monotonic clock.
    pub(crate) until: Duration,
    /// Only commands that write wait.
    pub(crate) writes_only: bool,
}

/// How the server is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// With everything on disk.
    Save,
    /// At once; what the WAL holds outlives the process all the same.
    NoSave,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) store: Arc<Store>,
    /// What the last round has left for the next one; none while a round is on its way to the engine.
    pub(crate) spare: RefCell<Option<Overlay>>,
    /// All commands, by name.
    pub(crate) commands: Arc<Known>,
    pub(crate) net: Net,
    pub(crate) clients: Clients,
    /// Threads that have the connections of clients that only read.
    pub(crate) hands: Hands,
    pub(crate) pubsub: PubSub,
    pub(crate) waiting: Waiting,
    pub(crate) watching: Watching,
    pub(crate) config: Config,
    pub(crate) users: Users,
    pub(crate) journal: Journal,
    /// What the log told last.
    pub(crate) watch: Watch,
    pub(crate) limits: Limits,
    /// Of memory.
    pub(crate) bounds: Bounds,
    pub(crate) purse: Purse,
    pub(crate) notify: Classes,
    pub(crate) counters: Counters,
    pub(crate) observer: Observer,
    pub(crate) tracker: Tracker,
    /// One node of a cluster: commands name keys of one slot.
    pub(crate) is_cluster: bool,
    pub(crate) pause: Option<Pause>,
    /// A replica is to take over: writes wait.
    pub(crate) failover: Option<Failover>,
    /// Clients whose next command waits for the end of the pause.
    pub(crate) paused: BTreeSet<u64>,
    pub(crate) replication: Replication,
    pub(crate) migrations: Migrations,
    pub(crate) replicas: Replicas,
    pub(crate) shutdown: Option<Shutdown>,
    pub(crate) run_id: String,
    pub(crate) started_seconds: u64,
    pub(crate) now_seconds: u64,
    pub(crate) now_micros: u64,
    pub(crate) last_save_seconds: u64,
    /// The newest write when somebody asked for a save.
    pub(crate) saved_seqno: SeqNo,
    pub(crate) expires_actively: bool,
    /// Waits that end before their time, some with an error.
    pub(crate) unblocks: Vec<(u64, Option<&'static str>)>,
    /// Somebody asked for a sync, or for a compaction.
    pub(crate) asks_sync: bool,
    pub(crate) asks_compaction: bool,
    /// Compactions that somebody asked for and that are not over.
    pub(crate) compactions: usize,
    /// A scraper waits for new figures.
    pub(crate) asks_figures: bool,
    /// Somebody has asked INFO for them: until then no table is opened for it.
    pub(crate) counts_entries: bool,
    /// How the engine stood about a second ago.
    pub(crate) figures: Figures,
    /// Of work that nobody waits for.
    pub(crate) last_error: Option<String>,
    pub(crate) random: Rng,
    pub(crate) scripts: Scripts,
    /// How new connections to `tls-port` are greeted.
    pub(crate) tls: Option<Arc<ServerConfig>>,
}

impl ServerState {
    /// The state of a server that starts now.
    pub(crate) fn new(
        store: Arc<Store>,
        commands: Arc<Known>,
        config: Config,
        env: &Env,
        net: Net,
        network: Arc<dyn Network>,
    ) -> Self {
        let now = env.clock.unix_time();
        let mut random = Rng::new(env.seed ^ 0x7265_6469_7372_756e);
        let observer = Observer::new(env.clone());
        let saved_seqno = store.db().latest_seqno();
        let purse = Purse::new(store.db());
        let run_id = (0..5).map(|_| format!("{:08x}", random.next_u64() as u32));
        let mut state = Self {
            store,
            spare: RefCell::default(),
            commands,
            run_id: run_id.collect(),
            net,
            clients: Clients::default(),
            hands: Hands::default(),
            pubsub: PubSub::default(),
            waiting: Waiting::default(),
            watching: Watching::default(),
            bounds: Bounds::of(&config),
            config,
            users: Users::default(),
            journal: Journal::default(),
            watch: Watch::default(),
            limits: Limits {
                string_bytes_max: 0,
                hll_sparse_bytes_max: 0,
                stream_nodes: NodeLimits::default(),
            },
            notify: Classes::default(),
            counters: Counters::default(),
            observer,
            tracker: Tracker::default(),
            is_cluster: false,
            pause: None,
            failover: None,
            paused: BTreeSet::new(),
            replication: Replication::new(env, network),
            migrations: Migrations::new(env),
            replicas: Replicas::new(&mut random),
            shutdown: None,
            started_seconds: now.as_secs(),
            now_seconds: 0,
            now_micros: 0,
            last_save_seconds: now.as_secs(),
            saved_seqno,
            expires_actively: true,
            unblocks: Vec::new(),
            asks_sync: false,
            asks_compaction: false,
            compactions: 0,
            asks_figures: false,
            counts_entries: false,
            figures: Figures::default(),
            last_error: None,
            random,
            scripts: Scripts::new(Arc::clone(&env.clock), Arc::clone(&purse.scripts)),
            purse,
            tls: None,
        };
        state.configure();
        state.set_time(now);
        state
    }

    /// Takes the time of the wall clock over.
    pub(crate) fn set_time(&mut self, now: Duration) {
        self.now_seconds = now.as_secs();
        self.now_micros = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        self.journal.micros = self.now_micros;
    }

    /// Whether keys whose time has come are deleted: a primary's are by the primary, and nothing changes in a pause.
    pub(crate) fn deletes_expired(&self) -> bool {
        let is_paused = self.pause.is_some() || self.failover.is_some();
        !self.replication.is_replica() && !is_paused
    }

    /// Whether they are without anybody asking for them.
    pub(crate) fn expires(&self) -> bool {
        self.expires_actively && self.deletes_expired()
    }

    /// The address of a replica: as it tells it, or where its connection comes from.
    pub(crate) fn replica_address(&self, id: u64) -> String {
        let member = self.replicas.members.get(&id);
        let told = member.and_then(|member| member.greeting.address.clone());
        told.unwrap_or_else(|| {
            let session = self.clients.get(id);
            let address = session.map_or("", |session| session.address.as_str());
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            host.trim_matches(['[', ']']).to_owned()
        })
    }

    /// All watched keys change.
    pub(crate) fn touch_watched(&mut self) {
        let watched = (0..DATABASES).flat_map(|db| self.watching.of_db(db));
        for client in watched.flat_map(|(_, clients)| clients) {
            if let Some(session) = self.clients.get_mut(client) {
                session.is_dirty = true;
            }
        }
    }

    /// Takes over what the configuration says.
    pub(crate) fn configure(&mut self) {
        let bytes = |name: &str| usize::try_from(self.config.number(name)).unwrap_or(usize::MAX);
        self.limits = Limits {
            string_bytes_max: bytes("proto-max-bulk-len"),
            hll_sparse_bytes_max: bytes("hll-sparse-max-bytes"),
            stream_nodes: NodeLimits {
                entries_max: self.config.number("stream-node-max-entries"),
                bytes_max: self.config.number("stream-node-max-bytes"),
            },
        };
        self.bounds = Bounds::of(&self.config);
        self.purse.configure(&self.bounds);
        self.scripts.set_memory_max(self.bounds.lua_bytes);
        let classes = self.config.get("notify-keyspace-events").as_bytes();
        self.notify = Classes::parse(classes).unwrap_or_default();
        self.observer.configure(&self.config);
        self.replicas.configure(&self.config);
        self.journal.configure(&self.config);
        self.users.all_channels = self.config.get("acl-pubsub-default") == "allchannels";
        self.is_cluster = self.config.get("cluster-enabled") == "yes";
    }
}
