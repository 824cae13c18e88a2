//! `leveldb_comparator_t`: an order of keys made of C functions.

use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use drumlin::Comparator;

use drumlin_ffi::error::end_process;
use drumlin_ffi::handle::{self, Handle, Tagged};

type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;
type Compare =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
type Name = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// The order. Its destructor is called when the handle and every database opened with it are gone.
pub(crate) struct CComparator {
    state: *mut c_void,
    destructor: Destructor,
    compare: Compare,
    name: String,
}

// SAFETY: `leveldb/c.h` says that comparators are called by several threads at a time.
unsafe impl Send for CComparator {}
// SAFETY: as above.
unsafe impl Sync for CComparator {}

impl std::fmt::Debug for CComparator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CComparator")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Comparator for CComparator {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // SAFETY: the function is given what it was made for: its state, and bytes that live until it returns.
        let order = unsafe {
            (self.compare)(
                self.state,
                a.as_ptr().cast(),
                a.len(),
                b.as_ptr().cast(),
                b.len(),
            )
        };
        order.cmp(&0)
    }
}

impl Drop for CComparator {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the last user of the state is gone, and this runs once.
            unsafe { destructor(self.state) };
        }
    }
}

/// What the handle holds.
#[derive(Debug)]
pub(crate) struct Ordered(Arc<CComparator>);

impl Ordered {
    pub(crate) fn order(&self) -> &Arc<CComparator> {
        &self.0
    }
}

impl Tagged for Ordered {
    const TAG: u64 = 0x6c64_636f_6d70_6172;
    const NAME: &'static str = "leveldb_comparator_t";
}

pub(crate) type ComparatorHandle = Handle<Ordered>;

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Destructor,
    compare: Option<Compare>,
    name: Option<Name>,
) -> *mut ComparatorHandle {
    const FUNCTION: &str = "leveldb_comparator_create";
    let (Some(compare), Some(name)) = (compare, name) else {
        end_process(FUNCTION, "a function is null");
    };
    // SAFETY: the C program gives a function for this state.
    let name = unsafe { name(state) };
    if name.is_null() {
        end_process(FUNCTION, "the name is null");
    }
    // SAFETY: it is not null, and names are texts with a zero at their end.
    let name = unsafe { CStr::from_ptr(name) };
    handle::create(Ordered(Arc::new(CComparator {
        state,
        destructor,
        compare,
        name: name.to_string_lossy().into_owned(),
    })))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_comparator_destroy(comparator: *mut ComparatorHandle) {
    // SAFETY: the C program's promise.
    unsafe { handle::destroy(comparator, "leveldb_comparator_destroy") };
}
