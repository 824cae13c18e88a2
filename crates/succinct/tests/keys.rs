//! Goal: a key index answers as a sorted vector of its keys does, for keys of any shape, and forged
//! bytes do no harm. Method: seeded sets of keys of many shapes, asked for members, neighbours of
//! members and strangers; then indexes with flipped, cut and swapped bytes.

use drumlin_base::rng::Rng;
use drumlin_succinct::{KeyIndex, KeyIndexBuilder};

type Keys = Vec<Vec<u8>>;

/// Sorted, without duplicates.
fn sorted(mut keys: Keys) -> Keys {
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn made(count: u64, mut key: impl FnMut(u64) -> Vec<u8>) -> Keys {
    sorted((0..count).map(&mut key).collect())
}

fn build(keys: &Keys) -> (Vec<u8>, Vec<u8>) {
    let mut builder = KeyIndexBuilder::new();
    let mut blocks = Vec::new();
    for key in keys {
        builder.add(key).expect("the keys ascend");
        if builder.blocks_bytes() > 1000 {
            blocks.append(&mut builder.blocks());
        }
    }
    let (mut rest, tail) = builder.finish().expect("few keys");
    blocks.append(&mut rest);
    (blocks, tail)
}

fn open(keys: &Keys) -> KeyIndex {
    let (blocks, tail) = build(keys);
    KeyIndex::open(blocks, &tail).expect("just built")
}

/// A key near `key`.
fn neighbour(rng: &mut Rng, key: &[u8]) -> Vec<u8> {
    let mut near = key.to_vec();
    let at = rng.below(near.len() as u64 + 1) as usize;
    match rng.below(6) {
        0 => near.truncate(at),
        1 => near.insert(at, rng.below(256) as u8),
        2 if at < near.len() => near[at] = near[at].wrapping_add(1),
        3 if at < near.len() => near[at] = near[at].wrapping_sub(1),
        4 if at < near.len() => _ = near.remove(at),
        _ => near.push([0, 0xFF, b'0', b'|'][rng.below(4) as usize]),
    }
    near
}

/// Every answer of the index against the sorted vector.
fn check(name: &str, keys: &Keys, rng: &mut Rng) {
    let index = open(keys);
    assert_eq!(index.len(), keys.len() as u64, "{name}");
    index
        .verify()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut asked: Keys = Vec::new();
    for _ in 0..400 {
        let near = match keys.is_empty() {
            true => &b"any"[..],
            false => &keys[rng.below(keys.len() as u64) as usize],
        };
        asked.push(near.to_vec());
        asked.push(neighbour(rng, near));
        let mut random = vec![0; rng.below(20) as usize];
        rng.fill(&mut random);
        asked.push(random);
    }
    asked.extend([vec![], vec![0], vec![0xFF; 40]]);
    let views: Vec<&[u8]> = asked.iter().map(Vec::as_slice).collect();
    let mut batch = Vec::new();
    index.get_batch(&views, &mut batch);
    for (key, batched) in asked.iter().zip(&batch) {
        let place = keys.binary_search(key);
        let expected = place.ok().map(|rank| rank as u64);
        assert_eq!(index.get(key), expected, "{name}: {}", key.escape_ascii());
        assert_eq!(*batched, expected, "{name}: {}", key.escape_ascii());
        let expected = place.unwrap_or_else(|at| at) as u64;
        assert_eq!(index.seek(key), expected, "{name}: {}", key.escape_ascii());
    }
    check_walks(name, keys, &index, rng);
}

fn check_walks(name: &str, keys: &Keys, index: &KeyIndex, rng: &mut Rng) {
    let mut cursor = index.cursor();
    cursor.go_to(0);
    for key in keys {
        assert!(cursor.valid(), "{name}");
        assert_eq!(cursor.key(), key, "{name}");
        cursor.next();
    }
    assert!(!cursor.valid(), "{name}");
    if let Some(last) = keys.len().checked_sub(1) {
        cursor.go_to(last as u64);
    }
    for key in keys.iter().rev() {
        assert_eq!(cursor.key(), key, "{name}");
        cursor.prev();
    }
    assert!(!cursor.valid(), "{name}");
    for _ in 0..50.min(keys.len()) {
        let rank = rng.below(keys.len() as u64);
        let mut key = Vec::new();
        assert!(index.key(rank, &mut key), "{name}");
        assert_eq!(key, keys[rank as usize], "{name}");
        cursor.seek(&key);
        assert_eq!(cursor.rank(), rank, "{name}");
    }
    assert!(!index.key(keys.len() as u64, &mut Vec::new()), "{name}");
}

fn lineitem(rng: &mut Rng, count: u64) -> Keys {
    made(count, |_| {
        let (order, part) = (rng.below(6_000_000), rng.below(200_000));
        let (supplier, line) = (rng.below(10_000), 1 + rng.below(7));
        format!("{order}|{part}|{supplier}|{line}").into_bytes()
    })
}

fn path(rng: &mut Rng) -> Vec<u8> {
    const WORDS: [&str; 12] = [
        "usr",
        "share",
        "doc",
        "lib",
        "python3",
        "dist-packages",
        "linux",
        "x86_64",
        "README",
        "fs",
        "changelog.gz",
        "i",
    ];
    let mut path = String::from("/usr/share");
    for _ in 0..1 + rng.below(6) {
        path.push('/');
        path.push_str(WORDS[rng.below(WORDS.len() as u64) as usize]);
        if rng.one_in(2) {
            path.push_str(&rng.below(300).to_string());
        }
    }
    path.into_bytes()
}

/// Shapes with about `count` keys each.
fn shapes(rng: &mut Rng, count: u64) -> Vec<(&'static str, Keys)> {
    let random16 = |rng: &mut Rng| {
        let mut key = vec![0; 16];
        rng.fill(&mut key);
        key
    };
    let mut shapes = vec![
        (
            "big-endian integers",
            made(count, |n| (n * 7).to_be_bytes().to_vec()),
        ),
        (
            "sparse integers",
            made(count, |_| rng.next_u64().to_be_bytes().to_vec()),
        ),
        (
            "padded decimals",
            made(count, |n| format!("user{n:012}").into_bytes()),
        ),
        (
            "decimals",
            made(count, |n| (n * 3).to_string().into_bytes()),
        ),
        ("columns", lineitem(rng, count)),
        (
            "digits of three numbers",
            made(count, |n| {
                let (part, supplier) = (rng.below(30_000_000), rng.below(1_500_000));
                format!("{}{part}{supplier}", 440_000_000 + n / 4).into_bytes()
            }),
        ),
        ("paths", made(count, |_| path(rng))),
        ("random bytes", made(count, |_| random16(rng))),
        (
            "hexadecimal",
            made(count, |_| format!("{:032x}", rng.next_u64()).into_bytes()),
        ),
        (
            "upper case",
            made(count, |_| {
                format!("id-{:08X}", rng.next_u64() >> 32).into_bytes()
            }),
        ),
        (
            "mixed lengths",
            made(count, |_| {
                let mut key = vec![0; rng.below(12) as usize];
                rng.fill(&mut key);
                key
            }),
        ),
        (
            "few bytes",
            made(count, |_| {
                (0..rng.below(12))
                    .map(|_| b"ab\0\xFF"[rng.below(4) as usize])
                    .collect()
            }),
        ),
        (
            "tails of 0xff",
            made(count.min(300), |n| {
                let mut key = (n / 20).to_be_bytes()[4..].to_vec();
                key.extend(std::iter::repeat_n(0xFF, (n % 20) as usize));
                key
            }),
        ),
        (
            "long common prefix",
            made(count, |n| {
                let mut key = vec![b'p'; 1000];
                key.extend_from_slice((n * n).to_string().as_bytes());
                key
            }),
        ),
        (
            "with a hole",
            made(count, |n| {
                let mut key = (n as u16).to_be_bytes().to_vec();
                key.extend_from_slice(&[7, 0, 7]);
                key.extend_from_slice(&rng.below(1 << 40).to_be_bytes());
                key
            }),
        ),
        (
            "urls",
            made(count, |n| {
                format!(
                    "https://example.org/{}/page?id={n}&x={}",
                    rng.below(40),
                    rng.below(9)
                )
                .into_bytes()
            }),
        ),
    ];
    let several = [0, 2, 4, 5, 9].map(|at: usize| shapes[at].1.clone());
    shapes.push(("one after the other", sorted(several.concat())));
    shapes
}

#[test]
fn an_index_answers_as_a_sorted_vector_does() {
    for seed in 0..3 {
        let mut rng = Rng::new(seed);
        for (name, keys) in shapes(&mut rng, 1500) {
            check(&format!("{name}, seed {seed}"), &keys, &mut rng);
        }
    }
}

#[test]
fn small_indexes_of_every_size_answer_right() {
    let mut rng = Rng::new(11);
    for count in [0, 1, 2, 3, 63, 64, 65, 127, 128, 129] {
        for (name, keys) in shapes(&mut rng, count) {
            check(&format!("{name}, {count} keys"), &keys, &mut rng);
        }
    }
}

#[test]
fn keys_of_bytes_that_begin_no_block_are_found() {
    let mut rng = Rng::new(15);
    for letters in 2..70 {
        // The first keys of the blocks: each letter, and the last one twice.
        let mut keys = Keys::new();
        for letter in 0..letters {
            keys.push(vec![letter]);
            keys.extend((0..127).map(|low| vec![letter, 250, low]));
        }
        let last = keys.len() - 60;
        keys.truncate(last);
        keys.extend((0..60).map(|low| vec![254, low]));
        check(&format!("{letters} letters"), &sorted(keys), &mut rng);
    }
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let (letters, len) = (2 + rng.below(70), 1 + rng.below(4));
        let keys = made(2000, |_| {
            let mut key: Vec<u8> = (0..rng.below(len) + 1)
                .map(|_| rng.below(letters) as u8)
                .collect();
            if rng.below(20) == 0 {
                key.push(200);
            }
            key
        });
        let mut rng = Rng::new(seed);
        check(&format!("seed {seed}"), &keys, &mut rng);
    }
}

