//! The store for async Rust, on any runtime.
//!
//! [`AsyncDb`] is laid over a [`drumlin::Db`]. A read tries memory at its first poll: what is there is the answer, without a
//! task switch or an allocation. Else it goes to the readers, a thread for each core. A reader takes a share of all reads that wait and makes
//! them one batch, so that the disk works on many at once. A write that is not to be synced is done at its first poll too, unless it would have to
//! wait; others go to a thread that writes what waits as one batch, with one sync.
//!
//! Futures do nothing before they are polled. One that is dropped is forgotten: its read is not begun, or its answer thrown
//! away; its write is done or not. Wakers are called from the threads.
//!
//! ```
//! # fn block_on<F: std::future::Future>(future: F) -> F::Output {
//! #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! #     let mut future = std::pin::pin!(future);
//! #     loop {
//! #         if let std::task::Poll::Ready(done) = future.as_mut().poll(&mut context) {
//! #             return done;
//! #         }
//! #         std::thread::yield_now();
//! #     }
//! # }
//! # fn main() -> drumlin::Result<()> {
//! # let dir = std::env::temp_dir().join(format!("drumlin-async-doc-{}", std::process::id()));
//! use drumlin::{Db, Options};
//! use drumlin_async::AsyncDb;
//!
//! let db = AsyncDb::over(Db::open(&dir, Options::default())?)?;
//! # block_on(async {
//! let fruit = db.default_family();
//! fruit.put("apple", "red").await?;
//! assert_eq!(fruit.get("apple").await?.as_deref(), Some(&b"red"[..]));
//!
//! let mut walk = fruit.walk("a".."b");
//! while let Some((key, value)) = walk.next().await? {
//!     assert_eq!((&key[..], &value[..]), (&b"apple"[..], &b"red"[..]));
//! }
//! db.close().await?;
//! # Ok::<_, drumlin::Error>(())
//! # })?;
//! # std::fs::remove_dir_all(dir).ok();
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! db -> family -> walk -> threads -> slot
//! ```

mod db;
mod family;
mod slot;
mod threads;
mod walk;

pub use db::{AsyncDb, AsyncOptions, Close, Run, Write};
pub use family::{AsyncFamily, Get, GetMany};
pub use walk::Walk;
