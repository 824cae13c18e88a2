//! Messages as bytes, without I/O.

pub(crate) mod compressed;
pub(crate) mod header;
pub(crate) mod limits;
pub(crate) mod reply;
pub(crate) mod request;