#[test]
fn keys_of_another_shape_later_on_get_a_template_of_their_own() {
    let mut rng = Rng::new(5);
    let keys = sorted(
        [
            made(20_000, |n| format!("a{n:09}").into_bytes()),
            made(30_000, |n| {
                format!("b|{n}|{}", rng.below(1000)).into_bytes()
            }),
        ]
        .concat(),
    );
    let (blocks, tail) = build(&keys);
    let bytes = blocks.len() + tail.len();
    assert!(bytes < keys.len() * 3, "{bytes} bytes");
    let index = KeyIndex::open(blocks, &tail).unwrap();
    assert!(index.describe().len() >= 2, "{:?}", index.describe());
    check("two shapes", &keys, &mut rng);
}

#[test]
fn keys_of_columns_take_little_more_than_their_information() {
    let mut rng = Rng::new(6);
    // Of each 32 order numbers eight are used, each with about four lines.
    let keys = made(40_000, |n| {
        let order = 500_000_000 + n / 32 * 32 + (n / 4) % 8;
        let (part, supplier) = (rng.below(30_000_000), rng.below(1_500_000));
        format!("{order}|{part}|{supplier}|{}", 1 + n % 4).into_bytes()
    });
    let (blocks, tail) = build(&keys);
    let bits = (blocks.len() + tail.len()) * 8 / keys.len();
    assert!(bits <= 57, "{bits} bits a key");
}

