//! Sorted sets: members in the order of their scores, and of their bytes where scores are equal.
//!
//! *Whole*, up to 2 KiB: varint of the members, then for each its score, 8 bytes, varint of its length and its bytes, in
//! order. *Collection*: the payload is the handle of an ordered tree whose entries are score and member; besides, each member
//! has an entry `e` hash member with its score. Scores are the bits of an `f64`, big-endian. Orders compare them as numbers,
//! so that -0 is 0 there, and the bits are kept. No score is NaN.

mod change;
mod combine;
mod packed;
mod range;
mod score;
mod value;

pub use change::{AddOptions, Added, add, pop, remove, remove_range};
pub use combine::{
    Aggregate, Combination, Operand, combine, intersection_len, store, store_range, store_unordered,
};
pub use range::{
    Page, Select, Selection, count, each, encoding, len, random, range, rank, scan, score, scores,
    visit,
};
pub use score::{LexBound, LexRange, ScoreRange, Scored};
