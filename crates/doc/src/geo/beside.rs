//! Edges that lie beside each other: which of many may meet, and how much is compared until nobody would wait any longer.

use crate::refusal::Outcome;
use crate::watch::step;

/// The lowest and the highest that an edge may come on each axis.
pub(super) type Bounds = [(f64, f64); 3];

/// Edges that are looked at in a step of work.
const EDGES_OF_STEP: usize = 64;

/// Most pairs of edges whose heights overlap, or of points and edges, and most pairs of edges that have to be looked at closely: a second or
/// so, of one value.
const PAIRS_MAX: usize = 1 << 26;
const TESTS_MAX: usize = 1 << 22;

/// What may still be compared while a value is read.
#[derive(Debug)]
pub(super) struct Pairs {
    left: usize,
    tests_left: usize,
    /// Whether the watch ended it.
    ended: Outcome<()>,
}

impl Pairs {
    /// What `read` makes of a value; `None` too where it has more to compare than there may be.
    ///
    /// # Errors
    /// Of the watch.
    pub(super) fn of_value<T>(read: impl FnOnce(&mut Self) -> Option<T>) -> Outcome<Option<T>> {
        let mut pairs = Self {
            left: PAIRS_MAX,
            tests_left: TESTS_MAX,
            ended: Ok(()),
        };
        let made = read(&mut pairs);
        pairs.ended.map(|()| made)
    }

    /// Takes so many pairs; `None` where that is too many, or the watch ends the work.
    pub(super) fn take(&mut self, pairs: usize) -> Option<()> {
        self.left = self.left.checked_sub(pairs)?;
        self.ended = work(pairs);
        self.ended.is_ok().then_some(())
    }

    fn take_test(&mut self) -> Option<()> {
        self.tests_left = self.tests_left.checked_sub(1)?;
        Some(())
    }
}

/// As much work as to look at so many edges.
///
/// # Errors
/// Of the watch.
pub(super) fn work(edges: usize) -> Outcome<()> {
    (0..=edges / EDGES_OF_STEP).try_for_each(|_| step())
}

/// Whether `holds` for any two edges, the one with the lower place first, of those whose bounds overlap and that are to be `held` against each
/// other. `None` where there are too many.
pub(super) fn any_two(
    edges: impl Iterator<Item = Bounds>,
    pairs: &mut Pairs,
    held: impl Fn(usize, usize) -> bool,
    mut holds: impl FnMut(usize, usize) -> bool,
) -> Option<bool> {
    let mut by_height: Vec<_> = edges.enumerate().collect();
    by_height.sort_by(|(_, a), (_, b)| a[2].0.total_cmp(&b[2].0));
    let overlaps = |a: &(f64, f64), b: &(f64, f64)| a.0 <= b.1 && b.0 <= a.1;
    for (at, (i, [x, y, (_, high)])) in by_height.iter().enumerate() {
        let above = by_height.iter().skip(at + 1);
        let mut count = 0;
        for (j, other) in above.take_while(|(_, other)| other[2].0 <= *high) {
            count += 1;
            let (i, j) = (*i.min(j), *i.max(j));
            if overlaps(x, &other[0]) && overlaps(y, &other[1]) && held(i, j) {
                pairs.take_test()?;
                if holds(i, j) {
                    return Some(true);
                }
            }
        }
        pairs.take(count)?;
    }
    Some(false)
}
