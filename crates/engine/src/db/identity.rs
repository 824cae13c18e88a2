//! The ids of a database: the one in its IDENTITY file, and that of this run.

use std::path::Path;

use drumlin_base::{ErrorKind, Result};
use drumlin_fs::{CreateOptions, Env, FileKind};

use crate::files::names;

pub(super) fn write_identity_file(env: &Env, dir: &Path, id: &str) -> Result<()> {
    let options = CreateOptions::new(FileKind::Other);
    let mut file = env.files.create(&names::identity(dir), options)?;
    file.append(id.as_bytes())?;
    file.sync()?;
    file.close()?;
    env.files.sync_dir(dir)
}

/// The id in IDENTITY; `None` when the file is missing or empty.
pub(crate) fn stored_identity(env: &Env, dir: &Path) -> Result<Option<String>> {
    let bytes = match env.files.read_file(&names::identity(dir), 4096) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::TooLarge) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let text = String::from_utf8(bytes).unwrap_or_default();
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// The database's id: the one in IDENTITY, or a new random one in the form of a UUID.
pub(super) fn stored_or_new_identity(env: &Env, dir: &Path) -> Result<String> {
    if let Some(stored) = stored_identity(env, dir)? {
        return Ok(stored);
    }
    let mut rng = drumlin_base::rng::Rng::new(env.seed ^ env.clock.unix_seconds());
    let (a, b) = (rng.next_u64(), rng.next_u64());
    Ok(format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xFFFF,
        a & 0xFFF,
        0x8000 | (b >> 48) & 0x3FFF,
        b & 0xFFFF_FFFF_FFFF,
    ))
}

/// Twenty characters that distinguish this run from others, as RocksDB's session ids do.
pub(super) fn session_id(env: &Env) -> String {
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut rng = drumlin_base::rng::Rng::new(env.seed ^ env.clock.monotonic().as_nanos() as u64);
    let digit = |rng: &mut drumlin_base::rng::Rng| {
        let index = rng.below(DIGITS.len() as u64) as usize;
        char::from(DIGITS.get(index).copied().unwrap_or(b'0'))
    };
    (0..20).map(|_| digit(&mut rng)).collect()
}
