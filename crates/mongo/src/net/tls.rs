//! TLS of the server: when it is spoken, and with which certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_fs::Env;
use drumlin_tls::{Clients, Named, Wanted, certificates, key, roots, settings};
use rustls::ServerConfig;
use rustls::version::{TLS12, TLS13};

/// Which connections speak TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Those that begin so.
    Allow,
    /// All; others are closed.
    Require,
}

/// What a server needs for TLS.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// See [`TlsMode`].
    pub mode: TlsMode,
    /// A PEM file of the server's certificate, those that it was signed by, and the key.
    pub certificate_key_file: PathBuf,
    /// A PEM file of the certificates that sign those of clients; `None` where clients are not asked for one.
    pub ca_file: Option<PathBuf>,
    /// Whether clients may do without one even so.
    pub allow_connections_without_certificates: bool,
}

impl TlsOptions {
    /// The settings of sessions, from the files as they are now.
    ///
    /// # Errors
    /// A sentence that begins with the option that it is about.
    pub(crate) fn load(&self, env: &Env) -> Result<Arc<ServerConfig>, String> {
        let own = Named {
            option: "tls-certificate-key-file",
            path: &self.certificate_key_file,
        };
        let named = |option, path| Named { option, path };
        let ca_file = self.ca_file.as_ref();
        let is_lost = drumlin_base::bug!("mongo-clients-unasked");
        let clients = match ca_file.filter(|_| !is_lost) {
            None => Clients::Any,
            Some(file) => {
                let none = named("a directory", Path::new(""));
                let roots = roots(env, named("tls-ca-file", file), none)?;
                match self.allow_connections_without_certificates {
                    true => Clients::Shown(roots),
                    false => Clients::Known(roots),
                }
            }
        };
        let wanted = Wanted {
            chain: certificates(env, own)?,
            key: key(env, own)?,
            clients,
            versions: &[&TLS12, &TLS13],
        };
        let made = settings(env, wanted);
        made.map(Arc::new)
            .map_err(|error| format!("{}: {error}", own.option))
    }
}

/// What a new connection is met with: the mode, and the settings of sessions.
#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    pub(crate) mode: TlsMode,
    pub(crate) settings: Arc<ServerConfig>,
}

/// Bytes that tell a hello of TLS from a message.
const TOLD_BY: usize = 3;

/// Whether a connection begins with a hello of TLS; `None` where too little has come. As a message it would be longer than 65,000
/// bytes, which no greeting of a driver is.
pub(crate) fn is_hello(begin: &[u8]) -> Option<bool> {
    let [record, major, minor] = begin.first_chunk::<TOLD_BY>()?;
    Some((*record, *major) == (22, 3) && *minor > 0)
}
