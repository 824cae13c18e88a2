//! A client on the network in memory.

use std::path::PathBuf;
use std::time::Duration;

use drumlin_fs::net::{
    Address, Connection, Events, Interest, MemNetwork, Network, Poller, Received, Sent, Token,
};
use drumlin_resp::{ReplyLimits, ReplyParser, Value, encode_command};
use drumlin_sim::schedule::Scheduler;

/// Where the server listens.
pub(crate) const SOCKET: &str = "/socket";
/// Between tries to connect.
const PAUSE: Duration = Duration::from_millis(20);

/// A connection that waits.
pub(crate) struct Client {
    connection: Box<dyn Connection>,
    poller: Box<dyn Poller>,
    events: Events,
    parser: ReplyParser,
}

impl Client {
    /// Connects, trying again until `is_over`.
    pub(crate) fn connect(
        network: &MemNetwork,
        clock: &Scheduler,
        is_over: impl Fn() -> bool,
    ) -> Option<Self> {
        while !is_over() {
            if let Ok(connection) = network.connect(&Address::Unix(PathBuf::from(SOCKET))) {
                let poller = network.poller().expect("it is made");
                let registered = poller.register(&*connection, Token(1), Interest::Write);
                registered.expect("it is new");
                let mut client = Self {
                    connection,
                    poller,
                    events: Events::with_capacity(1),
                    parser: ReplyParser::new(ReplyLimits::default()),
                };
                if client.is_connected() {
                    return Some(client);
                }
            }
            clock.sleep(PAUSE);
        }
        None
    }

    fn is_connected(&mut self) -> bool {
        loop {
            match self.connection.connected() {
                Ok(true) => return true,
                Ok(false) => self.wait(Interest::Write),
                Err(_) => return false,
            }
        }
    }

    fn wait(&mut self, interest: Interest) {
        let set = self
            .poller
            .reregister(&*self.connection, Token(1), interest);
        set.expect("it is registered");
        self.poller.wait(&mut self.events, None).expect("it waits");
    }

    /// Sends bytes; whether the connection holds.
    pub(crate) fn say(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match self.connection.write(bytes) {
                Ok(Sent::Bytes(count)) => bytes = &bytes[count..],
                Ok(Sent::NotNow) => self.wait(Interest::Write),
                Err(_) => return false,
            }
        }
        true
    }

    /// The reply to the last of some commands; none when the connection broke.
    pub(crate) fn ask(&mut self, commands: &[Vec<String>]) -> Option<Value> {
        let mut bytes = Vec::new();
        for command in commands {
            encode_command(&mut bytes, command);
        }
        if !self.say(&bytes) {
            return None;
        }
        let mut last = None;
        for _ in commands {
            last = Some(self.reply()?);
        }
        last
    }

    /// The next reply; none when the connection broke.
    pub(crate) fn reply(&mut self) -> Option<Value> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(value) = self.parser.value().expect("a reply") {
                return Some(value);
            }
            match self.connection.read(&mut buffer) {
                Ok(Received::Bytes(count)) => self.parser.push(&buffer[..count]),
                Ok(Received::NotNow) => self.wait(Interest::Read),
                Ok(Received::End) | Err(_) => return None,
            }
        }
    }
}
