//! Goal: bytes of keys sort as values do, and give them back. Method: random values of all types, and numbers that are close
//! to each other in different types, compared pair by pair.

use std::sync::LazyLock;

use drumlin_base::rng::Rng;
use drumlin_doc::keystring::{self, BEHIND};
use drumlin_doc::{Builder, Document, Kind, OwnedValue, Sort, compare};

use crate::json::doc;

/// A decimal of a coefficient and a power of ten.
fn decimal(coefficient: i128, power: i32) -> OwnedValue {
    let biased = u128::try_from(power + 6176).expect("a power that there is");
    let sign = u128::from(coefficient < 0) << 127;
    let bits = sign | (biased << 113) | coefficient.unsigned_abs();
    OwnedValue {
        kind: Kind::Decimal,
        bytes: bits.to_le_bytes().to_vec(),
    }
}

static NUMBERS: LazyLock<Vec<OwnedValue>> = LazyLock::new(numbers);

fn numbers() -> Vec<OwnedValue> {
    let mut all = Vec::new();
    let whole = [
        0,
        1,
        2,
        127,
        128,
        255,
        256,
        1 << 31,
        1 << 53,
        (1 << 53) + 1,
        i64::MAX - 1,
        i64::MAX,
    ];
    for number in whole {
        for number in [number, -number, number.wrapping_neg().wrapping_sub(1)] {
            all.push(OwnedValue::int64(number));
            all.extend(i32::try_from(number).map(OwnedValue::int32));
            all.push(OwnedValue::double(number as f64));
            all.push(decimal(i128::from(number), 0));
        }
    }
    for number in [
        0.5,
        0.1,
        1.5,
        1e-300,
        5e-324,
        1e18 + 0.5,
        9.3e18,
        1e300,
        f64::MAX,
        f64::INFINITY,
    ] {
        all.push(OwnedValue::double(number));
        all.push(OwnedValue::double(-number));
    }
    all.push(OwnedValue::double(f64::NAN));
    for (coefficient, power) in [
        (1, -1),
        (5, -1),
        (15, -1),
        (1, -6176),
        (1, 6000),
        (10, 0),
        (1, 1),
        (93, 17),
        (127_999, -3),
    ] {
        all.push(decimal(coefficient, power));
        all.push(decimal(-coefficient, power));
    }
    all
}

fn random(rng: &mut Rng, depth: u32) -> OwnedValue {
    let numbers = &*NUMBERS;
    let texts = ["", "a", "b", "aa", "a\0", "a\0b", "a\u{1}"];
    let mut out = Builder::new();
    match rng.below(if depth > 2 { 9 } else { 11 }) {
        0 => return numbers[rng.below(numbers.len() as u64) as usize].clone(),
        1 => out.str("x", texts[rng.below(7) as usize]),
        2 => out.null("x"),
        3 => out.bool("x", rng.one_in(2)),
        4 => out.date("x", rng.below(5) as i64 - 2),
        5 => out.binary("x", rng.below(2) as u8, &[0; 3][..rng.below(4) as usize]),
        6 => {
            let bytes = [rng.below(3) as u8; 12];
            return OwnedValue {
                kind: Kind::ObjectId,
                bytes: bytes.to_vec(),
            };
        }
        7 => {
            let kinds = [Kind::MinKey, Kind::MaxKey, Kind::Undefined];
            return OwnedValue {
                kind: kinds[rng.below(3) as usize],
                bytes: Vec::new(),
            };
        }
        8 => {
            return OwnedValue {
                kind: Kind::Timestamp,
                bytes: rng.below(1 << 40).to_le_bytes().to_vec(),
            };
        }
        other => {
            out.open(
                if other == 9 {
                    Kind::Document
                } else {
                    Kind::Array
                },
                "x",
            );
            for at in 0..rng.below(3) {
                let name = if other == 9 {
                    ["p", "q", "pp"][rng.below(3) as usize].to_owned()
                } else {
                    at.to_string()
                };
                out.value(name, random(rng, depth + 1).get());
            }
            out.close()
        }
    };
    let bytes = out.finish();
    Document(&bytes)
        .get("x")
        .expect("it was written")
        .to_owned()
}

