//! The store of a configuration.

use std::path::Path;

use drumlin::{Options, Result};
use drumlin_fs::Env;
use drumlin_redis_store::{Store, StoreOptions};

use crate::config::Config;

/// Opens the store in `dir`, with the budget that `maxmemory` says.
///
/// # Errors
/// The engine's.
pub(crate) fn open_store(config: &Config, env: &Env) -> Result<Store> {
    let budget = usize::try_from(config.number("maxmemory"))
        .ok()
        .filter(|bytes| *bytes > 0);
    let engine = Options {
        env: env.clone(),
        memory_budget: budget,
        ..Options::default()
    };
    Store::open(Path::new(config.get("dir")), StoreOptions { engine })
}
