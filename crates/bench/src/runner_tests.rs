//! The runner against a store in memory: the counts must be those db_bench 7.8.3 printed for the
//! same flags and seed on its own store.

use std::time::Duration;

use drumlin_fs::{CreateOptions, FileKind, StrictMemFileSystem};

use super::*;
use crate::memory::{MemoryStore, OBSOLETE};

fn env() -> Env {
    Env::system()
}

/// Runs `line` and returns the output.
fn run(line: &str) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut out = Vec::new();
    Runner::<MemoryStore>::new(Flags::parse(&words)?, env(), &mut out).run()?;
    Ok(String::from_utf8(out).expect("the report is text"))
}

/// The report's lines without their times: name, operations, remark.
fn counts(report: &str) -> Vec<String> {
    let lines = report.lines().filter(|line| line.contains("micros/op"));
    let shorten = |line: &str| {
        let name = line.split_whitespace().next().unwrap_or_default();
        let (before, after) = line.split_once(" operations;").expect("a report line");
        let operations = before.rsplit(' ').next().unwrap_or_default();
        let remark = after.find('(').map_or("", |at| &after[at..]);
        format!("{name} {operations} {remark}")
            .trim_end()
            .to_owned()
    };
    lines.map(shorten).collect()
}

#[test]
fn as_many_keys_are_found_as_by_db_bench_with_the_same_seed() {
    let line = "--benchmarks=fillrandom,deleterandom,readrandom,seekrandom,multireadrandom \
                --num=1000 --reads=700 --seed=99 --batch_size=10";
    assert_eq!(
        counts(&run(line).expect("sound flags")),
        [
            "fillrandom 1000",
            "deleterandom 1000",
            "readrandom 700 (160 of 700 found)",
            "seekrandom 700 (172 of 700 found)",
            "multireadrandom 700 (146 of 700 found)",
        ]
    );
}

#[test]
fn ranges_that_were_deleted_are_gone() {
    let line = "--benchmarks=fillseq,deleterange,readseq --num=500 --deletes=4 --seed=7 \
                --range_tombstone_width=500";
    let report = counts(&run(line).expect("sound flags"));
    assert_eq!(report[1], "deleterange 4 (1 of 4 found)");
    assert_ne!(report[2], "readseq 500");
}

#[test]
fn a_queue_keeps_its_length() {
    let line = "--benchmarks=fillseq,queue,readseq --num=500 --writes=500 --reads=2000";
    let report = counts(&run(line).expect("sound flags"));
    assert_eq!(report, ["fillseq 500", "queue 500", "readseq 500"]);
}

#[test]
fn threads_have_seeds_and_counts_of_their_own() {
    // db_bench found 862 of 1000 in the thread it prints; both threads read the same key space.
    let line = "--benchmarks=fillrandom,readrandom,readmissing --num=1000 --seed=42 --threads=2";
    let report = counts(&run(line).expect("sound flags"));
    assert_eq!(report[0], "fillrandom 2000");
    assert_eq!(report[2], "readmissing 2000 (0 of 2000 found)");
    let found = report[1]
        .strip_prefix("readrandom 2000 (")
        .expect("a count");
    let found: u64 = found
        .split(' ')
        .next()
        .unwrap_or("")
        .parse()
        .expect("a number");
    assert!((1650..1800).contains(&found), "{found}");
}

#[test]
fn every_workload_runs_and_repeats() {
    let line = "--benchmarks=fillseq,fillbatch,fillsync,fill100K,filluniquerandom,overwrite,\
                readseq,readreverse,readhot,readwhilewriting,multireadwhilewriting,seekrandomwhilewriting,deleteseq,\
                compact,flush,waitforcompaction,stats,readrandom[X2-W1] \
                --num=2000 --seed=3 --histogram --seek_nexts=3 --max_scan_distance=2";
    let report = run(line).expect("sound flags");
    let counts = counts(&report);
    let find = |name: &str| {
        let mut with_name = counts.iter().filter(|line| line.starts_with(name));
        with_name.next().cloned().unwrap_or_default()
    };
    assert_eq!(find("fillbatch"), "fillbatch 2000");
    assert_eq!(find("fillsync"), "fillsync 2 (2 ops)");
    assert_eq!(find("fill100K"), "fill100K 2 (2 ops)");
    assert_eq!(find("readseq"), "readseq 2000");
    assert_eq!(find("readreverse"), "readreverse 2000");
    assert_eq!(
        find("readwhilewriting"),
        "readwhilewriting 2000 (2000 of 2000 found)"
    );
    assert_eq!(
        find("seekrandomwhilewriting"),
        "seekrandomwhilewriting 2000 (2000 of 2000 found)"
    );
    assert_eq!(find("readhot"), "readhot 2000 (2000 of 2000 found)");
    assert_eq!(find("readrandom"), "readrandom 2000 (0 of 2000 found)");
    assert_eq!(
        counts
            .iter()
            .filter(|line| line.starts_with("readrandom "))
            .count(),
        3
    );
    assert!(report.contains("readrandom [MEDIAN 2 runs] : "), "{report}");
    assert!(report.contains("+ writer     : "), "{report}");
    assert!(report.contains("\n0 entries\n"), "{report}");
    assert!(
        report.contains("Microseconds per write:\nCount: 2000 "),
        "{report}"
    );
}

