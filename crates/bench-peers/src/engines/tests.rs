//! Goal: every adapter keeps the contract that the workloads rely on, so that a figure measures the
//! operation it names. Method: the same seeded writes to each engine and to a map; then every way
//! of reading is compared, before and after a flush, a compaction and another opening.

use std::collections::BTreeMap;
use std::path::PathBuf;

use drumlin_base::rng::Rng;
use drumlin_base::{ErrorKind, Result};
use drumlin_bench::{Cursor, Flags, Session, Store};
use drumlin_fs::Env;

use super::{Engine, with_store};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A directory of this test's own, and the flags for a store in it.
fn flags(engine: Engine) -> Flags {
    let name = format!("drumlin-peers-{}-{engine}", std::process::id());
    let dir: PathBuf = std::env::temp_dir().join(name);
    let mut flags = Flags {
        db: dir.display().to_string(),
        compression_type: "none".to_owned(),
        bloom_bits: 10.0,
        cache_size: 1 << 20,
        write_buffer_size: 1 << 20,
        // Most values here are as long, some shorter: an engine with blob files gets some there.
        min_blob_size: 24,
        ..Flags::default()
    };
    engine.adjust(&mut flags);
    flags
}

fn write(session: &mut impl Session, map: &mut Map, rng: &mut Rng) -> Result<()> {
    for _ in 0..3000 {
        let key = format!("key{:04}", rng.below(2000)).into_bytes();
        let value = format!("value{}", rng.next_u64()).into_bytes();
        match rng.below(4) {
            0 => {
                session.batch_delete(&key)?;
                session.batch_put(b"batch", &value)?;
                session.batch_write()?;
                map.remove(&key);
                map.insert(b"batch".to_vec(), value);
            }
            _ => {
                session.put(&key, &value)?;
                map.insert(key, value);
            }
        }
    }
    Ok(())
}

fn check(session: &mut impl Session, map: &Map, rng: &mut Rng) -> Result<()> {
    let keys: Vec<Vec<u8>> = (0..500)
        .map(|_| format!("key{:04}", rng.below(2100)).into_bytes())
        .collect();
    for key in &keys {
        let mut got = None;
        let found = session.get(key, |value| got = Some(value.to_vec()))?;
        assert_eq!(got.as_ref(), map.get(key));
        assert_eq!(found, got.is_some());
    }
    let mut got = vec![None; keys.len()];
    let found = session.multi_get(&keys, |index, value| got[index] = Some(value.to_vec()))?;
    let expected: Vec<_> = keys.iter().map(|key| map.get(key).cloned()).collect();
    assert_eq!(got, expected);
    assert_eq!(found, expected.iter().flatten().count());
    let mut cursor = session.cursor(None, None)?;
    let mut entries = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        entries.push((cursor.key().to_vec(), cursor.value().to_vec()));
        cursor.next();
    }
    assert_eq!(entries, map.clone().into_iter().collect::<Vec<_>>());
    cursor.seek_to_last();
    for (key, value) in map.iter().rev() {
        assert_eq!(
            (cursor.key(), cursor.value()),
            (key.as_slice(), value.as_slice())
        );
        cursor.prev();
    }
    assert!(!cursor.valid());
    for key in &keys {
        cursor.seek(key);
        let expected = map.range(key.clone()..).next();
        assert_eq!(cursor.valid(), expected.is_some());
        if let Some((key, value)) = expected {
            assert_eq!(
                (cursor.key(), cursor.value()),
                (key.as_slice(), value.as_slice())
            );
        }
    }
    cursor.status()?;
    drop(cursor);
    bounded(session, map)
}

/// A cursor with bounds shows the entries between them.
fn bounded(session: &mut impl Session, map: &Map) -> Result<()> {
    let (lower, upper) = (b"key0500".as_slice(), b"key1500".as_slice());
    let inside = map.range(lower.to_vec()..upper.to_vec());
    let expected: Vec<&[u8]> = inside.map(|(key, _)| key.as_slice()).collect();
    let mut cursor = session.cursor(Some(lower), Some(upper))?;
    cursor.seek_to_first();
    for key in &expected {
        assert_eq!(cursor.key(), *key);
        cursor.next();
    }
    assert!(!cursor.valid());
    cursor.seek_to_last();
    assert_eq!(Some(&cursor.key()), expected.last());
    Ok(())
}

