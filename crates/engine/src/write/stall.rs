//! Holding writers back: the leader pays for what was written at the speed the verdict allows.

use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result};

use crate::db::engine::Engine;
use crate::watch::notices::Notice;
use crate::watch::pressure::Removal;
use crate::watch::waits::WaitCause;
use crate::write::leader::Leader;

/// Bytes written between two looks at the store while writers are free.
const BYTES_PER_LOOK: u64 = 256 << 10;
/// Time between two looks while they are not.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

impl Engine {
    /// Notes that the group just written took `bytes`.
    pub(crate) fn charge_writers(&self, leader: &mut Leader, bytes: u64) {
        self.board.add_written(bytes);
        leader.toll.charge(bytes);
    }

    /// Returns when what was written so far is paid for: at once, without a look at the clock, while
    /// writers are free.
    ///
    /// # Errors
    /// `Busy` instead of a wait where `no_stall`, `Shutdown`.
    pub(crate) fn slow_down(&self, leader: &mut Leader, no_stall: bool) -> Result<()> {
        let free = self.board.allowed().is_infinite();
        if free {
            leader.toll.free();
            if leader.toll.unpaid() < BYTES_PER_LOOK {
                return Ok(());
            }
        }
        let begin = self.env.clock.monotonic();
        let mut now = begin;
        loop {
            if free || now.saturating_sub(leader.looked_at) >= LOOK_PAUSE {
                leader.looked_at = now;
                self.look(now);
            }
            let wait = leader.toll.wait(now, self.board.allowed());
            if wait.is_zero() {
                break;
            }
            if no_stall {
                let cause = self.board.cause().as_str();
                return Err(Error::new(ErrorKind::Busy, cause));
            }
            self.check_open()?;
            self.env.clock.sleep(wait);
            now = self.env.clock.monotonic();
        }
        if now > begin {
            self.note_wait(now.saturating_sub(begin), self.board.cause());
        }
        Ok(())
    }

    /// Judges anew how fast writers may go.
    pub(crate) fn look(&self, now: Duration) {
        if self.options.background_threads == Some(0) {
            return; // Whoever waits does the work: nobody drains anything while a writer sleeps.
        }
        let families = self.families.load();
        let removal = Removal {
            waiting: self.trash.waste_bytes(),
            freed: self.trash.freed(),
        };
        let needed = self.board.look(now, removal, families.values());
        self.trash.set_store_bytes(needed);
    }

    pub(crate) fn note_wait(&self, wait: Duration, cause: WaitCause) {
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.statistics.stall_micros.add(micros);
        self.waits.of(cause).record(wait);
        let why = cause.as_str();
        self.notices.note(|| Notice::WriteWaited { micros, why });
    }
}
