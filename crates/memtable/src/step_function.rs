//! The newest range tombstone over each key, as steps: from a step's key on, up to the next step's, it is the one
//! with this sequence number.
//!
//! Two such functions are laid over one another by a merge, which takes the newer tombstone everywhere. It does not
//! matter which of the two was made first, nor whether their sequence numbers interleave. A merge can be made in
//! parts, so that nobody waits for a whole one.

use std::cmp::Ordering;

use drumlin_base::key::user_key_prefix;
use drumlin_base::{KeyOrder, SeqNo};

use crate::arena::Arena;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step<'a> {
    /// The first user key it is about.
    pub(crate) key: &'a [u8],
    /// The newest tombstone from there on; 0 when there is none.
    pub(crate) seqno: SeqNo,
}

/// The newest tombstone over the keys from `begin` up to, not including, `end`. `None` is unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoveredSpan<'a> {
    /// Its sequence number; 0 when there is none.
    pub seqno: SeqNo,
    /// The first user key this is true of.
    pub begin: Option<&'a [u8]>,
    /// The first user key this may not be true of.
    pub end: Option<&'a [u8]>,
}

impl<'a> CoveredSpan<'a> {
    /// Takes in what else is known of the key both spans hold: the newer tombstone counts, as far as both reach.
    #[inline]
    pub(crate) fn meet(&mut self, order: &KeyOrder, other: &Self) {
        self.seqno = self.seqno.max(other.seqno);
        if let Some(begin) = other.begin
            && self
                .begin
                .is_none_or(|own| order.compare(own, begin).is_lt())
        {
            self.begin = Some(begin);
        }
        if let Some(end) = other.end
            && self.end.is_none_or(|own| order.compare(own, end).is_gt())
        {
            self.end = Some(end);
        }
    }
}

/// A step function: steps in ascending order, beside prefixes of their keys.
///
/// Most compares are of prefixes, in one array, so that a search seldom leads to a key elsewhere in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps<'s, 'a> {
    steps: &'s [Step<'a>],
    /// [`prefix_of`] each key, past `common_bytes`. Ascending, as the keys are.
    prefixes: &'s [u64],
    /// Bytes that all keys begin with; 0 where the order is a user's.
    common_bytes: usize,
}

impl<'a> Steps<'_, 'a> {
    /// What they say of `user_key`. Costs O(log n) compares.
    #[inline]
    pub(crate) fn look_up(&self, order: &KeyOrder, user_key: &[u8]) -> CoveredSpan<'a> {
        let after = self.first_after(order, user_key);
        let here = after.checked_sub(1).and_then(|at| self.steps.get(at));
        CoveredSpan {
            seqno: here.map_or(0, |step| step.seqno),
            begin: here.map(|step| step.key),
            end: self.steps.get(after).map(|step| step.key),
        }
    }

    /// The index of the first step after `user_key`.
    #[inline]
    fn first_after(&self, order: &KeyOrder, user_key: &[u8]) -> usize {
        let Some(first) = self.steps.first() else {
            return 0;
        };
        let common = first.key.get(..self.common_bytes);
        if !common.is_some_and(|common| user_key.starts_with(common)) {
            // It is before all or after all.
            return match order.compare(user_key, first.key).is_lt() {
                true => 0,
                false => self.steps.len(),
            };
        }
        let prefix = prefix_of(order, user_key, self.common_bytes);
        let mut at = self.prefixes.partition_point(|&other| other < prefix);
        let like = &self.prefixes[at..];
        if like.first() == Some(&prefix) {
            let count = like.partition_point(|&other| other == prefix);
            let like = &self.steps[at..at + count];
            at += like.partition_point(|step| order.compare(step.key, user_key).is_le());
        }
        at
    }

    /// A copy in `memory`.
    pub(crate) fn placed<'m>(&self, memory: &'m Arena) -> Steps<'m, 'a>
    where
        'a: 'm,
    {
        Steps {
            steps: memory.place_slice(self.steps),
            prefixes: memory.place_slice(self.prefixes),
            common_bytes: self.common_bytes,
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }
}

/// Steps that own their room.
#[derive(Debug, Default)]
pub(crate) struct MadeSteps<'a> {
    steps: Vec<Step<'a>>,
    prefixes: Vec<u64>,
    common_bytes: usize,
}

