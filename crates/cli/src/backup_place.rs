//! Where backups are: a directory, or a place in a bucket.

use std::path::PathBuf;

use clap::Args;
use drumlin::{Backups, Env};

use crate::failure::{Failure, Outcome};

/// The place of backups on the command line.
#[derive(Debug, Args)]
pub(crate) struct BackupPlace {
    /// The directory of backups, or its URL: s3://BUCKET/PREFIX, gs://.., az://.., file:///DIR.
    pub(crate) dir: PathBuf,
    /// How long a request to a bucket is tried again that the network or the store fails.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    retry: u32,
}

impl BackupPlace {
    /// The backups there. Nothing is looked at yet.
    pub(crate) fn open(&self) -> Outcome<Backups> {
        let text = self.dir.to_str().unwrap_or_default();
        match text.split_once("://") {
            None => Ok(Backups::new(&self.dir, Env::system())),
            Some(("file", dir)) if dir.starts_with('/') => Ok(Backups::new(dir, Env::system())),
            Some(("file", _)) => {
                let message = "file:// is followed by the whole path of a directory: file:///DIR";
                Err(Failure::Usage(message.to_owned()))
            }
            Some(("s3" | "gs" | "az", _)) => in_bucket(text, self.retry),
            Some((scheme, _)) => Err(Failure::Usage(format!(
                "'{}://' is no place for backups; there are s3://, gs://, az:// and file://",
                scheme.escape_debug()
            ))),
        }
    }
}

#[cfg(feature = "object-storage")]
fn in_bucket(url: &str, retry_seconds: u32) -> Outcome<Backups> {
    use std::sync::Arc;
    use std::time::Duration;

    use drumlin_object_store::{Limits, ObjectFileSystem};

    let limits = Limits {
        retry: Duration::from_secs(retry_seconds.into()),
        ..Limits::default()
    };
    let bucket = ObjectFileSystem::from_env(url, &limits).map_err(Failure::Backup)?;
    let root = bucket.root().to_owned();
    Ok(Backups::new(
        root,
        Env::system().with_files(Arc::new(bucket)),
    ))
}

#[cfg(not(feature = "object-storage"))]
fn in_bucket(url: &str, _: u32) -> Outcome<Backups> {
    Err(Failure::Usage(format!(
        "{url}: this drumlin was built without the feature `object-storage`"
    )))
}
