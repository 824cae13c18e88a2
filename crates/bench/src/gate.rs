//! The start signal of a run: threads gather, then all go at once, or none does.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Where the threads of a run wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    /// `Some(true)` once the run may start, `Some(false)` if it was called off.
    signal: Option<bool>,
}

impl Gate {
    /// Waits for the signal; false if the run was called off.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.lock();
        state.waiting += 1;
        self.changed.notify_all();
        loop {
            if let Some(go) = state.signal {
                return go;
            }
            state = self.sleep(state);
        }
    }

    /// Waits until `threads` threads wait, then lets them go.
    pub(crate) fn open(&self, threads: usize) {
        let mut state = self.lock();
        while state.waiting < threads {
            state = self.sleep(state);
        }
        state.signal = Some(true);
        self.changed.notify_all();
    }

    /// Sends everyone home, also those that come later.
    pub(crate) fn call_off(&self) {
        self.lock().signal = Some(false);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep<'g>(&self, state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}
