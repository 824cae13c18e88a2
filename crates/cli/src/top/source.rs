//! Where a page of figures comes from: an address that serves `/metrics`, or a directory.

use core::net::SocketAddr;
use std::time::Duration;

use drumlin::{Db, Error, ErrorKind, Result};
use drumlin_fs::Env;
use drumlin_fs::net::{
    Address, Connection, Events, Interest, Network, Poller, PosixNetwork, Received, Sent, Token,
};

use crate::args::Place;
use crate::failure::{Failure, Outcome};

/// Longest page that is taken.
const PAGE_BYTES_MAX: usize = 16 << 20;
/// Longest wait for one.
const PATIENCE: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(super) enum Source {
    /// `host:port` and a path.
    Server {
        host: String,
        port: u16,
        path: String,
    },
    /// The database of `--db`, read anew each time.
    Directory(Place),
}

impl Source {
    /// The address `text`: `9121`, `host:9121` or `http://host:9121/metrics`; without one the database of `place`.
    pub(super) fn new(text: Option<&str>, place: &Place) -> Outcome<Self> {
        let Some(text) = text else {
            place.dir()?;
            return Ok(Self::Directory(place.clone()));
        };
        let bad = |why: &str| {
            Failure::Usage(format!(
                "'{text}' is no address of metrics, such as 127.0.0.1:9121: {why}"
            ))
        };
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some((scheme, _)) => return Err(bad(&format!("{scheme} is not spoken, http is"))),
            None => text,
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/metrics"),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host.trim_matches(['[', ']']), port),
            None => ("127.0.0.1", authority),
        };
        let port = port.parse().map_err(|_| bad("there is no port"))?;
        if path.contains([' ', '\r', '\n']) || host.is_empty() {
            return Err(bad("it has blanks, or no host"));
        }
        Ok(Self::Server {
            host: host.to_owned(),
            port,
            path: path.to_owned(),
        })
    }

    /// Its name, for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Server { host, port, path } => format!("http://{host}:{port}{path}"),
            Self::Directory(place) => {
                let dir = place.db.as_deref().unwrap_or_else(|| "".as_ref());
                dir.display().to_string()
            }
        }
    }

    /// Whether what another process keeps in memory is not known.
    pub(super) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    /// A page of the present moment.
    pub(super) fn ask(&self, env: &Env) -> Outcome<String> {
        match self {
            Self::Directory(place) => {
                let opened = Db::open_read_only(place.dir()?, place.options());
                let db = opened.map_err(|error| place.explain(error))?;
                Ok(db.metrics()?.to_prometheus())
            }
            Self::Server { host, port, path } => {
                let page = fetch(env, (host, *port), path);
                let page = page.map_err(|error| error.context(self.name()));
                Ok(page?)
            }
        }
    }
}

fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Io, message)
}

