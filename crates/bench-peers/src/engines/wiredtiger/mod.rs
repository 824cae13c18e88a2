//! WiredTiger: the B-tree under MongoDB, in C, by the system's library.
//!
//! Set up as MongoDB does: leaf pages of 32 KB, a log, a checkpoint a minute. Its cache holds pages as
//! they are used, not as they are on disk.

mod cursor;
mod session;
mod sys;

use std::ffi::{CStr, CString, c_int};
use std::path::Path;
use std::ptr::{self, NonNull};

use drumlin_base::{Error, Result};
use drumlin_bench::{Flags, Store};
use drumlin_fs::Env;

use super::{given, quiet, remove_store};
use session::Handle;
pub(crate) use session::WiredTigerSession;

/// WiredTiger's extension for Snappy, found where the system keeps libraries.
const SNAPPY: &str = "extensions=[libwiredtiger_snappy.so],";
/// The log's directory; its end marks it as a log where sizes are taken.
const LOG_DIR: &str = "journal.log";

/// `code` as a result.
fn check(code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: takes a number and returns a C string that stays as it is until the thread's next call.
    let text = unsafe { CStr::from_ptr(sys::wiredtiger_strerror(code)) };
    Err(super::failed("WiredTiger", text.to_string_lossy()))
}

fn text(text: String) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid_argument("--db holds a zero byte"))
}

/// An open directory with one table.
pub(crate) struct WiredTigerStore(NonNull<sys::Connection>);

// SAFETY: WiredTiger's connection handle may be used from any thread ("WT_CONNECTION handles are thread
// safe"), and is closed by its one owner.
unsafe impl Send for WiredTigerStore {}
// SAFETY: as above: a shared reference is only used to open sessions.
unsafe impl Sync for WiredTigerStore {}

impl WiredTigerStore {
    fn handle(&self) -> Result<Handle<'_>> {
        let mut session = ptr::null_mut();
        // SAFETY: the connection is open; `session` is a place to write to.
        check(unsafe { sys::peers_wt_session(self.0.as_ptr(), &raw mut session) })?;
        Handle::new(session)
    }
}

impl Drop for WiredTigerStore {
    fn drop(&mut self) {
        // SAFETY: the connection is open and sessions, which borrow the store, are gone. Closing fails
        // only when its last checkpoint does; the data is thrown away after a failure.
        let _unreported = unsafe { sys::peers_wt_close(self.0.as_ptr()) };
    }
}

impl Store for WiredTigerStore {
    type Session<'a> = WiredTigerSession<'a>;

    fn open(flags: &Flags, env: &Env) -> Result<Self> {
        let codec = flags.compression_type.as_str();
        if !["none", "snappy"].contains(&codec) {
            let message = format!("WiredTiger is set up here without '{codec}'");
            return Err(Error::invalid_argument(message));
        }
        env.files
            .create_dir_all(&Path::new(&flags.db).join(LOG_DIR))?;
        let config = text(format!(
            "create,cache_size={cache},session_max=1000,{extensions}log=(enabled={log},path={LOG_DIR}),\
             direct_io=[{direct}],transaction_sync=(enabled={sync}),checkpoint=(wait=60),eviction=(threads_min=1,threads_max=2)",
            cache = given(flags.cache_size, 1 << 30).max(1 << 20),
            extensions = if codec == "snappy" { SNAPPY } else { "" },
            log = !flags.disable_wal,
            direct = if flags.use_direct_reads { "data" } else { "" },
            sync = flags.sync,
        ))?;
        let home = text(flags.db.clone())?;
        let mut connection = ptr::null_mut();
        // SAFETY: both strings are alive; `connection` is a place to write to.
        check(unsafe { sys::peers_wt_open(home.as_ptr(), config.as_ptr(), &raw mut connection) })?;
        let store = Self(NonNull::new(connection).expect("set where no error is returned"));
        let table = text(format!(
            "key_format=u,value_format=u,leaf_page_max=32KB,block_compressor={}",
            if codec == "none" { "" } else { codec },
        ))?;
        store.handle()?.create(&table)?;
        Ok(store)
    }

    fn destroy(flags: &Flags, _: &Env) -> Result<()> {
        remove_store(&flags.db, &["WiredTiger", LOG_DIR])
    }

    fn close(self) -> Result<()> {
        let connection = self.0;
        std::mem::forget(self);
        // SAFETY: the connection is open, sessions, which borrow the store, are gone, and the drop that
        // would close it again was forgotten.
        check(unsafe { sys::peers_wt_close(connection.as_ptr()) })
    }

    fn session(&self, _: &Flags) -> WiredTigerSession<'_> {
        let handle = self
            .handle()
            .expect("there is room for a thousand sessions");
        WiredTigerSession::new(handle).expect("the table was made when the store was opened")
    }

    fn flush(&self) -> Result<()> {
        self.handle()?.checkpoint()
    }

    fn compact(&self) -> Result<()> {
        let handle = self.handle()?;
        handle.checkpoint()?;
        handle.compact()
    }

    fn wait_for_background(&self) -> Result<()> {
        self.flush()?;
        quiet::wait_until_idle();
        Ok(())
    }

    fn version() -> String {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: the three are places to write to.
        unsafe { sys::wiredtiger_version(&raw mut major, &raw mut minor, &raw mut patch) };
        format!("WiredTiger: version {major}.{minor}.{patch}")
    }
}
