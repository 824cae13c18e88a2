//! Redis's keyspace over the engine: keys with their records, expiry, collections and their deletion.
//!
//! A [`Store`] owns the database. The server gathers the changes of many commands in an [`Overlay`] and writes them as one
//! batch; a command sees the database and the overlay through a [`Keyspace`]. The data types are functions over that
//! in [`types`]: they know nothing of connections, and all of Redis's rules about values are theirs.
//!
//! # On disk
//!
//! Five column families; all numbers in keys are big-endian, so that they sort. `docs/format/redis.md` has the bytes.
//!
//! | Family | Key | Value |
//! | --- | --- | --- |
//! | `keys` | db u16, slot u16, hash u32, user key | [`record`] |
//! | `sub` | slot u16, collection u48, kind u8, rest | an element, a node, a chunk |
//! | `live` | db u16, collection u48 | hash of the owning key u64, type |
//! | `ttl` | expire ms u48, db u16, user key | nothing |
//! | `default` | text names | format, seed, counters, map of databases, watermark of expiry |
//!
//! A small value stands whole in its record. A large collection has a number, the *cid*, and its elements are in `sub`
//! under it. It is deleted by deleting its `live` entry: a compaction filter then drops the elements without reading
//! anything else, a seek for each collection however large.

#![forbid(unsafe_code)]

mod ahead;
mod claims;
mod drawn;
mod events;
mod expire;
mod failure;
mod families;
mod filters;
mod keys;
mod keyspace;
mod libraries;
mod live;
pub mod number;
mod overlay;
pub mod record;
mod scan;
mod store;
mod touched;
pub mod tree;
pub mod types;
mod value;
mod walk;

pub use claims::Claims;
pub use events::{Event, EventClass};
pub use expire::ExpireStep;
pub use failure::{Failure, Outcome};
pub use families::StoreOptions;
pub use keys::{hash_tag, slot_of};
pub use keyspace::{Expired, Keyspace, LookUps, Old, sub_rest};
pub use overlay::{Mark, Overlay};
pub use record::{Collection, FieldTimes, Kind, NewRecord, Record};
pub use scan::ScanPage;
pub use store::{DATABASES, ReadFrom, Store};
pub use walk::{Direction, Walk};
