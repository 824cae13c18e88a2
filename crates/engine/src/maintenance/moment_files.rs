//! The files that make up the database at one moment, for a program that copies them itself: RocksDB's
//! `GetLiveFilesStorageInfo`.

use std::path::{Path, PathBuf};

use drumlin_base::{Error, Result};

use crate::db::handle::Db;
use crate::files::names::{self, FileName};
use crate::maintenance::moment::{Moment, UnderWay};
use crate::watch::live_files::LiveFileKind;

/// A file of a copy of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MomentFile {
    /// Its kind.
    pub kind: LiveFileKind,
    /// Where it is; in the copy it has the same name, be it in one directory with the others or not.
    pub path: PathBuf,
    /// The number in its name; 0 of CURRENT, of a model its id.
    pub number: u64,
    /// Its bytes in the copy.
    pub bytes: u64,
    /// Whether the file may have more than these, which are not of this moment.
    pub may_be_longer: bool,
    /// Its content in the copy, whatever the file has, or where there is none.
    pub contents: Option<Vec<u8>>,
}

impl Db {
    /// The files that a copy of the database as of now has: tables, blob files, models, WAL files, the MANIFEST, CURRENT and, but
    /// in LevelDB's directories, OPTIONS. A directory with copies of them opens as the database at this moment, which
    /// lies between two writes. [`Db::pause_removal`] before this call keeps them until they are copied. Cost: of the files, of
    /// which none is read; blob files and models are asked for their length.
    ///
    /// # Errors
    /// `ReadOnly` for a database that was opened so; `NotSupported` while the MANIFEST cannot be written; `Shutdown`, `Io`.
    pub fn moment_files(&self) -> Result<Vec<MomentFile>> {
        let engine = &self.engine;
        let store = &engine.store;
        let _call = store.begin_call()?;
        store.check_writable()?;
        let _under_way = UnderWay::begin(engine)?;
        let moment = Moment::pin(engine)?;
        let Some((manifest, manifest_bytes)) = moment.live_manifest() else {
            let message =
                "the MANIFEST could not be written, and is begun anew by the next change of tables";
            return Err(Error::not_supported(message).with_file(&store.id.dir));
        };
        let mut found = Vec::new();
        for file in moment.immutable_files(engine)? {
            let (kind, number) = kind_of(&file.path)?;
            found.push(MomentFile {
                kind,
                number,
                bytes: file.size,
                may_be_longer: false,
                contents: None,
                path: file.path,
            });
        }
        let growing = |kind, path, (number, bytes)| MomentFile {
            kind,
            path,
            number,
            bytes,
            may_be_longer: true,
            contents: None,
        };
        let wals = moment.wals().iter();
        found.extend(wals.map(|&(number, bytes)| {
            let path = names::wal(&store.id.wal_dir, number);
            growing(LiveFileKind::Wal, path, (number, bytes))
        }));
        let path = names::manifest(&store.id.dir, manifest);
        found.push(growing(
            LiveFileKind::Manifest,
            path,
            (manifest, manifest_bytes),
        ));
        let made = |kind, path, number, contents: String| MomentFile {
            kind,
            path,
            number,
            bytes: contents.len() as u64,
            may_be_longer: false,
            contents: Some(contents.into_bytes()),
        };
        let current = names::current_content(manifest);
        let path = names::current(&store.id.dir);
        found.push(made(LiveFileKind::Current, path, 0, current));
        if let Some((number, options)) = moment.options() {
            let path = names::options(&store.id.dir, number);
            let text = options.to_text();
            found.push(made(LiveFileKind::Options, path, number, text));
        }
        Ok(found)
    }
}

/// The kind and the number of a file that is not changed any more.
fn kind_of(path: &Path) -> Result<(LiveFileKind, u64)> {
    let name = path.file_name().map(Path::new);
    match name.and_then(FileName::parse) {
        Some(FileName::Table(number)) => Ok((LiveFileKind::Table, number)),
        Some(FileName::Blob(number)) => Ok((LiveFileKind::Blob, number)),
        Some(FileName::Model(number)) => Ok((LiveFileKind::Model, number)),
        _ => Err(Error::corruption("a file of an unknown kind").with_file(path)),
    }
}
