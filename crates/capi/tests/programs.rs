//! C programs over this library and over Debian's RocksDB: the same answers, the same directories, the same errors. Needs a C
//! compiler and librocksdb-dev.

#![expect(
    clippy::disallowed_methods,
    reason = "the programs have files of their own"
)]

use std::path::Path;
use std::process::Command;

use drumlin_testkit::c_programs::{Libraries, Library, Program, Programs, same_lines, seeds};
use drumlin_testkit::temp_dir;

const LIBRARIES: Libraries = Libraries {
    name: "rocksdb",
    file: "libdrumlin_rocksdb.so",
    links: &["librocksdb.so", "librocksdb.so.7.8"],
    root: env!("CARGO_MANIFEST_DIR"),
};
/// Calls of a random program.
const CALLS: u32 = 600;

#[test]
fn random_calls_are_answered_as_rocksdb_answers_them() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    programs.compare("answers", &seeds(6, CALLS));
}

#[test]
fn transactions_and_indexed_batches_are_answered_as_rocksdb_answers_them() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    programs.compare("transactions", &seeds(12, CALLS));
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
    let programs = Programs::new(LIBRARIES, dir.path());
    let libraries = [Library::Ours, Library::Theirs];
    let [told, wanted] =
        libraries.map(|library| programs.compile_file(&source, library).answers(&[]));
    same_lines("options", &told, &wanted);
}

/// Ours reads the backups that RocksDB wrote, and RocksDB ours.
#[test]
fn backups_and_metadata_are_answered_as_rocksdb_answers_them() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    let [ours, theirs] =
        [Library::Ours, Library::Theirs].map(|library| programs.compile("copies", library));
    let place = |name: &str| programs.place(name);
    let told = ours.answers(&[&place("ours")]);
    let wanted = theirs.answers(&[&place("rocksdb")]);
    same_lines("copies", &told, &wanted);
    let of_theirs = [place("ours-again"), place("rocksdb-backups")];
    let of_ours = [place("rocksdb-again"), place("ours-backups")];
    let told = ours.answers(&[&of_theirs[0], &of_theirs[1]]);
    let wanted = theirs.answers(&[&of_ours[0], &of_ours[1]]);
    same_lines("copies of the other", &told, &wanted);
    assert!(told.ends_with("key0123 = three\n"), "{told}");
}

#[test]
fn errors_begin_as_rocksdbs_and_have_the_words_that_programs_look_for() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    programs.compare("errors", &[Vec::new()]);
}

#[test]
fn updates_are_told_as_rocksdb_tells_them() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    let [ours, theirs] =
        [Library::Ours, Library::Theirs].map(|library| programs.compile("changes", library));
    let told = ours.answers(&[&programs.place("ours")]);
    same_lines(
        "changes",
        &told,
        &theirs.answers(&[&programs.place("rocksdb")]),
    );
    assert!(told.lines().count() > 60, "{told}");
}

#[test]
fn secondaries_see_what_those_of_rocksdb_see() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    let [ours, theirs] =
        [Library::Ours, Library::Theirs].map(|library| programs.compile("secondary", library));
    let seen = ours.answers(&[&programs.place("ours")]);
    let expected = theirs.answers(&[&programs.place("rocksdb")]);
    same_lines("secondary", &seen, &expected);
    assert!(seen.lines().count() > 30, "{seen}");
}

#[test]
fn logs_kept_files_and_tables_with_ranges_are_as_rocksdbs() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    let [ours, theirs] =
        [Library::Ours, Library::Theirs].map(|library| programs.compile("files", library));
    let place = |name: &str| programs.place(name);
    let told = ours.answers(&[&place("ours"), &place("ours-logs")]);
    let expected = theirs.answers(&[&place("rocksdb"), &place("rocksdb-logs")]);
    same_lines("files", &told, &expected);
    assert!(told.lines().count() > 15, "{told}");
    let log = std::fs::read_to_string(Path::new(&place("ours")).join("LOG")).expect("is there");
    for wanted in [
        "as Drumlin",
        "opened ",
        "[default] flushed to table ",
        "[default] compacted ",
        "] took in ",
    ] {
        assert!(log.contains(wanted), "{wanted}: {log}");
    }
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
    let programs = Programs::new(LIBRARIES, dir.path());
    let program = programs.compile("mistakes", Library::Ours);
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
        (23, "still readable"),
        (24, "refused whole"),
        (25, "no place for errors"),
        (26, "Not implemented: compression=77"),
        (27, "Not implemented: wal_recovery_mode=3"),
        (28, "other tables"),
        (
            29,
            "Invalid argument: column family default does not enable timestamp",
        ),
        (
            30,
            "Invalid argument: column family default does not enable timestamp",
        ),
        (31, "Not implemented: rocksdb_readoptions_set_iter_start_ts"),
    ];
    program.begins_with(&wanted);
}

