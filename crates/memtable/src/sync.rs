//! Atomicss, locks and yields: the standard library's, or loom's under `cfg(loom)`.
//!
//! Everything in this crate that races goes through here, so that the loom model explores the very
//! code that ships.

#[cfg(loom)]
pub(crate) use loom::{
    sync::Mutex,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::Mutex,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
};
