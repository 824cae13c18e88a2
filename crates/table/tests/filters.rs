//! Hashes and filters, bit for bit, against those of RocksDB 7.8.3 and LevelDB 1.23.
//! `data/filters.txt` and `data/tables.txt` hold the vectors; a wrong bit here is a lost read.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a bad vector is a failed test"
)]

use std::collections::HashMap;

use drumlin_base::rng::Rng;
use drumlin_table::filter::{LevelDbFilterBuilder, LevelDbFilterReader, hash};
use drumlin_table::{FilterBuilder, FilterReader};

const VECTORS: &str = include_str!("data/filters.txt");
const TABLES: &str = include_str!("data/tables.txt");

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn vectors(text: &'static str) -> HashMap<&'static str, Vec<&'static str>> {
    let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    lines.map(|fields| (fields[0], fields)).collect()
}

/// The generator's key of `n` bytes.
fn sized_key(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + n * 13 + (i >> 5)) as u8).collect()
}

fn named_key(i: usize) -> Vec<u8> {
    format!("key{i:06}").into_bytes()
}

/// The number of the generator's 10000 strangers that pass, and a digest of them.
fn strangers(filter: &FilterReader) -> (u64, u64) {
    let (mut count, mut digest) = (0, 0u64);
    for i in 0..10_000u64 {
        if filter.may_contain_key(format!("other{i:06}").as_bytes()) {
            count += 1;
            digest = digest.wrapping_mul(1_000_003).wrapping_add(i);
        }
    }
    (count, digest)
}

fn expect_strangers(name: &str, filter: &FilterReader) {
    let all = vectors(VECTORS);
    let fields = &all[format!("{name}.strangers").as_str()];
    let expected = (fields[1].parse().unwrap(), fields[2].parse().unwrap());
    assert_eq!(strangers(filter), expected, "{name}");
}

#[test]
fn hashes_of_every_length_class_are_rocksdbs() {
    let mut seen = 0;
    for line in VECTORS.lines().filter(|line| line.starts_with("hash ")) {
        let fields: Vec<&str> = line.split(' ').collect();
        let key = sized_key(fields[1].parse().unwrap());
        let expected = u64::from_str_radix(&fields[2][2..], 16).unwrap();
        assert_eq!(hash(&key), expected, "{} bytes", key.len());
        seen += 1;
    }
    assert_eq!(seen, 47);
    // Every length from 0 to 1300, folded together.
    let digest = (0..=1300).fold(0u64, |digest, n| {
        let mixed = digest.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed.wrapping_add(hash(&sized_key(n)))
    });
    let expected = u64::from_str_radix(vectors(VECTORS)["digest"][1], 16).unwrap();
    assert_eq!(digest, expected);
}

#[test]
fn bloom_filters_are_built_bit_for_bit_as_rocksdb_builds_them() {
    let all = vectors(VECTORS);
    for (name, bits, keys) in [
        ("bloom4.5", 4.5, 64),
        ("bloom20", 20.0, 64),
        ("bloom60", 60.0, 16),
    ] {
        let mut builder = FilterBuilder::new(bits);
        (0..keys).for_each(|i| builder.add_key(&named_key(i)));
        assert_eq!(
            builder.filter_bytes(),
            all[name][1].parse::<usize>().unwrap()
        );
        let built = builder.finish();
        assert_eq!(built, unhex(all[name][2]), "{name}");
        let reader = FilterReader::parse(built);
        (0..keys).for_each(|i| assert!(reader.may_contain_key(&named_key(i))));
        expect_strangers(name, &reader);
    }
    let mut builder = FilterBuilder::new(10.0);
    (0..301).for_each(|n| builder.add_key(&sized_key(n)));
    let built = builder.finish();
    assert_eq!(built, unhex(all["bloom10"][2]));
    expect_strangers("bloom10", &FilterReader::parse(built));

    let mut builder = FilterBuilder::new(10.0);
    (0..5000).for_each(|i| builder.add_key(&named_key(i)));
    expect_strangers("bloom10k", &FilterReader::parse(builder.finish()));
}

#[test]
fn legacy_filters_of_rocksdb_are_read_and_built_bit_for_bit() {
    let all = vectors(VECTORS);
    let reader = FilterReader::parse(unhex(all["legacy10"][2]));
    for n in 0..301 {
        let key = sized_key(n);
        assert!(reader.may_contain_key(&key), "{n} bytes");
        assert!(
            reader.may_contain_hash(hash(&key)),
            "the other hash proves nothing"
        );
    }
    expect_strangers("legacy10", &reader);
    let mut builder = FilterBuilder::legacy(10.0);
    (0..301).for_each(|n| builder.add_key(&sized_key(n)));
    assert_eq!(builder.finish(), unhex(all["legacy10"][2]));
}

#[test]
fn ribbon_filters_of_rocksdb_are_read() {
    let all = vectors(VECTORS);
    for (name, keys) in [("ribbon10", 2000), ("ribbon3", 3000)] {
        let bytes = unhex(all[name][2]);
        assert_eq!(bytes[bytes.len() - 5], 0xFE, "a Ribbon filter");
        let reader = FilterReader::parse(bytes);
        for i in 0..keys {
            assert!(reader.may_contain_key(&named_key(i)), "{name} {i}");
        }
        expect_strangers(name, &reader);
    }
}

