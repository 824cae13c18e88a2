//! `rocksdb_eventlistener_t`, and what its functions are told.
//!
//! The engine tells of events one at a time and with no lock held, from its own threads or at the end of a call; so a function of
//! the program may ask the database anything. What came before the database has a handle waits until it has one.

use std::ffi::c_void;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use drumlin::internals::names;
use drumlin::{
    CompactionInfo, Db, Error, EventListener, FlushInfo, Health, IngestInfo, MemtableInfo, WeakDb,
};
use drumlin_base::sync::Mutex;
use drumlin_ffi::handle::{self, Handle};

use crate::callback::Destructor;
use crate::database::Database;
use crate::logger::Logger;

type OnFlush =
    Option<unsafe extern "C" fn(*mut c_void, *mut Handle<Database>, *const Handle<FlushJob>)>;
type OnCompaction =
    Option<unsafe extern "C" fn(*mut c_void, *mut Handle<Database>, *const Handle<CompactionJob>)>;
type OnIngested =
    Option<unsafe extern "C" fn(*mut c_void, *mut Handle<Database>, *const Handle<Ingested>)>;
type OnError = Option<unsafe extern "C" fn(*mut c_void, u32, *mut Handle<Status>)>;
type OnSealed = Option<unsafe extern "C" fn(*mut c_void, *const Handle<SealedMemtable>)>;
/// Of what the engine does not tell.
type Never = Option<unsafe extern "C" fn()>;

/// RocksDB's number of background errors in a compaction; the engine does not say in what they were.
const IN_BACKGROUND: u32 = 1;

struct Functions {
    state: *mut c_void,
    destructor: Destructor,
    flush_begun: OnFlush,
    flushed: OnFlush,
    compaction_begun: OnCompaction,
    compacted: OnCompaction,
    ingested: OnIngested,
    failed: OnError,
    sealed: OnSealed,
}

// SAFETY: `rocksdb/c.h` says that a program's functions are called by several threads, with this state.
unsafe impl Send for Functions {}
// SAFETY: as above.
unsafe impl Sync for Functions {}

impl Drop for Functions {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the last user of the state is gone, and this runs once.
            unsafe { destructor(self.state) };
        }
    }
}

