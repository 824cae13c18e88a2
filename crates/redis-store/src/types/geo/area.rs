//! What is searched, and the cells that hold all of it.

use super::cell::{Area, Cell, Point, STEPS_MAX, Span};

/// The earth's radius.
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// Half the length of the equator on the map.
const MERCATOR_MAX_M: f64 = 20_037_726.37;
/// Radians of a degree.
const RADIANS: f64 = std::f64::consts::PI / 180.0;

/// How far around its centre a search goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// A circle.
    Radius(f64),
    /// Half of each to either side.
    Box {
        /// From west to east.
        width: f64,
        /// From south to north.
        height: f64,
    },
}

/// A part of the earth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Its middle.
    pub center: Point,
    /// Its size, in units.
    pub extent: Extent,
    /// Metres of a unit.
    pub unit_m: f64,
}

fn latitude_distance_m(one: f64, other: f64) -> f64 {
    EARTH_RADIUS_M * (other * RADIANS - one * RADIANS).abs()
}

/// The distance of two places over a ball, by the haversine formula.
pub fn distance_m(one: Point, other: Point) -> f64 {
    let longitudes = other.longitude * RADIANS - one.longitude * RADIANS;
    let v = (longitudes / 2.0).sin();
    if v == 0.0 {
        return latitude_distance_m(one.latitude, other.latitude);
    }
    let (from, to) = (one.latitude * RADIANS, other.latitude * RADIANS);
    let u = ((to - from) / 2.0).sin();
    let a = u * u + from.cos() * to.cos() * v * v;
    2.0 * EARTH_RADIUS_M * a.sqrt().asin()
}

impl Shape {
    /// The distance of a place from the centre, if it is inside.
    pub(super) fn distance_inside_m(&self, point: Point) -> Option<f64> {
        match self.extent {
            Extent::Radius(radius) => {
                let distance = distance_m(self.center, point);
                let is_outside = distance > radius * self.unit_m;
                (!is_outside).then_some(distance)
            }
            Extent::Box { width, height } => {
                let is_far = latitude_distance_m(point.latitude, self.center.latitude)
                    > height * self.unit_m / 2.0;
                let beside = Point {
                    longitude: self.center.longitude,
                    latitude: point.latitude,
                };
                if is_far || distance_m(point, beside) > width * self.unit_m / 2.0 {
                    return None;
                }
                Some(distance_m(self.center, point))
            }
        }
    }

    /// The coordinates that it reaches.
    fn bounds(&self) -> Area {
        let (width, height) = match self.extent {
            Extent::Radius(radius) => (radius, radius),
            Extent::Box { width, height } => (width / 2.0, height / 2.0),
        };
        let Point {
            longitude,
            latitude,
        } = self.center;
        let north = self.unit_m * height / EARTH_RADIUS_M / RADIANS;
        // A circle of latitude is shorter towards the pole, so that more degrees of it are reached there.
        let nearer_pole = match latitude < 0.0 {
            true => latitude - north,
            false => latitude + north,
        };
        let circle = (nearer_pole * RADIANS).cos();
        let east = self.unit_m * width / EARTH_RADIUS_M / circle / RADIANS;
        Area {
            longitude: Span {
                min: longitude - east,
                max: longitude + east,
            },
            latitude: Span {
                min: latitude - north,
                max: latitude + north,
            },
        }
    }

    /// Bits of the coordinates of cells of which nine hold the shape nearly always.
    fn estimated_steps(&self) -> u32 {
        let mut radius_m = self.unit_m
            * match self.extent {
                Extent::Radius(radius) => radius,
                Extent::Box { width, height } => {
                    let (width, height) = (width / 2.0, height / 2.0);
                    (width * width + height * height).sqrt()
                }
            };
        if radius_m == 0.0 {
            return STEPS_MAX;
        }
        let mut steps = -1;
        while radius_m < MERCATOR_MAX_M {
            radius_m *= 2.0;
            steps += 1;
        }
        let latitude = self.center.latitude.abs();
        steps -= i32::from(latitude > 66.0) + i32::from(latitude > 80.0);
        steps.clamp(1, STEPS_MAX as i32).unsigned_abs()
    }

    /// The cells to be walked, in this order: a few that hold all of the shape.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let bounds = self.bounds();
        let mut steps = self.estimated_steps();
        let mut center = Cell::of(self.center, steps);
        let reaches = |center: Cell| {
            let (north, south) = (center.beside(0, 1).area(), center.beside(0, -1).area());
            let (east, west) = (center.beside(1, 0).area(), center.beside(-1, 0).area());
            let is_short = north.latitude.max < bounds.latitude.max
                || south.latitude.min > bounds.latitude.min
                || east.longitude.max < bounds.longitude.max
                || west.longitude.min > bounds.longitude.min;
            !is_short
        };
        if steps > 1 && !reaches(center) {
            steps -= 1;
            center = Cell::of(self.center, steps);
        }
        // Sides on which the shape ends within the middle cell.
        let own = center.area();
        let ends = |is_inside: bool| steps >= 2 && is_inside;
        let south = ends(own.latitude.min < bounds.latitude.min);
        let north = ends(own.latitude.max > bounds.latitude.max);
        let west = ends(own.longitude.min < bounds.longitude.min);
        let east = ends(own.longitude.max > bounds.longitude.max);
        let mut cells = vec![center];
        for (to_east, to_north) in AROUND {
            let is_useless = (to_north < 0 && south)
                || (to_north > 0 && north)
                || (to_east < 0 && west)
                || (to_east > 0 && east);
            let cell = center.beside(to_east, to_north);
            // Where cells are huge, those to either side are the same one.
            let is_last = cells.len() > 1 && cells.last() == Some(&cell);
            if !is_useless && !is_last {
                cells.push(cell);
            }
        }
        cells
    }
}

/// The places around a cell, east and north, in the order of their walks.
const AROUND: [(i8, i8); 8] = [
    (0, 1),
    (0, -1),
    (1, 0),
    (-1, 0),
    (1, 1),
    (-1, 1),
    (1, -1),
    (-1, -1),
];

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::super::cell::score_of;
    use super::*;

    /// Goal: what is inside a shape is in its cells. Method: random shapes and random places around them, away from the poles,
    /// where Redis's cells are too few too.
    #[test]
    fn cells_hold_what_is_inside() {
        let mut rng = Rng::new(3);
        let mut inside = 0;
        for _ in 0..20_000 {
            let center = Point {
                longitude: rng.unit() * 200.0 - 100.0,
                latitude: rng.unit() * 100.0 - 50.0,
            };
            let size = 10f64.powf(rng.unit() * 5.0 + 1.0);
            let extent = match rng.one_in(2) {
                true => Extent::Radius(size),
                false => Extent::Box {
                    width: size * (0.5 + rng.unit()),
                    height: size * (0.5 + rng.unit()),
                },
            };
            let shape = Shape {
                center,
                extent,
                unit_m: 1.0,
            };
            let reach = size / 50_000.0;
            let point = Point {
                longitude: center.longitude + (rng.unit() - 0.5) * reach,
                latitude: center.latitude + (rng.unit() - 0.5) * reach,
            };
            if shape.distance_inside_m(point).is_none() {
                continue;
            }
            inside += 1;
            let score = score_of(point);
            let mut cells = shape.cells().into_iter().map(|cell| cell.scores());
            let holds = cells.any(|range| range.min <= score && score < range.max);
            assert!(holds, "{point:?} is in {shape:?}");
        }
        assert!(inside > 2_000, "{inside}");
    }
}
