//! Scrapers: they come, ask, are answered from the loop with numbers that a thread beside it has gathered, and go.
//!
//! None of them can keep the loop: there are few of them, a request is short, and each has some seconds for all of it.

use std::time::Duration;

use drumlin::Result;
use drumlin_fs::net::{Event, Interest, NetErrorKind, Token};
use drumlin_scrape::{Scraper, Stage, answer};

use super::figures::Figures;
use super::page::page;
use crate::hands::lend;
use crate::state::ServerState;

/// Scrapers at a time: one more is turned away.
const SCRAPERS_MAX: usize = 16;
/// From coming to going.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Lets in who waits at a listener.
///
/// # Errors
/// Of the socket and of the poller.
pub(crate) fn accept(state: &mut ServerState, index: usize, now: Duration) -> Result<()> {
    loop {
        let net = &mut state.net;
        let Some(door) = net.doors.get_mut(index) else {
            return Ok(());
        };
        let connection = match door.acceptor.accept(&*net.poller, now) {
            Ok(Some(connection)) => connection,
            Ok(None) => return Ok(()),
            // One that went before it was accepted.
            Err(error) if NetErrorKind::of(&error) == NetErrorKind::Disconnected => continue,
            Err(error) => return Err(error),
        };
        if net.scrapers.len() >= SCRAPERS_MAX {
            continue;
        }
        let id = net.take_id();
        net.poller
            .register(&*connection, Token(id), Interest::Read)?;
        let scraper = Scraper::new(connection, now + TIME_MAX);
        net.scrapers.insert(id, scraper);
    }
}

/// Serves a scraper that is ready; whether the event is of one.
pub(crate) fn is_served(state: &mut ServerState, event: Event) -> bool {
    let id = event.token.0;
    if state.net.scrapers.is_empty() {
        return false;
    }
    let Some(scraper) = state.net.scrapers.get_mut(&id) else {
        return false;
    };
    let mut is_here = true;
    if event.readable {
        is_here = scraper.hear();
        state.asks_figures |= is_here && matches!(scraper.stage, Stage::Waits { .. });
    }
    finish(state, id, is_here);
    true
}

/// Answers those who wait, with numbers that were gathered for them.
pub(crate) fn answer_all(state: &mut ServerState, figures: &Figures) {
    let scrapers = state.net.scrapers.iter();
    let waits = scrapers.filter_map(|(id, scraper)| match scraper.stage {
        Stage::Waits { head_only } => Some((*id, head_only)),
        _ => None,
    });
    let waits: Vec<(u64, bool)> = waits.collect();
    if waits.is_empty() {
        return;
    }
    lend::call_home(state);
    let text = page(state, figures);
    for (id, head_only) in waits {
        if let Some(scraper) = state.net.scrapers.get_mut(&id) {
            scraper.give(answer("200 OK", &text, head_only));
        }
        finish(state, id, true);
    }
}

/// Ends those whose time is over.
pub(crate) fn end_late(state: &mut ServerState, now: Duration) {
    let scrapers = &mut state.net.scrapers;
    scrapers.retain(|_, scraper| now < scraper.until);
}

/// Sends what there is to be sent, and forgets a scraper that is gone.
fn finish(state: &mut ServerState, id: u64, is_here: bool) {
    let Some(scraper) = state.net.scrapers.get_mut(&id) else {
        return;
    };
    let is_here = is_here && scraper.tell().is_ok();
    let interest = match scraper.is_behind() {
        true => Interest::ReadWrite,
        false => Interest::Read,
    };
    let poller = &state.net.poller;
    let token = Token(id);
    if !is_here
        || poller
            .reregister(&*scraper.connection, token, interest)
            .is_err()
    {
        state.net.scrapers.remove(&id);
    }
}