/// What the handle holds.
#[derive(Clone)]
pub(crate) struct Listener(Arc<Functions>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

/// A flush; without a table where it has only begun, or there was nothing to write.
#[derive(Debug)]
pub(crate) struct FlushJob {
    family: String,
    family_id: u32,
    table: u64,
    path: Vec<u8>,
    seqnos: (u64, u64),
}

/// A table before or after a compaction.
#[derive(Debug)]
pub(crate) struct CompactionFile {
    level: usize,
    number: u64,
}

/// A handle that is lent to the program.
#[derive(Debug)]
struct Lent<T: handle::Tagged>(*mut Handle<T>);

impl<T: handle::Tagged> Lent<T> {
    fn new(value: T) -> Self {
        Self(handle::create(value))
    }
}

impl<T: handle::Tagged> Drop for Lent<T> {
    fn drop(&mut self) {
        // SAFETY: it is of `create`, and destroyed here alone: the program gets it as constant.
        unsafe { handle::destroy(self.0, "the end of an event") };
    }
}

// SAFETY: what is lent is moved with its owner, and is the owner's alone.
unsafe impl<T: handle::Tagged + Send> Send for Lent<T> {}
// SAFETY: it is only read while there is an owner.
unsafe impl<T: handle::Tagged + Sync> Sync for Lent<T> {}

/// A compaction; without outputs where it has only begun.
#[derive(Debug)]
pub(crate) struct CompactionJob {
    info: CompactionInfo,
    inputs: Vec<(Vec<u8>, Lent<CompactionFile>)>,
    outputs: Vec<(Vec<u8>, Lent<CompactionFile>)>,
}

impl CompactionJob {
    fn new(info: &CompactionInfo, dir: &Path) -> Self {
        let files = |tables: &[(usize, u64)]| {
            let file = |&(level, number): &(usize, u64)| {
                (
                    path_of(dir, number),
                    Lent::new(CompactionFile { level, number }),
                )
            };
            tables.iter().map(file).collect()
        };
        Self {
            inputs: files(&info.input_tables),
            outputs: files(&info.output_tables),
            info: info.clone(),
        }
    }
}

/// A table that was taken in.
#[derive(Debug)]
pub(crate) struct Ingested {
    info: IngestInfo,
    original: Vec<u8>,
    path: Vec<u8>,
}

/// A memtable that waits to be flushed.
#[derive(Debug)]
pub(crate) struct SealedMemtable(MemtableInfo);

/// An error; none once it was reset, which changes nothing in the database.
#[derive(Debug)]
pub(crate) struct Status(Option<Error>);

fn path_of(dir: &Path, number: u64) -> Vec<u8> {
    names::table(dir, number)
        .into_os_string()
        .into_encoded_bytes()
}

/// An event as it waits for the database's handle.
enum Event {
    FlushBegun(String, u32),
    Flushed(FlushInfo),
    CompactionBegun(CompactionInfo),
    Compacted(CompactionInfo),
    Ingested(IngestInfo),
    Sealed(MemtableInfo),
    Failed(Error),
}

/// Who hears what one database does: its log and the listeners of its options.
pub(crate) struct Hearers {
    logger: Option<Arc<dyn EventListener>>,
    listeners: Vec<Listener>,
    place: Mutex<Place>,
}

#[derive(Default)]
struct Place {
    db: Option<WeakDb>,
    waiting: Vec<Event>,
}

impl Hearers {
    /// `None` where nobody hears.
    pub(crate) fn new(logger: &Logger, listeners: &[Listener]) -> Option<Arc<Self>> {
        let logger = logger.listener();
        (logger.is_some() || !listeners.is_empty()).then(|| {
            Arc::new(Self {
                logger,
                listeners: listeners.to_vec(),
                place: Mutex::default(),
            })
        })
    }

    /// Tells what waited for `db`, and from here on at once.
    pub(crate) fn attach(&self, db: &Db) {
        loop {
            let waiting = {
                let mut place = self.place.lock();
                if place.waiting.is_empty() {
                    place.db = Some(db.downgrade());
                    return;
                }
                std::mem::take(&mut place.waiting)
            };
            for event in waiting {
                self.tell(db, &event);
            }
        }
    }

    fn hear(&self, event: Event) {
        if self.listeners.is_empty() {
            return;
        }
        let db = {
            let mut place = self.place.lock();
            match &place.db {
                None => return place.waiting.push(event),
                Some(db) => db.upgrade(),
            }
        };
        // One that is being dropped is asked nothing any more.
        if let Some(db) = db {
            self.tell(&db, &event);
        }
    }

    fn tell(&self, db: &Db, event: &Event) {
        let place = Lent::new(Database::of_event(db.clone()));
        for Listener(listener) in &self.listeners {
            listener.call(place.0, db.path(), event);
        }
    }
}

impl Functions {
    fn call(&self, db: *mut Handle<Database>, dir: &Path, event: &Event) {
        match event {
            Event::FlushBegun(family, family_id) => {
                let job = FlushJob {
                    family: family.clone(),
                    family_id: *family_id,
                    table: 0,
                    path: Vec::new(),
                    seqnos: (0, 0),
                };
                self.on_flush(self.flush_begun, db, job);
            }
            Event::Flushed(info) => {
                let job = FlushJob {
                    family: info.family.clone(),
                    family_id: info.family_id,
                    table: info.table.unwrap_or(0),
                    path: info.table.map_or(Vec::new(), |table| path_of(dir, table)),
                    seqnos: info.seqnos,
                };
                self.on_flush(self.flushed, db, job);
            }
            Event::CompactionBegun(info) => {
                self.on_compaction(self.compaction_begun, db, dir, info)
            }
            Event::Compacted(info) => self.on_compaction(self.compacted, db, dir, info),
            Event::Ingested(info) => {
                let Some(call) = self.ingested else { return };
                let told = Lent::new(Ingested {
                    original: info.path.clone().into_os_string().into_encoded_bytes(),
                    path: path_of(dir, info.table),
                    info: info.clone(),
                });
                // SAFETY: the function is given its state, and handles that live until it returns.
                unsafe { call(self.state, db, told.0) };
            }
            Event::Sealed(info) => {
                let Some(call) = self.sealed else { return };
                let told = Lent::new(SealedMemtable(info.clone()));
                // SAFETY: as above.
                unsafe { call(self.state, told.0) };
            }
            Event::Failed(error) => {
                let Some(call) = self.failed else { return };
                let told = Lent::new(Status(Some(error.duplicate())));
                // SAFETY: as above.
                unsafe { call(self.state, IN_BACKGROUND, told.0) };
            }
        }
    }

    fn on_flush(&self, call: OnFlush, db: *mut Handle<Database>, job: FlushJob) {
        if let Some(call) = call {
            let told = Lent::new(job);
            // SAFETY: the function is given its state, and handles that live until it returns.
            unsafe { call(self.state, db, told.0) };
        }
    }

    fn on_compaction(
        &self,
        call: OnCompaction,
        db: *mut Handle<Database>,
        dir: &Path,
        info: &CompactionInfo,
    ) {
        if let Some(call) = call {
            let told = Lent::new(CompactionJob::new(info, dir));
            // SAFETY: the function is given its state, and handles that live until it returns.
            unsafe { call(self.state, db, told.0) };
        }
    }
}

impl EventListener for Hearers {
    fn memtable_sealed(&self, info: &MemtableInfo) {
        self.hear(Event::Sealed(info.clone()));
    }

    fn ingested(&self, info: &IngestInfo) {
        if let Some(logger) = &self.logger {
            logger.ingested(info);
        }
        self.hear(Event::Ingested(info.clone()));
    }

    fn flush_begun(&self, family: &str, family_id: u32) {
        self.hear(Event::FlushBegun(family.to_owned(), family_id));
    }

    fn flushed(&self, info: &FlushInfo) {
        if let Some(logger) = &self.logger {
            logger.flushed(info);
        }
        self.hear(Event::Flushed(info.clone()));
    }

    fn compaction_begun(&self, info: &CompactionInfo) {
        self.hear(Event::CompactionBegun(info.clone()));
    }

    fn compacted(&self, info: &CompactionInfo) {
        if let Some(logger) = &self.logger {
            logger.compacted(info);
        }
        self.hear(Event::Compacted(info.clone()));
    }

    fn background_failed(&self, error: &Error) {
        if let Some(logger) = &self.logger {
            logger.background_failed(error);
        }
        self.hear(Event::Failed(error.duplicate()));
    }

    fn health_changed(&self, from: Health, to: Health, cause: &str) {
        if let Some(logger) = &self.logger {
            logger.health_changed(from, to, cause);
        }
    }

    fn write_waited(&self, micros: u64, why: &str) {
        if let Some(logger) = &self.logger {
            logger.write_waited(micros, why);
        }
    }
}

/// Functions may be null: they are not called. Those of subcompactions and of stalls never are.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_eventlistener_create(
    state: *mut c_void,
    destructor: Destructor,
    flush_begun: OnFlush,
    flushed: OnFlush,
    compaction_begun: OnCompaction,
    compacted: OnCompaction,
    subcompaction_begun: Never,
    subcompacted: Never,
    ingested: OnIngested,
    failed: OnError,
    stalled: Never,
    sealed: OnSealed,
) -> *mut Handle<Listener> {
    let _ = (subcompaction_begun, subcompacted, stalled);
    handle::create(Listener(Arc::new(Functions {
        state,
        destructor,
        flush_begun,
        flushed,
        compaction_begun,
        compacted,
        ingested,
        failed,
        sealed,
    })))
}

