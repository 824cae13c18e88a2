//! Kept changes: any two WAL files, one in the archive and one beside the tables, are told in order, each number once, or
//! refused by an error that blames the files.

use std::path::Path;
use std::sync::Arc;

use drumlin::internals::options_file::{self, OptionsFile};
use drumlin::{Changes, Env, ErrorKind, Options, Result};
use drumlin_fs::{CreateOptions, FileKind, FileSystem, StrictMemFileSystem};

use super::expect::or_blamed;
use crate::reseal;

const DIR: &str = "/db";
/// The file in the archive has the number that seeds with recyclable records are written with.
const NAMES: [&str; 2] = ["archive/000007.log", "000009.log"];

/// The first byte divides the rest: so many 256ths of it are the first file.
pub(crate) fn run(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let at = rest.len() * usize::from(*first) / 256;
    let (older, newer) = rest.split_at(at);
    look_at([older.to_vec(), newer.to_vec()]);
    let mut sealed = [older.to_vec(), newer.to_vec()];
    sealed.iter_mut().for_each(|file| reseal::log(file));
    look_at(sealed);
}

fn look_at(contents: [Vec<u8>; 2]) {
    let files = StrictMemFileSystem::new();
    let dir = Path::new(DIR);
    files
        .create_dir_all(&dir.join("archive"))
        .expect("memory has no limit");
    let mut described = OptionsFile::default();
    described.database.set("WAL_ttl_seconds", "9");
    options_file::write(&files, dir, 1, &described).expect("memory has no limit");
    for (name, bytes) in NAMES.iter().zip(&contents) {
        let options = CreateOptions::new(FileKind::Wal);
        let mut file = files
            .create(&dir.join(name), options)
            .expect("memory has no limit");
        file.append(bytes).expect("memory has no limit");
        file.close().expect("memory has no limit");
    }
    let options = Options {
        env: Env::system().with_files(Arc::new(files)),
        ..Options::default()
    };
    let Some(mut changes) = told(Changes::of_directory(DIR, &options, 0)) else {
        return;
    };
    let mut position = changes.position();
    while let Some(Some(batch)) = changes.next().map(told) {
        assert!(batch.seqno() <= position, "a gap is passed over");
        assert!(batch.last_seqno() >= position, "a number is told twice");
        position = batch.last_seqno() + 1;
        assert_eq!(changes.position(), position);
        for entry in batch.entries() {
            let _known = or_blamed(entry);
        }
    }
}

/// What was read, if anything. A gap is told by an error of its own kind.
fn told<T>(read: Result<T>) -> Option<T> {
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        read => or_blamed(read),
    }
}