impl<'a> MadeSteps<'a> {
    /// One tombstone; `begin` is before `end`.
    pub(crate) fn of_one(order: &KeyOrder, begin: &'a [u8], end: &'a [u8], seqno: SeqNo) -> Self {
        let common_bytes = common_bytes(order, begin, end);
        let ends = [(begin, seqno), (end, 0)];
        Self {
            steps: ends.map(|(key, seqno)| Step { key, seqno }).to_vec(),
            prefixes: [begin, end]
                .map(|key| prefix_of(order, key, common_bytes))
                .to_vec(),
            common_bytes,
        }
    }

    pub(crate) fn steps(&self) -> Steps<'_, 'a> {
        Steps {
            steps: &self.steps,
            prefixes: &self.prefixes,
            common_bytes: self.common_bytes,
        }
    }
}

/// The eight bytes of `key` after the first `skipped`, as a number: where two differ, they are in the order of their
/// keys. Always 0 in a user's order.
#[inline]
fn prefix_of(order: &KeyOrder, key: &[u8], skipped: usize) -> u64 {
    let rest = &key[skipped..]; // All keys have the bytes that they share.
    match order {
        KeyOrder::Bytewise => user_key_prefix(rest),
        KeyOrder::ReverseBytewise => !user_key_prefix(rest),
        KeyOrder::Custom(_) => 0,
    }
}

/// Bytes that `first` and `last`, and all keys between, begin with.
fn common_bytes(order: &KeyOrder, first: &[u8], last: &[u8]) -> usize {
    match order {
        KeyOrder::Custom(_) => 0,
        _ => first.iter().zip(last).take_while(|(a, b)| a == b).count(),
    }
}

/// One of the two functions of an [`Overlay`], and how far it was taken.
#[derive(Debug)]
struct Input<'s, 'a> {
    all: Steps<'s, 'a>,
    at: usize,
    /// Of the last step that was taken.
    seqno: SeqNo,
}

impl<'a> Input<'_, 'a> {
    /// The step to come, with the prefix of its key past `common_bytes`.
    #[inline]
    fn next(&self, order: &KeyOrder, common_bytes: usize) -> Option<(u64, Step<'a>)> {
        let step = *self.all.steps.get(self.at)?;
        let prefix = match self.all.common_bytes == common_bytes {
            true => *self.all.prefixes.get(self.at)?,
            false => prefix_of(order, step.key, common_bytes),
        };
        Some((prefix, step))
    }

    #[inline]
    fn take(&mut self, step: Step<'a>) {
        self.at += 1;
        self.seqno = step.seqno;
    }
}

/// One step function laid over another.
#[derive(Debug)]
pub(crate) struct Overlay<'s, 'a> {
    inputs: [Input<'s, 'a>; 2],
    made: MadeSteps<'a>,
}

impl<'s, 'a> Overlay<'s, 'a> {
    pub(crate) fn new(order: &KeyOrder, one: Steps<'s, 'a>, other: Steps<'s, 'a>) -> Self {
        let room = one.steps.len() + other.steps.len();
        let ends = [one, other].map(|all| Some((all.steps.first()?.key, all.steps.last()?.key)));
        let shared = match ends {
            [Some((first, last)), Some((other_first, _))] => {
                let bytes = one.common_bytes.min(other.common_bytes);
                debug_assert!(order.compare(first, last).is_le());
                bytes.min(common_bytes(order, first, other_first))
            }
            [Some(_), None] => one.common_bytes,
            _ => other.common_bytes,
        };
        Self {
            inputs: [one, other].map(|all| Input {
                all,
                at: 0,
                seqno: 0,
            }),
            made: MadeSteps {
                steps: Vec::with_capacity(room),
                prefixes: Vec::with_capacity(room),
                common_bytes: shared,
            },
        }
    }

    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        self.made.steps.capacity() * (size_of::<Step<'_>>() + size_of::<u64>())
    }

    /// The steps made so far.
    pub(crate) fn steps(&self) -> Steps<'_, 'a> {
        self.made.steps()
    }

