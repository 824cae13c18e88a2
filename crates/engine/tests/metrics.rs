//! Goal: the figures of a store are those of what was done to it, and their text is Prometheus's. Method: work that is
//! counted here too, on a store without threads of its own; the text is read back by a check of its grammar.

use std::collections::HashMap;

use drumlin::{Db, FamilyOptions, Options, ReadOptions, Timings, WriteOptions};
use drumlin_testkit::temp_dir;

fn options(timings: Timings) -> Options {
    Options {
        background_threads: Some(0),
        timings,
        ..Options::default()
    }
}

/// Every sample by its name and labels; the text is refused where it is not in the format.
fn samples(text: &str) -> HashMap<String, f64> {
    let (mut family, mut found) = (String::new(), HashMap::new());
    let mut families = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            family = rest.split(' ').next().expect("a name").to_owned();
            assert!(!families.contains(&family), "{family} comes twice");
            families.push(family.clone());
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(rest.starts_with(&format!("{family} ")), "{line}");
            continue;
        }
        assert!(line.starts_with(&family), "{line} is below {family}");
        let (name, value) = line.rsplit_once(' ').expect("a value");
        let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(
            found.insert(name.to_owned(), value).is_none(),
            "{line} comes twice"
        );
    }
    found
}

#[test]
fn figures_are_those_of_the_work() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), options(Timings::Jobs)).expect("opens");
    let other = db
        .create_family("it's \"other\"", FamilyOptions::default())
        .expect("creates");
    for round in 0..3u32 {
        for key in 0..1000u32 {
            db.put(key.to_be_bytes(), [round as u8; 100])
                .expect("writes");
        }
        db.flush().expect("flushes");
    }
    db.put_cf(&other, "a", "b", &WriteOptions::default())
        .expect("writes");
    db.compact_range(db.default_family(), None, None)
        .expect("compacts");
    db.sync_wal().expect("syncs");
    let metrics = db.metrics().expect("answers");
    assert_eq!(metrics.ticker("rocksdb.number.keys.written"), Some(3001));
    assert_eq!(metrics.ticker("drumlin.nosuch"), None);
    let family = |name: &str| {
        metrics
            .families
            .iter()
            .find(|it| it.name == name)
            .expect("it is there")
    };
    let default = family("default");
    let tables: u64 = default.levels.iter().map(|level| level.tables).sum();
    let bytes: u64 = default.levels.iter().map(|level| level.bytes).sum();
    assert_eq!((tables, default.levels[0].tables), (1, 0));
    let property = db.property(db.default_family(), "rocksdb.total-sst-files-size");
    assert_eq!(property, Some(bytes.to_string()));
    assert!(family("it's \"other\"").active_memtable_bytes > 0);
    // Three flushes into L0, and compactions into deeper levels that read what these wrote.
    let work = &metrics.levels_written;
    let flushed = metrics
        .ticker("rocksdb.flush.write.bytes")
        .expect("it is there");
    assert_eq!((work[0].jobs, work[0].bytes_written), (3, flushed));
    assert!(work[6].jobs > 0, "the last level took it all: {work:?}");
    let deeper = |of: fn(&drumlin::LevelWork) -> u64| work[1..].iter().map(of).sum::<u64>();
    assert_eq!(
        Some(deeper(|it| it.bytes_written)),
        metrics.ticker("rocksdb.compact.write.bytes")
    );
    assert_eq!(
        Some(deeper(|it| it.bytes_read)),
        metrics.ticker("rocksdb.compact.read.bytes")
    );
    let times = |name: &str| {
        metrics
            .times
            .iter()
            .find(|(own, _)| *own == name)
            .map(|(_, it)| it.count())
    };
    assert_eq!(times("rocksdb.db.flush.micros"), Some(3));
    assert_eq!(
        times("rocksdb.compaction.times.micros"),
        Some(deeper(|it| it.jobs))
    );
    assert_eq!(
        times("rocksdb.wal.file.sync.micros"),
        metrics.ticker("rocksdb.wal.synced")
    );
    assert_eq!(
        times("rocksdb.db.get.micros"),
        None,
        "calls are not timed unless asked for"
    );
    assert!(metrics.jobs.is_empty() && metrics.slowed.is_none());
    let memory: u64 = metrics.memory.iter().map(|(_, bytes)| bytes).sum();
    assert!(memory > 0 && memory <= metrics.memory_limit);
}

