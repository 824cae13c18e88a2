//! MIGRATE: keys go to another server, and go here once that has acknowledged them.
//!
//! `cmd::migrate` reads the arguments, and the client waits as for a key. When the round is written, [`tend`] takes a view and has
//! a thread send the values in it; [`finish`] deletes them here and answers. Meanwhile commands that name the keys and may change
//! them wait, as everybody does in Redis ([`hold`]). A change that comes all the same, such as by a script
//! that names its keys to nobody, is seen in the changes of its round: then the key stays, and the client is told.

pub(crate) mod finish;
pub(crate) mod hold;
pub(crate) mod request;
pub(crate) mod state;
mod task;
pub(crate) mod tend;
