//! Merge operators: the built-in ones by name, and functions of Python.

use std::sync::Arc;

use drumlin::{Error, MergeOperator, StringAppend, UInt64Add};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::bytes::Given;

/// A merge operator, and whether it calls Python.
pub(crate) struct Merge {
    pub(crate) operator: Arc<dyn MergeOperator>,
    pub(crate) calls_python: bool,
}

impl Merge {
    /// The operator that `any` says: the name of a built-in one, or a function of a key, the value or `None`, and a list of
    /// operands, oldest first, that returns the new value.
    ///
    /// # Errors
    /// `ValueError` for a name that is none, `TypeError` for anything else.
    pub(crate) fn of(any: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(name) = any.cast::<PyString>() {
            let operator: Arc<dyn MergeOperator> = match name.to_str()? {
                "uint64add" => Arc::new(UInt64Add),
                "stringappend" => Arc::new(StringAppend::new(",")),
                other => {
                    let text = format!(
                        "there is no merge operator {other:?}: it is \"uint64add\", \"stringappend\", or a function"
                    );
                    return Err(PyValueError::new_err(text));
                }
            };
            return Ok(Self {
                operator,
                calls_python: false,
            });
        }
        if !any.is_callable() {
            let text = "a merge operator is a name or a function of key, value and operands";
            return Err(PyTypeError::new_err(text));
        }
        let part = |name: &str| any.getattr(name).ok()?.extract::<String>().ok();
        let name = part("__qualname__").unwrap_or_else(|| "function".to_owned());
        let module = part("__module__").unwrap_or_else(|| "python".to_owned());
        let operator = PythonMerge {
            name: format!("{module}.{name}"),
            function: any.clone().unbind(),
        };
        Ok(Self {
            operator: Arc::new(operator),
            calls_python: true,
        })
    }
}

struct PythonMerge {
    name: String,
    function: Py<PyAny>,
}

impl MergeOperator for PythonMerge {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> drumlin::Result<Vec<u8>> {
        let merged = Python::attach(|py| {
            let existing = existing.map(|value| PyBytes::new(py, value));
            let operands = operands.iter().map(|operand| PyBytes::new(py, operand));
            let operands = PyList::new(py, operands.collect::<Vec<_>>())?;
            let args = (PyBytes::new(py, key), existing, operands);
            let value = self.function.bind(py).call1(args)?;
            Given::of(&value).map(|value| value.as_ref().to_vec())
        });
        merged.map_err(|error| {
            Error::invalid_argument(format!("the merge function {} failed: {error}", self.name))
        })
    }
}
