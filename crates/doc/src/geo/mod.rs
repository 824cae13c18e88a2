//! Places: on the plane as pairs of numbers, and on the sphere as GeoJSON has them.

mod plane;
mod query;
mod shape;
mod sphere;

pub use query::GeoQuery;
pub(crate) use query::check_near;
