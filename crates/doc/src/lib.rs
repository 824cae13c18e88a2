//! Documents without I/O: BSON as bytes that are walked and never deserialised whole.
//!
//! - [`validate`] looks at foreign bytes once; after that a [`Document`] is walked by lengths alone.
//! - [`compare`] is MongoDB's order of values. Everything else follows it: [`keystring`] writes values so that their bytes
//!   sort in that order.
//! - [`Filter`], [`Update`] and [`Projection`] are compiled from documents and run over documents.
//! - [`Refusal`] is an error that a client gets, with one of the numbers of [`Code`].
//!
//! Nothing here blocks, and any thread may use any of it. The depth of a document is at most [`DEPTH_MAX`], so what follows
//! its nesting may recurse.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

mod arithmetic;
mod build;
mod code;
mod compare;
mod decimal;
mod decimal_math;
mod expression;
mod filter;
mod geo;
mod index;
pub mod keystring;
mod matching;
mod number;
mod path;
mod project;
mod raw;
mod refusal;
mod regex;
mod schema;
mod show;
mod sort;
mod unmet;
mod update;
mod validate;
mod watch;

pub use arithmetic::{add, mean};
pub use build::Builder;
pub use code::Code;
pub use compare::{class, compare, equal};
pub use expression::{Deviation, Expression, Scope, Variables, merged};
pub use filter::{Bits, Filter, Predicate, Test};
pub use geo::{GeoQuery, Grid, Near, PlaceCell, PlaceKeys, PlaceKind, PlaceRange};
pub use index::{IndexFields, IndexKeys, check_keys};
pub use number::{Number, coerced, to_f64};
pub use path::{Path, candidates, value_at};
pub use project::{Projection, ProjectionOf};
pub use raw::{AsValue, Document, Element, Kind, OwnedValue, Value};
pub use refusal::{Outcome, Refusal};
pub use regex::Pattern;
pub use schema::Schema;
pub use show::show;
pub use sort::Sort;
pub use unmet::unmet;
pub use update::{Applied, ArrayFilter, Moment, Update};
pub use validate::{DEPTH_MAX, validate};
pub use watch::{step, watched};

/// The most bytes that a stored document may have.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;
