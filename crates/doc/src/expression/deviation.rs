//! Standard deviations, by Welford's method.

use crate::raw::OwnedValue;

/// Numbers that were seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deviation {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    /// Takes one more.
    pub fn add(&mut self, number: f64) {
        self.count += 1.0;
        let before = number - self.mean;
        self.mean += before / self.count;
        self.squares += before * (number - self.mean);
    }

    /// The deviation: of a sample, or of all there is. Null of too few.
    pub fn value(&self, is_sample: bool) -> OwnedValue {
        let over = self.count - if is_sample { 1.0 } else { 0.0 };
        match over > 0.0 {
            true => OwnedValue::double((self.squares / over).sqrt()),
            false => OwnedValue::null(),
        }
    }
}
