//! Goal: searchable tables share a model, whose file is there as long as any of them is read and no
//! longer. Method: families whose first compaction learns one; files listed after compactions, drops,
//! switches of the format, copies and repairs.

use std::collections::BTreeSet;
use std::path::Path;

use drumlin::internals::names::{self, FileName};
use drumlin::internals::version::{VersionEdit, VersionSet, VersionSetOptions};
use drumlin::{Db, Env, ErrorKind, Options, ReadOptions, TableFormat};
use drumlin_base::rng::Rng;
use drumlin_fs::{CreateOptions, FileKind};
use drumlin_table::Table;
use drumlin_testkit::memory_dir;

use crate::common::{self, Rows, change, check, compact};

fn options(format: TableFormat) -> Options {
    let mut options = common::options(Some(format));
    options.tuning.shared_model_from_bytes = 0;
    options
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let words = ["carefully", "final", "deposits", "sleep"];
    let word = words[rng.below(4) as usize];
    format!("{}|{word}|{}", rng.below(1000), word.repeat(3)).into_bytes()
}

/// The models there are.
fn models(dir: &Path) -> BTreeSet<u64> {
    let names = Env::system().files.list(dir).unwrap();
    let ids = names.iter().filter_map(|name| match FileName::parse(name) {
        Some(FileName::Model(id)) => Some(id),
        _ => None,
    });
    ids.collect()
}

/// The models that tables name.
fn named(dir: &Path) -> BTreeSet<u64> {
    let files = Env::system().files;
    let names = files.list(dir).unwrap();
    let tables = names
        .iter()
        .filter(|name| name.extension() == Some("sst".as_ref()));
    tables
        .filter_map(|name| Table::shared_model_of(&*files.open(&dir.join(name)).unwrap()).unwrap())
        .collect()
}

/// A closed database of searchable tables that share a model.
fn shared(dir: &Path) -> Rows {
    let db = Db::open(dir, options(TableFormat::Searchable)).unwrap();
    let mut rows = Rows::new();
    for seed in 1..4 {
        change(&db, &mut rows, seed, value);
    }
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
    assert_eq!(models(dir).len(), 1);
    assert_eq!(models(dir), named(dir));
    rows
}

#[test]
fn tables_share_a_model_over_compactions_and_opens() {
    let dir = memory_dir();
    let mut rows = shared(dir.path());
    let before = models(dir.path());
    let db = Db::open(dir.path(), options(TableFormat::Searchable)).unwrap();
    check(&db, &rows, &ReadOptions::default());
    for seed in 4..6 {
        change(&db, &mut rows, seed, value);
        compact(&db);
    }
    check(&db, &rows, &ReadOptions::default());
    assert!(db.verify().unwrap().damaged.is_empty());
    db.close().unwrap();
    assert_eq!(
        models(dir.path()),
        before,
        "values of one kind need one model"
    );
    assert_eq!(named(dir.path()), before);
    // Other values: the learned model serves them badly.
    let other =
        |rng: &mut Rng| format!("{{\"id\":{},\"kind\":\"esker\"}}", rng.next_u64()).into_bytes();
    let db = Db::open(dir.path(), options(TableFormat::Searchable)).unwrap();
    for seed in 6..16 {
        change(&db, &mut rows, seed, other);
    }
    compact(&db);
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
    assert_eq!(models(dir.path()), named(dir.path()));
    assert!(
        models(dir.path()).is_disjoint(&before),
        "another kind, another model"
    );
}

#[test]
fn a_model_goes_with_the_last_table_that_names_it() {
    let dir = memory_dir();
    let mut rows = shared(dir.path());
    let db = Db::open(dir.path(), options(TableFormat::Block)).unwrap();
    let mut walk = db.iter(ReadOptions::default());
    walk.seek_to_first();
    compact(&db);
    assert_eq!(models(dir.path()).len(), 1, "a walk still reads its tables");
    for (key, value) in &rows {
        assert_eq!((walk.key(), walk.value()), (&key[..], &value[..]));
        walk.next();
    }
    drop(walk);
    db.put(common::key(7), b"more").unwrap();
    rows.insert(common::key(7), b"more".to_vec());
    db.flush().unwrap();
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
    let db = Db::open(dir.path(), options(TableFormat::Block)).unwrap();
    assert!(models(dir.path()).is_empty());
    db.close().unwrap();
}

#[test]
fn a_dropped_family_takes_its_model_along() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options(TableFormat::Block)).unwrap();
    let searchable = options(TableFormat::Searchable).family;
    let family = db.create_family("words", searchable).unwrap();
    let mut rng = Rng::new(5);
    for number in 0..2000 {
        let mut batch = drumlin::internals::batch::WriteBatch::new();
        batch
            .put_cf(family.id(), &common::key(number), &value(&mut rng))
            .unwrap();
        db.write(batch, &drumlin::WriteOptions::default()).unwrap();
    }
    db.compact_range(&family, None, None).unwrap();
    assert_eq!(models(dir.path()).len(), 1);
    db.drop_family(&family).unwrap();
    drop(family);
    db.put(b"one", b"more").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let db = Db::open(dir.path(), options(TableFormat::Block)).unwrap();
    assert!(models(dir.path()).is_empty());
    db.close().unwrap();
}

