//! The store for Python: the extension module `drumlin._drumlin`, which the package `drumlin` gives its names.
//!
//! ```text
//! database -> family -> reader -> walk, cursor
//! snapshot ----------^            bytes, error, settings, merge
//!    |-> transaction -> transaction_walk
//!    `-> changes
//! ```
//!
//! Classes build on each other: a [`Reader`] reads one family at one moment or at the present, a [`Family`] writes too, a
//! [`Database`] is its default family and all the rest. The interpreter's lock is given up around every call that may wait,
//! for the disk, for other writers, or for a lock; a read of what is in memory keeps it.

use pyo3::prelude::*;

mod backups;
mod batch;
mod bytes;
mod changes;
mod cursor;
mod database;
mod error;
mod family;
mod merge;
mod reader;
mod settings;
mod snapshot;
mod transaction;
mod transaction_walk;
mod walk;

/// The module's classes and functions.
#[pymodule]
fn _drumlin(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<reader::Reader>()?;
    module.add_class::<family::Family>()?;
    module.add_class::<database::Database>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<transaction_walk::TransactionWalk>()?;
    module.add_class::<changes::Changes>()?;
    module.add_class::<changes::ChangeBatch>()?;
    module.add_class::<walk::Walk>()?;
    module.add_class::<cursor::Cursor>()?;
    module.add_class::<bytes::Value>()?;
    module.add_class::<backups::Backups>()?;
    module.add_function(wrap_pyfunction!(database::open, module)?)?;
    module.add_function(wrap_pyfunction!(database::list_families, module)?)?;
    module.add_function(wrap_pyfunction!(database::repair, module)?)?;
    module.add_function(wrap_pyfunction!(database::destroy, module)?)?;
    Ok(())
}
