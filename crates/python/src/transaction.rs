//! Transactions: writes that are made together or not at all, and reads that others do not slip between.

use std::sync::{Arc, Mutex, PoisonError};

use drumlin::{
    ColumnFamily, Error, ErrorKind, Isolation, PinnedSlice, Prepared, ReadOptions,
    Transaction as Engine, TransactionDb, TransactionOptions,
};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple};
use self_cell::self_cell;

use crate::bytes::Given;
use crate::error::OrRaise;
use crate::family::Family;
use crate::settings::{duration, write_options};
use crate::transaction_walk::TransactionWalk;

/// Where a transaction is.
pub(crate) enum State<'db> {
    Running(Engine<'db>),
    /// Under this name.
    Prepared(Vec<u8>),
    Ended,
}

impl<'db> State<'db> {
    /// The transaction, to be read through and written to.
    ///
    /// # Errors
    /// `InvalidArgument` where it is prepared or ended.
    pub(crate) fn running(&mut self) -> drumlin::Result<&mut Engine<'db>> {
        let why = match self {
            Self::Running(transaction) => return Ok(transaction),
            Self::Prepared(_) => {
                "a transaction that is prepared is committed or rolled back, nothing else"
            }
            Self::Ended => "the transaction was committed or rolled back already",
        };
        Err(Error::invalid_argument(why))
    }
}

self_cell!(
    struct Cell {
        owner: Arc<TransactionDb>,
        #[not_covariant]
        dependent: State,
    }
);

/// What `Database.transaction` was told.
pub(crate) struct Asked<'a> {
    pub(crate) isolation: Option<&'a str>,
    pub(crate) snapshot: bool,
    pub(crate) lock_timeout: Option<f64>,
    pub(crate) expiration: Option<f64>,
    pub(crate) sync: Option<bool>,
}

impl Asked<'_> {
    fn options(&self) -> PyResult<TransactionOptions> {
        let isolation = match self.isolation {
            None => None,
            Some("locks") => Some(Isolation::Locks),
            Some("snapshot") => Some(Isolation::Snapshot),
            Some("serializable") => Some(Isolation::Serializable),
            Some(other) => {
                let text = format!(
                    "there is no isolation {other:?}: it is \"locks\", \"snapshot\" or \"serializable\""
                );
                return Err(PyValueError::new_err(text));
            }
        };
        Ok(TransactionOptions {
            snapshot: self.snapshot,
            lock_timeout: self.lock_timeout.map(duration).transpose()?,
            expiration: self.expiration.map(duration).transpose()?,
            isolation,
        })
    }
}

/// A transaction. It reads its own writes over the store's; others see them once it is committed, by `commit` or at the end
/// of a `with` block that ends without an exception. One that goes away is rolled back.
#[pyclass(frozen, module = "drumlin")]
pub(crate) struct Transaction {
    cell: Arc<Mutex<Cell>>,
    default: ColumnFamily,
    sync: Option<bool>,
}

/// The transaction of a walk, which it keeps.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Cell>>);

impl Shared {
    /// Does `work`, without the interpreter's lock: it may wait for a lock, the disk, or other writers.
    pub(crate) fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&TransactionDb, &mut State<'_>) -> drumlin::Result<R> + Send,
    ) -> PyResult<R> {
        let cell = self.0.lock_py_attached(py);
        let mut cell = cell.unwrap_or_else(PoisonError::into_inner);
        let cell = &mut *cell;
        py.detach(|| cell.with_dependent_mut(|locks, state| work(locks, state)))
            .or_raise(py)
    }
}

impl Transaction {
    /// Begins one.
    ///
    /// # Errors
    /// `ValueError` for what is asked wrongly.
    pub(crate) fn begin(locks: Arc<TransactionDb>, asked: &Asked<'_>) -> PyResult<Self> {
        let options = asked.options()?;
        let default = locks.default_family().clone();
        let cell = Cell::new(locks, |locks| State::Running(locks.begin_with(options)));
        Ok(Self::of(cell, default, asked.sync))
    }

