//! A database, and what is done with directories.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use drumlin::{ColumnFamily, Db, Env, Error, ErrorKind, Health, Locking, Options, TransactionDb};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::batch::Batch;
use crate::bytes::Given;
use crate::changes::Changes;
use crate::error::{OrRaise, raised};
use crate::family::Family;
use crate::reader::Reader;
use crate::settings::{self, Settings};
use crate::snapshot::Snapshot;
use crate::transaction::{Asked, Transaction};

/// An open database: its default family, and all that concerns the whole. Any number of threads may use it at once.
#[pyclass(frozen, extends = Family, weakref, module = "drumlin")]
pub(crate) struct Database {
    is_closed: AtomicBool,
    /// Of its transactions, from the first one on.
    locks: OnceLock<Arc<TransactionDb>>,
}

impl Database {
    fn locks(slf: &Bound<'_, Self>) -> PyResult<Arc<TransactionDb>> {
        let found = &slf.get().locks;
        if let Some(locks) = found.get() {
            return Ok(Arc::clone(locks));
        }
        let db = reader(slf).db.clone();
        let made = slf
            .py()
            .detach(|| TransactionDb::over(db, Locking::default()));
        let made = Arc::new(made.or_raise(slf.py())?);
        // Another thread may have been faster: all have the same locks.
        Ok(Arc::clone(found.get_or_init(|| made)))
    }
}

/// Opens the database in `path`, with all its families.
#[pyfunction]
#[pyo3(signature = (path, **options))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<Database>> {
    let settings = Settings::of(options)?;
    let opened = py.detach(|| {
        let options = settings.options.clone();
        if settings.read_only {
            return Db::open_read_only(&path, options);
        }
        match Db::open_all_families_as(&path, options.clone(), |name, it| settings.adapt(name, it))
        {
            // There is none, so there are no families either.
            Err(error) if error.kind() == ErrorKind::NotFound && options.create_if_missing => {
                Db::open(&path, options)
            }
            opened => opened,
        }
    });
    let db = opened.or_raise(py)?;
    let family = db.default_family().clone();
    let reader = Reader::new(db, family, None, settings.calls_python);
    let database = Database {
        is_closed: AtomicBool::new(false),
        locks: OnceLock::new(),
    };
    Py::new(py, Family::make(reader).add_subclass(database))
}

/// The names of the families of the database in `path`.
#[pyfunction]
pub(crate) fn list_families(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
    py.detach(|| Db::list_families(&path, &Env::system()))
        .or_raise(py)
}

/// Makes the database in `path` one that can be opened again, from the files that are there.
#[pyfunction]
#[pyo3(signature = (path, **options))]
pub(crate) fn repair<'py>(
    py: Python<'py>,
    path: PathBuf,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = Settings::of(options)?;
    let report = py
        .detach(|| Db::repair(&path, &settings.options))
        .or_raise(py)?;
    let told = PyDict::new(py);
    told.set_item("tables", report.tables)?;
    told.set_item("entries", report.entries)?;
    told.set_item("blob_files", report.blob_files)?;
    told.set_item("families", report.families)?;
    told.set_item("lost", damaged(report.lost))?;
    Ok(told)
}

/// Removes the database in `path`, and nothing else that is there.
#[pyfunction]
pub(crate) fn destroy(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| Db::destroy(&path, &Options::default()))
        .or_raise(py)
}

/// Files with what is wrong with them.
pub(crate) fn damaged(files: Vec<(PathBuf, Error)>) -> Vec<(PathBuf, String)> {
    let told = files
        .into_iter()
        .map(|(file, error)| (file, error.to_string()));
    told.collect()
}

/// The family called `name`.
///
/// # Errors
/// `NotFound`.
pub(crate) fn family_of(py: Python<'_>, db: &Db, name: &str) -> PyResult<ColumnFamily> {
    db.column_family(name).ok_or_else(|| {
        let text = format!("there is no family {name:?}");
        raised(py, &Error::new(ErrorKind::NotFound, text))
    })
}

fn reader<'a>(slf: &'a Bound<'_, Database>) -> &'a Reader {
    slf.as_super().as_super().get()
}

