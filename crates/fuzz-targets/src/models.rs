//! Small models of every kind, with records they were trained on and codes of those.

use std::sync::Arc;

use drumlin_base::rng::Rng;
use drumlin_succinct::{Effort, Encoder, Model};
use drumlin_table::ModelFacts;

/// Words for records; few, so that models stay small.
const WORDS: [&str; 8] = [
    "moraine", "esker", "till", "drumlin", "ice", "kame", "outwash", "kettle",
];
const RECORDS: u64 = 300;

/// A model, its name, and records it knows.
pub(crate) type Known = (&'static str, Model, Vec<Vec<u8>>);

/// Models that together have every kind of form, column, text code and dictionary.
pub(crate) fn models() -> Vec<Known> {
    let mut rng = Rng::new(1);
    let pool = words(&mut rng, 900);
    let mut delimited = |rng: &mut Rng| {
        let (n, day, text) = (rng.below(50), 10 + rng.below(19), words(rng, 9));
        format!("{n}|-{}.50|1996-03-{day}|{:04}|MAIL|{text}", n * 7 + 1, n)
    };
    let mut pieces = |rng: &mut Rng| {
        let at = rng.below(pool.len() as u64 - 300) as usize;
        format!("{}|{}", rng.below(9), &pool[at..at + 200])
    };
    let mut json = |rng: &mut Rng| {
        let (name, note) = (words(rng, 1), words(rng, 5));
        format!(
            "{{\"n\":{},\"name\":\"{name}\",\"note\":\"{note}\"}}",
            rng.below(900)
        )
    };
    let mut large = |rng: &mut Rng| {
        let count = if rng.one_in(50) { 1500 } else { 12 };
        words(rng, count)
    };
    let mut layout = |rng: &mut Rng| {
        let letters = (0..16).map(|_| char::from(b'@' + rng.below(63) as u8));
        letters.collect()
    };
    vec![
        known("layout", Effort::Small, &mut rng, &mut layout),
        known("delimited", Effort::Small, &mut rng, &mut delimited),
        known("delimited-fast", Effort::Fast, &mut rng, &mut delimited),
        known("pieces", Effort::Small, &mut rng, &mut pieces),
        known("json", Effort::Small, &mut rng, &mut json),
        known("large", Effort::Small, &mut rng, &mut large),
        ("raw", Model::raw(), vec![b"as it is".to_vec()]),
        trained(
            "documents",
            Effort::Small,
            (0..RECORDS).map(|_| document(&mut rng)).collect(),
        ),
    ]
}

/// A BSON document of a number and a text.
fn document(rng: &mut Rng) -> Vec<u8> {
    let (number, text) = (rng.below(90) as u8, words(rng, 3));
    let len = text.len() as u8 + 1;
    let head = [
        len + 20,
        0,
        0,
        0,
        0x10,
        b'n',
        0,
        number,
        0,
        0,
        0,
        0x02,
        b't',
        0,
        len,
        0,
        0,
        0,
    ];
    let bytes = [&head, text.as_bytes(), &[0, 0]].concat();
    assert_eq!(bytes.len(), usize::from(len + 19));
    bytes
}

fn known(
    name: &'static str,
    effort: Effort,
    rng: &mut Rng,
    record: &mut dyn FnMut(&mut Rng) -> String,
) -> Known {
    let records = (0..RECORDS).map(|_| record(rng).into_bytes());
    trained(name, effort, records.collect())
}

fn trained(name: &'static str, effort: Effort, records: Vec<Vec<u8>>) -> Known {
    let sample: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    (name, Model::train(&sample, effort), records)
}

fn words(rng: &mut Rng, count: u64) -> String {
    let mut text = String::new();
    for _ in 0..count {
        text.push_str(WORDS[rng.below(WORDS.len() as u64) as usize]);
        text.push(' ');
    }
    text
}

fn facts(records: u64) -> ModelFacts {
    ModelFacts {
        effort: Effort::Small,
        sample_bytes: records * 50,
        judged_bytes: records,
        code_bytes: records / 2,
        data_bytes: 1 << 30,
    }
}

/// Inputs of the targets `model`, `model_file`, `record_code` and `spelled_document`: target, name, bytes.
pub(crate) fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let texts = [
        (
            "text",
            &b"aSs\x003\x1Fa\x1Fb\x1F{in\x00d1.50\x1F}b\x00x\x00}"[..],
        ),
        (
            "array",
            b"b7c[a\0ob\x001\x1F0102030405\x1F7\x1Ft9\x1F0\x1Fn]}",
        ),
        (
            "elements",
            b"cc1[a\0x4\x1F2\x1F\x1F\0\x1F]m\x001\x1F2\x1FD\x007ff8000000000000\x1F}",
        ),
    ];
    let text = |(name, text): (&str, &[u8])| ("spelled_document", name.to_owned(), text.to_vec());
    let mut seeds: Vec<_> = texts.into_iter().map(text).collect();
    let record = crate::mongo::all_types();
    seeds.push(("spelled_document", "record".to_owned(), record));
    seeds.push((
        "spelled_document",
        "small".to_owned(),
        document(&mut Rng::new(2)),
    ));
    for (number, (name, model, records)) in models().into_iter().enumerate() {
        let model = Arc::new(model);
        let bytes = model.to_bytes();
        let len = u16::try_from(bytes.len()).expect("models of small samples are small");
        let mut encoder = Encoder::new(model);
        for (index, record) in records.iter().take(3).enumerate() {
            let mut code = Vec::new();
            encoder.encode(record, &mut code);
            let input = [&len.to_le_bytes(), bytes.as_slice(), code.as_slice()].concat();
            if index == 0 {
                seeds.push(("model", name.to_owned(), input));
                let file = facts(records.len() as u64).encode(encoder.model());
                seeds.push(("model_file", name.to_owned(), file));
            }
            let input = [&[number as u8], code.as_slice()].concat();
            seeds.push(("record_code", format!("{name}-{index}"), input));
        }
    }
    seeds
}
