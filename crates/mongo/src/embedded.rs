//! The collections in a process, without a socket.

use std::path::Path;
use std::sync::Arc;

use drumlin::{Options, Result};
use drumlin_doc::{Document, Refusal, validate};
use drumlin_doc_store::{Store, StoreOptions};

use crate::command;
use crate::shared::Shared;

/// A store that runs commands. Cheap to clone; any thread may use it. The directory is a server's, too, once this is dropped.
#[derive(Clone, Debug)]
pub struct Embedded(Arc<Shared>);

impl Embedded {
    /// Opens the store in `dir`, or makes one.
    ///
    /// # Errors
    /// Of [`Store::open`].
    pub fn open(dir: &Path, engine: Options) -> Result<Self> {
        let env = engine.env.clone();
        let store = Store::open(dir, StoreOptions { engine })?;
        Ok(Self(Shared::new(store, env)))
    }

    /// Runs a command, which names its database as `$db`; the reply is a document, `ok: 0` with code and text for an error.
    ///
    /// # Errors
    /// `InvalidBSON` for bytes that are no document.
    pub fn run(&self, command: &[u8]) -> std::result::Result<Vec<u8>, Refusal> {
        validate(command)?;
        Ok(command::run(&self.0, 0, Document(command), &[]))
    }

    /// The collections themselves.
    pub fn store(&self) -> &Store {
        self.0.store()
    }
}