    /// All steps, at once.
    pub(crate) fn complete(mut self, order: &KeyOrder) -> MadeSteps<'a> {
        while !self.advance(order, usize::MAX) {}
        self.made
    }

    /// Makes the merge of at most `keys_max` more keys; whether it is complete.
    ///
    /// A comparator that panics leaves the merge as it was before the key it panicked at.
    pub(crate) fn advance(&mut self, order: &KeyOrder, keys_max: usize) -> bool {
        let common_bytes = self.made.common_bytes;
        for _ in 0..keys_max {
            let [one, other] = &mut self.inputs;
            let coming = [
                one.next(order, common_bytes),
                other.next(order, common_bytes),
            ];
            let (which, (prefix, step)) = match coming {
                [None, None] => return true,
                [Some(a), None] => (Ordering::Less, a),
                [None, Some(b)] => (Ordering::Greater, b),
                [Some(a), Some(b)] => {
                    let by_prefix = a.0.cmp(&b.0);
                    let which = by_prefix.then_with(|| order.compare(a.1.key, b.1.key));
                    (which, if which.is_gt() { b } else { a })
                }
            };
            if let Some((_, step)) = coming[0].filter(|_| which.is_le()) {
                one.take(step);
            }
            if let Some((_, step)) = coming[1].filter(|_| which.is_ge()) {
                other.take(step);
            }
            let seqnos = [one.seqno, other.seqno];
            self.put(prefix, step.key, seqnos);
        }
        false
    }

    /// From `key` on the inputs say `seqnos`.
    #[inline]
    fn put(&mut self, prefix: u64, key: &'a [u8], [one, other]: [SeqNo; 2]) {
        let seqno = match drumlin_base::bug!("later-range-tombstones-on-top") {
            true if other > 0 => other,
            _ => one.max(other),
        };
        if self.made.steps.last().map_or(0, |step| step.seqno) != seqno {
            self.made.prefixes.push(prefix);
            self.made.steps.push(Step { key, seqno });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Steps as `key:seqno`.
    fn steps<'a>(order: &KeyOrder, text: &'a str) -> MadeSteps<'a> {
        let words = text.split_whitespace();
        let steps: Vec<_> = words
            .map(|word| {
                let (key, seqno) = word.split_once(':').expect("key:seqno");
                let (key, seqno) = (key.as_bytes(), seqno.parse().expect("a number"));
                Step { key, seqno }
            })
            .collect();
        let common_bytes = common_bytes(order, steps[0].key, steps[steps.len() - 1].key);
        let prefix = |step: &Step<'_>| prefix_of(order, step.key, common_bytes);
        MadeSteps {
            prefixes: steps.iter().map(prefix).collect(),
            steps,
            common_bytes,
        }
    }

    #[test]
    fn an_overlay_takes_the_newer_of_both_in_whatever_parts_it_is_made() {
        let order = KeyOrder::Bytewise;
        // What the keys have in common shrinks as they are merged.
        let one = steps(
            &order,
            "key10000001:5 key10000004:0 key1000000400000000:9 key2:0",
        );
        let other = steps(&order, "key1:3 key10000002:7 key10000003:0 key3:2 l:0");
        let want = "key1:3 key10000001:5 key10000002:7 key10000003:5 key10000004:0 \
                    key1000000400000000:9 key2:0 key3:2 l:0";
        let want = steps(&order, want);
        for (one, other) in [(&one, &other), (&other, &one)] {
            let made = Overlay::new(&order, one.steps(), other.steps()).complete(&order);
            assert_eq!(made.steps, want.steps);
            assert_eq!((made.common_bytes, &made.prefixes), (0, &want.prefixes));
        }
        let mut in_parts = Overlay::new(&order, one.steps(), other.steps());
        while !in_parts.advance(&order, 1) {}
        assert_eq!(in_parts.made.steps, want.steps);
    }

    #[test]
    fn a_key_is_in_the_span_that_is_told_of_it() {
        let order = KeyOrder::Bytewise;
        let all = steps(&order, "kb:5 kd:0 kf00000000000:9 kf00000000001:0");
        let tell = |key: &str| {
            let span = all.steps().look_up(&order, key.as_bytes());
            let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
            (span.seqno, span.begin.map(text), span.end.map(text))
        };
        let some = |key: &str| Some(key.to_owned());
        for before in ["", "a", "jz", "k", "ka"] {
            assert_eq!(tell(before), (0, None, some("kb")), "{before}");
        }
        assert_eq!(tell("kb"), (5, some("kb"), some("kd")));
        assert_eq!(tell("ke"), (0, some("kd"), some("kf00000000000")));
        let (first, last) = (some("kf00000000000"), some("kf00000000001"));
        assert_eq!(tell("kf00000000000z"), (9, first, last.clone()));
        for after in ["kf00000000001", "kz", "l"] {
            assert_eq!(tell(after), (0, last.clone(), None), "{after}");
        }
    }
}
