//! Goal: TLS is spoken where it is asked for, and nothing else where it is required. Method: a server at a socket, clients of rustls with
//! certificates made for the test, plain clients, garbage.

#![expect(
    clippy::disallowed_methods,
    reason = "the clients of a server at a socket are no part of it: they have sockets, files and threads of their own"
)]

use core::net::{Ipv4Addr, SocketAddr};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use drumlin_doc::{Builder, Document, Value};
use drumlin_fs::Env;
use drumlin_fs::net::{Address, PosixNetwork};
use drumlin_mongo::{Server, ServerOptions, Stopper, TlsMode, TlsOptions};
use drumlin_testkit::redis::Link;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The files of an authority: its certificate in `ca.pem`, a server's in `server.pem`, a client's in `client.pem`, with their keys.
fn authority(dir: &Path) {
    std::fs::create_dir_all(dir).expect("a directory");
    let mut params = CertificateParams::new(Vec::new()).expect("params");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let issuer = CertifiedIssuer::self_signed(params, key).expect("signs itself");
    std::fs::write(dir.join("ca.pem"), issuer.as_ref().pem()).expect("writes");
    for name in ["server", "client"] {
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("params");
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &issuer).expect("signs");
        let both = signed.pem() + &key.serialize_pem();
        std::fs::write(dir.join(name).with_extension("pem"), both).expect("writes");
    }
}

fn client(dir: &Path, identity: Option<&Path>) -> Arc<ClientConfig> {
    let certificates = |path: PathBuf| {
        let found = CertificateDer::pem_file_iter(path).expect("a file");
        found.map(|it| it.expect("a certificate"))
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(dir.join("ca.pem")));
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .expect("versions");
    let builder = builder.with_root_certificates(roots);
    Arc::new(match identity {
        None => builder.with_no_client_auth(),
        Some(dir) => {
            let file = dir.join("client.pem");
            let key = PrivateKeyDer::from_pem_file(&file).expect("a key");
            let chain = certificates(file).collect();
            builder.with_client_auth_cert(chain, key).expect("a pair")
        }
    })
}

/// A connection that waits.
struct Socket {
    link: Link,
    heard: Vec<u8>,
}

