//! What a server is made of, and how it is ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drumlin::Result;
use drumlin_fs::Env;
use drumlin_fs::net::{Network, Waker};

use crate::config::Config;

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The configuration: `dir`, `port`, `bind` and all others.
    pub config: Config,
    /// Files, clock, threads.
    pub env: Env,
    /// Sockets.
    pub network: Arc<dyn Network>,
}

/// Ends a server from another thread, or from the handler of a signal.
#[derive(Clone, Debug)]
pub struct Stopper {
    pub(crate) asked: Arc<AtomicBool>,
    pub(crate) waker: Arc<dyn Waker>,
}

impl Stopper {
    /// Asks the server to end, with everything durable.
    ///
    /// # Errors
    /// Of the waker; the server then ends a tenth of a second later.
    pub fn stop(&self) -> Result<()> {
        self.asked.store(true, Ordering::Release);
        self.waker.wake()
    }
}
