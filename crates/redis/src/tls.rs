//! What the configuration says of TLS: files of certificates and keys, who must show a certificate, versions, sessions.

use std::path::Path;
use std::sync::Arc;

use drumlin_fs::Env;
use drumlin_tls::{Clients, Named, Wanted, certificates, key, roots, settings};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};

use crate::config::Config;

/// Sessions that are kept where the configuration sets no bound.
const SESSIONS: usize = 20_480;

/// The settings of sessions; `None` where nothing listens for them.
///
/// # Errors
/// A sentence.
pub(crate) fn load(config: &Config, env: &Env) -> Result<Option<Arc<ServerConfig>>, String> {
    if config.number("tls-port") == 0 {
        return Ok(None);
    }
    let named = |option| named(config, option);
    let chain = certificates(env, named("tls-cert-file"))?;
    let key = key(env, named("tls-key-file"))?;
    if !config.get("tls-key-file-pass").is_empty() {
        return Err("tls-key-file-pass: encrypted keys are not read".to_owned());
    }
    let wanted = Wanted {
        chain,
        key,
        clients: clients(config, env)?,
        versions: &versions(config.get("tls-protocols"))?,
    };
    let made = settings(env, wanted);
    let mut settings = made.map_err(|error| format!("tls-cert-file and tls-key-file: {error}"))?;
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

fn named<'a>(config: &'a Config, option: &'a str) -> Named<'a> {
    Named {
        option,
        path: Path::new(config.get(option)),
    }
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

/// Who has to show a certificate.
fn clients(config: &Config, env: &Env) -> Result<Clients, String> {
    let wanted = config.get("tls-auth-clients");
    if wanted == "no" {
        return Ok(Clients::Any);
    }
    let (file, dir) = ("tls-ca-cert-file", "tls-ca-cert-dir");
    if config.get(file).is_empty() && config.get(dir).is_empty() {
        return Err(
            "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients \
             is enabled!"
                .to_owned(),
        );
    }
    let roots = roots(env, named(config, file), named(config, dir))?;
    Ok(match wanted {
        "optional" => Clients::Shown(roots),
        _ => Clients::Known(roots),
    })
}
