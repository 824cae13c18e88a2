//! Shapes on the unit sphere: points are vectors, edges are arcs of great circles.

use crate::refusal::Outcome;

use super::beside::{Bounds, Pairs, any_two, work};

/// A vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Vector(pub(super) [f64; 3]);

/// Nearer than this, in radians, is the same place: a few micrometres.
const NEAR: f64 = 1e-12;

/// How often each edge is looked at to know whether a point is in a ring.
const LOOKS_OF_POINT: usize = 2;

/// Edges of a ring that give places from which a way to a point may be clear.
const WAYS_MAX: usize = 64;

impl Vector {
    /// Of degrees to the east and to the north; `None` where there are no such.
    pub(super) fn of([east, north]: [f64; 2]) -> Option<Self> {
        let is_there = (-180.0..=180.0).contains(&east) && (-90.0..=90.0).contains(&north);
        let (east, north) = (east.to_radians(), north.to_radians());
        // Keys of indexes come of it: the system's sines may change in their last bit.
        let around = libm::cos(north);
        let across = [around * libm::cos(east), around * libm::sin(east)];
        is_there.then(|| Self([across[0], across[1], libm::sin(north)]))
    }

    pub(super) fn dot(self, other: Self) -> f64 {
        let pairs = self.0.iter().zip(other.0);
        pairs.map(|(a, b)| a * b).sum()
    }

    fn cross(self, other: Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Self([b * z - c * y, c * x - a * z, a * y - b * x])
    }

    pub(super) fn plus(self, other: Self, times: f64) -> Self {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Self([a + times * x, b + times * y, c + times * z])
    }

    pub(super) fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    pub(super) fn unit(self) -> Self {
        let length = self.length();
        Self(self.0.map(|part| part / length))
    }

    /// In radians.
    pub(super) fn angle(self, other: Self) -> f64 {
        libm::atan2(self.cross(other).length(), self.dot(other))
    }

    pub(super) fn is_at(self, other: Self) -> bool {
        // So near the chord is as long as the arc.
        let between = self.plus(other, -1.0);
        between.dot(between) < NEAR * NEAR
    }

    /// How far an arc is, in radians.
    pub(super) fn distance(self, (a, b): Arc) -> f64 {
        let ends = self.angle(a).min(self.angle(b));
        let normal = a.cross(b);
        if normal.length() < NEAR {
            return ends;
        }
        let is_beside = normal.cross(a).dot(self) > 0.0 && b.cross(normal).dot(self) > 0.0;
        if !is_beside {
            return ends;
        }
        let nearest = self.plus(normal, -self.dot(normal) / normal.dot(normal));
        // Far from the arc there is a place of it that is as far as any other.
        match nearest.length() > NEAR {
            true => self.angle(nearest.unit()),
            false => ends,
        }
    }

    /// Whether it lies on the arc.
    pub(super) fn is_on(self, (a, b): Arc) -> bool {
        if self.is_at(a) || self.is_at(b) {
            return true;
        }
        let normal = a.cross(b);
        let (size, away) = (normal.dot(normal), normal.dot(self));
        // Most places are away from most arcs.
        if size < NEAR * NEAR || away * away >= NEAR * NEAR * size {
            return false;
        }
        normal.cross(a).dot(self) > 0.0 && b.cross(normal).dot(self) > 0.0
    }
}

/// An edge by its ends.
pub(super) type Arc = (Vector, Vector);

/// Whether two arcs cross within both of them.
fn cross(first: Arc, second: Arc) -> bool {
    let ((a, b), (c, d)) = (first, second);
    let n = a.cross(b);
    // Most arcs are on one side of most circles.
    if n.dot(c) * n.dot(d) > 0.0 {
        return false;
    }
    let m = c.cross(d);
    if n.length() < NEAR || m.length() < NEAR {
        return false;
    }
    let (n, m) = (n.unit(), m.unit());
    // How far each end is from the other circle.
    let sides = [n.dot(c), n.dot(d), m.dot(a), m.dot(b)];
    if sides.iter().any(|side| side.abs() < NEAR) {
        return false;
    }
    let [c_side, d_side, a_side, b_side] = sides.map(|side| side > 0.0);
    // The ends of each lie on both sides of the other, and not on the other half of the sphere.
    c_side != d_side && a_side != b_side && a_side == d_side
}

