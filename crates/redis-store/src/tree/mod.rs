//! The counted tree: a sequence under a collection in which a place is found by its rank, and by an order if it has one.
//!
//! A B+-tree whose nodes are entries of the `sub` family, each inner entry with the count of what is under it: a rank is a
//! sum along one path. Lists address by rank alone. Sorted sets keep their entries in an order and find them with a
//! question that every entry answers by yes before some place and by no behind it.
//!
//! | key after the collection's prefix | value |
//! | --- | --- |
//! | `n` node u32 | a leaf or an inner node, see `node` |
//! | `l` number u64 | an entry of over 512 bytes; its leaf has the number. So a node stays about a page |
//!
//! The nodes' ids and the numbers of long entries are given out once in a collection's life. The handle, [`Tree`], stands in
//! the collection's record. Mostly one leaf and the counts above it change. A node that is in memory has a few changes
//! written as such, see `splice`, before it is written whole again; one that was just read is written whole. Nodes are at most
//! 2 KiB, and the leaves of sorted sets 1 KiB.

mod cut;
mod handle;
mod inner;
mod leaf;
mod node;
mod nodes;
mod page;
mod put;
mod splice;
mod walk;
mod write;

pub use handle::{Separator, Shape, Tree};
pub use node::Limit;
pub(crate) use nodes::{NodeName, Nodes, Written};
pub(crate) use splice::Splices;
pub use walk::TreeWalk;
