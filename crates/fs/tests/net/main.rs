//! Sockets of the system and in memory keep one contract; faults strike the operations that their
//! rules name.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod accepting;
mod bytes;
mod contract;
mod faults;
mod posix;
mod world;
