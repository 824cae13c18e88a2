//! The flags of `drumlin mongo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The server of MongoDB's protocol.
#[derive(Clone, Debug, Args)]
pub(crate) struct Mongo {
    /// Directory of the data; made if it is missing. Default: --db.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Port to listen at; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 27017)]
    pub(crate) port: u16,
    /// Address to listen at. Without --auth another one than the loopback lets everybody in.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) bind: core::net::IpAddr,
    /// Clients have to say who they are; until there is a user, the first may be made by anybody.
    #[arg(long)]
    pub(crate) auth: bool,
    /// PEM file of the server's certificate, those that it was signed by, and its key. Connections then speak TLS.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_certificate_key_file: Option<PathBuf>,
    /// PEM file of the certificates that sign those of clients: who shows none of them is refused.
    #[arg(long, value_name = "FILE", requires = "tls_certificate_key_file")]
    pub(crate) tls_ca_file: Option<PathBuf>,
    /// Clients may do without a certificate; one that is shown has to be right.
    #[arg(long, requires = "tls_ca_file")]
    pub(crate) tls_allow_connections_without_certificates: bool,
    /// Which connections speak TLS: all, or those that begin so.
    #[arg(
        long,
        value_enum,
        default_value = "require",
        requires = "tls_certificate_key_file"
    )]
    pub(crate) tls_mode: TlsMode,
    /// Port for Prometheus, at the same address; 0 takes a free one. Whoever reaches it reads the counters.
    #[arg(long, value_name = "PORT")]
    pub(crate) metrics_port: Option<u16>,
    /// Memory budget in bytes. Default: a quarter of the machine's memory.
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory: Option<usize>,
}

/// Which connections of `drumlin mongo` speak TLS.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TlsMode {
    /// Those that begin so.
    Allow,
    /// All; others are closed.
    Require,
}
