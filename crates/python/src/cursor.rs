//! A position in a family that is moved by hand.

use std::sync::{Mutex, MutexGuard};

use drumlin::DbIterator;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;

use crate::bytes::Given;
use crate::error::OrRaise;

/// A cursor over a range of a family, as it was when the cursor was made. It stands at no entry at first. Every move says
/// whether it stands at one after that.
#[pyclass(frozen, module = "drumlin")]
pub(crate) struct Cursor {
    inner: Mutex<DbIterator>,
}

impl Cursor {
    pub(crate) fn new(inner: DbIterator) -> Self {
        Self {
            inner: Mutex::new(inner),
        }
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, DbIterator> {
        let inner = self.inner.lock_py_attached(py);
        inner.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn moved(&self, py: Python<'_>, to: impl FnOnce(&mut DbIterator) + Send) -> PyResult<bool> {
        let mut inner = self.lock(py);
        let inner = &mut *inner;
        let moved = py.detach(|| {
            to(inner);
            inner.status().map(|()| inner.valid())
        });
        moved.or_raise(py)
    }
}

#[pymethods]
impl Cursor {
    /// Goes to the first entry.
    fn first(&self, py: Python<'_>) -> PyResult<bool> {
        self.moved(py, DbIterator::seek_to_first)
    }

    /// Goes to the last entry.
    fn last(&self, py: Python<'_>) -> PyResult<bool> {
        self.moved(py, DbIterator::seek_to_last)
    }

    /// Goes to the first entry whose key is `key` or comes after it.
    fn seek(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, key) = (key.py(), Given::of(key)?);
        self.moved(py, |inner| inner.seek(key.as_ref()))
    }

    /// Goes to the last entry whose key is `key` or comes before it.
    fn seek_back(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, key) = (key.py(), Given::of(key)?);
        self.moved(py, |inner| inner.seek_for_prev(key.as_ref()))
    }

    /// Goes to the next entry, from one.
    fn next(&self, py: Python<'_>) -> PyResult<bool> {
        self.moved(py, |inner| {
            if inner.valid() {
                inner.next();
            }
        })
    }

    /// Goes to the entry before, from one.
    fn prev(&self, py: Python<'_>) -> PyResult<bool> {
        self.moved(py, |inner| {
            if inner.valid() {
                inner.prev();
            }
        })
    }

    /// Whether it stands at an entry.
    #[getter]
    fn valid(&self, py: Python<'_>) -> bool {
        self.lock(py).valid()
    }

    /// The entry's key; `None` where there is none.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let inner = self.lock(py);
        inner.valid().then(|| PyBytes::new(py, inner.key()))
    }

    /// The entry's value; `None` where there is none.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let inner = self.lock(py);
        if !inner.valid() {
            return Ok(None);
        }
        let value = inner.try_value().or_raise(py)?;
        Ok(Some(PyBytes::new(py, value)))
    }
}
