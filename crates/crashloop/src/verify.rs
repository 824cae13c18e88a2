//! The required content of the directory after a death.

use std::path::Path;
use std::time::Duration;

use drumlin::{Db, Env, ReadOptions};
use drumlin_testkit::model::{MergeRule, Model, Rows, Rules};

use crate::ledger::{Ledger, Mark, WRITERS};
use crate::options::options;
use crate::script::{FAMILIES, batch, decode, encode, known, newest};

/// The rows after the batches of every writer up to some number; goes on from the last check.
#[derive(Debug)]
pub(crate) struct Expected {
    model: Model,
    numbers: [u64; WRITERS],
}

impl Expected {
    pub(crate) fn new() -> Self {
        let rules = Rules {
            descending: false,
            merge: MergeRule::Append,
        };
        let mut model = Model::new(rules);
        model.create(FAMILIES[1], rules);
        Self {
            model,
            numbers: [0; WRITERS],
        }
    }

    /// Goes on to `numbers`; the batches found last time must still be present.
    fn advance(&mut self, numbers: [u64; WRITERS]) -> Result<(), String> {
        for (writer, number) in numbers.into_iter().enumerate() {
            let before = self.numbers[writer];
            if number < before {
                return Err(format!(
                    "writer {writer} went from {before} back to {number}"
                ));
            }
            for number in before + 1..=number {
                for (family, change) in batch(writer, number) {
                    self.model.apply(family, &change);
                }
            }
        }
        self.numbers = numbers;
        Ok(())
    }
}

/// Opens `dir` with the options of `seed` and compares it with the ledger: the batches up to the mark
/// `promise` must be present. Then notes in the ledger the numbers that the next child starts from.
pub(crate) fn verify(
    dir: &Path,
    ledger: &Ledger,
    expected: &mut Expected,
    promise: Mark,
    seed: u64,
) -> Result<(), String> {
    let clock = Env::system().clock;
    let begin = clock.monotonic();
    let db = Db::open_all_families(dir, options(seed, Env::system().files))
        .map_err(|error| format!("it does not open: {error:?}"))?;
    if clock.monotonic() - begin > Duration::from_secs(20) {
        return Err("opening took more than 20 seconds".to_owned());
    }
    let found = check(&db, ledger, expected, promise)?;
    check_files(&db, dir)?;
    db.close().map_err(|error| format!("closing: {error:?}"))?;
    for (writer, number) in found.into_iter().enumerate() {
        ledger.set(writer, Mark::Begun, number);
        ledger.set(writer, Mark::Acked, number);
        ledger.set(writer, Mark::Synced, number);
    }
    Ok(())
}

fn check(
    db: &Db,
    ledger: &Ledger,
    expected: &mut Expected,
    promise: Mark,
) -> Result<[u64; WRITERS], String> {
    let mut rows: Vec<Rows> = Vec::new();
    for name in FAMILIES {
        let family = db.column_family(name);
        let family = family.map(|family| scan(db, &family)).transpose()?;
        rows.push(family.unwrap_or_default());
    }
    let mut found = [0; WRITERS];
    for (writer, found) in found.iter_mut().enumerate() {
        let numbers = rows.iter().map(|rows| {
            let value = rows.get(&newest(writer))?;
            value.first_chunk::<8>().copied().map(u64::from_le_bytes)
        });
        let numbers: Vec<u64> = numbers.map(Option::unwrap_or_default).collect();
        if numbers[0] != numbers[1] {
            return Err(format!("a batch of writer {writer} is torn: {numbers:?}"));
        }
        *found = numbers[0];
        let (acked, begun) = (ledger.get(writer, promise), ledger.get(writer, Mark::Begun));
        if *found < acked || *found > begun {
            return Err(format!(
                "writer {writer}: {found} of {acked} promised, {begun} begun"
            ));
        }
    }
    for writer in 0..WRITERS {
        let Some(value) = rows[0].remove(&known(writer)) else {
            continue;
        };
        let before = decode(&value).ok_or("what was known before is no list of numbers")?;
        if before
            .iter()
            .zip(found)
            .any(|(before, found)| *before > found)
        {
            return Err(format!(
                "writer {writer} knew of {before:?}, and {found:?} is left"
            ));
        }
        debug_assert_eq!(encode(before), value);
    }
    expected.advance(found)?;
    for (name, rows) in FAMILIES.iter().zip(&rows) {
        let want = expected.model.family(name).map(|family| family.rows());
        if want.is_some_and(|want| want != rows) {
            let differ = want
                .into_iter()
                .flatten()
                .find(|(key, value)| rows.get(*key) != Some(value));
            let key = differ.map(|(key, _)| String::from_utf8_lossy(key).into_owned());
            return Err(format!("{name} differs, for one at {key:?}"));
        }
    }
    Ok(found)
}

/// Every row, and gets and a backward walk that agree.
fn scan(db: &Db, family: &drumlin::ColumnFamily) -> Result<Rows, String> {
    let told = |error: drumlin::Error| format!("{}: {error:?}", family.name());
    let mut rows = Rows::new();
    let mut iterator = db.iter_cf(family, ReadOptions::default());
    iterator.seek_to_first();
    while iterator.valid() {
        let value = iterator.try_value().map_err(told)?;
        rows.insert(iterator.key().to_vec(), value.to_vec());
        iterator.next();
    }
    iterator.status().map_err(told)?;
    let mut count = 0;
    iterator.seek_to_last();
    while iterator.valid() {
        count += 1;
        iterator.prev();
    }
    iterator.status().map_err(told)?;
    if count != rows.len() {
        return Err(format!("{count} rows backward, {} forward", rows.len()));
    }
    for (key, value) in rows.iter().step_by(5) {
        let got = db
            .get_cf(family, key, &ReadOptions::default())
            .map_err(told)?;
        if got.as_deref() != Some(value.as_slice()) {
            return Err(format!("get of {key:?} differs from the walk"));
        }
    }
    Ok(rows)
}

/// Nothing is left over of the dead: each table and blob file is one the database knows.
fn check_files(db: &Db, dir: &Path) -> Result<(), String> {
    db.wait_for_background()
        .map_err(|error| format!("{error:?}"))?;
    let damaged = db.verify().map_err(|error| format!("{error:?}"))?.damaged;
    if !damaged.is_empty() {
        return Err(format!("damaged: {damaged:?}"));
    }
    let names = Env::system()
        .files
        .list(dir)
        .map_err(|error| format!("{error:?}"))?;
    let left = names.iter().filter(|name| {
        let name = name.to_string_lossy();
        name.ends_with(".dbtmp") || name.ends_with(".unfinished")
    });
    match left.count() {
        0 => Ok(()),
        _ => Err(format!("files are left over: {names:?}")),
    }
}
