//! Members of a sorted set within a shape.

use super::area::Shape;
use super::cell::{Point, point_of};
use crate::failure::Outcome;
use crate::keyspace::Keyspace;
use crate::types::zset;

/// A member within a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The member.
    pub member: Vec<u8>,
    /// Its score.
    pub score: f64,
    /// Its place.
    pub point: Point,
    /// How far it is from the centre.
    pub distance_m: f64,
}

/// The members within `shape`, cell by cell and by score in a cell. The search ends at `most`. It costs a walk over the
/// members in up to nine cells, not over all.
///
/// # Errors
/// `WrongType`; the keyspace's.
pub fn search(
    keyspace: &Keyspace<'_>,
    key: &[u8],
    shape: &Shape,
    most: usize,
) -> Outcome<Vec<Found>> {
    let mut found = Vec::new();
    let cells = shape.cells();
    let ranges = cells.iter().map(|cell| cell.scores());
    zset::visit(keyspace, key, ranges, |score, member| {
        let point = point_of(score);
        if let Some(distance_m) = shape.distance_inside_m(point) {
            found.push(Found {
                member: member.to_vec(),
                score,
                point,
                distance_m,
            });
        }
        found.len() < most
    })?;
    Ok(found)
}
