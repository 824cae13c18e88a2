//! Backups in the layout of RocksDB's backup engine; `docs/format/backup.md` has the bytes.
//!
//! `backups` is the handle; `catalog` reads what a directory holds, `create`, `check`, `restore` and `remove` work on it.
//! A backup exists from the moment its meta file has its name, and until that name is gone: everything it refers to is
//! on disk before the first, and removed after the second. So a process may be killed anywhere.

pub(crate) mod backups;
mod catalog;
pub(crate) mod check;
pub(crate) mod create;
mod layout;
pub(crate) mod meta;
mod plan;
pub(crate) mod remove;
pub(crate) mod restore;
pub(crate) mod transfer;
