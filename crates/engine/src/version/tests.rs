//! Edits and the builder: bytes round trip, damage is refused, invariants hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumlin_base::key::internal_key;
use drumlin_base::rng::Rng;
use drumlin_base::{ErrorKind, KeyOrder, ValueKind};

use super::*;

fn file(number: u64, smallest: &str, largest: &str) -> NewFile {
    NewFile {
        number,
        size: 1000 + number,
        smallest: internal_key(smallest.as_bytes(), 20, ValueKind::Value),
        largest: internal_key(largest.as_bytes(), 10, ValueKind::Value),
        smallest_seqno: 10,
        largest_seqno: 20,
        epoch: number,
        ..NewFile::default()
    }
}

fn full_edit() -> VersionEdit {
    let mut rich = file(12, "k", "m");
    rich.creation_time = 1_700_000_000;
    rich.oldest_ancestor_time = 1_600_000_000;
    rich.oldest_blob_file = 5;
    rich.marked_for_compaction = true;
    rich.unique_id = Some([7; 16]);
    rich.tail_size = 300;
    rich.compensated_range_deletion_bytes = 99;
    rich.temperature = 4;
    rich.checksum = Some(FileChecksum {
        function: "crc32c".into(),
        bytes: vec![0, 1, 2],
    });
    VersionEdit {
        db_id: Some("an id".into()),
        comparator: Some("leveldb.BytewiseComparator".into()),
        log_number: Some(3),
        prev_log_number: Some(0),
        next_file_number: Some(1 << 40),
        last_seqno: Some((1 << 56) - 1),
        max_column_family: Some(9),
        min_log_number_to_keep: Some(2),
        compact_cursors: vec![(2, internal_key(b"c", 1, ValueKind::Deletion))],
        deleted_files: vec![(0, 4), (6, 300)],
        new_files: vec![(0, file(11, "a", "b")), (6, rich)],
        blob_additions: vec![BlobFileAddition {
            number: 5,
            blob_count: 6,
            blob_bytes: 7,
            checksum_method: b"m".to_vec(),
            checksum_value: b"v".to_vec(),
        }],
        blob_garbage: vec![BlobFileGarbage {
            number: 5,
            garbage_count: 1,
            garbage_bytes: 2,
        }],
        wal_additions: vec![(21, None), (22, Some(4096))],
        wals_deleted_below: Some(20),
        column_family: 8,
        add_family: Some("fam".into()),
        drop_family: true,
        atomic_group_remaining: Some(1),
        synced_from: Some(300),
        change: Some(b"a change".to_vec()),
        section_wals: Some(vec![17, 300]),
        full_history_ts_low: Some(b"12345678".to_vec()),
        history: Some(History {
            keep_seconds: 3600,
            every_seconds: 60,
            marked: vec![PastMoment {
                unix_seconds: 1_800_000_000,
                seqno: 17,
            }],
        }),
    }
}

#[test]
fn an_edit_with_everything_round_trips() {
    let edit = full_edit();
    let bytes = edit.encode(Profile::RocksDb).unwrap();
    assert_eq!(VersionEdit::decode(&bytes).unwrap(), edit);
    assert_eq!(VersionEdit::decode(&[]).unwrap(), VersionEdit::default());
}

#[test]
fn what_rocksdb_5_would_refuse_is_not_written_for_it() {
    let edit = full_edit();
    let bytes = edit.encode(Profile::RocksDb5).unwrap();
    let kept = VersionEdit {
        db_id: None,
        min_log_number_to_keep: None,
        wal_additions: Vec::new(),
        wals_deleted_below: None,
        atomic_group_remaining: None,
        synced_from: None,
        change: None,
        section_wals: None,
        history: None,
        ..edit
    };
    assert_eq!(VersionEdit::decode(&bytes).unwrap(), kept);
}

