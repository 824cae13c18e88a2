//! Goal: every record comes back under a model trained on any sample, and damage is refused. Method:
//! seeded records of several kinds; every model reads the codes of every other kind of record.

use std::sync::Arc;

use super::form::Form;
use super::*;
use drumlin_base::rng::Rng;

const WORDS: [&str; 12] = [
    "moraine", "esker", "till", "drumlin", "ice", "kame", "outwash", "kettle", "striae", "varve",
    "loess", "erratic",
];

fn words(rng: &mut Rng, count: u64) -> String {
    let mut text = String::new();
    for _ in 0..count {
        text.push_str(WORDS[rng.below(WORDS.len() as u64) as usize]);
        text.push(' ');
    }
    text
}

fn pool(seed: u64) -> String {
    words(&mut Rng::new(seed), 4000)
}

/// Records of one kind.
fn records(kind: &str, count: usize, rng: &mut Rng) -> Vec<Vec<u8>> {
    let pool = pool(99);
    let record = |_| -> Vec<u8> {
        let (n, day) = (rng.below(100_000), 1 + rng.below(28));
        match kind {
            "noise" => {
                let mut noise = vec![0; rng.below(100) as usize];
                rng.fill(&mut noise);
                noise
            }
            "delimited" => {
                let comment_words = rng.below(30);
                let comment = words(rng, comment_words);
                format!("{n}|1996-03-{day:02}|{}.5|{comment}", n * 3).into_bytes()
            }
            "pool" => {
                let at = rng.below(pool.len() as u64 - 900) as usize;
                let len = 300 + rng.below(500) as usize;
                format!("{n}|{}", &pool[at..at + len]).into_bytes()
            }
            "json" => {
                let (name, note) = (words(rng, 2), words(rng, 10));
                format!("{{\"id\":{n},\"name\":\"{name}\",\"ok\":true,\"note\":\"{note}\"}}")
                    .into_bytes()
            }
            "struct" => {
                let mut record = (1 << 40 | n).to_le_bytes().to_vec();
                record.extend_from_slice(&(day as u16).to_be_bytes());
                record
            }
            "documents" => {
                let note = words(rng, 5);
                let mut elements = b"\x10n\0".to_vec();
                elements.extend_from_slice(&(n as u32).to_le_bytes());
                elements.extend_from_slice(b"\x09at\0");
                elements.extend_from_slice(&(1_700_000_000_000 + day * 86_400_000).to_le_bytes());
                elements.extend_from_slice(b"\x02note\0");
                elements.extend_from_slice(&(note.len() as u32 + 1).to_le_bytes());
                elements.extend_from_slice(note.as_bytes());
                elements.push(0);
                let len = elements.len() as u32 + 5;
                [&len.to_le_bytes(), elements.as_slice(), &[0]].concat()
            }
            "large" => {
                let count = 1 + rng.below(200);
                words(rng, count * 30).into_bytes()
            }
            _ => {
                let words_max = rng.below(80);
                words(rng, words_max).into_bytes()
            }
        }
    };
    (0..count).map(record).collect()
}

const KINDS: [&str; 8] = [
    "documents",
    "noise",
    "delimited",
    "pool",
    "json",
    "text",
    "large",
    "struct",
];

fn trained(kind: &str, effort: Effort) -> Arc<Model> {
    let count = if kind == "large" { 60 } else { 700 };
    let sample = records(kind, count, &mut Rng::new(1));
    let sample: Vec<&[u8]> = sample.iter().map(Vec::as_slice).collect();
    Arc::new(Model::train(&sample, effort))
}

