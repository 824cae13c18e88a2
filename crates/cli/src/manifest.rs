//! The content of a MANIFEST, read without opening the database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use drumlin::internals::names::{self, FileName};
use drumlin::internals::record::{Later, RecordReader, Verdict};
use drumlin::internals::version::{NewFile, VersionEdit};
use drumlin_base::Error;
use drumlin_fs::Env;

use crate::failure::Outcome;

/// Most bytes of a CURRENT file.
const CURRENT_BYTES_MAX: u64 = 4096;

/// The tables of one family, by level and number.
#[derive(Debug, Default)]
pub(crate) struct FamilyTables {
    pub(crate) name: String,
    pub(crate) levels: BTreeMap<u32, BTreeMap<u64, NewFile>>,
}

/// The families of a database, by id.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) families: BTreeMap<u32, FamilyTables>,
}

impl Tree {
    /// Applies one edit.
    pub(crate) fn apply(&mut self, edit: &VersionEdit) {
        if edit.drop_family {
            self.families.remove(&edit.column_family);
            return;
        }
        let family = self.families.entry(edit.column_family).or_default();
        if let Some(name) = &edit.add_family {
            family.name.clone_from(name);
        } else if edit.column_family == 0 {
            "default".clone_into(&mut family.name);
        }
        for (level, number) in &edit.deleted_files {
            if let Some(files) = family.levels.get_mut(level) {
                files.remove(number);
            }
        }
        for (level, file) in &edit.new_files {
            let files = family.levels.entry(*level).or_default();
            files.insert(file.number, file.clone());
        }
    }

    /// The tree the directory's current MANIFEST describes.
    pub(crate) fn read(env: &Env, dir: &Path) -> Outcome<Self> {
        let mut tree = Self::default();
        let path = current(env, dir)?;
        let verdict = each_edit(env, &path, |_, edit| {
            tree.apply(&edit);
            Ok(())
        })?;
        verdict
            .refuse_corruption()
            .map_err(|error| error.with_file(&path))?;
        Ok(tree)
    }

    /// The family called `name`.
    pub(crate) fn family(&self, name: &str) -> Option<&FamilyTables> {
        self.families.values().find(|family| family.name == name)
    }
}

/// The MANIFEST that CURRENT names.
pub(crate) fn current(env: &Env, dir: &Path) -> Outcome<PathBuf> {
    let path = names::current(dir);
    let content = env.files.read_file(&path, CURRENT_BYTES_MAX)?;
    let name = std::str::from_utf8(&content).ok();
    let name = name.and_then(|name| name.strip_suffix('\n')).map(Path::new);
    match name.map(|name| (name, FileName::parse(name))) {
        Some((name, Some(FileName::Manifest(_)))) => Ok(dir.join(name)),
        _ => Err(Error::corruption("CURRENT names no MANIFEST")
            .with_file(&path)
            .into()),
    }
}

/// Shows every edit of a MANIFEST with its offset, and returns the verdict on its end.
pub(crate) fn each_edit(
    env: &Env,
    path: &Path,
    mut show: impl FnMut(u64, VersionEdit) -> Outcome,
) -> Outcome<Verdict> {
    let mut reader = RecordReader::new(env.files.open(path)?, 0);
    while let Some(record) = reader.read()? {
        let edit = VersionEdit::decode(record.payload)
            .map_err(|error| error.with_file(path).with_offset(record.offset))?;
        show(record.offset, edit)?;
    }
    Ok(reader.judge(Later::Any)?)
}