impl Read for Socket {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        while self.heard.is_empty() {
            match self.link.receive() {
                Some(bytes) => self.heard = bytes,
                None => return Ok(0),
            }
        }
        let len = space.len().min(self.heard.len());
        space[..len].copy_from_slice(&self.heard[..len]);
        self.heard.drain(..len);
        Ok(len)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.link.send(bytes) {
            true => Ok(bytes.len()),
            false => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A server in a thread, which ends with it.
struct Running {
    address: Address,
    stopper: Stopper,
    thread: Option<thread::JoinHandle<()>>,
}

impl Running {
    fn start(dir: &Path, mode: TlsMode, ca: bool, is_optional: bool) -> Self {
        let options = ServerOptions {
            dir: dir.join(format!("data-{mode:?}-{ca}-{is_optional}")),
            listen: Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            auth: false,
            tls: Some(TlsOptions {
                mode,
                certificate_key_file: dir.join("server.pem"),
                ca_file: ca.then(|| dir.join("ca.pem")),
                allow_connections_without_certificates: is_optional,
            }),
            metrics: None,
            memory: Some(4 << 20),
            env: Env::system(),
            network: Arc::new(PosixNetwork::new()),
        };
        let server = Server::open(options).expect("opens");
        let address = server.address();
        let stopper = server.stopper();
        let thread = Some(thread::spawn(move || server.run().expect("ends well")));
        Self {
            address,
            stopper,
            thread,
        }
    }

    fn plain(&self) -> Socket {
        Socket {
            link: Link::to(&self.address),
            heard: Vec::new(),
        }
    }

    fn secure(&self, config: &Arc<ClientConfig>) -> StreamOwned<ClientConnection, Socket> {
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::clone(config), name).expect("a session");
        StreamOwned::new(session, self.plain())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop().expect("wakes");
        let ended = self.thread.take().map(thread::JoinHandle::join);
        assert!(ended.is_some_and(|ended| ended.is_ok()) || thread::panicking());
    }
}

/// A message that is a command.
fn ping() -> Vec<u8> {
    let mut body = Builder::new();
    body.i32("ping", 1).str("$db", "admin");
    let body = body.finish();
    let mut bytes = u32::try_from(body.len() + 21)
        .expect("small")
        .to_le_bytes()
        .to_vec();
    for number in [7u32, 0, 2013, 0] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.push(0);
    [bytes, body].concat()
}

/// Whether a reply comes, and not the end.
fn is_answered(stream: &mut impl Read) -> bool {
    let mut head = [0; 21];
    if stream.read_exact(&mut head).is_err() {
        return false;
    }
    let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let mut body = vec![0; len - head.len()];
    stream.read_exact(&mut body).expect("a whole reply");
    Document(&body).get("ok").and_then(Value::as_whole) == Some(1)
}

#[test]
fn connections_without_tls_are_closed_where_it_is_required() {
    let dir = tempfile::tempdir().expect("a directory");
    authority(dir.path());
    for mode in [TlsMode::Require, TlsMode::Allow] {
        let server = Running::start(dir.path(), mode, false, false);
        let mut plain = server.plain();
        plain.write_all(&ping()).expect("sends");
        assert_eq!(is_answered(&mut plain), mode == TlsMode::Allow);
        let mut secure = server.secure(&client(dir.path(), None));
        // Several messages at once, and more than a record holds.
        secure.write_all(&ping().repeat(400)).expect("sends");
        for _ in 0..400 {
            assert!(is_answered(&mut secure));
        }
    }
}

#[test]
fn a_greeting_may_come_byte_by_byte_and_garbage_ends_it() {
    let dir = tempfile::tempdir().expect("a directory");
    authority(dir.path());
    let server = Running::start(dir.path(), TlsMode::Allow, false, false);
    let mut secure = server.secure(&client(dir.path(), None));
    let mut hello = Vec::new();
    secure
        .conn
        .write_tls(&mut hello)
        .expect("a vector takes all");
    for byte in hello {
        secure.sock.write_all(&[byte]).expect("sends");
    }
    secure.write_all(&ping()).expect("sends");
    assert!(is_answered(&mut secure));
    let mut garbage = server.plain();
    garbage
        .write_all(&[22, 3, 1, 0, 5, 9, 9, 9, 9, 9])
        .expect("sends");
    assert!(!is_answered(&mut garbage));
    // Two bytes and the end are neither.
    let mut short = server.plain();
    short.write_all(&[22, 3]).expect("sends");
    drop(short);
    secure.write_all(&ping()).expect("sends");
    assert!(is_answered(&mut secure));
}

#[test]
fn clients_show_certificates_where_they_have_to() {
    let dir = tempfile::tempdir().expect("a directory");
    let (own, strange) = (dir.path().join("own"), dir.path().join("strange"));
    authority(&own);
    authority(&strange);
    for is_optional in [false, true] {
        let server = Running::start(&own, TlsMode::Require, true, is_optional);
        for (identity, is_let_in) in [
            (Some(own.as_path()), true),
            (None, is_optional),
            (Some(strange.as_path()), false),
        ] {
            let mut secure = server.secure(&client(&own, identity));
            let sent = secure.write_all(&ping());
            assert_eq!(sent.is_ok() && is_answered(&mut secure), is_let_in);
        }
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    authority(dir.path());
    let (own, ca) = (dir.path().join("server.pem"), dir.path().join("ca.pem"));
    let missing = dir.path().join("missing.pem");
    for (file, ca_file, text) in [
        (&missing, None, "tls-certificate-key-file: "),
        (&ca, None, "tls-certificate-key-file "),
        (&own, Some(missing.clone()), "tls-ca-file: "),
    ] {
        let options = ServerOptions {
            dir: dir.path().join("data"),
            listen: Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            auth: false,
            tls: Some(TlsOptions {
                mode: TlsMode::Require,
                certificate_key_file: file.clone(),
                ca_file,
                allow_connections_without_certificates: false,
            }),
            metrics: None,
            memory: Some(4 << 20),
            env: Env::system(),
            network: Arc::new(PosixNetwork::new()),
        };
        let error = Server::open(options).expect_err("refused").to_string();
        assert!(error.contains(text), "{error}");
    }
}
