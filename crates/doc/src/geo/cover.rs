//! Cells that together have all of a shape, few of them: the largest that is not inside is cut again, as long as there are not too many.

use std::collections::VecDeque;

use crate::refusal::Outcome;

use super::beside::work;
use super::cell::{Cell, Grid, SLACK};
use super::plane::{Flat, Pair};
use super::sphere::{Arc, Geometry, Vector, arcs};

/// What cells may have a part of.
pub(super) trait Region {
    /// What of it is near a cell, so that its parts are not held against all of it.
    type Near;

    fn all(&self) -> Self::Near;

    /// What of it is near a part of a cell that `around` is near of, and whether all of the part is in it. `None` where the part has
    /// nothing of it. It may err to the side of having.
    fn near(&self, cell: Cell, around: &Self::Near) -> Option<(Self::Near, bool)>;

    /// How many edges that is.
    fn size(_near: &Self::Near) -> usize {
        0
    }
}

/// No more than `cells_max` cells, or as many as there are in `roots`; none is cut beyond a level.
///
/// # Errors
/// Of the watch.
pub(super) fn cover<R: Region>(
    region: &R,
    roots: impl Iterator<Item = Cell>,
    (cells_max, level_max): (usize, u32),
) -> Outcome<Vec<Cell>> {
    let all = region.all();
    let look = |cell: Cell, around: &R::Near| {
        let (near, is_inside) = region.near(cell, around)?;
        Some((cell, near, is_inside))
    };
    let mut queue: VecDeque<_> = roots.filter_map(|root| look(root, &all)).collect();
    let mut found = Vec::new();
    // Those cut the least come first.
    while let Some((cell, near, is_inside)) = queue.pop_front() {
        work(R::size(&near))?;
        if is_inside || cell.level >= level_max {
            found.push(cell);
            continue;
        }
        let parts = cell.children().into_iter();
        let parts: Vec<_> = parts.filter_map(|part| look(part, &near)).collect();
        let count = queue.len() + found.len() + parts.len();
        match parts.len() <= 1 || count <= cells_max {
            true => queue.extend(parts),
            false => found.push(cell),
        }
    }
    Ok(found)
}

/// What is no further from a point of the sphere than so many radians.
pub(super) struct Cap {
    pub(super) center: Vector,
    pub(super) radius: f64,
}

impl Cap {
    /// Whether what reaches so far around a point has anything of it, and all of that.
    fn has(&self, (center, reach): (Vector, f64)) -> Option<bool> {
        let away = center.angle(self.center);
        let is_out = away - reach > self.radius + SLACK;
        (!is_out).then_some(away + reach < self.radius)
    }
}

impl Region for Cap {
    type Near = ();

    fn all(&self) {}

    fn near(&self, cell: Cell, (): &()) -> Option<((), bool)> {
        self.has(cell.cap()).map(|is_inside| ((), is_inside))
    }
}

/// A geometry, by its edges; points are edges without length.
pub(super) struct Shape<'g> {
    of: &'g Geometry,
    edges: Vec<Arc>,
}

impl<'g> Shape<'g> {
    pub(super) fn new(of: &'g Geometry) -> Self {
        let points = of.points.iter().map(|point| (*point, *point));
        let lines = of.lines.iter().flat_map(|line| arcs(line));
        let polygons = of.polygons.iter().flat_map(|it| it.edges());
        Self {
            of,
            edges: points.chain(lines).chain(polygons).collect(),
        }
    }
}

impl Region for Shape<'_> {
    type Near = Vec<Arc>;

    fn all(&self) -> Vec<Arc> {
        self.edges.clone()
    }

    fn size(near: &Vec<Arc>) -> usize {
        near.len()
    }

    fn near(&self, cell: Cell, around: &Vec<Arc>) -> Option<(Vec<Arc>, bool)> {
        let (center, reach) = cell.cap();
        let within = reach.cos();
        let is_near = |edge: &&Arc| {
            let (a, b) = **edge;
            let chord = |a: Vector, b: Vector| a.plus(b, -1.0).length();
            // Most edges have an end in the cell, or are far from it: an arc is up to half of pi as long as its chord.
            center.dot(a) >= within
                || chord(center, a) <= reach + 1.6 * chord(a, b) + SLACK
                    && center.distance((a, b)) <= reach + SLACK
        };
        let near: Vec<Arc> = around.iter().filter(is_near).copied().collect();
        if !near.is_empty() {
            return Some((near, false));
        }
        let is_inside = self.of.polygons.iter().any(|it| it.has(center));
        is_inside.then_some((near, true))
    }
}

