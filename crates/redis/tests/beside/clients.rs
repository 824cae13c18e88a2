//! Clients of a server, each of which waits for the reply to what it says.

use std::path::Path;

use drumlin_resp::{ReplyLimits, ReplyParser, Value, encode_command};
use drumlin_testkit::redis::Link;

use crate::pair::{Pair, Words, words};

/// A connection. It is made anew when the server has closed it.
pub(crate) struct Client {
    link: Link,
    parser: ReplyParser,
    /// Says at once whether the server is there.
    pub(crate) is_closed: bool,
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> Self {
        Self {
            link: Link::connect(socket),
            parser: ReplyParser::new(ReplyLimits::default()),
            is_closed: false,
        }
    }

    /// Sends a command.
    pub(crate) fn say(&mut self, command: &Words) {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, command);
        self.link.send(&bytes);
    }

    /// The next reply or message; `None` when the server has closed the connection.
    pub(crate) fn hear(&mut self) -> Option<Value> {
        loop {
            if let Some(value) = self.parser.value().expect("a reply") {
                return Some(value);
            }
            match self.link.receive() {
                Some(bytes) => self.parser.push(&bytes),
                None => {
                    self.is_closed = true;
                    return None;
                }
            }
        }
    }

    /// The reply to a line.
    pub(crate) fn ask(&mut self, line: &str) -> Option<Value> {
        self.say(&words(line));
        self.hear()
    }
}

/// A client of ours and one of Redis.
pub(crate) struct Both {
    pub(crate) ours: Client,
    pub(crate) theirs: Client,
}

impl Both {
    pub(crate) fn connect(pair: &Pair) -> Self {
        Self {
            ours: Client::connect(pair.ours.socket()),
            theirs: Client::connect(&pair.theirs.path().join("socket")),
        }
    }

    /// Both replies to a line; `None` of one that has closed the connection.
    pub(crate) fn ask(&mut self, line: &str) -> [Option<Value>; 2] {
        let line = words(line);
        self.ours.say(&line);
        self.theirs.say(&line);
        [self.ours.hear(), self.theirs.hear()]
    }

    /// The reply to a line, which is the same of both.
    pub(crate) fn same(&mut self, line: &str) -> Option<Value> {
        let [ours, theirs] = self.ask(line);
        let shown =
            |value: &Option<Value>| value.as_ref().map_or("closed".into(), Value::to_string);
        let (shown_ours, shown_theirs) = (shown(&ours), shown(&theirs));
        assert!(
            ours == theirs,
            "ours: {shown_ours}\nRedis's: {shown_theirs}\nto {line:?}"
        );
        ours
    }

    /// The next message, which is the same of both; `None` if both have closed the connection.
    pub(crate) fn hear(&mut self) -> Option<Value> {
        let (ours, theirs) = (self.ours.hear(), self.theirs.hear());
        assert_eq!(ours, theirs);
        ours
    }
}