/// Whether they meet, at their ends too.
pub(super) fn meet(first: Arc, second: Arc) -> bool {
    cross(first, second)
        || first.0.is_on(second)
        || first.1.is_on(second)
        || second.0.is_on(first)
        || second.1.is_on(first)
}

/// A place a little to the left of an edge, behind that share of it.
fn inside((a, b): Arc, share: f64) -> Vector {
    let on_edge = a.plus(b.plus(a, -1.0), share).unit();
    on_edge.plus(a.cross(b).unit(), 1e-9).unit()
}

pub(super) fn arcs(points: &[Vector]) -> impl Iterator<Item = Arc> + '_ {
    points.iter().copied().zip(points.iter().copied().skip(1))
}

fn bounds((a, b): Arc) -> Bounds {
    let bulge = 1.0 - a.plus(b, 1.0).length() / 2.0 + NEAR;
    let ([ax, ay, az], [bx, by, bz]) = (a.0, b.0);
    [(ax, bx), (ay, by), (az, bz)].map(|(a, b)| (a.min(b) - bulge, a.max(b) + bulge))
}

/// Whether two edges of a ring have more in common than the corner of neighbours.
fn is_crossed(edges: &[Arc], i: usize, j: usize) -> bool {
    let (Some(first), Some(second)) = (edges.get(i), edges.get(j)) else {
        return false;
    };
    let is_next = j == i + 1;
    let is_last = i == 0 && j == edges.len() - 1;
    match (is_next, is_last) {
        (true, false) => first.0.is_on(*second) || second.1.is_on(*first),
        (false, true) => first.1.is_on(*second) || second.0.is_on(*first),
        (true, true) => false,
        (false, false) => meet(*first, *second),
    }
}

/// A closed line without crossings. What is left of it is inside.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ring {
    /// The first one again at the end.
    pub(super) points: Vec<Vector>,
}

impl Ring {
    /// Requires: closed. `None` where it crosses itself, has less than three corners, or too many edges beside each other.
    pub(super) fn new(mut points: Vec<Vector>, pairs: &mut Pairs) -> Option<Self> {
        points.dedup_by(|a, b| a.is_at(*b));
        let edges: Vec<Arc> = arcs(&points).collect();
        if edges.len() < 3 {
            return None;
        }
        let is_crossed = |i, j| is_crossed(&edges, i, j);
        let is_sound = !any_two(arcs(&points).map(bounds), pairs, |_, _| true, is_crossed)?;
        is_sound.then_some(Self { points })
    }

    /// With the smaller side inside.
    pub(super) fn of_smaller_side(mut self) -> Self {
        if self.area() > std::f64::consts::TAU {
            self.points.reverse();
        }
        self
    }

    /// The area inside: that of the triangles at the first corner, with their signs.
    fn area(&self) -> f64 {
        let Some(first) = self.points.first() else {
            return 0.0;
        };
        let triangle = |(b, c): Arc| {
            let volume = first.dot(b.cross(c));
            2.0 * volume.atan2(1.0 + first.dot(b) + b.dot(c) + c.dot(*first))
        };
        let area: f64 = arcs(&self.points).map(triangle).sum();
        let whole = 2.0 * std::f64::consts::TAU;
        area.rem_euclid(whole)
    }

    pub(super) fn is_on_edge(&self, point: Vector) -> bool {
        arcs(&self.points).any(|edge| point.is_on(edge))
    }

    /// Whether a point is inside, on an edge too: it is if an arc from a place that is crosses the edges an even number of times.
    pub(super) fn has(&self, point: Vector) -> bool {
        if self.is_on_edge(point) {
            return true;
        }
        // An arc through a corner counts wrongly; then another edge gives the place.
        let apart = self.points.len() / WAYS_MAX + 1;
        for (a, b) in arcs(&self.points).step_by(apart) {
            for share in [0.5, 0.37, 0.61] {
                let place = inside((a, b), share);
                let way = (place, point);
                let is_clear = !self.points.iter().any(|corner| corner.is_on(way));
                let is_short = place.dot(point) > -1.0 + NEAR;
                if is_clear && is_short {
                    let crossings = arcs(&self.points).filter(|edge| cross(way, *edge));
                    return crossings.count().is_multiple_of(2);
                }
            }
        }
        false
    }
}

