//! Errors of a store of objects as errors of files.

use std::error::Error as StdError;
use std::path::Path;

use drumlin_base::{Error, ErrorKind};
use object_store::Error as StoreError;
use object_store::client::{HttpError, HttpErrorKind};

/// What stores answer when it is the bucket that is missing: S3, Azure, Google.
const NO_BUCKET: [&str; 3] = [
    "NoSuchBucket",
    "ContainerNotFound",
    "The specified bucket does not exist",
];

/// What stores answer to those who may not do it.
const REFUSED: [&str; 2] = ["401 Unauthorized", "403 Forbidden"];

/// The bytes of an answer that are told: a page of HTML, say, is no help.
const TOLD_BYTES_MAX: usize = 600;

/// The error of `op` on `path`.
pub(crate) fn error_of(op: &str, path: &Path, source: &StoreError) -> Error {
    let why = sentence(source);
    let kind = match source {
        _ if NO_BUCKET.iter().any(|said| why.contains(said)) => {
            let message = format!("cannot {op}: there is no such bucket: {why}");
            return Error::invalid_argument(message).with_file(path);
        }
        StoreError::NotFound { .. } => ErrorKind::NotFound,
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => {
            ErrorKind::NotSupported
        }
        StoreError::InvalidPath { .. } => ErrorKind::InvalidArgument,
        _ if is_timeout(source) => ErrorKind::TimedOut,
        _ => ErrorKind::Io,
    };
    let advice = match source {
        _ if REFUSED.iter().any(|said| why.contains(said)) => {
            "the store refuses these credentials: "
        }
        _ if kind == ErrorKind::TimedOut => "the store did not answer in time: ",
        _ => "",
    };
    Error::new(kind, format!("cannot {op}: {advice}{why}")).with_file(path)
}

/// The whole of it, from the outside in, each part once.
fn sentence(source: &StoreError) -> String {
    let mut said = source.to_string();
    let mut below = source.source();
    while let Some(error) = below {
        let more = error.to_string();
        if !said.contains(&more) {
            said.push_str(": ");
            said.push_str(&more);
        }
        below = error.source();
    }
    let mut line: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > TOLD_BYTES_MAX {
        let end = line.floor_char_boundary(TOLD_BYTES_MAX);
        line.truncate(end);
        line.push_str(" ...");
    }
    line
}

fn is_timeout(source: &StoreError) -> bool {
    let mut below: Option<&(dyn StdError + 'static)> = Some(source);
    while let Some(error) = below {
        let http = error.downcast_ref::<HttpError>();
        if http.is_some_and(|http| http.kind() == HttpErrorKind::Timeout) {
            return true;
        }
        below = error.source();
    }
    false
}