fn agree(a: &OwnedValue, b: &OwnedValue) {
    let order = compare(a.get(), b.get());
    let (key_a, key_b) = (keystring::key_of(a.get()), keystring::key_of(b.get()));
    assert_eq!(
        key_a.cmp(&key_b),
        order,
        "{a:?} and {b:?}: {key_a:?} and {key_b:?}"
    );
    let mut down = [Vec::new(), Vec::new()];
    keystring::append_descending(&mut down[0], a.get());
    keystring::append_descending(&mut down[1], b.get());
    assert_eq!(
        down[0].cmp(&down[1]),
        order.reverse(),
        "downwards, {a:?} and {b:?}"
    );
    assert!(
        order.is_eq() || !key_b.starts_with(&key_a),
        "no key begins another"
    );
    assert!(
        [&key_a, &down[0]]
            .iter()
            .all(|key| key[0] >= 10 && key[0] < BEHIND)
    );
    let (low, high) = keystring::class_bounds(a.kind);
    assert!((low..high).contains(&key_a[0]), "{a:?}");
}

#[test]
fn numbers_of_all_types_have_one_order() {
    let all = numbers();
    for a in &all {
        for b in &all {
            agree(a, b);
        }
    }
}

#[test]
fn keys_sort_as_values_do() {
    let mut rng = Rng::new(7);
    for _ in 0..100_000 {
        let (a, b) = (random(&mut rng, 0), random(&mut rng, 0));
        agree(&a, &b);
    }
}

#[test]
fn keys_of_several_fields_sort_field_by_field() {
    let mut rng = Rng::new(8);
    for _ in 0..20_000 {
        let values: Vec<_> = (0..4).map(|_| random(&mut rng, 1)).collect();
        let key = |a: &OwnedValue, b: &OwnedValue| {
            let mut key = keystring::key_of(a.get());
            keystring::append_descending(&mut key, b.get());
            key
        };
        let first = compare(values[0].get(), values[2].get());
        let order = first.then_with(|| compare(values[3].get(), values[1].get()));
        assert_eq!(
            key(&values[0], &values[1]).cmp(&key(&values[2], &values[3])),
            order,
            "{values:?}"
        );
    }
}

#[test]
fn keys_give_values_back() {
    let mut rng = Rng::new(9);
    let mut reversible = 0;
    for value in numbers()
        .into_iter()
        .chain((0..20_000).map(|_| random(&mut rng, 0)))
    {
        if keystring::is_reversible(value.get()) {
            reversible += 1;
            let key = keystring::key_of(value.get());
            assert_eq!(keystring::decode(value.kind, &key), Some(value));
        }
    }
    assert!(reversible > 5_000, "{reversible}");
}

#[test]
fn a_place_in_an_array_sorts_by_what_is_there() {
    let sort = Sort::new(Document(&doc(r#"{"c.0": 1}"#))).expect("an order");
    let ascending = [
        r#"{"c": []}"#,
        r#"{"c": 5}"#,
        r#"{"c": [{"1": 3}, {"x": 1}]}"#,
        r#"{"c": ["abc"]}"#,
        r#"{"c": ["x y", {"y": 2}, null]}"#,
        r#"{"c": [["z", 1]]}"#,
    ];
    let keys = ascending.map(|text| sort.key_of(Document(&doc(text))));
    assert_eq!(keys[0], keys[1], "nothing is there");
    // The place is a document, whatever else lies in it.
    assert!(keys[1] < keys[2]);
    assert!(keys[3] < keys[4]);
    // Of an array at the place the least element counts.
    assert!(keys[5] < keys[3], "1 is less than a text");
    let below = Sort::new(Document(&doc(r#"{"c.1.x": -1}"#))).expect("an order");
    let key = |text: &str| below.key_of(Document(&doc(text)));
    assert!(key(r#"{"c": [{"x": 9}, {"x": 2}]}"#) < key(r#"{"c": [{"x": 9}, {"x": 1}]}"#));
    assert!(key(r#"{"c": [0, {"x": 1}]}"#) < key(r#"{"c": [{"x": 9}]}"#));
}
