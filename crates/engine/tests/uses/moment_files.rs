//! Goal: who copies the files that the database names, as far as it says, has the database as it was then. Method: copies by hand of
//! databases that go on being written, opened and compared with what was there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use drumlin::{
    Db, DirectoryFormat, Env, ErrorKind, FamilyOptions, LiveFileKind, MomentFile, Options, Tuning,
    WriteOptions,
};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

fn options(files: &Arc<StrictMemFileSystem>) -> Options {
    Options {
        background_threads: Some(0),
        env: Env::system().with_files(Arc::clone(files) as _),
        tuning: Tuning {
            blob_from_bytes: Some(500),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// A copy of each file in `dir`, as its entry says.
fn copy(files: &StrictMemFileSystem, listed: &[MomentFile], dir: &str) {
    files
        .create_dir_all(Path::new(dir))
        .expect("memory does not fail");
    for file in listed {
        let found = match &file.contents {
            Some(contents) => contents.clone(),
            None => {
                let mut found = files.read_file(&file.path, 1 << 30).expect("it is there");
                let len = found.len() as u64;
                assert!(len == file.bytes || (file.may_be_longer && len > file.bytes));
                found.truncate(file.bytes as usize);
                found
            }
        };
        assert_eq!(found.len() as u64, file.bytes);
        let name = file.path.file_name().expect("it has a name");
        let to = Path::new(dir).join(name);
        let made = files.create(&to, CreateOptions::new(FileKind::Other));
        let mut made = made.expect("memory does not fail");
        made.append(&found).expect("memory does not fail");
        made.sync().expect("memory does not fail");
    }
}

type Rows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn rows(db: &Db) -> Rows {
    let mut found = Rows::new();
    for family in db.families() {
        let mut walk = db.iter_cf(&family, drumlin::ReadOptions::default());
        walk.seek_to_first();
        while walk.valid() {
            let key = (family.name().to_owned(), walk.key().to_vec());
            found.insert(key, walk.value().to_vec());
            walk.next();
        }
        walk.status().expect("memory does not fail");
    }
    found
}

fn count(listed: &[MomentFile], kind: LiveFileKind) -> usize {
    listed.iter().filter(|file| file.kind == kind).count()
}

#[test]
fn a_copy_by_hand_is_the_database_of_the_moment() {
    let files = Arc::new(StrictMemFileSystem::new());
    let mut options = options(&files);
    options.wal_dir = Some("/log".into());
    let db = Db::open("/db", options.clone()).expect("memory does not fail");
    let other = db.create_family("other", FamilyOptions::default());
    let other = other.expect("memory does not fail");
    let write = |round: u32| {
        for key in 0..100 {
            let value = format!("{round}").repeat(if key % 10 == 0 { 600 } else { 5 });
            db.put(format!("key{key}"), &value)
                .expect("memory does not fail");
            db.put_cf(
                &other,
                format!("{round} {key}"),
                &value,
                &WriteOptions::default(),
            )
            .expect("memory does not fail");
        }
    };
    write(0);
    db.flush().expect("memory does not fail");
    write(1);
    let expected = rows(&db);
    db.pause_removal().expect("it is open");
    let listed = db.moment_files().expect("memory does not fail");
    // All of this is later, and makes what was listed obsolete.
    write(2);
    db.flush().expect("memory does not fail");
    for family in db.families() {
        db.compact_range(&family, None, None)
            .expect("memory does not fail");
    }
    db.create_family("late", FamilyOptions::default())
        .expect("memory does not fail");
    copy(&files, &listed, "/copy");
    db.continue_removal().expect("it was paused");
    for (kind, least) in [
        (LiveFileKind::Table, 2),
        (LiveFileKind::Blob, 1),
        (LiveFileKind::Wal, 1),
        (LiveFileKind::Manifest, 1),
        (LiveFileKind::Current, 1),
        (LiveFileKind::Options, 1),
    ] {
        assert!(count(&listed, kind) >= least, "{kind:?}");
    }
    options.wal_dir = None;
    let copied = Db::open_all_families("/copy", options.clone()).expect("it is a database");
    assert_eq!(rows(&copied), expected);
    copied.verify().expect("it is sound");
    copied.close().expect("memory does not fail");
    // What is open for reading names none: its MANIFEST is another's to write.
    options.wal_dir = Some("/log".into());
    let reader = Db::open_read_only("/db", options).expect("it is there");
    let refused = reader.moment_files().expect_err("it does not write");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
}

#[test]
fn one_of_a_leveldb_directory_has_no_options() {
    let files = Arc::new(StrictMemFileSystem::new());
    let mut options = options(&files);
    options.format = DirectoryFormat::LevelDb;
    let db = Db::open("/db", options.clone()).expect("memory does not fail");
    db.put("flushed", "1").expect("memory does not fail");
    db.flush().expect("memory does not fail");
    db.put("logged", "2").expect("memory does not fail");
    let listed = db.moment_files().expect("memory does not fail");
    assert_eq!(count(&listed, LiveFileKind::Options), 0);
    copy(&files, &listed, "/copy");
    options.format = DirectoryFormat::Auto;
    let copied = Db::open("/copy", options).expect("it is a database");
    assert_eq!(rows(&copied), rows(&db));
}

/// The first sequence number of a WAL file is that of the write that it begins with.
#[test]
fn wal_files_tell_where_they_begin() {
    let files = Arc::new(StrictMemFileSystem::new());
    let db = Db::open("/db", options(&files)).expect("memory does not fail");
    let first = || {
        let live = db.live_files().expect("memory does not fail");
        let wals = live.into_iter().filter(|it| it.kind == LiveFileKind::Wal);
        wals.map(|it| it.first_seqno).collect::<Vec<_>>()
    };
    assert_eq!(first(), [None]);
    db.put("a", "1").expect("memory does not fail");
    let began = db.latest_seqno();
    db.put("b", "2").expect("memory does not fail");
    assert_eq!(first(), [Some(began)]);
    db.flush().expect("memory does not fail");
    db.put("c", "3").expect("memory does not fail");
    assert_eq!(first(), [Some(began + 2)]);
}