#[test]
fn runs_of_more_digits_than_a_number_has_are_columns_too() {
    let mut rng = Rng::new(7);
    let keys = made(40_000, |n| {
        let (part, supplier) = (rng.below(30_000_000), rng.below(1_500_000));
        format!(
            "{}{part}{supplier}",
            500_000_000 + n / 32 * 32 + (n / 4) % 8
        )
        .into_bytes()
    });
    let (blocks, tail) = build(&keys);
    let bits = (blocks.len() + tail.len()) * 8 / keys.len();
    assert!(bits <= 60, "{bits} bits a key");
}

#[test]
fn keys_that_do_not_ascend_are_refused() {
    let mut builder = KeyIndexBuilder::new();
    builder.add(b"b").unwrap();
    assert!(builder.add(b"b").is_err());
    assert!(builder.add(b"a").is_err());
    builder.add(b"b\0").unwrap();
}

#[test]
fn forged_bytes_do_no_harm() {
    let mut rng = Rng::new(9);
    for (name, keys) in shapes(&mut rng, 300) {
        let (blocks, tail) = build(&keys);
        for _ in 0..60 {
            let (mut blocks, mut tail) = (blocks.clone(), tail.clone());
            for _ in 0..1 + rng.below(3) {
                let bytes = if rng.one_in(3) {
                    &mut tail
                } else {
                    &mut blocks
                };
                let at = rng.below(bytes.len() as u64) as usize;
                match rng.below(4) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes[at] = rng.below(256) as u8,
                    2 => bytes[at] ^= 1 << rng.below(8),
                    _ => bytes[at] = 0xFF,
                }
            }
            let Ok(index) = KeyIndex::open(blocks, &tail) else {
                continue;
            };
            drop(index.verify());
            for key in keys.iter().step_by(17) {
                let near = neighbour(&mut rng, key);
                let found = index.get(&near);
                assert!(found.is_none_or(|rank| rank < index.len()), "{name}");
                assert!(index.seek(&near) <= index.len(), "{name}");
                index.get(key);
            }
        }
    }
}

/// Each block claims that its first key goes on to the end of all blocks. A key has at most its own block's
/// bytes, so that opening an index takes time in proportion to its bytes.
#[test]
fn a_key_does_not_go_on_behind_its_block() {
    let blocks_count = 2000u64;
    let mut tail = Vec::new();
    drumlin_base::coding::put_varint64(&mut tail, blocks_count * 64);
    // One plan: texts, every letter of eight bits.
    tail.extend([1, 0]);
    tail.extend([0x88; 128]);
    // Of the first plan, no prefix, nothing shared, 2^35 bits for each key.
    let block = [0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0, b'k', b'k'];
    tail.extend((0..blocks_count).map(|_| block.len() as u8));
    let bytes = block.repeat(blocks_count as usize);
    let index = KeyIndex::open(bytes.clone(), &tail).expect("lengths are right");
    let (mut key, mut total) = (Vec::new(), 0);
    for rank in 0..index.len() {
        key.clear();
        assert!(index.key(rank, &mut key));
        total += key.len();
    }
    assert!(total <= bytes.len(), "{total} bytes of keys");
    assert!(index.verify().is_err());
    // A block of no bytes is none.
    let mut shorter = tail.clone();
    let at = shorter.len() - 2;
    shorter[at..].copy_from_slice(&[0, 2 * block.len() as u8]);
    assert!(KeyIndex::open(bytes, &shorter).is_err());
}
