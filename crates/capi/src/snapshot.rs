//! `rocksdb_snapshot_t`.

use std::ffi::c_char;
use std::sync::Weak;

use drumlin::Snapshot;
use drumlin_ffi::error::{end_process, guard_infallible};
use drumlin_ffi::handle::{self, Handle};

use crate::database::Database;
use crate::transaction::TransactionDatabase;

/// What the handle holds.
#[derive(Debug)]
pub(crate) enum SnapshotOf {
    /// Its own share of a snapshot.
    Own(Snapshot),
    /// A transaction's. Such a handle is given back with `rocksdb_free`, which drops nothing.
    Lent(Weak<Snapshot>),
}

impl SnapshotOf {
    pub(crate) fn lent(snapshot: Weak<Snapshot>) -> Self {
        Self::Lent(snapshot)
    }

    /// A share of it. Ends the process where its transaction is gone.
    pub(crate) fn share(&self, function: &str) -> Snapshot {
        match self {
            Self::Own(snapshot) => snapshot.clone(),
            Self::Lent(snapshot) => match snapshot.upgrade() {
                Some(snapshot) => Snapshot::clone(&snapshot),
                None => end_process(function, "the transaction of the snapshot is gone"),
            },
        }
    }
}

/// # Safety
/// Both are handles, or null.
unsafe fn release<D: handle::Tagged>(
    db: *mut Handle<D>,
    snapshot: *const Handle<SnapshotOf>,
    function: &str,
) {
    // SAFETY: the caller's promise.
    unsafe { handle::get(db, function) };
    // SAFETY: as above.
    guard_infallible(function, || unsafe {
        handle::destroy(snapshot.cast_mut(), function);
    });
}

/// The snapshot of another database is released too.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_release_snapshot(
    db: *mut Handle<Database>,
    snapshot: *const Handle<SnapshotOf>,
) {
    // SAFETY: the C program's promise.
    unsafe { release(db, snapshot, "rocksdb_release_snapshot") };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transactiondb_release_snapshot(
    db: *mut Handle<TransactionDatabase>,
    snapshot: *const Handle<SnapshotOf>,
) {
    // SAFETY: the C program's promise.
    unsafe { release(db, snapshot, "rocksdb_transactiondb_release_snapshot") };
}

/// A place for the text of an error.
pub(crate) type ErrPtr = *mut *mut c_char;

pub(crate) mod calls {
    use super::SnapshotOf;
    use crate::database::Database;

    pub(crate) fn create_snapshot(db: &Database) -> Option<SnapshotOf> {
        Some(SnapshotOf::Own(db.db().snapshot()))
    }

    pub(crate) fn snapshot_get_sequence_number(snapshot: &SnapshotOf) -> u64 {
        snapshot
            .share("rocksdb_snapshot_get_sequence_number")
            .seqno()
    }
}