#[test]
fn the_leveldb_profile_writes_leveldbs_tags_or_refuses() {
    let mut edit = VersionEdit {
        comparator: Some("leveldb.BytewiseComparator".into()),
        log_number: Some(3),
        prev_log_number: Some(0),
        next_file_number: Some(4),
        last_seqno: Some(5),
        min_log_number_to_keep: Some(2),
        deleted_files: vec![(1, 2)],
        new_files: vec![(1, file(9, "a", "b"))],
        ..VersionEdit::default()
    };
    let bytes = edit.encode(Profile::LevelDb).unwrap();
    let mut expected =
        b"\x01\x1aleveldb.BytewiseComparator\x02\x03\x09\x00\x03\x04\x04\x05".to_vec();
    expected.extend_from_slice(b"\x06\x01\x02\x07\x01\x09\xf1\x07");
    expected.extend_from_slice(b"\x09a\x01\x14\x00\x00\x00\x00\x00\x00");
    expected.extend_from_slice(b"\x09b\x01\x0a\x00\x00\x00\x00\x00\x00");
    assert_eq!(bytes, expected);
    let decoded = VersionEdit::decode(&bytes).unwrap();
    assert_eq!(
        decoded.new_files[0].1.largest_seqno, 0,
        "LevelDB does not say"
    );
    edit.column_family = 1;
    let error = edit.encode(Profile::LevelDb).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
}

#[test]
fn unknown_tags_are_skipped_only_when_they_say_so() {
    let with = |extra: &[u8]| {
        let mut bytes = VersionEdit {
            log_number: Some(7),
            ..VersionEdit::default()
        }
        .encode(Profile::RocksDb)
        .unwrap();
        bytes.extend_from_slice(extra);
        VersionEdit::decode(&bytes)
    };
    // 8392 = 0x20c8, then a body of two bytes.
    assert_eq!(with(b"\xc8\x41\x02xy").unwrap().log_number, Some(7));
    assert_eq!(
        with(b"\x0b\x00").unwrap_err().kind(),
        ErrorKind::NotSupported
    );
    // Timestamps: kept is fine, stripped is not.
    assert!(with(b"\x89\x40\x01\x01").is_ok());
    assert_eq!(
        with(b"\x89\x40\x01\x00").unwrap_err().kind(),
        ErrorKind::NotSupported
    );
}

#[test]
fn unknown_fields_of_a_table_are_skipped_only_below_64() {
    let mut edit = VersionEdit::default();
    edit.add_file(1, file(9, "a", "b"));
    let bytes = edit.encode(Profile::RocksDb).unwrap();
    let with = |field: &[u8]| {
        let mut bytes = bytes[..bytes.len() - 1].to_vec();
        bytes.extend_from_slice(field);
        bytes.push(1);
        VersionEdit::decode(&bytes)
    };
    assert_eq!(with(b"\x28\x02??").unwrap(), edit);
    assert_eq!(
        with(b"\x0a\x01t").unwrap(),
        edit,
        "the lowest timestamp of a table"
    );
    for refused in [&b"\x42\x01?"[..], b"\x41\x01\x01", b"\x10\x01\x00"] {
        assert_eq!(with(refused).unwrap_err().kind(), ErrorKind::NotSupported);
    }
    assert_eq!(
        with(b"\x41\x01\x00").unwrap(),
        edit,
        "path 0 is the directory itself"
    );
}

#[test]
fn a_cut_edit_is_corruption_or_a_shorter_edit() {
    let bytes = full_edit().encode(Profile::RocksDb).unwrap();
    for cut in 0..bytes.len() {
        if let Err(error) = VersionEdit::decode(&bytes[..cut]) {
            assert!(error.is_corruption(), "cut at {cut}: {error}");
        }
    }
}

#[test]
fn hostile_edits_never_panic() {
    let mut rng = Rng::new(1);
    let sound = full_edit().encode(Profile::RocksDb).unwrap();
    for _ in 0..20_000 {
        let mut bytes = sound.clone();
        for _ in 0..1 + rng.below(5) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        if let Ok(edit) = VersionEdit::decode(&bytes) {
            let again = edit.encode(Profile::RocksDb).unwrap();
            assert_eq!(VersionEdit::decode(&again).unwrap(), edit);
        }
    }
}

const ORDER: KeyOrder = KeyOrder::Bytewise;