/// Tables of a compaction are lent as long as what tells of it.
fn file_at(files: &[(Vec<u8>, Lent<CompactionFile>)], at: usize) -> *const Handle<CompactionFile> {
    files
        .get(at)
        .map_or(std::ptr::null(), |(_, file)| file.0.cast_const())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compactionjobinfo_input_file_info_at(
    info: *const Handle<CompactionJob>,
    at: usize,
) -> *const Handle<CompactionFile> {
    // SAFETY: the C program's promise.
    let info = unsafe { handle::get(info, "rocksdb_compactionjobinfo_input_file_info_at") };
    file_at(&info.inputs, at)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compactionjobinfo_output_file_info_at(
    info: *const Handle<CompactionJob>,
    at: usize,
) -> *const Handle<CompactionFile> {
    // SAFETY: the C program's promise.
    let info = unsafe { handle::get(info, "rocksdb_compactionjobinfo_output_file_info_at") };
    file_at(&info.outputs, at)
}

pub(crate) mod calls {
    use drumlin::{Error, Result};

    use super::{
        CompactionFile, CompactionJob, FlushJob, Ingested, Listener, SealedMemtable, Status,
    };
    use crate::options::OpenOptions;

    pub(crate) fn options_add_eventlistener(options: &mut OpenOptions, listener: Option<Listener>) {
        options.listeners.extend(listener);
    }

    pub(crate) fn status_ptr_get_error(status: &Status) -> Result<()> {
        status
            .0
            .as_ref()
            .map_or(Ok(()), |error| Err(Error::duplicate(error)))
    }

    pub(crate) fn reset_status(status: &mut Status) {
        status.0 = None;
    }

    pub(crate) fn flushjobinfo_cf_id(info: &FlushJob) -> u32 {
        info.family_id
    }

    pub(crate) fn flushjobinfo_cf_name(info: &FlushJob) -> Option<&[u8]> {
        Some(info.family.as_bytes())
    }

    pub(crate) fn flushjobinfo_file_number(info: &FlushJob) -> u64 {
        info.table
    }

    pub(crate) fn flushjobinfo_file_path(info: &FlushJob) -> Option<&[u8]> {
        Some(&info.path)
    }

    pub(crate) fn flushjobinfo_smallest_seqno(info: &FlushJob) -> u64 {
        info.seqnos.0
    }

    pub(crate) fn flushjobinfo_largest_seqno(info: &FlushJob) -> u64 {
        info.seqnos.1
    }

    pub(crate) fn compactionjobinfo_cf_id(info: &CompactionJob) -> u32 {
        info.info.family_id
    }

    pub(crate) fn compactionjobinfo_cf_name(info: &CompactionJob) -> Option<&[u8]> {
        Some(info.info.family.as_bytes())
    }

    /// Only what ended well is told of.
    pub(crate) fn compactionjobinfo_status(_info: &CompactionJob) -> Result<()> {
        Ok(())
    }

    pub(crate) fn compactionjobinfo_aborted(_info: &CompactionJob) -> bool {
        false
    }

    pub(crate) fn compactionjobinfo_base_input_level(info: &CompactionJob) -> i32 {
        info.info.level as i32
    }

    pub(crate) fn compactionjobinfo_output_level(info: &CompactionJob) -> i32 {
        info.info.output_level as i32
    }

    pub(crate) fn compactionjobinfo_elapsed_micros(info: &CompactionJob) -> u64 {
        u64::try_from(info.info.took.as_micros()).unwrap_or(u64::MAX)
    }

    pub(crate) fn compactionjobinfo_num_input_files(info: &CompactionJob) -> usize {
        info.inputs.len()
    }

    pub(crate) fn compactionjobinfo_num_input_files_at_output_level(info: &CompactionJob) -> usize {
        let tables = info.info.input_tables.iter();
        tables
            .filter(|(level, _)| *level == info.info.output_level)
            .count()
    }

    pub(crate) fn compactionjobinfo_total_input_bytes(info: &CompactionJob) -> u64 {
        info.info.bytes_read
    }

    pub(crate) fn compactionjobinfo_total_output_bytes(info: &CompactionJob) -> u64 {
        info.info.bytes_written
    }

    pub(crate) fn compactionjobinfo_input_files_count(info: &CompactionJob) -> usize {
        info.inputs.len()
    }

    pub(crate) fn compactionjobinfo_input_file_at(
        info: &CompactionJob,
        at: usize,
    ) -> Option<&[u8]> {
        info.inputs.get(at).map(|(path, _)| path.as_slice())
    }

    pub(crate) fn compactionjobinfo_output_files_count(info: &CompactionJob) -> usize {
        info.outputs.len()
    }

    pub(crate) fn compactionjobinfo_output_file_at(
        info: &CompactionJob,
        at: usize,
    ) -> Option<&[u8]> {
        info.outputs.get(at).map(|(path, _)| path.as_slice())
    }

    pub(crate) fn compactionjobinfo_input_file_infos_count(info: &CompactionJob) -> usize {
        info.inputs.len()
    }

    pub(crate) fn compactionjobinfo_output_file_infos_count(info: &CompactionJob) -> usize {
        info.outputs.len()
    }

    pub(crate) fn compaction_file_info_level(file: &CompactionFile) -> i32 {
        file.level as i32
    }

    pub(crate) fn compaction_file_info_file_number(file: &CompactionFile) -> u64 {
        file.number
    }

    pub(crate) fn externalfileingestioninfo_cf_name(info: &Ingested) -> Option<&[u8]> {
        Some(info.info.family.as_bytes())
    }

    pub(crate) fn externalfileingestioninfo_external_file_path(info: &Ingested) -> Option<&[u8]> {
        Some(&info.original)
    }

    pub(crate) fn externalfileingestioninfo_internal_file_path(info: &Ingested) -> Option<&[u8]> {
        Some(&info.path)
    }

    pub(crate) fn externalfileingestioninfo_global_seqno(info: &Ingested) -> u64 {
        info.info.seqno
    }

    pub(crate) fn memtableinfo_cf_name(info: &SealedMemtable) -> Option<&[u8]> {
        Some(info.0.family.as_bytes())
    }

    pub(crate) fn memtableinfo_num_entries(info: &SealedMemtable) -> u64 {
        info.0.entries
    }

    pub(crate) fn memtableinfo_num_deletes(info: &SealedMemtable) -> u64 {
        info.0.deletions
    }
}
