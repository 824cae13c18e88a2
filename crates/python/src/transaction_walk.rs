//! Walks of a transaction. Each chunk of entries is looked for anew, so that the transaction may write in between.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use drumlin::{ColumnFamily, ReadOptions};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple};

use crate::transaction::Shared;

/// Most entries of a chunk, and bytes that end one.
const ENTRIES_MAX: usize = 256;
const BYTES_MAX: usize = 128 << 10;

/// The entries of a range, as the transaction sees them.
#[pyclass(frozen, module = "drumlin")]
pub(crate) struct TransactionWalk {
    transaction: Shared,
    family: ColumnFamily,
    state: Mutex<State>,
}

struct State {
    /// What is left of the range.
    bounds: ReadOptions,
    chunk: VecDeque<(Vec<u8>, Vec<u8>)>,
    entries_most: usize,
    ended: bool,
}

impl TransactionWalk {
    pub(crate) fn new(transaction: Shared, family: ColumnFamily, bounds: ReadOptions) -> Self {
        let state = State {
            bounds,
            chunk: VecDeque::new(),
            entries_most: 1,
            ended: false,
        };
        Self {
            transaction,
            family,
            state: Mutex::new(state),
        }
    }

    fn fill(&self, py: Python<'_>, state: &mut State) -> PyResult<()> {
        let most = state.entries_most;
        state.entries_most = (most * 4).min(ENTRIES_MAX);
        let bounds = state.bounds.clone();
        let found = self.transaction.with(py, |_, transaction| {
            let (mut found, mut bytes) = (VecDeque::new(), 0);
            let mut cursor = transaction.running()?.iter(&self.family, bounds)?;
            cursor.seek_to_first();
            while cursor.valid() && found.len() < most && bytes < BYTES_MAX {
                let (key, value) = (cursor.key().to_vec(), cursor.try_value()?.to_vec());
                bytes += key.len() + value.len();
                found.push_back((key, value));
                cursor.next();
            }
            cursor.status()?;
            Ok((found, !cursor.valid()))
        })?;
        (state.chunk, state.ended) = found;
        if let Some((last, _)) = state.chunk.back() {
            // The first key behind it, in the order of bytes, which is that of all transactions.
            let mut behind = last.clone();
            behind.push(0);
            state.bounds.lower_bound = Some(behind);
        }
        Ok(())
    }
}

#[pymethods]
impl TransactionWalk {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let state = self.state.lock_py_attached(py);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.chunk.is_empty() && !state.ended {
            state.ended = true; // Unless all goes well.
            self.fill(py, &mut state)?;
        }
        let Some((key, value)) = state.chunk.pop_front() else {
            return Ok(None);
        };
        let pair = [PyBytes::new(py, &key), PyBytes::new(py, &value)];
        PyTuple::new(py, pair).map(Some)
    }
}
