//! What the configuration says of TLS: files of certificates and keys, who must show a certificate, versions, sessions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin_fs::{Clock, Env};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use crate::config::Config;

/// Longest file of certificates or of a key.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Files of a directory of certificates.
const FILES_MAX: usize = 4_096;
/// Sessions that are kept where the configuration sets no bound.
const SESSIONS: usize = 20_480;

/// The environment's clock.
#[derive(Debug)]
struct Time(Arc<dyn Clock>);

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        let now: Duration = self.0.unix_time();
        Some(UnixTime::since_unix_epoch(now))
    }
}

/// The settings of sessions; `None` where nothing listens for them.
///
/// # Errors
/// A sentence.
pub(crate) fn load(config: &Config, env: &Env) -> Result<Option<Arc<ServerConfig>>, String> {
    if config.number("tls-port") == 0 {
        return Ok(None);
    }
    let chain = certificates(env, Path::new(config.get("tls-cert-file")), "tls-cert-file")?;
    let key = key(config, env)?;
    let provider = Arc::new(ring::default_provider());
    let versions = versions(config.get("tls-protocols"))?;
    let time = Arc::new(Time(Arc::clone(&env.clock)));
    let builder = ServerConfig::builder_with_details(Arc::clone(&provider), time);
    let builder = builder
        .with_protocol_versions(&versions)
        .map_err(|error| error.to_string())?;
    let builder = match verifier(config, env, provider)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut settings = builder
        .with_single_cert(chain, key)
        .map_err(|error| format!("tls-cert-file and tls-key-file: {error}"))?;
    settings.ignore_client_order = config.get("tls-prefer-server-ciphers") == "yes";
    if config.get("tls-session-caching") == "no" {
        settings.session_storage = Arc::new(NoServerSessionStorage {});
        settings.send_tls13_tickets = 0;
    } else {
        let sessions = usize::try_from(config.number("tls-session-cache-size"));
        let sessions = sessions.ok().filter(|most| *most > 0).unwrap_or(SESSIONS);
        settings.session_storage = ServerSessionMemoryCache::new(sessions);
    }
    Ok(Some(Arc::new(settings)))
}

fn read(env: &Env, path: &Path, name: &str) -> Result<Vec<u8>, String> {
    if path.as_os_str().is_empty() {
        return Err(format!("No {name} configured!"));
    }
    let bytes = env.files.read_file(path, FILE_BYTES_MAX);
    bytes.map_err(|error| format!("{name}: {error}"))
}

fn certificates(
    env: &Env,
    path: &Path,
    name: &str,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = read(env, path, name)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| format!("{name} {}: {error}", path.display()))?;
    match found.is_empty() {
        true => Err(format!("{name} {}: no certificate in it", path.display())),
        false => Ok(found),
    }
}

fn key(config: &Config, env: &Env) -> Result<PrivateKeyDer<'static>, String> {
    let path = Path::new(config.get("tls-key-file"));
    let bytes = read(env, path, "tls-key-file")?;
    let marks = |mark: &[u8]| bytes.windows(mark.len()).any(|it| it == mark);
    if marks(b"BEGIN ENCRYPTED PRIVATE KEY") || marks(b"4,ENCRYPTED") {
        return Err(format!(
            "tls-key-file {}: the key is encrypted, which is not read; give it without a password",
            path.display()
        ));
    }
    if !config.get("tls-key-file-pass").is_empty() {
        return Err("tls-key-file-pass: encrypted keys are not read".to_owned());
    }
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| format!("tls-key-file {}: {error}", path.display()))
}

fn versions(wanted: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    if wanted.trim().is_empty() {
        return Ok(vec![&TLS12, &TLS13]);
    }
    let mut versions = Vec::new();
    for word in wanted.split_whitespace() {
        match word.to_ascii_lowercase().as_str() {
            "tlsv1.2" => versions.push(&TLS12),
            "tlsv1.3" => versions.push(&TLS13),
            // Configurations name them; nobody should speak them.
            "tlsv1" | "tlsv1.1" => {}
            _ => {
                return Err(
                    "Invalid tls-protocols specified. Use a combination of 'TLSv1', 'TLSv1.1', \
                     'TLSv1.2' and 'TLSv1.3'."
                        .to_owned(),
                );
            }
        }
    }
    match versions.is_empty() {
        true => Err("tls-protocols: only TLSv1.2 and TLSv1.3 are spoken".to_owned()),
        false => Ok(versions),
    }
}

/// Who checks clients' certificates; `None` where clients need none.
fn verifier(
    config: &Config,
    env: &Env,
    provider: Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    let wanted = config.get("tls-auth-clients");
    if wanted == "no" {
        return Ok(None);
    }
    let roots = Arc::new(roots(config, env)?);
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots, provider);
    if wanted == "optional" || drumlin_base::bug!("redis-certificate-optional") {
        builder = builder.allow_unauthenticated();
    }
    let verifier = builder.build();
    verifier.map(Some).map_err(|error| error.to_string())
}

fn roots(config: &Config, env: &Env) -> Result<RootCertStore, String> {
    let (file, dir) = (
        config.get("tls-ca-cert-file"),
        config.get("tls-ca-cert-dir"),
    );
    if file.is_empty() && dir.is_empty() {
        return Err(
            "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients \
             is enabled!"
                .to_owned(),
        );
    }
    let mut roots = RootCertStore::empty();
    if !file.is_empty() {
        let found = certificates(env, Path::new(file), "tls-ca-cert-file")?;
        roots.add_parsable_certificates(found);
    }
    if !dir.is_empty() {
        let listed = env.files.list(Path::new(dir));
        let listed = listed.map_err(|error| format!("tls-ca-cert-dir: {error}"))?;
        if listed.len() > FILES_MAX {
            return Err(format!(
                "tls-ca-cert-dir {dir}: more than {FILES_MAX} files"
            ));
        }
        for name in listed {
            // Such directories have other files, too.
            let found = certificates(env, &Path::new(dir).join(name), "tls-ca-cert-dir");
            roots.add_parsable_certificates(found.unwrap_or_default());
        }
    }
    match roots.is_empty() {
        true => Err("tls-ca-cert-file, tls-ca-cert-dir: no usable certificate in them".to_owned()),
        false => Ok(roots),
    }
}
