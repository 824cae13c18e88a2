//! `rocksdb_compactionfilter_t`, which options borrow, and `rocksdb_compactionfilterfactory_t`, which they take over.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::sync::Arc;

use drumlin::{CompactionFilter, CompactionFilterFactory, FilterDecision, FilterJob};
use drumlin_ffi::error::end_process;
use drumlin_ffi::handle::{self, Handle};

use crate::callback::{Destructor, NameOf, State};

type Decide = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut c_uchar,
) -> c_uchar;
type Make = unsafe extern "C" fn(*mut c_void, *mut Handle<FilterContext>) -> *mut Handle<Filter>;

/// A filter made of a C function.
#[derive(Debug)]
pub(crate) struct CFilter {
    state: State,
    decide: Decide,
}

impl CompactionFilter for CFilter {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn reads_blobs(&self) -> bool {
        true
    }

    fn filter(&self, level: u32, key: &[u8], value: &[u8]) -> FilterDecision {
        let (mut changed, mut new_len, mut new) = (0, 0, std::ptr::null_mut());
        // SAFETY: the function is given what it was made for: its state, bytes that live until it returns, and
        // places for its answers.
        let drops = unsafe {
            (self.decide)(
                self.state.state,
                c_int::try_from(level).unwrap_or(c_int::MAX),
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &raw mut new,
                &raw mut new_len,
                &raw mut changed,
            )
        };
        if drops != 0 {
            return FilterDecision::Remove;
        }
        if changed == 0 {
            return FilterDecision::Keep;
        }
        // The bytes stay the filter's, as c.h has it.
        // SAFETY: the function says that there are as many.
        let new = unsafe { drumlin_ffi::bytes::slice(new, new_len, &self.state.name) };
        FilterDecision::Change(new.to_vec())
    }
}

/// What a filter's handle holds.
#[derive(Debug)]
pub(crate) struct Filter(pub(crate) Arc<CFilter>);

/// What a factory's function is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterContext;

/// A factory made of a C function.
#[derive(Debug)]
pub(crate) struct CFactory {
    state: State,
    make: Make,
}

impl CompactionFilterFactory for CFactory {
    fn create(self: Arc<Self>, _job: &FilterJob) -> Option<Arc<dyn CompactionFilter>> {
        const NAME: &str = "rocksdb_compactionfilterfactory_create";
        let context = handle::create(FilterContext);
        // SAFETY: the function is given what it was made for.
        let made = unsafe { (self.make)(self.state.state, context) };
        // SAFETY: it is of this call only.
        unsafe { handle::destroy(context, NAME) };
        if made.is_null() {
            return None;
        }
        // SAFETY: the program made it for this compaction, which takes it over.
        let filter = unsafe { handle::take(made, NAME) };
        Some(filter.0)
    }
}

/// What a factory's handle holds.
#[derive(Debug)]
pub(crate) struct Factory(pub(crate) Arc<CFactory>);

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compactionfilter_create(
    state: *mut c_void,
    destructor: Destructor,
    decide: Option<Decide>,
    name: NameOf,
) -> *mut Handle<Filter> {
    const NAME: &str = "rocksdb_compactionfilter_create";
    let Some(decide) = decide else {
        end_process(NAME, "the function that filters is null");
    };
    // SAFETY: the C program gives functions for this state.
    let state = unsafe { State::new(state, destructor, name, NAME) };
    handle::create(Filter(Arc::new(CFilter { state, decide })))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compactionfilterfactory_create(
    state: *mut c_void,
    destructor: Destructor,
    make: Option<Make>,
    name: NameOf,
) -> *mut Handle<Factory> {
    const NAME: &str = "rocksdb_compactionfilterfactory_create";
    let Some(make) = make else {
        end_process(NAME, "the function that makes filters is null");
    };
    // SAFETY: the C program gives functions for this state.
    let state = unsafe { State::new(state, destructor, name, NAME) };
    handle::create(Factory(Arc::new(CFactory { state, make })))
}

/// False: the engine does not tell, and a compaction of everything is done in pieces.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compactionfiltercontext_is_full_compaction(
    context: *mut Handle<FilterContext>,
) -> c_uchar {
    // SAFETY: the C program's promise.
    unsafe {
        handle::get(
            context,
            "rocksdb_compactionfiltercontext_is_full_compaction",
        )
    };
    0
}

/// False, as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compactionfiltercontext_is_manual_compaction(
    context: *mut Handle<FilterContext>,
) -> c_uchar {
    // SAFETY: the C program's promise.
    unsafe {
        handle::get(
            context,
            "rocksdb_compactionfiltercontext_is_manual_compaction",
        )
    };
    0
}

pub(crate) mod calls {
    use super::Filter;

    /// Filters never see what a snapshot protects: RocksDB ended the other way in 6.0, too.
    pub(crate) fn compactionfilter_set_ignore_snapshots(_filter: &Filter, _ignores: bool) {}
}