#[test]
fn repeats_cost_nothing_and_prefixes_are_found() {
    let mut builder = FilterBuilder::new(10.0);
    for i in 0..100 {
        let key = format!("prefix{:02}-{i:04}", i / 10);
        builder.add_key_and_prefix(key.as_bytes(), &key.as_bytes()[..8]);
        builder.add_key(key.as_bytes());
    }
    assert_eq!(builder.len(), 110);
    let reader = FilterReader::parse(builder.finish());
    assert!(builder.is_empty());
    for i in 0..100 {
        assert!(reader.may_contain_key(format!("prefix{:02}-{i:04}", i / 10).as_bytes()));
        assert!(reader.may_contain_key(format!("prefix{:02}", i / 10).as_bytes()));
    }
}

#[test]
fn the_two_halves_of_a_test_agree_with_the_whole() {
    let mut rng = Rng::new(11);
    let mut builder = FilterBuilder::new(10.0);
    let hashes: Vec<u64> = (0..1000).map(|_| rng.next_u64()).collect();
    hashes.iter().for_each(|h| builder.add_hash(*h));
    let reader = FilterReader::parse(builder.finish());
    assert!(hashes.iter().all(|h| reader.test(reader.locate(*h))));
    let mut denied = 0;
    for _ in 0..10_000 {
        let h = rng.next_u64();
        let whole = reader.may_contain_hash(h);
        assert_eq!(reader.test(reader.locate(h)), whole);
        denied += u32::from(!whole);
    }
    assert!(
        denied > 9_800,
        "about one in a hundred passes, {denied} were denied"
    );
}

#[test]
fn empty_filters_deny_and_unknown_ones_admit() {
    assert!(!FilterReader::parse(FilterBuilder::new(10.0).finish()).may_contain_key(b"k"));
    let mut off = FilterBuilder::new(0.1);
    off.add_key(b"k");
    let off = FilterReader::parse(off.finish());
    assert!(off.may_contain_key(b"other") && !off.is_useful());
    for len in 0..=5 {
        assert!(!FilterReader::parse(vec![0xFF; len]).may_contain_key(b"k"));
    }
    // Reserved kinds, sub-kinds, line sizes and probe counts; lines that do not add up.
    for tail in [
        [0xFD, 0, 6, 0, 0],
        [0xFF, 1, 6, 0, 0],
        [0xFF, 0, 6 | 32, 0, 0],
        [0xFF, 0, 0, 0, 0],
        [0xFF, 0, 31, 0, 0],
        [0, 1, 0, 0, 0],
        [6, 3, 0, 0, 0],
        [6, 0, 0, 0, 0],
        [0xFE, 1, 1, 0, 0],
    ] {
        let mut bytes = vec![0; 64];
        bytes.extend_from_slice(&tail);
        assert!(FilterReader::parse(bytes).may_contain_key(b"k"), "{tail:?}");
    }
    assert!(FilterReader::admit_all().may_contain_key(b"k"));
}

#[test]
fn leveldb_filter_blocks_are_built_and_read_as_leveldb_does() {
    let all = vectors(TABLES);
    let expected = unhex(all["leveldb_filter"][1]);
    let reader = LevelDbFilterReader::parse(expected.clone()).unwrap();
    let mut builder = LevelDbFilterBuilder::new(10);
    let mut denied = 0;
    for block in &all["leveldb_blocks"][1..] {
        let (offset, keys) = block.split_once(':').unwrap();
        let (first, last) = keys.split_once('-').unwrap();
        let offset: u64 = offset.parse().unwrap();
        builder.start_block(offset);
        for i in first.parse::<usize>().unwrap()..=last.parse().unwrap() {
            builder.add_key(&named_key(i));
            assert!(reader.may_contain(offset, &named_key(i)));
            denied += usize::from(!reader.may_contain(offset, &named_key(i + 1000)));
        }
    }
    assert_eq!(builder.finish(), expected);
    assert!(denied > 110, "of 120 strangers {denied} were denied");
    assert!(reader.may_contain(1 << 40, b"past the last filter"));
}

#[test]
fn hostile_filters_never_panic() {
    let mut rng = Rng::new(12);
    let all = vectors(VECTORS);
    let good = ["bloom4.5", "legacy10", "ribbon3"].map(|name| unhex(all[name][2]));
    for round in 0..4000 {
        let mut bytes = good[round % good.len()].clone();
        bytes.drain(..rng.below(bytes.len() as u64) as usize);
        for _ in 0..rng.below(3) {
            let at = bytes.len() - 1 - rng.below(bytes.len().min(6) as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        let reader = FilterReader::parse(&bytes);
        for _ in 0..4 {
            let h = rng.next_u64();
            let _ = (
                reader.may_contain(&h.to_le_bytes(), h),
                reader.test(reader.locate(h)),
            );
        }
        if let Some(reader) = LevelDbFilterReader::parse(bytes) {
            let _ = reader.may_contain(rng.below(1 << 20), b"key");
            let _ = reader.may_contain(u64::MAX, b"key");
        }
    }
}
