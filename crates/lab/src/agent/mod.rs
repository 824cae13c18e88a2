//! The side with the engine in it: a process that opens one store and does what it is asked on
//! standard input.

mod serve;
mod source;
mod step;
mod work;

pub use serve::serve;
