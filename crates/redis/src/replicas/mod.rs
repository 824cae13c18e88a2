//! The servers that follow this one, as Redis's replicas do.
//!
//! The changes of commands go into one stream of bytes, as commands that have the same effect wherever they run ([`unit`]).
//! The newest part of the stream is in memory ([`backlog`]) under a name and an offset ([`history`]). A replica that knows
//! the name and an offset goes on from there; any other gets all data first, from a thread ([`dump`]). [`tend`] feeds them at
//! the end of each turn of the loop.
//!
//! Nothing is collected before the first replica comes.

pub(crate) mod backlog;
mod dump;
pub(crate) mod failover;
pub(crate) mod hand_over;
pub(crate) mod history;
pub(crate) mod member;
pub(crate) mod state;
pub(crate) mod tend;
mod unit;
