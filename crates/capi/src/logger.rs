//! `rocksdb_logger_t`: where a database tells what it does, a line at a time.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::fmt;
use std::sync::Arc;

use drumlin::internals::info_log::{InfoLog, Level};
use drumlin::{CompactionInfo, Db, Error, EventListener, FlushInfo, Health, IngestInfo};
use drumlin_ffi::bytes::text;
use drumlin_ffi::handle::{self, Handle};

type Callback = unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, usize);

enum Sink {
    Stderr { prefix: String },
    Callback { call: Callback, state: *mut c_void },
    File(Box<InfoLog>),
}

// SAFETY: `rocksdb/c.h` says that a program's functions are called by several threads, with this state.
unsafe impl Send for Sink {}
// SAFETY: as above.
unsafe impl Sync for Sink {}

/// What the handle holds. `None` is that of options that have none.
#[derive(Clone, Default)]
pub(crate) struct Logger(Option<Arc<Lines>>);

struct Lines {
    /// Lines below it are left out.
    least: c_int,
    sink: Sink,
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").finish_non_exhaustive()
    }
}

impl Logger {
    /// The file LOG, which is begun by [`Logger::begin`].
    pub(crate) fn to_file(least: c_int, log: InfoLog) -> Self {
        let sink = Sink::File(Box::new(log));
        Self(Some(Arc::new(Lines { least, sink })))
    }

    /// Begins the file LOG of `db`, if there shall be one.
    pub(crate) fn begin(&self, db: &Db, header: impl FnOnce() -> Vec<String>) {
        if let Some(lines) = &self.0
            && let Sink::File(log) = &lines.sink
        {
            log.begin(db.path(), header());
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn line(&self, level: Level, line: &str) {
        let Some(lines) = self
            .0
            .as_ref()
            .filter(|lines| level as c_int >= lines.least)
        else {
            return;
        };
        match &lines.sink {
            Sink::Stderr { prefix } => {
                let line = format!("{prefix}{line}\n");
                // What cannot be told is not told.
                // SAFETY: the pointer and the length are of `line`.
                let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
            }
            Sink::Callback { call, state } => {
                // RocksDB gives a text that may be changed, with a zero at its end.
                let mut bytes = line.as_bytes().to_vec();
                bytes.push(0);
                let len = bytes.len() - 1;
                // SAFETY: the function is given its state, and bytes that live until it returns.
                unsafe { call(*state, level as c_uint, bytes.as_mut_ptr().cast(), len) };
            }
            Sink::File(log) => log.line(level, line),
        }
    }

    /// Who hears what a database does, if anybody does.
    pub(crate) fn listener(&self) -> Option<Arc<dyn EventListener>> {
        self.0.as_ref()?;
        Some(Arc::new(self.clone()))
    }
}

impl EventListener for Logger {
    fn flushed(&self, info: &FlushInfo) {
        let table = info
            .table
            .map_or("no table".to_owned(), |number| format!("table {number:06}"));
        let line = format!("[{}] flushed to {table}, {} bytes", info.family, info.bytes);
        self.line(Level::Info, &line);
    }

    fn compacted(&self, info: &CompactionInfo) {
        let line = format!(
            "[{}] compacted {} tables of level {} to {} of level {}, {} bytes to {}",
            info.family,
            info.inputs,
            info.level,
            info.outputs,
            info.output_level,
            info.bytes_read,
            info.bytes_written
        );
        self.line(Level::Info, &line);
    }

    fn ingested(&self, info: &IngestInfo) {
        let (family, path) = (&info.family, info.path.display());
        let line = format!("[{family}] took in {path} as table {:06}", info.table);
        self.line(Level::Info, &line);
    }

    fn background_failed(&self, error: &Error) {
        self.line(Level::Error, &format!("background work failed: {error}"));
    }

    fn health_changed(&self, from: Health, to: Health, cause: &str) {
        let line = format!("health went from {from:?} to {to:?}: {cause}");
        self.line(Level::Warn, &line);
    }

    fn write_waited(&self, micros: u64, why: &str) {
        self.line(Level::Warn, &format!("a write waited {micros} us: {why}"));
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_logger_create_stderr_logger(
    least: c_int,
    prefix: *const c_char,
) -> *mut Handle<Logger> {
    const NAME: &str = "rocksdb_logger_create_stderr_logger";
    let prefix = match prefix.is_null() {
        true => String::new(),
        // SAFETY: the C program's promise.
        false => unsafe { text(prefix, NAME) }.to_string_lossy().into_owned(),
    };
    let sink = Sink::Stderr { prefix };
    handle::create(Logger(Some(Arc::new(Lines { least, sink }))))
}

/// Nothing is told where the function is null.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_logger_create_callback_logger(
    least: c_int,
    call: Option<Callback>,
    state: *mut c_void,
) -> *mut Handle<Logger> {
    let lines = call.map(|call| Lines {
        least,
        sink: Sink::Callback { call, state },
    });
    handle::create(Logger(lines.map(Arc::new)))
}

pub(crate) mod calls {
    use super::Logger;
    use crate::options::OpenOptions;

    pub(crate) fn options_set_info_log(options: &mut OpenOptions, logger: Option<&Logger>) {
        options.logger = logger.cloned().unwrap_or_default();
    }

    pub(crate) fn options_get_info_log(options: &mut OpenOptions) -> Logger {
        options.logger.clone()
    }
}
