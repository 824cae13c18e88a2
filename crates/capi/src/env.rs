//! `rocksdb_env_t`: the system's files or files in memory, and how many threads databases get.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use drumlin::{Env, Result};
use drumlin_ffi::bytes::path_of;
use drumlin_fs::StrictMemFileSystem;

/// What the handle holds.
pub(crate) struct Environment {
    pub(crate) env: Env,
    /// By priority: low, high, bottom. 0 where none was set.
    threads: [AtomicI32; 3],
}

impl Environment {
    fn new(env: Env) -> Self {
        Self {
            env,
            threads: Default::default(),
        }
    }

    /// The threads that were asked for, if any were.
    pub(crate) fn threads(&self) -> Option<usize> {
        let set = self
            .threads
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let all: i32 = set.filter(|count| *count > 0).sum();
        usize::try_from(all).ok().filter(|count| *count > 0)
    }

    fn set(&self, priority: usize, count: i32) {
        self.threads[priority].store(count, Ordering::Relaxed);
    }

    /// RocksDB's environment has one thread of low and one of high priority until told otherwise.
    fn count(&self, priority: usize) -> i32 {
        self.threads[priority].load(Ordering::Relaxed)
    }
}

const LOW: usize = 0;
const HIGH: usize = 1;
const BOTTOM: usize = 2;

pub(crate) mod calls {
    use super::{
        Arc, BOTTOM, CStr, Env, Environment, HIGH, LOW, Result, StrictMemFileSystem, path_of,
    };

    pub(crate) fn create_default_env() -> Environment {
        Environment::new(Env::system())
    }

    pub(crate) fn create_mem_env() -> Environment {
        let files = Arc::new(StrictMemFileSystem::new());
        Environment::new(Env::system().with_files(files))
    }

    pub(crate) fn create_dir_if_missing(env: Option<&Environment>, path: &CStr) -> Result<()> {
        let env = env.map_or_else(Env::system, |env| env.env.clone());
        env.files.create_dir_all(&path_of(path))
    }

    pub(crate) fn env_set_background_threads(env: &Environment, count: i32) {
        env.set(LOW, count);
    }

    pub(crate) fn env_get_background_threads(env: &Environment) -> i32 {
        env.count(LOW)
    }

    pub(crate) fn env_set_low_priority_background_threads(env: &Environment, count: i32) {
        env.set(LOW, count);
    }

    pub(crate) fn env_get_low_priority_background_threads(env: &Environment) -> i32 {
        env.count(LOW)
    }

    pub(crate) fn env_set_high_priority_background_threads(env: &Environment, count: i32) {
        env.set(HIGH, count);
    }

    pub(crate) fn env_get_high_priority_background_threads(env: &Environment) -> i32 {
        env.count(HIGH)
    }

    pub(crate) fn env_set_bottom_priority_background_threads(env: &Environment, count: i32) {
        env.set(BOTTOM, count);
    }

    pub(crate) fn env_get_bottom_priority_background_threads(env: &Environment) -> i32 {
        env.count(BOTTOM)
    }

    /// A database joins its own threads when it is closed, and there are no others.
    pub(crate) fn env_join_all_threads(_env: &Environment) {}

    pub(crate) fn env_lower_thread_pool_io_priority(_env: &Environment) {}

    pub(crate) fn env_lower_high_priority_thread_pool_io_priority(_env: &Environment) {}

    pub(crate) fn env_lower_thread_pool_cpu_priority(_env: &Environment) {}

    pub(crate) fn env_lower_high_priority_thread_pool_cpu_priority(_env: &Environment) {}
}
