//! Values as Redis's files and DUMP payloads have them, to and from the keyspace.
//!
//! [`values`] knows each type both ways, whole or in parts; [`load`] reads an RDB file into a store, [`export`] writes one
//! from a moment of it.

pub(crate) mod export;
mod load;
pub(crate) mod values;

use std::path::Path;

use drumlin::Result;
use drumlin_fs::Env;

pub use load::Loaded;
pub(crate) use load::load as load_into;

use crate::config::Config;
use crate::opening::open_store;

/// Loads the RDB file `path` into the data of `config`'s `dir`, where no server runs. A key that is there is replaced. Expired
/// keys and functions are passed over. `tell` is told now and then of what is loaded, and of the bytes of the file.
///
/// Memory: a value comes in parts, so what a batch takes. Time: 10^6 keys a few seconds.
///
/// # Errors
/// `Corruption`, `NotSupported` with the file, the offset, the key and the number of keys that are loaded; `Locked` while a
/// server runs there; the engine's.
pub fn load_rdb(
    config: &Config,
    env: &Env,
    path: &Path,
    tell: &mut dyn FnMut(&Loaded, u64),
) -> Result<Loaded> {
    load::load(&open_store(config, env)?, env, path, tell)
}

/// Writes the data of `config`'s `dir`, where no server runs, into the RDB file `path`, which Redis 7.0 and later load. The
/// file is replaced when the new one is whole and durable. Returns the number of keys.
///
/// # Errors
/// `Locked` while a server runs there; `Io`, `NoSpace`; the engine's.
pub fn export_rdb(config: &Config, env: &Env, path: &Path) -> Result<u64> {
    export::export(&open_store(config, env)?, env, path)
}
