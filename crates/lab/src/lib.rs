//! The laboratory: measurements that anyone can repeat with one command.
//!
//! A measurement is a plan ([`experiments`]) that [`contest`] has every engine carry out, each in a
//! process of its own ([`engine`], with [`agent`] inside, or [`db_bench`]), in rounds and in turn;
//! [`outcome`] has the figures, [`report`] draws them.
//!
//! [`group`] runs a program in a control group, so that memory (the page cache included) and the
//! disk's reads a second are those of the machine a measurement was published for. [`process`] watches
//! a process from outside.

#![forbid(unsafe_code)]

pub mod agent;
pub mod contest;
mod date;
pub mod db_bench;
pub mod engine;
mod entrant;
pub mod experiments;
pub mod group;
mod held;
pub mod outcome;
pub mod pairs;
mod places;
pub mod process;
pub mod protocol;
pub mod records;
pub mod report;
mod steadiness;
pub mod summary;
pub mod time_limit;
