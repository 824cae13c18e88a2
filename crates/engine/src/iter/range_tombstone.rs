//! Range tombstones cut into fragments that do not overlap, so that one binary search answers
//! "what deleted this key?".
//!
//! Invariants of [`Fragments`]: spans ascend, do not overlap and are not empty; each holds at least
//! one sequence number, newest first, without repeats. Immutable after construction, hence shared
//! freely between threads.
//!
//! The sweep: sort every begin and end; between two neighbouring points the set of tombstones that
//! cover is constant, so each such gap with a non-empty set is one fragment. Tombstones that a
//! flush or compaction wrote are fragments already and skip the sweep.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use drumlin_base::key::{split_internal, tag_kind, tag_seqno};
use drumlin_base::{KeyOrder, RangeTombstone, SEQNO_MAX, SeqNo, ValueKind};

#[derive(Clone, Debug)]
struct Span {
    begin: Box<[u8]>,
    end: Box<[u8]>,
    seqnos: Range<usize>,
}

/// Range tombstones as ascending fragments that do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    spans: Vec<Span>,
    seqnos: Vec<SeqNo>,
}

/// One fragment: every key from `begin` up to, not including, `end` was deleted at each of
/// `seqnos`, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// First user key covered.
    pub begin: &'a [u8],
    /// First user key no longer covered.
    pub end: &'a [u8],
    /// When it was deleted, newest first; never empty.
    pub seqnos: &'a [SeqNo],
}

impl Fragment<'_> {
    /// The newest deletion a reader at `read_seqno` sees; 0 when it sees none.
    #[inline]
    pub fn newest_at(&self, read_seqno: SeqNo) -> SeqNo {
        match self.seqnos.first() {
            Some(&newest) if newest <= read_seqno => newest,
            _ => {
                let newer = self.seqnos.partition_point(|&seqno| seqno > read_seqno);
                self.seqnos.get(newer).copied().unwrap_or(0)
            }
        }
    }
}

impl Fragments {
    /// Fragments of `tombstones`, given in any order. Empty ranges cover nothing and vanish.
    ///
    /// Costs O(n log n) and, where tombstones overlap, the size of the result.
    pub fn new(order: &KeyOrder, tombstones: &[RangeTombstone]) -> Self {
        Self::of_seen(order, tombstones, Seen::All)
    }

    /// As [`Fragments::new`], without what no reader sees: of the tombstones over a fragment stay the newest, and the
    /// newest that each of `snapshots`, ascending, sees. May keep more where nothing needs to be cut.
    ///
    /// Costs O(n log n) for each snapshot, also where tombstones lie over one another: their fragments alone have
    /// O(n²) sequence numbers.
    pub fn newest(order: &KeyOrder, tombstones: &[RangeTombstone], snapshots: &[SeqNo]) -> Self {
        debug_assert!(snapshots.is_sorted());
        Self::of_seen(order, tombstones, Seen::At(snapshots))
    }

    fn of_seen(order: &KeyOrder, tombstones: &[RangeTombstone], seen: Seen<'_>) -> Self {
        if let Some(ready) = Self::of_fragmented(order, tombstones) {
            return ready;
        }
        let pieces = tombstones.iter().map(|tombstone| Piece {
            begin: &tombstone.begin,
            end: &tombstone.end,
            seqno: tombstone.seqno,
        });
        Self::sweep(order, pieces.collect(), seen)
    }

    /// Fragments of a table's `tombstones` that count: those parts within the file's bounds, which
    /// are internal keys.
    ///
    /// A file's tombstones may reach past its bounds (older writers cut bounds, not tombstones); the
    /// parts outside belong to its neighbours. `largest` with tag (`SEQNO_MAX`, range deletion) is
    /// an end that is itself not covered; any other `largest` is covered. In orders other than
    /// bytewise no key directly follows `largest`, so there an end past it is left as it is: callers
    /// that ask about keys outside the file must check its bounds themselves.
    pub fn within_file(
        order: &KeyOrder,
        tombstones: &[RangeTombstone],
        smallest: &[u8],
        largest: &[u8],
    ) -> Self {
        if tombstones.is_empty() {
            return Self::default();
        }
        let (Some((first, _)), Some((last, last_tag))) =
            (split_internal(smallest), split_internal(largest))
        else {
            return Self::new(order, tombstones);
        };
        let end_is_excluded = tag_seqno(last_tag) == SEQNO_MAX
            && tag_kind(last_tag) == ValueKind::RangeDeletion as u8;
        let limit = match order {
            _ if end_is_excluded => Some(last.to_vec()),
            KeyOrder::Bytewise => Some([last, &[0]].concat()),
            _ => None,
        };
        let clipped: Vec<RangeTombstone> = tombstones
            .iter()
            .map(|tombstone| clip(order, tombstone, first, limit.as_deref()))
            .collect();
        Self::new(order, &clipped)
    }

