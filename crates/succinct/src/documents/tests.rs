//! Goal: what is spelled is read back to the byte, and text that spells nothing is refused. Method: documents of every type by
//! hand, seeded random ones with everything in them, and both damaged.

use drumlin_base::rng::Rng;

use super::*;

/// A document of `elements`.
fn document(elements: &[u8]) -> Vec<u8> {
    let mut bytes = (elements.len() as u32 + 5).to_le_bytes().to_vec();
    bytes.extend_from_slice(elements);
    bytes.push(0);
    bytes
}

fn element(bson: u8, name: &str, value: &[u8]) -> Vec<u8> {
    [&[bson], name.as_bytes(), &[0], value].concat()
}

fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32 + 1).to_le_bytes(), text, &[0]].concat()
}

fn spelled(record: &[u8]) -> Option<Vec<u8>> {
    let mut spelled = Spelled::default();
    let is_document = spelled.spell(record);
    is_document.then(|| spelled.text().to_vec())
}

fn back(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = b"kept".to_vec();
    let outcome = read(text, usize::MAX, &mut out);
    outcome.ok().map(|()| out.split_off(4))
}

#[test]
fn every_type_is_spelled_so() {
    let cases: [(u8, Vec<u8>, &str); 17] = [
        (bson::DOUBLE, 12.5f64.to_le_bytes().to_vec(), "d 12.50."),
        (
            bson::DOUBLE,
            (-0.125f64).to_le_bytes().to_vec(),
            "d -0.125.",
        ),
        (bson::DOUBLE, (-0.0f64).to_le_bytes().to_vec(), "d -0.00."),
        (
            bson::DOUBLE,
            1e300f64.to_le_bytes().to_vec(),
            "D 7e37e43c8800759c.",
        ),
        (
            bson::DOUBLE,
            f64::NAN.to_le_bytes().to_vec(),
            "D 7ff8000000000000.",
        ),
        (bson::STRING, string(b"esker"), "s esker."),
        (bson::STRING, string(b""), "s ."),
        (bson::STRING, string(b"a\x1Fb"), "S 3.a.b."),
        (
            bson::BINARY,
            b"\x02\0\0\0\x04\x1F\x00".to_vec(),
            "x 4.2.. .",
        ),
        (
            bson::OBJECT_ID,
            b"\x65\x53\xF1\x00\x01\x02\x03\x04\x05\0\x01\0".to_vec(),
            "o 1700000000.0102030405.256.",
        ),
        (bson::BOOL, vec![1], "b 1."),
        (bson::DATE, (-1i64).to_le_bytes().to_vec(), "t -1.999."),
        (bson::NULL, vec![], "n "),
        (bson::INT32, (-7i32).to_le_bytes().to_vec(), "i -7."),
        (
            bson::INT64,
            i64::MIN.to_le_bytes().to_vec(),
            "l -9223372036854775808.",
        ),
        (bson::TIMESTAMP, b"\x03\0\0\0\x01\0\0\0".to_vec(), "m 1.3."),
        (
            bson::DOCUMENT,
            document(&element(bson::NULL, "in", b"")),
            "{ nin }",
        ),
    ];
    for (bson, value, text) in cases {
        let record = document(&element(bson, "", &value));
        let found = spelled(&record).expect("all types");
        let readable: String = found
            .iter()
            .map(|&byte| match byte {
                NAME_END => ' ',
                VALUE_END => '.',
                byte => char::from(byte),
            })
            .collect();
        assert_eq!(readable, format!("a{text}}}"));
        assert_eq!(back(&found), Some(record));
    }
}

#[test]
fn what_stands_around_a_document_is_told() {
    let elements = element(bson::ARRAY, "a", &document(&element(bson::BOOL, "0", &[0])));
    let whole = document(&elements);
    let behind = [&[0x7C], whole.as_slice()].concat();
    let bare = [&[0xC1], elements.as_slice(), &[0]].concat();
    for (record, text) in [
        (whole, &b"a[a\0b0\x1F]}"[..]),
        (behind, b"b7c[a\0b0\x1F]}"),
        (bare, b"cc1[a\0b0\x1F]}"),
    ] {
        assert_eq!(spelled(&record).as_deref(), Some(text));
        assert_eq!(back(text), Some(record));
    }
}

#[test]
fn what_cannot_be_spelled_is_left_alone() {
    let odd_array = document(&element(bson::NULL, "01", b""));
    for record in [
        b"".to_vec(),
        b"text".to_vec(),
        vec![0; 40],
        [document(b"").as_slice(), b"more"].concat(),
        document(&element(0x13, "decimal", &[0; 16])),
        document(&element(bson::BOOL, "b", &[2])),
        document(&element(bson::STRING, "s", &[0; 4])),
        document(&element(bson::ARRAY, "a", &odd_array)),
        (0..70).fold(document(b""), |inner, _| {
            document(&element(bson::DOCUMENT, "d", &inner))
        }),
    ] {
        assert_eq!(spelled(&record), None, "{}", record.escape_ascii());
    }
}

