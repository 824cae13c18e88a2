//! A redis-server of its own for a test: on a socket in a temporary directory, ended with it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and one that is skipped says so"
)]

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use drumlin_fs::net::{
    Address, Connection, Events, Interest, Network, Poller, PosixNetwork, Received, Sent, Token,
};
use tempfile::TempDir;

/// The answer of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// No string or no array.
    Nil,
    /// A string, simple or not.
    Text(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// An error, its code first.
    Error(String),
    /// An array.
    Many(Vec<Reply>),
}

impl Reply {
    /// The text, or the text of the integer.
    ///
    /// # Panics
    /// When it is neither.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(bytes) => bytes.clone(),
            Self::Integer(number) => number.to_string().into_bytes(),
            other => panic!("{other:?} is no text"),
        }
    }

    /// As [`Reply::bytes`].
    ///
    /// # Panics
    /// Also when it is not UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    /// The integer.
    ///
    /// # Panics
    /// When it is none.
    pub fn integer(&self) -> i64 {
        match self {
            Self::Integer(number) => *number,
            other => panic!("{other:?} is no integer"),
        }
    }

    /// The items.
    ///
    /// # Panics
    /// When it is no array.
    pub fn many(&self) -> &[Reply] {
        match self {
            Self::Many(replies) => replies,
            other => panic!("{other:?} are not many"),
        }
    }
}

/// Whether the programs are there. Says so if not.
pub fn installed() -> bool {
    let version = |program| {
        let mut command = Command::new(program);
        command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok()
    };
    let there = version("redis-server") && version("redis-check-rdb");
    if !there {
        println!(
            "SKIPPED: redis-server and redis-check-rdb are not installed; `make deps` installs them"
        );
    }
    there
}

/// Has redis-check-rdb look at a file.
///
/// # Panics
/// When that finds something wrong, with all that it says.
pub fn check_file(path: &Path) {
    let mut command = Command::new("redis-check-rdb");
    let output = command.arg(path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

/// A connection that waits.
struct Wire {
    connection: Box<dyn Connection>,
    poller: Box<dyn Poller>,
    events: Events,
}

impl Wire {
    fn connect(path: &Path) -> Self {
        Self::connect_to(&Address::Unix(path.to_owned()))
    }

    fn connect_to(address: &Address) -> Self {
        Self::try_connect(address).unwrap()
    }

    fn try_connect(address: &Address) -> Option<Self> {
        let network = PosixNetwork::new();
        let connection = network.connect(address).ok()?;
        let poller = network.poller().unwrap();
        poller
            .register(&*connection, Token(0), Interest::Write)
            .unwrap();
        let events = Events::with_capacity(1);
        Some(Self {
            connection,
            poller,
            events,
        })
    }

    /// All that comes until the end.
    fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.read_to_end(&mut rest).unwrap();
        rest
    }

    fn wait(&mut self, interest: Interest) {
        self.poller
            .reregister(&*self.connection, Token(0), interest)
            .unwrap();
        self.poller.wait(&mut self.events, None).unwrap();
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.connection.read(buffer).unwrap() {
                Received::Bytes(count) => return Ok(count),
                Received::End => return Ok(0),
                Received::NotNow => self.wait(Interest::Read),
            }
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        loop {
            match self.connection.write(bytes).unwrap() {
                Sent::Bytes(count) => return Ok(count),
                Sent::NotNow => self.wait(Interest::Write),
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// All that the server at `socket` answers to `bytes`, the last of which must make it close the connection.
pub fn answers_until_closed(socket: &Path, bytes: &[u8]) -> Vec<u8> {
    let mut wire = Wire::connect(socket);
    wire.write_all(bytes).unwrap();
    wire.rest()
}

/// A connection to a server that may be killed at any time.
pub struct Link(Wire);

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}

impl Link {
    /// One to the server at `socket`, which is there.
    pub fn connect(socket: &Path) -> Self {
        Self(Wire::connect(socket))
    }

    /// One to the server at `address`, if it is there.
    pub fn try_to(address: &Address) -> Option<Self> {
        Wire::try_connect(address).map(Self)
    }

    /// One to the server at `address`, which is there.
    pub fn to(address: &Address) -> Self {
        Self(Wire::connect_to(address))
    }

    /// Sends `bytes`; false when the server is gone.
    pub fn send(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match self.0.connection.write(bytes) {
                Ok(Sent::Bytes(count)) => bytes = &bytes[count..],
                Ok(Sent::NotNow) => self.0.wait(Interest::Write),
                Err(_) => return false,
            }
        }
        true
    }

    /// Waits for some bytes; none when the server is gone.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match self.0.connection.read(&mut buffer) {
                Ok(Received::Bytes(count)) => {
                    buffer.truncate(count);
                    return Some(buffer);
                }
                Ok(Received::NotNow) => self.0.wait(Interest::Read),
                Ok(Received::End) | Err(_) => return None,
            }
        }
    }

    /// The bytes that have come; none when the server is gone.
    pub fn received(&mut self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 1 << 16];
        match self.0.connection.read(&mut buffer) {
            Ok(Received::Bytes(count)) => {
                buffer.truncate(count);
                Some(buffer)
            }
            Ok(Received::NotNow) => Some(Vec::new()),
            Ok(Received::End) | Err(_) => None,
        }
    }
}

