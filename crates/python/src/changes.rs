//! The changes of a database, in their order.

use std::sync::{Mutex, MutexGuard, PoisonError};

use drumlin::{
    ChangeBatch as Found, ChangeEntry, Changes as Engine, ChangesOptions, Db, Error, ErrorKind,
};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::error::{OrRaise, raised};
use crate::settings::duration;

/// A reader of changes: an iterator over those that are there, which may be gone on with when more are.
#[pyclass(frozen, module = "drumlin")]
pub(crate) struct Changes {
    reader: Mutex<Engine>,
}

impl Changes {
    /// A reader of the changes of `db` from `from` on.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn begin(
        py: Python<'_>,
        db: &Db,
        from: Option<u64>,
        synced_only: bool,
    ) -> PyResult<Self> {
        let options = ChangesOptions { synced_only };
        let reader = py.detach(|| {
            let from = match from {
                Some(from) => from,
                None => db.oldest_change()?,
            };
            db.changes_with(from, options)
        });
        let reader = Mutex::new(reader.or_raise(py)?);
        Ok(Self { reader })
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Engine> {
        let reader = self.reader.lock_py_attached(py);
        reader.unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Changes {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ChangeBatch>> {
        let mut reader = self.lock(py);
        let reader = &mut *reader;
        let found = py.detach(|| reader.next().transpose()).or_raise(py)?;
        Ok(found.map(ChangeBatch))
    }

    /// The next batch, once it is there; `None` after `seconds` without one.
    fn next_within(&self, py: Python<'_>, seconds: f64) -> PyResult<Option<ChangeBatch>> {
        let duration = duration(seconds)?;
        let mut reader = self.lock(py);
        let reader = &mut *reader;
        let found = py.detach(|| reader.next_within(duration)).or_raise(py)?;
        Ok(found.map(ChangeBatch))
    }

    /// The number of the change that comes next: where a later reader goes on.
    #[getter]
    fn position(&self, py: Python<'_>) -> u64 {
        self.lock(py).position()
    }
}

/// Changes that were made together.
#[pyclass(frozen, module = "drumlin")]
pub(crate) struct ChangeBatch(Found);

#[pymethods]
impl ChangeBatch {
    /// The number of the first change.
    #[getter]
    fn seqno(&self) -> u64 {
        self.0.seqno()
    }

    /// The number of the last change.
    #[getter]
    fn last_seqno(&self) -> u64 {
        self.0.last_seqno()
    }

    /// What was done, in order: each a `dict` with `what` and what belongs to it. `family` is a number, `Family.id`.
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let entries = PyList::empty(py);
        for entry in self.0.entries() {
            entries.append(told(py, entry.or_raise(py)?)?)?;
        }
        Ok(entries)
    }

    fn __repr__(&self) -> String {
        format!(
            "<drumlin.ChangeBatch {} to {}>",
            self.0.seqno(),
            self.0.last_seqno()
        )
    }
}

fn told<'py>(py: Python<'py>, entry: ChangeEntry<'_>) -> PyResult<Bound<'py, PyDict>> {
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
    let told = PyDict::new(py);
    let what = match entry {
        ChangeEntry::Put { family, key, value } => {
            told.set_item("family", family)?;
            told.set_item("key", bytes(key))?;
            told.set_item("value", bytes(value))?;
            "put"
        }
        ChangeEntry::PutEntity {
            family,
            key,
            columns,
        } => {
            told.set_item("family", family)?;
            told.set_item("key", bytes(key))?;
            told.set_item("columns", bytes(columns))?;
            "put-entity"
        }
        ChangeEntry::Merge {
            family,
            key,
            operand,
        } => {
            told.set_item("family", family)?;
            told.set_item("key", bytes(key))?;
            told.set_item("operand", bytes(operand))?;
            "merge"
        }
        ChangeEntry::Delete { family, key } | ChangeEntry::SingleDelete { family, key } => {
            told.set_item("family", family)?;
            told.set_item("key", bytes(key))?;
            "delete"
        }
        ChangeEntry::DeleteRange { family, begin, end } => {
            told.set_item("family", family)?;
            told.set_item("start", bytes(begin))?;
            told.set_item("stop", bytes(end))?;
            "delete-range"
        }
        ChangeEntry::LogData(data) => {
            told.set_item("data", bytes(data))?;
            "log-data"
        }
        ChangeEntry::FamilyCreated { family, name, .. } => {
            told.set_item("family", family)?;
            told.set_item("name", name)?;
            "create-family"
        }
        ChangeEntry::FamilyDropped { family } => {
            told.set_item("family", family)?;
            "drop-family"
        }
        ChangeEntry::Ingested { family, tables } => {
            told.set_item("family", family)?;
            told.set_item("tables", tables)?;
            "ingest"
        }
        _ => {
            let text = "a kind of change that this package does not know";
            return Err(raised(py, &Error::new(ErrorKind::NotSupported, text)));
        }
    };
    told.set_item("what", what)?;
    Ok(told)
}
