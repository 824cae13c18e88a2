//! `rocksdb_comparator_t`: an order of keys made of C functions. It is borrowed by options, and lives here until the
//! last database that uses it is closed.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use drumlin::Comparator;
use drumlin_ffi::error::end_process;
use drumlin_ffi::handle::{self, Handle};

use crate::callback::{Destructor, NameOf, State};

type Compare =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;

/// The order.
#[derive(Debug)]
pub(crate) struct CComparator {
    state: State,
    compare: Compare,
}

impl Comparator for CComparator {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (a_len, b_len) = (a.len(), b.len());
        let (a, b) = (a.as_ptr().cast(), b.as_ptr().cast());
        // SAFETY: the function is given what it was made for: its state, and bytes that live until it returns.
        let order = unsafe { (self.compare)(self.state.state, a, a_len, b, b_len) };
        order.cmp(&0)
    }
}

/// What the handle holds.
#[derive(Debug)]
pub(crate) struct Ordered(pub(crate) Arc<CComparator>);

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_comparator_create(
    state: *mut c_void,
    destructor: Destructor,
    compare: Option<Compare>,
    name: NameOf,
) -> *mut Handle<Ordered> {
    const NAME: &str = "rocksdb_comparator_create";
    let Some(compare) = compare else {
        end_process(NAME, "the function that compares is null");
    };
    // SAFETY: the C program gives functions for this state.
    let state = unsafe { State::new(state, destructor, name, NAME) };
    handle::create(Ordered(Arc::new(CComparator { state, compare })))
}
