//! The data types: functions over a [`crate::Keyspace`].

pub mod string;
pub mod zset;
