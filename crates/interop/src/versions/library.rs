//! One RocksDB, loaded from a library while the program runs. A process loads one and no other.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr;

type Error = *mut *mut c_char;
type Handle = *mut c_void;
type Bytes = *const c_char;
/// A key and its value.
pub(crate) type Row = (Vec<u8>, Vec<u8>);

const RTLD_NOW: c_int = 2;

unsafe extern "C" {
    fn dlopen(name: Bytes, flags: c_int) -> Handle;
    fn dlsym(library: Handle, name: Bytes) -> Handle;
}

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Functions of `rocksdb/c.h` that are alike in all versions.
        struct Functions { $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)* }

        impl Functions {
            fn load(library: Handle) -> Self {
                Self { $($name: {
                    let found = find(library, concat!("rocksdb_", stringify!($name)));
                    // SAFETY: the header declares the function so in every version.
                    unsafe { std::mem::transmute::<Handle, unsafe extern "C" fn($($argument),*) $(-> $result)?>(found) }
                },)* }
            }
        }
    };
}

functions! {
    free: fn(Handle);
    options_create: fn() -> Handle;
    get_options_from_string: fn(Handle, Bytes, Handle, Error);
    options_set_uint64add_merge_operator: fn(Handle);
    open: fn(Handle, Bytes, Error) -> Handle;
    close: fn(Handle);
    writeoptions_create: fn() -> Handle;
    readoptions_create: fn() -> Handle;
    flushoptions_create: fn() -> Handle;
    put: fn(Handle, Handle, Bytes, usize, Bytes, usize, Error);
    delete: fn(Handle, Handle, Bytes, usize, Error);
    merge: fn(Handle, Handle, Bytes, usize, Bytes, usize, Error);
    writebatch_create: fn() -> Handle;
    writebatch_destroy: fn(Handle);
    writebatch_delete_range: fn(Handle, Bytes, usize, Bytes, usize);
    write: fn(Handle, Handle, Handle, Error);
    flush: fn(Handle, Handle, Error);
    compact_range: fn(Handle, Bytes, usize, Bytes, usize);
    get: fn(Handle, Handle, Bytes, usize, *mut usize, Error) -> *mut c_char;
    create_iterator: fn(Handle, Handle) -> Handle;
    iter_destroy: fn(Handle);
    iter_seek_to_first: fn(Handle);
    iter_valid: fn(Handle) -> c_uchar;
    iter_next: fn(Handle);
    iter_key: fn(Handle, *mut usize) -> Bytes;
    iter_value: fn(Handle, *mut usize) -> Bytes;
    iter_get_error: fn(Handle, Error);
}

fn find(library: Handle, name: &str) -> Handle {
    let c = CString::new(name).unwrap_or_default();
    // SAFETY: the library is loaded for good, the name ends with a zero.
    let found = unsafe { dlsym(library, c.as_ptr()) };
    assert!(!found.is_null(), "the library has no {name}");
    found
}

/// An open database. Invariant: the handles are live until the process ends or [`Rocks::close`].
pub(crate) struct Rocks {
    f: Functions,
    db: Handle,
    write: Handle,
    read: Handle,
    flush: Handle,
}

impl Rocks {
    /// Opens or creates `dir` by the library at `library`, under RocksDB's text of `options`.
    pub(crate) fn open(library: &Path, dir: &Path, options: &str) -> Result<Self, String> {
        let text =
            |path: &Path| CString::new(path.to_string_lossy().as_bytes()).unwrap_or_default();
        // SAFETY: the path ends with a zero; the library is trusted by its checksum.
        let loaded = unsafe { dlopen(text(library).as_ptr(), RTLD_NOW) };
        assert!(!loaded.is_null(), "{} cannot be loaded", library.display());
        let f = Functions::load(loaded);
        // SAFETY: takes nothing.
        let base = unsafe { (f.options_create)() };
        // SAFETY: takes nothing.
        let parsed = unsafe { (f.options_create)() };
        let options = CString::new(options).unwrap_or_default();
        // SAFETY: both are live, the text ends with a zero.
        checked(&f, |error| unsafe {
            (f.get_options_from_string)(base, options.as_ptr(), parsed, error);
        })?;
        // SAFETY: the options are live.
        unsafe { (f.options_set_uint64add_merge_operator)(parsed) };
        // SAFETY: the options are live, the path ends with a zero.
        let db = checked(&f, |error| unsafe {
            (f.open)(parsed, text(dir).as_ptr(), error)
        })?;
        // SAFETY: takes nothing.
        let write = unsafe { (f.writeoptions_create)() };
        // SAFETY: takes nothing.
        let read = unsafe { (f.readoptions_create)() };
        // SAFETY: takes nothing.
        let flush = unsafe { (f.flushoptions_create)() };
        Ok(Self {
            f,
            db,
            write,
            read,
            flush,
        })
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        // SAFETY: handles are live, the bytes are read within their lengths.
        checked(&self.f, |error| unsafe {
            (self.f.put)(
                self.db,
                self.write,
                at(key),
                key.len(),
                at(value),
                value.len(),
                error,
            );
        })
    }

