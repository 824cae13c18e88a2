//! Waiting on a network in memory.
//!
//! A wait sleeps on a condition variable of `drumlin_base::sync`, so under a simulator's scheduler it is a place where
//! others run, and its timeouts pass in simulated time.

use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::Condvar;
use drumlin_base::{Error, Result};

use super::mem_end::Ready;
use super::mem_source::{MemSource, Shared};
use super::network::{HandleKind, Poller, Source, Waker};
use super::posix_poll::{not_registered, registered_already};
use super::{Events, Interest, Token};

#[derive(Debug)]
pub(super) struct MemPoller {
    shared: Arc<Shared>,
    id: u64,
    bell: Arc<Condvar>,
}

impl MemPoller {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let (id, bell) = shared.state.lock().add_poller();
        Self {
            shared: Arc::clone(shared),
            id,
            bell,
        }
    }

    /// The number of a source of this network.
    fn source(&self, source: &dyn Source) -> Result<u64> {
        match source.handle().0 {
            HandleKind::Memory(MemSource { shared, id }) if Arc::ptr_eq(shared, &self.shared) => {
                Ok(*id)
            }
            _ => Err(Error::invalid_argument(
                "a source of another network has no place in this poller",
            )),
        }
    }
}

fn check(token: Token) -> Result<()> {
    match token <= Token::MAX {
        true => Ok(()),
        false => Err(Error::invalid_argument(format!("{} is no token", token.0))),
    }
}

impl Poller for MemPoller {
    fn register(&self, source: &dyn Source, token: Token, interest: Interest) -> Result<()> {
        check(token)?;
        let source = self.source(source)?;
        let mut state = self.shared.state.lock();
        match state.register(self.id, source, (token, interest)) {
            true => Ok(()),
            false => Err(registered_already()),
        }
    }

    fn reregister(&self, source: &dyn Source, token: Token, interest: Interest) -> Result<()> {
        check(token)?;
        let source = self.source(source)?;
        let mut state = self.shared.state.lock();
        let known = state.deregister(self.id, source);
        match known && state.register(self.id, source, (token, interest)) {
            true => Ok(()),
            false => Err(not_registered()),
        }
    }

    fn deregister(&self, source: &dyn Source) -> Result<()> {
        let source = self.source(source)?;
        match self.shared.state.lock().deregister(self.id, source) {
            true => Ok(()),
            false => Err(not_registered()),
        }
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<()> {
        events.clear();
        let Shared { state, clock } = &*self.shared;
        let mut state = state.lock();
        state.begin_wait(self.id);
        let begin = clock.monotonic();
        loop {
            let now = clock.monotonic();
            let Some(next) = state.collect(self.id, events, now) else {
                return Ok(());
            };
            let left = timeout.map(|timeout| timeout.saturating_sub(now - begin));
            if left == Some(Duration::ZERO) {
                return Ok(());
            }
            let next = match next {
                Ready::At(at) => Some(at.saturating_sub(now)),
                Ready::Now | Ready::Unknown => None,
            };
            state = match left.into_iter().chain(next).min() {
                Some(pause) => self.bell.wait_for(state, pause),
                None => self.bell.wait(state),
            };
        }
    }

    fn waker(&self) -> Arc<dyn Waker> {
        Arc::new(MemWaker {
            shared: Arc::clone(&self.shared),
            poller: self.id,
        })
    }
}

impl Drop for MemPoller {
    fn drop(&mut self) {
        self.shared.state.lock().remove_poller(self.id);
    }
}

#[derive(Debug)]
struct MemWaker {
    shared: Arc<Shared>,
    poller: u64,
}

impl Waker for MemWaker {
    fn wake(&self) -> Result<()> {
        self.shared.state.lock().wake(self.poller);
        Ok(())
    }
}
