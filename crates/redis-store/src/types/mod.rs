//! The data types: functions over a [`crate::Keyspace`].

pub mod bitfield;
pub mod bitmap;
mod elements;
pub mod field_expiry;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod list;
pub mod set;
pub mod stream;
pub mod string;
pub mod zset;
