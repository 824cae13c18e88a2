//! Goal: append-only files of Redis are loaded as Redis loads them, whole, cut and damaged. Method: a redis-server that is written to,
//! rewrites its file and is killed; then its files are loaded by both, and what they hold compared.

use std::path::{Path, PathBuf};

use drumlin::{ErrorKind, Result};
use drumlin_base::rng::Rng;
use drumlin_fs::{CreateOptions, Env, FileKind};
use drumlin_redis::{Loaded, load_data};
use drumlin_resp::{Value, encode_command};
use drumlin_testkit::redis::{self, Server};
use tempfile::TempDir;

use crate::dump::{KEYS, addition};
use crate::pair::{Ours, Words, ask_redis, config_of, words};

const LIBRARY: &str = "#!lua name=lib\nredis.register_function('seven', function() return 7 end)";

fn read(path: &Path) -> Vec<u8> {
    let read = Env::system().files.read_file(path, 1 << 30);
    read.expect("reads")
}

fn put(path: &Path, bytes: &[u8]) {
    let options = CreateOptions::new(FileKind::Other);
    let file = Env::system().files.create(path, options);
    let mut file = file.expect("makes");
    file.append(bytes).expect("writes");
    file.close().expect("closes");
}

/// The files in the directory of append-only files in `dir`.
fn files(dir: &Path) -> Vec<PathBuf> {
    let inner = dir.join("appendonlydir");
    let listed = Env::system().files.list(&inner).expect("lists");
    let name = |path: PathBuf| path.file_name().map(|name| inner.join(name));
    listed.into_iter().filter_map(name).collect()
}

fn write(theirs: &mut Server, rng: &mut Rng, count: u64) {
    for _ in 0..count {
        let line = match rng.below(30) {
            0 => format!("DEL k{}", rng.below(KEYS)),
            1 => format!("PEXPIRE k{} 100000000", rng.below(KEYS)),
            2 => format!("SELECT {}", rng.below(3)),
            3 => "MULTI".to_owned(),
            4 => "EXEC".to_owned(),
            5 => format!("RENAME k{} gone", rng.below(KEYS)),
            6 => "EVAL return{redis.call('INCR','counter'),redis.call('APPEND','text',1)} 0".into(),
            7 => format!("XGROUP CREATE k{} g 0", rng.below(KEYS)),
            8 => format!(
                "XREADGROUP GROUP g c COUNT 2 STREAMS k{} >",
                rng.below(KEYS)
            ),
            9 => "SET brief 1 PX 1".to_owned(),
            10 => "INCR brief".to_owned(),
            _ => addition(rng),
        };
        let command: Words = words(&line);
        let arguments: Vec<_> = command.iter().map(Vec::as_slice).collect();
        theirs.ask(&arguments);
    }
    theirs.say(&["EXEC"]);
}

fn rewrite(theirs: &mut Server) {
    theirs.say(&["BGREWRITEAOF"]);
    let busy = ["aof_rewrite_in_progress:1", "aof_rewrite_scheduled:1"];
    loop {
        let told = theirs.say(&["INFO", "persistence"]).text();
        if !busy.iter().any(|it| told.contains(it)) {
            return;
        }
    }
}

/// The directory of a server that has written and was killed.
fn written(seed: u64, preamble: &str) -> TempDir {
    let settings = [
        "--appendonly",
        "yes",
        // Written before each reply: everysec may put that off.
        "--appendfsync",
        "no",
        "--aof-timestamp-enabled",
        "yes",
        "--aof-use-rdb-preamble",
        preamble,
    ];
    let mut theirs = Server::start(tempfile::tempdir().expect("a directory"), &settings);
    let mut rng = Rng::new(seed);
    write(&mut theirs, &mut rng, 500);
    theirs.ask(&[b"FUNCTION", b"LOAD", LIBRARY.as_bytes()]);
    rewrite(&mut theirs);
    write(&mut theirs, &mut rng, 500);
    theirs.kill()
}

fn compared() -> Vec<Words> {
    // Redis's digest counts a key that has expired until somebody asks for it.
    let asked = (0..3).rev().map(|db| format!("SELECT {db},GET brief"));
    let mut lines: Vec<String> = asked.collect();
    lines.push("FCALL seven 0,DEBUG DIGEST,FUNCTION LIST WITHCODE,DBSIZE".to_owned());
    lines.join(",").split(',').map(words).collect()
}

