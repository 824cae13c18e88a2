//! Data blocks: damaged ones end in an error or early, sound ones answer like a sorted list.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use drumlin_base::key::{
    SEQNO_MAX, TAG_BYTES, ValueKind, compare_internal, internal_key, seek_key, split_internal,
    tag_seqno,
};
use drumlin_base::{KeyOrder, SeqNo};
use drumlin_table::probe::{BlockProbe, build_block};

use super::expect::or_blamed;
use crate::input::Input;

const ORDER: KeyOrder = KeyOrder::Bytewise;
/// Most lookups in one built block: the naive twin looks at every entry.
const QUESTIONS_MAX: usize = 48;

/// Odd first bytes take the rest as a block, even ones as orders to build one.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    if input.below(2) == 1 {
        foreign(input.rest());
    } else {
        built(&mut input);
    }
}

/// Everything ends: an entry takes at least three bytes, and no step may go round.
fn foreign(block: &[u8]) {
    let Some(mut probe) = or_blamed(BlockProbe::parse(block.to_vec())) else {
        return;
    };
    let steps_max = block.len() * 2 + 8;
    let mut keys = Vec::new();
    probe.seek_to_first();
    while let Some((key, _)) = probe.entry() {
        assert!(key.len() >= TAG_BYTES, "the invariant of the cursor");
        if keys.len() < 64 {
            keys.push(key.to_vec());
        }
        probe.next();
    }
    let _ = or_blamed(probe.status());
    probe.seek_to_last();
    let mut steps = 0;
    while probe.entry().is_some() {
        steps += 1;
        assert!(steps <= steps_max, "a walk backwards does not end");
        probe.prev();
    }
    let _ = or_blamed(probe.status());
    keys.push(seek_key(block.get(..4).unwrap_or_default(), 7));
    for key in &keys {
        for by_prefixes in [false, true] {
            seek_in_foreign(&mut probe, key, by_prefixes);
        }
    }
}

fn seek_in_foreign(probe: &mut BlockProbe, key: &[u8], by_prefixes: bool) {
    probe.seek(&ORDER, key, by_prefixes);
    if let Some((found, _)) = probe.entry() {
        assert_ne!(compare_internal(&ORDER, found, key), Ordering::Less);
        probe.prev();
    }
    let _ = or_blamed(probe.status());
    let (user_key, tag) = split_internal(key).unwrap_or_default();
    let _ = or_blamed(probe.versions(user_key, tag_seqno(tag), by_prefixes));
}

/// Blocks of entries from the input, with and without a hash index (which is skipped), against the list they were
/// built from.
fn built(input: &mut Input<'_>) {
    let interval = 1 + usize::from(input.below(20));
    let entries = entries(input);
    let buckets = [interval as u8; 20];
    let mut probes = [&[][..], &buckets[..interval]].map(|buckets| {
        let block = build_block(&entries, interval, buckets);
        BlockProbe::parse(block).expect("a sound block")
    });
    probes
        .iter_mut()
        .for_each(|probe| walk_both_ways(probe, &entries));
    for _ in 0..QUESTIONS_MAX {
        if input.is_empty() {
            break;
        }
        let (user_key, seqno) = (input.key(6), SeqNo::from(input.byte()));
        for probe in &mut probes {
            ask(probe, &entries, &user_key, seqno);
        }
    }
    assert!(probes.iter().all(|probe| probe.status().is_ok()));
}

fn walk_both_ways(probe: &mut BlockProbe, entries: &[(Vec<u8>, Vec<u8>)]) {
    probe.seek_to_first();
    for (key, value) in entries {
        assert_eq!(probe.entry(), Some((key.as_slice(), value.as_slice())));
        probe.next();
    }
    assert_eq!(probe.entry(), None);
    probe.seek_to_last();
    for (key, value) in entries.iter().rev() {
        assert_eq!(probe.entry(), Some((key.as_slice(), value.as_slice())));
        probe.prev();
    }
    assert_eq!(probe.entry(), None);
}

/// Distinct entries in order. Empty for every 256th input, as blocks of index partitions may be.
fn entries(input: &mut Input<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let prefix = input.key(12);
    let mut sorted = BTreeMap::new();
    for _ in 0..input.byte() {
        let user_key = [prefix.clone(), input.key(6)].concat();
        let seqno = SeqNo::from(input.byte());
        let value_len = usize::from(input.byte() % 24);
        let value = input.take(value_len).to_vec();
        sorted.insert((user_key, SEQNO_MAX - seqno), value);
    }
    let entries = sorted.into_iter().map(|((user_key, turned), value)| {
        let key = internal_key(&user_key, SEQNO_MAX - turned, ValueKind::Value);
        (key, value)
    });
    entries.collect()
}

/// Seeks, steps and point lookups for one key, with and without the block's key prefixes.
fn ask(probe: &mut BlockProbe, entries: &[(Vec<u8>, Vec<u8>)], user_key: &[u8], seqno: SeqNo) {
    let target = seek_key(user_key, seqno);
    let at = entries.partition_point(|(key, _)| compare_internal(&ORDER, key, &target).is_lt());
    let expected: Vec<(u64, Vec<u8>)> = entries[at..]
        .iter()
        .filter_map(|(key, value)| {
            let (found, tag) = split_internal(key)?;
            (found == user_key).then(|| (tag, value.clone()))
        })
        .collect();
    for by_prefixes in [false, true] {
        probe.seek(&ORDER, &target, by_prefixes);
        let found = probe.entry().map(|(key, _)| key.to_vec());
        assert_eq!(found.as_ref(), entries.get(at).map(|(key, _)| key));
        if found.is_some() {
            probe.prev();
            let before = probe.entry().map(|(key, _)| key.to_vec());
            let expected = at.checked_sub(1).and_then(|at| entries.get(at));
            assert_eq!(before.as_ref(), expected.map(|(key, _)| key));
        }
        let versions = probe
            .versions(user_key, seqno, by_prefixes)
            .expect("a sound block");
        assert_eq!(versions, expected, "versions of {user_key:?} at {seqno}");
    }
}
