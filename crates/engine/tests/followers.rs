//! Goal: a follower beside a busy writer, in this process or in another one that is killed and starts again, shows one
//! moment of it, the one that it says, and goes on; what it was given once can be read on. Method: a writer that cycles
//! over keys in two families with memtables of the smallest size, makes and drops families, compacts and takes tables in;
//! each row names the round that wrote it, so that a view must show the rounds up to that of its sequence number and no
//! other. The writer of another process is this test binary, started again. `DRUMLIN_FOLLOWER_LOOKS` and
//! `DRUMLIN_FOLLOWER_LIVES` say how often the follower is looked at, and how often the process is killed; long runs tell
//! how far they are.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "helpers of tests fail by panicking, stand for other programs, and tell what long runs have reached"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use drumlin::{
    Db, Env, ErrorKind, FamilyOptions, FollowOptions, Options, ReadOptions, SstFileWriter, Tuning,
    View, WriteBatch, WriteOptions,
};
use drumlin_fs::{ManualClock, StrictMemFileSystem, ThreadSpawner};
use drumlin_table::TableWriterOptions;
use drumlin_testkit::memory_dir;

const KEYS: u64 = 500;
const DIR_VARIABLE: &str = "DRUMLIN_FOLLOWERS_DIR";
const LOOKS: u64 = 300;
const LIVES: u64 = 4;
/// The rounds of a life are as many as this, times one to `LIVES`.
const LIFE_ROUNDS: usize = 300;
const ON_DEMAND: FollowOptions = FollowOptions { interval: None };

