//! `leveldb_writebatch_t`.

use std::ffi::{c_char, c_void};

use drumlin::WriteBatch;
use drumlin_base::ValueKind;

use drumlin_ffi::bytes::slice;
use drumlin_ffi::error::{end_process, guard_infallible};
use drumlin_ffi::handle::{self, Handle, Tagged};

/// What the handle holds: the batch, and the first thing that did not fit, which the write reports.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) batch: WriteBatch,
    pub(crate) refused: Option<drumlin::Error>,
}

impl Batch {
    fn change(&mut self, change: impl FnOnce(&mut WriteBatch) -> drumlin::Result<()>) {
        if let Err(error) = change(&mut self.batch) {
            self.refused.get_or_insert(error);
        }
    }
}

impl Tagged for Batch {
    const TAG: u64 = 0x6c64_6261_7463_6820;
    const NAME: &'static str = "leveldb_writebatch_t";
}

type Put = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
type Deleted = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

#[unsafe(no_mangle)]
extern "C" fn leveldb_writebatch_create() -> *mut Handle<Batch> {
    handle::create(Batch::default())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_destroy(batch: *mut Handle<Batch>) {
    // SAFETY: the C program's promise, as for every function here.
    unsafe { handle::destroy(batch, "leveldb_writebatch_destroy") };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_clear(batch: *mut Handle<Batch>) {
    // SAFETY: as above.
    let batch = unsafe { handle::get_mut(batch, "leveldb_writebatch_clear") };
    batch.batch.clear();
    batch.refused = None;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_put(
    batch: *mut Handle<Batch>,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) {
    const NAME: &str = "leveldb_writebatch_put";
    // SAFETY: as above.
    let batch = unsafe { handle::get_mut(batch, NAME) };
    // SAFETY: as above.
    let key = unsafe { slice(key, key_len, NAME) };
    // SAFETY: as above.
    let value = unsafe { slice(value, value_len, NAME) };
    guard_infallible(NAME, || batch.change(|batch| batch.put(key, value)));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_delete(
    batch: *mut Handle<Batch>,
    key: *const c_char,
    key_len: usize,
) {
    const NAME: &str = "leveldb_writebatch_delete";
    // SAFETY: as above.
    let batch = unsafe { handle::get_mut(batch, NAME) };
    // SAFETY: as above.
    let key = unsafe { slice(key, key_len, NAME) };
    guard_infallible(NAME, || batch.change(|batch| batch.delete(key)));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_iterate(
    batch: *const Handle<Batch>,
    state: *mut c_void,
    put: Option<Put>,
    deleted: Option<Deleted>,
) {
    const NAME: &str = "leveldb_writebatch_iterate";
    let (Some(put), Some(deleted)) = (put, deleted) else {
        end_process(NAME, "a function is null");
    };
    // SAFETY: as above.
    let batch = unsafe { handle::get(batch, NAME) };
    for record in batch.batch.iter() {
        let Ok(record) = record else {
            end_process(NAME, "the batch does not parse");
        };
        let (key, value) = (record.key, record.value);
        match record.kind {
            // SAFETY: the function is given its state, and bytes that live until it returns.
            ValueKind::Value => unsafe {
                put(
                    state,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                );
            },
            // SAFETY: as above.
            _ => unsafe { deleted(state, key.as_ptr().cast(), key.len()) },
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_append(
    destination: *mut Handle<Batch>,
    source: *const Handle<Batch>,
) {
    const NAME: &str = "leveldb_writebatch_append";
    // A batch may be appended to itself.
    // SAFETY: as above.
    let source = unsafe { handle::get(source, NAME) }.batch.clone();
    // SAFETY: as above; no other reference is left.
    let destination = unsafe { handle::get_mut(destination, NAME) };
    guard_infallible(NAME, || destination.change(|batch| batch.append(&source)));
}
