//! Places in the table, and walks.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use drumlin_base::Result;
use drumlin_bench::Cursor;

use super::{check, sys};

/// Owns a cursor of WiredTiger's; for the thread of its session.
pub(super) struct Place(NonNull<sys::Cursor>);

fn start(bytes: &[u8]) -> *const c_void {
    bytes.as_ptr().cast()
}

impl Place {
    /// Takes over `cursor`.
    pub(super) fn new(cursor: *mut sys::Cursor) -> Self {
        Self(NonNull::new(cursor).expect("set where no error is returned"))
    }

    #[inline]
    fn ptr(&self) -> *mut sys::Cursor {
        self.0.as_ptr()
    }

    #[inline]
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> c_int {
        let (keys, values) = (start(key), start(value));
        // SAFETY: the cursor is open; key and value are alive, and copied before the call returns.
        unsafe { sys::peers_wt_put(self.ptr(), keys, key.len(), values, value.len()) }
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> c_int {
        // SAFETY: the cursor is open and the key alive.
        unsafe { sys::peers_wt_remove(self.ptr(), start(key), key.len()) }
    }

    #[inline]
    pub(super) fn search(&mut self, key: &[u8]) -> c_int {
        // SAFETY: the cursor is open and the key alive.
        unsafe { sys::peers_wt_search(self.ptr(), start(key), key.len()) }
    }

    #[inline]
    pub(super) fn reset(&mut self) -> c_int {
        // SAFETY: the cursor is open.
        unsafe { sys::peers_wt_reset(self.ptr()) }
    }

    /// The bytes of `part`. Empty where the cursor is at no entry.
    #[inline]
    fn bytes(
        &self,
        part: unsafe extern "C" fn(*mut sys::Cursor, *mut *const c_void, *mut usize) -> c_int,
    ) -> &[u8] {
        let (mut bytes, mut len) = (ptr::null(), 0);
        // SAFETY: the cursor is open; the two are places to write to.
        let code = unsafe { part(self.ptr(), &raw mut bytes, &raw mut len) };
        if code != 0 || len == 0 {
            return &[];
        }
        // SAFETY: WiredTiger shows `len` bytes that stay until the cursor is used again, which needs
        // `&mut self`.
        unsafe { std::slice::from_raw_parts(bytes.cast(), len) }
    }

    /// The value. Requires: a search or move found an entry.
    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        self.bytes(sys::peers_wt_value)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // SAFETY: the cursor is open, its session too, and it is not used afterwards. There is nobody to
        // tell of a failure.
        let _unreported = unsafe { sys::peers_wt_cursor_close(self.ptr()) };
    }
}

/// A walk. WiredTiger's have no bounds here; keys outside count as the end.
pub(crate) struct WiredTigerCursor<'s> {
    place: Place,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    /// The result of the last move.
    code: c_int,
    session: PhantomData<&'s ()>,
}

impl WiredTigerCursor<'_> {
    pub(super) fn new(place: Place, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Self {
        Self {
            place,
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            code: sys::NOT_FOUND,
            session: PhantomData,
        }
    }

    /// Forgets the position: the next move begins at an end.
    fn forget(&mut self) {
        self.code = self.place.reset();
    }
}

impl Cursor for WiredTigerCursor<'_> {
    fn seek_to_first(&mut self) {
        if let Some(lower) = self.lower.clone() {
            return self.seek(&lower);
        }
        self.forget();
        self.next();
    }

    fn seek_to_last(&mut self) {
        let upper = self.upper.clone();
        if let Some(upper) = upper {
            self.seek(&upper);
            if self.code == 0 {
                return self.prev();
            }
        }
        self.forget();
        self.prev();
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) {
        // SAFETY: the cursor is open and the key alive.
        self.code = unsafe { sys::peers_wt_seek(self.place.ptr(), start(key), key.len()) };
    }

    #[inline]
    fn next(&mut self) {
        // SAFETY: the cursor is open.
        self.code = unsafe { sys::peers_wt_next(self.place.ptr()) };
    }

    #[inline]
    fn prev(&mut self) {
        // SAFETY: the cursor is open.
        self.code = unsafe { sys::peers_wt_prev(self.place.ptr()) };
    }

    #[inline]
    fn valid(&self) -> bool {
        let is_in = |bound: &Option<Vec<u8>>, holds: &dyn Fn(&[u8], &[u8]) -> bool| match bound {
            None => true,
            Some(bound) => holds(self.key(), bound),
        };
        self.code == 0
            && is_in(&self.lower, &|key, lower| key >= lower)
            && is_in(&self.upper, &|key, upper| key < upper)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.place.bytes(sys::peers_wt_key)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.place.value()
    }

    fn status(&self) -> Result<()> {
        match self.code {
            sys::NOT_FOUND => Ok(()),
            code => check(code),
        }
    }
}
