//! Files a job creates, removed again unless the job succeeds.

use std::fmt;
use std::path::{Path, PathBuf};

use drumlin_base::{Error, Result};
use drumlin_fs::Env;

/// A guard over files being made. Dropping it removes them unless [`Created::keep`] was called.
pub(crate) struct Created {
    env: Env,
    paths: Vec<PathBuf>,
    kept: bool,
}

impl Created {
    /// Guards nothing yet.
    pub(crate) fn new(env: &Env) -> Self {
        Self {
            env: env.clone(),
            paths: Vec::new(),
            kept: false,
        }
    }

    /// Has `create` make the file `path`, and guards it too: one that failed may have left it behind. Where the
    /// name was taken, the file is somebody else's.
    ///
    /// # Errors
    /// Those of `create`.
    pub(crate) fn make<T>(&mut self, path: &Path, create: impl FnOnce() -> Result<T>) -> Result<T> {
        let made = create();
        if !made.as_ref().is_err_and(Error::is_taken) {
            self.paths.push(path.to_path_buf());
        }
        made.map_err(|error| error.with_file(path))
    }

    /// Takes over the files that `other` guards.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.paths.append(&mut other.paths);
    }

    /// Whether no file is guarded.
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Lets the files stay.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        for path in &self.paths {
            if let Err(error) = self.env.files.remove(path)
                && !error.is_not_found()
            {
                // The scan for unknown files at the next open will find it.
                tracing::warn!(%error, path = %path.display(), "cannot remove a failed output");
            }
        }
    }
}

impl fmt::Debug for Created {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Created")
            .field("paths", &self.paths)
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}
