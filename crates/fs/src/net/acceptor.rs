//! A listener that pauses when the process is out of descriptors.
//!
//! A connection that cannot be accepted for want of a descriptor stays in the queue, and its listener stays ready, so
//! a loop that goes on waiting for it never sleeps. The acceptor gives up its interest for [`ACCEPT_PAUSE`] instead;
//! meanwhile the loop serves and closes the connections it has, and so frees descriptors.

use std::time::Duration;

use drumlin_base::Result;

use super::{Connection, Interest, Listener, NetErrorKind, Poller, Token};

/// The length of a pause after an accept failed for want of descriptors or memory.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// See the module. One thread at a time uses it, that of its poller.
#[derive(Debug)]
pub struct Acceptor {
    listener: Box<dyn Listener>,
    token: Token,
    /// By the monotonic clock. While it is set, the listener is not registered.
    paused_until: Option<Duration>,
    pauses: u64,
}

impl Acceptor {
    /// Registers `listener` for reading under `token`.
    ///
    /// # Errors
    /// Those of [`Poller::register`].
    pub fn new(listener: Box<dyn Listener>, poller: &dyn Poller, token: Token) -> Result<Self> {
        poller.register(&*listener, token, Interest::Read)?;
        Ok(Self {
            listener,
            token,
            paused_until: None,
            pauses: 0,
        })
    }

    /// The next connection; `None` when there is none now, or the acceptor pauses. `now` is the monotonic clock's.
    ///
    /// # Errors
    /// Those of [`Listener::accept`] but `OutOfResources`.
    pub fn accept(
        &mut self,
        poller: &dyn Poller,
        now: Duration,
    ) -> Result<Option<Box<dyn Connection>>> {
        if self.paused_until.is_some() {
            return Ok(None);
        }
        let error = match self.listener.accept() {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        if NetErrorKind::of(&error) != NetErrorKind::OutOfResources {
            return Err(error);
        }
        self.pauses += 1;
        if !drumlin_base::bug!("accept-without-pause") {
            poller.deregister(&*self.listener)?;
            self.paused_until = Some(now + ACCEPT_PAUSE);
        }
        Ok(None)
    }

    /// Ends a pause whose time has come. To be called after each wait.
    ///
    /// # Errors
    /// Those of [`Poller::register`]; the pause then goes on.
    pub fn resume(&mut self, poller: &dyn Poller, now: Duration) -> Result<()> {
        if self.paused_until.is_some_and(|until| until <= now) {
            poller.register(&*self.listener, self.token, Interest::Read)?;
            self.paused_until = None;
        }
        Ok(())
    }

    /// The longest wait that ends a pause in time; `None` when there is no pause.
    pub fn wait_at_most(&self, now: Duration) -> Option<Duration> {
        self.paused_until.map(|until| until.saturating_sub(now))
    }

    /// The number of pauses so far.
    pub fn pauses(&self) -> u64 {
        self.pauses
    }

    /// The listener itself.
    pub fn listener(&self) -> &dyn Listener {
        &*self.listener
    }
}