    /// The one that was prepared as `name`, if there is one.
    pub(crate) fn prepared(locks: Arc<TransactionDb>, name: &[u8]) -> Option<Self> {
        let default = locks.default_family().clone();
        let _ = locks.prepared(name)?;
        let cell = Cell::new(locks, |_| State::Prepared(name.to_vec()));
        Some(Self::of(cell, default, None))
    }

    fn of(cell: Cell, default: ColumnFamily, sync: Option<bool>) -> Self {
        let cell = Arc::new(Mutex::new(cell));
        Self {
            cell,
            default,
            sync,
        }
    }

    fn shared(&self) -> Shared {
        Shared(Arc::clone(&self.cell))
    }

    fn family<'a>(&'a self, family: Option<&'a Bound<'_, Family>>) -> &'a ColumnFamily {
        family.map_or(&self.default, |family| &family.as_super().get().family)
    }

    /// A step of the running transaction.
    fn step<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Engine<'_>) -> drumlin::Result<R> + Send,
    ) -> PyResult<R> {
        self.shared().with(py, |_, state| work(state.running()?))
    }

    fn find(
        &self,
        key: &Bound<'_, PyAny>,
        family: Option<&Bound<'_, Family>>,
        for_update: bool,
    ) -> PyResult<Option<PinnedSlice>> {
        let (given, family) = (Given::of(key)?, self.family(family));
        self.step(key.py(), |it| match for_update {
            true => it.get_for_update(family, &given),
            false => it.get(family, &given),
        })
    }
}

#[pymethods]
impl Transaction {
    /// The value of `key`, or `default`; with `for_update` nobody else writes or locks it until the end.
    #[pyo3(signature = (key, default=None, *, family=None, for_update=false))]
    fn get(
        &self,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
        family: Option<&Bound<'_, Family>>,
        for_update: bool,
    ) -> PyResult<Option<Py<PyAny>>> {
        let found = self.find(key, family, for_update)?;
        Ok(match found {
            Some(value) => Some(PyBytes::new(key.py(), &value).into_any().unbind()),
            None => default,
        })
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        match self.find(key, None, false)? {
            Some(value) => Ok(PyBytes::new(key.py(), &value)),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.find(key, None, false)?.is_some())
    }

    /// Pairs of key and value with `start <= key < stop`. What is written meanwhile is there where the walk has not been.
    /// With `for_update` nobody else writes to the range until the end.
    #[pyo3(signature = (start=None, stop=None, *, family=None, for_update=false))]
    fn items(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        family: Option<&Bound<'_, Family>>,
        for_update: bool,
    ) -> PyResult<TransactionWalk> {
        let bound = |any| Ok::<_, PyErr>(Given::of_some(any)?.map(|given| given.as_ref().to_vec()));
        let family = self.family(family);
        let bounds = ReadOptions {
            lower_bound: bound(start)?,
            upper_bound: bound(stop)?,
            ..ReadOptions::default()
        };
        let (lower, upper) = (bounds.lower_bound.as_deref(), bounds.upper_bound.as_deref());
        self.step(py, |it| match for_update {
            true => it.lock_range(family, lower, upper),
            false => Ok(()),
        })?;
        Ok(TransactionWalk::new(self.shared(), family.clone(), bounds))
    }

