//! The server as the replica of a Redis.
//!
//! A thread connects, greets, and takes the primary's data as an RDB file, which it loads while the loop refuses commands. Then
//! the loop has the connection as that of a client, whose commands run like any other's, without replies: [`tend`] tells the
//! primary how far they have come, and begins again where a connection is lost.
//!
//! [`tend`]: tend::tend

pub(crate) mod admit;
mod attempt;
mod greeting;
pub(crate) mod state;
pub(crate) mod tend;