#[test]
fn a_checkpoint_and_a_repaired_directory_have_their_models() {
    let dir = memory_dir();
    let rows = shared(dir.path());
    let db = Db::open(dir.path(), options(TableFormat::Searchable)).unwrap();
    let copy = dir.path().join("copy");
    db.checkpoint(&copy).unwrap();
    db.close().unwrap();
    let db = Db::open(&copy, options(TableFormat::Searchable)).unwrap();
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();

    let repairing = options(TableFormat::Searchable);
    let report = Db::repair(&copy, &repairing).unwrap();
    assert!(report.lost.is_empty(), "{:?}", report.lost);
    let db = Db::open(&copy, options(TableFormat::Searchable)).unwrap();
    compact(&db);
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
    assert_eq!(models(&copy), named(&copy));

    // Damaged tables: tables put aside can still be read. The newest stays sound, or the repair would leave
    // nothing and refuse.
    let db = Db::open(&copy, options(TableFormat::Searchable)).unwrap();
    db.put("sound", "1").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let files = Env::system().files;
    let mut tables = files.list(&copy).unwrap();
    tables.retain(|name| name.extension() == Some("sst".as_ref()));
    tables.sort();
    tables.pop();
    for name in &tables {
        let path = copy.join(name);
        let mut bytes = files.read_file(&path, u64::MAX).unwrap();
        bytes[5] ^= 1;
        files.remove(&path).unwrap();
        let mut file = files
            .create(&path, CreateOptions::new(FileKind::Other))
            .unwrap();
        file.append(&bytes).unwrap();
        file.close().unwrap();
    }
    let report = Db::repair(&copy, &repairing).unwrap();
    assert!(!report.lost.is_empty());
    assert_eq!(models(&copy.join("lost")), models(dir.path()));
}

#[test]
fn a_missing_model_is_told_at_open() {
    let dir = memory_dir();
    shared(dir.path());
    let id = models(dir.path()).pop_first().unwrap();
    let path = names::model(dir.path(), id);
    Env::system().files.remove(&path).unwrap();
    let error = Db::open(dir.path(), options(TableFormat::Searchable)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(error.file(), Some(&*path));
}

#[test]
fn a_scrub_reads_the_model_again_and_names_it_when_it_is_damaged() {
    let dir = memory_dir();
    let rows = shared(dir.path());
    let db = Db::open(dir.path(), options(TableFormat::Searchable)).unwrap();
    check(&db, &rows, &ReadOptions::default());
    assert!(db.verify().unwrap().damaged.is_empty());
    let path = names::model(dir.path(), models(dir.path()).pop_first().unwrap());
    let files = Env::system().files;
    let mut bytes = files.read_file(&path, 1 << 20).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let mut file = files
        .create(&path, CreateOptions::new(FileKind::Other))
        .unwrap();
    file.append(&bytes).unwrap();
    file.close().unwrap();
    let damaged = db.verify().unwrap().damaged;
    let damaged: Vec<_> = damaged.iter().map(|(path, e)| (path, e.kind())).collect();
    assert_eq!(damaged, [(&path, ErrorKind::Corruption)]);
    // The copy in memory is sound.
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
}

#[test]
fn a_manifest_that_does_not_name_models_costs_none() {
    let dir = memory_dir();
    let rows = shared(dir.path());
    let before = models(dir.path());
    // As written by an engine that skips unknown fields.
    let files = Env::system().files;
    let (mut set, _) = VersionSet::recover(files, dir.path(), &VersionSetOptions::new()).unwrap();
    let mut edits = [VersionEdit::default(), VersionEdit::default()];
    for (level, file) in set.families()[&0].current.files() {
        edits[0].delete_file(level as u32, file.number);
        let mut file = file.described().clone();
        file.model = None;
        edits[1].add_file(level as u32, file);
    }
    for edit in edits {
        set.log_and_apply(vec![edit]).unwrap();
    }
    drop(set);
    for _ in 0..2 {
        let db = Db::open(dir.path(), options(TableFormat::Searchable)).unwrap();
        check(&db, &rows, &ReadOptions::default());
        db.close().unwrap();
        assert_eq!(models(dir.path()), before);
    }
}

#[test]
fn rows_of_one_model_are_copied_and_other_values_encoded() {
    let dir = memory_dir();
    let mut rows = shared(dir.path());
    let before = models(dir.path());
    // Without a merge operator, too, operands and the values under them stay what they are.
    for operator in [true, false] {
        let mut options = options(TableFormat::Searchable);
        if !operator {
            options.family.merge_operator = None;
        }
        let db = Db::open(dir.path(), options).unwrap();
        if operator {
            change(&db, &mut rows, 21, value);
        }
        compact(&db);
        if operator {
            check(&db, &rows, &ReadOptions::default());
        }
        assert!(db.verify().unwrap().damaged.is_empty());
        db.close().unwrap();
        assert_eq!(models(dir.path()), before);
    }
    let db = Db::open(dir.path(), options(TableFormat::Searchable)).unwrap();
    check(&db, &rows, &ReadOptions::default());
    db.close().unwrap();
}
