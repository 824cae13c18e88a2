//! The data types: functions over a [`crate::Keyspace`].
