//! The write path: writers join a group, its leader logs and applies it, then publishes.

mod commit;
mod rotate;
mod share;
mod stall;
