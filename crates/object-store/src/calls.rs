//! Requests, done on a runtime of their own; whoever asks waits.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};
use object_store::{ObjectStore, Result as StoreResult};
use tokio::runtime::{Builder, Runtime};

use crate::failure::error_of;

/// Requests are mostly waiting; one of the threads may be busy with TLS.
const THREADS: usize = 2;

/// The store and the threads that talk to it. May be used and dropped on any thread, those of other runtimes too.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// `None` once it is dropped.
    runtime: Option<Runtime>,
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Reply<T>(Receiver<StoreResult<T>>);

impl Calls {
    /// # Errors
    /// `Io` when the system gives no threads.
    pub(crate) fn new(connect: impl FnOnce() -> Result<Arc<dyn ObjectStore>>) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("drumlin-objects")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Error::system("start threads", error))?;
        Ok(Self {
            store: connect()?,
            runtime: Some(runtime),
        })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken by drop alone")
    }

    /// Begins a request.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        request: impl Future<Output = StoreResult<T>> + Send + 'static,
    ) -> Reply<T> {
        let (sender, receiver) = sync_channel(1);
        self.runtime().spawn(async move {
            // Nobody may be waiting any more.
            let _ = sender.send(request.await);
        });
        Reply(receiver)
    }

    /// Does a request.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        op: &str,
        path: &Path,
        request: impl Future<Output = StoreResult<T>> + Send + 'static,
    ) -> Result<T> {
        self.start(request).wait(op, path)
    }

    /// Runs `work` on the threads until it says that it is done, every `pause`.
    pub(crate) fn repeat<F>(&self, pause: Duration, work: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.runtime().spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                if work().await {
                    return;
                }
            }
        });
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for its threads would panic on a thread of another runtime.
            runtime.shutdown_background();
        }
    }
}

impl<T> Reply<T> {
    /// Waits for the answer, as the store gives it.
    ///
    /// # Errors
    /// `Io` when the request panicked.
    pub(crate) fn answer(self) -> Result<StoreResult<T>> {
        self.0.recv().map_err(|_| {
            let message = "a request to the store of objects ended without an answer";
            Error::new(ErrorKind::Io, message)
        })
    }

    /// Waits for the answer, but no longer than `most`; whether it came and was no error.
    pub(crate) fn answer_within(self, most: Duration) -> bool {
        matches!(self.0.recv_timeout(most), Ok(Ok(_)))
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// As [`error_of`].
    pub(crate) fn wait(self, op: &str, path: &Path) -> Result<T> {
        let answer = self.answer().map_err(|error| error.with_file(path))?;
        answer.map_err(|error| error_of(op, path, &error))
    }
}
