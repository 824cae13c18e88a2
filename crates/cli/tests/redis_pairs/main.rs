//! Pairs of processes of `drumlin redis`, one the replica of the other. One program, so that all is linked once.

mod kills;
mod node;
mod sentinel;
