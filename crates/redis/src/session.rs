//! The server's side of a client, without its socket.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use drumlin_resp::{Args, OwnedArgs, Protocol};

use crate::acl::UserId;
use crate::facts::Facts;
use crate::replicas::member::Greeting;
use crate::tracking::options::Tracking;
use crate::wait::Wait;

/// A command that is kept: its arguments own themselves.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) facts: Facts,
    pub(crate) args: OwnedArgs,
}

impl Kept {
    pub(crate) fn new(facts: &Facts, args: Args<'_>) -> Self {
        Self {
            facts: *facts,
            args: args.iter().collect(),
        }
    }
}

/// Commands between MULTI and EXEC.
#[derive(Debug, Default)]
pub(crate) struct Multi {
    pub(crate) queue: Vec<Kept>,
    /// A command was refused: EXEC will be too.
    pub(crate) is_broken: bool,
}

/// A key that WATCH watches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Watched {
    pub(crate) db: u16,
    pub(crate) key: Vec<u8>,
}

/// Replies that a client asked not to get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Silence {
    #[default]
    None,
    /// CLIENT REPLY SKIP was this command.
    AfterThis,
    /// The next command's.
    Next,
    /// All.
    Off,
}

/// A client that waits for keys.
#[derive(Debug)]
pub(crate) struct Blocked {
    pub(crate) kept: Kept,
    pub(crate) db: u16,
    pub(crate) wait: Wait,
    /// By the monotonic clock.
    pub(crate) until: Option<Duration>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) db: u16,
    pub(crate) name: Vec<u8>,
    pub(crate) protocol: Protocol,
    pub(crate) is_authenticated: bool,
    /// Who it is; nobody may forbid anything to the primary and to what the server itself runs.
    pub(crate) user: Option<UserId>,
    pub(crate) multi: Option<Multi>,
    /// Whether the key had expired when it was watched.
    pub(crate) watched: BTreeMap<Watched, bool>,
    /// A watched key changed.
    pub(crate) is_dirty: bool,
    pub(crate) silence: Silence,
    pub(crate) blocked: Option<Blocked>,
    /// Channels and patterns, as subscribed.
    pub(crate) channels: BTreeSet<Vec<u8>>,
    pub(crate) patterns: BTreeSet<Vec<u8>>,
    pub(crate) shard_channels: BTreeSet<Vec<u8>>,
    /// Bytes to be sent.
    pub(crate) out: Vec<u8>,
    /// To be closed once `out` is sent.
    pub(crate) closes: bool,
    /// To be closed at once.
    pub(crate) is_killed: bool,
    pub(crate) address: String,
    pub(crate) local_address: String,
    /// By the wall clock.
    pub(crate) created_seconds: u64,
    pub(crate) last_seconds: u64,
    /// With `|` before a subcommand.
    pub(crate) last_command: &'static str,
    pub(crate) no_evict: bool,
    /// It is told of every command.
    pub(crate) is_monitor: bool,
    /// Its next command waits for the end of a pause.
    pub(crate) is_paused: bool,
    /// How it is told of changes of keys that it has read.
    pub(crate) tracking: Option<Box<Tracking>>,
    /// The primary, whose changes come as commands.
    pub(crate) is_primary: bool,
    /// A replica, and what it has told of itself before it was one.
    pub(crate) is_replica: bool,
    pub(crate) greeting: Option<Box<Greeting>>,
    /// The end of the stream after its newest change.
    pub(crate) stream_offset: u64,
}

impl Session {
    /// A client from and to `addresses` that came at `now_seconds`, by the wall clock.
    pub(crate) fn new(
        id: u64,
        is_authenticated: bool,
        addresses: [String; 2],
        now_seconds: u64,
    ) -> Self {
        let [address, local_address] = addresses;
        Self {
            id,
            is_authenticated,
            user: Some(UserId::DEFAULT),
            address,
            local_address,
            created_seconds: now_seconds,
            last_seconds: now_seconds,
            last_command: "NULL",
            ..Self::default()
        }
    }

    /// A key that it watches is deleted as it had expired. Where that was so when it began to watch, nothing has changed.
    pub(crate) fn sees_gone(&mut self, db: u16, key: &[u8]) {
        let key = key.to_vec();
        let had_expired = self.watched.get(&Watched { db, key });
        self.is_dirty |= had_expired == Some(&false);
    }

    /// Whether it comes from this machine.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
        self.address.starts_with('/') || ["127.0.0.1", "[::1]"].contains(&host)
    }

    /// Whether a script sends its commands at present.
    pub(crate) fn is_script(&self) -> bool {
        self.address == "lua"
    }

    /// Whether it may only send commands of subscribers: with RESP2, while it has subscriptions.
    pub(crate) fn is_subscriber(&self) -> bool {
        self.protocol == Protocol::Resp2 && self.subscriptions() > 0
    }

    /// Channels, patterns and shard channels together.
    pub(crate) fn subscriptions(&self) -> usize {
        self.channels.len() + self.patterns.len() + self.shard_channels.len()
    }
}