/// The body of the answer to a GET.
fn fetch(env: &Env, (host, port): (&str, u16), path: &str) -> Result<String> {
    let network = PosixNetwork::new();
    let addresses = network.resolve(host)?;
    let mut last = failed("the host has no address");
    for address in addresses {
        let address = Address::Tcp(SocketAddr::new(address, port));
        match Asking::new(env, &network, &address).and_then(|mut it| it.get(host, path)) {
            Ok(answer) => return body(&answer),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// One connection, which is waited for until its time is over.
struct Asking<'a> {
    env: &'a Env,
    connection: Box<dyn Connection>,
    poller: Box<dyn Poller>,
    events: Events,
    until: Duration,
}

impl<'a> Asking<'a> {
    fn new(env: &'a Env, network: &PosixNetwork, address: &Address) -> Result<Self> {
        let poller = network.poller()?;
        let connection = network.connect(address)?;
        poller.register(&*connection, Token(0), Interest::Write)?;
        let mut asking = Self {
            env,
            connection,
            poller,
            events: Events::with_capacity(1),
            until: env.clock.monotonic() + PATIENCE,
        };
        while !asking.connection.connected()? {
            asking.wait(Interest::Write)?;
        }
        Ok(asking)
    }

    fn wait(&mut self, interest: Interest) -> Result<()> {
        let left = self.until.saturating_sub(self.env.clock.monotonic());
        if left.is_zero() {
            return Err(Error::new(
                ErrorKind::TimedOut,
                "no answer within five seconds",
            ));
        }
        self.poller
            .reregister(&*self.connection, Token(0), interest)?;
        self.poller.wait(&mut self.events, Some(left))
    }

    fn get(&mut self, host: &str, path: &str) -> Result<Vec<u8>> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .into_bytes();
        let mut sent = 0;
        while let Some(rest) = request.get(sent..).filter(|rest| !rest.is_empty()) {
            match self.connection.write(rest)? {
                Sent::Bytes(bytes) => sent += bytes,
                Sent::NotNow => self.wait(Interest::Write)?,
            }
        }
        let mut answer = Vec::new();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match self.connection.read(&mut buffer)? {
                Received::Bytes(bytes) => answer.extend(buffer.iter().take(bytes)),
                Received::NotNow => self.wait(Interest::Read)?,
                Received::End => return Ok(answer),
            }
            if answer.len() > PAGE_BYTES_MAX {
                return Err(failed("the page has more than 16 MiB"));
            }
        }
    }
}

/// The body of an answer, in one piece or in chunks.
fn body(answer: &[u8]) -> Result<String> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .ok_or_else(|| failed("this is no answer of HTTP"))?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        return Err(failed(format!("the answer is '{status}'")));
    }
    let is_chunked = head
        .lines()
        .any(|line| line.to_ascii_lowercase().replace(' ', "") == "transfer-encoding:chunked");
    match is_chunked {
        true => unchunked(body).ok_or_else(|| failed("a chunk of the answer is cut")),
        false => Ok(body.to_owned()),
    }
}

/// Chunks: their length in hexadecimal, a line's end, as many bytes, a line's end; one of length 0 is the last.
fn unchunked(mut rest: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (length, after) = rest.split_once("\r\n")?;
        let length = usize::from_str_radix(length.split(';').next()?.trim(), 16).ok()?;
        if length == 0 {
            return Some(body);
        }
        body.push_str(after.get(..length)?);
        rest = after.get(length..)?.strip_prefix("\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Arguments;

    fn place() -> Place {
        let arguments = Arguments::try_parse_from(["drumlin", "--db", "/d", "levels"]);
        arguments.expect("sound arguments").place
    }

    #[test]
    fn addresses_are_read_in_their_forms() {
        let name = |text| {
            Source::new(Some(text), &place())
                .map(|source| source.name())
                .ok()
        };
        for (text, wanted) in [
            ("9121", "http://127.0.0.1:9121/metrics"),
            ("there:9121", "http://there:9121/metrics"),
            ("http://there:1/x/y", "http://there:1/x/y"),
            ("[::1]:7/metrics", "http://::1:7/metrics"),
        ] {
            assert_eq!(name(text).as_deref(), Some(wanted));
        }
        for text in [
            "",
            "there",
            "https://there:1",
            "there:port",
            ":1",
            "a:1/b c",
        ] {
            assert_eq!(name(text), None, "{text}");
        }
        assert_eq!(
            Source::new(None, &place())
                .map(|it| it.name())
                .ok()
                .as_deref(),
            Some("/d")
        );
    }

    #[test]
    fn answers_are_taken_whole_or_in_chunks_and_others_are_told() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n";
        assert_eq!(body(whole).ok().as_deref(), Some("a 1\n"));
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunked = format!("{head}3;x=y\r\na 1\r\n1\r\n\n\r\n0\r\n\r\n");
        assert_eq!(body(chunked.as_bytes()).ok().as_deref(), Some("a 1\n"));
        for bad in [
            "nothing",
            "HTTP/1.1 404 Not Found\r\n\r\n",
            &format!("{head}ff\r\na"),
        ] {
            assert!(body(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