fn exercise<S: Store>(flags: &Flags) -> Result<()> {
    let env = Env::system();
    S::destroy(flags, &env)?;
    std::fs::create_dir_all(&flags.db).expect("the directory for temporary files takes another");
    let (mut map, mut rng) = (Map::new(), Rng::new(0x5eed_0041));
    let store = S::open(flags, &env)?;
    let mut session = store.session(flags);
    write(&mut session, &mut map, &mut rng)?;
    check(&mut session, &map, &mut rng)?;
    drop(session);
    store.flush()?;
    write(&mut store.session(flags), &mut map, &mut rng)?;
    match store.compact() {
        Err(error) if error.kind() == ErrorKind::NotSupported => {}
        done => done?,
    }
    check(&mut store.session(flags), &map, &mut rng)?;
    store.close()?;
    let store = S::open(flags, &env)?;
    check(&mut store.session(flags), &map, &mut rng)?;
    store.close()?;
    S::destroy(flags, &env)
}

fn test(engine: Engine) {
    let flags = flags(engine);
    let done = with_store!(engine, S => exercise::<S>(&flags));
    done.unwrap_or_else(|error| panic!("{engine}: {error}"));
}

#[test]
fn drumlin_keeps_what_is_written() {
    test(Engine::Drumlin);
}

#[cfg(feature = "rocksdb")]
#[test]
fn rocksdb_begins_anew_with_its_logs_elsewhere() {
    let mut flags = flags(Engine::RocksDb);
    flags.db += "-logs-elsewhere";
    flags.wal_dir = format!("{}-wal", flags.db);
    let env = Env::system();
    for _ in 0..2 {
        with_store!(Engine::RocksDb, S => {
            S::destroy(&flags, &env).unwrap_or_else(|error| panic!("{error}"));
            std::fs::create_dir_all(&flags.db).expect("the directory for temporary files takes another");
            let store = S::open(&flags, &env).unwrap_or_else(|error| panic!("{error}"));
            let mut session = store.session(&flags);
            assert!(!session.get(b"key", |_| ()).expect("an empty store is read"));
            session.put(b"key", b"value").expect("it is written");
        });
    }
    std::fs::remove_dir_all(&flags.db).expect("the store is there");
    std::fs::remove_dir_all(&flags.wal_dir).expect("its logs are there");
}

#[test]
fn drumlin_universal_keeps_what_is_written() {
    test(Engine::DrumlinUniversal);
}

#[cfg(feature = "rocksdb")]
#[test]
fn rocksdb_keeps_what_is_written() {
    for engine in [
        Engine::RocksDb,
        Engine::RocksDbBlobs,
        Engine::RocksDbUniversal,
    ] {
        test(engine);
    }
}

#[test]
fn leveldb_keeps_what_is_written() {
    test(Engine::LevelDb);
}

#[test]
fn fjall_keeps_what_is_written() {
    test(Engine::Fjall);
}

#[test]
fn redb_keeps_what_is_written() {
    test(Engine::Redb);
}

#[test]
fn lmdb_keeps_what_is_written() {
    test(Engine::Lmdb);
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let mut flags = flags(Engine::Lmdb);
    flags.db.push_str("-other");
    std::fs::create_dir_all(&flags.db).expect("the directory for temporary files takes another");
    let precious = PathBuf::from(&flags.db).join("precious");
    std::fs::write(&precious, "text").expect("a new directory takes a file");
    with_store!(Engine::Lmdb, S => {
        let error = S::destroy(&flags, &Env::system()).expect_err("not a store");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    });
    assert!(precious.exists());
    std::fs::remove_dir_all(&flags.db).expect("the directory is this test's");
}

#[cfg(feature = "wiredtiger")]
#[test]
fn wiredtiger_keeps_what_is_written() {
    test(Engine::WiredTiger);
}
