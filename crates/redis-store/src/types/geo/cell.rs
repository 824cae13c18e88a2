//! Cells: squares of the map, and their numbers.

use crate::types::zset::ScoreRange;

/// The largest longitude, east and west.
pub const LONGITUDE_MAX: f64 = 180.0;
/// The largest latitude, north and south.
pub const LATITUDE_MAX: f64 = 85.051_128_78;
/// Bits of each coordinate in a score.
pub(super) const STEPS_MAX: u32 = 26;
/// The bits of latitudes in a cell's number, and those of longitudes.
const LATITUDES: u64 = 0x5555_5555_5555_5555;
const LONGITUDES: u64 = !LATITUDES;
/// 2^64
const BEYOND: f64 = 18_446_744_073_709_551_616.0;

/// A place, in degrees.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// East of Greenwich.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

/// From one coordinate to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) min: f64,
    pub(super) max: f64,
}

/// A part of the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) longitude: Span,
    pub(super) latitude: Span,
}

/// The whole map.
const MAP: Area = Area {
    longitude: Span {
        min: -LONGITUDE_MAX,
        max: LONGITUDE_MAX,
    },
    latitude: Span {
        min: -LATITUDE_MAX,
        max: LATITUDE_MAX,
    },
};

/// The whole earth, as the text of a geohash divides it.
const EARTH: Area = Area {
    longitude: MAP.longitude,
    latitude: Span {
        min: -90.0,
        max: 90.0,
    },
};

/// A square of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// Both coordinates, woven.
    bits: u64,
    /// Bits of each coordinate.
    steps: u32,
}

/// The bits of a number with a zero before each.
fn spread(number: u32) -> u64 {
    let mut bits = u64::from(number);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & LATITUDES
}

/// Every other bit of a number, from the lowest on.
fn gathered(bits: u64) -> u32 {
    let mut bits = bits & LATITUDES;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) as u32
}

impl Span {
    /// Where a coordinate is, in 2^steps parts.
    fn part(&self, at: f64, steps: u32) -> u32 {
        let offset = (at - self.min) / (self.max - self.min);
        (offset * (1u64 << steps) as f64) as u32
    }

    /// A part of 2^steps.
    fn of_part(&self, part: u32, steps: u32) -> Self {
        let scale = self.max - self.min;
        let parts = (1u64 << steps) as f64;
        Self {
            min: self.min + (f64::from(part) / parts) * scale,
            max: self.min + (f64::from(part.wrapping_add(1)) / parts) * scale,
        }
    }
}

impl Area {
    fn cell(&self, point: Point, steps: u32) -> Cell {
        let latitude = self.latitude.part(point.latitude, steps);
        let longitude = self.longitude.part(point.longitude, steps);
        Cell {
            bits: spread(latitude) | spread(longitude) << 1,
            steps,
        }
    }
}

impl Cell {
    /// The cell of a place, with so many bits for each coordinate: 1 to 26.
    pub(super) fn of(point: Point, steps: u32) -> Self {
        MAP.cell(point, steps)
    }

    /// Its part of the map.
    pub(super) fn area(&self) -> Area {
        Area {
            longitude: MAP.longitude.of_part(gathered(self.bits >> 1), self.steps),
            latitude: MAP.latitude.of_part(gathered(self.bits), self.steps),
        }
    }

    /// The cell so many to the east and to the north: -1, 0 or 1. The map has no edges here.
    pub(super) fn beside(&self, east: i8, north: i8) -> Self {
        let unused = 64 - self.steps * 2;
        let moved = |own: u64, other: u64, by: i8| {
            let (bits, fill) = (self.bits & own, other >> unused);
            let bits = match by {
                0 => return bits,
                1.. => bits.wrapping_add(fill + 1),
                _ => (bits | fill).wrapping_sub(fill + 1),
            };
            bits & own >> unused
        };
        Self {
            bits: moved(LONGITUDES, LATITUDES, east) | moved(LATITUDES, LONGITUDES, north),
            steps: self.steps,
        }
    }

    /// The scores of the places in it.
    pub(super) fn scores(&self) -> ScoreRange {
        let score = |bits: u64| (bits << (2 * (STEPS_MAX - self.steps))) as f64;
        ScoreRange {
            min: score(self.bits),
            max: score(self.bits + 1),
            excludes_min: false,
            excludes_max: true,
        }
    }
}

/// The score of a place on the map.
pub fn score_of(point: Point) -> f64 {
    Cell::of(point, STEPS_MAX).bits as f64
}

/// The place of a score: the middle of its cell. Any score has one.
pub fn point_of(score: f64) -> Point {
    // As x86-64 converts: what is below 0 goes round.
    let bits = match score {
        score if score >= BEYOND => 0,
        score if score < 0.0 => score as i64 as u64,
        score => score as u64,
    };
    let area = Cell {
        bits,
        steps: STEPS_MAX,
    };
    let area = area.area();
    let middle = |span: Span, max: f64| ((span.min + span.max) / 2.0).clamp(-max, max);
    Point {
        longitude: middle(area.longitude, LONGITUDE_MAX),
        latitude: middle(area.latitude, LATITUDE_MAX),
    }
}

/// The geohash of a place. The cell has bits for ten characters, and the eleventh is always `0`.
pub fn geohash(point: Point) -> [u8; 11] {
    const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
    let Cell { bits, .. } = EARTH.cell(point, STEPS_MAX);
    let mut text = [b'0'; 11];
    for (at, place) in (1..=10u32).zip(&mut text) {
        let digit = bits >> (2 * STEPS_MAX - at * 5) & 0x1f;
        *place = ALPHABET.get(digit as usize).copied().unwrap_or(b'0');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Point = Point {
        longitude: 13.361_389,
        latitude: 38.115_556,
    };

    #[test]
    fn scores_and_geohashes_are_those_of_redis() {
        assert_eq!(score_of(PALERMO), 3_479_099_956_230_698.0);
        assert_eq!(&geohash(point_of(score_of(PALERMO))), b"sqc8b49rny0");
        let found = point_of(3_479_099_956_230_698.0);
        assert_eq!(found.longitude, 13.361_389_338_970_184);
        assert_eq!(found.latitude, 38.115_556_395_496_3);
        for odd in [-1.0, -1e300, 1e300, f64::INFINITY, f64::NEG_INFINITY, 1e19] {
            let point = point_of(odd);
            assert!(point.latitude.abs() <= LATITUDE_MAX, "{odd}");
        }
    }

    /// Goal: neighbours share their edges. Method: the areas of the cells around some, of all sizes.
    #[test]
    fn neighbours_lie_beside_each_other() {
        for steps in 2..=STEPS_MAX {
            let cell = Cell::of(PALERMO, steps);
            let (own, east, north) = (cell.area(), cell.beside(1, 0), cell.beside(0, 1));
            assert_eq!(own.longitude.max, east.area().longitude.min);
            assert_eq!(own.latitude.max, north.area().latitude.min);
            assert_eq!(east.beside(-1, 0), cell);
            assert_eq!(north.beside(0, -1), cell);
            assert_eq!(cell.beside(1, 1), east.beside(0, 1));
            assert!(cell.scores().min <= score_of(PALERMO));
            assert!(cell.scores().max > score_of(PALERMO));
        }
    }
}
