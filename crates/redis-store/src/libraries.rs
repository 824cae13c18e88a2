//! The libraries of functions that a store keeps, as texts.

use drumlin::{ReadOptions, Result};

use crate::families::FamilyName;
use crate::keyspace::Keyspace;
use crate::store::Store;

/// In front of the library's name, in the default family.
const PREFIX: &[u8] = b"library ";
/// The first name that has not that prefix.
const AFTER: &[u8] = b"library!";

impl Store {
    /// The libraries that were stored: names and codes, by name.
    ///
    /// # Errors
    /// Of the engine.
    pub fn libraries(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let reads = ReadOptions {
            lower_bound: Some(PREFIX.to_vec()),
            upper_bound: Some(AFTER.to_vec()),
            ..ReadOptions::default()
        };
        let mut iter = self.db().iter(reads);
        iter.seek_to_first();
        let mut libraries = Vec::new();
        while iter.valid() {
            let name = iter.key().get(PREFIX.len()..).unwrap_or_default();
            libraries.push((name.to_vec(), iter.value().to_vec()));
            iter.next();
        }
        iter.status()?;
        Ok(libraries)
    }
}

impl Keyspace<'_> {
    /// Stores a library, or deletes it.
    pub fn set_library(&mut self, name: &[u8], code: Option<&[u8]>) {
        let key = [PREFIX, name].concat();
        self.overlay()
            .set(FamilyName::Default, key, code.map(<[u8]>::to_vec));
    }
}
