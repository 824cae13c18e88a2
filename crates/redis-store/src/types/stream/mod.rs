//! Streams: entries by id, and consumer groups over them. A stream is a collection from its first entry on, so its record has
//! the same size whatever it holds, and an entry that is added writes that record and itself.
//!
//! Redis keeps the entries in nodes of up to `stream-node-max-entries` and `stream-node-max-bytes`, and trims whole nodes where
//! it may trim roughly. The entries stand alone here, but where Redis would begin a node is noted, so that a rough trim leaves
//! the same entries as there.

mod group;
mod id;
mod node;
mod trim;
mod value;

pub use group::{Consumer, Group, Pending};
pub use id::StreamId;
pub use node::NodeLimits;
pub use trim::{Trim, TrimTo};
pub use value::{Entries, Entry, Stream};
