//! Certificates, and a client over TLS.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_fs::net::Address;
use drumlin_testkit::redis::Link;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

/// An authority and what it has signed, as files in a directory.
pub(crate) struct Authority {
    dir: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// One with a certificate for a server and one for a client.
    pub(crate) fn new(dir: &Path, name: &str) -> Self {
        std::fs::create_dir_all(dir).expect("a directory");
        let mut params = CertificateParams::new(Vec::new()).expect("params");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("signs itself");
        let own = Self {
            dir: dir.to_owned(),
            issuer,
        };
        std::fs::write(own.path("ca.pem"), own.issuer.as_ref().pem()).expect("writes");
        own.sign("server");
        own.sign("client");
        own
    }

    fn sign(&self, name: &str) {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("params");
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("signs");
        let file = |kind: &str| self.path(&format!("{name}.{kind}"));
        std::fs::write(file("pem"), signed.pem()).expect("writes");
        std::fs::write(file("key"), key.serialize_pem()).expect("writes");
    }

    /// A file of its.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The same as a text.
    pub(crate) fn file(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    /// A client that trusts it, in these versions, with a certificate of `identity`'s.
    pub(crate) fn client(
        &self,
        identity: Option<&Self>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        let certificates = |path: &Path| {
            let found = CertificateDer::pem_file_iter(path).expect("a file");
            found.map(|it| it.expect("a certificate"))
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(&self.path("ca.pem")));
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_protocol_versions(versions).expect("versions");
        let builder = builder.with_root_certificates(roots);
        Arc::new(match identity {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let chain = certificates(&own.path("client.pem")).collect();
                let key = PrivateKeyDer::from_pem_file(own.path("client.key")).expect("a key");
                builder.with_client_auth_cert(chain, key).expect("a pair")
            }
        })
    }
}

/// A connection over TLS that waits.
pub(crate) struct Secure {
    session: ClientConnection,
    pub(crate) link: Link,
    heard: Vec<u8>,
    /// The server has said that it ends.
    pub(crate) is_over: bool,
}

impl Secure {
    pub(crate) fn connect(address: &Address, config: &Arc<ClientConfig>) -> Self {
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::clone(config), name);
        let mut session = session.expect("a session");
        session.set_buffer_limit(None);
        Self {
            session,
            link: Link::to(address),
            heard: Vec::new(),
            is_over: false,
        }
    }

    /// What is to go to the server.
    pub(crate) fn encrypted(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.session.writer().write_all(bytes).expect("takes all");
        let mut out = Vec::new();
        while self.session.wants_write() {
            self.session
                .write_tls(&mut out)
                .expect("a vector takes all");
        }
        out
    }

    /// Sends what there is to be sent, and `bytes`.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        let out = self.encrypted(bytes);
        self.link.send(&out);
    }

    /// Says `bytes` and that nothing more comes, in one piece.
    pub(crate) fn say_and_end(&mut self, bytes: &[u8]) {
        let mut out = self.encrypted(bytes);
        self.session.send_close_notify();
        out.extend(self.encrypted(&[]));
        self.link.send(&out);
    }

    /// Takes some bytes from the server.
    fn receive(&mut self) -> Result<(), String> {
        let bytes = self.link.receive().ok_or("the connection is gone")?;
        let mut rest = &bytes[..];
        while !rest.is_empty() && !self.is_over {
            self.session.read_tls(&mut rest).expect("reads");
            let state = self.session.process_new_packets();
            let state = state.map_err(|error| error.to_string())?;
            let from = self.heard.len();
            self.heard.resize(from + state.plaintext_bytes_to_read(), 0);
            let read = self.session.reader().read_exact(&mut self.heard[from..]);
            read.expect("is there");
            self.is_over = state.peer_has_closed();
        }
        Ok(())
    }

    /// Comes to terms with the server, but for what is to be said last.
    pub(crate) fn agree(&mut self) -> Result<(), String> {
        while self.session.is_handshaking() {
            self.say(&[]);
            if self.session.is_handshaking() {
                self.receive()?;
            }
        }
        Ok(())
    }

    /// Comes to terms with the server.
    pub(crate) fn greet(&mut self) -> Result<(), String> {
        self.agree()?;
        self.say(&[]);
        Ok(())
    }

    /// The next `len` bytes that the server says; fewer if it ends.
    pub(crate) fn hear(&mut self, len: usize) -> Result<Vec<u8>, String> {
        while self.heard.len() < len && !self.is_over {
            self.receive()?;
        }
        let len = len.min(self.heard.len());
        Ok(self.heard.drain(..len).collect())
    }

    /// Whether a PING is answered.
    pub(crate) fn ping(&mut self) -> Result<(), String> {
        self.greet()?;
        self.say(b"PING\r\n");
        match self.hear(7)?.as_slice() {
            b"+PONG\r\n" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }
}