#[test]
fn a_workload_that_would_empty_an_existing_database_is_skipped() {
    let report = run("--benchmarks=fillseq,readseq --num=10 --use_existing_db");
    let report = report.expect("sound flags");
    assert!(report.contains("fillseq      : skipped (--use_existing_db is true)\n"));
    assert_eq!(counts(&report), ["readseq 1"]);
}

#[test]
fn errors_name_the_workload_and_unknown_ones_stop_before_the_first() {
    let error = run("--benchmarks=fillseq --num=10 --wal_dir=broken").expect_err("broken");
    assert_eq!(error.to_string(), "fillseq: this store is broken");
    for line in [
        "--benchmarks=fillseq,nosuch",
        "--benchmarks=readseq[X2",
        "--benchmarks=a[Q1]",
    ] {
        let error = run(line).expect_err("a mistake");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

#[test]
fn a_duration_ends_random_workloads() {
    let clock = env().clock;
    let before = clock.monotonic();
    let line = "--benchmarks=fillrandom --num=100 --duration=1 --threads=2";
    let report = run(line).expect("sound flags");
    let took = clock.monotonic() - before;
    assert!(took >= Duration::from_secs(1), "{report}");
}

#[test]
fn a_stall_run_prints_its_seconds_and_ends_with_the_summary() {
    let line = "--benchmarks=stall --duration=1 --num=1000 --value_size=10";
    let report = run(line).expect("sound flags");
    assert!(report.contains("stall: 2 threads, values of 10 bytes, 1000 keys\n"));
    assert!(
        report.contains("* "),
        "the compaction marks its seconds: {report}"
    );
    for line in [
        "floor/median: 1.000",
        "p99.9: ",
        "max: ",
        "manual compaction: asked",
    ] {
        let found = report.lines().any(|found| found.starts_with(line));
        assert!(found, "{line}\n{report}");
    }
}

#[test]
fn sustained_writes_are_counted_and_errors_of_writers_are_told() {
    let line = "--benchmarks=sustain --num=500 --writes=700 --threads=2";
    let report = run(line).expect("sound flags");
    assert!(report.contains("\nwrites: 1400 in "), "{report}");
    let broken = run("--benchmarks=sustain --num=10 --wal_dir=broken").expect_err("broken");
    assert_eq!(broken.to_string(), "sustain: this store is broken");
}

#[test]
fn the_size_is_that_without_files_that_are_obsolete() {
    let env = env().with_files(Arc::new(StrictMemFileSystem::new()));
    let made = env.files.create_dir_all(Path::new("/db"));
    made.expect("memory takes a directory");
    for (name, bytes) in [(OBSOLETE, 50_000), ("table", 1000)] {
        let path = Path::new("/db").join(name);
        let options = CreateOptions::new(FileKind::Other);
        let file = env.files.create(&path, options);
        let mut file = file.expect("memory takes a file");
        file.append(&vec![1; bytes]).expect("memory has room");
        file.close().expect("memory has room");
    }
    let flags = Flags::parse(&["--benchmarks=size", "--db=/db", "--num=10"]);
    let mut out = Vec::new();
    let mut runner = Runner::<MemoryStore>::new(flags.expect("sound flags"), env.clone(), &mut out);
    runner.run().expect("nothing fails here");
    let printed = String::from_utf8(out).expect("the report is text");
    let line = report::size_line(1000, 10 * 116, 10);
    assert!(printed.contains(&line), "{printed}");
}
