//! Walks over keys and values.
//!
//! Entries are taken from the store in chunks, of one at first and then more, so that the interpreter's lock is given up and
//! taken again once for many.

use std::sync::Mutex;

use drumlin::DbIterator;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple};

use crate::error::OrRaise;

/// Most entries of a chunk, and bytes that end one.
const ENTRIES_MAX: usize = 256;
const BYTES_MAX: usize = 128 << 10;

/// What a walk gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gives {
    Items,
    Keys,
    Values,
}

/// An iterator over a range of a family, as it was when the walk began.
#[pyclass(frozen, module = "drumlin")]
pub(crate) struct Walk {
    state: Mutex<State>,
    gives: Gives,
}

struct State {
    cursor: DbIterator,
    backward: bool,
    begun: bool,
    ended: bool,
    chunk: Chunk,
    entries_most: usize,
}

/// Entries behind each other, and where key and value of each end.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
    /// The entry that is given next, and where it begins.
    next: usize,
    from: usize,
}

impl Chunk {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.next = 0;
        self.from = 0;
    }

    fn take(&mut self) -> Option<(&[u8], &[u8])> {
        let &(key_end, end) = self.ends.get(self.next)?;
        let from = std::mem::replace(&mut self.from, end);
        self.next += 1;
        let key = self.bytes.get(from..key_end)?;
        Some((key, self.bytes.get(key_end..end)?))
    }
}

impl State {
    fn fill(&mut self, gives: Gives) -> drumlin::Result<()> {
        self.chunk.clear();
        let most = self.entries_most;
        self.entries_most = (most * 4).min(ENTRIES_MAX);
        while self.chunk.ends.len() < most && self.chunk.bytes.len() < BYTES_MAX {
            match (self.begun, self.backward) {
                (false, false) => self.cursor.seek_to_first(),
                (false, true) => self.cursor.seek_to_last(),
                (true, false) => self.cursor.next(),
                (true, true) => self.cursor.prev(),
            }
            self.begun = true;
            if !self.cursor.valid() {
                self.ended = true;
                return self.cursor.status();
            }
            if gives != Gives::Values {
                self.chunk.bytes.extend_from_slice(self.cursor.key());
            }
            let key_end = self.chunk.bytes.len();
            if gives != Gives::Keys {
                let value = self.cursor.try_value()?;
                self.chunk.bytes.extend_from_slice(value);
            }
            self.chunk.ends.push((key_end, self.chunk.bytes.len()));
        }
        Ok(())
    }
}

impl Walk {
    pub(crate) fn new(cursor: DbIterator, backward: bool, gives: Gives) -> Self {
        let state = State {
            cursor,
            backward,
            begun: false,
            ended: false,
            chunk: Chunk::default(),
            entries_most: 1,
        };
        Self {
            state: Mutex::new(state),
            gives,
        }
    }
}

#[pymethods]
impl Walk {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let state = self.state.lock_py_attached(py);
        let mut state = state.unwrap_or_else(std::sync::PoisonError::into_inner);
        let state = &mut *state;
        if state.chunk.next == state.chunk.ends.len() && !state.ended {
            let gives = self.gives;
            if let Err(error) = py.detach(|| state.fill(gives)) {
                state.ended = true;
                state.chunk.clear();
                return Err(error).or_raise(py);
            }
        }
        let Some((key, value)) = state.chunk.take() else {
            return Ok(None);
        };
        Ok(Some(match self.gives {
            Gives::Keys => PyBytes::new(py, key).into_any().unbind(),
            Gives::Values => PyBytes::new(py, value).into_any().unbind(),
            Gives::Items => {
                let pair = [PyBytes::new(py, key), PyBytes::new(py, value)];
                PyTuple::new(py, pair)?.into_any().unbind()
            }
        }))
    }
}