#[test]
fn calls_are_timed_on_request() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), options(Timings::Calls)).expect("opens");
    for key in 0..10u8 {
        db.put([key], [key]).expect("writes");
    }
    for key in 0..20u8 {
        assert_eq!(db.get([key]).expect("reads").is_some(), key < 10);
    }
    let found = db.multi_get_cf(db.default_family(), &[[1], [77]], &ReadOptions::default());
    assert_eq!(found.len(), 2);
    let mut entries = db.iter(ReadOptions::default());
    entries.seek(&[3]);
    entries.next();
    entries.seek_to_first();
    entries.seek_to_last();
    entries.seek_for_prev(&[3]);
    assert_eq!(entries.key(), [3]);
    let metrics = db.metrics().expect("answers");
    for (name, count) in [
        ("rocksdb.db.get.micros", 20),
        ("rocksdb.db.multiget.micros", 1),
        ("rocksdb.db.seek.micros", 4),
        ("rocksdb.db.write.micros", 10),
    ] {
        let times = metrics
            .times
            .iter()
            .find(|(own, _)| *own == name)
            .map(|(_, it)| it);
        let times = times.unwrap_or_else(|| panic!("{name} is not there"));
        assert_eq!(times.count(), count, "{name}");
        assert!(times.longest() >= times.quantile(0.5), "{name}");
    }
}

#[test]
fn a_sample_of_the_calls_stands_for_all() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), options(Timings::Sampled)).expect("opens");
    let mut entries = db.iter(ReadOptions::default());
    for key in 0..10_000u32 {
        db.put(key.to_be_bytes(), b"value").expect("writes");
        assert!(db.get(key.to_be_bytes()).expect("reads").is_some());
        entries.seek(&key.to_be_bytes());
    }
    let metrics = db.metrics().expect("answers");
    for name in ["get", "seek", "write"] {
        let name = format!("rocksdb.db.{name}.micros");
        let times = metrics.times.iter().find(|(own, _)| *own == name);
        let (_, times) = times.unwrap_or_else(|| panic!("{name} is not there"));
        assert_eq!(times.count() % 32, 0, "each stands for 32");
        assert!((8_500..11_500).contains(&times.count()), "{name} {times:?}");
        assert!(times.total() >= times.longest() * 32, "{name}");
    }
}

#[test]
fn the_text_is_prometheus_and_tells_the_same() {
    let dir = temp_dir();
    let db = Db::open(dir.path(), options(Timings::Calls)).expect("opens");
    let odd = db
        .create_family("a \"b\"\\", FamilyOptions::default())
        .expect("creates");
    for key in 0..500u32 {
        db.put_cf(&odd, key.to_be_bytes(), [7; 50], &WriteOptions::default())
            .expect("writes");
    }
    db.flush().expect("flushes");
    let metrics = db.metrics().expect("answers");
    let text = metrics.to_prometheus();
    let found = samples(&text);
    let sample = |name: &str| {
        *found
            .get(name)
            .unwrap_or_else(|| panic!("{name} in {text}"))
    };
    assert_eq!(sample("drumlin_engine_number_keys_written_total"), 500.0);
    let level0 = "drumlin_engine_level_tables{family=\"a \\\"b\\\"\\\\\",level=\"0\"}";
    assert_eq!(sample(level0), 1.0);
    assert_eq!(sample("drumlin_engine_level_jobs_total{level=\"0\"}"), 1.0);
    assert_eq!(sample("drumlin_engine_db_write_seconds_count"), 500.0);
    assert_eq!(
        sample("drumlin_engine_db_write_seconds_bucket{le=\"+Inf\"}"),
        500.0
    );
    assert_eq!(sample("drumlin_engine_health"), 0.0);
    assert_eq!(sample("drumlin_engine_db_flush_seconds_count"), 1.0);
    let buckets = text
        .lines()
        .filter(|line| line.starts_with("drumlin_engine_db_write_seconds_bucket"));
    let counts: Vec<f64> = buckets
        .map(|line| {
            line.rsplit_once(' ')
                .expect("a value")
                .1
                .parse()
                .expect("a number")
        })
        .collect();
    assert!(counts.len() > 20 && counts.is_sorted(), "{counts:?}");
}
