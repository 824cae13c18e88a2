//! `rocksdb_slicetransform_t`: prefixes cut by C functions. The options that it is set in take it over.

use std::ffi::{c_char, c_uchar, c_void};
use std::sync::Arc;

use drumlin::{FixedPrefix, PrefixExtractor};
use drumlin_ffi::error::end_process;
use drumlin_ffi::handle::{self, Handle};

use crate::callback::{Destructor, NameOf, State};

type Cut = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char;
type InDomain = unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_uchar;

/// The functions.
#[derive(Debug)]
struct CTransform {
    state: State,
    cut: Cut,
    in_domain: Option<InDomain>,
}

impl PrefixExtractor for CTransform {
    fn name(&self) -> &str {
        &self.state.name
    }

    /// A result that is no prefix of the key is none: walks within it could not be told by bytes.
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let (start, len) = (key.as_ptr().cast(), key.len());
        if let Some(in_domain) = self.in_domain {
            // SAFETY: the function is given its state, and bytes that live until it returns.
            let is_in = unsafe { in_domain(self.state.state, start, len) };
            if is_in == 0 {
                return None;
            }
        }
        let mut cut_len = 0;
        // SAFETY: as above, and a place for the length.
        let cut = unsafe { (self.cut)(self.state.state, start, len, &raw mut cut_len) };
        // SAFETY: the function says that there are as many, until the key is gone.
        let cut = unsafe { drumlin_ffi::bytes::slice(cut, cut_len, &self.state.name) };
        key.get(..cut_len).filter(|prefix| *prefix == cut)
    }
}

/// The whole key.
#[derive(Debug)]
struct Whole;

impl PrefixExtractor for Whole {
    fn name(&self) -> &str {
        "rocksdb.Noop"
    }

    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        Some(key)
    }
}

/// What the handle holds.
pub(crate) struct Transform(pub(crate) Arc<dyn PrefixExtractor>);

/// `in_range` is not called: no RocksDB since 5.18 does.
#[cfg(not(abi_since = "11.8"))]
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_slicetransform_create(
    state: *mut c_void,
    destructor: Destructor,
    cut: Option<Cut>,
    in_domain: Option<InDomain>,
    _in_range: Option<InDomain>,
    name: NameOf,
) -> *mut Handle<Transform> {
    // SAFETY: the C program's promise.
    unsafe { create(state, destructor, cut, in_domain, name) }
}

#[cfg(abi_since = "11.8")]
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_slicetransform_create(
    state: *mut c_void,
    destructor: Destructor,
    cut: Option<Cut>,
    in_domain: Option<InDomain>,
    name: NameOf,
) -> *mut Handle<Transform> {
    // SAFETY: the C program's promise.
    unsafe { create(state, destructor, cut, in_domain, name) }
}

/// # Safety
/// The functions are for `state`.
unsafe fn create(
    state: *mut c_void,
    destructor: Destructor,
    cut: Option<Cut>,
    in_domain: Option<InDomain>,
    name: NameOf,
) -> *mut Handle<Transform> {
    const NAME: &str = "rocksdb_slicetransform_create";
    let Some(cut) = cut else {
        end_process(NAME, "the function that cuts prefixes is null");
    };
    // SAFETY: the C program gives functions for this state.
    let state = unsafe { State::new(state, destructor, name, NAME) };
    handle::create(Transform(Arc::new(CTransform {
        state,
        cut,
        in_domain,
    })))
}

pub(crate) mod calls {
    use super::{Arc, FixedPrefix, Transform, Whole};

    pub(crate) fn slicetransform_create_fixed_prefix(len: usize) -> Transform {
        Transform(Arc::new(FixedPrefix::new(len)))
    }

    pub(crate) fn slicetransform_create_noop() -> Transform {
        Transform(Arc::new(Whole))
    }
}
