//! `rocksdb_snapshot_t`.

use std::ffi::c_char;

use drumlin::Snapshot;
use drumlin_ffi::error::guard_infallible;
use drumlin_ffi::handle::{self, Handle};

use crate::database::Database;
use crate::transaction::TransactionDatabase;

/// What the handle holds.
#[derive(Debug)]
pub(crate) struct SnapshotOf(pub(crate) Snapshot);

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

    pub(crate) fn create_snapshot(db: &Database) -> SnapshotOf {
        SnapshotOf(db.db().snapshot())
    }
}
