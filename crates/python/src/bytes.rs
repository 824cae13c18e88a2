//! Bytes from Python and to it.

use std::ffi::{c_int, c_void};

use drumlin::PinnedSlice;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString};

/// A key or a value that Python gave: `bytes` as they are, a copy of anything else that has a buffer.
pub(crate) enum Given {
    Shared(PyBackedBytes),
    Copied(Vec<u8>),
}

impl Given {
    /// The bytes of `any`.
    ///
    /// # Errors
    /// `TypeError` for what has none.
    pub(crate) fn of(any: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = any.cast::<PyBytes>() {
            return Ok(Self::Shared(PyBackedBytes::from(bytes.clone())));
        }
        if any.is_instance_of::<PyString>() {
            let text = "keys and values are bytes, not str: encode the text first";
            return Err(PyTypeError::new_err(text));
        }
        let Ok(buffer) = PyBuffer::<u8>::get(any) else {
            let kind = any.get_type().name()?;
            let text = format!("keys and values are bytes or have a buffer of bytes, not {kind}");
            return Err(PyTypeError::new_err(text));
        };
        Ok(Self::Copied(buffer.to_vec(any.py())?))
    }

    /// The bytes of `any`, if it is not `None`.
    ///
    /// # Errors
    /// As [`Given::of`].
    pub(crate) fn of_some(any: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        any.map(Self::of).transpose()
    }
}

impl AsRef<[u8]> for Given {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

/// A value in the store's memory, read through the buffer protocol: `memoryview(value)` copies nothing.
///
/// It holds the block of the cache or the memtable that the value lies in, for as long as it or a view of it lives.
#[pyclass(frozen, module = "drumlin")]
pub(crate) struct Value {
    bytes: PinnedSlice,
}

impl Value {
    pub(crate) fn new(bytes: PinnedSlice) -> Self {
        Self { bytes }
    }
}

#[pymethods]
impl Value {
    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes)
    }

    fn __repr__(&self) -> String {
        format!("<drumlin.Value of {} bytes>", self.bytes.len())
    }

    #[expect(unsafe_code, reason = "the buffer protocol is one of pointers")]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut pyo3::ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no place for the view"));
        }
        let bytes = &slf.get().bytes;
        let len = isize::try_from(bytes.len()).expect("no slice is longer");
        let start = bytes.as_ptr().cast::<c_void>().cast_mut();
        // SAFETY: the interpreter gave the place for the view. The bytes do not move or change while this object lives, of
        // which the view holds a reference; the buffer is said to be read-only, so nobody writes through the pointer.
        let status =
            unsafe { pyo3::ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len, 1, flags) };
        match status {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}
