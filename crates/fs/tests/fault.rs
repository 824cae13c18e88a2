//! Injected faults strike the operations that their rules name, and no others.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumlin_base::{ErrorKind, Result};
use drumlin_fs::{
    Clock, CrashPolicy, CreateOptions, Fault, FaultFileSystem, FaultRule, FileKind, FileSystem,
    ManualClock, Observer, OpKind, StrictMemFileSystem,
};

fn path(name: &str) -> PathBuf {
    Path::new("/").join(name)
}

fn faulty() -> (StrictMemFileSystem, FaultFileSystem) {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    (memory, files)
}

/// Replaces the file `f` the safe way.
fn replace(files: &dyn FileSystem, content: &[u8]) -> Result<()> {
    let mut file = files.create(&path("tmp"), CreateOptions::new(FileKind::Other))?;
    file.append(content)?;
    file.sync()?;
    file.close()?;
    files.rename(&path("tmp"), &path("f"))?;
    files.sync_dir(Path::new("/"))
}

/// The scheme of every crash test: stop at each operation, cut the power each way, look.
#[test]
fn a_safe_replacement_survives_a_stop_at_every_operation() {
    let mut stops = 0;
    for index in 0.. {
        let (memory, files) = faulty();
        replace(&files, b"old").unwrap();
        let before = files.operations();
        files.add_rule(FaultRule::once(index, Fault::Stop));
        let done = replace(&files, b"new!");
        assert_eq!(done.is_err(), files.is_stopped());
        if done.is_ok() {
            assert_eq!(files.operations() - before, index);
            break;
        }
        stops += 1;
        assert!(files.exists(&path("f")).is_err());
        for policy in CrashPolicy::ALL {
            for seed in 0..20 {
                let after = memory.crash_image(seed, policy);
                let content = after.read_file(&path("f"), 100).unwrap();
                assert!(
                    content == b"old" || content == b"new!",
                    "{index} {policy:?}"
                );
            }
        }
    }
    assert_eq!(stops, 6);
}

#[test]
fn an_error_at_every_operation_is_reported_once() {
    for index in 0..6 {
        let (_, files) = faulty();
        files.add_rule(FaultRule::once(index, Fault::Io));
        let error = replace(&files, b"x").unwrap_err();
        assert_eq!((error.kind(), error.os_code()), (ErrorKind::Io, Some(5)));
        assert_eq!((files.operations(), files.injected()), (index + 1, 1));
        replace(&files, b"x").unwrap();
    }
}

