//! C programs over this library and over Debian's RocksDB: the same answers, the same directories, the same errors. Needs a C
//! compiler and librocksdb-dev.

#![expect(
    clippy::disallowed_methods,
    reason = "the programs have files of their own"
)]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use drumlin_testkit::temp_dir;

#[derive(Clone, Copy, PartialEq)]
enum Library {
    Ours,
    RocksDb,
}

/// The shared library, which the tests' own build makes beside them.
fn shared_library() -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    program.with_file_name("libdrumlin_rocksdb.so")
}

/// The folder in which programs find our library under the name that it says it has.
fn library_dir(dir: &Path) -> PathBuf {
    let libraries = dir.join("lib");
    std::fs::create_dir_all(&libraries).expect("is made");
    for name in ["librocksdb.so", "librocksdb.so.7.8"] {
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
    compile_file(dir, &source, library)
}

fn compile_file(dir: &Path, source: &Path, library: Library) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = source.file_stem().unwrap_or_default().display();
    let program = dir.join(match library {
        Library::Ours => format!("{name}-ours"),
        Library::RocksDb => format!("{name}-rocksdb"),
    });
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]);
    compiler.arg(&program).arg(source);
    if library == Library::Ours {
        compiler.arg("-I").arg(root.join("include"));
        compiler.arg("-L").arg(library_dir(dir));
    }
    let compiled = run(compiler.arg("-lrocksdb"));
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    program
}

