//! HyperLogLogs: strings that estimate how many different elements were added, with a standard error of 0.81 %.
//!
//! The bytes are Redis's, so that GET and SET move them between servers: `HYLL`, the form (0 dense, 1 sparse), three bytes
//! of nothing, the cardinality as it was last worked out (8 bytes, the lowest first; bit 63 says that it is out of date), and
//! 16,384 registers of 6 bits. An element is hashed to 64 bits: 14 choose its register, and the register keeps the longest
//! run of zeros that the others began with, and one more. *Dense*, registers lie bit by bit, the lowest first. *Sparse*, runs
//! of equal ones are told in bytes: `00` and length - 1, of zeros; `01` and length - 1 in 14 bits, of zeros; `1`, value - 1 in
//! 5 bits, length - 1 in 2. A value over 32 and a string over `hll-sparse-max-bytes` make it dense for good.
//!
//! Clients may write any bytes, so all of it is checked. The estimate is Otmar Ertl's, "New cardinality estimation algorithms
//! for HyperLogLog sketches", arXiv:1702.01284.

mod dense;
mod estimate;
mod self_test;
mod sketch;
mod sparse;
mod value;

pub use self_test::self_test;
pub use value::{add, count, decode, encoding, make_dense, merge, registers};