#[test]
fn every_name_is_there_and_no_other() {
    let debians = std::fs::read_to_string("/usr/include/rocksdb/c.h");
    let debians = LIBRARIES.declared(&debians.expect("librocksdb-dev is installed"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ours = std::fs::read_to_string(root.join("include/rocksdb/c.h")).expect("is there");
    let (mut ours, exported) = (LIBRARIES.declared(&ours), LIBRARIES.exported());
    // Those that are declared for some versions of RocksDB otherwise than for others.
    ours.dedup();
    let missing = |names: &[String], of: &[String]| {
        let missing = names.iter().filter(|name| !of.contains(name));
        missing.cloned().collect::<Vec<_>>()
    };
    let none: [String; 0] = [];
    assert_eq!(missing(&debians, &exported), none, "RocksDB has them");
    assert_eq!(missing(&ours, &exported), none);
    assert_eq!(missing(&exported, &ours), none);
    assert_eq!((debians.len(), exported.len()), (783, 1_759));
}

/// A program that has the library in it needs no other but those that the pkg-config file names.
#[test]
fn the_static_library_is_one() {
    let dir = temp_dir();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let described = std::fs::read_to_string(root.join("rocksdb.pc.in")).expect("is there");
    let others = described
        .lines()
        .find_map(|line| line.strip_prefix("Libs.private:"))
        .expect("the file says what a static library needs");
    let itself = std::env::current_exe().expect("this program has a path");
    let program = dir.path().join("rows");
    let linked = Command::new("cc")
        .args(["-std=c11", "-O1", "-o"])
        .arg(&program)
        .arg(root.join("tests/programs/rows.c"))
        .arg("-I")
        .arg(root.join("include"))
        .arg(itself.with_file_name("libdrumlin_rocksdb.a"))
        .args(others.split_whitespace())
        .output()
        .expect("there is a compiler");
    let errors = String::from_utf8_lossy(&linked.stderr);
    assert!(linked.status.success(), "{errors}");
    let store = dir.path().join("store");
    for (verb, rows) in [("write", "4000 rows\n"), ("read", "4000 rows\n")] {
        let mut command = Command::new(&program);
        let told = command.arg(verb).arg(&store).args(["0", "4000"]).output();
        let told = told.expect("it runs").stdout;
        assert_eq!(String::from_utf8_lossy(&told), rows, "{verb}");
    }
    let needed = Command::new("ldd")
        .arg(&program)
        .output()
        .expect("is there");
    let needed = String::from_utf8_lossy(&needed.stdout).into_owned();
    assert!(
        !needed.contains("rocksdb") && needed.contains("libc.so"),
        "{needed}"
    );
}

#[test]
fn what_programs_rarely_do_is_answered_as_rocksdb_answers_it() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    programs.compare("odds", &[Vec::new()]);
}

/// What one library wrote with a time to live the other reads, merges, filters and goes on with.
#[test]
fn a_time_to_live_is_kept_as_rocksdb_keeps_it() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    programs.compare("ttl", &[Vec::new()]);
    let [ours, theirs] = [Library::Ours, Library::Theirs].map(|lib| programs.compile("ttl", lib));
    let both = [(&ours, &theirs), (&theirs, &ours)];
    let mut round = 0;
    let told = both.map(|(writer, reader)| {
        round += 1;
        let place = programs.place(&format!("to-and-fro-{round}"));
        writer.answers(&[&place, "write"]);
        [reader, writer, reader]
            .map(|by| by.answers(&[&place, "read"]))
            .concat()
    });
    same_lines("ttl to and fro", &told[0], &told[1]);
}

/// Random calls with timestamps; then directories to and fro, of which each library reads the history of every key.
#[test]
fn keys_with_timestamps_are_read_as_rocksdb_reads_them() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    programs.compare("timestamps", &seeds(8, CALLS));
    let [ours, theirs] =
        [Library::Ours, Library::Theirs].map(|library| programs.compile("timestamps", library));
    let both = [(&ours, &theirs), (&theirs, &ours)];
    let mut round = 0;
    let told = both.map(|(writer, reader)| {
        round += 1;
        let place = programs.place(&format!("to-and-fro-{round}"));
        let written = writer.answers(&[&place, "write"]);
        let read = [reader, writer, reader].map(|by| by.answers(&[&place, "read"]));
        written + &read.concat()
    });
    same_lines("timestamps to and fro", &told[0], &told[1]);
}

#[test]
fn perf_contexts_count_as_those_of_rocksdb() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    programs.compare("perf", &[Vec::new()]);
}

/// What later versions added, which Debian's RocksDB does not have.
#[test]
fn functions_of_later_versions_do_what_they_say() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    let told = programs
        .compile("later", Library::Ours)
        .answers(&[&programs.place("store")]);
    same_lines("later", &told, include_str!("programs/later.txt"));
}

