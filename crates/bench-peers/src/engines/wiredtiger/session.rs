//! A thread's session, and the cursor it reads and writes with.

use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use drumlin_base::Result;
use drumlin_bench::Session;

use super::cursor::{Place, WiredTigerCursor};
use super::{check, sys};

/// Owns a session; for one thread.
pub(super) struct Handle<'s> {
    session: NonNull<sys::Session>,
    store: PhantomData<&'s ()>,
}

impl Handle<'_> {
    /// Takes over `session`.
    pub(super) fn new(session: *mut sys::Session) -> Result<Self> {
        let session = NonNull::new(session).expect("set where no error is returned");
        Ok(Self {
            session,
            store: PhantomData,
        })
    }

    fn ptr(&self) -> *mut sys::Session {
        self.session.as_ptr()
    }

    pub(super) fn create(&self, config: &CStr) -> Result<()> {
        // SAFETY: the session is open and this thread's alone; the string is alive.
        check(unsafe { sys::peers_wt_create(self.ptr(), config.as_ptr()) })
    }

    pub(super) fn checkpoint(&self) -> Result<()> {
        // SAFETY: the session is open and this thread's alone.
        check(unsafe { sys::peers_wt_checkpoint(self.ptr()) })
    }

    pub(super) fn compact(&self) -> Result<()> {
        // SAFETY: the session is open and this thread's alone.
        check(unsafe { sys::peers_wt_compact(self.ptr()) })
    }

    /// A cursor over the table. Requires: it is dropped before the session.
    fn cursor(&self) -> Result<Place> {
        let mut cursor = ptr::null_mut();
        // SAFETY: the session is open and this thread's alone; `cursor` is a place to write to.
        check(unsafe { sys::peers_wt_cursor(self.ptr(), &raw mut cursor) })?;
        Ok(Place::new(cursor))
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: the session is open and not used afterwards. A failure has no receiver.
        let _unreported = unsafe { sys::peers_wt_session_close(self.ptr()) };
    }
}

/// One thread's handle. Fields are dropped in this order: the cursor is closed before its session.
pub(crate) struct WiredTigerSession<'s> {
    place: Place,
    handle: Handle<'s>,
    /// Whether a transaction gathers a batch.
    gathers: bool,
}

impl<'s> WiredTigerSession<'s> {
    pub(super) fn new(handle: Handle<'s>) -> Result<Self> {
        Ok(Self {
            place: handle.cursor()?,
            handle,
            gathers: false,
        })
    }

    /// Begins the batch's transaction unless it has begun.
    fn gather(&mut self) -> Result<()> {
        if !self.gathers {
            // SAFETY: the session is open and this thread's alone.
            check(unsafe { sys::peers_wt_begin(self.handle.ptr()) })?;
            self.gathers = true;
        }
        Ok(())
    }

    /// Gives the batch up when `result` is an error.
    fn gathered(&mut self, result: Result<()>) -> Result<()> {
        if result.is_err() {
            self.gathers = false;
            // SAFETY: the session is open and this thread's alone; the first error is the one to
            // report.
            let _second = unsafe { sys::peers_wt_rollback(self.handle.ptr()) };
        }
        result
    }
}

/// Tries `write` until no other transaction is in its way.
fn until_alone(mut write: impl FnMut() -> c_int) -> Result<()> {
    loop {
        match write() {
            sys::ROLLBACK => {}
            code => return check(code),
        }
    }
}

impl Session for WiredTigerSession<'_> {
    type Cursor<'a>
        = WiredTigerCursor<'a>
    where
        Self: 'a;

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        until_alone(|| self.place.put(key, value))
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.gather()?;
        let result = check(self.place.put(key, value));
        self.gathered(result)
    }

    fn batch_delete(&mut self, key: &[u8]) -> Result<()> {
        self.gather()?;
        let result = match self.place.remove(key) {
            sys::NOT_FOUND => Ok(()),
            code => check(code),
        };
        self.gathered(result)
    }

    fn batch_write(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.gathers) {
            return Ok(());
        }
        // SAFETY: the session is open and this thread's alone.
        check(unsafe { sys::peers_wt_commit(self.handle.ptr()) })
    }

    #[inline]
    fn get(&mut self, key: &[u8], on_value: impl FnOnce(&[u8])) -> Result<bool> {
        match self.place.search(key) {
            0 => {
                on_value(self.place.value());
                // Lets go of the page.
                check(self.place.reset())?;
                Ok(true)
            }
            sys::NOT_FOUND => Ok(false),
            code => check(code).map(|()| false),
        }
    }

    fn cursor(
        &mut self,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) -> Result<WiredTigerCursor<'_>> {
        Ok(WiredTigerCursor::new(self.handle.cursor()?, lower, upper))
    }
}
