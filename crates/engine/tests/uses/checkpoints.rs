//! Goal: a checkpoint is as much of a store as the one that it was made of, and nobody else gets the
//! directory while it is made. Method: stores in memory whose OPTIONS file says more than we do; a file system
//! that has the store closed at the first link.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drumlin::internals::options_file::{self, OptionsFile};
use drumlin::{
    Db, DirectoryFormat, Env, ErrorKind, FamilyOptions, Options, ReadOptions, SstFileWriter,
    TableWriterOptions, Tuning,
};
use drumlin_fs::{FaultFileSystem, FileSystem, Observer, OpKind, StrictMemFileSystem};
use drumlin_testkit::{memory_dir, temp_dir};

const DIR: &str = "/db";
const COPY: &str = "/copy";

fn options(files: Arc<dyn FileSystem>) -> Options {
    Options {
        env: Env::system().with_files(files),
        tuning: Tuning {
            target_file_bytes: 8 << 10,
            level_base_bytes: Some(16 << 10),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn newest(files: &dyn FileSystem, dir: &str) -> OptionsFile {
    options_file::read_newest(files, Path::new(dir))
        .unwrap()
        .unwrap()
}

/// Some tables of `db`, up to its deepest level.
fn fill(db: &Db) {
    for round in 0..5 {
        for key in 0..200u32 {
            let value = format!("{round}-{key}").repeat(20);
            db.put(key.to_be_bytes(), value).unwrap();
        }
        db.flush().unwrap();
    }
    db.compact_range(db.default_family(), None, None).unwrap();
}

fn deepest(db: &Db) -> usize {
    let count = |level: usize| {
        let name = format!("rocksdb.num-files-at-level{level}");
        db.property(db.default_family(), &name).unwrap()
    };
    (0..7).rfind(|&level| count(level) != "0").unwrap()
}

fn files_of(files: &dyn FileSystem, dir: &str) -> Vec<PathBuf> {
    files.list(Path::new(dir)).unwrap()
}

#[test]
fn a_copy_has_what_the_options_file_says_but_for_the_place_of_the_wal() {
    let files = Arc::new(StrictMemFileSystem::new());
    let mut options = options(Arc::clone(&files) as Arc<dyn FileSystem>);
    let db = Db::open(DIR, options.clone()).unwrap();
    let small = FamilyOptions {
        levels_max: Some(4),
        ..FamilyOptions::default()
    };
    db.create_family("small", small).unwrap();
    db.close().unwrap();
    let mut theirs = newest(&*files, DIR);
    theirs.database.set("stats_dump_period_sec", "77");
    theirs.families[0].options.set("num_levels", "3");
    theirs.families[0].options.set("ttl", "12345");
    theirs.families[0].table.set("block_size", "16384");
    options_file::write(&*files, Path::new(DIR), 900, &theirs).unwrap();
    options.wal_dir = Some("/log".into());
    let db = Db::open_all_families(DIR, options.clone()).unwrap();
    fill(&db);
    db.create_family("late", FamilyOptions::default()).unwrap();
    let reader = Db::open_read_only(DIR, options.clone()).unwrap();
    options.wal_dir = None;
    for (of, copy) in [(&db, COPY), (&reader, "/copy of a reader")] {
        of.checkpoint(copy).unwrap();
        let mut said = newest(&*files, DIR);
        assert_eq!(said.database.get("wal_dir"), Some("/log"));
        said.database.set("wal_dir", "");
        assert_eq!(newest(&*files, copy), said, "{copy}");
        assert_eq!(said.families[0].options.get("num_levels"), Some("3"));
        assert_eq!(said.families[0].options.get("ttl"), Some("12345"));
        let opened = Db::open_all_families(copy, options.clone()).unwrap();
        fill(&opened);
        assert_eq!(deepest(&opened), 2, "{copy}");
        opened.close().unwrap();
        let after = newest(&*files, copy);
        let small = after.family("small").unwrap();
        assert_eq!(small.options.get("num_levels"), Some("4"), "{copy}");
    }
}

#[test]
fn a_copy_of_a_leveldb_directory_is_one() {
    let files = Arc::new(StrictMemFileSystem::new());
    let mut options = options(Arc::clone(&files) as Arc<dyn FileSystem>);
    options.format = DirectoryFormat::LevelDb;
    let db = Db::open(DIR, options.clone()).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    db.checkpoint(COPY).unwrap();
    let is_rocksdb = |name: &PathBuf| {
        let name = name.to_string_lossy();
        name == "IDENTITY" || name.starts_with("OPTIONS")
    };
    let names = files_of(&*files, COPY);
    assert!(!names.iter().any(is_rocksdb), "{names:?}");
    options.format = DirectoryFormat::Auto;
    let copy = Db::open(COPY, options).unwrap();
    assert!(copy.recovery_report().leveldb);
    assert_eq!(copy.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// Has the store closed by another thread at the first link, and waits a while for the end of that.
#[derive(Debug)]
struct ClosesAtFirstLink {
    first: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    closed_early: Mutex<Option<bool>>,
}

impl Observer for ClosesAtFirstLink {
    fn before(&self, op: OpKind, _path: &Path) {
        if op != OpKind::Link {
            return;
        }
        let Some((close, closed)) = self.first.lock().unwrap().take() else {
            return;
        };
        close.send(()).unwrap();
        let ended = closed.recv_timeout(Duration::from_millis(200)).is_ok();
        *self.closed_early.lock().unwrap() = Some(ended);
    }
}

#[test]
fn closing_waits_until_a_checkpoint_has_given_up() {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let options = options(Arc::new(files.clone()));
    let db = Db::open(DIR, options.clone()).unwrap();
    fill(&db);
    for late in 0..2 {
        db.put([late], b"more than one table").unwrap();
        db.flush().unwrap();
    }
    let ((close, closes), (end, ended)) = (channel(), channel());
    let observer = Arc::new(ClosesAtFirstLink {
        first: Mutex::new(Some((close, ended))),
        closed_early: Mutex::new(None),
    });
    files.set_observer(Some(Arc::clone(&observer) as Arc<dyn Observer>));
    let other = db.clone();
    let closing = move || {
        closes.recv().unwrap();
        other.close().unwrap();
        // Nobody may be there any more.
        let _ = end.send(());
    };
    let made = std::thread::scope(|scope| {
        scope.spawn(closing);
        db.checkpoint(COPY).map_err(|error| error.kind())
    });
    files.set_observer(None);
    assert_eq!(*observer.closed_early.lock().unwrap(), Some(false));
    assert_eq!(made, Err(ErrorKind::Shutdown));
    assert!(!files.exists(Path::new(COPY)).unwrap());
    let beside = files_of(&files, "/");
    let is_unfinished = |name: &PathBuf| name.to_string_lossy().contains("unfinished");
    assert!(!beside.iter().any(is_unfinished), "{beside:?}");
    drop(db);
    let db = Db::open(DIR, options).unwrap();
    assert!(db.verify().unwrap().damaged.is_empty());
    db.checkpoint(COPY).unwrap();
}

/// Goal: a list of which one cannot be taken leaves no trace, not even for a while.
#[test]
fn all_external_tables_are_checked_before_the_first_is_linked() {
    let memory = StrictMemFileSystem::new();
    let files = FaultFileSystem::over_memory(&memory);
    let options = options(Arc::new(files.clone()));
    let db = Db::open(DIR, options.clone()).unwrap();
    let external = |name: &str| {
        let path = PathBuf::from(name);
        let table = TableWriterOptions::default();
        let mut writer = SstFileWriter::create(&options.env, &path, table).unwrap();
        writer.put(name.as_bytes(), b"value").unwrap();
        writer.finish().unwrap();
        path
    };
    let mut paths = vec![external("/one"), external("/two"), external("/three")];
    let size = files.info(&paths[2]).unwrap().size;
    files.truncate(&paths[2], size - 1).unwrap();
    files.record_history();
    let refused = db.ingest(db.default_family(), &paths, false);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Corruption);
    let names_made = files
        .history()
        .into_iter()
        .filter(|(op, _)| matches!(op, OpKind::Link | OpKind::Create));
    assert_eq!(names_made.count(), 0);
    paths.pop();
    db.ingest(db.default_family(), &paths, false).unwrap();
    assert!(db.get("/two").unwrap().is_some());
}

/// Needs a file system in memory beside the one for temporary files, as Linux has; elsewhere this is a checkpoint more.
#[test]
fn a_copy_on_another_file_system_is_one() {
    let (here, there) = (temp_dir(), memory_dir());
    let db = Db::open(here.path(), options(Env::system().files)).unwrap();
    fill(&db);
    db.put("in", "the log").unwrap();
    let copy = there.path().join("copy");
    db.checkpoint(&copy).unwrap();
    let opened = Db::open(&copy, options(Env::system().files)).unwrap();
    assert_eq!(opened.get("in").unwrap().as_deref(), Some(&b"the log"[..]));
    let (mut ours, mut theirs) = (
        db.iter(ReadOptions::default()),
        opened.iter(ReadOptions::default()),
    );
    ours.seek_to_first();
    theirs.seek_to_first();
    while ours.valid() && theirs.valid() {
        assert_eq!((ours.key(), ours.value()), (theirs.key(), theirs.value()));
        ours.next();
        theirs.next();
    }
    assert!(!ours.valid() && !theirs.valid());
    assert!(opened.verify().unwrap().damaged.is_empty());
}
