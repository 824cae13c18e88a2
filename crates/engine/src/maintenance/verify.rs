//! Scrubbing: reads every byte of every live table past the caches, the models that tables name, and
//! every value in a blob file that a table refers to, and compares it with the MANIFEST.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::key::ParsedKey;
use drumlin_base::{Error, InternalIterator, Result, ValueKind};
use drumlin_fs::FileSystem;
use drumlin_table::TableReadOptions;
use drumlin_table::blob::{BlobIndex, BlobReader};

use crate::caches::table_cache::TableCache;
use crate::compaction::CancelToken;
use crate::compaction::blob_inputs::BlobInputs;
use crate::compaction::blob_tally::BlobTally;
use crate::db::engine::Engine;
use crate::files::names;
use crate::maintenance::backup::transfer::{ProgressListener, TransferProgress};
use crate::version::{BlobFile, FileMeta, Version};

/// The result of a scrub.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Tables read.
    pub tables: u64,
    /// Bytes of the tables read.
    pub bytes: u64,
    /// Entries in the tables read.
    pub entries: u64,
    /// Blob files opened.
    pub blob_files: u64,
    /// Values read from blob files: all that tables refer to.
    pub blobs: u64,
    /// Each damaged file with its error.
    pub damaged: Vec<(PathBuf, Error)>,
    /// It was cancelled: what it had not read by then may be damaged or not.
    pub is_cancelled: bool,
}

/// Who watches a scrub.
#[derive(Clone, Default)]
pub struct VerifyOptions {
    /// Ends it between two tables or two values; the report has what was found by then.
    pub cancel: Option<CancelToken>,
    /// Told of the bytes of tables that were read and of those there are, after each table.
    pub progress: Option<ProgressListener>,
}

impl fmt::Debug for VerifyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyOptions")
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}

impl VerifyOptions {
    fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(CancelToken::is_cancelled)
            && !drumlin_base::bug!("scrub-goes-on")
    }
}

/// Reads every live table whole, and the blobs that tables refer to.
///
/// # Errors
/// `Shutdown` when the database is closed meanwhile. Damage is no error but a finding.
pub(crate) fn verify(engine: &Engine, options: &VerifyOptions) -> Result<VerifyReport> {
    let versions: Vec<(Arc<TableCache>, Arc<Version>)> = {
        let state = engine.store.lock_state();
        let families = state.families.values();
        families
            .map(|f| (Arc::clone(&f.family.reads.tables), Arc::clone(&f.version)))
            .collect()
    };
    let mut report = VerifyReport::default();
    let bytes_total = versions.iter().map(|(_, it)| it.bytes_total()).sum();
    for (tables, version) in &versions {
        verify_family(
            engine,
            (tables, version),
            (options, bytes_total),
            &mut report,
        )?;
    }
    // Afterwards: opening a table shows its model where the MANIFEST names none.
    let files = versions.iter().flat_map(|(_, version)| version.files());
    let models: BTreeSet<u64> = files.filter_map(|(_, file)| file.model()).collect();
    for id in models {
        if !report.goes_on(engine, options)? {
            break;
        }
        let outcome = match drumlin_base::bug!("scrub-passes-models-over") {
            true => Ok(()),
            false => engine.store.caches.models.verify(id),
        };
        report.note(outcome, || names::model(&engine.store.id.dir, id));
    }
    Ok(report)
}

