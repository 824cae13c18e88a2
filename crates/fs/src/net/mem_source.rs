//! Listeners and connections in memory, as their users own them.

use std::sync::Arc;

use drumlin_base::sync::Mutex;

use super::mem_state::State;
use crate::Clock;

/// State and clock, shared by all parts of one network.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) clock: Arc<dyn Clock>,
}

/// A listener or an end of a connection, owned by its user.
#[derive(Debug)]
pub(super) struct MemSource {
    pub(super) shared: Arc<Shared>,
    pub(super) id: u64,
}

impl Drop for MemSource {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let now = self.shared.clock.monotonic();
        state.close(self.id, now);
    }
}
