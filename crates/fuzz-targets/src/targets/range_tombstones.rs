//! Fragments of range tombstones against a look at every tombstone.

use drumlin::internals::range_tombstone::Fragments;
use drumlin_base::{KeyOrder, RangeTombstone, SeqNo};

use crate::input::Input;

/// Most tombstones of one input: the naive twin is quadratic. An input says how many of these it wants,
/// so that most are cheaper.
const TOMBSTONES_MAX: u8 = 20;

pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let order = match input.below(2) {
        0 => KeyOrder::Bytewise,
        _ => KeyOrder::ReverseBytewise,
    };
    let most = 1 + usize::from(input.below(TOMBSTONES_MAX));
    let mut tombstones = Vec::with_capacity(most);
    while !input.is_empty() && tombstones.len() < most {
        tombstones.push(RangeTombstone {
            begin: input.key(3),
            end: input.key(3),
            seqno: 1 + SeqNo::from(input.below(32)),
        });
    }
    let fragments = Fragments::new(&order, &tombstones);
    check_invariants(&order, &fragments);
    let written: Vec<_> = fragments.tombstones().collect();
    let again = Fragments::new(&order, &written);
    assert!(
        again.iter().eq(fragments.iter()),
        "fragments are a fixed point"
    );
    let (left, right) = tombstones.split_at(tombstones.len() / 2);
    let halves = [left, right].map(|half| Fragments::new(&order, half));
    let merged = Fragments::merged(&order, &halves);
    check_invariants(&order, &merged);
    check_answers(&order, &[fragments, merged], &tombstones);
}

fn check_invariants(order: &KeyOrder, fragments: &Fragments) {
    let mut last_end: Option<Vec<u8>> = None;
    for fragment in fragments.iter() {
        assert!(order.compare(fragment.begin, fragment.end).is_lt());
        let after = |end: &Vec<u8>| order.compare(end, fragment.begin).is_le();
        assert!(last_end.as_ref().is_none_or(after), "fragments overlap");
        assert!(!fragment.seqnos.is_empty());
        assert!(fragment.seqnos.windows(2).all(|pair| pair[0] > pair[1]));
        last_end = Some(fragment.end.to_vec());
    }
}

/// At every bound and right behind it each of `all` answers as a scan of all tombstones does.
fn check_answers(order: &KeyOrder, all: &[Fragments], tombstones: &[RangeTombstone]) {
    let bounds = tombstones.iter().flat_map(|one| [&one.begin, &one.end]);
    let mut keys: Vec<_> = bounds
        .flat_map(|key| [key.clone(), [key, &[0][..]].concat()])
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let mut covering = Vec::with_capacity(tombstones.len());
    for key in &keys {
        let covers = tombstones
            .iter()
            .filter(|one| order.compare(&one.begin, key).is_le())
            .filter(|one| order.compare(key, &one.end).is_lt());
        covering.clear();
        covering.extend(covers.map(|one| one.seqno));
        for snapshot in [0, 1, 7, 16, 33] {
            let seen = covering.iter().filter(|seqno| **seqno <= snapshot);
            let naive = seen.max().copied().unwrap_or(0);
            for fragments in all {
                let found = fragments.max_covering_seqno(order, key, snapshot);
                assert_eq!(found, naive, "{key:?} at {snapshot}");
            }
        }
    }
}
