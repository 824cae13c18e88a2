//! The walk a user takes: user keys ascending or descending as of one sequence number, each with
//! its value, without the versions, tombstones and operands below.
//!
//! The cursor under it yields internal keys: newest version first within a user key. So forward,
//! the first visible entry of a key decides and the rest is skipped; backward, the versions come
//! oldest first, and all visible ones must be seen before the last of them decides.
//!
//! Steps kept cheap: an entry with sequence number 0 is the only version of its key (compaction
//! gives 0 only then), so the key need not be remembered to skip the others; more than
//! `HIDDEN_STEPS_MAX` hidden entries in a row are left by a seek; keys under a range tombstone are left
//! by a seek past its end in all sources older than the tombstone.
//!
//! `dead_span` goes past what earlier walks found dead. `state` is the walk, `forward` and `backward` find the next key that shows, `moves` is the interface.

mod backward;
mod dead_span;
mod forward;
mod moves;
mod parts;
mod state;

pub(super) use parts::{check_deletion, is_same, misplaced, set_target};
pub(crate) use state::{FamilyReads, IteratorCounters, IteratorOptions};
pub(crate) use state::{RefreshSource, Walk, WalkPool};
