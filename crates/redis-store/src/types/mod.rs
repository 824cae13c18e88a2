//! The data types: functions over a [`crate::Keyspace`].

pub mod zset;
