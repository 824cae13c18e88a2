//! Which bucket, below which prefix, and how to reach it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::{Error, Result};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path as Location;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

/// How long is waited for a store, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For one answer, all of it. `AWS_TIMEOUT`, `GOOGLE_TIMEOUT` and `AZURE_TIMEOUT`, as `90s`, say otherwise.
    pub answer: Duration,
    /// How long a request is tried again that failed by the network or by the store: no answer, 5xx, 429.
    pub retry: Duration,
    /// How long a lock outlives a holder that is gone without saying so. It is renewed four times as often.
    pub lease: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(60),
            retry: Duration::from_secs(60),
            lease: Duration::from_secs(60),
        }
    }
}

/// Pauses between attempts begin with the first and end with the second.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LAST: Duration = Duration::from_secs(10);
/// Attempts of one request; the time ends them before.
const ATTEMPTS_MAX: usize = 1000;
/// The whole way to a server that is there.
const CONNECT: Duration = Duration::from_secs(5);

/// Whose store it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    Amazon,
    Google,
    Azure,
}

/// A place in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    provider: Provider,
    bucket: String,
    /// What all names of objects begin with; may be empty.
    pub(crate) prefix: Location,
    /// The URL, as paths begin with it.
    pub(crate) root: PathBuf,
}

/// Whether it names a store of objects and no directory: whether it begins with `s3://`, `gs://` or `az://`.
pub fn is_url(text: &str) -> bool {
    provider_of(text).is_some()
}

fn provider_of(url: &str) -> Option<(Provider, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let provider = match scheme {
        "s3" => Provider::Amazon,
        "gs" => Provider::Google,
        "az" => Provider::Azure,
        _ => return None,
    };
    Some((provider, rest))
}

impl Place {
    /// What `url` names: `s3://bucket/prefix`.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let refuse = |why: &str| {
            let message = format!("'{}' names no place in a bucket: {why}", url.escape_debug());
            Error::invalid_argument(message)
        };
        let (provider, rest) = provider_of(url)
            .ok_or_else(|| refuse("it begins with none of s3://, gs:// and az://"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(is_plain) {
            return Err(refuse("it has no name of a bucket"));
        }
        if prefix.starts_with('/') {
            return Err(refuse("a part of the prefix is empty"));
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let prefix = Location::parse(prefix).map_err(|error| refuse(&error.to_string()))?;
        if prefix
            .parts()
            .any(|part| part.as_ref().contains(['?', '#', '%']))
        {
            return Err(refuse("a prefix has no '?', '#' or '%'"));
        }
        let scheme = url.split(':').next().unwrap_or_default();
        let mut root = format!("{scheme}://{bucket}");
        for part in prefix.parts() {
            root.push('/');
            root.push_str(part.as_ref());
        }
        Ok(Self {
            provider,
            bucket: bucket.to_owned(),
            prefix,
            root: PathBuf::from(root),
        })
    }

    /// The store, with what `settings` say of it, named as the variables of its provider's own tools. Asks it nothing.
    ///
    /// # Errors
    /// `InvalidArgument` of settings.
    pub(crate) fn connect(
        &self,
        settings: impl IntoIterator<Item = (String, String)>,
        limits: &Limits,
    ) -> Result<Arc<dyn ObjectStore>> {
        // One that the program chose before is taken as it is.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = ClientOptions::new()
            .with_timeout(limits.answer)
            .with_connect_timeout(CONNECT);
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: PAUSE_FIRST,
                max_backoff: PAUSE_LAST,
                base: 2.0,
            },
            max_retries: ATTEMPTS_MAX,
            retry_timeout: limits.retry,
        };
        let settings = settings.into_iter();
        let settings = settings.map(|(name, value)| (name.to_ascii_lowercase(), value));
        let built = match self.provider {
            Provider::Amazon => amazon(&self.bucket, settings, client, retry),
            Provider::Google => google(&self.bucket, settings, client, retry),
            Provider::Azure => azure(&self.bucket, settings, client, retry),
        };
        built.map_err(|error| {
            let message = format!("the settings of the store are not understood: {error}");
            Error::invalid_argument(message).with_file(&self.root)
        })
    }
}