    /// The union of several sources' fragments, fragmented again.
    pub fn merged<'a>(order: &KeyOrder, sources: impl IntoIterator<Item = &'a Fragments>) -> Self {
        let mut pieces = Vec::new();
        for source in sources {
            for fragment in source.iter() {
                pieces.extend(fragment.seqnos.iter().map(|&seqno| Piece {
                    begin: fragment.begin,
                    end: fragment.end,
                    seqno,
                }));
            }
        }
        Self::sweep(order, pieces, Seen::All)
    }

    /// Whether nothing is covered.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// How many fragments there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The fragment at `index`, ascending.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Fragment<'_>> {
        let span = self.spans.get(index)?;
        Some(Fragment {
            begin: &span.begin,
            end: &span.end,
            seqnos: self.seqnos.get(span.seqnos.clone())?,
        })
    }

    /// The fragments, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Fragment<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// One tombstone per fragment and sequence number, begin ascending, then seqno descending: the
    /// order a table takes them in.
    pub fn tombstones(&self) -> impl Iterator<Item = RangeTombstone> {
        self.iter().flat_map(|fragment| {
            fragment.seqnos.iter().map(move |&seqno| RangeTombstone {
                begin: fragment.begin.to_vec(),
                end: fragment.end.to_vec(),
                seqno,
            })
        })
    }

    /// Index of the first fragment whose end is after `user_key`: the only one that can cover it.
    pub fn first_ending_after(&self, order: &KeyOrder, user_key: &[u8]) -> usize {
        let covers_end = drumlin_base::bug!("end-of-a-range-covered");
        self.spans.partition_point(|span| {
            let end = order.compare(&span.end, user_key);
            end.is_lt() || end.is_eq() && !covers_end
        })
    }

    /// The newest deletion of `user_key` a reader at `read_seqno` sees; 0 when there is none.
    /// Costs O(log n) compares.
    pub fn max_covering_seqno(
        &self,
        order: &KeyOrder,
        user_key: &[u8],
        read_seqno: SeqNo,
    ) -> SeqNo {
        if drumlin_base::bug!("range-tombstone-unseen") {
            return 0;
        }
        match self.get(self.first_ending_after(order, user_key)) {
            Some(fragment) if order.compare(fragment.begin, user_key).is_le() => {
                fragment.newest_at(read_seqno)
            }
            _ => 0,
        }
    }

    /// The fragments if `tombstones` are already fragmented and in a table's order.
    fn of_fragmented(order: &KeyOrder, tombstones: &[RangeTombstone]) -> Option<Self> {
        let mut out = Self::default();
        for tombstone in tombstones {
            if order.compare(&tombstone.begin, &tombstone.end).is_ge() {
                return None;
            }
            let older_of_last = match out.spans.last() {
                None => false,
                Some(last) if order.compare(&last.end, &tombstone.begin).is_le() => false,
                Some(last) if *last.begin == *tombstone.begin && *last.end == *tombstone.end => {
                    if out
                        .seqnos
                        .last()
                        .is_some_and(|&newer| newer <= tombstone.seqno)
                    {
                        return None;
                    }
                    true
                }
                Some(_) => return None,
            };
            out.seqnos.push(tombstone.seqno);
            let count = out.seqnos.len();
            match out.spans.last_mut() {
                Some(last) if older_of_last => last.seqnos.end = count,
                _ => out.spans.push(Span {
                    begin: tombstone.begin.as_slice().into(),
                    end: tombstone.end.as_slice().into(),
                    seqnos: count - 1..count,
                }),
            }
        }
        Some(out)
    }

    fn sweep(order: &KeyOrder, pieces: Vec<Piece<'_>>, seen: Seen<'_>) -> Self {
        let mut begins = pieces;
        begins.retain(|piece| order.compare(piece.begin, piece.end).is_lt());
        begins.sort_by(|a, b| order.compare(a.begin, b.begin));
        let mut ends = begins.clone();
        ends.sort_by(|a, b| order.compare(a.end, b.end));
        let points = begins.iter().map(|piece| piece.begin);
        let mut points: Vec<&[u8]> = points.chain(ends.iter().map(|piece| piece.end)).collect();
        points.sort_by(|a, b| order.compare(a, b));
        points.dedup_by(|a, b| order.compare(a, b).is_eq());

        let mut out = Self::default();
        let (mut begins, mut ends) = (begins.iter().peekable(), ends.iter().peekable());
        // How many pieces of each seqno cover, newest first.
        let mut active: BTreeMap<Reverse<SeqNo>, usize> = BTreeMap::new();
        for pair in points.windows(2) {
            let &[point, next] = pair else { continue };
            let is_reached = |key: &[u8]| order.compare(key, point).is_le();
            while let Some(piece) = begins.next_if(|piece| is_reached(piece.begin)) {
                *active.entry(Reverse(piece.seqno)).or_default() += 1;
            }
            while let Some(piece) = ends.next_if(|piece| is_reached(piece.end)) {
                if let Entry::Occupied(mut count) = active.entry(Reverse(piece.seqno)) {
                    *count.get_mut() -= 1;
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
            }
            if !active.is_empty() {
                let from = out.seqnos.len();
                seen.append(&active, &mut out.seqnos);
                out.push_span(point, next, from);
            }
        }
        out
    }

    /// Adds `begin..end` with the seqnos from index `from` on, joining it to a neighbour that says
    /// the same.
    fn push_span(&mut self, begin: &[u8], end: &[u8], from: usize) {
        if let Some(last) = self.spans.last_mut()
            && *last.end == *begin
            && self.seqnos.get(last.seqnos.clone()) == self.seqnos.get(from..)
        {
            last.end = end.into();
            self.seqnos.truncate(from);
            return;
        }
        self.spans.push(Span {
            begin: begin.into(),
            end: end.into(),
            seqnos: from..self.seqnos.len(),
        });
    }
}

