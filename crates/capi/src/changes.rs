//! `rocksdb_wal_iterator_t`: the writes from a sequence number on, as they are in the WAL.

use drumlin::{ChangeBatch, ChangeEntry, Changes, Error, ErrorKind, Result};
use drumlin_ffi::error::guard_infallible;
use drumlin_ffi::handle::{self, Handle};

use crate::batch::Batch;

/// What the handle holds.
#[derive(Debug)]
pub(crate) struct WalIterator {
    changes: Changes,
    /// Where it stands; `None` at the end, and after an error.
    batch: Option<ChangeBatch>,
    error: Option<Error>,
}

impl WalIterator {
    fn begin(changes: Changes) -> Self {
        let mut iterator = Self {
            changes,
            batch: None,
            error: None,
        };
        iterator.step();
        iterator
    }

    /// Goes to the next writes. Families that come and go are passed over, for no batch tells of them; tables taken in
    /// are the gap that RocksDB has there.
    fn step(&mut self) {
        self.batch = None;
        while self.error.is_none() {
            match self.changes.next() {
                None => return,
                Some(Err(error)) => self.error = Some(error),
                Some(Ok(batch)) if !batch.writes().is_empty() => {
                    self.batch = Some(batch);
                    return;
                }
                Some(Ok(batch)) => {
                    let mut entries = batch.entries();
                    if entries.any(|entry| matches!(entry, Ok(ChangeEntry::Ingested { .. }))) {
                        let message = format!(
                            "Gap in sequence numbers: tables were taken in up to {}",
                            batch.last_seqno()
                        );
                        self.error = Some(Error::new(ErrorKind::Corruption, message));
                    }
                }
            }
        }
    }
}

/// Null for the number is no wish to know it.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_wal_iter_get_batch(
    iterator: *const Handle<WalIterator>,
    seqno: *mut u64,
) -> *mut Handle<Batch> {
    const NAME: &str = "rocksdb_wal_iter_get_batch";
    // SAFETY: the C program's promise.
    let iterator = unsafe { handle::get(iterator, NAME) };
    let batch = iterator.batch.as_ref();
    if !seqno.is_null() {
        // SAFETY: as above; it is not null.
        unsafe { crate::error::set(seqno, 0, batch.map_or(0, ChangeBatch::seqno)) };
    }
    guard_infallible(NAME, || {
        let writes = batch.map(|batch| batch.writes().clone());
        handle::create(Batch::of(writes.unwrap_or_default()))
    })
}

pub(crate) mod calls {
    use drumlin::ChangesOptions;

    use super::{Error, ErrorKind, Result, WalIterator};
    use crate::database::Database;
    use crate::fields::WalReadoptions;

    pub(crate) fn get_updates_since(
        db: &Database,
        seqno: u64,
        _options: Option<&WalReadoptions>,
    ) -> Result<WalIterator> {
        if seqno > db.db().latest_seqno() {
            let message = "Requested sequence not yet written in the db";
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let changes = db.db().changes_in_wal(seqno, ChangesOptions::default())?;
        Ok(WalIterator::begin(changes))
    }

    pub(crate) fn wal_iter_valid(iterator: &WalIterator) -> bool {
        iterator.batch.is_some()
    }

    /// At the end it looks for what was written since.
    pub(crate) fn wal_iter_next(iterator: &mut WalIterator) {
        iterator.step();
    }

    pub(crate) fn wal_iter_status(iterator: &WalIterator) -> Result<()> {
        iterator
            .error
            .as_ref()
            .map_or(Ok(()), |error| Err(error.duplicate()))
    }
}
