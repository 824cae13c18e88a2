//! Registrations with the pollers of a network in memory, and the sources of each that are ready.

use std::sync::Arc;
use std::time::Duration;

use drumlin_base::sync::Condvar;

use super::fault::{NetFault, NetOp};
use super::mem_end::Ready;
use super::mem_state::{Polling, Slot, State};
use super::{Address, Event, Events, Interest, Token};

impl State {
    pub(super) fn add_poller(&mut self) -> (u64, Arc<Condvar>) {
        let id = self.new_id();
        let polling = Polling::default();
        let bell = Arc::clone(&polling.bell);
        self.pollers.insert(id, polling);
        (id, bell)
    }

    pub(super) fn remove_poller(&mut self, id: u64) {
        self.pollers.remove(&id);
        self.registrations.retain(|_, poller| *poller != id);
    }

    /// Whether it could be done: a source is registered at most once.
    pub(super) fn register(
        &mut self,
        poller: u64,
        source: u64,
        (token, interest): (Token, Interest),
    ) -> bool {
        let Some(polling) = self.pollers.get_mut(&poller) else {
            return false;
        };
        if self.registrations.contains_key(&source) {
            return false;
        }
        self.registrations.insert(source, poller);
        let told_from = [None; 2];
        let slot = Slot {
            token,
            interest,
            told_from,
        };
        polling.slots.insert(source, slot);
        true
    }

    /// Whether it was registered there.
    pub(super) fn deregister(&mut self, poller: u64, source: u64) -> bool {
        let polling = self.pollers.get_mut(&poller);
        let removed = polling.and_then(|polling| polling.slots.remove(&source));
        if removed.is_some() {
            self.registrations.remove(&source);
        }
        removed.is_some()
    }

    pub(super) fn wake(&mut self, poller: u64) {
        if let Some(polling) = self.pollers.get_mut(&poller) {
            polling.woken = true;
            polling.bell.notify_all();
        }
    }

    /// A wait begins.
    pub(super) fn begin_wait(&mut self, poller: u64) {
        if drumlin_base::bug!("wake-before-wait-lost")
            && let Some(polling) = self.pollers.get_mut(&poller)
        {
            polling.woken = false;
        }
    }

    fn readiness(&self, source: u64, now: Duration) -> [Ready; 2] {
        let Some(end) = self.ends.get(&source) else {
            return [self.acceptable(source, now), Ready::Unknown];
        };
        let room = self.ends.get(&end.peer).map(|peer| peer.inbox.room());
        [end.readable(now), end.writable(room, now)]
    }

    fn address_of(&self, source: u64) -> Address {
        let end = self.ends.get(&source).map(|end| &end.local);
        let listening = self.listeners.get(&source);
        let address = end.or(listening.map(|listening| &listening.address));
        address.cloned().unwrap_or(Address::Unnamed)
    }

    /// The event of a slot, and the time at which it may have more.
    fn look_at(&mut self, source: u64, slot: &mut Slot, now: Duration) -> (Event, Ready) {
        let ready = self.readiness(source, now);
        let asked = [slot.interest.is_read(), slot.interest.is_write()];
        let (mut told, mut later) = ([false; 2], Ready::Unknown);
        for (direction, ready) in ready.into_iter().enumerate() {
            if !asked[direction] {
                continue;
            }
            let told_from = &mut slot.told_from[direction];
            if ready != Ready::Now {
                *told_from = None;
                later = later.or(ready);
                continue;
            }
            if told_from.is_none() {
                let address = self.address_of(source);
                let verdict = self.rules.judge(NetOp::Ready, &address);
                *told_from = Some(now + verdict.delay);
            }
            match Ready::from(*told_from, now) {
                Ready::Now => told[direction] = true,
                delayed => later = later.or(delayed),
            }
        }
        let event = Event {
            token: slot.token,
            readable: told[0],
            writable: told[1],
        };
        (event, later)
    }

    /// Collects the events of a poller. `Some` when there are none and the wait goes on, with the time of the next, if
    /// known.
    pub(super) fn collect(
        &mut self,
        poller: u64,
        events: &mut Events,
        now: Duration,
    ) -> Option<Ready> {
        let mut polling = self.pollers.remove(&poller).unwrap_or_default();
        let mut later = Ready::Unknown;
        let (before, after): (Vec<u64>, Vec<u64>) = polling
            .slots
            .keys()
            .partition(|source| **source <= polling.last_told);
        for source in after.into_iter().chain(before) {
            let Some(slot) = polling.slots.get_mut(&source) else {
                continue;
            };
            let (event, more) = self.look_at(source, slot, now);
            later = later.or(more);
            if event.readable || event.writable {
                events.push(event);
                polling.last_told = source;
                if events.is_full() {
                    break;
                }
            }
        }
        if std::mem::take(&mut polling.woken) {
            events.set_woken();
        }
        self.pollers.insert(poller, polling);
        if events.is_empty() && !events.is_woken() {
            return Some(later);
        }
        match self.rules.judge(NetOp::Wait, &Address::Unnamed).fault {
            Some(NetFault::Reorder) => events.shuffle(&mut self.rng),
            Some(NetFault::Interrupted) => events.clear_sources(),
            _ => {}
        }
        None
    }
}