/// Whose tombstones matter.
#[derive(Clone, Copy)]
enum Seen<'a> {
    /// Everybody's, at whatever sequence number.
    All,
    /// Those of readers at these snapshots, ascending, and of later ones.
    At(&'a [SeqNo]),
}

impl Seen<'_> {
    /// Appends the seqnos among `active` that matter, newest first.
    fn append(self, active: &BTreeMap<Reverse<SeqNo>, usize>, out: &mut Vec<SeqNo>) {
        let Self::At(snapshots) = self else {
            return out.extend(active.keys().map(|seqno| seqno.0));
        };
        let mut limit = SEQNO_MAX;
        while let Some((&Reverse(seqno), _)) = active.range(Reverse(limit)..).next() {
            out.push(seqno);
            // What is older shows to snapshots that do not see this one.
            let older = snapshots.partition_point(|&at| at < seqno);
            match older.checked_sub(1).and_then(|index| snapshots.get(index)) {
                Some(&snapshot) => limit = snapshot,
                None => break,
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Piece<'a> {
    begin: &'a [u8],
    end: &'a [u8],
    seqno: SeqNo,
}

/// `tombstone` cut to begin at `first` at the earliest and end at `limit` at the latest; may come
/// out empty.
fn clip(
    order: &KeyOrder,
    tombstone: &RangeTombstone,
    first: &[u8],
    limit: Option<&[u8]>,
) -> RangeTombstone {
    let mut out = tombstone.clone();
    if order.compare(&out.begin, first).is_lt() {
        out.begin = first.to_vec();
    }
    if let Some(limit) = limit
        && order.compare(&out.end, limit).is_gt()
    {
        out.end = limit.to_vec();
    }
    out
}

/// Walks one source's fragments alongside an iterator: remembers where the last key fell, so that
/// the next one, usually close by, needs two or three compares and no search.
#[derive(Clone, Copy, Debug, Default)]
pub struct FragmentCursor {
    index: usize,
}

impl FragmentCursor {
    /// The fragment of `fragments` that covers `user_key`, if one does.
    #[inline]
    pub fn covering<'a>(
        &mut self,
        order: &KeyOrder,
        fragments: &'a Fragments,
        user_key: &[u8],
    ) -> Option<Fragment<'a>> {
        if !self.fits(order, fragments, user_key) {
            self.index += 1;
            if !self.fits(order, fragments, user_key) {
                self.index = fragments.first_ending_after(order, user_key);
            }
        }
        fragments
            .get(self.index)
            .filter(|fragment| order.compare(fragment.begin, user_key).is_le())
    }

    /// Whether `index` is the first fragment ending after `user_key`.
    fn fits(&self, order: &KeyOrder, fragments: &Fragments, user_key: &[u8]) -> bool {
        let ends_after = |at: usize| {
            fragments
                .spans
                .get(at)
                .is_none_or(|span| order.compare(&span.end, user_key).is_gt())
        };
        self.index <= fragments.len()
            && ends_after(self.index)
            && (self.index == 0 || !ends_after(self.index - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::key::{internal_key, pack_tag};
    use drumlin_base::rng::Rng;

    fn tombstone(begin: &str, end: &str, seqno: SeqNo) -> RangeTombstone {
        RangeTombstone {
            begin: begin.into(),
            end: end.into(),
            seqno,
        }
    }

    fn random_tombstones(rng: &mut Rng) -> Vec<RangeTombstone> {
        let count = rng.below(12);
        (0..count)
            .map(|_| RangeTombstone {
                begin: vec![b'a' + rng.below(10) as u8],
                end: vec![b'a' + rng.below(12) as u8],
                seqno: 1 + rng.below(20),
            })
            .collect()
    }

    /// The definition, tombstone by tombstone.
    fn naive(order: &KeyOrder, tombstones: &[RangeTombstone], key: &[u8], at: SeqNo) -> SeqNo {
        tombstones
            .iter()
            .filter(|t| t.seqno <= at)
            .filter(|t| order.compare(&t.begin, key).is_le() && order.compare(key, &t.end).is_lt())
            .map(|t| t.seqno)
            .max()
            .unwrap_or(0)
    }

    fn check_shape(order: &KeyOrder, fragments: &Fragments) {
        let all: Vec<_> = fragments.iter().collect();
        assert_eq!(all.len(), fragments.len());
        for fragment in &all {
            assert!(order.compare(fragment.begin, fragment.end).is_lt());
            assert!(!fragment.seqnos.is_empty());
            assert!(fragment.seqnos.windows(2).all(|pair| pair[0] > pair[1]));
        }
        for pair in all.windows(2) {
            assert!(order.compare(pair[0].end, pair[1].begin).is_le());
        }
    }

    #[test]
    fn fragments_answer_as_the_tombstones_they_came_from() {
        for seed in 0..400 {
            let mut rng = Rng::new(seed);
            let order = match seed % 2 {
                0 => KeyOrder::Bytewise,
                _ => KeyOrder::ReverseBytewise,
            };
            let tombstones = random_tombstones(&mut rng);
            let fragments = Fragments::new(&order, &tombstones);
            check_shape(&order, &fragments);
            let mut cursor = FragmentCursor::default();
            for _ in 0..60 {
                let key = [b'a' + rng.below(13) as u8];
                let at = rng.below(22);
                let want = naive(&order, &tombstones, &key, at);
                assert_eq!(
                    fragments.max_covering_seqno(&order, &key, at),
                    want,
                    "seed {seed}"
                );
                let walked = cursor.covering(&order, &fragments, &key);
                assert_eq!(walked.map_or(0, |f| f.newest_at(at)), want, "seed {seed}");
            }
        }
    }

    #[test]
    fn the_newest_answer_at_snapshots_as_all_do_and_are_few() {
        for seed in 0..400 {
            let mut rng = Rng::new(seed);
            let order = KeyOrder::Bytewise;
            let tombstones = random_tombstones(&mut rng);
            let mut snapshots: Vec<_> = (0..rng.below(4)).map(|_| rng.below(22)).collect();
            snapshots.sort_unstable();
            let fragments = Fragments::newest(&order, &tombstones, &snapshots);
            check_shape(&order, &fragments);
            for key in b'a'..=b'm' {
                for &at in snapshots.iter().chain([&SEQNO_MAX]) {
                    let want = naive(&order, &tombstones, &[key], at);
                    let told = fragments.max_covering_seqno(&order, &[key], at);
                    assert_eq!(told, want, "seed {seed}");
                }
            }
            if Fragments::of_fragmented(&order, &tombstones).is_none() {
                let most = fragments.iter().map(|fragment| fragment.seqnos.len()).max();
                assert!(most.unwrap_or(0) <= 1 + snapshots.len(), "seed {seed}");
            }
        }
    }

    #[test]
    fn thousands_of_tombstones_over_one_another_cost_no_more_than_beside() {
        let order = KeyOrder::Bytewise;
        let key = |number: u32| number.to_be_bytes().to_vec();
        let nested = (1..=16_000).map(|number| RangeTombstone {
            begin: key(number),
            end: key(100_000 - number),
            seqno: u64::from(number),
        });
        let fragments = Fragments::newest(&order, &nested.collect::<Vec<_>>(), &[500]);
        assert_eq!(fragments.len(), 2 * 16_000 - 1);
        let told = |number, at| fragments.max_covering_seqno(&order, &key(number), at);
        assert_eq!((told(50_000, SEQNO_MAX), told(50_000, 500)), (16_000, 500));
    }

    #[test]
    fn fragmenting_twice_changes_nothing_and_takes_the_short_way() {
        for seed in 0..200 {
            let order = KeyOrder::Bytewise;
            let tombstones = random_tombstones(&mut Rng::new(seed));
            let once = Fragments::new(&order, &tombstones);
            let list: Vec<_> = once.tombstones().collect();
            let again = Fragments::of_fragmented(&order, &list).expect("fragments are fragmented");
            assert_eq!(list, again.tombstones().collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn merged_sources_cover_what_either_covers() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let order = KeyOrder::Bytewise;
            let (a, b) = (random_tombstones(&mut rng), random_tombstones(&mut rng));
            let parts = [Fragments::new(&order, &a), Fragments::new(&order, &b)];
            let merged = Fragments::merged(&order, &parts);
            check_shape(&order, &merged);
            let all = [a, b].concat();
            for key in b'a'..=b'm' {
                for at in [3, 9, 30] {
                    let want = naive(&order, &all, &[key], at);
                    assert_eq!(
                        merged.max_covering_seqno(&order, &[key], at),
                        want,
                        "{seed}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_file_counts_only_within_its_bounds() {
        let order = KeyOrder::Bytewise;
        let list = [tombstone("a", "z", 9)];
        let smallest = internal_key(b"f", 5, ValueKind::Value);
        let covers = |fragments: &Fragments, key: &[u8]| {
            fragments.max_covering_seqno(&order, key, SEQNO_MAX) == 9
        };

        let included = internal_key(b"m", 5, ValueKind::Value);
        let fragments = Fragments::within_file(&order, &list, &smallest, &included);
        assert!(!covers(&fragments, b"e") && covers(&fragments, b"f"));
        assert!(covers(&fragments, b"m") && !covers(&fragments, b"m\0"));

        let mut excluded = b"m".to_vec();
        let tag = pack_tag(SEQNO_MAX, ValueKind::RangeDeletion as u8);
        excluded.extend_from_slice(&tag.to_le_bytes());
        let fragments = Fragments::within_file(&order, &list, &smallest, &excluded);
        assert!(covers(&fragments, b"l") && !covers(&fragments, b"m"));
    }

    #[test]
    fn touching_fragments_that_say_the_same_are_one() {
        let order = KeyOrder::Bytewise;
        let list = [tombstone("c", "e", 4), tombstone("a", "c", 4)];
        let fragments = Fragments::new(&order, &list);
        assert_eq!(
            fragments.tombstones().collect::<Vec<_>>(),
            [tombstone("a", "e", 4)]
        );
    }
}
