//! What C interfaces over Drumlin share.
//!
//! [`handle`] has what a C program holds, [`bytes`] the slices made of its pointers and the copies it frees, [`error`] turns
//! errors and panics into texts. No logic of a library is here.
//!
//! Threads: a handle may be used by as many threads at a time as the value in it; everything else is a function.

pub mod bytes;
pub mod error;
pub mod handle;
