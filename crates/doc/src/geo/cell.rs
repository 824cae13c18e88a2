//! Squares that the sphere and the plane are cut into, each into four again, and the numbers of these along a curve: what lies in a square
//! has numbers in one range. On disk, see `docs/format/mongo.md`.

use super::plane::Pair;
use super::sphere::Vector;

/// A square: of the plane, or of a face of a cube around the sphere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    /// 0 to 5; 0 on the plane.
    face: u8,
    /// How often it was cut.
    pub(super) level: u32,
    i: u32,
    j: u32,
}

/// How deep the faces of the sphere are cut: to a centimetre.
pub(super) const SPHERE_LEVELS: u32 = 30;
/// What points may be off, in radians, by rounding.
pub(super) const SLACK: f64 = 1e-11;

/// The number of a quarter along Hilbert's curve, by the way the curve goes and the quarter's place; and how the way turns there.
const QUARTERS: [[u64; 4]; 4] = [[0, 1, 3, 2], [0, 3, 1, 2], [2, 3, 1, 0], [2, 1, 3, 0]];
const TURNS: [usize; 4] = [1, 0, 0, 3];

impl Cell {
    pub(super) fn faces() -> impl Iterator<Item = Self> {
        (0..6).map(Self::face)
    }

    pub(super) fn face(face: u8) -> Self {
        Self {
            face,
            level: 0,
            i: 0,
            j: 0,
        }
    }

    pub(super) fn children(self) -> [Self; 4] {
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| Self {
            face: self.face,
            level: self.level + 1,
            i: self.i * 2 + i,
            j: self.j * 2 + j,
        })
    }

    /// The one that it is a part of, at a level.
    pub(super) fn ancestor(self, level: u32) -> Self {
        let up = self.level.saturating_sub(level);
        Self {
            face: self.face,
            level: level.min(self.level),
            i: self.i.checked_shr(up).unwrap_or_default(),
            j: self.j.checked_shr(up).unwrap_or_default(),
        }
    }

    /// The smallest that has a point of the sphere.
    pub(super) fn at(point: Vector) -> Self {
        let (face, u, v) = projected(point);
        let scale = f64::from(1u32 << SPHERE_LEVELS);
        let place = |u: f64| {
            let s = match u >= 0.0 {
                true => 0.5 * (1.0 + 3.0 * u).sqrt(),
                false => 1.0 - 0.5 * (1.0 - 3.0 * u).sqrt(),
            };
            whole(s * scale, (1 << SPHERE_LEVELS) - 1)
        };
        Self {
            face,
            level: SPHERE_LEVELS,
            i: place(u),
            j: place(v),
        }
    }

    /// The quarters' numbers on the way down to it, two bits each.
    fn position(self) -> u64 {
        let mut way = usize::from(self.face & 1);
        let mut position = 0;
        for at in (0..self.level).rev() {
            let place = ((self.i >> at & 1) << 1 | (self.j >> at & 1)) as usize;
            let quarter = QUARTERS.get(way).and_then(|it| it.get(place));
            let quarter = quarter.copied().unwrap_or_default();
            position = position << 2 | quarter;
            way ^= TURNS.get(quarter as usize).copied().unwrap_or_default();
        }
        position
    }

    /// The one at a position.
    fn of_position(face: u8, level: u32, position: u64) -> Self {
        let mut way = usize::from(face & 1);
        let mut cell = Self::face(face);
        for at in (0..level).rev() {
            let quarter = position >> (2 * at) & 3;
            let places = QUARTERS.get(way).copied().unwrap_or_default();
            let place = places.iter().position(|it| *it == quarter);
            let place = u32::try_from(place.unwrap_or_default()).unwrap_or_default();
            cell.i = cell.i << 1 | place >> 1;
            cell.j = cell.j << 1 | place & 1;
            way ^= TURNS.get(quarter as usize).copied().unwrap_or_default();
        }
        Self { level, ..cell }
    }

    /// The one of a number on the sphere; `None` for what is none.
    pub(super) fn of_number(number: u64) -> Option<Self> {
        let below = number.trailing_zeros();
        let face = u8::try_from(number >> 61).unwrap_or(u8::MAX);
        let is_number = face < 6 && below <= 2 * SPHERE_LEVELS && below.is_multiple_of(2);
        let level = SPHERE_LEVELS.checked_sub(below / 2).filter(|_| is_number)?;
        Some(Self::of_position(face, level, number >> below >> 1))
    }

    /// Its number on the sphere: the face, the position, a one, and zeros.
    pub(super) fn number(self) -> u64 {
        let below = 2 * (SPHERE_LEVELS - self.level);
        (u64::from(self.face) << 60 | self.position() << below) << 1 | 1 << below
    }

    /// The first and the last number in it, on the sphere.
    pub(super) fn numbers(self) -> (u64, u64) {
        let below = (1 << (2 * (SPHERE_LEVELS - self.level))) - 1;
        let number = self.number();
        (number - below, number + below)
    }

    /// Its center, and how far it reaches from there in radians.
    pub(super) fn cap(self) -> (Vector, f64) {
        let size = 1.0 / f64::from(1u32 << self.level);
        let at = |place: u32, share: f64| {
            let s = (f64::from(place) + share) * size;
            match s >= 0.5 {
                true => (4.0 * s * s - 1.0) / 3.0,
                false => (1.0 - 4.0 * (1.0 - s) * (1.0 - s)) / 3.0,
            }
        };
        let point = |i, j| lifted(self.face, at(self.i, i), at(self.j, j));
        let center = point(0.5, 0.5);
        let corners = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)];
        let reach = corners.map(|(i, j)| point(i, j).angle(center));
        (center, reach.into_iter().fold(0.0, f64::max) + SLACK)
    }
}