/// A ring and its holes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Polygon {
    pub(super) outer: Ring,
    pub(super) holes: Vec<Ring>,
    /// Whether it keeps to the winding, and may be more than half of the sphere.
    pub(super) is_strict: bool,
}

impl Polygon {
    /// `None` where a hole is not in the outer ring, or has an edge on one of its edges, or there is too much to compare.
    pub(super) fn new(outer: Ring, holes: Vec<Ring>, pairs: &mut Pairs) -> Option<Self> {
        let polygon = Self {
            outer,
            holes,
            is_strict: false,
        };
        if polygon.holes.is_empty() {
            return Some(polygon);
        }
        let rings = polygon.rings().enumerate();
        let edges = rings.flat_map(|(at, ring)| arcs(&ring.points).map(move |edge| (edge, at)));
        let (edges, ring_of): (Vec<Arc>, Vec<usize>) = edges.unzip();
        let ring = |edge: usize| ring_of.get(edge).copied().unwrap_or_default();
        // The edges of the outer ring come first.
        let held = |i, j| ring(i) == 0 && ring(j) != 0;
        let mut is_met = vec![false; polygon.holes.len() + 1];
        let is_beside = |i: usize, j: usize| {
            let (Some(outer), Some(inner)) = (edges.get(i), edges.get(j)) else {
                return false;
            };
            if meet(*outer, *inner)
                && let Some(is_met) = is_met.get_mut(ring(j))
            {
                *is_met = true;
            }
            inner.0.is_on(*outer) && inner.1.is_on(*outer)
        };
        if any_two(polygon.edges().map(bounds), pairs, held, is_beside)? {
            return None;
        }
        let outer = &polygon.outer;
        for (hole, is_met) in polygon.holes.iter().zip(is_met.into_iter().skip(1)) {
            // All of a hole that the outer ring does not meet is on one side of it.
            let looked_at = if is_met { hole.points.len() } else { 1 };
            for point in hole.points.iter().take(looked_at) {
                pairs.take(outer.points.len() * LOOKS_OF_POINT)?;
                if !outer.has(*point) {
                    return None;
                }
            }
        }
        Some(polygon)
    }

    pub(super) fn has(&self, point: Vector) -> bool {
        let is_in_hole = |hole: &Ring| hole.has(point) && !hole.is_on_edge(point);
        self.outer.has(point) && !self.holes.iter().any(is_in_hole)
    }

    fn rings(&self) -> impl Iterator<Item = &Ring> {
        std::iter::once(&self.outer).chain(&self.holes)
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = Arc> + '_ {
        self.rings().flat_map(|ring| arcs(&ring.points))
    }

    fn corners(&self) -> impl Iterator<Item = Vector> + '_ {
        self.rings().flat_map(|ring| ring.points.iter().copied())
    }

    /// How many edges there are.
    fn size(&self) -> usize {
        self.rings().map(|ring| ring.points.len()).sum()
    }

    fn has_line(&self, line: &[Vector]) -> Outcome<bool> {
        let size = self.size();
        let is_uncut = |arc: Arc| Ok(!self.edges().any(|edge| cross(arc, edge)));
        Ok(all(line, size, |point| Ok(self.has(*point)))? && all(arcs(line), size, is_uncut)?)
    }

    fn has_polygon(&self, other: &Self) -> Outcome<bool> {
        // A hole of this one must not lie in the other.
        let corners = self.holes.iter().filter_map(|hole| hole.points.first());
        let is_free = |corner: &Vector| Ok(!other.has(*corner) || other.outer.is_on_edge(*corner));
        Ok(all(other.rings(), 0, |ring| self.has_line(&ring.points))?
            && all(corners, other.size(), is_free)?)
    }

    fn meets_line(&self, line: &[Vector]) -> Outcome<bool> {
        let size = self.size();
        let is_met = |arc: Arc| Ok(self.edges().any(|edge| meet(arc, edge)));
        Ok(any(line, size, |point| Ok(self.has(*point)))? || any(arcs(line), size, is_met)?)
    }

    /// Whether they have more in common than what bounds them.
    fn meets(&self, other: &Self) -> Outcome<bool> {
        let overlaps = |one: &Self, other: &Self| {
            let places = arcs(&one.outer.points).map(|edge| inside(edge, 0.5));
            any(places, other.size(), |place| {
                Ok(other.has(place) && !other.outer.is_on_edge(place))
            })
        };
        let crosses = |arc: Arc| Ok(other.edges().any(|edge| cross(arc, edge)));
        Ok(overlaps(self, other)?
            || overlaps(other, self)?
            || any(self.edges(), other.size(), crosses)?)
    }
}

