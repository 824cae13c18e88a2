//! Reading, writing and closing on a network in memory.

use std::io::IoSlice;
use std::time::Duration;

use super::fault::{NetFault, NetOp};
use super::mem_end::{CutOff, End};
use super::mem_state::{NOBODY, State};
use super::{Received, Sent};

impl State {
    pub(super) fn end(&self, id: u64) -> Option<&End> {
        self.ends.get(&id)
    }

    /// Unix connections ask for no sign of life.
    pub(super) fn set_keepalive(&mut self, id: u64, idle: Option<Duration>) {
        if let Some(end) = self.ends.get_mut(&id).filter(|end| end.is_tcp()) {
            end.keepalive = idle;
            self.notify(id);
        }
    }

    /// Judges a read or a write that could move `len` bytes: the number it may move, and their delay.
    ///
    /// Requires: `len` is not 0.
    fn strike(&mut self, op: NetOp, id: u64, len: usize, now: Duration) -> (usize, Duration) {
        let Some(end) = self.ends.get(&id) else {
            return (0, Duration::ZERO);
        };
        let verdict = self.rules.judge(op, &end.local);
        let mut most = len;
        match verdict.fault {
            Some(NetFault::Short) => most = 1 + self.rng.below(len as u64 - 1) as usize,
            Some(NetFault::NotNow) => most = 0,
            Some(NetFault::Reset) => self.reset(id, now),
            Some(NetFault::Vanish) => self.cut_off(id, false, now),
            Some(NetFault::HalfOpen) => self.cut_off(id, true, now),
            _ => {}
        }
        if let Some(end) = self.ends.get_mut(&id) {
            end.refresh(now);
        }
        (most, verdict.delay)
    }

    /// Requires: `buffer` is not empty.
    pub(super) fn read(
        &mut self,
        id: u64,
        buffer: &mut [u8],
        now: Duration,
    ) -> Result<Received, i32> {
        let arrived = self.ends.get(&id).map_or(0, |end| end.inbox.arrived(now));
        let len = buffer.len().min(arrived.max(1));
        let (most, _) = self.strike(NetOp::Read, id, len, now);
        let Some(end) = self.ends.get_mut(&id).filter(|_| most > 0) else {
            return Ok(Received::NotNow);
        };
        let count = end.inbox.pull(&mut buffer[..most], now);
        if count > 0 {
            let peer = end.peer;
            self.notify(peer);
            return Ok(Received::Bytes(count));
        }
        if let Some(code) = end.take_failure(now) {
            return Err(code);
        }
        match end.has_failed(now) || end.inbox.is_at_end(now) {
            true => Ok(Received::End),
            false => Ok(Received::NotNow),
        }
    }

