//! Processes of `drumlin redis`, and clients of servers that may be gone.

use core::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use drumlin_fs::net::{Address, Network, PosixNetwork};
use drumlin_fs::{CreateOptions, Env, FileKind};
use drumlin_resp::{ReplyLimits, ReplyParser, Value, encode_command};
use drumlin_testkit::redis::Link;

/// The longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn free_port() -> u16 {
    let any = Address::Tcp("127.0.0.1:0".parse().expect("an address"));
    let listener = PosixNetwork::new().listen(&any, Default::default());
    match listener.expect("listens").local_address() {
        Address::Tcp(address) => address.port(),
        other => panic!("{other} is no TCP address"),
    }
}

/// Commands to a server that may be gone.
pub(crate) struct Client {
    link: Link,
    parser: ReplyParser,
}

impl Client {
    pub(crate) fn connect(port: u16) -> Option<Self> {
        let address = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], port)));
        Some(Self {
            link: Link::try_to(&address)?,
            parser: ReplyParser::new(ReplyLimits::default()),
        })
    }

    /// The replies to lines of words; none when the server is gone.
    pub(crate) fn ask(&mut self, lines: &[&str]) -> Option<Vec<Value>> {
        let mut bytes = Vec::new();
        for line in lines {
            let words: Vec<_> = line.split(' ').collect();
            encode_command(&mut bytes, &words);
        }
        if !self.link.send(&bytes) {
            return None;
        }
        lines.iter().map(|_| self.reply()).collect()
    }

    fn reply(&mut self) -> Option<Value> {
        loop {
            if let Some(value) = self.parser.value().expect("a reply") {
                return Some(value);
            }
            self.parser.push(&self.link.receive()?);
        }
    }
}

pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) | Value::Error(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        other => other.to_string(),
    }
}

pub(crate) fn ask(port: u16, line: &str) -> Option<Value> {
    Client::connect(port)?.ask(&[line])?.pop()
}

/// Waits until `look` finds something.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let clock = Env::system().clock;
    let began = clock.monotonic();
    loop {
        if let Some(found) = look() {
            return found;
        }
        let waited = clock.monotonic().saturating_sub(began);
        assert!(waited < PATIENCE, "{what} does not come");
        clock.sleep(Duration::from_millis(20));
    }
}

/// A process that ends with this.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).spawn().expect("a process"))
    }

    pub(crate) fn signal(&self, name: &str) {
        let mut command = Command::new("kill");
        let done = command.args([name, &self.0.id().to_string()]).status();
        assert!(done.expect("is there").success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn write_file(path: &Path, text: &str) {
    let files = Env::system().files;
    let file = files.create(path, CreateOptions::new(FileKind::Other));
    let mut file = file.expect("a file");
    file.append(text.as_bytes()).expect("is written");
    file.close().expect("is written");
}

pub(crate) fn text_of(port: u16, line: &str) -> String {
    text(&ask(port, line).expect("it is there"))
}

/// A server of ours, and its configuration.
pub(crate) struct Node {
    pub(crate) port: u16,
    file: PathBuf,
    pub(crate) process: Option<Process>,
}

impl Node {
    pub(crate) fn start(dir: &Path, name: &str, more: &str) -> Self {
        let (port, file) = (free_port(), dir.join(format!("{name}.conf")));
        let data = dir.join(name);
        let text = format!(
            "port {port}\ndir {}\nmaxmemory 64mb\n{more}",
            data.display()
        );
        write_file(&file, &text);
        let mut node = Self {
            port,
            file,
            process: None,
        };
        node.begin();
        node
    }

    pub(crate) fn begin(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drumlin"));
        self.process = Some(Process::start(command.arg("redis").arg(&self.file)));
        until("the server", || ask(self.port, "PING"));
    }

    /// Empty where the connection is closed, as the sentinel has it done to all clients when it promotes.
    pub(crate) fn info(&self) -> String {
        let info = ask(self.port, "INFO replication");
        info.map(|it| text(&it)).unwrap_or_default()
    }

    /// The line of the file that says whom it follows.
    pub(crate) fn followed(&self) -> Option<String> {
        let text = Env::system().files.read_file(&self.file, 1 << 20);
        let text = String::from_utf8(text.expect("a file")).expect("text");
        let mut lines = text.lines().filter(|it| it.starts_with("replicaof"));
        lines.next().map(str::to_owned)
    }
}