#[test]
fn a_rule_strikes_by_operation_kind_and_path() {
    let (_, files) = faulty();
    let rule = FaultRule::from(1, Fault::NoSpace).on(OpKind::Append);
    files.add_rule(rule.of_kind(FileKind::Wal).of_path("00007"));
    let wal = CreateOptions::new(FileKind::Wal);
    let mut other = files.create(&path("000008.log"), wal).unwrap();
    let mut table = files
        .create(&path("000007.sst"), CreateOptions::new(FileKind::Table))
        .unwrap();
    let mut file = files.create(&path("000007.log"), wal).unwrap();
    for _ in 0..3 {
        other.append(b"x").unwrap();
        table.append(b"x").unwrap();
    }
    file.append(b"x").unwrap();
    assert_eq!(file.append(b"x").unwrap_err().kind(), ErrorKind::NoSpace);
    // Broken for good: the sync is not struck by the rule, but refused.
    assert_eq!(file.sync().unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(files.injected(), 1);
    files.clear_rules();
    let reader = files.open(&path("000007.log")).unwrap();
    files.add_rule(FaultRule::always(Fault::TooManyFiles).of_kind(FileKind::Wal));
    let error = reader.read_at(0, &mut [0]).unwrap_err();
    assert_eq!(error.os_code(), Some(24));
}

#[test]
fn a_failed_sync_over_memory_loses_the_bytes_in_a_crash() {
    let (memory, files) = faulty();
    let options = CreateOptions::new(FileKind::Wal);
    let mut file = files.create(&path("1.log"), options).unwrap();
    files.sync_dir(Path::new("/")).unwrap();
    file.append(b"abc").unwrap();
    files.add_rule(FaultRule::once(0, Fault::Io).on(OpKind::Sync));
    let syncer = file.syncer();
    assert!(syncer.sync().is_err());
    assert!(file.append(b"x").is_err());
    files.sync_file(&path("1.log")).unwrap();
    assert_eq!(
        files.read_file(&path("1.log"), 1 << 20).unwrap()[..3],
        *b"abc"
    );
    let after = memory.crash(1, CrashPolicy::KeepNothing);
    assert_eq!(after.read_file(&path("1.log"), 1 << 20).unwrap(), b"");
}

#[test]
fn a_cut_outlives_a_failed_sync() {
    let (memory, files) = faulty();
    let mut file = files
        .create(&path("f"), CreateOptions::new(FileKind::Other))
        .unwrap();
    file.append(&[7; 10_000]).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    files.sync_dir(Path::new("/")).unwrap();
    files.truncate(&path("f"), 4000).unwrap();
    memory.forget_unsynced(&path("f")).unwrap();
    files.sync_file(&path("f")).unwrap();
    let after = memory.crash(1, CrashPolicy::KeepNothing);
    assert_eq!(after.info(&path("f")).unwrap().size, 4000);
}

#[test]
fn reads_can_give_wrong_and_short_bytes() {
    let (_, files) = faulty();
    replace(&files, &[0; 8]).unwrap();
    let reader = files.open(&path("f")).unwrap();
    files.add_rule(FaultRule::once(0, Fault::FlippedBit).on(OpKind::Read));
    files.add_rule(FaultRule::once(1, Fault::ShortRead).on(OpKind::Read));
    let mut buffer = [0; 8];
    assert_eq!(reader.read_at(0, &mut buffer).unwrap(), 8);
    assert_eq!(buffer.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    assert_eq!(reader.read_at(0, &mut buffer).unwrap(), 4);
    assert_eq!(reader.read_at(0, &mut buffer).unwrap(), 8);
    assert_eq!(buffer, [0; 8]);
    assert_eq!(files.injected(), 2);
}

#[test]
fn a_torn_append_leaves_its_front() {
    let kinds = [
        (Fault::TornAppend, ErrorKind::Io),
        (Fault::TornNoSpace, ErrorKind::NoSpace),
    ];
    for (fault, kind) in kinds {
        let (_, files) = faulty();
        let options = CreateOptions::new(FileKind::Manifest);
        let mut file = files.create(&path("MANIFEST-1"), options).unwrap();
        files.add_rule(FaultRule::once(0, fault).of_kind(FileKind::Manifest));
        assert_eq!(file.append(b"abcdef").unwrap_err().kind(), kind);
        assert!(file.append(b"g").is_err());
        assert_eq!(files.read_file(&path("MANIFEST-1"), 10).unwrap(), b"abc");
    }
}

#[test]
fn the_history_names_every_operation() {
    let files = FaultFileSystem::new(Arc::new(StrictMemFileSystem::new()));
    files.record_history();
    replace(&files, b"x").unwrap();
    let ops: Vec<OpKind> = files.history().into_iter().map(|(op, _)| op).collect();
    use OpKind::{Append, Close, Create, Rename, Sync, SyncDir};
    assert_eq!(ops, [Create, Append, Sync, Close, Rename, SyncDir]);
}

#[test]
fn chance_is_repeatable() {
    let run = |seed| {
        let (_, files) = faulty();
        files.add_rule(FaultRule::one_in(4, seed, Fault::Io));
        let done: Vec<bool> = (0..400).map(|_| files.exists(&path("f")).is_ok()).collect();
        done
    };
    let struck = run(1).iter().filter(|&&ok| !ok).count();
    assert!((60..140).contains(&struck), "{struck}");
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// Earlier appends can still be synced by the writers that were promised it.
#[test]
fn a_failed_append_leaves_the_syncs_of_others_and_a_failed_sync_does_not() {
    let (_, files) = faulty();
    let wal = CreateOptions::new(FileKind::Wal);
    let mut file = files.create(&path("000001.log"), wal).unwrap();
    let syncer = file.syncer();
    file.append(b"one").unwrap();
    files.add_rule(FaultRule::once(0, Fault::NoSpace));
    assert_eq!(file.append(b"two").unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(file.sync().unwrap_err().kind(), ErrorKind::NoSpace);
    syncer.sync().unwrap();
    files.add_rule(FaultRule::once(0, Fault::Io));
    assert_eq!(syncer.sync().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(syncer.sync().unwrap_err().kind(), ErrorKind::Io);
}

/// A delay of a rule is slept on the given clock, and the operation is done.
#[test]
fn slow_operations_take_their_time_on_the_clock_and_are_done() {
    let (_, files) = faulty();
    let clock = ManualClock::new(0);
    files.set_clock(Arc::new(clock.clone()));
    let millis = Duration::from_millis;
    files.add_rule(FaultRule::always(Fault::slow(millis(5))).on(OpKind::Sync));
    files.add_rule(FaultRule::always(Fault::slow(millis(1))).of_path("tmp"));
    replace(&files, b"x").unwrap();
    // `tmp` is created, appended to, synced and closed; the rename counts for `f`.
    assert_eq!(clock.monotonic(), millis(4 + 5));
    assert_eq!((files.slowed(), files.injected()), (4, 0));
    assert_eq!(files.read_file(&path("f"), 10).unwrap(), b"x");
    files.clear_rules();
    replace(&files, b"y").unwrap();
    assert_eq!(clock.monotonic(), millis(9));
}

#[test]
fn random_delays_stay_in_their_bounds_and_repeat_with_their_seed() {
    let times = |seed| {
        let (_, files) = faulty();
        let clock = ManualClock::new(0);
        files.set_clock(Arc::new(clock.clone()));
        let slow = Fault::Slow {
            least: Duration::from_micros(100),
            most: Duration::from_micros(900),
        };
        files.add_rule(FaultRule::always(slow).seeded(seed).on(OpKind::List));
        let mut times = Vec::new();
        for _ in 0..200 {
            let before = clock.monotonic();
            files.list(Path::new("/")).unwrap();
            times.push(clock.monotonic() - before);
        }
        times
    };
    let first = times(1);
    assert_eq!(first, times(1));
    assert_ne!(first, times(2));
    let (least, most) = (first.iter().min().unwrap(), first.iter().max().unwrap());
    assert!(*least >= Duration::from_micros(100) && *least < Duration::from_micros(200));
    assert!(*most <= Duration::from_micros(900) && *most > Duration::from_micros(800));
}

#[test]
fn a_slow_operation_can_fail_too() {
    let (_, files) = faulty();
    let clock = ManualClock::new(0);
    files.set_clock(Arc::new(clock.clone()));
    files.add_rule(FaultRule::always(Fault::slow(Duration::from_secs(1))).on(OpKind::List));
    files.add_rule(FaultRule::once(1, Fault::Io).on(OpKind::List));
    files.list(Path::new("/")).unwrap();
    let error = files.list(Path::new("/")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(clock.monotonic(), Duration::from_secs(2));
    assert_eq!((files.slowed(), files.injected()), (2, 1));
}

/// Counts the files of a directory before each operation.
#[derive(Debug)]
struct Watch {
    memory: StrictMemFileSystem,
    seen: Mutex<Vec<(OpKind, usize)>>,
}

impl Observer for Watch {
    fn before(&self, op: OpKind, _path: &Path) {
        let names = self
            .memory
            .list(Path::new("/"))
            .map_or(0, |names| names.len());
        self.seen.lock().expect("nobody panics").push((op, names));
    }
}

#[test]
fn an_observer_sees_the_disk_before_each_operation_until_the_machine_stops() {
    let (memory, files) = faulty();
    let seen = Mutex::default();
    let watch = Arc::new(Watch { memory, seen });
    files.set_observer(Some(Arc::clone(&watch) as _));
    let options = CreateOptions::new(FileKind::Other);
    drop(files.create(Path::new("/one"), options).unwrap());
    files.remove(Path::new("/one")).unwrap();
    files.stop();
    assert!(files.create(Path::new("/two"), options).is_err());
    files.set_observer(None);
    let seen = watch.seen.lock().unwrap().clone();
    assert_eq!(seen, [(OpKind::Create, 0), (OpKind::Remove, 1)]);
}
