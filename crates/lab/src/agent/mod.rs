//! The side with the engine in it: a process that opens one store and carries out requests from
//! standard input.

mod serve;
mod source;
mod step;
mod work;

pub use serve::serve;
