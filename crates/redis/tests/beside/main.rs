//! The server beside Debian's redis-server: the same commands, the same replies. One program, so that all is linked once.

mod bits;
mod dump;
mod elements;
mod geo;
mod hyperloglog;
mod list;
mod observe;
mod pair;
mod replica;
mod script;
mod sort;
mod stream;
mod strings;
mod zset;
