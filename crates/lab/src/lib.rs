//! The laboratory: measurements that anyone can repeat with one command.
//!
//! A measurement is a plan ([`experiments`]) that [`contest`] has every engine carry out, each in a
//! process of its own ([`engine`], with [`agent`] inside), in rounds and in turn; [`outcome`] has the
//! figures, [`report`] draws them.
//!
//! [`group`] runs a program in a control group, so that memory (the page cache included) and the
//! disk's reads a second are those of the machine a measurement was published for. [`process`] watches
//! a process from outside.

#![forbid(unsafe_code)]

pub mod agent;
pub mod contest;
pub mod engine;
pub mod experiments;
pub mod group;
pub mod outcome;
pub mod process;
pub mod protocol;
pub mod records;
pub mod report;
pub mod summary;
