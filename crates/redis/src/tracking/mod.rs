//! Caches of clients: who has read which key, and is to be told when it changes.

pub(crate) mod options;
pub(crate) mod tracker;
