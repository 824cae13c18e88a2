//! Goal: the MANIFEST holds every acknowledged edit, whatever fails. Method: a small history of edits is
//! cut by a power failure before every single operation on the disk, under every policy for
//! unsynced bytes, and by failing operations; the state read back is compared with the states
//! that were acknowledged. Directories of the two peers are read from files they wrote.

use std::path::Path;
use std::sync::Arc;

use drumlin::internals::names;
use drumlin::internals::options_file;
use drumlin::internals::record::{Later, RecordReader, Verdict};
use drumlin::internals::version::obsolete::{obsolete_files, remove_files};
use drumlin::internals::version::{
    self, NewFile, PastMoment, Profile, VersionEdit, VersionSet, VersionSetOptions,
};
use drumlin_base::key::internal_key;
use drumlin_base::{ErrorKind, KeyOrder, Result, ValueKind};
use drumlin_fs::{
    CrashPolicy, CreateOptions, Fault, FaultFileSystem, FaultRule, FileKind, FileSystem, OpKind,
    StrictMemFileSystem,
};

const DIR: &str = "/db";

fn dir() -> &'static Path {
    Path::new(DIR)
}

fn options(families: &[&str]) -> VersionSetOptions {
    let others = families
        .iter()
        .map(|name| ((*name).to_owned(), KeyOrder::Bytewise));
    let mut options = VersionSetOptions::new();
    options.families.extend(others);
    options
}

/// The directory, its name kept through a power cut.
fn make_dir(files: &dyn FileSystem) -> Result<()> {
    files.create_dir_all(dir())?;
    files.sync_dir(Path::new("/"))
}

fn put_file(files: &dyn FileSystem, path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = files.create(path, CreateOptions::new(FileKind::Other))?;
    file.append(bytes)?;
    file.sync()?;
    file.close()
}

/// A table of one key, on disk and as an edit describes it.
fn make_table(set: &VersionSet, files: &dyn FileSystem, key: &str) -> Result<NewFile> {
    let number = set.new_file_number();
    put_file(files, &names::table(dir(), number), key.as_bytes())?;
    let key_of = |seqno| internal_key(key.as_bytes(), seqno, ValueKind::Value);
    Ok(NewFile {
        number,
        size: key.len() as u64,
        smallest: key_of(number),
        largest: key_of(number),
        smallest_seqno: number,
        largest_seqno: number,
        ..NewFile::default()
    })
}

fn adding(family: u32, level: u32, file: NewFile) -> VersionEdit {
    let mut edit = VersionEdit::of_family(family);
    edit.add_file(level, file);
    edit
}

/// Everything a reader of the set can see.
fn picture(set: &VersionSet) -> String {
    let families = set.families().values().map(|family| {
        let (id, name, log) = (family.id, &family.name, family.log_number);
        format!("{id} {name} log {log}\n{}", family.current)
    });
    let families: String = families.collect();
    format!("seqno {}\n{families}", set.last_seqno())
}

/// The history: the acknowledged edits, in order, and the one being attempted.
#[derive(Default)]
struct History {
    acknowledged: Vec<String>,
    names: Vec<&'static str>,
}

impl History {
    fn note(&mut self, set: &VersionSet) {
        self.acknowledged.push(picture(set));
    }