/// What a redis-server makes of the files in `dir`.
fn loaded_there(dir: TempDir) -> Vec<Value> {
    let theirs = Server::start(dir, &["--appendonly", "yes"]);
    ask_redis(&theirs, &compared())
}

/// What one of ours makes of those at `path`.
fn loaded_here(path: &Path, settings: &[(&str, &str)]) -> Result<(Loaded, Vec<Value>)> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut config = config_of(dir.path());
    for (name, value) in settings {
        let set = config.set_at_start(name.as_bytes(), value.as_bytes());
        set.expect("a setting");
    }
    let loaded = load_data(&config, &Env::system(), path, &mut |_, _| {})?;
    let ours = Ours::start(dir.path());
    Ok((loaded, ours.ask(&compared())))
}

fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().expect("a directory");
    let inner = to.path().join("appendonlydir");
    Env::system().files.create_dir(&inner).expect("makes");
    for file in files(from) {
        put(&inner.join(file.file_name().expect("a name")), &read(&file));
    }
    to
}

/// The file of `dir` whose name has this part.
fn part(dir: &Path, named: &str) -> PathBuf {
    let is_it = |path: &PathBuf| path.to_string_lossy().contains(named);
    files(dir)
        .into_iter()
        .find(is_it)
        .expect("a file of the name")
}

#[test]
fn directories_and_files_are_loaded_as_redis_does() {
    if !redis::installed() {
        return;
    }
    for (seed, preamble) in [(1, "yes"), (2, "no")] {
        let dir = written(seed, preamble);
        let parts = dir.path().join("appendonlydir");
        let (loaded, ours) = loaded_here(&parts, &[]).expect("loads");
        assert!(loaded.commands > 300 && loaded.failed == 0, "{loaded:?}");
        assert_eq!((loaded.keys > 0, loaded.cut), (preamble == "yes", 0));
        let manifest = part(dir.path(), "manifest");
        assert_eq!(loaded_here(&manifest, &[]).expect("loads").1, ours);
        // All in one file, as before Redis 7.
        let [base, increment] = [".base.", ".incr."].map(|it| read(&part(dir.path(), it)));
        let old = tempfile::tempdir().expect("a directory");
        let file = old.path().join("appendonly.aof");
        put(&file, &[base, increment].concat());
        assert_eq!(loaded_here(&file, &[]).expect("loads").1, ours);
        assert_eq!(loaded_there(old), ours);
        assert_eq!(loaded_there(dir), ours);
        assert_eq!(ours[6], Value::Integer(7));
    }
}

#[test]
fn a_cut_file_counts_up_to_its_last_whole_command_or_transaction() {
    if !redis::installed() {
        return;
    }
    let dir = written(3, "yes");
    let mut rng = Rng::new(4);
    let whole = read(&part(dir.path(), ".incr."));
    for _ in 0..6 {
        let cut = copy(dir.path());
        let len = rng.below(whole.len() as u64) as usize;
        let file = part(cut.path(), ".incr.");
        put(&file, &whole[..len]);
        let parts = cut.path().join("appendonlydir");
        let strict = [("aof-load-truncated", "no")];
        let refusal = loaded_here(&parts, &strict);
        let (loaded, ours) = loaded_here(&parts, &[]).expect("loads");
        match refusal {
            Ok((all, _)) => assert_eq!((all.cut, loaded.cut), (0, 0)),
            Err(error) => {
                assert!(error.kind() == ErrorKind::Corruption && loaded.cut > 0);
                let text = error.to_string();
                assert!(
                    text.contains(".incr.aof") && text.contains("offset"),
                    "{text}"
                );
            }
        }
        assert_eq!(read(&file).len(), len, "it stays as it is");
        assert_eq!(loaded_there(cut), ours, "{len} bytes");
    }
    // One that another follows must be whole.
    let base = part(dir.path(), ".base.");
    let bytes = read(&base);
    put(&base, &bytes[..bytes.len() - 1]);
    let text = loaded_here(&dir.path().join("appendonlydir"), &[]).expect_err("is cut");
    assert!(text.to_string().contains(".base.rdb"), "{text}");
}

