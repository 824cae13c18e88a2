//! Places: on the plane as pairs of numbers, and on the sphere as GeoJSON has them; and the keys of indexes of them.
//!
//! What an index finds are candidates: whether a place is what a query asks for is always told by its geometry.

mod beside;
mod cell;
mod cover;
mod near;
mod place;
mod plane;
mod query;
mod shape;
mod sphere;

pub use cell::Grid;
pub use near::Near;
pub use place::{PlaceCell, PlaceKeys, PlaceKind, PlaceRange};
pub use query::GeoQuery;
