//! C programs over this library and over Debian's LevelDB: the same answers, the same directories. Needs a C compiler and
//! libleveldb-dev.

use std::path::Path;

use drumlin_testkit::c_programs::{Libraries, Library, Program, Programs, seeds};
use drumlin_testkit::temp_dir;

const LIBRARIES: Libraries = Libraries {
    name: "leveldb",
    file: "libleveldb.so",
    links: &["libleveldb.so", "libleveldb.so.1"],
    root: env!("CARGO_MANIFEST_DIR"),
};
/// Calls of a random program.
const CALLS: u32 = 1_000;

#[test]
fn random_calls_are_answered_as_leveldb_answers_them() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    programs.compare("answers", &seeds(6, CALLS));
}

#[test]
fn directories_go_to_and_fro() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    let [ours, theirs] =
        [Library::Ours, Library::Theirs].map(|library| programs.compile("rows", library));
    let store = programs.place("store");
    let rows = |program: &Program<'_>, verb: &str, first: u32, count: u32| {
        let (first, count) = (first.to_string(), count.to_string());
        program.answers(&[verb, &store, &first, &count])
    };
    let (mut total, each) = (0, 4_000);
    for (writer, reader) in [
        (&ours, &theirs),
        (&theirs, &ours),
        (&ours, &theirs),
        (&theirs, &ours),
    ] {
        rows(writer, "write", total, each);
        total += each;
        assert_eq!(rows(reader, "read", 0, total), format!("{total} rows\n"));
    }
    rows(&ours, "remove", 0, 0);
    assert!(!Path::new(&store).exists());
}

#[test]
fn a_rocksdb_directory_is_opened_and_stays_one() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    let program = programs.compile("rows", Library::Ours);
    let store = dir.path().join("store");
    let db = drumlin::Db::open(&store, drumlin::Options::default()).expect("opens");
    for at in 0..100 {
        let (key, value) = (
            format!("row{at:07}"),
            format!("value {} of row {at}", at * 7),
        );
        db.put(key, value).expect("is written");
    }
    db.close().expect("closes");
    let place = store.display().to_string();
    let arguments = ["write", place.as_str(), "100", "2000"];
    assert_eq!(program.answers(&arguments), "2100 rows\n");
    let options = drumlin::Options {
        create_if_missing: false,
        ..drumlin::Options::default()
    };
    let db = drumlin::Db::open(&store, options).expect("opens");
    assert!(!db.recovery_report().leveldb);
    let value = db.get("row0002099").expect("reads");
    assert_eq!(value.as_deref(), Some(&b"value 14693 of row 2099"[..]));
}

#[test]
fn misused_handles_end_the_process_with_a_sentence() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    let program = programs.compile("mistakes", Library::Ours);
    let ended = [
        "leveldb_put: the leveldb_t is null",
        "leveldb_put: the leveldb_writeoptions_t is null",
        "leveldb_put: null instead of 1 bytes",
        "leveldb_get: this is no leveldb_readoptions_t",
        "leveldb_put: the leveldb_t was destroyed",
        "leveldb_close: the leveldb_t was destroyed",
        "leveldb_writebatch_put: the leveldb_writebatch_t was destroyed",
        "leveldb_open: the name is null",
        "leveldb_comparator_create: a function is null",
        "leveldb_writebatch_iterate: a function is null",
    ];
    program.ends_with(&ended);
}

#[test]
fn other_mistakes_are_answered() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    let program = programs.compile("mistakes", Library::Ours);
    let wanted = [
        (20, "nowhere"),
        (21, "still readable"),
        (22, "still readable"),
        (23, "an empty key"),
        (24, "refused whole"),
        (25, "no place for errors"),
        (26, "Not implemented: compression 77"),
        (27, "IO error: "),
    ];
    program.begins_with(&wanted);
}

#[test]
fn every_name_is_there_and_no_other() {
    let header =
        std::fs::read_to_string("/usr/include/leveldb/c.h").expect("libleveldb-dev is installed");
    let ours =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/leveldb/c.h"))
            .expect("is there");
    let exported = LIBRARIES.exported();
    assert_eq!(LIBRARIES.declared(&header), exported);
    assert_eq!(LIBRARIES.declared(&ours), exported);
    assert!(exported.len() >= 68, "{}", exported.len());
}
