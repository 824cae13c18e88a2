//! Certificates, keys, who must show a certificate, versions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin_fs::{Clock, Env};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::time_provider::TimeProvider;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

/// Longest file of certificates or of a key.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Files of a directory of certificates.
const FILES_MAX: usize = 4_096;

/// A file or a directory, and the option that names it.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The option, for errors.
    pub option: &'a str,
    /// The path; empty where the option is not set.
    pub path: &'a Path,
}

/// Whose certificates are looked at.
#[derive(Clone, Debug)]
pub enum Clients {
    /// Clients need none and are not asked for one.
    Any,
    /// A client that shows one shows one of these.
    Shown(RootCertStore),
    /// Every client shows one of these.
    Known(RootCertStore),
}

/// What sessions are made of.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The server's certificate, then those it was signed by.
    pub chain: Vec<CertificateDer<'static>>,
    /// The certificate's key.
    pub key: PrivateKeyDer<'static>,
    /// See [`Clients`].
    pub clients: Clients,
    /// Versions that are spoken.
    pub versions: &'a [&'static SupportedProtocolVersion],
}

/// The environment's clock.
#[derive(Debug)]
struct Time(Arc<dyn Clock>);

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        let now: Duration = self.0.unix_time();
        Some(UnixTime::since_unix_epoch(now))
    }
}

/// The settings of sessions.
///
/// # Errors
/// A sentence: a key that is not the certificate's, roots that are of no use.
pub fn settings(env: &Env, wanted: Wanted<'_>) -> Result<ServerConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let time = Arc::new(Time(Arc::clone(&env.clock)));
    let builder = ServerConfig::builder_with_details(Arc::clone(&provider), time);
    let builder = builder
        .with_protocol_versions(wanted.versions)
        .map_err(|error| error.to_string())?;
    let (roots, is_optional) = match wanted.clients {
        Clients::Any => (None, true),
        Clients::Shown(roots) => (Some(roots), true),
        Clients::Known(roots) => (Some(roots), drumlin_base::bug!("tls-certificates-optional")),
    };
    let builder = match roots {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            let mut verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            if is_optional {
                verifier = verifier.allow_unauthenticated();
            }
            let verifier = verifier.build().map_err(|error| error.to_string())?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    builder
        .with_single_cert(wanted.chain, wanted.key)
        .map_err(|error| error.to_string())
}

fn read(env: &Env, file: Named<'_>) -> Result<Vec<u8>, String> {
    if file.path.as_os_str().is_empty() {
        return Err(format!("No {} configured!", file.option));
    }
    let bytes = env.files.read_file(file.path, FILE_BYTES_MAX);
    bytes.map_err(|error| format!("{}: {error}", file.option))
}

/// The certificates of a PEM file, at least one.
///
/// # Errors
/// A sentence.
pub fn certificates(env: &Env, file: Named<'_>) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = read(env, file)?;
    let place = || format!("{} {}", file.option, file.path.display());
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| format!("{}: {error}", place()))?;
    match found.is_empty() {
        true => Err(format!("{}: no certificate in it", place())),
        false => Ok(found),
    }
}

/// The key of a PEM file, which is not encrypted.
///
/// # Errors
/// A sentence.
pub fn key(env: &Env, file: Named<'_>) -> Result<PrivateKeyDer<'static>, String> {
    let bytes = read(env, file)?;
    let place = format!("{} {}", file.option, file.path.display());
    let marks = |mark: &[u8]| bytes.windows(mark.len()).any(|it| it == mark);
    if marks(b"BEGIN ENCRYPTED PRIVATE KEY") || marks(b"4,ENCRYPTED") {
        return Err(format!(
            "{place}: the key is encrypted, which is not read; give it without a password"
        ));
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| format!("{place}: {error}"))
}

/// The certificates that sign those of clients, from a file, a directory or both; a path that is empty has none.
///
/// # Errors
/// A sentence, where there are none.
pub fn roots(env: &Env, file: Named<'_>, dir: Named<'_>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if !file.path.as_os_str().is_empty() {
        roots.add_parsable_certificates(certificates(env, file)?);
    }
    if !dir.path.as_os_str().is_empty() {
        let listed = env.files.list(dir.path);
        let listed = listed.map_err(|error| format!("{}: {error}", dir.option))?;
        if listed.len() > FILES_MAX {
            return Err(format!(
                "{} {}: more than {FILES_MAX} files",
                dir.option,
                dir.path.display()
            ));
        }
        for name in listed {
            // Such directories have other files, too.
            let path = &dir.path.join(name);
            let found = certificates(env, Named { path, ..dir });
            roots.add_parsable_certificates(found.unwrap_or_default());
        }
    }
    match roots.is_empty() {
        true => Err(format!(
            "{}, {}: no usable certificate in them",
            file.option, dir.option
        )),
        false => Ok(roots),
    }
}
