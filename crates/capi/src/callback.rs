//! What all objects made of a program's functions have: a state, its destructor, a name.

use std::ffi::{CStr, c_char, c_void};

use drumlin_ffi::error::end_process;

pub(crate) type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;
pub(crate) type NameOf = Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>;

/// The state. Its destructor is called when the last user of it is gone.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) state: *mut c_void,
    destructor: Destructor,
    pub(crate) name: String,
}

// SAFETY: `rocksdb/c.h` says that a program's functions are called by several threads at a time, with this state.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl State {
    /// # Safety
    /// `name` is a function for `state`, and `destructor` may be called once.
    pub(crate) unsafe fn new(
        state: *mut c_void,
        destructor: Destructor,
        name: NameOf,
        function: &str,
    ) -> Self {
        let Some(name) = name else {
            end_process(function, "the function that gives the name is null");
        };
        // SAFETY: the caller's promise.
        let name = unsafe { name(state) };
        if name.is_null() {
            end_process(function, "the name is null");
        }
        // SAFETY: it is not null, and names are texts with a zero at their end.
        let name = unsafe { CStr::from_ptr(name) };
        Self {
            state,
            destructor,
            name: name.to_string_lossy().into_owned(),
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the last user of the state is gone, and this runs once.
            unsafe { destructor(self.state) };
        }
    }
}