#[test]
fn what_cannot_be_run_is_told_with_its_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("appendonly.aof");
    let set = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
    let expire = "*3\r\n$6\r\nEXPIRE\r\n$1\r\na\r\n$3\r\n100\r\n";
    let old = "*3\r\n$9\r\nPEXPIREAT\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n";
    let wrong = "*2\r\n$4\r\nLPOP\r\n$1\r\na\r\n";
    let load = |bytes: &str| {
        put(&file, bytes.as_bytes());
        loaded_here(&file, &[])
    };
    let (loaded, replies) = load(&format!("#TS:1\r\n{set}{expire}{wrong}")).expect("loads");
    assert_eq!((loaded.commands, loaded.failed), (3, 1));
    assert_eq!(replies.last(), Some(&Value::Integer(1)), "the key is there");
    // A command that would wait does not, as within MULTI.
    let waits = "*3\r\n$5\r\nBLPOP\r\n$1\r\nb\r\n$1\r\n0\r\n";
    let (loaded, _) = load(&format!("{set}{waits}")).expect("loads");
    assert_eq!((loaded.commands, loaded.failed), (2, 0));
    // What has expired is there while commands may change it, and gone after that.
    let (loaded, replies) = load(&format!("{set}{old}")).expect("loads");
    assert_eq!((loaded.commands, loaded.failed), (3, 0));
    assert_eq!(replies.last(), Some(&Value::Integer(0)));
    for (bytes, words) in [
        ("*1\r\n$4\r\nNONE\r\n", "\"NONE\" cannot be run"),
        ("*1\r\n$3\r\nSET\r\n", "\"SET\" cannot be run"),
        ("PING\r\n", "offset 27"),
        ("*1\r\n$3\r\nPING\r\n", "offset 31"),
    ] {
        let error = load(&format!("{set}{bytes}")).expect_err("is refused");
        let text = error.to_string();
        assert!(
            text.contains(words)
                && text.contains("appendonly.aof, offset")
                && text.contains("1 commands"),
            "{text}"
        );
    }
    // Commands count on the data that they were run on.
    let data = tempfile::tempdir().expect("a directory");
    Ours::start(data.path()).ask(&[words("SET other 1")]);
    put(&file, set.as_bytes());
    let config = config_of(data.path());
    let refused = load_data(&config, &Env::system(), &file, &mut |_, _| {});
    assert_eq!(
        refused.expect_err("refuses").kind(),
        ErrorKind::InvalidArgument
    );
    let nothing = load_data(
        &config,
        &Env::system(),
        &dir.path().join("no"),
        &mut |_, _| {},
    );
    assert_eq!(nothing.expect_err("is missing").kind(), ErrorKind::NotFound);
    let empty = load_data(&config, &Env::system(), data.path(), &mut |_, _| {});
    assert!(empty.is_err(), "a directory without a manifest");
}

/// Goal: a damaged file is an error or loads, and never more than that. Method: a file of few commands with turned bytes.
#[test]
fn damaged_files_are_errors_or_load() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("appendonly.aof");
    let lines = [
        "SET a 1 PXAT 99999999999999",
        "MULTI",
        "RPUSH l 1 2 3",
        "EXEC",
        "XADD s 1-1 f v",
        "SELECT 3",
        "EVAL return{redis.call('INCR','a')} 0",
        "ZADD z 1 a 2 b",
    ];
    let mut sound = b"#TS:1700000000\r\n".to_vec();
    for line in lines {
        encode_command(&mut sound, &words(line));
    }
    let mut rng = Rng::new(11);
    let mut refused = 0;
    for _ in 0..40 {
        let mut damaged = sound.clone();
        for _ in 0..1 + rng.below(2) {
            let at = rng.below(damaged.len() as u64) as usize;
            damaged[at] = match rng.below(3) {
                0 => rng.next_u64() as u8,
                1 => b'0' + rng.below(10) as u8,
                _ => damaged[at] ^ 1 << rng.below(8),
            };
        }
        put(&file, &damaged);
        let data = tempfile::tempdir().expect("a directory");
        let config = config_of(data.path());
        let loaded = load_data(&config, &Env::system(), &file, &mut |_, _| {});
        refused += u32::from(loaded.is_err());
    }
    assert!(refused > 10, "{refused} were refused");
}
