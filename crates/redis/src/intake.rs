//! Data of a Redis into the data of a server that does not run: an RDB file, an append-only file, or a directory of append-only
//! files with its manifest.
//!
//! Keys of an RDB file replace those of their names. The commands of an append-only file count on the data that they were run on:
//! they are run only where there is none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::{Error, Result};
use drumlin_fs::Env;
use drumlin_rdb::aof::{Manifest, begins_as_rdb};
use drumlin_rdb::{Event, Limits, Reader};
use drumlin_redis_store::{DATABASES, Failure, Keyspace, Overlay, ReadFrom, Store};

use crate::config::Config;
use crate::opening::open_store;
use crate::persist::load::{self, Loaded, Tell};
use crate::replay::Replay;

/// Bytes in which the facts about an RDB file stand.
const FACTS_BYTES: usize = 4 << 10;
/// Longest manifest.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// Loads the data at `path` into that of `config`'s `dir`, where no server runs: an RDB file, an append-only file, a manifest, or
/// a directory with one. Of an RDB file, a key that is there is replaced, and keys that have expired are passed over. `tell` is
/// told now and then of what is loaded, and of the bytes that there are.
///
/// Memory: a value comes in parts, so what a batch takes. Time: 10^6 keys or commands a few seconds.
///
/// # Errors
/// `Corruption`, `NotSupported` with the file, the offset, and the key or the command; what comes before is loaded then.
/// `InvalidArgument` for append-only files where there are keys already; `Locked` while a server runs there; the engine's.
pub fn load_data(config: &Config, env: &Env, path: &Path, tell: Tell<'_>) -> Result<Loaded> {
    let store = Arc::new(open_store(config, env)?);
    let info = env
        .files
        .info(path)
        .map_err(|error| error.with_file(path))?;
    let parts = match info.is_dir {
        true => parts_of(env, &manifest_in(config, env, path)?)?,
        false if path.extension().is_some_and(|it| it == "manifest") => parts_of(env, path)?,
        false if is_plain_rdb(env, path)? => return load::load(&store, env, path, tell),
        false => vec![path.to_owned()],
    };
    if !is_empty(&store)? {
        let message = "an append-only file is loaded only where there are no keys";
        return Err(Error::invalid_argument(message).with_file(path));
    }
    let mut of = 0;
    for part in &parts {
        let info = env.files.info(part);
        of += info.map_err(|error| error.with_file(part))?.size;
    }
    let mut replay = Replay::new(store, config, env)?;
    let last = parts.len().saturating_sub(1);
    for (at, part) in parts.iter().enumerate() {
        replay.file(part, at == last, &mut |done| tell(done, of))?;
    }
    Ok(replay.done())
}

/// The manifest in a directory: the one that the configuration names, or the only one.
fn manifest_in(config: &Config, env: &Env, dir: &Path) -> Result<PathBuf> {
    let named = format!("{}.manifest", config.get("appendfilename"));
    let files = env.files.list(dir)?;
    let name_of = |path: &PathBuf| path.file_name().map(|name| dir.join(name));
    let is_manifest = |path: &PathBuf| path.extension().is_some_and(|it| it == "manifest");
    let found: Vec<_> = files
        .iter()
        .filter_map(name_of)
        .filter(is_manifest)
        .collect();
    let wanted = found.iter().find(|path| path.ends_with(&named));
    match (wanted, found.as_slice()) {
        (Some(path), _) | (None, [path]) => Ok(path.clone()),
        (None, []) => {
            let message = format!("the directory has no {named}");
            Err(Error::invalid_argument(message).with_file(dir))
        }
        (None, _) => {
            let message = format!("the directory has several manifests, and no {named}");
            Err(Error::invalid_argument(message).with_file(dir))
        }
    }
}

/// The files that a manifest names, in order.
fn parts_of(env: &Env, manifest: &Path) -> Result<Vec<PathBuf>> {
    let text = env.files.read_file(manifest, MANIFEST_BYTES_MAX)?;
    let parsed = Manifest::parse(&text).map_err(|error| error.with_file(manifest))?;
    let dir = manifest.parent().unwrap_or(Path::new(""));
    let parts = parsed.files().map(|(part, _)| dir.join(&part.name));
    Ok(parts.collect())
}

/// Whether a file is an RDB file that no commands follow: one that SAVE wrote, and not a rewrite of an append-only file.
fn is_plain_rdb(env: &Env, path: &Path) -> Result<bool> {
    let file = env.files.open(path)?;
    let mut head = vec![0; FACTS_BYTES];
    let read = file.read_at(0, &mut head)?;
    head.truncate(read);
    if begins_as_rdb(&head) == Some(false) && !head.is_empty() {
        return Ok(false);
    }
    let mut reader = Reader::new(Limits::default());
    reader.push(&head);
    // Damage is told by the one who reads all of it.
    while let Ok(Some(event)) = reader.event() {
        match event {
            Event::Aux(name, value) if name == b"aof-preamble" || name == b"aof-base" => {
                return Ok(value != b"1");
            }
            Event::Begin(_) | Event::Aux(..) => {}
            _ => break,
        }
    }
    Ok(true)
}

fn is_empty(store: &Store) -> Result<bool> {
    let (view, mut overlay) = (store.view(), Overlay::new());
    for db in 0..DATABASES {
        let keys = Keyspace::new(store, &view, &mut overlay, db, 0, ReadFrom::Disk);
        let is_empty = keys.is_empty().map_err(|failure| match failure {
            Failure::Engine(error) => error,
            other => Error::corruption(other.to_string()),
        })?;
        if !is_empty {
            return Ok(false);
        }
    }
    Ok(true)
}
