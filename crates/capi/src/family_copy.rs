//! A family out of one database and into another: `rocksdb_export_import_files_metadata_t`.

use drumlin::{Error, ImportOptions, Result};

use crate::metadata::LiveFiles;

/// What is known of an exported family.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilesMetadata {
    order: String,
    files: LiveFiles,
}

pub(crate) mod calls {
    use std::ffi::CStr;

    use drumlin::{Db, FamilyOptions, Options};
    use drumlin_ffi::bytes::path_of;

    use super::{Error, FilesMetadata, ImportOptions, LiveFiles, Result};
    use crate::database::Database;
    use crate::family::Family;
    use crate::fields::ImportColumnFamilyOptions;
    use crate::maintenance::Checkpoint;
    use crate::options::OpenOptions;

    /// The folder is a database of its own, which RocksDB opens, too.
    pub(crate) fn checkpoint_export_column_family(
        checkpoint: &Checkpoint,
        family: Option<&Family>,
        dir: &CStr,
    ) -> Result<FilesMetadata> {
        let db = checkpoint.db();
        let family = family.map_or_else(|| db.default_family(), |family| &family.0);
        let dir = path_of(dir);
        db.export_family(family, &dir)?;
        let order = family.order();
        let options = Options {
            family: FamilyOptions {
                order: order.clone(),
                ..FamilyOptions::default()
            },
            ..Options::default()
        };
        let exported = Db::open_read_only(&dir, options)?;
        let files = LiveFiles::of(&exported, exported.default_family());
        Ok(FilesMetadata {
            order: order.name().to_owned(),
            files,
        })
    }

    /// All files are in one folder, that of an export from here.
    pub(crate) fn create_column_family_with_import(
        db: &Database,
        options: &OpenOptions,
        name: &CStr,
        import: &mut ImportColumnFamilyOptions,
        metadata: &mut FilesMetadata,
    ) -> Result<Family> {
        let [dir] = metadata.files.directories()[..] else {
            let message =
                "the files of an import are in one folder, in which a family was exported";
            return Err(Error::invalid_argument(message));
        };
        options.check_family_paths(db.db().path())?;
        let family = options.to_family()?;
        if !metadata.order.is_empty() && metadata.order != family.order.name() {
            let message = format!(
                "{}: does not match existing comparator {}",
                family.order.name(),
                metadata.order
            );
            return Err(Error::invalid_argument(message));
        }
        let import = ImportOptions {
            family: Some(family),
            move_files: import.move_files(),
        };
        let made = db
            .db()
            .import_family(&name.to_string_lossy(), path_of(dir), import);
        made.map(|family| Family::new(db.db(), family))
    }

    pub(crate) fn export_import_files_metadata_get_db_comparator_name(
        metadata: &mut FilesMetadata,
    ) -> Option<String> {
        Some(metadata.order.clone())
    }

    pub(crate) fn export_import_files_metadata_set_db_comparator_name(
        metadata: &mut FilesMetadata,
        name: &CStr,
    ) {
        metadata.order = name.to_string_lossy().into_owned();
    }

    pub(crate) fn export_import_files_metadata_get_files(
        metadata: &mut FilesMetadata,
    ) -> LiveFiles {
        metadata.files.clone()
    }

    /// Copies them: RocksDB takes the list over, and there are bindings that destroy it all the same.
    pub(crate) fn export_import_files_metadata_set_files(
        metadata: &mut FilesMetadata,
        files: &mut LiveFiles,
    ) {
        metadata.files = files.clone();
    }
}