fn options() -> Options {
    Options {
        tuning: Tuning {
            write_buffer_bytes: Some(16 << 10),
            target_file_bytes: 32 << 10,
            reuse_from_bytes: 1,
            blob_from_bytes: Some(400),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn value(round: u64) -> Vec<u8> {
    // Some are stored in blob files.
    let mut value = format!("{round:020}").into_bytes();
    value.resize(if round.is_multiple_of(5) { 500 } else { 60 }, b'v');
    value
}

/// Round `round` sets the key `round % KEYS` in both families; now and then with other work.
fn write_round(db: &Db, dir: &Path, round: u64) {
    let other = db.column_family("other").unwrap();
    let key = format!("key{:05}", round % KEYS);
    let mut batch = WriteBatch::new();
    batch.put(key.as_bytes(), &value(round)).unwrap();
    batch
        .put_cf(other.id(), key.as_bytes(), &value(round))
        .unwrap();
    db.write(batch, &WriteOptions::default()).unwrap();
    do_chores(db, dir, round);
}

/// What comes after the write of round `round`, once or twice. The table to be taken in is made beside `dir`.
fn do_chores(db: &Db, dir: &Path, round: u64) {
    let other = db.column_family("other").unwrap();
    match round % 700 {
        100 if db.column_family(&format!("passing{round}")).is_none() => {
            let name = format!("passing{round}");
            let family = db.create_family(&name, FamilyOptions::default()).unwrap();
            db.put_cf(&family, "round", value(round), &WriteOptions::default())
                .unwrap();
        }
        300 => {
            let family = db.column_family(&format!("passing{}", round - 200));
            family.map_or(Ok(()), |it| db.drop_family(&it)).unwrap();
        }
        400 => db.compact_range(db.default_family(), None, None).unwrap(),
        500 => {
            let path = dir.with_extension("taken");
            let env = Env::system();
            let mut table =
                SstFileWriter::create(&env, &path, TableWriterOptions::default()).unwrap();
            table.put(b"taken", &value(round)).unwrap();
            table.finish().unwrap();
            db.ingest(&other, &[path], true).unwrap();
        }
        _ => {}
    }
}

/// The rounds that `view` shows, one past the last, and that of the table taken in last, or 0: each family must be of that
/// moment.
fn shown_by(db: &Db, view: &View) -> (u64, u64) {
    let mut shown = [0, 0];
    let mut taken_in = 0;
    for (shown, name) in shown.iter_mut().zip(["default", "other"]) {
        let Some(family) = db.column_family(name) else {
            continue;
        };
        let mut iter = view.iter_cf(&family, &ReadOptions::default());
        let mut rounds: Vec<u64> = Vec::new();
        iter.seek_to_first();
        while iter.valid() {
            let text = std::str::from_utf8(&iter.value()[..20]).unwrap();
            let round: u64 = text.parse().unwrap();
            match iter.key() == b"taken" {
                true => taken_in = round + 1,
                false => rounds.push(round),
            }
            iter.next();
        }
        iter.status().unwrap();
        rounds.sort_unstable();
        let end = rounds.last().map_or(0, |last| last + 1);
        let expected: Vec<u64> = (end.saturating_sub(KEYS)..end).collect();
        assert_eq!(rounds, expected, "{name} shows rows of several moments");
        *shown = end;
    }
    assert_eq!(shown[0], shown[1], "the families are of two moments");
    (shown[0], taken_in)
}

/// The rounds that `view` shows, one past the last: the table that was taken in last must be there, too.
fn moment_of(db: &Db, view: &View) -> u64 {
    let (shown, taken_in) = shown_by(db, view);
    let due = (0..shown).rev().find(|round| round % 700 == 500);
    let due = due.map_or(0, |round| round + 1);
    // It comes after the write of its round.
    let is_whole = taken_in == due || shown == due;
    assert!(is_whole, "{taken_in} is taken in, {shown} is shown");
    shown
}

/// The number in the environment's `variable`, else `usual`.
fn times(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

/// Tells each time that `every` more of `what` are `done`.
fn tell(what: &str, done: u64, every: u64) {
    if done.is_multiple_of(every) {
        eprintln!("{done} {what}: none wrong");
    }
}

/// Ends the writer, however the test ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn a_follower_beside_a_writer_shows_one_moment_and_never_an_older_one_than_it_says() {
    let made = memory_dir();
    let dir = &made.path().join("db");
    let db = Db::open(dir, options()).unwrap();
    db.create_family("other", FamilyOptions::default()).unwrap();
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    // The newest sequence number after each round; read by those who know that the round is over.
    let numbers = drumlin_base::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::Acquire) {
                write_round(&db, dir, round);
                numbers.lock().push(db.latest_seqno());
                round += 1;
                acknowledged.store(round, Ordering::Release);
            }
        });
        let _stop = Stop(&stop);
        let own_thread = FollowOptions {
            interval: Some(Duration::from_millis(1)),
        };
        let follower = Db::open_follower(dir, options(), own_thread).unwrap();
        let mut held = Vec::new();
        let mut last = 0;
        let looks = times("DRUMLIN_FOLLOWER_LOOKS", LOOKS);
        for look in 0..looks {
            let before = acknowledged.load(Ordering::Acquire);
            let lag = match look % 3 {
                0 => follower.catch_up().unwrap(),
                _ => follower.lag(),
            };
            let view = follower.db().view();
            assert!(view.seqno() >= lag.seqno);
            let shown = moment_of(follower.db(), &view);
            if look % 3 == 0 {
                assert!(shown >= before, "{shown} is shown, {before} were there");
            }
            assert!(shown >= last, "{shown} is shown after {last}");
            last = shown;
            let told = numbers.lock();
            let number = |round: u64| told.get(usize::try_from(round).unwrap()).copied();
            // Complete up to its number, and nothing of the round behind it.
            assert!(number(shown).is_none_or(|end| view.seqno() < end));
            drop(told);
            if look % (looks / 6).max(1) == 0 {
                held.push((view, shown));
            }
            tell("looks", look + 1, 10_000);
        }
        for (view, shown) in &held {
            assert_eq!(moment_of(follower.db(), view), *shown);
        }
        assert!(follower.failure().is_none());
        assert!(!writer.is_finished(), "the writer failed");
    });
    let follower = Db::open_follower(dir, options(), ON_DEMAND).unwrap();
    let families = |db: &Db| {
        let families = db.families();
        let names = families.iter().map(|family| family.name().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(families(follower.db()), families(&db));
}

/// The child's life: goes on from the round that it finds, and reports what is written.
fn write_until_killed(dir: &Path) {
    let db = Db::open_all_families(dir, options()).unwrap();
    if db.column_family("other").is_none() {
        db.create_family("other", FamilyOptions::default()).unwrap();
    }
    let (begun, _) = shown_by(&db, &db.view());
    if let Some(last) = begun.checked_sub(1) {
        do_chores(&db, dir, last);
    }
    let mut out = std::io::stdout();
    for round in begun.. {
        write_round(&db, dir, round);
        let told = writeln!(out, "round {}", round + 1).and_then(|()| out.flush());
        if told.is_err() {
            return; // The parent is gone.
        }
    }
}

fn start_writer(dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--nocapture",
            "a_follower_goes_on_over_a_process_that_is_killed",
        ])
        .env(DIR_VARIABLE, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_follower_goes_on_over_a_process_that_is_killed() {
    if let Some(dir) = std::env::var_os(DIR_VARIABLE) {
        return write_until_killed(Path::new(&dir));
    }
    let made = memory_dir();
    let dir = &made.path().join("db");
    drop(Db::open(dir, options()).unwrap());
    let follower = Db::open_follower(dir, options(), FollowOptions::default()).unwrap();
    for life in 0..times("DRUMLIN_FOLLOWER_LIVES", LIVES) {
        let rounds_max = LIFE_ROUNDS * (1 + life % LIVES) as usize;
        let mut writer = start_writer(dir);
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let rounds = lines.filter_map(|line| {
            let line = line.unwrap();
            let (_, round) = line.split_once("round ")?;
            round.parse::<u64>().ok()
        });
        let mut shown = 0;
        for (at, round) in rounds.take(rounds_max).enumerate() {
            if at % 20 == 0 {
                let lag = follower.catch_up().unwrap();
                let view = follower.db().view();
                assert!(view.seqno() >= lag.seqno);
                shown = moment_of(follower.db(), &view);
                assert!(shown >= round, "{shown} is shown after {round}");
            }
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        follower.catch_up().unwrap();
        assert!(shown_by(follower.db(), &follower.db().view()).0 >= shown);
        tell("lives", life + 1, 100);
    }
}

#[test]
fn what_a_follower_cannot_do_is_refused() {
    let dir = memory_dir();
    let db = Db::open(dir.path(), options()).unwrap();
    db.put("a", "1").unwrap();
    let follower = Db::open_follower(dir.path(), options(), ON_DEMAND).unwrap();
    let read = follower.db();
    assert_eq!(read.put("b", "2").unwrap_err().kind(), ErrorKind::ReadOnly);
    let of_a_snapshot = ReadOptions {
        snapshot: Some(read.snapshot()),
        ..ReadOptions::default()
    };
    let error = read
        .get_cf(read.default_family(), "a", &of_a_snapshot)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    assert!(error.to_string().contains("view"), "{error}");
    let error = read.checkpoint(dir.path().join("copy")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    let missing = Db::open_follower(dir.path().join("nothing"), options(), ON_DEMAND);
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn the_lag_is_what_was_not_looked_at() {
    let files = StrictMemFileSystem::new();
    let clock = Arc::new(ManualClock::new(1_700_000_000));
    let options = Options {
        env: Env {
            files: Arc::new(files),
            clock: Arc::clone(&clock) as Arc<_>,
            spawner: Arc::new(ThreadSpawner),
            seed: 1,
        },
        background_threads: Some(0),
        ..Options::default()
    };
    let db = Db::open("/db", options.clone()).unwrap();
    db.put("a", "1").unwrap();
    let follower = Db::open_follower("/db", options, ON_DEMAND).unwrap();
    assert_eq!(follower.lag().seqno, 1);
    db.put("a", "2").unwrap();
    clock.advance(Duration::from_secs(5));
    let lag = follower.lag();
    assert_eq!((lag.seqno, lag.age), (1, Duration::from_secs(5)));
    assert_eq!(follower.db().get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(follower.wait_for(2, Duration::ZERO).unwrap());
    assert!(!follower.wait_for(3, Duration::ZERO).unwrap());
    let lag = follower.lag();
    assert_eq!((lag.seqno, lag.age), (2, Duration::ZERO));
    assert_eq!(follower.db().get("a").unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn a_directory_that_went_back_is_told_and_not_shown() {
    let (dir, copy) = (memory_dir(), memory_dir());
    let db = Db::open(dir.path(), options()).unwrap();
    db.put("a", "1").unwrap();
    let older = copy.path().join("older");
    db.checkpoint(&older).unwrap();
    db.put("a", "2").unwrap();
    let follower = Db::open_follower(dir.path(), options(), ON_DEMAND).unwrap();
    db.close().unwrap();
    std::fs::rename(dir.path(), copy.path().join("newer")).unwrap();
    std::fs::rename(&older, dir.path()).unwrap();
    let error = follower.catch_up().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Aborted, "{error}");
    assert_eq!(follower.failure().unwrap().kind(), ErrorKind::Aborted);
    assert_eq!(follower.db().get("a").unwrap().as_deref(), Some(&b"2"[..]));
    // Once the directory has as much, it is shown again.
    let db = Db::open(dir.path(), options()).unwrap();
    for round in 0..3 {
        db.put("a", format!("new {round}")).unwrap();
    }
    follower.catch_up().unwrap();
    assert_eq!(
        follower.db().get("a").unwrap().as_deref(),
        Some(&b"new 2"[..])
    );
}
