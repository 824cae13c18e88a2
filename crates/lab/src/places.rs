//! Directories of stores.

use std::path::Path;
use std::time::Duration;

use drumlin_base::Result;
use drumlin_fs::Env;

/// A size that did not change for so long is settled: Drumlin keeps files for up to 16 s, to write over them.
const SETTLED_FOR: Duration = Duration::from_secs(18);
/// A directory that never settles is read after so long.
const SETTLED_MAX: Duration = Duration::from_secs(90);
/// Between looks.
const SETTLED_NAP: Duration = Duration::from_secs(1);

/// Bytes of the files in `dir`, logs left out, for their space is reserved beforehand. Files that
/// vanish meanwhile count nothing.
pub(crate) fn disk_bytes(env: &Env, dir: &Path) -> u64 {
    let names = env.files.list(dir).unwrap_or_default();
    let kept = names
        .iter()
        .filter(|name| name.extension().is_none_or(|kind| kind != "log"));
    let infos = kept.filter_map(|name| Some((name, env.files.info(&dir.join(name)).ok()?)));
    infos
        .map(|(name, info)| {
            let path = dir.join(name);
            if info.is_dir {
                return disk_bytes(env, &path);
            }
            // A file with holes, such as a map of LMDB's, takes less than its size.
            let blocks = rustix::fs::stat(&path).map_or(u64::MAX, |stat| stat.st_blocks as u64);
            info.size.min(blocks.saturating_mul(512))
        })
        .sum()
}

/// The size of `dir` once it has not changed for a while: engines keep files that they are done with, to write over them.
pub(crate) fn settled_bytes(env: &Env, dir: &Path) -> u64 {
    let began = env.clock.monotonic();
    let (mut size, mut since) = (disk_bytes(env, dir), began);
    loop {
        env.clock.sleep(SETTLED_NAP);
        let now = env.clock.monotonic();
        let present = disk_bytes(env, dir);
        if present != size {
            (size, since) = (present, now);
        }
        if now - since >= SETTLED_FOR || now - began >= SETTLED_MAX {
            return size;
        }
    }
}

/// Removes `dir` and all in it; no error if it is not there. Only for directories that the laboratory
/// made itself.
pub(crate) fn remove_tree(dir: &Path, env: &Env) -> Result<()> {
    let names = match env.files.list(dir) {
        Ok(names) => names,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    for name in names {
        let path = dir.join(name);
        match env.files.info(&path) {
            Ok(info) if info.is_dir => remove_tree(&path, env)?,
            Ok(_) => env.files.remove(&path)?,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    env.files.remove_dir(dir)
}
