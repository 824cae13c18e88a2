//! The laboratory: measurements that anyone can repeat with one command.
//!
//! [`group`] runs a program in a control group, so that memory (the page cache included) and the
//! disk's reads a second are those of the machine a measurement was published for. [`process`] watches
//! a process from outside.

#![forbid(unsafe_code)]

pub mod group;
pub mod process;