/// The face of the cube that a point lies behind, and where on it.
fn projected(Vector([x, y, z]): Vector) -> (u8, f64, f64) {
    let largest = x.abs().max(y.abs()).max(z.abs());
    match () {
        () if x == largest => (0, y / x, z / x),
        () if y == largest => (1, -x / y, z / y),
        () if z == largest => (2, -x / z, -y / z),
        () if -x == largest => (3, z / x, y / x),
        () if -y == largest => (4, z / y, -x / y),
        () => (5, -y / z, -x / z),
    }
}

fn lifted(face: u8, u: f64, v: f64) -> Vector {
    let point = match face {
        0 => [1.0, u, v],
        1 => [-u, 1.0, v],
        2 => [-u, -v, 1.0],
        3 => [-1.0, -v, -u],
        4 => [v, -1.0, -u],
        _ => [v, u, -1.0],
    };
    Vector(point).unit()
}

/// The whole part, up to a most.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is cut to what there may be"
)]
fn whole(number: f64, most: u32) -> u32 {
    number.clamp(0.0, f64::from(most)) as u32
}

/// Two to so many, 32 at most.
fn power(bits: u32) -> f64 {
    match bits {
        0 => 1.0,
        _ => f64::from(u32::MAX >> (32 - bits)) + 1.0,
    }
}

/// How the plane is cut: a square with sides from `min` to `max`, so often that its parts have numbers of twice as many bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// 1 to 32.
    pub bits: u32,
    /// The least coordinate.
    pub min: f64,
    /// The largest one.
    pub max: f64,
}

impl Default for Grid {
    fn default() -> Self {
        Self {
            bits: 26,
            min: -180.0,
            max: 180.0,
        }
    }
}

impl Grid {
    /// The smallest square that has a point. `None` where it is outside.
    pub(super) fn at(self, [x, y]: Pair) -> Option<Cell> {
        let is_in = |at: f64| self.min <= at && at <= self.max;
        let scale = power(self.bits) / (self.max - self.min);
        let most = u32::MAX >> (32 - self.bits);
        let place = |at: f64| whole((at - self.min) * scale, most);
        (is_in(x) && is_in(y)).then(|| Cell {
            face: 0,
            level: self.bits,
            i: place(x),
            j: place(y),
        })
    }

    /// The smallest square of a number.
    pub(super) fn of_number(self, number: u64) -> Cell {
        Cell::of_position(0, self.bits, number >> (64 - 2 * self.bits))
    }

    /// The first and the last number in a square.
    pub(super) fn numbers(self, cell: Cell) -> (u64, u64) {
        // The same way at each level, so that it does not turn on how deep the curve goes.
        let first = cell.position().checked_shl(64 - 2 * cell.level);
        let rest = u64::MAX.checked_shr(2 * cell.level);
        let first = first.unwrap_or_default();
        (first, first | rest.unwrap_or_default())
    }

    /// The lowest and the highest corner, a little further out than they are.
    pub(super) fn corners(self, cell: Cell) -> (Pair, Pair) {
        let size = self.size(cell.level);
        let slack = (self.max - self.min).abs().max(self.min.abs()) * 1e-12;
        let low = [cell.i, cell.j].map(|place| self.min + f64::from(place) * size - slack);
        let high = [cell.i, cell.j].map(|place| self.min + (f64::from(place) + 1.0) * size + slack);
        (low, high)
    }

    /// The length of a side of a square.
    pub(super) fn size(self, level: u32) -> f64 {
        (self.max - self.min) / power(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numbers are those of their cells, and what lies in a cell has its numbers. Method: cells all over the sphere and the plane.
    #[test]
    fn cells_have_the_numbers_of_what_lies_in_them() {
        let mut rng = drumlin_base::rng::Rng::new(3);
        let mut degrees =
            |most: u64| rng.below(2 * most + 1) as f64 / 1000.0 - most as f64 / 1000.0;
        for at in 0..2000u32 {
            let pair = [degrees(180_000), degrees(90_000)];
            let point = Vector::of(pair).expect("a place");
            let leaf = Cell::at(point);
            for level in 0..=SPHERE_LEVELS {
                let cell = leaf.ancestor(level);
                let (first, last) = cell.numbers();
                assert!(first <= leaf.number() && leaf.number() <= last);
                assert_eq!(Cell::of_number(cell.number()), Some(cell));
                let (center, reach) = cell.cap();
                assert!(point.angle(center) <= reach, "{pair:?} at {level}");
            }
            let bits = 1 + at % 32;
            let grid = Grid {
                bits,
                ..Grid::default()
            };
            let leaf = grid.at(pair).expect("is in it");
            let (number, _) = grid.numbers(leaf);
            assert_eq!(grid.of_number(number), leaf);
            for level in 0..=bits {
                let cell = leaf.ancestor(level);
                let (first, last) = grid.numbers(cell);
                assert!(first <= number && number <= last);
                let (low, high) = grid.corners(cell);
                assert!((0..2).all(|at| low[at] <= pair[at] && pair[at] <= high[at]));
            }
        }
        assert_eq!(Cell::of_number(0), None);
        assert_eq!(Cell::of_number(u64::MAX), None);
    }
}