/// Whether it holds for any of the items, each of which is held against so many edges.
fn any<T>(
    items: impl IntoIterator<Item = T>,
    edges: usize,
    mut holds: impl FnMut(T) -> Outcome<bool>,
) -> Outcome<bool> {
    for item in items {
        work(edges)?;
        if holds(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether it holds for all of the items.
fn all<T>(
    items: impl IntoIterator<Item = T>,
    edges: usize,
    mut holds: impl FnMut(T) -> Outcome<bool>,
) -> Outcome<bool> {
    any(items, edges, |item| Ok(!holds(item)?)).map(|it| !it)
}

/// Points, lines and polygons together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Geometry {
    pub(super) points: Vec<Vector>,
    pub(super) lines: Vec<Vec<Vector>>,
    pub(super) polygons: Vec<Polygon>,
}

impl Geometry {
    /// Whether all of it is in one of the polygons.
    pub(super) fn is_within(&self, polygons: &[Polygon]) -> Outcome<bool> {
        let point = |point: &Vector| any(polygons, 0, |it| Ok(it.has(*point)));
        let line = |line: &Vec<Vector>| any(polygons, 0, |it| it.has_line(line));
        let polygon = |polygon: &Polygon| any(polygons, 0, |it| it.has_polygon(polygon));
        let size = polygons.iter().map(Polygon::size).sum();
        Ok(all(&self.points, size, point)?
            && all(&self.lines, 0, line)?
            && all(&self.polygons, 0, polygon)?)
    }

    /// Whether all of it is no further from `center`. Arcs between two places of a cap that is no larger than half the sphere stay in it.
    pub(super) fn is_near(&self, center: Vector, radius: f64) -> bool {
        let lines = self.lines.iter().flatten();
        let corners = self.polygons.iter().flat_map(Polygon::corners);
        let mut all = self
            .points
            .iter()
            .copied()
            .chain(lines.copied())
            .chain(corners);
        all.all(|point| point.angle(center) <= radius + NEAR)
    }

    /// How far it is at the nearest, in radians.
    pub(super) fn distance(&self, from: Vector) -> f64 {
        if self.polygons.iter().any(|it| it.has(from)) {
            return 0.0;
        }
        let points = self.points.iter().map(|it| from.angle(*it));
        let lines = self.lines.iter().flat_map(|line| arcs(line));
        let edges = lines.chain(self.polygons.iter().flat_map(Polygon::edges));
        let edges = edges.map(|edge| from.distance(edge));
        points.chain(edges).fold(f64::INFINITY, f64::min)
    }

    pub(super) fn intersects(&self, other: &Self) -> Outcome<bool> {
        Ok(self.touches(other)? || other.touches(self)?)
    }

    /// As [`Geometry::intersects`], without what the other one asks of this one.
    fn touches(&self, other: &Self) -> Outcome<bool> {
        let lines = other.lines.iter().map(Vec::len).sum::<usize>();
        let size = lines + other.polygons.iter().map(Polygon::size).sum::<usize>();
        let point = |point: &Vector| {
            let is_on = |line: &Vec<Vector>| arcs(line).any(|arc| point.is_on(arc));
            Ok(other.points.iter().any(|it| it.is_at(*point))
                || other.lines.iter().any(is_on)
                || other.polygons.iter().any(|it| it.has(*point)))
        };
        let line = |line: &Vec<Vector>| {
            let met = |other: &Vec<Vector>| {
                any(arcs(line), other.len(), |a| {
                    Ok(arcs(other).any(|b| meet(a, b)))
                })
            };
            Ok(any(&other.lines, 0, met)? || any(&other.polygons, 0, |it| it.meets_line(line))?)
        };
        let polygon = |polygon: &Polygon| any(&other.polygons, 0, |it| it.meets(polygon));
        Ok(any(&self.points, size + other.points.len(), point)?
            || any(&self.lines, 0, line)?
            || any(&self.polygons, 0, polygon)?)
    }
}