    /// Runs until the first failure. The states it goes through are the same each time.
    fn run(&mut self, files: &Arc<dyn FileSystem>) -> Result<()> {
        make_dir(&**files)?;
        let mut set = VersionSet::create(Arc::clone(files), dir(), &options(&[]))?;
        self.note(&set);
        for key in ["a", "b", "c"] {
            let table = make_table(&set, &**files, key)?;
            set.log_and_apply(vec![adding(0, 0, table)])?;
            self.note(&set);
        }
        let family = set.add_family("second", KeyOrder::Bytewise, 3)?;
        self.names.push("second");
        self.note(&set);
        let (one, two) = (
            make_table(&set, &**files, "x")?,
            make_table(&set, &**files, "y")?,
        );
        set.log_and_apply(vec![adding(0, 1, one), adding(family, 2, two)])?;
        self.note(&set);
        drop(set);

        // The next incarnation: its first edit writes a new MANIFEST.
        let (mut set, _) = VersionSet::recover(Arc::clone(files), dir(), &options(&["second"]))?;
        let mut edit = VersionEdit::default();
        let moved = set.families()[&0].current.level(0)[2].clone();
        edit.delete_file(0, moved.number);
        edit.add_file(3, moved.described().clone());
        edit.log_number = Some(9);
        drop(moved);
        set.log_and_apply(vec![edit])?;
        self.note(&set);
        let needed = set.needed(Default::default()).unwrap();
        let obsolete = obsolete_files(&files.list(dir())?, &needed);
        remove_files(&**files, dir(), &obsolete)?;
        set.drop_family(family, 0)?;
        self.names.pop();
        self.note(&set);
        Ok(())
    }
}

fn as_files(memory: &StrictMemFileSystem) -> Arc<dyn FileSystem> {
    Arc::new(memory.clone())
}

/// Opens the existing set, with or without the second family.
fn recover(files: &Arc<dyn FileSystem>) -> Result<VersionSet> {
    let names = VersionSet::list_families(&**files, dir())?;
    let others: Vec<_> = names.iter().map(String::as_str).skip(1).collect();
    VersionSet::recover(Arc::clone(files), dir(), &options(&others)).map(|(set, _)| set)
}

fn states() -> (Vec<String>, u64) {
    let fault = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
    let mut whole = History::default();
    let files: Arc<dyn FileSystem> = Arc::new(fault.clone());
    whole.run(&files).unwrap();
    (whole.acknowledged, fault.operations())
}

#[test]
fn a_power_cut_before_any_operation_leaves_the_last_promise_or_the_next() {
    let (states, operations) = states();
    assert!(operations > 60, "{operations} operations");
    for at in 0..operations {
        for (seed, policy) in (0..).zip(CrashPolicy::ALL) {
            let memory = StrictMemFileSystem::new();
            let fault = FaultFileSystem::over_memory(&memory);
            fault.add_rule(FaultRule::once(at, Fault::Stop));
            let mut history = History::default();
            let files: Arc<dyn FileSystem> = Arc::new(fault.clone());
            assert!(history.run(&files).is_err());
            let done = history.acknowledged.len();
            let disk = memory.crash(seed + at, policy);
            check_recovery(&disk, &states, done, &format!("operation {at}, {policy:?}"));
        }
    }
}

/// The disk holds state `done - 1` (counted from 0) or the one after; and can be used on.
fn check_recovery(disk: &StrictMemFileSystem, states: &[String], done: usize, case: &str) {
    let files = as_files(disk);
    let recovered = match recover(&files) {
        Ok(set) => set,
        Err(error) if error.is_not_found() && done == 0 => {
            make_dir(&*files).unwrap();
            VersionSet::create(Arc::clone(&files), dir(), &options(&[])).expect(case);
            return;
        }
        Err(error) => panic!("{case}: {error}"),
    };
    let found = picture(&recovered);
    let allowed: Vec<_> = states.iter().skip(done.saturating_sub(1)).take(2).collect();
    assert!(
        allowed.contains(&&found),
        "{case}: found\n{found}allowed {allowed:?}"
    );

    let mut set = recovered;
    let table = make_table(&set, &*files, "new").unwrap();
    set.log_and_apply(vec![adding(0, 5, table)]).expect(case);
    let after = picture(&set);
    let again = disk.crash(1, CrashPolicy::KeepNothing);
    assert_eq!(
        picture(&recover(&as_files(&again)).expect(case)),
        after,
        "{case}"
    );
}

