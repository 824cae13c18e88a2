//! Collections of documents over the engine. No network.
//!
//! A [`Store`] owns the database. A collection is a range of keys, its documents lie under their `_id`, and a write of one
//! document is one batch: the document, the differences of its index entries, and the counts. `docs/format/mongo.md` has the
//! bytes.
//!
//! ```text
//! insert -> capped -> changes, place; modify -> changes; convert -> ddl
//! ddl, writes -> store -> locks, catalog -> index -> geo, form, layout
//! planner -> price -> reads, plan
//! walk -> nearby -> reads, plan
//! ```
//!
//! # Threads
//! Any number of threads may read and write. A writer holds the locks of the keys it changes, and a share of its collection; what
//! changes the catalog has the collection alone. Readers lock nothing: they see the catalog and the data of one moment.

#![forbid(unsafe_code)]

mod bounds;
mod build;
mod capped;
mod catalog;
mod changes;
mod check;
mod convert;
mod ddl;
mod expire;
mod failure;
mod families;
mod form;
mod geo;
mod implied;
mod index;
mod insert;
mod layout;
mod locks;
mod modify;
mod nearby;
mod options;
mod pace;
mod place;
mod plan;
mod planner;
mod price;
mod reads;
mod sizes;
mod store;
mod union;
mod validator;
mod views;
mod walk;
mod writes;

pub use build::NewIndex;
pub use catalog::{Catalog, Collection, Name};
pub use failure::{Failure, Outcome};
pub use geo::PlaceOptions;
pub use index::{Index, Partial};
pub use insert::Inserted;
pub use modify::{Found, Modified, Step};
pub use options::{Bounds, CollectionOptions, View};
pub use pace::{Manner, Pace};
pub use plan::{Access, Plan, Range};
pub use planner::{Hint, plan, plan_with, plans};
pub use price::Priced;
pub use reads::Reads;
pub use sizes::StoredBytes;
pub use store::{Store, StoreOptions};
pub use validator::{Validation, ValidationAction, ValidationLevel, Validator};
pub use views::Resolved;
pub use walk::Walk;
