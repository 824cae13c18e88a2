//! `rocksdb_mergeoperator_t`: operands combined by C functions. The options that it is set in take it over.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::sync::Arc;

use drumlin::{Error, MergeOperator, Result};
use drumlin_ffi::error::end_process;
use drumlin_ffi::handle::{self, Handle};

use crate::callback::{Destructor, NameOf, State};

type FullMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;
type PartialMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;
type DeleteValue = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

/// The functions.
#[derive(Debug)]
struct CMergeOperator {
    state: State,
    full: FullMerge,
    partial: Option<PartialMerge>,
    delete: Option<DeleteValue>,
}

impl CMergeOperator {
    /// A copy of what a function made, whose memory goes back to the program; `None` where it had no success.
    ///
    /// # Safety
    /// `made` is null or points to `len` bytes from `malloc` or for the function that deletes values.
    unsafe fn take(&self, made: *mut c_char, len: usize, success: c_uchar) -> Option<Vec<u8>> {
        // SAFETY: the caller's promise; null comes with no success or with no bytes.
        let bytes = unsafe { drumlin_ffi::bytes::slice(made, len, "rocksdb_mergeoperator_create") };
        let result = (success != 0).then(|| bytes.to_vec());
        match self.delete {
            // SAFETY: the function is given its state and what the program's own function made.
            Some(delete) => unsafe { delete(self.state.state, made, len) },
            // SAFETY: without one it is from malloc, as c.h has it.
            None => unsafe { libc::free(made.cast()) },
        }
        result
    }
}

/// Starts and lengths of `operands`, as C has arrays.
fn arrays(operands: &[&[u8]]) -> (Vec<*const c_char>, Vec<usize>, c_int) {
    let starts = operands.iter().map(|one| one.as_ptr().cast()).collect();
    let lens = operands.iter().map(|one| one.len()).collect();
    let count = c_int::try_from(operands.len()).unwrap_or(c_int::MAX);
    (starts, lens, count)
}

impl MergeOperator for CMergeOperator {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let (starts, lens, count) = arrays(operands);
        let (mut success, mut len) = (1, 0);
        // SAFETY: the function is given what it was made for: its state, bytes and arrays that live until it
        // returns, and two places for its answers.
        let made = unsafe {
            (self.full)(
                self.state.state,
                key.as_ptr().cast(),
                key.len(),
                existing.map_or(std::ptr::null(), |value| value.as_ptr().cast()),
                existing.map_or(0, <[u8]>::len),
                starts.as_ptr(),
                lens.as_ptr(),
                count,
                &raw mut success,
                &raw mut len,
            )
        };
        // SAFETY: the program's function made it.
        let merged = unsafe { self.take(made, len, success) };
        merged.ok_or_else(|| {
            Error::corruption(format!(
                "Merge operator failed: {} has no result for the key \"{}\"",
                self.state.name,
                key.escape_ascii()
            ))
        })
    }

    fn partial_merge(&self, key: &[u8], left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
        let partial = self.partial?;
        let (starts, lens, count) = arrays(&[left, right]);
        let (mut success, mut len) = (1, 0);
        // SAFETY: as above.
        let made = unsafe {
            partial(
                self.state.state,
                key.as_ptr().cast(),
                key.len(),
                starts.as_ptr(),
                lens.as_ptr(),
                count,
                &raw mut success,
                &raw mut len,
            )
        };
        if made.is_null() {
            return None;
        }
        // SAFETY: the program's function made it.
        unsafe { self.take(made, len, success) }
    }
}

/// What the handle holds.
pub(crate) struct Operator(pub(crate) Arc<dyn MergeOperator>);

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_mergeoperator_create(
    state: *mut c_void,
    destructor: Destructor,
    full: Option<FullMerge>,
    partial: Option<PartialMerge>,
    delete: Option<DeleteValue>,
    name: NameOf,
) -> *mut Handle<Operator> {
    const NAME: &str = "rocksdb_mergeoperator_create";
    let Some(full) = full else {
        end_process(NAME, "the function that merges is null");
    };
    // SAFETY: the C program gives functions for this state.
    let state = unsafe { State::new(state, destructor, name, NAME) };
    handle::create(Operator(Arc::new(CMergeOperator {
        state,
        full,
        partial,
        delete,
    })))
}
