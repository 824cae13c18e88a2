//! The engine's errors as Python's exceptions, whose classes the package defines.

use drumlin::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// `drumlin.errors.of_engine`.
static OF_ENGINE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The exception for `error`: of the class of its kind, with file and offset.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    made(py, error).unwrap_or_else(|failure| PyRuntimeError::new_err(format!("{error}; {failure}")))
}

fn made(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let of_engine = OF_ENGINE.get_or_try_init(py, || {
        let module = py.import("drumlin.errors")?;
        module.getattr("of_engine").map(Bound::unbind)
    })?;
    let kind = format!("{:?}", error.kind());
    let file = error.file().map(|file| file.as_os_str());
    let facts = (kind, error.to_string(), file, error.offset());
    Ok(PyErr::from_value(of_engine.bind(py).call1(facts)?))
}

/// Turns the engine's results into Python's.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    ///
    /// # Errors
    /// That of the engine.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for drumlin::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, &error))
    }
}
