//! The server beside Debian's redis-server: the same commands, the same replies. One program, so that all is linked once.

mod acl;
mod aof;
mod bits;
mod catalog;
mod clients;
mod dump;
mod dump_stream;
mod elements;
mod failover;
mod field_expiry;
mod geo;
mod hyperloglog;
mod list;
mod migrate;
mod observe;
mod pair;
mod primary;
mod replica;
mod script;
mod sort;
mod stream;
mod strings;
mod suite;
mod together;
mod zset;
