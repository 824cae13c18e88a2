//! C programs over this library and over Debian's LevelDB: the same answers, the same directories. Needs a C compiler and
//! libleveldb-dev.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use drumlin_testkit::temp_dir;

#[derive(Clone, Copy, PartialEq)]
enum Library {
    Ours,
    LevelDb,
}

/// The shared library, which the tests' own build makes beside them.
fn shared_library() -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    program.with_file_name("libleveldb.so")
}

/// The folder in which programs find our library under the name that it says it has.
fn library_dir(dir: &Path) -> PathBuf {
    let libraries = dir.join("lib");
    std::fs::create_dir_all(&libraries).expect("is made");
    for name in ["libleveldb.so", "libleveldb.so.1"] {
        let link = libraries.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(shared_library(), link).expect("is linked");
        }
    }
    libraries
}

fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn compile(dir: &Path, name: &str, library: Library) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = root.join("tests/programs").join(format!("{name}.c"));
    let program = dir.join(match library {
        Library::Ours => format!("{name}-ours"),
        Library::LevelDb => format!("{name}-leveldb"),
    });
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]);
    compiler.arg(&program).arg(source);
    if library == Library::Ours {
        compiler.arg("-I").arg(root.join("include"));
        compiler.arg("-L").arg(library_dir(dir));
    }
    let compiled = run(compiler.arg("-lleveldb"));
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    program
}

fn start(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    if program.to_string_lossy().ends_with("-ours") {
        command.env("LD_LIBRARY_PATH", library_dir(dir));
    }
    command
}

fn answers(program: &Path, dir: &Path, arguments: &[&str]) -> String {
    let output = run(start(program, dir).args(arguments));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{} {arguments:?}: {}: {errors}",
        program.display(),
        output.status
    );
    String::from_utf8(output.stdout).expect("answers are text")
}

#[test]
fn random_calls_are_answered_as_leveldb_answers_them() {
    let dir = temp_dir();
    let ours = compile(dir.path(), "answers", Library::Ours);
    let theirs = compile(dir.path(), "answers", Library::LevelDb);
    let seeds = std::env::var("CAPI_SEEDS").map_or(6, |seeds| seeds.parse().expect("a number"));
    for seed in 0..seeds {
        let seed = seed.to_string();
        let place = |library: &str| {
            dir.path()
                .join(format!("{library}-{seed}"))
                .display()
                .to_string()
        };
        let told = answers(&ours, dir.path(), &[&place("ours"), &seed, "1000"]);
        let wanted = answers(&theirs, dir.path(), &[&place("leveldb"), &seed, "1000"]);
        let differs = told
            .lines()
            .zip(wanted.lines())
            .position(|(ours, theirs)| ours != theirs);
        if let Some(line) = differs {
            let of = |text: &str| {
                text.lines()
                    .skip(line.saturating_sub(3))
                    .take(6)
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            panic!(
                "seed {seed}, line {line}:\n{}\nLevelDB:\n{}",
                of(&told),
                of(&wanted)
            );
        }
        assert_eq!(told.lines().count(), wanted.lines().count(), "seed {seed}");
    }
}

#[test]
fn directories_go_to_and_fro() {
    let dir = temp_dir();
    let ours = compile(dir.path(), "rows", Library::Ours);
    let theirs = compile(dir.path(), "rows", Library::LevelDb);
    let store = dir.path().join("store").display().to_string();
    let rows = |program: &Path, verb: &str, first: u32, count: u32| {
        answers(
            program,
            dir.path(),
            &[verb, &store, &first.to_string(), &count.to_string()],
        )
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
    let program = compile(dir.path(), "rows", Library::Ours);
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
    assert_eq!(answers(&program, dir.path(), &arguments), "2100 rows\n");
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
    let program = compile(dir.path(), "mistakes", Library::Ours);
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
    for (number, sentence) in ended.iter().enumerate() {
        let store = dir.path().join(format!("store-{number}"));
        let output = run(start(&program, dir.path())
            .arg(store)
            .arg(number.to_string()));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(told.trim_end(), format!("leveldb (drumlin): {sentence}"));
        assert_eq!(
            output.status.signal(),
            Some(6),
            "{sentence}: {}",
            output.status
        );
    }
}

#[test]
fn other_mistakes_are_answered() {
    let dir = temp_dir();
    let program = compile(dir.path(), "mistakes", Library::Ours);
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
    for (number, answer) in wanted {
        let store = dir
            .path()
            .join(format!("store-{number}"))
            .display()
            .to_string();
        let told = answers(&program, dir.path(), &[&store, &number.to_string()]);
        assert!(told.starts_with(answer), "{number}: {told}");
    }
}

#[test]
fn every_name_is_there_and_no_other() {
    let header =
        std::fs::read_to_string("/usr/include/leveldb/c.h").expect("libleveldb-dev is installed");
    let ours =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/leveldb/c.h"))
            .expect("is there");
    let listed = run(Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(shared_library()));
    let listed = String::from_utf8(listed.stdout).expect("names are text");
    let mut exported: Vec<_> = listed
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .map(str::to_owned)
        .collect();
    exported.sort();
    assert_eq!(functions(&header), exported);
    assert_eq!(functions(&ours), exported);
    assert!(exported.len() >= 68, "{}", exported.len());
}

/// The functions that a header declares, in order of their names.
fn functions(header: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = header;
    while let Some(at) = rest.find("leveldb_") {
        rest = &rest[at..];
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let is_declared = rest[end..].starts_with('(');
        let name = &rest[..end];
        // In comments they stand behind a word.
        if is_declared && !name.ends_with("free")
            || name == "leveldb_free" && rest[end..].starts_with("(void")
        {
            names.push(name.to_owned());
        }
        rest = &rest[end..];
    }
    names.sort();
    names.dedup();
    names
}
