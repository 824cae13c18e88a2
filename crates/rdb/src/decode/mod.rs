//! From bytes to items: strings, packed nodes, values, whole files.

pub(crate) mod body;
pub(crate) mod chunk;
pub(crate) mod reader;
pub(crate) mod streams;
pub(crate) mod strings;
