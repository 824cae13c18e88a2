//! Places in sorted sets: a place is a score, so all of it is done by ranges of scores.
//!
//! The score is a *cell*: both coordinates as fractions of their ranges, 26 bits each, woven bit by bit, the longitude
//! first. The map is that of Mercator: longitudes to ±180, latitudes to ±85.05112878. A cell of fewer bits holds all cells
//! that begin with it, so it is a range of scores. A search walks the cell of its centre and the up to eight around it, of a
//! size that they hold all that is near enough. Numbers are worked out as Redis does, step by step, so that the same
//! members are found and the same digits told.

mod area;
mod cell;
mod search;

pub use area::{Extent, Shape, distance_m};
pub use cell::{LATITUDE_MAX, LONGITUDE_MAX, Point, geohash, point_of, score_of};
pub use search::{Found, search};