#[pymethods]
impl Database {
    /// The directory.
    #[getter]
    fn path(slf: &Bound<'_, Self>) -> PathBuf {
        reader(slf).db.path().to_owned()
    }

    /// Whether `close` was called.
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// `"healthy"`, `"background-paused"`, `"write-stopped"` or `"poisoned"`.
    #[getter]
    fn health(slf: &Bound<'_, Self>) -> &'static str {
        match reader(slf).db.health() {
            Health::Healthy => "healthy",
            Health::BackgroundPaused => "background-paused",
            Health::WriteStopped => "write-stopped",
            Health::Poisoned => "poisoned",
        }
    }

    /// The number of the last write.
    #[getter]
    fn latest_seqno(slf: &Bound<'_, Self>) -> u64 {
        reader(slf).db.latest_seqno()
    }

    /// The number of the last write that a power cut cannot take back.
    #[getter]
    fn durable_seqno(slf: &Bound<'_, Self>) -> u64 {
        reader(slf).db.durable_seqno()
    }

    /// The names of the families.
    fn families(slf: &Bound<'_, Self>) -> Vec<String> {
        let families = reader(slf).db.families();
        families.iter().map(|it| it.name().to_owned()).collect()
    }

    /// The family called `name`; with `create` it is made, with these options, if there is none.
    #[pyo3(signature = (name, *, create=false, **options))]
    fn family(
        slf: &Bound<'_, Self>,
        name: &str,
        create: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Family>> {
        let (py, of_db) = (slf.py(), reader(slf));
        let (options, calls_python) = settings::of_family(options)?;
        let found = match of_db.db.column_family(name) {
            None if create => py
                .detach(|| of_db.db.create_family(name, options))
                .or_raise(py)?,
            Some(found) => found,
            None => family_of(py, &of_db.db, name)?,
        };
        let calls_python = calls_python || of_db.calls_python;
        let reader = Reader::new(of_db.db.clone(), found, None, calls_python);
        Py::new(py, Family::make(reader))
    }

    /// Drops a family with all that is in it.
    fn drop_family(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
        let (py, db) = (slf.py(), &reader(slf).db);
        let family = family_of(py, db, name)?;
        py.detach(|| db.drop_family(&family)).or_raise(py)
    }

    /// A batch, for `with`, or to be written by its `write`.
    #[pyo3(signature = (*, sync=None))]
    fn batch(slf: &Bound<'_, Self>, sync: Option<bool>) -> Batch {
        Batch::new(slf.clone().unbind(), sync)
    }

    /// Begins a transaction, for `with`, or to be ended by its `commit` or `rollback`.
    #[pyo3(signature = (*, isolation=None, snapshot=true, lock_timeout=None, expiration=None, sync=None))]
    fn transaction(
        slf: &Bound<'_, Self>,
        isolation: Option<&str>,
        snapshot: bool,
        lock_timeout: Option<f64>,
        expiration: Option<f64>,
        sync: Option<bool>,
    ) -> PyResult<Transaction> {
        let asked = Asked {
            isolation,
            snapshot,
            lock_timeout,
            expiration,
            sync,
        };
        Transaction::begin(Self::locks(slf)?, &asked)
    }

    /// The names of the transactions that are prepared.
    fn prepared<'py>(slf: &Bound<'py, Self>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let names = Self::locks(slf)?.prepared_transactions();
        let names = names.iter().map(|name| PyBytes::new(slf.py(), name));
        Ok(names.collect())
    }

    /// The transaction that is prepared as `name`, to be committed or rolled back; `None` if there is none.
    fn prepared_transaction(
        slf: &Bound<'_, Self>,
        name: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Transaction>> {
        let name = Given::of(name)?;
        Ok(Transaction::prepared(Self::locks(slf)?, name.as_ref()))
    }

    /// The changes from the number `from_seqno` on, the first that is kept without it. The database has to be opened with
    /// `keep_changes_seconds` or `keep_changes_bytes`.
    #[pyo3(signature = (from_seqno=None, *, synced_only=false))]
    fn changes(
        slf: &Bound<'_, Self>,
        from_seqno: Option<u64>,
        synced_only: bool,
    ) -> PyResult<Changes> {
        let (py, db) = (slf.py(), &reader(slf).db);
        Changes::begin(py, db, from_seqno, synced_only)
    }

    /// The present moment of all families. It holds back what compaction may drop for as long as it lives.
    fn snapshot(slf: &Bound<'_, Self>) -> PyResult<Py<Snapshot>> {
        Py::new(slf.py(), Snapshot::make(reader(slf)))
    }

    /// Has all writes so far outlive a power cut. The number of the last of them.
    fn sync(slf: &Bound<'_, Self>) -> PyResult<u64> {
        let (py, db) = (slf.py(), &reader(slf).db);
        py.detach(|| db.sync_wal()).or_raise(py)
    }

    /// Makes a copy of the database as it is now in `path`, which must not exist. Tables are shared where the file system can.
    fn checkpoint(slf: &Bound<'_, Self>, path: PathBuf) -> PyResult<()> {
        let (py, db) = (slf.py(), &reader(slf).db);
        py.detach(|| db.checkpoint(&path)).or_raise(py)
    }

    /// Takes in table files that were written elsewhere.
    #[pyo3(signature = (paths, *, family=None, move_files=false))]
    fn ingest(
        slf: &Bound<'_, Self>,
        paths: Vec<PathBuf>,
        family: Option<&str>,
        move_files: bool,
    ) -> PyResult<()> {
        let (py, db) = (slf.py(), &reader(slf).db);
        let family = family_of(py, db, family.unwrap_or("default"))?;
        py.detach(|| db.ingest(&family, &paths, move_files))
            .or_raise(py)
    }

    /// Reads and checks every table and blob: what was read, and the damaged files.
    fn verify<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, db) = (slf.py(), &reader(slf).db);
        let report = py.detach(|| db.verify()).or_raise(py)?;
        let told = PyDict::new(py);
        told.set_item("tables", report.tables)?;
        told.set_item("bytes", report.bytes)?;
        told.set_item("entries", report.entries)?;
        told.set_item("blob_files", report.blob_files)?;
        told.set_item("damaged", damaged(report.damaged))?;
        Ok(told)
    }

