//! `rocksdb_eventlistener_t`, and what its functions are told.
//!
//! The engine tells of events one at a time and with no lock held, from its own threads or at the end of a call; so a function of
//! the program may ask the database anything. What came before the database has a handle waits until it has one.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use drumlin::{
    CompactionInfo, Db, Error, EventListener, FlushInfo, Health, IngestInfo, MemtableInfo,
    PressureInfo, WeakDb,
};
use drumlin_base::sync::Mutex;
use drumlin_ffi::handle::{self, Handle};

use crate::callback::Destructor;
use crate::database::Database;
use crate::jobs::{
    CompactionJob, FlushJob, Ingested, Lent, SealedMemtable, StallChange, Status, Subcompaction,
};
use crate::logger::Logger;

type OnFlush =
    Option<unsafe extern "C" fn(*mut c_void, *mut Handle<Database>, *const Handle<FlushJob>)>;
type OnCompaction =
    Option<unsafe extern "C" fn(*mut c_void, *mut Handle<Database>, *const Handle<CompactionJob>)>;
type OnSubcompaction = Option<unsafe extern "C" fn(*mut c_void, *const Handle<Subcompaction>)>;
type OnIngested =
    Option<unsafe extern "C" fn(*mut c_void, *mut Handle<Database>, *const Handle<Ingested>)>;
type OnError = Option<unsafe extern "C" fn(*mut c_void, u32, *mut Handle<Status>)>;
type OnSealed = Option<unsafe extern "C" fn(*mut c_void, *const Handle<SealedMemtable>)>;
type OnStalled = Option<unsafe extern "C" fn(*mut c_void, *const Handle<StallChange>)>;

/// RocksDB's number of background errors in a compaction; the engine does not say in what they were.
const IN_BACKGROUND: u32 = 1;

struct Functions {
    state: *mut c_void,
    destructor: Destructor,
    flush_begun: OnFlush,
    flushed: OnFlush,
    compaction_begun: OnCompaction,
    compacted: OnCompaction,
    subcompaction_begun: OnSubcompaction,
    subcompacted: OnSubcompaction,
    ingested: OnIngested,
    failed: OnError,
    stalled: OnStalled,
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

/// An event as it waits for the database's handle.
enum Event {
    FlushBegun(FlushInfo),
    Flushed(FlushInfo),
    CompactionBegun(CompactionInfo),
    Compacted(CompactionInfo),
    Ingested(IngestInfo),
    Sealed(MemtableInfo),
    Failed(Error),
    Stalled(PressureInfo),
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
            listener.call(place.handle(), db, event);
        }
    }
}

impl Functions {
    fn call(&self, handle: *mut Handle<Database>, db: &Db, event: &Event) {
        match event {
            Event::FlushBegun(info) => self.on_flush(self.flush_begun, handle, db, info),
            Event::Flushed(info) => self.on_flush(self.flushed, handle, db, info),
            Event::CompactionBegun(info) => {
                self.on_compaction(self.compaction_begun, handle, db, info);
                self.on_subcompaction(self.subcompaction_begun, info);
            }
            Event::Compacted(info) => {
                self.on_subcompaction(self.subcompacted, info);
                self.on_compaction(self.compacted, handle, db, info);
            }
            Event::Ingested(info) => {
                let Some(call) = self.ingested else { return };
                let told = Lent::new(Ingested::new(info, db));
                // SAFETY: the function is given its state, and handles that live until it returns.
                unsafe { call(self.state, handle, told.handle()) };
            }
            Event::Sealed(info) => {
                let Some(call) = self.sealed else { return };
                let told = Lent::new(SealedMemtable(info.clone()));
                // SAFETY: as above.
                unsafe { call(self.state, told.handle()) };
            }
            Event::Stalled(info) => {
                let Some(call) = self.stalled else { return };
                let told = Lent::new(StallChange::new(info));
                // SAFETY: as above.
                unsafe { call(self.state, told.handle()) };
            }
            Event::Failed(error) => {
                let Some(call) = self.failed else { return };
                let told = Lent::new(Status(Some(error.duplicate())));
                // SAFETY: as above.
                unsafe { call(self.state, IN_BACKGROUND, told.handle()) };
            }
        }
    }

    fn on_flush(&self, call: OnFlush, handle: *mut Handle<Database>, db: &Db, info: &FlushInfo) {
        if let Some(call) = call {
            let told = Lent::new(FlushJob::new(info, db));
            // SAFETY: the function is given its state, and handles that live until it returns.
            unsafe { call(self.state, handle, told.handle()) };
        }
    }

    fn on_compaction(
        &self,
        call: OnCompaction,
        handle: *mut Handle<Database>,
        db: &Db,
        info: &CompactionInfo,
    ) {
        if let Some(call) = call {
            let told = Lent::new(CompactionJob::new(info, db));
            // SAFETY: the function is given its state, and handles that live until it returns.
            unsafe { call(self.state, handle, told.handle()) };
        }
    }

    fn on_subcompaction(&self, call: OnSubcompaction, info: &CompactionInfo) {
        if let Some(call) = call {
            let told = Lent::new(Subcompaction::new(info));
            // SAFETY: as above.
            unsafe { call(self.state, told.handle()) };
        }
    }
}

impl EventListener for Hearers {
    fn memtable_sealed(&self, info: &MemtableInfo) {
        self.hear(Event::Sealed(info.clone()));
    }

    fn pressure_changed(&self, info: &PressureInfo) {
        self.hear(Event::Stalled(info.clone()));
    }

    fn ingested(&self, info: &IngestInfo) {
        if let Some(logger) = &self.logger {
            logger.ingested(info);
        }
        self.hear(Event::Ingested(info.clone()));
    }

    fn flush_begun(&self, info: &FlushInfo) {
        self.hear(Event::FlushBegun(info.clone()));
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

/// Functions may be null: they are not called. Of subcompactions there is one in each compaction, whatever
/// number of threads it has.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_eventlistener_create(
    state: *mut c_void,
    destructor: Destructor,
    flush_begun: OnFlush,
    flushed: OnFlush,
    compaction_begun: OnCompaction,
    compacted: OnCompaction,
    subcompaction_begun: OnSubcompaction,
    subcompacted: OnSubcompaction,
    ingested: OnIngested,
    failed: OnError,
    stalled: OnStalled,
    sealed: OnSealed,
) -> *mut Handle<Listener> {
    handle::create(Listener(Arc::new(Functions {
        state,
        destructor,
        flush_begun,
        flushed,
        compaction_begun,
        compacted,
        subcompaction_begun,
        subcompacted,
        ingested,
        failed,
        stalled,
        sealed,
    })))
}

pub(crate) mod calls {
    use super::Listener;
    use crate::options::OpenOptions;

    pub(crate) fn options_add_eventlistener(options: &mut OpenOptions, listener: Option<Listener>) {
        options.listeners.extend(listener);
    }
}
