//! The functions of `shim.c`, declared by hand.
//!
//! All return WiredTiger's number: 0, [`NOT_FOUND`], [`ROLLBACK`] or another error. A connection may be
//! used by any thread; a session and its cursors belong to one thread at a time.

use std::ffi::{c_char, c_int, c_void};

/// Nothing is there, or a walk is at its end.
pub(super) const NOT_FOUND: c_int = -31803;
/// Another transaction wrote the same key; it may be tried again.
pub(super) const ROLLBACK: c_int = -31800;

crate::engines::opaque! {
    /// An open directory.
    Connection;
    /// A thread's way in.
    Session;
    /// A place in the table.
    Cursor;
}

unsafe extern "C" {
    pub(super) fn wiredtiger_strerror(error: c_int) -> *const c_char;
    pub(super) fn wiredtiger_version(
        major: *mut c_int,
        minor: *mut c_int,
        patch: *mut c_int,
    ) -> *const c_char;

    pub(super) fn peers_wt_open(
        home: *const c_char,
        config: *const c_char,
        connection: *mut *mut Connection,
    ) -> c_int;
    pub(super) fn peers_wt_close(connection: *mut Connection) -> c_int;
    pub(super) fn peers_wt_session(connection: *mut Connection, out: *mut *mut Session) -> c_int;
    pub(super) fn peers_wt_session_close(session: *mut Session) -> c_int;
    pub(super) fn peers_wt_create(session: *mut Session, config: *const c_char) -> c_int;
    pub(super) fn peers_wt_checkpoint(session: *mut Session) -> c_int;
    pub(super) fn peers_wt_compact(session: *mut Session) -> c_int;
    pub(super) fn peers_wt_begin(session: *mut Session) -> c_int;
    pub(super) fn peers_wt_commit(session: *mut Session) -> c_int;
    pub(super) fn peers_wt_rollback(session: *mut Session) -> c_int;
    pub(super) fn peers_wt_cursor(session: *mut Session, out: *mut *mut Cursor) -> c_int;
    pub(super) fn peers_wt_cursor_close(cursor: *mut Cursor) -> c_int;
    pub(super) fn peers_wt_reset(cursor: *mut Cursor) -> c_int;
    pub(super) fn peers_wt_put(
        cursor: *mut Cursor,
        key: *const c_void,
        key_len: usize,
        value: *const c_void,
        value_len: usize,
    ) -> c_int;
    pub(super) fn peers_wt_remove(cursor: *mut Cursor, key: *const c_void, key_len: usize)
    -> c_int;
    pub(super) fn peers_wt_search(cursor: *mut Cursor, key: *const c_void, key_len: usize)
    -> c_int;
    pub(super) fn peers_wt_seek(cursor: *mut Cursor, key: *const c_void, key_len: usize) -> c_int;
    pub(super) fn peers_wt_next(cursor: *mut Cursor) -> c_int;
    pub(super) fn peers_wt_prev(cursor: *mut Cursor) -> c_int;
    pub(super) fn peers_wt_key(
        cursor: *mut Cursor,
        key: *mut *const c_void,
        len: *mut usize,
    ) -> c_int;
    pub(super) fn peers_wt_value(
        cursor: *mut Cursor,
        value: *mut *const c_void,
        len: *mut usize,
    ) -> c_int;
}