    /// Writes `value` under `key`.
    #[pyo3(signature = (key, value, *, family=None))]
    fn put(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        family: Option<&Bound<'_, Family>>,
    ) -> PyResult<()> {
        let (given, value, family) = (Given::of(key)?, Given::of(value)?, self.family(family));
        self.step(key.py(), |it| it.put(family, &given, &value))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value, None)
    }

    /// Deletes `key`; it is no error if there is none.
    #[pyo3(signature = (key, *, family=None))]
    fn delete(&self, key: &Bound<'_, PyAny>, family: Option<&Bound<'_, Family>>) -> PyResult<()> {
        let (given, family) = (Given::of(key)?, self.family(family));
        self.step(key.py(), |it| it.delete(family, &given))
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(key, None)
    }

    /// Deletes all keys with `start <= key < stop`.
    #[pyo3(signature = (start, stop, *, family=None))]
    fn delete_range(
        &self,
        start: &Bound<'_, PyAny>,
        stop: &Bound<'_, PyAny>,
        family: Option<&Bound<'_, Family>>,
    ) -> PyResult<()> {
        let (begin, end, family) = (Given::of(start)?, Given::of(stop)?, self.family(family));
        self.step(start.py(), |it| it.delete_range(family, &begin, &end))
    }

    /// Has `operand` merged into the value of `key` by the family's merge operator.
    #[pyo3(signature = (key, operand, *, family=None))]
    fn merge(
        &self,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
        family: Option<&Bound<'_, Family>>,
    ) -> PyResult<()> {
        let (given, operand, family) = (Given::of(key)?, Given::of(operand)?, self.family(family));
        self.step(key.py(), |it| it.merge(family, &given, &operand))
    }

    /// Keeps others from writing or locking `key` until the end, be it there or not; with `shared` they may do the same.
    #[pyo3(signature = (key, *, shared=false, family=None))]
    fn lock(
        &self,
        key: &Bound<'_, PyAny>,
        shared: bool,
        family: Option<&Bound<'_, Family>>,
    ) -> PyResult<()> {
        let (given, family) = (Given::of(key)?, self.family(family));
        self.step(key.py(), |it| match shared {
            true => it.share_key(family, &given),
            false => it.lock_key(family, &given),
        })
    }

    /// A point to come back to.
    fn set_savepoint(&self, py: Python<'_>) -> PyResult<()> {
        self.step(py, |it| {
            it.set_savepoint();
            Ok(())
        })
    }

    /// Undoes all since the last savepoint, its locks included, and forgets it.
    fn rollback_to_savepoint(&self, py: Python<'_>) -> PyResult<()> {
        self.step(py, |it| it.rollback_to_savepoint())
    }

    /// Forgets the last savepoint and keeps what was done since.
    fn pop_savepoint(&self, py: Python<'_>) -> PyResult<()> {
        self.step(py, |it| it.pop_savepoint())
    }

    /// The first half of a commit in two phases: the writes are on the disk under `name`, and wait, through kills and
    /// reopenings too, for `commit` or `rollback`.
    fn prepare(&self, name: &Bound<'_, PyAny>) -> PyResult<()> {
        let (given, options) = (Given::of(name)?, write_options(self.sync));
        self.shared().with(name.py(), |_, state| {
            state.running()?;
            if let State::Running(it) = std::mem::replace(state, State::Ended) {
                let _ = it.prepare_with(&given, &options)?;
                *state = State::Prepared(given.as_ref().to_vec());
            }
            Ok(())
        })
    }

    /// Makes the writes. The number of the last of them.
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        let options = write_options(self.sync);
        self.shared().with(py, |locks, state| {
            if let State::Prepared(name) = state {
                let seqno = prepared(locks, name)?.commit_with(&options)?;
                *state = State::Ended;
                return Ok(seqno);
            }
            state.running()?;
            match std::mem::replace(state, State::Ended) {
                State::Running(it) => it.commit_with(&options),
                State::Prepared(_) | State::Ended => unreachable!("it runs"),
            }
        })
    }

    /// Gives the writes up. A second time does nothing.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let options = write_options(self.sync);
        self.shared().with(py, |locks, state| {
            if let State::Prepared(name) = state {
                prepared(locks, name)?.rollback_with(&options)?;
            }
            *state = State::Ended;
            Ok(())
        })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let failed = exception.get_item(0).is_ok_and(|kind| !kind.is_none());
        let runs =
            |_: &TransactionDb, state: &mut State<'_>| Ok(matches!(state, State::Running(_)));
        match (self.shared().with(py, runs)?, failed) {
            (false, _) => {} // It was ended in the block; or it is prepared, and waits.
            (true, true) => self.rollback(py)?,
            (true, false) => drop(self.commit(py)?),
        }
        Ok(false)
    }

    fn __repr__(&self) -> String {
        "<drumlin.Transaction>".to_owned()
    }
}

/// What is prepared as `name`.
///
/// # Errors
/// `NotFound` where another ended it.
fn prepared<'db>(locks: &'db TransactionDb, name: &[u8]) -> drumlin::Result<Prepared<'db>> {
    locks.prepared(name).ok_or_else(|| {
        let text = format!(
            "no transaction is prepared as {:?}",
            name.escape_ascii().to_string()
        );
        Error::new(ErrorKind::NotFound, text)
    })
}
