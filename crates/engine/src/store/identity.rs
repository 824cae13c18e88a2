//! The identity of a store: its directory, how it was opened, and by which process.

use std::path::PathBuf;
use std::sync::OnceLock;

use drumlin_fs::Env;
use drumlin_fs::process::Process;

use crate::options::settings::Options;
use crate::options::vintage::Vintage;
use crate::watch::events::RecoveryReport;

/// See the module. Nothing in it changes once the store is open.
pub(crate) struct Identity {
    /// The number of this store among those opened in this process.
    pub(crate) number: u64,
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) wal_dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) leveldb: bool,
    pub(crate) read_only: bool,
    /// Whether it shows, read-only, what a writer elsewhere goes on to write.
    pub(crate) follows: bool,
    /// The process that opened the database. A forked child may not use it.
    pub(crate) process: Process,
    /// Whether flushes and compactions bypass the page cache (`O_DIRECT`).
    pub(crate) direct_io: bool,
    pub(crate) db_id: String,
    pub(crate) session_id: String,
    /// The oldest engine that must be able to read this store.
    pub(crate) vintage: Vintage,
    /// Set at the end of opening.
    pub(crate) recovered: OnceLock<Recovered>,
}

/// The result of replaying the WALs at open.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) report: RecoveryReport,
    /// The WALs that were replayed, each with how many bytes of it. Empty where they became tables.
    pub(crate) wals: Vec<(u64, u64)>,
}

impl Identity {
    /// Sets the findings of recovery, once.
    pub(crate) fn set_recovered(&self, found: Recovered) {
        let is_first = self.recovered.set(found).is_ok();
        assert!(is_first, "a store is recovered once");
    }

    /// The findings of recovery. Requires: the store is open.
    pub(crate) fn recovered(&self) -> &Recovered {
        let found = self.recovered.get();
        found.expect("opening sets the findings of recovery before anybody has the store")
    }
}
