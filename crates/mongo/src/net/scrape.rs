//! Scrapers of `/metrics`: they come, ask, are answered and go. There are few of them, and each has some seconds for all of it.

use std::collections::HashMap;
use std::time::Duration;

use drumlin_base::Result;
use drumlin_fs::net::{Acceptor, Address, Event, Interest, ListenOptions, Network, Poller, Token};
use drumlin_scrape::{Scraper, Stage, answer};

/// Scrapers at a time: one more is turned away.
const SCRAPERS_MAX: usize = 16;
/// From coming to going.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Their listener, and those that are here.
#[derive(Debug)]
pub(crate) struct Scrapers {
    acceptor: Acceptor,
    here: HashMap<u64, Scraper>,
}

impl Scrapers {
    /// Listens for them.
    ///
    /// # Errors
    /// Of the socket.
    pub(crate) fn listen(
        network: &dyn Network,
        poller: &dyn Poller,
        address: &Address,
        token: Token,
    ) -> Result<Self> {
        let listener = network.listen(address, ListenOptions::default())?;
        Ok(Self {
            acceptor: Acceptor::new(listener, poller, token)?,
            here: HashMap::new(),
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> Address {
        self.acceptor.listener().local_address().clone()
    }

    /// Lets in who waits; `next` is the token of the next one.
    ///
    /// # Errors
    /// Of the listener.
    pub(crate) fn accept(
        &mut self,
        poller: &dyn Poller,
        now: Duration,
        next: &mut u64,
    ) -> Result<()> {
        while let Some(connection) = self.acceptor.accept(poller, now)? {
            let id = *next;
            let is_full = self.here.len() >= SCRAPERS_MAX;
            if is_full
                || poller
                    .register(&*connection, Token(id), Interest::Read)
                    .is_err()
            {
                continue;
            }
            *next += 1;
            self.here
                .insert(id, Scraper::new(connection, now + TIME_MAX));
        }
        Ok(())
    }

    /// When the listener wants to be resumed, as [`Acceptor::wait_at_most`].
    pub(crate) fn resume(&mut self, poller: &dyn Poller, now: Duration) -> Result<()> {
        self.here.retain(|_, scraper| now < scraper.until);
        self.acceptor.resume(poller, now)
    }

    /// Serves a scraper that is ready, with the text of `page`; whether the event is of one.
    pub(crate) fn is_served(
        &mut self,
        poller: &dyn Poller,
        event: Event,
        page: impl FnOnce() -> String,
    ) -> bool {
        let Some(scraper) = self.here.get_mut(&event.token.0) else {
            return false;
        };
        let mut is_here = !event.readable || scraper.hear();
        if let Stage::Waits { head_only } = scraper.stage {
            scraper.give(answer("200 OK", &page(), head_only));
        }
        is_here = is_here && scraper.tell().is_ok();
        let interest = match scraper.is_behind() {
            true => Interest::ReadWrite,
            false => Interest::Read,
        };
        let goes_on = is_here
            && poller
                .reregister(&*scraper.connection, event.token, interest)
                .is_ok();
        if !goes_on {
            self.here.remove(&event.token.0);
        }
        true
    }
}
