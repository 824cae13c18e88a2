//! The only access to files, sockets, clocks, threads and randomness.
//!
//! All code above takes an [`Env`], so that a test can replace the real system by a file system that forgets,
//! a clock that jumps or a fixed seed.

mod append;
mod clock;
mod fault;
mod fault_rule;
mod file_system;
mod io_times;
pub mod machine;
mod mapping;
mod mem;
mod mem_crash;
mod mem_disk;
mod mem_file;
mod mem_image;
pub mod net;
mod paced;
mod posix;
mod posix_direct;
mod posix_file;
mod posix_lock;
mod posix_wal;
pub mod process;
mod rate;
mod read_queue;
#[cfg(test)]
mod read_queue_tests;
mod readahead;
#[cfg_attr(not(feature = "io-uring"), path = "ring_absent.rs")]
mod ring;
mod shared_file;
mod sim;
mod spawner;
mod syscalls;
mod system;
mod writeback;

use std::sync::Arc;

pub use append::append_to_file;
pub use clock::Clock;
pub use fault::{FaultFileSystem, Observer};
pub use fault_rule::{Fault, FaultRule, OpKind};
pub use file_system::{
    CreateOptions, FileInfo, FileKind, FileLock, FileSyncer, FileSystem, RandomAccessFile,
    WritableFile,
};
pub use io_times::{CallTimes, IoTimes};
pub use mem::StrictMemFileSystem;
pub use mem_image::CrashPolicy;
pub use paced::PacedFileSystem;
pub use posix::PosixFileSystem;
pub use rate::{IoPriority, RateLimit, RateLimiter};
pub use read_queue::ReadQueue;
pub use readahead::SequentialReader;
pub use sim::{IdleClock, ManualClock, QueueSpawner};
pub use spawner::{JoinHandle, Spawner};
pub use system::{SystemClock, ThreadSpawner};

/// Everything the engine gets from outside itself. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Env {
    /// Files.
    pub files: Arc<dyn FileSystem>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Threads.
    pub spawner: Arc<dyn Spawner>,
    /// Where all randomness starts (skip-list heights are the memtable's own).
    pub seed: u64,
}
