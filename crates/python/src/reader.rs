//! Reads of one family.

use drumlin::{
    ColumnFamily, Db, DbIterator, ErrorKind, KeyOrder, PinnedSlice, ReadOptions, ReadTier, Snapshot,
};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::bytes::{Given, Value};
use crate::cursor::Cursor;
use crate::error::OrRaise;
use crate::walk::{Gives, Walk};

/// What a walk is over.
#[derive(Clone, Copy, Default)]
struct Bounds<'a, 'py> {
    start: Option<&'a Bound<'py, PyAny>>,
    stop: Option<&'a Bound<'py, PyAny>>,
    prefix: Option<&'a Bound<'py, PyAny>>,
}

/// A family to read from, at the present or at the moment of a snapshot.
#[pyclass(frozen, subclass, module = "drumlin")]
pub(crate) struct Reader {
    pub(crate) db: Db,
    pub(crate) family: ColumnFamily,
    /// Whether reads may call functions of Python.
    pub(crate) calls_python: bool,
    in_memory: ReadOptions,
    from_disk: ReadOptions,
}

impl Reader {
    pub(crate) fn new(
        db: Db,
        family: ColumnFamily,
        snapshot: Option<Snapshot>,
        calls_python: bool,
    ) -> Self {
        let from_disk = ReadOptions {
            snapshot,
            ..ReadOptions::default()
        };
        let in_memory = ReadOptions {
            tier: ReadTier::BlockCache,
            ..from_disk.clone()
        };
        Self {
            db,
            family,
            calls_python,
            in_memory,
            from_disk,
        }
    }

    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        self.from_disk.snapshot.clone()
    }

    /// The value of `key`. The interpreter's lock is kept where all is in memory.
    pub(crate) fn find(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Option<PinnedSlice>> {
        let key = Given::of(key)?;
        if !self.calls_python {
            match self.db.get_cf(&self.family, &key, &self.in_memory) {
                Err(error) if error.kind() == ErrorKind::Incomplete => {}
                found => return found.or_raise(py),
            }
        }
        let found = py.detach(|| self.db.get_cf(&self.family, &key, &self.from_disk));
        found.or_raise(py)
    }

    fn walk(
        &self,
        py: Python<'_>,
        bounds: Bounds<'_, '_>,
        (reverse, gives): (bool, Gives),
    ) -> PyResult<Walk> {
        let cursor = self.iterate(py, bounds)?;
        Ok(Walk::new(cursor, reverse, gives))
    }

    fn iterate(&self, py: Python<'_>, bounds: Bounds<'_, '_>) -> PyResult<DbIterator> {
        let bound = |any| Ok::<_, PyErr>(Given::of_some(any)?.map(|given| given.as_ref().to_vec()));
        let (mut lower_bound, mut upper_bound) = (bound(bounds.start)?, bound(bounds.stop)?);
        if let Some(prefix) = bound(bounds.prefix)? {
            if lower_bound.is_some() || upper_bound.is_some() {
                let text = "a walk has a prefix, or a start and a stop, not both";
                return Err(PyValueError::new_err(text));
            }
            if !matches!(self.family.order(), KeyOrder::Bytewise) {
                let text = "keys with a prefix lie together in bytewise order only";
                return Err(PyValueError::new_err(text));
            }
            upper_bound = behind_prefix(&prefix);
            lower_bound = Some(prefix);
        }
        let options = ReadOptions {
            lower_bound,
            upper_bound,
            ..self.from_disk.clone()
        };
        Ok(py.detach(|| self.db.iter_cf(&self.family, options)))
    }

    /// The first or the last entry.
    fn end<'py>(
        &self,
        py: Python<'py>,
        is_last: bool,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let found = py.detach(|| {
            let mut cursor = self.db.iter_cf(&self.family, self.from_disk.clone());
            match is_last {
                true => cursor.seek_to_last(),
                false => cursor.seek_to_first(),
            }
            if !cursor.valid() {
                return cursor.status().map(|()| None);
            }
            let value = cursor.try_value()?.to_vec();
            Ok(Some((cursor.key().to_vec(), value)))
        });
        let found = found.or_raise(py)?;
        Ok(found.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value))))
    }
}

/// The first key behind all that begin with `prefix`; none where it is all ones.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX)? + 1;
    let mut behind = prefix.get(..kept)?.to_vec();
    *behind.last_mut()? += 1;
    Some(behind)
}

#[pymethods]
impl Reader {
    /// The family's name.
    #[getter]
    fn name(&self) -> &str {
        self.family.name()
    }

    /// The family's number, by which changes name it. No other family ever has it.
    #[getter]
    fn id(&self) -> u32 {
        self.family.id()
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let py = key.py();
        match self.find(py, key)? {
            Some(value) => Ok(PyBytes::new(py, &value)),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.find(key.py(), key)?.is_some())
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Walk> {
        self.walk(py, Bounds::default(), (false, Gives::Keys))
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Walk> {
        self.walk(py, Bounds::default(), (true, Gives::Keys))
    }

    // A mapping that is empty would else have to be walked for it.
    fn __bool__(&self) -> bool {
        true
    }

    /// The value of `key`, or `default`.
    #[pyo3(signature = (key, default=None))]
    fn get(
        &self,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let py = key.py();
        Ok(match self.find(py, key)? {
            Some(value) => Some(PyBytes::new(py, &value).into_any().unbind()),
            None => default,
        })
    }

    /// The value of `key` in the store's own memory, or `None`.
    fn get_buffer(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
        Ok(self.find(key.py(), key)?.map(Value::new))
    }

    /// The values of `keys`, in their order, `None` for those that have none. They are looked up together.
    fn get_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = keys.py();
        let given = keys.try_iter()?.map(|key| Given::of(&key?));
        let keys = given.collect::<PyResult<Vec<_>>>()?;
        let found = py.detach(|| self.db.multi_get_cf(&self.family, &keys, &self.from_disk));
        let values = found.into_iter().map(|found| {
            let found = found.or_raise(py)?;
            Ok(found.map(|value| PyBytes::new(py, &value)))
        });
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }

    /// Pairs of key and value with `start <= key < stop`, or of the keys that begin with `prefix`.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false))]
    fn items(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<Walk> {
        self.walk(
            py,
            Bounds {
                start,
                stop,
                prefix,
            },
            (reverse, Gives::Items),
        )
    }

    /// Keys, as `items` has them; values are not read.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false))]
    fn keys(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<Walk> {
        self.walk(
            py,
            Bounds {
                start,
                stop,
                prefix,
            },
            (reverse, Gives::Keys),
        )
    }

    /// Values, as `items` has them.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false))]
    fn values(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<Walk> {
        self.walk(
            py,
            Bounds {
                start,
                stop,
                prefix,
            },
            (reverse, Gives::Values),
        )
    }

    /// A cursor over the same, which stands at no entry yet.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn cursor(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Cursor> {
        let bounds = Bounds {
            start,
            stop,
            prefix,
        };
        Ok(Cursor::new(self.iterate(py, bounds)?))
    }

    /// The first pair of key and value, or `None`.
    fn first<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        self.end(py, false)
    }

    /// The last pair of key and value, or `None`.
    fn last<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        self.end(py, true)
    }
}