/// Reads the tables of one family, and the blobs that they refer to.
fn verify_family(
    engine: &Engine,
    (tables, version): (&TableCache, &Version),
    (options, bytes_total): (&VerifyOptions, u64),
    report: &mut VerifyReport,
) -> Result<()> {
    let mut blobs = BlobInputs::new(&engine.store.id.env.files, &engine.store.id.dir);
    let mut referred = BlobTally::default();
    let mut sound = true;
    for (_, file) in version.files() {
        if !report.goes_on(engine, options)? {
            break;
        }
        verify_table(tables, file, report);
        if let Some(progress) = &options.progress {
            let bytes = report.bytes;
            progress(TransferProgress { bytes, bytes_total });
        }
        if file.oldest_blob_file != 0 {
            let read = verify_references(engine, tables, file, &mut blobs, &mut referred, options);
            sound &= report.note(read, || tables.path(file.number));
        }
    }
    report.blobs += referred.blobs();
    for blob in version.blobs().values() {
        if !report.goes_on(engine, options)? {
            break;
        }
        report.blob_files += 1;
        let referred = sound.then_some(&referred);
        let path = names::blob(&engine.store.id.dir, blob.addition.number);
        let outcome = verify_blob_file(&*engine.store.id.env.files, &path, blob, referred);
        report.note(outcome, || path);
    }
    Ok(())
}

/// Reads every value that `file` refers to, and counts the references.
fn verify_references(
    engine: &Engine,
    tables: &TableCache,
    file: &Arc<FileMeta>,
    blobs: &mut BlobInputs,
    referred: &mut BlobTally,
    options: &VerifyOptions,
) -> Result<()> {
    let mut cursor = tables.find(file)?.iter(TableReadOptions {
        fill_cache: false,
        ..TableReadOptions::default()
    });
    cursor.seek_to_first();
    while cursor.valid() {
        let key = ParsedKey::parse(cursor.key())?;
        if key.kind == ValueKind::BlobIndex {
            engine.store.check_open()?;
            if options.is_cancelled() {
                return Ok(());
            }
            let index = BlobIndex::decode(cursor.value())?;
            if !drumlin_base::bug!("scrub-reads-no-values") {
                blobs.value(key.user_key, &index)?;
            }
            referred.add(key.user_key, &index);
        }
        cursor.next();
    }
    cursor.status()
}

impl VerifyReport {
    /// Whether nobody ended the scrub.
    fn goes_on(&mut self, engine: &Engine, options: &VerifyOptions) -> Result<bool> {
        engine.store.check_open()?;
        self.is_cancelled |= options.is_cancelled();
        Ok(!self.is_cancelled)
    }

    /// Notes the damage found; whether there was none. `path` gives the file where the error names none.
    fn note(&mut self, outcome: Result<()>, path: impl FnOnce() -> PathBuf) -> bool {
        let Err(error) = outcome else {
            return true;
        };
        let path = error.file().map_or_else(path, ToOwned::to_owned);
        self.damaged.push((path, error));
        false
    }
}

/// Compares a blob file with the MANIFEST, and, when all tables could be read, the blobs
/// alive in it with the references found.
fn verify_blob_file(
    files: &dyn FileSystem,
    path: &Path,
    blob: &BlobFile,
    referred: Option<&BlobTally>,
) -> Result<()> {
    let reader = BlobReader::open(files, path, blob.addition.number)?;
    let found = (reader.blob_count(), reader.file_bytes());
    let expected = (blob.addition.blob_count, blob.addition.file_bytes());
    if found != expected {
        return Err(Error::corruption(format!(
            "the file has {} blobs in {} bytes, the MANIFEST says {} in {}",
            found.0, found.1, expected.0, expected.1
        ))
        .with_file(path));
    }
    let live = (blob.live_count(), blob.live_bytes());
    match referred.map(|referred| referred.of(blob.addition.number)) {
        Some(found) if found != live => Err(Error::corruption(format!(
            "tables refer to {} blobs of {} bytes, the MANIFEST says {} of {}",
            found.0, found.1, live.0, live.1
        ))
        .with_file(path)),
        _ => Ok(()),
    }
}

fn verify_table(tables: &TableCache, file: &Arc<FileMeta>, report: &mut VerifyReport) {
    report.tables += 1;
    report.bytes += file.size;
    let outcome = tables.find(file).and_then(|table| {
        if table.size() != file.size {
            let message = format!(
                "the table has {} bytes, the MANIFEST says {}",
                table.size(),
                file.size
            );
            return Err(Error::corruption(message));
        }
        table.verify()?;
        report.entries += table.properties().num_entries;
        Ok(())
    });
    report.note(outcome, || tables.path(file.number));
}
