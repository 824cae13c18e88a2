//! YCSB: its workloads, its keys, its distributions and its report, over any store.
//!
//! The definitions are those of the Yahoo! Cloud Serving Benchmark (Cooper and others, SoCC 2010) as
//! its core workload has them today: property files and `-p name=value`, keys `user` and the FNV hash
//! of a number, ten fields of 100 bytes, request distributions uniform, zipfian (scrambled), latest,
//! hotspot, exponential and sequential, a target rate with intended latencies. Runs can be compared
//! with those of the original: the report has its lines.
//!
//! A [`Binding`] is the system under test, a [`Client`] one thread's connection to it.
//! [`StoreBinding`] is an embedded store of `drumlin-bench`; a server is reached by another
//! binding.

#![forbid(unsafe_code)]

pub mod distributions;
pub mod keys;
pub mod measurements;

mod binding;
mod choosers;
mod core;
mod fields;
mod file;
mod properties;
mod run;
mod store_binding;
mod values;
mod workload;

pub use binding::{Binding, Client};
pub use fields::Fields;
pub use properties::Properties;
pub use run::{Phase, Run, Status};
pub use store_binding::StoreBinding;
