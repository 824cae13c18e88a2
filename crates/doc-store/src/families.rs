//! The column families and how they are opened.

use std::path::Path;
use std::sync::Arc;

use drumlin::{
    ColumnFamily, Db, Error, FamilyOptions, Options, Result, TableFormat, Tuning, UInt64Add,
    WriteBatch, WriteOptions,
};

use crate::layout::{FORMAT, Ident};

/// The version of the layout, under [`FORMAT`].
const VERSION: &[u8] = b"drumlin-mongo 1";

/// Values from this size on are kept apart: below, they are coded by the table's model, which is smaller.
const BLOB_FROM_BYTES: usize = 16 << 10;

/// Collections are records of a kind: an [ident](crate::layout::Ident) names a scope.
const SCOPE_BYTES: usize = size_of::<Ident>();

/// Handles of the families.
#[derive(Clone, Debug)]
pub(crate) struct Families {
    pub(crate) docs: ColumnFamily,
    pub(crate) index: ColumnFamily,
}

/// Opens the database in `dir`, or makes it.
///
/// # Errors
/// Of the engine; `InvalidArgument` where the directory is another program's; `NotSupported` for a later version's.
pub(crate) fn open(dir: &Path, mut options: Options) -> Result<(Db, Families)> {
    let base = options.family.clone();
    let tuning = Tuning {
        blob_from_bytes: Some(BLOB_FROM_BYTES),
        ..base
            .tuning
            .clone()
            .unwrap_or_else(|| options.tuning.clone())
    };
    let docs = FamilyOptions {
        table_format: Some(TableFormat::Searchable),
        scope_bytes: Some(SCOPE_BYTES),
        tuning: Some(tuning),
        ..base.clone()
    };
    options.family.merge_operator = Some(Arc::new(UInt64Add));
    let wanted = [("docs", docs), ("index", base)];
    let known = match Db::list_families(dir, &options.env) {
        Ok(names) => names,
        Err(error) if error.is_not_found() => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut strangers = known.iter();
    let stranger = strangers.find(|name| {
        *name != drumlin::DEFAULT_FAMILY && wanted.iter().all(|(ours, _)| ours != name)
    });
    if let Some(stranger) = stranger {
        let text = format!(
            "the directory has a column family {stranger:?}: it holds no collections of this server"
        );
        return Err(Error::invalid_argument(text));
    }
    let present = wanted
        .iter()
        .filter(|(name, _)| known.iter().any(|known| known == name));
    let present: Vec<_> = present
        .map(|(name, family)| (*name, family.clone()))
        .collect();
    let db = Db::open_families(dir, options, &present)?;
    check_format(&db)?;
    for (name, family) in wanted {
        if db.column_family(name).is_none() {
            db.create_family(name, family)?;
        }
    }
    let find = |name: &str| {
        let missing = || Error::corruption(format!("the column family {name} is missing"));
        db.column_family(name).ok_or_else(missing)
    };
    let families = Families {
        docs: find("docs")?,
        index: find("index")?,
    };
    Ok((db, families))
}

/// Checks the version, or writes it to an empty database.
fn check_format(db: &Db) -> Result<()> {
    match db.get(FORMAT)? {
        Some(version) if *version == *VERSION => Ok(()),
        Some(version) => {
            let (theirs, ours) = [&*version, VERSION].map(String::from_utf8_lossy).into();
            let text =
                format!("the collections have the format {theirs:?}; this build knows {ours:?}");
            Err(Error::not_supported(text))
        }
        None => {
            let mut iter = db.iter(drumlin::ReadOptions::default());
            iter.seek_to_first();
            iter.status()?;
            if iter.valid() {
                return Err(Error::invalid_argument(
                    "the directory holds a database that has no collections of this server",
                ));
            }
            let mut batch = WriteBatch::new();
            batch.put(FORMAT, VERSION)?;
            db.write(batch, &WriteOptions::synced())
        }
    }
}
