//! Writes that become one.

use std::sync::{Mutex, MutexGuard};

use drumlin::{ColumnFamily, WriteBatch};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyTuple;

use crate::bytes::Given;
use crate::database::Database;
use crate::error::OrRaise;
use crate::family::Family;

/// Writes that are done all together or not at all, by `write` or at the end of a `with` block that ends without an
/// exception.
#[pyclass(frozen, module = "drumlin")]
pub(crate) struct Batch {
    writes: Mutex<WriteBatch>,
    database: Py<Database>,
    sync: Option<bool>,
}

impl Batch {
    pub(crate) fn new(database: Py<Database>, sync: Option<bool>) -> Self {
        Self {
            writes: Mutex::default(),
            database,
            sync,
        }
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, WriteBatch> {
        let writes = self.writes.lock_py_attached(py);
        writes.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The number of the family that is written to; the default one's if none is given.
    fn family_id(&self, py: Python<'_>, family: Option<&Bound<'_, Family>>) -> PyResult<u32> {
        let Some(family) = family else {
            return Ok(0);
        };
        let of_family = &family.as_super().get();
        let own = &self.database.bind(py).as_super().as_super().get().db;
        if of_family.db.path() != own.path() {
            let text = "the family belongs to another database than the batch";
            return Err(pyo3::exceptions::PyValueError::new_err(text));
        }
        Ok(ColumnFamily::id(&of_family.family))
    }
}

#[pymethods]
impl Batch {
    /// Writes `value` under `key`.
    #[pyo3(signature = (key, value, family=None))]
    fn put(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        family: Option<&Bound<'_, Family>>,
    ) -> PyResult<()> {
        let py = key.py();
        let (id, key, value) = (
            self.family_id(py, family)?,
            Given::of(key)?,
            Given::of(value)?,
        );
        let mut writes = self.lock(py);
        writes.put_cf(id, key.as_ref(), value.as_ref()).or_raise(py)
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value, None)
    }

    /// Deletes `key`.
    #[pyo3(signature = (key, family=None))]
    fn delete(&self, key: &Bound<'_, PyAny>, family: Option<&Bound<'_, Family>>) -> PyResult<()> {
        let py = key.py();
        let (id, key) = (self.family_id(py, family)?, Given::of(key)?);
        self.lock(py).delete_cf(id, key.as_ref()).or_raise(py)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(key, None)
    }

    /// Deletes all keys with `start <= key < stop`.
    #[pyo3(signature = (start, stop, family=None))]
    fn delete_range(
        &self,
        start: &Bound<'_, PyAny>,
        stop: &Bound<'_, PyAny>,
        family: Option<&Bound<'_, Family>>,
    ) -> PyResult<()> {
        let py = start.py();
        let (id, start, stop) = (
            self.family_id(py, family)?,
            Given::of(start)?,
            Given::of(stop)?,
        );
        let mut writes = self.lock(py);
        writes
            .delete_range_cf(id, start.as_ref(), stop.as_ref())
            .or_raise(py)
    }

    /// Has `operand` merged into the value of `key`.
    #[pyo3(signature = (key, operand, family=None))]
    fn merge(
        &self,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
        family: Option<&Bound<'_, Family>>,
    ) -> PyResult<()> {
        let py = key.py();
        let (id, key, operand) = (
            self.family_id(py, family)?,
            Given::of(key)?,
            Given::of(operand)?,
        );
        let mut writes = self.lock(py);
        writes
            .merge_cf(id, key.as_ref(), operand.as_ref())
            .or_raise(py)
    }

    /// Forgets all writes.
    fn clear(&self, py: Python<'_>) {
        self.lock(py).clear();
    }

    /// Adds all writes of another batch.
    fn append(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        // A copy, so that no two are locked at once.
        let added = other.get().lock(py).clone();
        self.lock(py).append(&added).or_raise(py)
    }

    /// About how much memory the writes take.
    #[getter]
    fn size_bytes(&self, py: Python<'_>) -> usize {
        self.lock(py).len()
    }

    /// Does the writes, and forgets them unless they are to be kept. The number of the last one.
    #[pyo3(signature = (*, keep=false))]
    fn write(&self, py: Python<'_>, keep: bool) -> PyResult<u64> {
        let db = &self.database.bind(py).as_super().as_super().get().db;
        let options = crate::settings::write_options(self.sync);
        let mut writes = self.lock(py);
        let batch = &mut *writes;
        let written = py.detach(|| db.commit(batch, &options)).or_raise(py)?;
        if !keep {
            writes.clear();
        }
        Ok(written)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.lock(py).count() as usize
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        match exception.get_item(0) {
            Ok(kind) if !kind.is_none() => self.clear(py),
            _ => drop(self.write(py, false)?),
        }
        Ok(false)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<drumlin.Batch of {} writes>", self.lock(py).count())
    }
}
