//! Scrubbing: reads every byte of every live table past the caches and compares it with what the
//! MANIFEST says.

use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::{Error, Result};

use crate::engine::Engine;
use crate::table_cache::TableCache;
use crate::version::{FileMeta, Version};

/// What a scrub found.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Tables read.
    pub tables: u64,
    /// Bytes of the tables read.
    pub bytes: u64,
    /// Entries in the tables read.
    pub entries: u64,
    /// Each damaged file with what is wrong.
    pub damaged: Vec<(PathBuf, Error)>,
}

impl Engine {
    /// Reads every live table whole.
    ///
    /// # Errors
    /// `Shutdown` when the database is closed meanwhile. Damage is no error but a finding.
    pub(crate) fn verify(&self) -> Result<VerifyReport> {
        let versions: Vec<(Arc<TableCache>, Arc<Version>)> = {
            let state = self.lock_state();
            let families = state.families.values();
            families
                .map(|f| (Arc::clone(&f.family.reads.tables), Arc::clone(&f.version)))
                .collect()
        };
        let mut report = VerifyReport::default();
        for (tables, version) in versions {
            for (_, file) in version.files() {
                self.check_open()?;
                verify_table(&tables, file, &mut report);
            }
        }
        Ok(report)
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
    if let Err(error) = outcome {
        let path = error
            .file()
            .map(ToOwned::to_owned)
            .unwrap_or_else(|| tables.path(file.number));
        report.damaged.push((path, error));
    }
}
