//! Data sets to load and read back: made on the spot from a seed, or taken from the machine.
//!
//! | name | records | source |
//! | --- | --- | --- |
//! | `lineitem` | TPC-H rows of about 615 bytes | generated; text pool scaled to the data, or fresh text |
//! | `english` | English prose of about 1 KB | documentation packages unpacked in a directory |
//! | `packages` | Debian's package index, a stanza a record | `apt-cache dumpavail` |
//! | `contents` | path to package, short records | `/var/lib/dpkg/info/*.list` |
//! | `reviews` | product reviews of eight fields, about 1.1 KB | a Markov chain over English text |
//! | `random` | bytes that do not compress | generated |
//!
//! A [`DataSet`] is numbered: record `i` has the same key and value whenever it is asked for, all keys
//! differ, and the same spec gives the same [`Totals`], checksum included. A set taken from the
//! machine is the same as long as its packages are.
//!
//! `set` is the interface, `spec` makes a set by name, `arena` and `index` hold records in memory. The sets are
//! `rows`, `english` (with `markup`, which strips pages, and `novelty`, which drops repeats), `packages`,
//! `reviews` (with `markov`) and `random`. Tests are beside each: the generators are pure functions of a seed.

mod arena;
mod english;
mod index;
mod markov;
mod markup;
mod novelty;
mod packages;
mod random;
mod reviews;
mod rows;
mod set;
mod spec;

pub use arena::Arena;
pub use index::RecordIndex;
pub use markov::Chain;
pub use reviews::Reviews;
pub use rows::{FULL_SIZE_BYTES, LineItemSet, scaled_pool_bytes};
pub use set::{DataSet, Totals, add_record, totals};
pub use spec::{DataSpec, Kind};
pub use {
    english::english,
    packages::{contents, packages},
    random::RandomSet,
};
