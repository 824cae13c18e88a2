//! Options as a user sets them, as they are stored, and as an older engine must find them.

mod added;
pub(crate) mod by_name;
pub mod file;
pub(crate) mod settings;
pub(crate) mod stored;
pub(crate) mod vintage;