#[test]
fn a_failure_at_any_operation_never_lets_memory_run_ahead_of_the_disk() {
    let (states, operations) = states();
    for fault_kind in [Fault::Io, Fault::NoSpace, Fault::TornAppend] {
        for at in 0..operations {
            let memory = StrictMemFileSystem::new();
            let fault = FaultFileSystem::over_memory(&memory);
            fault.add_rule(FaultRule::once(at, fault_kind).on_changes());
            let mut history = History::default();
            let files: Arc<dyn FileSystem> = Arc::new(fault.clone());
            let survived = history.run(&files).is_ok();
            if fault.injected() == 0 {
                break; // Fewer operations change the disk than there are.
            }
            let done = history.acknowledged.len();
            if survived {
                // A new MANIFEST took over. Its number shifts those of later tables, so that only
                // the disk can be compared.
                let last = history.acknowledged.last().unwrap().clone();
                let disk = memory.crash(at, CrashPolicy::KeepNothing);
                assert_eq!(picture(&recover(&as_files(&disk)).unwrap()), last);
            } else if done > 0 {
                let disk = memory.crash(at, CrashPolicy::KeepNothing);
                let found = picture(&recover(&as_files(&disk)).unwrap());
                let promised = history.acknowledged.last().unwrap();
                let next = states.get(done);
                assert!(
                    found == *promised || Some(&found) == next,
                    "{fault_kind:?} at {at}"
                );
            }
        }
    }
}