#[test]
fn every_record_comes_back_under_every_model() {
    for effort in [Effort::Fast, Effort::Small] {
        for trained_on in KINDS {
            let model = trained(trained_on, effort);
            let read = Model::from_bytes(&model.to_bytes()).expect("its own bytes");
            assert_eq!(read.id(), model.id());
            let mut encoder = Encoder::new(Arc::clone(&model));
            for kind in KINDS {
                let count = if kind == "large" { 10 } else { 100 };
                let records = records(kind, count, &mut Rng::new(2));
                let codes: Vec<Vec<u8>> = records
                    .iter()
                    .map(|record| {
                        let mut code = Vec::new();
                        encoder.encode(record, &mut code);
                        assert!(code.len() <= record.len() + 1);
                        code
                    })
                    .collect();
                let codes: Vec<&[u8]> = codes.iter().map(Vec::as_slice).collect();
                let (mut out, mut ends) = (Vec::new(), Vec::new());
                read.decode_batch(&codes, &mut out, &mut ends)
                    .expect("sound");
                assert_eq!(out, records.concat(), "{kind} under {trained_on}");
                assert_eq!(ends.len(), records.len());
            }
        }
    }
}

#[test]
fn models_save_what_their_sample_promises() {
    for (kind, ratio) in [
        ("documents", 6.0),
        ("noise", 0.95),
        ("delimited", 5.0),
        ("pool", 50.0),
        ("json", 5.0),
        ("struct", 3.0),
        ("text", 6.0),
    ] {
        let model = trained(kind, Effort::Small);
        let mut encoder = Encoder::new(Arc::clone(&model));
        let records = records(kind, 300, &mut Rng::new(3));
        let mut codes = Vec::new();
        records
            .iter()
            .for_each(|record| encoder.encode(record, &mut codes));
        let found = records.concat().len() as f64 / codes.len() as f64;
        assert!(found >= ratio, "{kind}: {found} with\n{}", model.describe());
    }
}

#[test]
fn damaged_codes_are_refused_or_stay_within_their_bound() {
    for kind in KINDS {
        let model = trained(kind, Effort::Small);
        let mut encoder = Encoder::new(Arc::clone(&model));
        let mut rng = Rng::new(4);
        let count = if kind == "large" { 20 } else { 200 };
        for record in records(kind, count, &mut Rng::new(5)) {
            let mut code = Vec::new();
            encoder.encode(&record, &mut code);
            for _ in 0..10 {
                let mut damaged = code.clone();
                let at = rng.below(damaged.len() as u64) as usize;
                damaged[at] = rng.next_u64() as u8;
                damaged.truncate(rng.below(damaged.len() as u64 + 1) as usize);
                let mut out = b"kept".to_vec();
                match model.decode(&damaged, &mut out) {
                    Ok(()) => assert!(out.len() <= 4 + EXPANSION_MAX * damaged.len()),
                    Err(_) => assert_eq!(out, b"kept"),
                }
            }
        }
    }
}

#[test]
fn the_same_sample_gives_the_same_model() {
    for kind in KINDS {
        let (one, two) = (trained(kind, Effort::Small), trained(kind, Effort::Small));
        assert_eq!(one.id(), two.id(), "{kind}");
    }
}

#[test]
fn an_empty_sample_gives_the_raw_model() {
    let model = Model::train(&[], Effort::Small);
    assert_eq!(model.id(), Model::raw().id());
    let model = Model::train(&[b"", b"", b""], Effort::Small);
    assert_eq!(model.id(), Model::raw().id());
}

#[test]
fn describe_names_what_was_learned() {
    let text = trained("pool", Effort::Small).describe();
    assert!(text.contains("one piece of the dictionary"), "{text}");
    assert!(
        trained("json", Effort::Small)
            .describe()
            .contains("integer")
    );
}

