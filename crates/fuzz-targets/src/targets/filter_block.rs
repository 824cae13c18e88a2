//! Filters: any bytes are a filter that answers, and a filter never denies a key it was built from.

use drumlin_table::filter::{LevelDbFilterBuilder, LevelDbFilterReader};
use drumlin_table::{FilterBuilder, FilterReader};

use crate::input::Input;

pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.below(4) {
        0 => foreign(input.rest()),
        1 => foreign_leveldb(&mut input),
        2 => built(&mut input),
        _ => built_leveldb(&mut input),
    }
}

fn probes(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    block.chunks(5).take(32).chain([&b""[..], b"key"])
}

fn foreign(block: &[u8]) {
    let filter = FilterReader::parse(block);
    for key in probes(block) {
        let hash = drumlin_table::filter::hash(key);
        let answer = filter.may_contain(key, hash);
        assert_eq!(answer, filter.may_contain_key(key));
        let by_hash = filter.may_contain_hash(hash);
        assert!(by_hash || !answer, "a hash may only admit more");
        assert_eq!(by_hash, filter.test(filter.locate(hash)));
    }
    assert!(filter.resident_bytes() <= block.len() + 4096);
}

fn foreign_leveldb(input: &mut Input<'_>) {
    let offset = input.u64();
    let block = input.rest();
    let Some(filter) = LevelDbFilterReader::parse(block.to_vec()) else {
        return;
    };
    for key in probes(block) {
        for offset in [0, offset, offset >> 32, u64::MAX] {
            let _ = filter.may_contain(offset, key);
        }
    }
}

fn keys(input: &mut Input<'_>) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while !input.is_empty() {
        keys.push(input.key(9));
    }
    keys
}

fn built(input: &mut Input<'_>) {
    let mut builder = FilterBuilder::new(f64::from(input.byte()) / 4.0);
    let keys = keys(input);
    for key in &keys {
        builder.add_key(key);
    }
    let bytes = builder.finish();
    let filter = FilterReader::parse(&bytes);
    for key in &keys {
        assert!(filter.may_contain_key(key), "the filter denies {key:?}");
    }
}

fn built_leveldb(input: &mut Input<'_>) {
    let mut builder = LevelDbFilterBuilder::new(usize::from(input.byte()));
    let step = u64::from(input.byte()) * 64;
    let keys = keys(input);
    for (key, offset) in keys.iter().zip((0..).map(|index| index * step)) {
        builder.start_block(offset);
        builder.add_key(key);
    }
    let filter = LevelDbFilterReader::parse(builder.finish()).expect("a sound filter block");
    for (key, offset) in keys.iter().zip((0..).map(|index| index * step)) {
        assert!(filter.may_contain(offset, key), "the filter denies {key:?}");
    }
}
