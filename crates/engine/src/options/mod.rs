//! Options as a user sets them, as they are stored, and as an older engine must find them.

pub mod file;
pub(crate) mod settings;
pub(crate) mod stored;
pub(crate) mod vintage;
