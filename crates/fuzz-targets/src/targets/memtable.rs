//! A memtable against a sorted map.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use drumlin_base::key::{SEQNO_MAX, internal_key, seek_key};
use drumlin_base::{InternalIterator, KeyOrder, SeqNo, ValueKind};
use drumlin_memtable::Memtable;

use crate::input::Input;

/// User key, and how far the sequence number is from the highest: newest first.
type Version = (Vec<u8>, u64);
type Content = (ValueKind, Vec<u8>);
type Model = BTreeMap<Version, Content>;

pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let table = Arc::new(Memtable::new(KeyOrder::Bytewise));
    let mut model = Model::new();
    let mut seqno: SeqNo = 0;
    while !input.is_empty() {
        match input.below(8) {
            0..=4 => {
                // Writers insert in any order: numbers of a group go up and down.
                let number = 2 * (seqno ^ u64::from(input.below(2)));
                seqno += 2;
                add(&table, &mut model, &mut input, number);
            }
            5 => get(&table, &model, &mut input, seqno),
            6 => seek(&table, &model, &input.key(5), seqno),
            _ => {
                let (stem, count) = (input.key(4), input.below(100));
                for index in 0..count {
                    let key = [stem.as_slice(), &[index.reverse_bits()]].concat();
                    table.add(2 * seqno, ValueKind::Value, &key, &stem);
                    model.insert(
                        (key, SEQNO_MAX - 2 * seqno),
                        (ValueKind::Value, stem.clone()),
                    );
                    seqno += 2;
                }
            }
        }
    }
    scan(&table, &model);
    assert_eq!(table.entries(), model.len());
}

fn add(table: &Memtable, model: &mut Model, input: &mut Input<'_>, seqno: SeqNo) {
    let kind = match input.below(4) {
        0 => ValueKind::Deletion,
        1 => ValueKind::Merge,
        _ => ValueKind::Value,
    };
    let key = input.key(11);
    let len = usize::from(input.byte());
    let value = match kind {
        ValueKind::Deletion => &[],
        _ => input.take(len),
    };
    table.add(seqno, kind, &key, value);
    model.insert((key, SEQNO_MAX - seqno), (kind, value.to_vec()));
}

fn get(table: &Arc<Memtable>, model: &Model, input: &mut Input<'_>, newest: SeqNo) {
    let key = input.key(11);
    let seqno = (2 * newest) >> input.below(4);
    let expected: Vec<_> = model
        .range((key.clone(), SEQNO_MAX - seqno)..=(key.clone(), SEQNO_MAX))
        .map(|((_, turned), (kind, value))| (SEQNO_MAX - turned, *kind, value.clone()))
        .collect();
    let mut found = Vec::new();
    table.get(&key, seqno, |seqno, kind, value| {
        found.push((seqno, kind, value.bytes().to_vec()));
        ControlFlow::Continue(())
    });
    assert_eq!(found, expected, "{key:?} at {seqno}");
}

fn internal(((key, turned), (kind, _)): (&Version, &Content)) -> Vec<u8> {
    internal_key(key, SEQNO_MAX - turned, *kind)
}

fn seek(table: &Arc<Memtable>, model: &Model, key: &[u8], newest: SeqNo) {
    let target = (key.to_vec(), SEQNO_MAX - newest);
    let mut iter = table.iter();
    let here = |iter: &drumlin_memtable::MemtableIter| iter.valid().then(|| iter.key().to_vec());
    iter.seek(&seek_key(key, newest));
    let expected = model.range(target.clone()..).next().map(internal);
    assert_eq!(here(&iter), expected);
    if iter.valid() {
        iter.prev();
        let expected = model.range(..target.clone()).next_back().map(internal);
        assert_eq!(here(&iter), expected);
    }
    iter.seek_for_prev(&seek_key(key, newest));
    let expected = model.range(..target).next_back().map(internal);
    assert_eq!(here(&iter), expected);
    if iter.valid() {
        iter.next();
        let expected = model.range((key.to_vec(), SEQNO_MAX - newest)..).next();
        assert_eq!(here(&iter), expected.map(internal));
    }
}

fn scan(table: &Arc<Memtable>, model: &Model) {
    let mut iter = table.iter();
    iter.seek_to_first();
    for entry in model {
        assert!(iter.valid());
        assert_eq!(iter.key(), internal(entry));
        assert_eq!(iter.value(), entry.1.1);
        iter.next();
    }
    assert!(!iter.valid());
    iter.seek_to_last();
    for entry in model.iter().rev() {
        assert!(iter.valid());
        assert_eq!(iter.key(), internal(entry));
        iter.prev();
    }
    assert!(!iter.valid() && iter.status().is_ok());
}
