//! The store from outside: one program, so that the world of the tests is linked once.

mod keyspace;
mod tree;
mod world;
mod zset;