type Built = object_store::Result<Arc<dyn ObjectStore>>;

/// Plain HTTP is spoken where an endpoint says so: who writes `http://` means it.
fn is_plain_http(value: &str) -> bool {
    value.starts_with("http://")
}

fn amazon(
    bucket: &str,
    settings: impl Iterator<Item = (String, String)>,
    client: ClientOptions,
    retry: RetryConfig,
) -> Built {
    use AmazonS3ConfigKey::{Endpoint, S3Endpoint};
    let mut builder = AmazonS3Builder::new()
        .with_client_options(client)
        .with_retry(retry);
    for (name, value) in settings.filter(|(name, _)| name.starts_with("aws_")) {
        let Ok(key) = name.parse() else { continue };
        if matches!(key, Endpoint | S3Endpoint) && is_plain_http(&value) {
            builder = builder.with_allow_http(true);
        }
        builder = builder.with_config(key, value);
    }
    Ok(Arc::new(builder.with_bucket_name(bucket).build()?))
}

fn google(
    bucket: &str,
    settings: impl Iterator<Item = (String, String)>,
    client: ClientOptions,
    retry: RetryConfig,
) -> Built {
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_client_options(client.with_allow_http(true))
        .with_retry(retry);
    for (name, value) in settings.filter(|(name, _)| name.starts_with("google_")) {
        let key: object_store::Result<GoogleConfigKey> = name.parse();
        if let Ok(key) = key {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Arc::new(builder.with_bucket_name(bucket).build()?))
}

fn azure(
    bucket: &str,
    settings: impl Iterator<Item = (String, String)>,
    client: ClientOptions,
    retry: RetryConfig,
) -> Built {
    let mut builder = MicrosoftAzureBuilder::new()
        .with_client_options(client)
        .with_retry(retry);
    for (name, value) in settings.filter(|(name, _)| name.starts_with("azure_")) {
        let key: object_store::Result<AzureConfigKey> = name.parse();
        let Ok(key) = key else { continue };
        if matches!(key, AzureConfigKey::Endpoint) && is_plain_http(&value) {
            builder = builder.with_allow_http(true);
        }
        builder = builder.with_config(key, value);
    }
    Ok(Arc::new(builder.with_container_name(bucket).build()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_a_scheme_a_bucket_and_a_prefix() {
        for (url, provider, bucket, prefix, root) in [
            ("s3://b", Provider::Amazon, "b", "", "s3://b"),
            ("s3://b/", Provider::Amazon, "b", "", "s3://b"),
            (
                "gs://a.b-c/x",
                Provider::Google,
                "a.b-c",
                "x",
                "gs://a.b-c/x",
            ),
            ("az://b/x/y/", Provider::Azure, "b", "x/y", "az://b/x/y"),
        ] {
            let place = Place::parse(url).unwrap();
            assert_eq!(
                (place.provider, &*place.bucket),
                (provider, bucket),
                "{url}"
            );
            assert_eq!(place.prefix.as_ref(), prefix, "{url}");
            assert_eq!(place.root, PathBuf::from(root), "{url}");
        }
        for url in [
            "",
            "s3:",
            "s3:/b",
            "s3://",
            "s3:///x",
            "s4://b",
            "s3://b c/x",
            "s3://u@b/x",
            "s3://b//x",
            "s3://b/../x",
            "s3://b/x?y",
            "/data/b",
        ] {
            let error = Place::parse(url).unwrap_err();
            let message = error.to_string();
            assert!(
                message.contains("names no place in a bucket"),
                "{url}: {message}"
            );
        }
    }

    #[test]
    fn directories_are_no_urls() {
        assert!(is_url("s3://b/x") && is_url("gs://b") && is_url("az://b"));
        for dir in ["/data", "data/s3", "s3", "file:///data", "S3"] {
            assert!(!is_url(dir), "{dir}");
        }
    }
}