#[test]
fn an_epoch_without_a_next_one_is_corruption() {
    let of_epoch = |epoch| NewFile {
        epoch,
        ..file(1, "a", "b")
    };
    let decode = |epoch| {
        let bytes = adding(vec![(0, of_epoch(epoch))]).encode(Profile::RocksDb);
        VersionEdit::decode(&bytes.unwrap())
    };
    assert_eq!(decode(1 << 61).unwrap().new_files, [(0, of_epoch(1 << 61))]);
    for epoch in [1 << 62, u64::MAX] {
        assert!(decode(epoch).unwrap_err().is_corruption(), "{epoch}");
    }
}

fn adding(files: Vec<(u32, NewFile)>) -> VersionEdit {
    VersionEdit {
        new_files: files,
        ..VersionEdit::default()
    }
}

fn build(base: &Arc<Version>, edit: &VersionEdit) -> drumlin_base::Result<Built> {
    let mut builder = VersionBuilder::new(Arc::clone(base));
    builder.apply(edit)?;
    builder.build(&ORDER)
}

fn numbers(version: &Version, level: usize) -> Vec<u64> {
    version
        .level(level)
        .iter()
        .map(|file| file.number)
        .collect()
}

fn base() -> Arc<Version> {
    let edit = adding(vec![
        (0, file(7, "a", "z")),
        (0, file(9, "c", "d")),
        (1, file(3, "k", "m")),
        (1, file(4, "a", "c")),
        (2, file(1, "a", "z")),
    ]);
    build(&Arc::new(Version::empty()), &edit).unwrap().version
}

#[test]
fn l0_is_newest_first_and_deeper_levels_ascend() {
    let base = base();
    assert_eq!(numbers(&base, 0), [9, 7]);
    assert_eq!(numbers(&base, 1), [4, 3]);
    assert_eq!(base.level_bytes(1), 1003 + 1004);
}

#[test]
fn a_moved_table_stays_the_same_in_memory_and_is_not_removed() {
    let base = base();
    let mut edit = adding(vec![(3, file(3, "k", "m"))]);
    edit.delete_file(1, 3);
    edit.delete_file(0, 9);
    let built = build(&base, &edit).unwrap();
    assert!(Arc::ptr_eq(&built.version.level(3)[0], &base.level(1)[1]));
    assert_eq!(numbers(&built.version, 1), [4]);
    let removed: Vec<_> = built.removed.iter().map(|file| file.number).collect();
    assert_eq!(removed, [9], "the moved one is still held");
}

#[test]
fn edits_that_break_an_invariant_are_corruption() {
    let base = base();
    let mut missing = VersionEdit::default();
    missing.delete_file(1, 99);
    let mut wrong_level = VersionEdit::default();
    wrong_level.delete_file(2, 3);
    let mut twice = VersionEdit::default();
    twice.delete_file(1, 3);
    twice.delete_file(1, 3);
    let mut same_age = file(20, "y", "z");
    same_age.epoch = 7;
    for (name, edit) in [
        ("a missing table is removed", missing),
        ("a table is removed from another level", wrong_level),
        ("a table is removed twice", twice),
        (
            "a table is added twice",
            adding(vec![(4, file(3, "k", "m"))]),
        ),
        (
            "tables of a level overlap",
            adding(vec![(1, file(20, "b", "j"))]),
        ),
        (
            "a table's keys are turned round",
            adding(vec![(5, file(20, "z", "a"))]),
        ),
        (
            "equally old tables of L0 overlap",
            adding(vec![(0, same_age)]),
        ),
    ] {
        assert!(
            build(&base, &edit).is_err_and(|error| error.is_corruption()),
            "{name}"
        );
    }
    let touching = adding(vec![(1, {
        let mut touching = file(20, "c", "d");
        touching.smallest = internal_key(b"c", 9, ValueKind::Value);
        touching
    })]);
    let built = build(&base, &touching).unwrap();
    assert_eq!(
        numbers(&built.version, 1),
        [4, 20, 3],
        "older entries of \"c\" may follow"
    );
}

