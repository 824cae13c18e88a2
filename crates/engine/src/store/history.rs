//! The past that is kept, and the pins that have compactions keep it.
//!
//! Invariant: each moment that the MANIFEST says is kept is pinned, from before the first flush of an opening on; a pin goes
//! after the MANIFEST has said that its moment has gone.
//!
//! Thread safety: any thread. `marking` is taken before every other lock, by who marks a moment; `kept` is a leaf.

use std::collections::BTreeMap;

use drumlin_base::sync::Mutex;
use drumlin_base::{Error, ErrorKind, Result, SeqNo};

use crate::family::snapshot::{Snapshot, SnapshotList};
use crate::version::{History, PastMoment};

/// See the module.
pub(crate) struct KeptHistory {
    pub(crate) marking: Mutex<()>,
    kept: Mutex<Kept>,
}

struct Kept {
    history: History,
    pins: BTreeMap<SeqNo, Snapshot>,
}

impl KeptHistory {
    /// The past that is kept as `history` says, in a store that is being opened.
    pub(crate) fn new(history: History, snapshots: &SnapshotList) -> Self {
        let pinned = match drumlin_base::bug!("history-unpinned-at-opening") {
            true => &[],
            false => history.marked.as_slice(),
        };
        let pins = pinned
            .iter()
            .map(|moment| (moment.seqno, snapshots.take(moment.seqno)))
            .collect();
        Self {
            marking: Mutex::new(()),
            kept: Mutex::new(Kept { history, pins }),
        }
    }

    /// What is kept.
    pub(crate) fn get(&self) -> History {
        self.kept.lock().history.clone()
    }

    /// Keeps `history`, whose last moment `newest` pins, now that the MANIFEST says so.
    pub(crate) fn set(&self, history: History, newest: Snapshot) {
        let mut kept = self.kept.lock();
        kept.pins.insert(newest.seqno(), newest);
        kept.pins.retain(|seqno, _| {
            let found = history.marked.binary_search_by_key(seqno, |it| it.seqno);
            found.is_ok()
        });
        kept.history = history;
    }

    /// The moment that the time `unix_seconds` is read at, pinned.
    ///
    /// # Errors
    /// `NotFound`, saying from when on there are moments.
    pub(crate) fn at(&self, unix_seconds: u64) -> Result<Snapshot> {
        let kept = self.kept.lock();
        let pin = |moment: PastMoment| kept.pins.get(&moment.seqno).cloned();
        let found = kept.history.at(unix_seconds).and_then(pin);
        found.ok_or_else(|| {
            let message = match kept.history.marked.first() {
                Some(first) => format!(
                    "there is no history of {unix_seconds}: it is kept from {} on (seconds since 1970)",
                    first.unix_seconds
                ),
                None => "no history is kept".to_owned(),
            };
            Error::new(ErrorKind::NotFound, message)
        })
    }
}
