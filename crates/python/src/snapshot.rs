//! A moment of a database that stays readable.

use drumlin::Snapshot as Moment;
use pyo3::prelude::*;

use crate::database::family_of;
use crate::reader::Reader;

/// All families as they were when `Database.snapshot` was called. It reads the default family; `family` gives the others.
#[pyclass(frozen, extends = Reader, module = "drumlin")]
pub(crate) struct Snapshot {
    moment: Moment,
}

impl Snapshot {
    pub(crate) fn make(present: &Reader) -> PyClassInitializer<Self> {
        let moment = present.db.snapshot();
        let (db, family) = (present.db.clone(), present.db.default_family().clone());
        let reader = Reader::new(db, family, Some(moment.clone()), present.calls_python);
        PyClassInitializer::from(reader).add_subclass(Self { moment })
    }
}

#[pymethods]
impl Snapshot {
    /// The number of the last write that it shows.
    #[getter]
    fn seqno(&self) -> u64 {
        self.moment.seqno()
    }

    /// The family called `name`, as it was then.
    fn family(slf: &Bound<'_, Self>, name: &str) -> PyResult<Reader> {
        let reader = slf.as_super().get();
        let family = family_of(slf.py(), &reader.db, name)?;
        let (db, snapshot) = (reader.db.clone(), reader.snapshot());
        Ok(Reader::new(db, family, snapshot, reader.calls_python))
    }

    fn __repr__(&self) -> String {
        format!("<drumlin.Snapshot {}>", self.moment.seqno())
    }
}