/// Files that the database names are copied, tables that the program names compacted. Debian's RocksDB has neither in its C
/// interface, and reads what came of both.
#[test]
fn files_are_named_for_copies_and_for_compactions() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    let [ours, theirs] =
        [Library::Ours, Library::Theirs].map(|library| programs.compile("rows", library));
    let chosen = programs.compile("chosen", Library::Ours);
    let [store, copy] = ["store", "copy"].map(|name| programs.place(name));
    ours.answers(&["write", &store, "0", "9000"]);
    let mut told = chosen.answers(&["copy", &store, &copy]);
    for reader in [&theirs, &ours, &theirs] {
        let rows = reader.answers(&["read", &copy, "0", "0"]);
        assert_eq!(rows, "9001 rows\n");
    }
    let store = programs.place("another");
    ours.answers(&["write", &store, "0", "9000"]);
    told += &chosen.answers(&["compact", &store]);
    for reader in [&theirs, &ours, &theirs] {
        let rows = reader.answers(&["read", &store, "0", "0"]);
        assert_eq!(rows, "9000 rows\n");
    }
    same_lines("chosen", &told, include_str!("programs/chosen.txt"));
}

/// Debian's RocksDB has no listeners in its C interface: the lines are what the header promises.
#[test]
fn listeners_are_told_and_may_ask() {
    let dir = temp_dir();
    let programs = Programs::new(LIBRARIES, dir.path());
    let program = programs.compile("listeners", Library::Ours);
    for round in 0..5 {
        let told = program.answers(&[&programs.place(&format!("store-{round}"))]);
        same_lines("listeners", &told, include_str!("programs/listeners.txt"));
    }
}

/// Every option of later versions that can be set and read back: the default of the table, and what is set.
#[test]
fn options_of_later_versions_are_read_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = |name: &str| -> Vec<Vec<String>> {
        let table = std::fs::read_to_string(root.join("abi").join(name)).expect("is there");
        let lines = table.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| line.split('\t').map(str::to_owned).collect())
            .collect()
    };
    let (functions, options) = (rows("later.tsv"), rows("options.tsv"));
    let (mut body, mut wanted) = (String::new(), String::new());
    for setter in functions.iter().filter(|row| row[1] == "set") {
        let getter = setter[0].replacen("_set_", "_get_", 1);
        if !functions
            .iter()
            .any(|row| row[0] == getter && row[1] == "get")
        {
            continue;
        }
        let object = setter[3].split("* ").next().expect("an object");
        let of = object.trim_start_matches("rocksdb_").trim_end_matches("_t");
        let is_of =
            |row: &&Vec<String>| row[0] == of && setter[0].ends_with(&format!("_set_{}", row[1]));
        let row = options.iter().filter(is_of).max_by_key(|row| row[1].len());
        let row = row.unwrap_or_else(|| panic!("{} is no option", setter[0]));
        let create = setter[0].split("_set_").next().expect("a name").to_owned() + "_create";
        let arguments = if of == "backup_engine_options" {
            "\"backups\""
        } else {
            ""
        };
        let (name, setter) = (&getter, &setter[0]);
        body.push_str(&format!(
            "  {{ {object}* object = {create}({arguments}); printf(\"{name} %.3f\", (double){name}(object));\n    \
             for (int at = 1; at >= 0; at--) {{ {setter}(object, at); printf(\" %.3f\", (double){name}(object)); }}\n    \
             puts(\"\"); }}\n"
        ));
        // The first of the versions it is built for.
        let default = row[3].split(';').next().unwrap_or_default();
        let default: f64 = default.parse().expect("a number");
        wanted.push_str(&format!("{name} {default:.3} 1.000 0.000\n"));
    }
    let program = format!(
        "#include <stdio.h>\n#include \"rocksdb/c.h\"\nint main(void) {{\n{body}  return 0;\n}}\n"
    );
    let dir = temp_dir();
    let source = dir.path().join("later-options.c");
    std::fs::write(&source, program).expect("is written");
    let programs = Programs::new(LIBRARIES, dir.path());
    let told = programs.compile_file(&source, Library::Ours).answers(&[]);
    same_lines("options of later versions", &told, &wanted);
    assert!(wanted.lines().count() > 180, "{wanted}");
}

/// The header is C for each version, and the library is the one that it is without a word.
#[test]
fn the_header_is_one_of_each_version() {
    let dir = temp_dir();
    let source = dir.path().join("versions.c");
    let program = "#include \"rocksdb/c.h\"\nvoid (*f)(rocksdb_t*, ARGUMENTS char**) = \
                   rocksdb_enable_file_deletions;\n";
    std::fs::write(&source, program).expect("is written");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    for (version, arguments) in [
        ("708", "unsigned char,"),
        ("811", "unsigned char,"),
        ("911", ""),
        ("1010", ""),
        ("1108", ""),
    ] {
        let checked = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
            .arg(format!("-DDRUMLIN_ROCKSDB_ABI={version}"))
            .arg(format!("-DARGUMENTS={arguments}"))
            .arg("-I")
            .arg(&root)
            .arg(&source)
            .output()
            .expect("there is a compiler");
        let errors = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{version}: {errors}");
    }
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
