//! Compactions that users asked for, and when the next piece of one has its turn.
//!
//! They come after everything the store needs, but are not starved by a store that is always behind:
//! once automatic compactions have read several times as much as the last piece did, a piece goes
//! before all but those of L0.
//!
//! Thread safety: guarded by `Store::state`.

use drumlin_base::Result;

use crate::compaction::{CancelToken, ManualWork};

/// Bytes automatic compactions may read for each byte a piece read, while both wait.
const AUTOMATIC_FACTOR: u64 = 4;

/// One compaction that was asked for.
#[derive(Debug)]
pub(crate) struct ManualRequest {
    /// Tells it from the others.
    pub(crate) id: u64,
    pub(crate) family: u32,
    pub(crate) work: ManualWork,
    pub(crate) cancel: Option<CancelToken>,
    /// A piece of it is being carried out.
    pub(crate) running: bool,
    /// The outcome, until the caller takes it.
    pub(crate) outcome: Option<Result<()>>,
}

impl ManualRequest {
    /// Whether a piece of it may begin.
    pub(crate) fn is_waiting(&self) -> bool {
        let cancelled = self.cancel.as_ref().is_some_and(CancelToken::is_cancelled);
        !self.running && self.outcome.is_none() && !cancelled
    }
}

/// All of them, and the account that gives them their share.
#[derive(Debug, Default)]
pub(crate) struct ManualQueue {
    /// In the order they were asked for.
    pub(crate) requests: Vec<ManualRequest>,
    next_id: u64,
    /// Bytes the last piece read.
    last_piece_bytes: u64,
    /// Bytes automatic compactions have read since.
    automatic_bytes: u64,
}

impl ManualQueue {
    /// Queues a request; its id.
    pub(crate) fn push(
        &mut self,
        family: u32,
        work: ManualWork,
        cancel: Option<CancelToken>,
    ) -> u64 {
        self.next_id += 1;
        self.requests.push(ManualRequest {
            id: self.next_id,
            family,
            work,
            cancel,
            running: false,
            outcome: None,
        });
        self.next_id
    }

    /// The request `id`, until it was removed.
    pub(crate) fn get(&mut self, id: u64) -> Option<&mut ManualRequest> {
        self.requests.iter_mut().find(|request| request.id == id)
    }

    /// Whether the request `id` has an outcome.
    pub(crate) fn has_ended(&mut self, id: u64) -> bool {
        self.get(id)
            .is_some_and(|request| request.outcome.is_some())
    }

    /// Forgets the request `id`.
    pub(crate) fn remove(&mut self, id: u64) {
        self.requests.retain(|request| request.id != id);
    }

    /// Counts the bytes an automatic compaction read.
    pub(crate) fn count_automatic(&mut self, bytes: u64) {
        self.automatic_bytes = self.automatic_bytes.saturating_add(bytes);
    }

    /// Counts a piece that begins to read `bytes`.
    pub(crate) fn count_piece(&mut self, bytes: u64) {
        self.last_piece_bytes = bytes;
        if !drumlin_base::bug!("account-never-balanced") {
            self.automatic_bytes = 0;
        }
    }

    /// Whether a piece goes before automatic compactions now.
    pub(crate) fn is_owed(&self) -> bool {
        let is_waiting = self.requests.iter().any(ManualRequest::is_waiting);
        let share = self.last_piece_bytes.saturating_mul(AUTOMATIC_FACTOR);
        is_waiting
            && self.automatic_bytes + u64::from(drumlin_base::bug!("piece-owed-early")) > share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::CompactionOptions;
    use crate::version::Version;
    use drumlin_base::KeyOrder;

    fn queue_with_one() -> (ManualQueue, u64) {
        let options = CompactionOptions::new(KeyOrder::Bytewise);
        let work = ManualWork::new(&Version::empty(), &options, None, None);
        let mut queue = ManualQueue::default();
        let id = queue.push(0, work, None);
        (queue, id)
    }

    #[test]
    fn a_piece_is_owed_after_four_times_its_bytes() {
        let (mut queue, id) = queue_with_one();
        queue.count_piece(100);
        queue.count_automatic(400);
        assert!(!queue.is_owed());
        queue.count_automatic(1);
        assert!(queue.is_owed());
        queue.count_piece(100);
        assert!(!queue.is_owed());
        queue.count_automatic(1000);
        queue.remove(id);
        assert!(!queue.is_owed());
    }
}
