//! Goal: many keys looked up together in a searchable table give the results of single lookups, and unanswered
//! keys are distinguished from absent ones. Method: random tables, of which few or all pages are cached;
//! present and absent keys, as readers at any sequence number see them.

use std::ops::ControlFlow;
use std::sync::Arc;

use drumlin_base::key::{internal_key, user_key};
use drumlin_base::rng::Rng;
use drumlin_base::{KeyOrder, PinnedSlice, SEQNO_MAX, SeqNo, ValueKind};
use drumlin_table::{Hint, TOGETHER_MAX, Table, TableFormat, TableReadOptions, TableWriterOptions};

use crate::common::{Bytes, Entries, reader_options, write};

type Found = Option<(SeqNo, ValueKind, Vec<u8>)>;

/// Rows of any length; each `every`th has versions.
fn entries(rng: &mut Rng, every: u64) -> Entries {
    let mut entries = Entries::new();
    for n in 0..900 {
        let key = format!("{:08}{}", n * 7, n % 4).into_bytes();
        let words_max = if rng.one_in(50) { 900 } else { 30 };
        let text = "till and drumlins ".repeat(rng.below(words_max) as usize);
        let value = format!("{}|{text}|{}", rng.below(50), rng.next_u64()).into_bytes();
        if every > 0 && n % every == 0 {
            entries.push((internal_key(&key, n + 9, ValueKind::Value), b"new".to_vec()));
            entries.push((internal_key(&key, n + 5, ValueKind::Deletion), Vec::new()));
        }
        entries.push((internal_key(&key, 0, ValueKind::Value), value));
    }
    entries
}

fn alone(table: &Table, key: &[u8], seqno: SeqNo) -> Found {
    let mut found = None;
    let visit = |seqno, kind, value: drumlin_table::TableValue<'_>| {
        found = Some((seqno, kind, value.bytes().to_vec()));
        ControlFlow::Break(())
    };
    let options = TableReadOptions::default();
    table.get(key, seqno, &options, visit).expect("sound");
    found
}

/// The answers that came together; `None` for keys left to lookups of their own.
fn together(table: &Table, keys: &[&[u8]], seqno: SeqNo) -> Vec<Option<Found>> {
    let mut hints = vec![Hint::default(); keys.len()];
    let mut values: Vec<Option<(SeqNo, ValueKind, PinnedSlice)>> =
        keys.iter().map(|_| None).collect();
    let is_done = table.get_together(keys, &mut hints, seqno, |at, seqno, kind, value| {
        assert!(values[at].is_none(), "one version of a key");
        values[at] = Some((seqno, kind, value.pin()));
    });
    assert!(is_done);
    let answers = hints.iter().zip(values);
    let answer = |(hint, value): (&Hint, Option<(SeqNo, ValueKind, PinnedSlice)>)| {
        assert_eq!(hint.is_settled() && !hint.is_absent(), value.is_some());
        hint.is_settled()
            .then(|| value.map(|(seqno, kind, value)| (seqno, kind, value.to_vec())))
    };
    answers.map(answer).collect()
}

#[test]
fn keys_looked_up_together_give_what_each_gives_alone() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let every = [0, 1, 7][seed as usize % 3];
        let entries = entries(&mut rng, every);
        let options = TableWriterOptions {
            format: TableFormat::Searchable,
            ..TableWriterOptions::default()
        };
        // All pages fit, or a few.
        let cache_bytes = if seed < 6 { 64 << 20 } else { 40 << 10 };
        let file = Bytes {
            bytes: write(options, &entries),
            ..Bytes::default()
        };
        let reader = reader_options(&KeyOrder::Bytewise, cache_bytes);
        let table = Table::open(Arc::new(file), reader).expect("sound");
        let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| user_key(key)).collect();
        let (mut answered, mut asked) = (0, 0);
        for _ in 0..150 {
            let count = 1 + rng.below(TOGETHER_MAX as u64) as usize;
            let wanted: Vec<Vec<u8>> = (0..count)
                .map(|_| {
                    let mut key = keys[rng.below(keys.len() as u64) as usize].to_vec();
                    if rng.one_in(4) {
                        key.push(b'x');
                    }
                    key
                })
                .collect();
            let wanted: Vec<&[u8]> = wanted.iter().map(Vec::as_slice).collect();
            let seqno = if rng.one_in(3) {
                rng.below(900)
            } else {
                SEQNO_MAX
            };
            let answers = together(&table, &wanted, seqno);
            for (key, answer) in wanted.iter().zip(answers) {
                let expected = alone(&table, key, seqno);
                asked += 1;
                if let Some(answer) = answer {
                    answered += 1;
                    assert_eq!(answer, expected, "seed {seed}, {}", key.escape_ascii());
                }
            }
        }
        // Lists of versions are never answered here; the rest is once its page is cached.
        assert!(answered * 5 > asked, "seed {seed}: {answered} of {asked}");
        assert!(
            every > 0 || seed >= 6 || answered * 10 > asked * 7,
            "seed {seed}: {answered}"
        );
    }
}
