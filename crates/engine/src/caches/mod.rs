//! Open files and what is kept of them in memory, all charged to one budget.

pub(crate) mod blob_cache;
pub(crate) mod models;
pub mod table_cache;
