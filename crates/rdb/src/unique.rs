//! Finding names that come twice, in little memory.

use std::cmp::Ordering;

/// Whether two of `places` hold equal values, by an order over these. Sorts them: four bytes a name, where a set
/// of the names would take sixty.
pub(crate) fn any_twice<T>(places: &mut [T], order: impl Fn(&T, &T) -> Ordering) -> bool {
    places.sort_unstable_by(&order);
    let mut pairs = places.iter().zip(places.iter().skip(1));
    pairs.any(|(one, next)| order(one, next).is_eq())
}
