//! The write path: writers join a group, its leader logs and applies it, then publishes.

mod commit;
mod publish;
mod rotate;
mod share;
mod stall;
mod supply;