#[test]
fn tables_without_epochs_get_them_from_their_sequence_numbers() {
    let seqnos = |number, smallest, largest| {
        let mut file = file(number, "a", "z");
        (file.smallest_seqno, file.largest_seqno, file.epoch) = (smallest, largest, 0);
        file
    };
    let recover = |l0: Vec<NewFile>| {
        let mut files: Vec<_> = l0.into_iter().map(|file| (0, file)).collect();
        files.push((6, file(1, "a", "z")));
        let mut builder = VersionBuilder::new(Arc::new(Version::empty()));
        builder.apply(&adding(files)).unwrap();
        builder.build_recovered(&ORDER)
    };
    let (version, next) =
        recover(vec![seqnos(5, 30, 40), seqnos(9, 1, 9), seqnos(6, 10, 29)]).unwrap();
    assert_eq!(numbers(&version, 0), [5, 6, 9]);
    let epochs: Vec<_> = version.files().map(|(_, file)| file.epoch).collect();
    assert_eq!((epochs, next), (vec![4, 3, 2, 1], 5));
    // LevelDB records nothing but the order of the numbers.
    let (version, _) = recover(vec![seqnos(5, 0, 0), seqnos(9, 0, 0), seqnos(7, 0, 0)]).unwrap();
    assert_eq!(numbers(&version, 0), [9, 7, 5]);
    let overlapping = recover(vec![seqnos(5, 10, 40), seqnos(6, 5, 60)]);
    assert!(overlapping.is_err_and(|error| error.is_corruption()));
}

#[test]
fn blob_files_live_while_a_table_may_name_them() {
    let blob = |number| BlobFileAddition {
        number,
        blob_count: 2,
        blob_bytes: 20,
        ..BlobFileAddition::default()
    };
    let mut naming = file(9, "a", "b");
    naming.oldest_blob_file = 5;
    let edit = VersionEdit {
        blob_additions: vec![blob(5), blob(6), blob(4)],
        ..adding(vec![(1, naming)])
    };
    let base = build(&Arc::new(Version::empty()), &edit).unwrap().version;
    let live: Vec<_> = base.blobs().keys().copied().collect();
    assert_eq!(live, [5, 6], "4 is below everything that is named");

    let garbage = |number, count| VersionEdit {
        blob_garbage: vec![BlobFileGarbage {
            number,
            garbage_count: count,
            garbage_bytes: count,
        }],
        ..VersionEdit::default()
    };
    let built = build(&base, &garbage(6, 2)).unwrap();
    let removed: Vec<_> = built.removed_blobs.iter().map(|file| file.number).collect();
    assert_eq!(removed, [6]);
    assert!(
        build(&base, &garbage(5, 2))
            .unwrap()
            .removed_blobs
            .is_empty()
    );
    assert!(build(&base, &garbage(5, 3)).is_err_and(|error| error.is_corruption()));
    assert!(build(&base, &garbage(77, 1)).is_err_and(|error| error.is_corruption()));
}

/// A builder against a map from level and number to keys, over random edits.
#[test]
fn random_edits_lead_where_a_map_leads() {
    let mut rng = Rng::new(9);
    let mut version = Arc::new(Version::empty());
    let mut twin: BTreeMap<(u32, u64), String> = BTreeMap::new();
    for number in 1..400u64 {
        let mut edit = VersionEdit::default();
        let doomed: Vec<_> = twin.keys().copied().filter(|_| rng.one_in(12)).collect();
        for (level, number) in doomed {
            edit.delete_file(level, number);
            twin.remove(&(level, number));
        }
        let level = rng.below(3) as u32;
        let key = format!("{:06}", number * 7919 % 1000);
        edit.add_file(level, file(number, &key, &key));
        twin.insert((level, number), key);
        let built = build(&version, &edit).unwrap();
        let gone: Vec<_> = built.removed.iter().map(|file| file.number).collect();
        assert_eq!(gone.len(), edit.deleted_files.len());
        version = built.version;
        let mut held: Vec<_> = version
            .files()
            .map(|(level, file)| (level as u32, file.number))
            .collect();
        held.sort_unstable();
        assert!(held.iter().eq(twin.keys()));
    }
}
