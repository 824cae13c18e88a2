//! `leveldb_filterpolicy_t`. A Bloom filter is what the engine writes; a program's own functions are kept and not called,
//! for a filter changes no answer: only how soon it is there.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use drumlin_ffi::handle::{self, Handle, Tagged};

type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;
type CreateFilter = Option<
    unsafe extern "C" fn(
        *mut c_void,
        *const *const c_char,
        *const usize,
        c_int,
        *mut usize,
    ) -> *mut c_char,
>;
type KeyMayMatch = Option<
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_uchar,
>;
type Name = Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>;

/// Bits of a Bloom filter a key where a program brings functions of its own.
const DEFAULT_BITS: f64 = 10.0;

/// What the handle holds.
#[derive(Debug)]
pub(crate) struct FilterPolicy {
    bits: f64,
    own: Option<(*mut c_void, unsafe extern "C" fn(*mut c_void))>,
}

impl FilterPolicy {
    /// Bits a key.
    pub(crate) fn bits(&self) -> f64 {
        self.bits
    }
}

impl Drop for FilterPolicy {
    fn drop(&mut self) {
        if let Some((state, destructor)) = self.own {
            // SAFETY: the functions are never called, so nobody uses the state; this runs once.
            unsafe { destructor(state) };
        }
    }
}

impl Tagged for FilterPolicy {
    const TAG: u64 = 0x6c64_6669_6c74_6572;
    const NAME: &'static str = "leveldb_filterpolicy_t";
}

pub(crate) type FilterPolicyHandle = Handle<FilterPolicy>;

#[unsafe(no_mangle)]
extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Destructor,
    _create: CreateFilter,
    _may_match: KeyMayMatch,
    _name: Name,
) -> *mut FilterPolicyHandle {
    handle::create(FilterPolicy {
        bits: DEFAULT_BITS,
        own: destructor.map(|destructor| (state, destructor)),
    })
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> *mut FilterPolicyHandle {
    let bits = f64::from(bits_per_key.clamp(1, 100));
    handle::create(FilterPolicy { bits, own: None })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_filterpolicy_destroy(policy: *mut FilterPolicyHandle) {
    // SAFETY: the C program's promise.
    unsafe { handle::destroy(policy, "leveldb_filterpolicy_destroy") };
}
