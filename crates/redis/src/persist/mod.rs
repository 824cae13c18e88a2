//! Values as Redis's files and DUMP payloads have them, to and from the keyspace.
//!
//! [`values`] knows each type both ways, whole or in parts, and [`streams`] streams; [`load`] reads an RDB file into a store, [`export`] writes one
//! from a moment of it.

pub(crate) mod export;
pub(crate) mod load;
mod parts;
mod streams;
pub(crate) mod values;

use std::path::Path;

use drumlin::Result;
use drumlin_fs::Env;

use crate::config::Config;
use crate::opening::open_store;

/// Writes the data of `config`'s `dir`, where no server runs, into the RDB file `path`, which Redis 7.0 and later load. The
/// file is replaced when the new one is whole and durable. Returns the number of keys.
///
/// # Errors
/// `Locked` while a server runs there; `Io`, `NoSpace`; the engine's.
pub fn export_rdb(config: &Config, env: &Env, path: &Path) -> Result<u64> {
    export::export(&open_store(config, env)?, env, path)
}
