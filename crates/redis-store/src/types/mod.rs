//! The data types: functions over a [`crate::Keyspace`].

mod elements;
pub mod hash;
pub mod list;
pub mod set;
pub mod string;
pub mod zset;
