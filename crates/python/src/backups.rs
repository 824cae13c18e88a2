//! Backups.

use std::path::PathBuf;

use drumlin::{BackupOptions, Backups as Inner, CheckDepth, Env, RestoreOptions, TransferOptions};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bytes::Given;
use crate::database::{Database, damaged};
use crate::error::OrRaise;

/// A directory of backups of one database, in RocksDB's layout.
#[pyclass(frozen, module = "drumlin")]
pub(crate) struct Backups {
    inner: Inner,
}

#[pymethods]
impl Backups {
    /// The backups in `path`. Nothing is looked at yet.
    #[new]
    fn new(path: PathBuf) -> Self {
        Self {
            inner: Inner::new(path, Env::system()),
        }
    }

    /// Makes a backup of `database` as it is now, with a note. Its number, and what had to be copied.
    #[pyo3(signature = (database, note=None))]
    fn create<'py>(
        &self,
        py: Python<'py>,
        database: &Bound<'py, Database>,
        note: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let db = &database.as_super().as_super().get().db;
        let note = Given::of_some(note)?;
        let options = BackupOptions {
            note: note.map_or_else(Vec::new, |note| note.as_ref().to_vec()),
            ..BackupOptions::default()
        };
        let made = py.detach(|| self.inner.create(db, &options)).or_raise(py)?;
        let told = PyDict::new(py);
        told.set_item("id", made.id)?;
        told.set_item("files", made.files)?;
        told.set_item("bytes", made.bytes)?;
        told.set_item("files_copied", made.files_copied)?;
        told.set_item("bytes_copied", made.bytes_copied)?;
        Ok(told)
    }

    /// All backups, the oldest first.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let infos = py.detach(|| self.inner.list()).or_raise(py)?;
        let told = infos.into_iter().map(|info| {
            let told = PyDict::new(py);
            told.set_item("id", info.id)?;
            told.set_item("unix_seconds", info.unix_seconds)?;
            told.set_item("seqno", info.seqno)?;
            told.set_item("note", pyo3::types::PyBytes::new(py, &info.note))?;
            told.set_item("files", info.files)?;
            told.set_item("bytes", info.bytes)?;
            told.set_item("damage", info.damage.map(|error| error.to_string()))?;
            Ok(told)
        });
        told.collect()
    }

    /// Checks every byte of the backup `id`, or of all: the damaged files.
    #[pyo3(signature = (id=None))]
    fn verify(&self, py: Python<'_>, id: Option<u32>) -> PyResult<Vec<(PathBuf, String)>> {
        let options = TransferOptions::default();
        let check = py.detach(|| self.inner.verify(id, CheckDepth::Checksums, &options));
        Ok(damaged(check.or_raise(py)?.damaged))
    }

    /// Makes the backup `id`, or the newest, a database in `path`. One that is there is in the way unless `replace` says so.
    #[pyo3(signature = (path, id=None, *, replace=false))]
    fn restore(
        &self,
        py: Python<'_>,
        path: PathBuf,
        id: Option<u32>,
        replace: bool,
    ) -> PyResult<u32> {
        let options = RestoreOptions {
            replace,
            ..RestoreOptions::default()
        };
        let restored = py
            .detach(|| self.inner.restore(id, &path, &options))
            .or_raise(py)?;
        Ok(restored.id)
    }

    /// Removes the backup `id`.
    fn delete(&self, py: Python<'_>, id: u32) -> PyResult<()> {
        py.detach(|| self.inner.delete(id)).or_raise(py)?;
        Ok(())
    }

    /// Removes all whole backups but the newest `keep`.
    fn purge(&self, py: Python<'_>, keep: usize) -> PyResult<()> {
        py.detach(|| self.inner.purge(keep)).or_raise(py)?;
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<drumlin.Backups {}>", self.inner.dir().display())
    }
}
