//! Where a table, model or blob file of the store goes among the shared files, and whether it is there already.

use std::path::PathBuf;

use drumlin_base::{Error, Result};

use super::catalog::Catalog;
use super::layout::{self, SHARED};
use super::transfer::{Source, Transfer};
use crate::db::engine::Engine;
use crate::maintenance::moment::ImmutableFile;

/// A file of the store and its place.
pub(super) struct Planned {
    pub(super) source: PathBuf,
    pub(super) size: u64,
    /// Its name among the shared files.
    pub(super) name: String,
    pub(super) action: Action,
}

/// What has to be done for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing: an earlier backup has it, with this checksum.
    Keep(u32),
    /// A run that was cut short has left a file of that name and size: it is taken if it is the same, byte for byte.
    Compare,
    /// It is copied; its checksum, where that is known.
    Copy(Option<u32>),
}

impl Planned {
    /// The path that the meta file has.
    pub(super) fn relative(&self) -> String {
        format!("{SHARED}/{}", self.name)
    }

    /// Bytes that will be read.
    pub(super) fn bytes_to_read(&self) -> u64 {
        match self.action {
            Action::Keep(_) => 0,
            Action::Compare => 2 * self.size,
            Action::Copy(_) => self.size,
        }
    }
}

/// Decides. Files that no session is known of are named by their checksum, and so read.
///
/// # Errors
/// `Corruption`, `Io` of the store's file; `Aborted`.
pub(super) fn plan(
    engine: &Engine,
    catalog: &Catalog,
    file: &ImmutableFile,
    transfer: &mut Transfer<'_>,
) -> Result<Planned> {
    let name = file.path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Error::invalid_argument("a file without a name"))?;
    let (name, known) = match session_of(file)? {
        Some(session) => (layout::named_by_session(name, &session, file.size), None),
        None => {
            transfer.expect(file.size);
            let crc32c = transfer.checksum(Source {
                files: &*engine.store.id.env.files,
                path: &file.path,
                len: file.size,
            })?;
            let named = layout::named_by_checksum(name, crc32c, file.size);
            (named, Some(crc32c))
        }
    };
    let relative = format!("{SHARED}/{name}");
    let recorded = catalog.checksums.get(&relative).copied();
    let is_there = catalog.sizes.get(&relative) == Some(&file.size);
    let action = match recorded {
        Some(crc32c) if is_there => Action::Keep(crc32c),
        None if is_there => match drumlin_base::bug!("backup-takes-what-was-left") {
            true => Action::Keep(known.unwrap_or_default()),
            false => Action::Compare,
        },
        recorded => Action::Copy(recorded.or(known)),
    };
    Ok(Planned {
        source: file.path.clone(),
        size: file.size,
        name,
        action,
    })
}

/// The session that wrote a table, as its properties tell.
fn session_of(file: &ImmutableFile) -> Result<Option<String>> {
    let Some((tables, meta)) = &file.table else {
        return Ok(None);
    };
    let table = tables.find(meta)?;
    let session = table.properties().db_session_id.clone();
    let is_plain = session.bytes().all(|byte| byte.is_ascii_alphanumeric());
    Ok(Some(session).filter(|session| !session.is_empty() && is_plain))
}
