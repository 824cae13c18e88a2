//! `rocksdb_comparator_t`: an order of keys made of C functions. It is borrowed by options, and lives here until the
//! last database that uses it is closed.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::sync::Arc;

use drumlin::Comparator;
use drumlin_ffi::error::end_process;
use drumlin_ffi::handle::{self, Handle};

use crate::callback::{Destructor, NameOf, State};

type Compare =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;

type CompareWithout = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    c_uchar,
    *const c_char,
    usize,
    c_uchar,
) -> c_int;

/// Of an order whose keys end with timestamps. Timestamps alone are compared as keys without other bytes.
#[derive(Clone, Copy, Debug)]
struct Timestamps {
    bytes: usize,
    compare_without: CompareWithout,
}

/// The order.
#[derive(Debug)]
pub(crate) struct CComparator {
    state: State,
    compare: Compare,
    timestamps: Option<Timestamps>,
}

impl Comparator for CComparator {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if let Some(order) = self.order_of_short(a, b) {
            return order;
        }
        let (a_len, b_len) = (a.len(), b.len());
        let (a, b) = (a.as_ptr().cast(), b.as_ptr().cast());
        // SAFETY: the function is given what it was made for: its state, and bytes that live until it returns.
        let order = unsafe { (self.compare)(self.state.state, a, a_len, b, b_len) };
        order.cmp(&0)
    }

    fn timestamp_bytes(&self) -> usize {
        self.timestamps.map_or(0, |timestamps| timestamps.bytes)
    }

    fn compare_without_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        let Some(timestamps) = self.timestamps else {
            return self.compare(a, b);
        };
        if let Some(order) = self.order_of_short(a, b) {
            return order;
        }
        let (a_len, b_len) = (a.len(), b.len());
        let (a, b) = (a.as_ptr().cast(), b.as_ptr().cast());
        // SAFETY: the function is given what it was made for: its state, and bytes with timestamps that live until it returns.
        let order =
            unsafe { (timestamps.compare_without)(self.state.state, a, a_len, 1, b, b_len, 1) };
        order.cmp(&0)
    }
}

impl CComparator {
    /// The order of keys of which one is too short for a timestamp, which only damage has: the program's functions would cut
    /// into what is not there.
    fn order_of_short(&self, a: &[u8], b: &[u8]) -> Option<Ordering> {
        let bytes = self.timestamps?.bytes;
        match (a.len() < bytes, b.len() < bytes) {
            (false, false) => None,
            (true, true) => Some(a.cmp(b)),
            (is_short, _) => Some(match is_short {
                true => Ordering::Less,
                false => Ordering::Greater,
            }),
        }
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
    handle::create(Ordered(Arc::new(CComparator {
        state,
        compare,
        timestamps: None,
    })))
}

/// The order of timestamps follows from that of keys: of two versions of a key the newer one is first.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_comparator_with_ts_create(
    state: *mut c_void,
    destructor: Destructor,
    compare: Option<Compare>,
    _compare_ts: Option<Compare>,
    compare_without: Option<CompareWithout>,
    name: NameOf,
    bytes: usize,
) -> *mut Handle<Ordered> {
    const NAME: &str = "rocksdb_comparator_with_ts_create";
    let (Some(compare), Some(compare_without)) = (compare, compare_without) else {
        end_process(NAME, "a function that compares is null");
    };
    // SAFETY: the C program gives functions for this state.
    let state = unsafe { State::new(state, destructor, name, NAME) };
    let timestamps = Timestamps {
        bytes,
        compare_without,
    };
    handle::create(Ordered(Arc::new(CComparator {
        state,
        compare,
        timestamps: (bytes > 0).then_some(timestamps),
    })))
}
