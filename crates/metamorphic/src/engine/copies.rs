//! Copies of the database: checkpoints read, written to, and repaired.

use std::path::Path;

use drumlin::{Db, FamilyOptions, Options, Result, WriteBatch, WriteOptions};
use drumlin_testkit::model::Change;

use super::World;
use super::read::everything;
use crate::op::Op;
use crate::verb::Verb;

impl World<'_> {
    pub(super) fn copy(&mut self, op: &Op) -> Result<String> {
        let target = self.disk.fresh("copy");
        if op.verb == Verb::RepairCopy {
            // One table over another does not show repair their order if one was ingested from
            // outside; compacted, there is one for each key.
            for family in self.db().families() {
                self.db().compact_range(&family, None, None)?;
            }
            self.ingested &= self.choice.keeps_tables();
        }
        self.db().checkpoint(&target)?;
        let mut options = self.disk.options(&self.choice);
        options.wal_dir = None;
        let said = match op.verb {
            Verb::RepairCopy if self.ingested => {
                let copy = self.open_copy(&target, &options)?;
                let said = everything(&copy, |rows| !rows.starts_with("0 "))?;
                copy.close()?;
                said
            }
            Verb::RepairCopy => self.repaired(&target, &options, op.count.is_multiple_of(2))?,
            Verb::CheckpointWritten => {
                let copy = self.open_copy(&target, &options)?;
                for edit in &op.edits {
                    let family = copy
                        .column_family(&edit.family)
                        .map_or(0, |family| family.id());
                    if let Change::Put(key, value) = edit.change() {
                        let mut batch = WriteBatch::new();
                        batch.put_cf(family, &key, &value)?;
                        copy.write(batch, &WriteOptions::default())?;
                    }
                }
                let said = everything(&copy, |_| true)?;
                copy.close()?;
                format!("{said}; {}", everything(self.db(), |_| true)?)
            }
            _ => {
                let copy = self.open_copy(&target, &options)?;
                let said = everything(&copy, |_| true)?;
                copy.close()?;
                said
            }
        };
        self.disk.remove(&target)?;
        Ok(said)
    }

    fn families_of(&self, dir: &Path, options: &Options) -> Result<Vec<(String, FamilyOptions)>> {
        let names = Db::list_families(dir, &options.env)?;
        let families = names.into_iter().map(|name| {
            let family = self.choice.family(&name);
            (name, family)
        });
        Ok(families.collect())
    }

    /// Opens `dir` with all its families.
    pub(super) fn open_copy(&self, dir: &Path, options: &Options) -> Result<Db> {
        let families = self.families_of(dir, options)?;
        let families: Vec<(&str, FamilyOptions)> = families
            .iter()
            .map(|(name, family)| (name.as_str(), family.clone()))
            .collect();
        Db::open_families(dir, options.clone(), &families)
    }

    /// Repairs `dir` without a MANIFEST, or, with an `even` number, with one that CURRENT does not name.
    fn repaired(&self, dir: &Path, options: &Options, even: bool) -> Result<String> {
        let files = self.disk.file_system();
        for name in files.list(dir)? {
            let text = name.to_string_lossy();
            if text.starts_with("MANIFEST-") && !even || text == "CURRENT" {
                files.remove(&dir.join(name))?;
            }
        }
        let report = Db::repair(dir, options)?;
        if !report.lost.is_empty() {
            return Ok(format!("lost {:?}", report.lost));
        }
        let copy = self.open_copy(dir, options)?;
        // All that is there is in tables. What the WAL alone has was of a family that was dropped: nothing says so
        // without a MANIFEST, where the options name a family that is empty.
        for family in copy.families() {
            if !even && family.name().starts_with("family-") {
                copy.drop_family(&family)?;
            }
        }
        let said = everything(&copy, |rows| !rows.starts_with("0 "))?;
        copy.close()?;
        Ok(said)
    }
}
