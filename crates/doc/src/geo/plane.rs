//! Shapes on the plane, and whether a point lies in them.

/// A point by its two coordinates.
pub(super) type Pair = [f64; 2];

/// Sums of squares are this much wrong.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Flat {
    /// Its lowest and its highest corner.
    Box(Pair, Pair),
    Circle(Pair, f64),
    Polygon(Vec<Pair>),
}

impl Flat {
    pub(super) fn has(&self, [x, y]: Pair) -> bool {
        match self {
            Self::Box(low, high) => low[0] <= x && x <= high[0] && low[1] <= y && y <= high[1],
            Self::Circle(center, radius) => {
                let (dx, dy) = (x - center[0], y - center[1]);
                dx * dx + dy * dy <= radius * radius * (1.0 + ROUNDING)
            }
            Self::Polygon(points) => is_inside(points, [x, y]),
        }
    }
}

/// By how often a line to the right crosses the edges. As in MongoDB, corners and edges along an axis are inside, and of others that
/// which the count says.
fn is_inside(points: &[Pair], [x, y]: Pair) -> bool {
    let ends = points.iter().skip(1).chain(points.first());
    let mut is_in = false;
    for (a, b) in points.iter().zip(ends) {
        let between = |at: f64, a: f64, b: f64| a.min(b) <= at && at <= a.max(b);
        let is_corner = *a == [x, y] || *b == [x, y];
        let is_on_side = a[0] == b[0] && x == a[0] && between(y, a[1], b[1]);
        let is_on_level = a[1] == b[1] && y == a[1] && between(x, a[0], b[0]);
        if is_corner || is_on_side || is_on_level {
            return true;
        }
        if y > a[1].min(b[1]) && y <= a[1].max(b[1]) && x <= a[0].max(b[0]) && a[1] != b[1] {
            let crossing = (y - a[1]) * (b[0] - a[0]) / (b[1] - a[1]) + a[0];
            is_in ^= a[0] == b[0] || x <= crossing;
        }
    }
    is_in
}