    /// Requires: `slices` hold `len` bytes, at least one.
    pub(super) fn write(
        &mut self,
        id: u64,
        (slices, len): (&[IoSlice<'_>], usize),
        now: Duration,
    ) -> Result<Sent, i32> {
        let peer = self.ends.get(&id).map_or(NOBODY, |end| end.peer);
        let room = self.ends.get(&peer).map_or(len, |peer| peer.inbox.room());
        let (most, delay) = self.strike(NetOp::Write, id, len.min(room.max(1)), now);
        let Some(end) = self.ends.get_mut(&id) else {
            return Ok(Sent::NotNow);
        };
        if let Some(code) = end.take_failure(now) {
            return Err(code);
        }
        if end.has_failed(now) || end.wrote_end {
            return Err(libc::EPIPE);
        }
        if most == 0 || !end.is_connected(now) {
            return Ok(Sent::NotNow);
        }
        if let Some(cut_off) = end.cut_off {
            let count = most.min(end.inbox.capacity() - end.lost);
            end.lost += count;
            end.lost_since.get_or_insert(now);
            if cut_off.forgotten {
                end.fail(now + delay, libc::ECONNRESET);
            }
            return Ok(sent(count));
        }
        let is_tcp = end.is_tcp();
        let Some(other) = self.ends.get_mut(&peer) else {
            if !is_tcp {
                return Err(libc::EPIPE);
            }
            // It learns only after sending that nobody takes the bytes.
            if let Some(end) = self.ends.get_mut(&id) {
                end.fail(now + delay, libc::ECONNRESET);
            }
            return Ok(Sent::Bytes(most));
        };
        let room = other.inbox.room();
        let count = most.min(room);
        let pushed = match drumlin_base::bug!("short-write-sent-whole") {
            true => len.min(room),
            false => count,
        };
        if count > 0 {
            let bytes = slices.iter().flat_map(|slice| slice.iter().copied());
            other.inbox.push(bytes.take(pushed), now + delay);
            self.notify(peer);
        }
        Ok(sent(count))
    }

    /// Nothing more is sent; the system's code when the other side cannot learn of it.
    pub(super) fn shutdown_write(&mut self, id: u64, now: Duration) -> Result<(), i32> {
        let end = self.ends.get_mut(&id).ok_or(libc::ENOTCONN)?;
        end.refresh(now);
        if !end.is_connected(now) || end.has_failed(now) {
            return Err(libc::ENOTCONN);
        }
        end.wrote_end = true;
        let (peer, silent) = (end.peer, end.cut_off.is_some());
        if let Some(other) = self.ends.get_mut(&peer).filter(|_| !silent) {
            other.inbox.finish(now);
        }
        self.notify(id);
        self.notify(peer);
        Ok(())
    }

    /// Whether it is connected; the system's code when it failed.
    pub(super) fn connected(&mut self, id: u64, now: Duration) -> Result<bool, i32> {
        let Some(end) = self.ends.get_mut(&id) else {
            return Ok(false);
        };
        let connected = end.is_connected(now);
        match end.take_failure(now).filter(|_| !connected) {
            Some(code) => Err(code),
            None => Ok(connected),
        }
    }

    /// Both sides learn that the connection is no more. Each keeps a drawn part of the bytes it has not
    /// read.
    fn reset(&mut self, id: u64, now: Duration) {
        let peer = self.ends.get(&id).map_or(NOBODY, |end| end.peer);
        self.break_off(id, now);
        // A side that receives nothing does not learn of this either.
        if self
            .ends
            .get(&peer)
            .is_some_and(|end| end.cut_off.is_none())
        {
            self.break_off(peer, now);
        }
    }

    fn break_off(&mut self, id: u64, now: Duration) {
        if let Some(end) = self.ends.get_mut(&id) {
            let unread = end.inbox.len() as u64;
            end.inbox.cut(self.rng.below(unread + 1) as usize);
            end.fail(now, libc::ECONNRESET);
            self.notify(id);
        }
    }

    /// `id` and its peer receive nothing from each other any more.
    fn cut_off(&mut self, id: u64, forgotten: bool, now: Duration) {
        let Some(end) = self.ends.get_mut(&id).filter(|end| end.cut_off.is_none()) else {
            return;
        };
        let since = now;
        let peer = end.peer;
        end.inbox.cut_late(now);
        end.cut_off = Some(CutOff { since, forgotten });
        if let Some(other) = self.ends.get_mut(&peer) {
            other.inbox.cut_late(now);
            let forgotten = false;
            other.cut_off = Some(CutOff { since, forgotten });
        }
        if forgotten {
            self.break_off(peer, now);
        }
        // A wait may end later than its deadline said, or with a failure at a time it did not know.
        self.notify(id);
        self.notify(peer);
    }

    /// A listener or an end is dropped.
    pub(super) fn close(&mut self, id: u64, now: Duration) {
        if let Some(poller) = self.registrations.remove(&id)
            && let Some(polling) = self.pollers.get_mut(&poller)
        {
            polling.slots.remove(&id);
        }
        if let Some(listening) = self.listeners.remove(&id) {
            for waiting in listening.queue {
                let client = self.ends.remove(&waiting).map_or(NOBODY, |end| end.peer);
                self.break_off(client, now);
            }
        }
        let Some(end) = self.ends.remove(&id) else {
            return;
        };
        if end.cut_off.is_some() {
            return;
        }
        if !end.inbox.is_empty() && !end.has_failed(now) {
            self.break_off(end.peer, now);
        } else if let Some(other) = self.ends.get_mut(&end.peer) {
            other.inbox.finish(now);
            self.notify(end.peer);
        }
    }
}

fn sent(count: usize) -> Sent {
    match count {
        0 => Sent::NotNow,
        count => Sent::Bytes(count),
    }
}