    pub(crate) fn merge(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        // SAFETY: handles are live, the bytes are read within their lengths.
        checked(&self.f, |error| unsafe {
            (self.f.merge)(
                self.db,
                self.write,
                at(key),
                key.len(),
                at(value),
                value.len(),
                error,
            );
        })
    }

    pub(crate) fn delete(&self, key: &[u8]) -> Result<(), String> {
        // SAFETY: handles are live, the bytes are read within their lengths.
        checked(&self.f, |error| unsafe {
            (self.f.delete)(self.db, self.write, at(key), key.len(), error);
        })
    }

    pub(crate) fn delete_range(&self, begin: &[u8], end: &[u8]) -> Result<(), String> {
        // SAFETY: takes nothing.
        let batch = unsafe { (self.f.writebatch_create)() };
        // SAFETY: the batch is live, the bytes are read within their lengths.
        unsafe {
            (self.f.writebatch_delete_range)(batch, at(begin), begin.len(), at(end), end.len());
        }
        // SAFETY: handles are live.
        let written = checked(&self.f, |error| unsafe {
            (self.f.write)(self.db, self.write, batch, error);
        });
        // SAFETY: made above, given back once.
        unsafe { (self.f.writebatch_destroy)(batch) };
        written
    }

    pub(crate) fn flush(&self) -> Result<(), String> {
        // SAFETY: handles are live.
        checked(&self.f, |error| unsafe {
            (self.f.flush)(self.db, self.flush, error)
        })
    }

    pub(crate) fn compact(&self) {
        // SAFETY: the handle is live; no bounds are given.
        unsafe { (self.f.compact_range)(self.db, ptr::null(), 0, ptr::null(), 0) };
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let mut len = 0;
        // SAFETY: handles are live, the bytes are read within their length.
        let value = checked(&self.f, |error| unsafe {
            (self.f.get)(self.db, self.read, at(key), key.len(), &mut len, error)
        })?;
        if value.is_null() {
            return Ok(None);
        }
        let copy = copied(value, len);
        // SAFETY: the library allocated it, it is freed once.
        unsafe { (self.f.free)(value.cast()) };
        Ok(Some(copy))
    }

    /// Every row, forward.
    pub(crate) fn rows(&self) -> Result<Vec<Row>, String> {
        let f = &self.f;
        // SAFETY: handles are live.
        let iter = unsafe { (f.create_iterator)(self.db, self.read) };
        let mut rows = Vec::new();
        // SAFETY: the iterator is live.
        unsafe { (f.iter_seek_to_first)(iter) };
        // SAFETY: the iterator is live.
        while unsafe { (f.iter_valid)(iter) } != 0 {
            let (mut key_len, mut value_len) = (0, 0);
            // SAFETY: the iterator stands on a row.
            let key = unsafe { (f.iter_key)(iter, &mut key_len) };
            // SAFETY: the iterator stands on a row.
            let value = unsafe { (f.iter_value)(iter, &mut value_len) };
            rows.push((copied(key, key_len), copied(value, value_len)));
            // SAFETY: the iterator stands on a row.
            unsafe { (f.iter_next)(iter) };
        }
        // SAFETY: the iterator is live.
        let status = checked(f, |error| unsafe { (f.iter_get_error)(iter, error) });
        // SAFETY: made above, given back once.
        unsafe { (f.iter_destroy)(iter) };
        status.map(|()| rows)
    }

    pub(crate) fn close(self) {
        // SAFETY: opened once, closed once.
        unsafe { (self.f.close)(self.db) };
    }
}

fn at(bytes: &[u8]) -> Bytes {
    bytes.as_ptr().cast()
}

fn copied(bytes: Bytes, len: usize) -> Vec<u8> {
    // SAFETY: the library gave so many bytes, which stay until its next call.
    unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) }.to_vec()
}

/// The result of `call`, or its error message.
fn checked<T>(f: &Functions, call: impl FnOnce(Error) -> T) -> Result<T, String> {
    let mut error: *mut c_char = ptr::null_mut();
    let result = call(&mut error);
    if error.is_null() {
        return Ok(result);
    }
    // SAFETY: the library left a text that ends with a zero.
    let text = unsafe { CStr::from_ptr(error) }
        .to_string_lossy()
        .into_owned();
    // SAFETY: the library allocated it, it is freed once.
    unsafe { (f.free)(error.cast()) };
    Err(text)
}
