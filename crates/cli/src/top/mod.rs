//! top: what a store does, second by second.
//!
//! Everything comes from one text, Prometheus's, whether a server's `/metrics` or a directory gives it: [`source`] asks,
//! [`samples`] reads, [`page`] says it, and [`watch`] draws it again and again.

mod page;
mod samples;
mod source;
mod watch;

pub(crate) use watch::{Top, top};
