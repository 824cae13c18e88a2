//! Goal: visits from a place meet what a cursor meets there, and a place of another table is refused or harmless.
//! Method: random tables of many layouts, walked by a cursor that tells the places.

use drumlin_base::key::split_internal;
use drumlin_base::rng::Rng;
use drumlin_base::{Error, InternalIterator, KeyOrder, Result};
use drumlin_table::{
    BlockTable, Codec, Compression, Place, Table, TableReadOptions, TableWriterOptions,
};

use crate::common::{open, random_entries, write};

/// An entry as a cursor met it: its place, user key, kind, and bytes of user key and value.
struct Met {
    place: Option<Place>,
    user_key: Vec<u8>,
    kind: u8,
    bytes: u64,
}

fn random_table(rng: &mut Rng) -> std::sync::Arc<Table> {
    let options = TableWriterOptions {
        block_bytes: 1 << (4 + rng.below(9)),
        restart_interval: 1 + rng.below(20) as usize,
        compression: Compression::new([Codec::None, Codec::Lz4][rng.below(2) as usize]),
        partition_index_above_bytes: 0,
        expected_bytes: rng.below(2),
        ..TableWriterOptions::default()
    };
    let count = 1 + rng.below(400);
    let entries = random_entries(rng, &KeyOrder::Bytewise, count);
    open(&KeyOrder::Bytewise, write(options, &entries)).unwrap()
}

fn walk(table: &Table) -> Vec<Met> {
    let mut cursor = table.iter(TableReadOptions::default());
    let mut met = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        let (user_key, tag) = split_internal(cursor.key()).unwrap();
        met.push(Met {
            place: cursor.place(),
            user_key: user_key.to_vec(),
            kind: tag as u8,
            bytes: (user_key.len() + cursor.value().len()) as u64,
        });
        cursor.next();
    }
    assert!(cursor.status().is_ok() && cursor.place().is_none());
    met
}

fn visit(table: &BlockTable, from: &Met, user_key: &[u8]) -> Result<Vec<(u8, u64)>> {
    let mut visited = Vec::new();
    let place = from.place.ok_or(Error::corruption("no place"))?;
    table.prefetch(place);
    table.visit_before(place, &from.user_key, user_key, |kind, bytes| {
        visited.push((kind, bytes));
    })?;
    Ok(visited)
}

#[test]
fn visits_meet_what_a_cursor_meets_up_to_the_end_of_the_block() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let table = random_table(&mut rng);
        let Table::Block(blocks) = &*table else {
            panic!("the usual format is block-based");
        };
        let met = walk(&table);
        for (at, from) in met.iter().enumerate().filter(|(_, it)| it.place.is_some()) {
            let bound = &met[at + rng.below((met.len() - at) as u64) as usize];
            let mut bound = bound.user_key.clone();
            match rng.below(3) {
                0 => bound.push(rng.below(3) as u8 * 127),
                1 => bound.truncate(bound.len().saturating_sub(1)),
                _ => {}
            }
            if bound <= from.user_key {
                continue;
            }
            // Without a place are only entries that take over bytes of the one before, in one block.
            let is_beside = |it: &&Met| {
                it.place
                    .is_none_or(|it| it.is_in_block_of(from.place.unwrap()))
            };
            let expected: Vec<_> = met[at..]
                .iter()
                .take_while(is_beside)
                .filter(|it| it.user_key < bound)
                .map(|it| (it.kind, it.bytes))
                .collect();
            let visited = visit(blocks, from, &bound).unwrap();
            assert_eq!(visited, expected, "seed {seed}, entry {at}, {bound:?}");
        }
    }
}

#[test]
fn a_place_without_its_entry_is_refused() {
    let mut refused = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let (table, other) = (random_table(&mut rng), random_table(&mut rng));
        let Table::Block(blocks) = &*table else {
            panic!("the usual format is block-based");
        };
        for from in &walk(&other) {
            let mut bound = from.user_key.clone();
            bound.push(0);
            match visit(blocks, from, &bound) {
                Ok(visited) => assert!(!visited.is_empty()),
                Err(error) => {
                    assert!(error.is_corruption(), "{error}");
                    refused += 1;
                }
            }
        }
        for from in walk(&table).iter().filter(|it| it.place.is_some()) {
            let lied = Met {
                user_key: [&from.user_key[..], b"x"].concat(),
                ..*from
            };
            let error = visit(blocks, &lied, &[0xFF; 400]).unwrap_err();
            assert!(error.is_corruption(), "{error}");
        }
    }
    assert!(refused > 1000, "{refused}");
}