    /// Counters of what was done since the database was opened, by name.
    fn statistics<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let told = PyDict::new(slf.py());
        for (name, count) in reader(slf).db.statistics().tickers() {
            told.set_item(name, count)?;
        }
        Ok(told)
    }

    /// A property under the name that RocksDB or LevelDB gives it; `None` for a name that is none.
    fn property<'py>(slf: &Bound<'py, Self>, name: &[u8]) -> Option<Bound<'py, PyBytes>> {
        let name = std::str::from_utf8(name).ok()?;
        let reader = reader(slf);
        let text = slf.py().detach(|| reader.db.property(&reader.family, name));
        text.map(|text| PyBytes::new(slf.py(), text.as_bytes()))
    }

    /// Bytes of memory by what they are for, and `limit`.
    fn memory<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let budget = reader(slf).db.budget();
        let told = PyDict::new(slf.py());
        told.set_item("limit", budget.limit_bytes())?;
        for (name, bytes) in budget.used_by_name() {
            told.set_item(name, bytes)?;
        }
        Ok(told)
    }

    /// Changes the memory budget.
    fn set_memory_budget(slf: &Bound<'_, Self>, bytes: usize) -> PyResult<()> {
        if bytes == 0 {
            return Err(PyValueError::new_err("a budget of nothing holds nothing"));
        }
        let (py, db) = (slf.py(), &reader(slf).db);
        py.detach(|| db.budget().set_limit_bytes(bytes))
            .or_raise(py)
    }

    /// Ends the work in the background and releases the directory. Snapshots and walks stay readable; everything else is
    /// refused. A second call does nothing.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        if slf.get().is_closed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let (py, db) = (slf.py(), reader(slf).db.clone());
        py.detach(|| db.close()).or_raise(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        Self::close(slf).map(|()| false)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        format!("<drumlin.Database {}>", reader(slf).db.path().display())
    }
}
