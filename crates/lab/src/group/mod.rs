//! Control groups of Linux: a process whose memory, page cache included, and whose reads from the disk
//! are limited.

mod device;
mod limited;
mod page_cache;
mod places;

pub use limited::{ControlGroup, GroupMemory, Limits};
