//! Writes to one family.

use drumlin::WriteBatch;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping};

use crate::bytes::Given;
use crate::error::OrRaise;
use crate::reader::Reader;
use crate::settings::write_options;

/// Bytes of a batch of `update`.
const UPDATE_BYTES: usize = 1 << 20;

/// A family: a mapping of keys to values, in the order of the keys.
#[pyclass(frozen, subclass, extends = Reader, module = "drumlin")]
pub(crate) struct Family;

impl Family {
    /// A family of a database.
    pub(crate) fn make(reader: Reader) -> PyClassInitializer<Self> {
        PyClassInitializer::from(reader).add_subclass(Self)
    }
}

fn reader<'a>(slf: &'a Bound<'_, Family>) -> &'a Reader {
    slf.as_super().get()
}

#[pymethods]
impl Family {
    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Self::put(slf, key, value, None)
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if reader(slf).find(slf.py(), key)?.is_none() {
            return Err(PyKeyError::new_err(key.clone().unbind()));
        }
        Self::delete(slf, key, None)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let reader = reader(slf);
        let path = reader.db.path().display();
        format!("<drumlin.Family {:?} of {path}>", reader.family.name())
    }

    /// Writes `value` under `key`.
    #[pyo3(signature = (key, value, *, sync=None))]
    fn put(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        sync: Option<bool>,
    ) -> PyResult<()> {
        let (py, reader) = (slf.py(), reader(slf));
        let (key, value) = (Given::of(key)?, Given::of(value)?);
        let options = write_options(sync);
        let written = py.detach(|| reader.db.put_cf(&reader.family, &key, &value, &options));
        written.or_raise(py)
    }

    /// Deletes `key`; it is no error if there is none.
    #[pyo3(signature = (key, *, sync=None))]
    fn delete(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        let (py, reader) = (slf.py(), reader(slf));
        let (key, options) = (Given::of(key)?, write_options(sync));
        let deleted = py.detach(|| reader.db.delete_cf(&reader.family, &key, &options));
        deleted.or_raise(py)
    }

    /// Deletes all keys with `start <= key < stop`.
    #[pyo3(signature = (start, stop, *, sync=None))]
    fn delete_range(
        slf: &Bound<'_, Self>,
        start: &Bound<'_, PyAny>,
        stop: &Bound<'_, PyAny>,
        sync: Option<bool>,
    ) -> PyResult<()> {
        let (py, reader) = (slf.py(), reader(slf));
        let (start, stop) = (Given::of(start)?, Given::of(stop)?);
        let options = write_options(sync);
        let deleted = py.detach(|| {
            let family = &reader.family;
            reader.db.delete_range_cf(family, &start, &stop, &options)
        });
        deleted.or_raise(py)
    }

    /// Has `operand` merged into the value of `key` by the family's merge operator.
    #[pyo3(signature = (key, operand, *, sync=None))]
    fn merge(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
        sync: Option<bool>,
    ) -> PyResult<()> {
        let (py, reader) = (slf.py(), reader(slf));
        let (key, operand) = (Given::of(key)?, Given::of(operand)?);
        let options = write_options(sync);
        let merged = py.detach(|| reader.db.merge_cf(&reader.family, &key, &operand, &options));
        merged.or_raise(py)
    }

    /// Takes `key` out and returns its value, or `default`. Another writer may come between.
    #[pyo3(signature = (key, *default))]
    fn pop(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        default: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        match reader(slf).find(py, key)? {
            Some(value) => {
                Self::delete(slf, key, None)?;
                Ok(PyBytes::new(py, &value).into_any().unbind())
            }
            None => match default.get_item(0) {
                Ok(default) => Ok(default.unbind()),
                Err(_) => Err(PyKeyError::new_err(key.clone().unbind())),
            },
        }
    }

    /// Writes all pairs of a mapping or of an iterable, in batches of about a MiB.
    #[pyo3(signature = (pairs, *, sync=None))]
    fn update(slf: &Bound<'_, Self>, pairs: &Bound<'_, PyAny>, sync: Option<bool>) -> PyResult<()> {
        let (py, reader) = (slf.py(), reader(slf));
        let items = match pairs.cast::<PyMapping>() {
            Ok(mapping) => mapping.items()?.into_any(),
            Err(_) => pairs.clone(),
        };
        let (mut batch, options, mut bytes) = (WriteBatch::new(), write_options(sync), 0);
        for pair in items.try_iter()? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            let (key, value) = (Given::of(&key)?, Given::of(&value)?);
            let (key, value) = (key.as_ref(), value.as_ref());
            bytes += key.len() + value.len();
            batch.put_cf(reader.family.id(), key, value).or_raise(py)?;
            if bytes >= UPDATE_BYTES {
                bytes = 0;
                let full = std::mem::take(&mut batch);
                py.detach(|| reader.db.write(full, &options)).or_raise(py)?;
            }
        }
        py.detach(|| reader.db.write(batch, &options)).or_raise(py)
    }

    /// Writes what is in memory to tables.
    fn flush(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, reader) = (slf.py(), reader(slf));
        py.detach(|| reader.db.flush_cf(&reader.family))
            .or_raise(py)
    }

    /// Rewrites all between two keys, both included, without what is deleted or overwritten.
    #[pyo3(signature = (start=None, stop=None))]
    fn compact(
        slf: &Bound<'_, Self>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, reader) = (slf.py(), reader(slf));
        let (start, stop) = (Given::of_some(start)?, Given::of_some(stop)?);
        let compacted = py.detach(|| {
            let start = start.as_ref().map(AsRef::as_ref);
            let stop = stop.as_ref().map(AsRef::as_ref);
            reader.db.compact_range(&reader.family, start, stop)
        });
        compacted.or_raise(py)
    }

    /// About how many bytes the keys with `start <= key < stop` take on disk.
    fn approximate_size(
        slf: &Bound<'_, Self>,
        start: &Bound<'_, PyAny>,
        stop: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (py, reader) = (slf.py(), reader(slf));
        let (start, stop) = (Given::of(start)?, Given::of(stop)?);
        let sizes = py.detach(|| {
            let range = (start.as_ref(), stop.as_ref());
            reader.db.approximate_sizes(&reader.family, &[range])
        });
        let sizes = sizes.or_raise(py)?;
        Ok(sizes.first().copied().unwrap_or(0))
    }
}
