//! The store from outside: one program, so that the world of the tests is linked once.

mod field_expiry;
mod hash;
mod keyspace;
mod list;
mod set;
mod stream;
mod tree;
mod world;
mod zset;