/// A shape on the plane, over a grid.
pub(super) struct Plane<'f> {
    pub(super) grid: Grid,
    pub(super) of: &'f Flat,
}

impl Region for Plane<'_> {
    type Near = Vec<(Pair, Pair)>;

    fn all(&self) -> Self::Near {
        match self.of {
            Flat::Polygon(points) => {
                let ends = points.iter().skip(1).chain(points.first());
                points.iter().copied().zip(ends.copied()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn near(&self, cell: Cell, around: &Self::Near) -> Option<(Self::Near, bool)> {
        let (low, high) = self.grid.corners(cell);
        match self.of {
            Flat::Box(from, to) => {
                let is_near = (0..2).all(|at| {
                    let axis = |pair: Pair| pair.get(at).copied().unwrap_or_default();
                    axis(low) <= axis(*to) && axis(*from) <= axis(high)
                });
                let is_inside = self.of.has(low) && self.of.has(high);
                is_near.then_some((Vec::new(), is_inside))
            }
            Flat::Circle(center, radius) => {
                let (nearest, furthest) = reaches((low, high), *center);
                let is_near = nearest <= radius * (1.0 + SLACK);
                is_near.then_some((Vec::new(), furthest < *radius))
            }
            Flat::Polygon(_) => {
                let is_near = |edge: &&(Pair, Pair)| crosses((low, high), **edge);
                let near: Vec<_> = around.iter().filter(is_near).copied().collect();
                if !near.is_empty() {
                    return Some((near, false));
                }
                let middle = [(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
                self.of.has(middle).then_some((near, true))
            }
        }
    }
}

/// How far a square is from a point at the nearest and at the furthest.
pub(super) fn reaches((low, high): (Pair, Pair), [x, y]: Pair) -> (f64, f64) {
    let near = |at: f64, low: f64, high: f64| (low - at).max(at - high).max(0.0);
    let far = |at: f64, low: f64, high: f64| (at - low).abs().max((high - at).abs());
    (
        near(x, low[0], high[0]).hypot(near(y, low[1], high[1])),
        far(x, low[0], high[0]).hypot(far(y, low[1], high[1])),
    )
}

/// Whether an edge may have a part in a square: unless all of it lies beside one of the sides, or the square beside the edge.
fn crosses((low, high): (Pair, Pair), (a, b): (Pair, Pair)) -> bool {
    let beside = |a: f64, b: f64, low: f64, high: f64| a.max(b) < low || a.min(b) > high;
    if beside(a[0], b[0], low[0], high[0]) || beside(a[1], b[1], low[1], high[1]) {
        return false;
    }
    let side = |x: f64, y: f64| (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]);
    let sides = [
        side(low[0], low[1]),
        side(low[0], high[1]),
        side(high[0], low[1]),
        side(high[0], high[1]),
    ];
    !(sides.iter().all(|it| *it > 0.0) || sides.iter().all(|it| *it < 0.0))
}

/// A cap on the sphere over a grid of degrees.
pub(super) struct GridCap {
    pub(super) grid: Grid,
    pub(super) cap: Cap,
}

impl Region for GridCap {
    type Near = ();

    fn all(&self) {}

    fn near(&self, cell: Cell, (): &()) -> Option<((), bool)> {
        let is_inside = self.cap.has(cap_of(self.grid, cell)?)?;
        Some(((), is_inside))
    }
}

/// A point of the sphere, and how far a square of degrees reaches from it. `None` where it has no places of the sphere.
pub(super) fn cap_of(grid: Grid, cell: Cell) -> Option<(Vector, f64)> {
    let (low, high) = grid.corners(cell);
    let low = [low[0].max(-180.0), low[1].max(-90.0)];
    let high = [high[0].min(180.0), high[1].min(90.0)];
    if low[0] > high[0] || low[1] > high[1] {
        return None;
    }
    let center = Vector::of([(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0])?;
    // The corners of wider ones are not what is furthest from the middle.
    if high[0] - low[0] > 180.0 {
        return Some((center, std::f64::consts::PI));
    }
    let corners = [low, high, [low[0], high[1]], [high[0], low[1]]];
    let corners = corners.iter().filter_map(|corner| Vector::of(*corner));
    let reach = corners.map(|corner| corner.angle(center));
    Some((center, reach.fold(0.0, f64::max) + SLACK))
}
