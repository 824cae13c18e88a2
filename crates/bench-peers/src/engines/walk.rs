//! A cursor over an engine that has ranges but no cursor.
//!
//! fjall, redb and heed hand out iterators over a range that go one way. A walk keeps one of them
//! and the entry it stands on, and opens another when the direction changes, which no workload does
//! within a scan.

use std::ops::Bound;

use drumlin_base::Result;
use drumlin_bench::Cursor;

/// The bytes of a key or value as the engine hands them out.
pub(crate) trait Piece {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

impl Piece for &[u8] {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// The two ends of a range.
pub(crate) type Ends<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// An engine's iterators: ascending and descending iterators over a range of one moment's entries.
pub(crate) trait Ranges {
    /// A key or value.
    type Piece: Piece;
    /// Entries from the low end up.
    type Up: Iterator<Item = Result<(Self::Piece, Self::Piece)>>;
    /// Entries from the high end down.
    type Down: Iterator<Item = Result<(Self::Piece, Self::Piece)>>;

    /// The entries in `ends`, ascending.
    fn up(&self, ends: Ends<'_>) -> Result<Self::Up>;
    /// The entries in `ends`, descending.
    fn down(&self, ends: Ends<'_>) -> Result<Self::Down>;
}

enum Way<R: Ranges> {
    Up(R::Up),
    Down(R::Down),
    Unset,
}

/// A [`Cursor`] made of ranges.
pub(crate) struct Walk<R: Ranges> {
    ranges: R,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    way: Way<R>,
    at: Option<(R::Piece, R::Piece)>,
    result: Result<()>,
}

impl<R: Ranges> Walk<R> {
    /// A walk over `lower..upper`, not yet positioned.
    pub(crate) fn new(ranges: R, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Self {
        Self {
            ranges,
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            way: Way::Unset,
            at: None,
            result: Ok(()),
        }
    }

    /// Turns upward, beginning at `from`.
    fn turn_up(&mut self, from: Bound<&[u8]>) {
        let upper = self.upper.as_deref();
        match self
            .ranges
            .up((from, upper.map_or(Bound::Unbounded, Bound::Excluded)))
        {
            Ok(way) => self.way = Way::Up(way),
            Err(error) => return self.fail(error),
        }
        self.step();
    }

    /// Turns downward, beginning at `from`.
    fn turn_down(&mut self, from: Bound<&[u8]>) {
        let lower = self.lower.as_deref();
        match self
            .ranges
            .down((lower.map_or(Bound::Unbounded, Bound::Included), from))
        {
            Ok(way) => self.way = Way::Down(way),
            Err(error) => return self.fail(error),
        }
        self.step();
    }

    #[inline]
    fn step(&mut self) {
        let entry = match &mut self.way {
            Way::Up(way) => way.next(),
            Way::Down(way) => way.next(),
            Way::Unset => None,
        };
        match entry {
            Some(Ok(entry)) => self.at = Some(entry),
            Some(Err(error)) => self.fail(error),
            None => self.at = None,
        }
    }

    fn fail(&mut self, error: drumlin_base::Error) {
        self.way = Way::Unset;
        self.at = None;
        self.result = Err(error);
    }

    fn here(&self) -> &(R::Piece, R::Piece) {
        self.at.as_ref().expect("the caller checked valid()")
    }
}

impl<R: Ranges> Cursor for Walk<R> {
    fn seek_to_first(&mut self) {
        let lower = self.lower.clone();
        self.turn_up(lower.as_deref().map_or(Bound::Unbounded, Bound::Included));
    }

    fn seek_to_last(&mut self) {
        let upper = self.upper.clone();
        self.turn_down(upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
    }

    fn seek(&mut self, key: &[u8]) {
        match self.lower.take() {
            Some(lower) if key < lower.as_slice() => {
                self.turn_up(Bound::Included(&lower));
                self.lower = Some(lower);
            }
            lower => {
                self.lower = lower;
                self.turn_up(Bound::Included(key));
            }
        }
    }

    #[inline]
    fn next(&mut self) {
        if matches!(self.way, Way::Down(_)) {
            let key = self.key().to_vec();
            return self.turn_up(Bound::Excluded(&key));
        }
        self.step();
    }

    #[inline]
    fn prev(&mut self) {
        if matches!(self.way, Way::Up(_)) {
            let key = self.key().to_vec();
            return self.turn_down(Bound::Excluded(&key));
        }
        self.step();
    }

    #[inline]
    fn valid(&self) -> bool {
        self.at.is_some()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.here().0.bytes()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.here().1.bytes()
    }

    fn status(&self) -> Result<()> {
        match &self.result {
            Ok(()) => Ok(()),
            Err(error) => Err(error.duplicate()),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the walk behaves as a cursor. Method: over a map, every step against the sorted keys.

    use std::collections::BTreeMap;
    use std::rc::Rc;

    use super::*;

    type Entries = std::vec::IntoIter<Result<(Vec<u8>, Vec<u8>)>>;

    impl Piece for Vec<u8> {
        fn bytes(&self) -> &[u8] {
            self
        }
    }

    struct Map(Rc<BTreeMap<Vec<u8>, Vec<u8>>>);

    impl Ranges for Map {
        type Piece = Vec<u8>;
        type Up = Entries;
        type Down = Entries;

        fn up(&self, ends: Ends<'_>) -> Result<Entries> {
            let entries = self.0.range::<[u8], _>(ends);
            let entries = entries.map(|(key, value)| Ok((key.clone(), value.clone())));
            Ok(entries.collect::<Vec<_>>().into_iter())
        }

        fn down(&self, ends: Ends<'_>) -> Result<Entries> {
            let entries = self.0.range::<[u8], _>(ends).rev();
            let entries = entries.map(|(key, value)| Ok((key.clone(), value.clone())));
            Ok(entries.collect::<Vec<_>>().into_iter())
        }
    }

    fn walk(lower: Option<&[u8]>, upper: Option<&[u8]>) -> Walk<Map> {
        let keys = [b"b", b"d", b"f", b"h"];
        let map = keys.iter().map(|key| (key.to_vec(), key.to_vec()));
        Walk::new(Map(Rc::new(map.collect())), lower, upper)
    }

    #[test]
    fn it_turns_around_in_the_middle() {
        let mut walk = walk(None, None);
        walk.seek(b"c");
        assert_eq!(walk.key(), b"d");
        walk.next();
        assert_eq!(walk.key(), b"f");
        walk.prev();
        assert_eq!(walk.key(), b"d");
        walk.prev();
        assert_eq!(walk.key(), b"b");
        walk.next();
        assert_eq!(walk.key(), b"d");
        walk.seek(b"i");
        assert!(!walk.valid());
    }

    #[test]
    fn it_keeps_between_its_bounds() {
        let mut walk = walk(Some(b"d"), Some(b"h"));
        walk.seek(b"a");
        assert_eq!(walk.key(), b"d");
        walk.seek_to_last();
        assert_eq!(walk.key(), b"f");
        walk.prev();
        assert_eq!(walk.key(), b"d");
        walk.prev();
        assert!(!walk.valid());
        walk.seek_to_first();
        assert_eq!(walk.key(), b"d");
    }
}