/// A document of one shape, with every type that a template can have; which columns they get, `kind` says.
fn document_of_all_types(kind: u64, rng: &mut Rng) -> Vec<u8> {
    fn element(bson: u8, name: &str, value: &[u8]) -> Vec<u8> {
        [&[bson], name.as_bytes(), &[0], value].concat()
    }
    fn closed(elements: &[u8]) -> Vec<u8> {
        let len = elements.len() as u32 + 5;
        [&len.to_le_bytes(), elements, &[0]].concat()
    }
    fn string(text: &str) -> Vec<u8> {
        [
            &(text.len() as u32 + 1).to_le_bytes(),
            text.as_bytes(),
            &[0],
        ]
        .concat()
    }
    let few = |rng: &mut Rng| [7, 40_000, -90_000_000][rng.below(3) as usize];
    let number = match kind {
        0 => rng.below(5000) as i64 - 100,
        1 => few(rng),
        _ => 17,
    };
    let millis = match kind {
        0 => rng.below(100_000_000) as i64,
        1 => few(rng) * 1000,
        _ => number * 1000 + 5,
    };
    let double = match kind {
        0 => rng.below(1_000_000) as f64 / 100.0,
        1 => few(rng) as f64 / 8.0,
        _ => rng.below(1 << 56) as f64 / 100.0,
    };
    let name = match kind {
        0 => format!("no-{:06}", rng.below(1_000_000)),
        1 => WORDS[rng.below(4) as usize].to_owned(),
        _ => words(rng, 5),
    };
    let mut id = ((1_700_000_000 + number) as u32).to_be_bytes().to_vec();
    id.extend_from_slice(&[
        0xA1,
        2,
        3,
        4,
        if kind == 1 { rng.below(3) as u8 } else { 5 },
    ]);
    id.extend_from_slice(&[0, rng.below(200) as u8, 9]);
    let inner = [
        element(0x10, "0", &(number as i32).to_le_bytes()),
        element(0x02, "1", &string(&name)),
        element(0x0A, "2", b""),
    ];
    let elements = [
        element(0x07, "_id", &id),
        element(0x10, "i", &(number as i32).to_le_bytes()),
        element(0x12, "l", &number.wrapping_mul(1 << 33).to_le_bytes()),
        element(0x01, "d", &double.to_le_bytes()),
        element(0x09, "t", &millis.to_le_bytes()),
        element(0x08, "b", &[rng.below(2) as u8]),
        element(0x02, "s", &string(&name)),
        element(0x02, "e", &string("")),
        element(0x04, "a", &closed(&inner.concat())),
        element(
            0x03,
            "o",
            &closed(&element(0x02, "in", &string(&words(rng, 2)))),
        ),
    ];
    let elements = elements.concat();
    match kind {
        0 => closed(&elements),
        1 => [&[0x41], elements.as_slice(), &[0]].concat(),
        _ => [&[0x7C], closed(&elements).as_slice()].concat(),
    }
}

/// What a template makes of a code without the text in between is what the text says.
#[test]
fn documents_of_templates_are_those_of_their_texts() {
    let mut rng = Rng::new(7);
    for kind in 0..3 {
        let records: Vec<_> = (0..900)
            .map(|_| document_of_all_types(kind, &mut rng))
            .collect();
        let sample: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let model = Arc::new(Model::train(&sample, Effort::Small));
        assert!(model.is_of_documents());
        let mut encoder = Encoder::new(Arc::clone(&model));
        let mut at_once = 0;
        for record in &records {
            let mut code = Vec::new();
            encoder.encode(record, &mut code);
            for damaged in 0..4 {
                if damaged > 0 {
                    let at = rng.below(code.len() as u64) as usize;
                    code[at] ^= 1 << rng.below(8);
                }
                let form = model.form_of(&code);
                let Some(Form::Template(template)) = form.and_then(|form| model.forms().get(form))
                else {
                    continue;
                };
                at_once += usize::from(damaged == 0 && template.has_documents());
                let bits = crate::bits::Bits::new(&code);
                let (mut text, bytes_max) = (Vec::new(), code.len() * EXPANSION_MAX);
                let mut sink = crate::text::Sink::new(&mut text, 0, bytes_max);
                let naive = template
                    .decode(&bits, form.unwrap_or(0) + 1, model.text(), &mut sink)
                    .and_then(|()| sink.finish())
                    .and_then(|()| {
                        let mut out = Vec::new();
                        crate::documents::read(&text, bytes_max, &mut out).map(|()| out)
                    });
                let mut out = Vec::new();
                match (model.decode(&code, &mut out), naive) {
                    (Ok(()), Ok(naive)) => assert_eq!(out, naive),
                    (Err(_), Err(_)) => assert!(damaged > 0),
                    // A text that damage broke into another's place is told by its end alone.
                    (found, naive) => assert!(damaged > 0 && naive.is_err(), "{found:?} {naive:?}"),
                }
            }
        }
        assert!(
            at_once * 10 >= records.len() * 8,
            "{at_once} of kind {kind}\n{}",
            model.describe()
        );
    }
}