fn start(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    // Cargo's own folders have our library too, under another name; Debian's is found without them.
    command.env_remove("LD_LIBRARY_PATH");
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

/// Fails at the first line that differs, with the lines around it.
fn same_lines(what: &str, ours: &str, theirs: &str) {
    let lines = ours.lines().zip(theirs.lines());
    let differs = lines.into_iter().position(|(ours, theirs)| ours != theirs);
    if let Some(line) = differs {
        let of = |text: &str| {
            let around = text.lines().skip(line.saturating_sub(3)).take(6);
            around.collect::<Vec<_>>().join("\n")
        };
        panic!(
            "{what}, line {line}:\n{}\nRocksDB:\n{}",
            of(ours),
            of(theirs)
        );
    }
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{what}");
}

/// The lines of one program over both libraries.
fn compare(dir: &Path, name: &str, rounds: &[Vec<String>]) {
    let ours = compile(dir, name, Library::Ours);
    let theirs = compile(dir, name, Library::RocksDb);
    for (round, arguments) in rounds.iter().enumerate() {
        let answer = |program: &Path, library: &str| {
            let place = dir.join(format!("{library}-{round}")).display().to_string();
            let arguments: Vec<_> = std::iter::once(&place).chain(arguments).collect();
            let arguments: Vec<_> = arguments.iter().map(|text| text.as_str()).collect();
            answers(program, dir, &arguments)
        };
        let (told, wanted) = (answer(&ours, "ours"), answer(&theirs, "rocksdb"));
        same_lines(&format!("{name} {arguments:?}"), &told, &wanted);
    }
}

fn seeds(default: u32) -> Vec<Vec<String>> {
    let seeds =
        std::env::var("CAPI_SEEDS").map_or(default, |seeds| seeds.parse().expect("a number"));
    (0..seeds)
        .map(|seed| vec![seed.to_string(), "600".to_owned()])
        .collect()
}

#[test]
fn random_calls_are_answered_as_rocksdb_answers_them() {
    let dir = temp_dir();
    compare(dir.path(), "answers", &seeds(6));
}

#[test]
fn transactions_and_indexed_batches_are_answered_as_rocksdb_answers_them() {
    let dir = temp_dir();
    compare(dir.path(), "transactions", &seeds(12));
}

/// Every option that can be set and read back: its default, and what is read after a setting.
#[test]
fn options_are_read_back_as_from_rocksdb() {
    let dir = temp_dir();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(root.join("abi/functions.tsv")).expect("is there");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    let mut body = String::new();
    let mut count = 0;
    for getter in rows.iter().filter(|row| row.get(1) == Some(&"get")) {
        let (name, result) = (getter[0], getter[2]);
        let object = getter[3].rsplit_once(' ').expect("a type and a name").0;
        let object = object.trim_start_matches("const ");
        let setter = name.replacen("_get_", "_set_", 1);
        if !rows.iter().any(|row| row[0] == setter && row[1] == "set") {
            continue;
        }
        let create = object.replace("_t*", "_create");
        let argument = if create.contains("backup_engine") {
            "\"backups\""
        } else {
            ""
        };
        let values = match result {
            "double" => "0.5, 7.25",
            "unsigned char" => "1, 0",
            _ => "3, 1",
        };
        body.push_str(&format!(
            "  {{ {object} object = {create}({argument}); printf(\"{name} %.3f\", (double){name}(object));\n    \
             double values[] = {{{values}}};\n    for (int at = 0; at < 2; at++) {{ {setter}(object, values[at]); \
             printf(\" %.3f\", (double){name}(object)); }}\n    puts(\"\"); }}\n"
        ));
        count += 1;
    }
    assert!(count > 100, "{count} options");
    let program = format!(
        "#include <stdio.h>\n#include \"rocksdb/c.h\"\nint main(void) {{\n{body}  return 0;\n}}\n"
    );
    let source = dir.path().join("options.c");
    std::fs::write(&source, program).expect("is written");
    let ours = compile_file(dir.path(), &source, Library::Ours);
    let theirs = compile_file(dir.path(), &source, Library::RocksDb);
    let (told, wanted) = (
        answers(&ours, dir.path(), &[]),
        answers(&theirs, dir.path(), &[]),
    );
    same_lines("options", &told, &wanted);
}

/// Ours reads the backups that RocksDB wrote, and RocksDB ours.
#[test]
fn backups_and_metadata_are_answered_as_rocksdb_answers_them() {
    let dir = temp_dir();
    let ours = compile(dir.path(), "copies", Library::Ours);
    let theirs = compile(dir.path(), "copies", Library::RocksDb);
    let place = |name: &str| dir.path().join(name).display().to_string();
    let told = answers(&ours, dir.path(), &[&place("ours")]);
    let wanted = answers(&theirs, dir.path(), &[&place("rocksdb")]);
    same_lines("copies", &told, &wanted);
    let of_theirs = [place("ours-again"), place("rocksdb-backups")];
    let of_ours = [place("rocksdb-again"), place("ours-backups")];
    let told = answers(&ours, dir.path(), &[&of_theirs[0], &of_theirs[1]]);
    let wanted = answers(&theirs, dir.path(), &[&of_ours[0], &of_ours[1]]);
    same_lines("copies of the other", &told, &wanted);
    assert!(told.ends_with("key0123 = three\n"), "{told}");
}

#[test]
fn errors_begin_as_rocksdbs_and_have_the_words_that_programs_look_for() {
    let dir = temp_dir();
    compare(dir.path(), "errors", &[Vec::new()]);
}

#[test]
fn directories_go_to_and_fro() {
    let dir = temp_dir();
    let ours = compile(dir.path(), "rows", Library::Ours);
    let theirs = compile(dir.path(), "rows", Library::RocksDb);
    let store = dir.path().join("store").display().to_string();
    let rows = |program: &Path, verb: &str, first: u32, count: u32| {
        let (first, count) = (first.to_string(), count.to_string());
        answers(program, dir.path(), &[verb, &store, &first, &count])
    };
    let (mut total, each) = (0, 4_000);
    for (writer, reader) in [(&ours, &theirs), (&theirs, &ours), (&ours, &theirs)] {
        rows(writer, "write", total, each);
        total += each;
        assert_eq!(rows(reader, "read", 0, total), format!("{total} rows\n"));
        let told = rows(&ours, "options", 0, 0);
        same_lines("options", &told, &rows(&theirs, "options", 0, 0));
        assert_eq!(told.lines().count(), 2, "{told}");
    }
    rows(&ours, "remove", 0, 0);
    assert!(!Path::new(&store).exists());
}

#[test]
fn misused_handles_end_the_process_with_a_sentence() {
    let dir = temp_dir();
    let program = compile(dir.path(), "mistakes", Library::Ours);
    let ended = [
        "rocksdb_put: the rocksdb_t is null",
        "rocksdb_put: the rocksdb_writeoptions_t is null",
        "rocksdb_put: null instead of 1 bytes",
        "rocksdb_get: this is no rocksdb_readoptions_t",
        "rocksdb_put: the rocksdb_t was destroyed",
        "rocksdb_close: the rocksdb_t was destroyed",
        "rocksdb_writebatch_put: the rocksdb_writebatch_t was destroyed",
        "rocksdb_open: the name is null",
        "rocksdb_comparator_create: the function that compares is null",
        "rocksdb_writebatch_iterate: a function is null",
    ];
    for (number, sentence) in ended.iter().enumerate() {
        let store = dir.path().join(format!("store-{number}"));
        let mut command = start(&program, dir.path());
        let output = run(command.arg(store).arg(number.to_string()));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(told.trim_end(), format!("rocksdb (drumlin): {sentence}"));
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
        (23, "still readable"),
        (24, "refused whole"),
        (25, "no place for errors"),
        (26, "Not implemented: compression=77"),
        (27, "Not implemented: wal_recovery_mode=3"),
        (28, "Not implemented: cuckoo_table_factory"),
        (29, "Not implemented: rocksdb_put_with_ts"),
        (30, "Not implemented: rocksdb_readoptions_set_timestamp"),
        (31, "Not implemented: rocksdb_open_with_ttl"),
    ];
    for (number, answer) in wanted {
        let store = dir.path().join(format!("store-{number}"));
        let (store, number) = (store.display().to_string(), number.to_string());
        let told = answers(&program, dir.path(), &[&store, &number]);
        assert!(told.starts_with(answer), "{number}: {told}");
    }
}

#[test]
fn every_name_is_there_and_no_other() {
    let debians = std::fs::read_to_string("/usr/include/rocksdb/c.h");
    let debians = functions(&debians.expect("librocksdb-dev is installed"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ours = std::fs::read_to_string(root.join("include/rocksdb/c.h")).expect("is there");
    let mut symbols = Command::new("nm");
    let listed = run(symbols.args(["-D", "--defined-only"]).arg(shared_library()));
    let listed = String::from_utf8(listed.stdout).expect("names are text");
    let mut exported: Vec<_> = listed
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .map(str::to_owned)
        .collect();
    exported.sort();
    let missing = |names: &[String], of: &[String]| {
        let missing = names.iter().filter(|name| !of.contains(name));
        missing.cloned().collect::<Vec<_>>()
    };
    let none: [String; 0] = [];
    assert_eq!(missing(&debians, &exported), none, "RocksDB has them");
    assert_eq!(missing(&exported, &debians), none, "RocksDB has them not");
    assert_eq!(functions(&ours).len(), exported.len());
    assert_eq!(missing(&functions(&ours), &exported), none);
    assert_eq!(exported.len(), 783);
}

/// The functions that a header declares, in order of their names: those before a parenthesis, outside comments.
fn functions(header: &str) -> Vec<String> {
    let mut code = String::new();
    for (at, part) in header.split("/*").enumerate() {
        let after = if at == 0 {
            Some(part)
        } else {
            part.split_once("*/").map(|(_, rest)| rest)
        };
        code.push_str(after.unwrap_or_default());
    }
    let code: String = code
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut names: Vec<_> = code
        .match_indices("rocksdb_")
        .map(|(at, _)| &code[at..])
        .filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
            let is_called = rest[end..].trim_start().starts_with('(');
            is_called.then(|| rest[..end].to_owned())
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The header that is checked in is the one that the tables say. `CAPI_REWRITE=1` writes it.
#[test]
fn the_header_is_the_one_of_the_tables() {
    let made = include_str!(concat!(env!("OUT_DIR"), "/c.h"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/rocksdb/c.h");
    if std::env::var_os("CAPI_REWRITE").is_some() {
        std::fs::write(&path, made).expect("is written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "{} is not what abi/ says: CAPI_REWRITE=1",
        path.display()
    );
}