/// A server that runs until this is dropped, and a connection to it. Its methods panic when the server fails.
pub struct Server {
    dir: TempDir,
    child: Child,
    connection: BufReader<Wire>,
}

impl Server {
    /// One in `dir` with further settings.
    pub fn start(dir: TempDir, settings: &[&str]) -> Self {
        let mut command = Command::new("redis-server");
        command
            .current_dir(dir.path())
            .args(["--port", "0", "--unixsocket", "socket"]);
        command.args(["--save", "", "--hz", "1", "--sanitize-dump-payload", "yes"]);
        command.args(["--enable-debug-command", "local"]);
        let mut child = command
            .args(settings)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let mut told = String::new();
        while !told.contains("ready to accept connections at") {
            let before = told.len();
            log.read_line(&mut told).unwrap();
            assert!(told.len() > before, "the server ended:\n{told}");
        }
        let connection = BufReader::new(Wire::connect(&dir.path().join("socket")));
        let mut server = Self {
            dir,
            child,
            connection,
        };
        // Nobody reads the log any more.
        server.ok(&["CONFIG", "SET", "loglevel", "warning"]);
        server
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The answer to a command.
    pub fn ask(&mut self, arguments: &[&[u8]]) -> Reply {
        let mut command = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            command.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            command.extend_from_slice(argument);
            command.extend_from_slice(b"\r\n");
        }
        self.connection.get_mut().write_all(&command).unwrap();
        self.reply()
    }

    /// [`Server::ask`] of texts.
    pub fn say(&mut self, arguments: &[&str]) -> Reply {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|argument| argument.as_bytes())
            .collect();
        self.ask(&arguments)
    }

    /// [`Server::say`] of what is answered with OK.
    pub fn ok(&mut self, arguments: &[&str]) {
        assert_eq!(
            self.say(arguments),
            Reply::Text(b"OK".to_vec()),
            "{arguments:?}"
        );
    }

    /// All that it answers to `bytes` on another connection, which sends nothing more. Of long answers it may keep
    /// the end.
    pub fn answers(&self, bytes: &[u8]) -> Vec<u8> {
        let mut wire = Wire::connect(&self.dir.path().join("socket"));
        wire.write_all(bytes).unwrap();
        wire.connection.shutdown_write().unwrap();
        wire.rest()
    }

    /// All that it answers to `bytes` on another connection. The last of them must make it close that.
    pub fn answers_until_closed(&self, bytes: &[u8]) -> Vec<u8> {
        answers_until_closed(&self.dir.path().join("socket"), bytes)
    }

    fn reply(&mut self) -> Reply {
        let mut line = String::new();
        self.connection.read_line(&mut line).unwrap();
        let (kind, rest) = line.trim_end().split_at(1);
        let count = || rest.parse::<i64>().unwrap();
        match kind {
            "+" => Reply::Text(rest.as_bytes().to_vec()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(count()),
            "$" | "*" if count() < 0 => Reply::Nil,
            "$" => {
                let mut bytes = vec![0; count() as usize + 2];
                self.connection.read_exact(&mut bytes).unwrap();
                bytes.truncate(bytes.len() - 2);
                Reply::Text(bytes)
            }
            "*" => Reply::Many((0..count()).map(|_| self.reply()).collect()),
            _ => panic!("{line:?} is no reply"),
        }
    }

    /// Has it write its RDB file, and returns the path.
    pub fn save(&mut self) -> PathBuf {
        self.ok(&["SAVE"]);
        self.dir.path().join("dump.rdb")
    }

    /// Ends the server as SIGKILL does, and leaves its directory.
    pub fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let empty = tempfile::tempdir().unwrap();
        std::mem::replace(&mut self.dir, empty)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.dir).finish()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