#[test]
fn a_failed_sync_is_survived_once_by_a_new_manifest() {
    let memory = StrictMemFileSystem::new();
    let fault = FaultFileSystem::over_memory(&memory);
    let files: Arc<dyn FileSystem> = Arc::new(fault.clone());
    make_dir(&*files).unwrap();
    let mut set = VersionSet::create(Arc::clone(&files), dir(), &options(&[])).unwrap();
    let first = set.manifest_number();
    fault.add_rule(
        FaultRule::once(0, Fault::Io)
            .on(OpKind::Sync)
            .of_kind(FileKind::Manifest),
    );
    let table = make_table(&set, &*files, "a").unwrap();
    set.log_and_apply(vec![adding(0, 0, table)]).unwrap();
    assert!(set.manifest_number() > first);
    let promised = picture(&set);

    // And when everything fails, nothing is installed and nothing may be deleted.
    fault.add_rule(
        FaultRule::always(Fault::Io)
            .on(OpKind::Sync)
            .of_kind(FileKind::Manifest),
    );
    let table = make_table(&set, &*files, "b").unwrap();
    let edit = adding(0, 0, table);
    assert_eq!(
        set.log_and_apply(vec![edit.clone()]).unwrap_err().kind(),
        ErrorKind::Io
    );
    assert_eq!(picture(&set), promised);
    assert!(set.needed(Default::default()).is_none());
    fault.clear_rules();
    let error = set.log_and_apply(vec![edit]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    let disk = memory.crash(0, CrashPolicy::KeepNothing);
    assert_eq!(picture(&recover(&as_files(&disk)).unwrap()), promised);
}

#[test]
fn a_full_disk_is_waited_out() {
    let memory = StrictMemFileSystem::new();
    let fault = FaultFileSystem::over_memory(&memory);
    let files: Arc<dyn FileSystem> = Arc::new(fault.clone());
    make_dir(&*files).unwrap();
    let mut set = VersionSet::create(Arc::clone(&files), dir(), &options(&[])).unwrap();
    let table = make_table(&set, &*files, "a").unwrap();
    let edit = adding(0, 0, table);
    fault.add_rule(FaultRule::always(Fault::NoSpace).on(OpKind::Append));
    let error = set.log_and_apply(vec![edit.clone()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(
        set.needed(Default::default()).is_none(),
        "the edit may be on disk"
    );
    fault.clear_rules();
    set.log_and_apply(vec![edit]).unwrap();
    assert!(set.needed(Default::default()).is_some());
    let promised = picture(&set);
    let disk = memory.crash(0, CrashPolicy::KeepNothing);
    assert_eq!(picture(&recover(&as_files(&disk)).unwrap()), promised);
}

#[test]
fn wal_files_that_no_family_needs_are_not_looked_through_for_sections() {
    let files = as_files(&StrictMemFileSystem::new());
    make_dir(&*files).unwrap();
    let mut set = VersionSet::create(Arc::clone(&files), dir(), &options(&["other"])).unwrap();
    let log_numbers = [(0, 9), (1, 12), (0, 20)];
    for (id, log_number) in log_numbers {
        let edit = VersionEdit {
            log_number: Some(log_number),
            ..VersionEdit::of_family(id)
        };
        set.log_and_apply(vec![edit]).unwrap();
    }
    let (_, info) = VersionSet::recover(files, dir(), &options(&["other"])).unwrap();
    assert_eq!((info.min_log_number, info.sections_from), (12, 12));
}

fn small_database() -> (Arc<dyn FileSystem>, VersionSet) {
    let files = as_files(&StrictMemFileSystem::new());
    make_dir(&*files).unwrap();
    let mut set = VersionSet::create(Arc::clone(&files), dir(), &options(&["other"])).unwrap();
    for key in ["a", "b"] {
        let table = make_table(&set, &*files, key).unwrap();
        set.log_and_apply(vec![adding(0, 0, table)]).unwrap();
    }
    (files, set)
}

#[test]
fn current_that_is_missing_or_senseless_is_corruption_where_a_database_is() {
    let (files, _) = small_database();
    let current = names::current(dir());
    for content in [
        &b""[..],
        b"MANIFEST-000001",
        b"garbage\n",
        b"MANIFEST-000099\n",
    ] {
        put_file(&*files, &current, content).unwrap();
        assert!(recover(&files).is_err_and(|error| error.is_corruption()));
    }
    files.remove(&current).unwrap();
    assert!(recover(&files).is_err_and(|error| error.is_corruption()));
    let empty = as_files(&StrictMemFileSystem::new());
    assert!(recover(&empty).is_err_and(|error| error.is_not_found()));
}

#[test]
fn a_missing_or_short_table_is_corruption_naming_it() {
    let (files, set) = small_database();
    let number = set.families()[&0].current.level(0)[0].number;
    let path = names::table(dir(), number);
    put_file(&*files, &path, b"longer than it was").unwrap();
    let error = recover(&files).unwrap_err();
    assert!(
        error.is_corruption() && error.file() == Some(&*path),
        "{error}"
    );
    files.remove(&path).unwrap();
    let error = recover(&files).unwrap_err();
    assert!(
        error.is_corruption() && error.to_string().contains("missing"),
        "{error}"
    );
    put_file(&*files, &names::leveldb_table(dir(), number), b"b").unwrap();
    assert!(recover(&files).is_ok(), "LevelDB's name will do");
}

#[test]
fn every_family_is_to_be_named_and_in_its_order() {
    let (files, _) = small_database();
    let open = |options: &VersionSetOptions| {
        VersionSet::recover(Arc::clone(&files), dir(), options).map(|(set, _)| set)
    };
    let error = open(&options(&[])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("other"), "{error}");
    let bytewise = |name: &str, stored: Option<&str>| {
        assert_eq!(stored, Some(KeyOrder::Bytewise.name()), "{name}");
        Ok(KeyOrder::Bytewise)
    };
    let reading =
        VersionSet::recover_to_read(Arc::clone(&files), dir(), Profile::RocksDb, &bytewise);
    let mut set = reading.unwrap();
    assert_eq!(set.families().len(), 2);
    let refused = set.log_and_apply(vec![VersionEdit::default()]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    let unknown = open(&options(&["other", "third"])).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::InvalidArgument);
    let mut turned = options(&["other"]);
    turned.families[1].1 = KeyOrder::ReverseBytewise;
    assert_eq!(
        open(&turned).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        VersionSet::list_families(&*files, dir()).unwrap(),
        ["default", "other"]
    );
}

#[test]
fn a_flipped_bit_anywhere_in_the_manifest_is_never_taken_for_less() {
    let (files, set) = small_database();
    let whole = picture(&set);
    let path = names::manifest(dir(), set.manifest_number());
    let bytes = files.read_file(&path, 1 << 20).unwrap();
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1 << (at % 8);
        put_file(&*files, &path, &bad).unwrap();
        match recover(&files) {
            Ok(set) => assert_eq!(picture(&set), whole, "byte {at}"),
            Err(error) => assert!(error.is_corruption(), "byte {at}: {error}"),
        }
    }
    // Cut inside the snapshot, it lacks the numbers that come last.
    put_file(&*files, &path, &bytes[..40]).unwrap();
    assert!(recover(&files).is_err_and(|error| error.is_corruption()));
}

#[test]
fn a_table_is_obsolete_when_its_last_reader_is_gone() {
    let (files, mut set) = small_database();
    let reader = Arc::clone(&set.families()[&0].current);
    let number = reader.level(0)[0].number;
    let mut edit = VersionEdit::default();
    edit.delete_file(0, number);
    set.log_and_apply(vec![edit]).unwrap();
    assert!(set.take_obsolete_tables().is_empty());
    assert!(
        set.needed(Default::default())
            .unwrap()
            .tables
            .contains(&number)
    );
    drop(reader);
    let needed = set.needed(Default::default()).unwrap();
    let table = names::table(Path::new(""), number);
    assert_eq!(
        obsolete_files(&files.list(dir()).unwrap(), &needed),
        [table]
    );
    assert_eq!(set.take_obsolete_tables(), [number]);
    assert!(set.take_obsolete_tables().is_empty());
}

fn golden(name: &str) -> Arc<dyn FileSystem> {
    let files = as_files(&StrictMemFileSystem::new());
    make_dir(&*files).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    let disk = drumlin_fs::PosixFileSystem::new();
    for name in disk.list(&from).unwrap() {
        let bytes = disk.read_file(&from.join(&name), 1 << 20).unwrap();
        put_file(&*files, &dir().join(&name), &bytes).unwrap();
    }
    files
}

fn open_golden(files: &Arc<dyn FileSystem>, families: &[&str], profile: Profile) -> VersionSet {
    let mut options = options(families);
    (options.check_tables, options.profile) = (false, profile);
    let opened = VersionSet::recover(Arc::clone(files), dir(), &options);
    let (mut set, info) = opened.unwrap();
    assert_eq!(info.manifest_end, Verdict::Clean);
    let before = picture(&set);
    // Copied forward into a MANIFEST of our own, it says the same.
    set.log_and_apply(vec![VersionEdit::default()]).unwrap();
    let again = VersionSet::recover(Arc::clone(files), dir(), &options)
        .unwrap()
        .0;
    assert_eq!(picture(&again), before);
    again
}

/// RocksDB goes on from the sequence number of the last edit, not from the highest.
#[test]
fn sequence_numbers_never_go_back_within_a_group_of_edits() {
    let files = as_files(&StrictMemFileSystem::new());
    make_dir(&*files).unwrap();
    let mut set = VersionSet::create(Arc::clone(&files), dir(), &options(&[])).unwrap();
    let family = set.add_family("second", KeyOrder::Bytewise, 3).unwrap();
    let older = make_table(&set, &*files, "x").unwrap();
    let newer = make_table(&set, &*files, "y").unwrap();
    assert!(newer.largest_seqno > older.largest_seqno);
    let highest = newer.largest_seqno;
    let edits = vec![adding(0, 1, newer), adding(family, 1, older)];
    set.log_and_apply(edits).unwrap();
    let manifest = names::manifest(dir(), set.manifest_number());
    let mut reader = RecordReader::new(files.open(&manifest).unwrap(), 0);
    let mut last = 0;
    while let Some(record) = reader.read().unwrap() {
        let edit = VersionEdit::decode(record.payload).unwrap();
        let seqno = edit.last_seqno.unwrap_or(last);
        assert!(seqno >= last, "{seqno} after {last}");
        last = seqno;
    }
    assert_eq!(last, highest);
}

fn first_batch(files: &dyn FileSystem, number: u64) -> drumlin::internals::batch::WriteBatch {
    let file = files.open(&names::wal(dir(), number)).unwrap();
    let mut reader = RecordReader::new(file, number);
    let payload = reader.read().unwrap().unwrap().payload.to_vec();
    while reader.read().unwrap().is_some() {}
    assert_eq!(reader.judge(Later::Marks).unwrap(), Verdict::Clean);
    drumlin::internals::batch::WriteBatch::from_bytes(payload).unwrap()
}

#[test]
fn a_directory_of_rocksdb_is_read() {
    let files = golden("rocksdb-7.8.3");
    let batch = first_batch(&*files, 16);
    let record = batch.iter().next().unwrap().unwrap();
    assert_eq!(
        (record.family, record.key, record.value),
        (1, &b"k"[..], &b"v"[..])
    );
    let names = VersionSet::list_families(&*files, dir()).unwrap();
    assert_eq!(names, ["default", "cf1"]);
    let set = open_golden(&files, &["cf1"], Profile::RocksDb);
    let tables = &set.families()[&0].current;
    assert_eq!(
        tables.to_string(),
        "L0 2 tables 1982 B: 15[key2..key2] 8[key1..key1]\n"
    );
    let options = options_file::read_newest(&*files, dir()).unwrap().unwrap();
    assert_eq!(options.rocksdb_version, "7.8.3");
    let family = options.family("cf1").unwrap();
    assert_eq!(family.comparator(), Some("leveldb.BytewiseComparator"));
}

#[test]
fn a_directory_of_leveldb_is_read_and_kept_as_one() {
    let files = golden("leveldb-1.23");
    let batch = first_batch(&*files, 11);
    let record = batch.iter().next().unwrap().unwrap();
    assert_eq!((record.key, record.value), (&b"last"[..], &b"one"[..]));
    for profile in [Profile::LevelDb, Profile::RocksDb] {
        let set = open_golden(&files, &[], profile);
        let tables = &set.families()[&0].current;
        assert_eq!(tables.files_total(), 4);
        assert!(tables.to_string().contains("key00000..key00"), "{tables}");
    }
}

#[test]
fn a_moment_of_history_that_has_not_been_is_corruption() {
    let (files, mut set) = small_database();
    let seqno = set.last_seqno() + 5;
    let mut edit = VersionEdit {
        history: Some(version::History {
            keep_seconds: 100,
            every_seconds: 10,
            marked: vec![PastMoment {
                unix_seconds: 1_800_000_000,
                seqno,
            }],
        }),
        last_seqno: Some(seqno),
        ..VersionEdit::default()
    };
    set.log_and_apply(vec![edit.clone()]).unwrap();
    let recovered = recover(&files).unwrap();
    assert_eq!(Some(recovered.history()), edit.history.as_ref());
    // The next write would be seen in it.
    let marked = &mut edit.history.as_mut().unwrap().marked;
    marked[0].seqno += 1;
    set.log_and_apply(vec![edit]).unwrap();
    let error = recover(&files).unwrap_err();
    assert!(error.is_corruption(), "{error}");
    assert!(error.to_string().contains("moment of history"), "{error}");
}

#[test]
fn a_family_that_comes_with_tables_is_never_there_without_them() {
    let (files, mut set) = small_database();
    let table = make_table(&set, &*files, "c").unwrap();
    let path = names::manifest(dir(), set.manifest_number());
    let before = files.info(&path).unwrap().size;
    let tables = version::NewTables {
        files: vec![(3, table)],
        last_seqno: 50,
    };
    set.add_family_of("new", KeyOrder::Bytewise, 0, tables)
        .unwrap();
    let whole = recover(&files).unwrap();
    assert_eq!(whole.family_named("new").unwrap().current.level(3).len(), 1);
    for size in (before..files.info(&path).unwrap().size).rev() {
        files.truncate(&path, size).unwrap();
        let cut = recover(&files).unwrap();
        assert!(cut.family_named("new").is_none(), "cut to {size}");
    }
}