/// Elements of a document or array, as deep as `depth` says.
fn elements(rng: &mut Rng, depth: u64, is_array: bool) -> Vec<u8> {
    let mut all = Vec::new();
    for place in 0..rng.below(13) {
        let name = match is_array {
            true => place.to_string(),
            false => ["", "n", "city", "a.b", "\u{1F}"][rng.below(5) as usize].to_owned(),
        };
        let deep = if depth > 0 { 12 } else { 10 };
        let (bson, value) = match rng.below(deep) {
            0 => (
                bson::DOUBLE,
                (rng.below(100_000) as f64 / 100.0).to_le_bytes().to_vec(),
            ),
            1 => (bson::DOUBLE, rng.next_u64().to_le_bytes().to_vec()),
            2 => {
                let mut text = vec![0; rng.below(20) as usize];
                rng.fill(&mut text);
                (bson::STRING, string(&text))
            }
            3 => {
                let mut bytes = vec![0; 5 + rng.below(20) as usize];
                rng.fill(&mut bytes);
                let len = bytes.len() as u32 - 5;
                bytes[..4].copy_from_slice(&len.to_le_bytes());
                (bson::BINARY, bytes)
            }
            4 => (
                bson::OBJECT_ID,
                (0..12).map(|_| rng.next_u64() as u8).collect(),
            ),
            5 => (bson::BOOL, vec![rng.below(2) as u8]),
            6 => (
                bson::DATE,
                (rng.next_u64() as i64 >> rng.below(64))
                    .to_le_bytes()
                    .to_vec(),
            ),
            7 => (
                bson::INT32,
                (rng.next_u64() as i32 >> rng.below(32))
                    .to_le_bytes()
                    .to_vec(),
            ),
            8 => (
                bson::INT64,
                (rng.next_u64() as i64 >> rng.below(64))
                    .to_le_bytes()
                    .to_vec(),
            ),
            9 => (bson::TIMESTAMP, rng.next_u64().to_le_bytes().to_vec()),
            10 => (bson::DOCUMENT, document(&elements(rng, depth - 1, false))),
            _ => (bson::ARRAY, document(&elements(rng, depth - 1, true))),
        };
        all.extend(element(bson, &name, &value));
    }
    all
}

#[test]
fn random_documents_come_back_and_damage_is_refused_or_bounded() {
    let mut rng = Rng::new(5);
    for _ in 0..3000 {
        let record = document(&elements(&mut rng, 3, false));
        let text = spelled(&record).expect("a document of such types");
        assert!(text.len() <= TEXT_FACTOR * record.len() + TEXT_BYTES_MORE);
        assert_eq!(back(&text).as_deref(), Some(record.as_slice()));
        let mut out = Vec::new();
        assert!(read(&text, record.len(), &mut out).is_ok());
        assert!(read(&text, record.len() - 1, &mut Vec::new()).is_err());
        for _ in 0..5 {
            let (mut text, mut record) = (text.clone(), record.clone());
            for bytes in [&mut text, &mut record] {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            let mut out = Vec::new();
            // Any outcome but a panic, and never more than it may take.
            let _ = read(&text, 100, &mut out);
            assert!(out.len() <= 100);
            if let Some(text) = spelled(&record) {
                assert_eq!(back(&text), Some(record));
            }
        }
    }
}

#[test]
fn doubles_are_read_as_the_standard_library_reads_them() {
    let mut rng = Rng::new(6);
    for _ in 0..50_000 {
        let number = rng.next_u64() >> rng.below(64);
        let mut digits = number.to_string();
        digits.truncate(1 + rng.below(17) as usize);
        digits.insert(1 + rng.below(digits.len() as u64) as usize, '.');
        if rng.one_in(2) {
            digits.insert(0, '-');
        }
        let expected: Option<f64> = digits.parse().ok();
        let found = double(digits.as_bytes());
        assert_eq!(
            found.map(f64::to_bits),
            expected.map(f64::to_bits),
            "{digits}"
        );
    }
    for text in [
        "", "-", ".", "-.", "1.2.3", "1x", "0x1", "inf", "NaN", "1e5",
    ] {
        assert_eq!(double(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_shape_is_what_lies_between_the_values() {
    let record = document(
        &[
            element(bson::INT32, "n", &[7, 0, 0, 0]),
            element(bson::BOOL, "ok", &[1]),
        ]
        .concat(),
    );
    let mut of = Spelled::default();
    assert!(of.spell(&record));
    let literals = [&b"ain\0"[..], b"\x1Fbok\0", b"\x1F}"].map(<[u8]>::to_vec);
    assert_eq!(of.shape(64), Some(literals.to_vec()));
    assert!(of.spell(&document(b"")) && of.shape(64).is_none());
}
