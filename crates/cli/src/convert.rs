//! convert: the database again, in another engine's format.
//!
//! The source is opened for reading and not changed. The copy holds the rows that a reader sees:
//! one version of each key, nothing deleted. LevelDB knows one family, so only the default one can
//! go there.

use std::path::Path;

use drumlin::internals::batch::WriteBatch;
use drumlin::{
    ColumnFamily, Db, DirectoryFormat, FamilyOptions, Options, ReadOptions, WriteOptions,
};
use drumlin_fs::Env;
use drumlin_table::{Codec, Compression};
use serde_json::json;

use crate::args::{Format, Place};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::progress::Progress;
use crate::units;

const BATCH_BYTES: usize = 1 << 20;

/// Copies every family into a new database at `target`.
pub(crate) fn convert(place: &Place, to: Format, target: &Path, out: &mut Output) -> Outcome {
    if Env::system().files.exists(target)? {
        let text = format!(
            "{} is there already; name a new directory",
            target.display()
        );
        return Err(Failure::Usage(text));
    }
    let source = Db::open_read_only(place.dir()?, place.options());
    let source = source.map_err(|error| place.explain(error))?;
    let families = source.families();
    if to == Format::Leveldb {
        refuse_other_families(&source, &families)?;
    }
    let copy = Db::open(target, options(to, source.default_family()))?;
    for family in &families {
        let into = match copy.column_family(family.name()) {
            Some(into) => into,
            None => copy.create_family(family.name(), options(to, family).family)?,
        };
        let entries = copy_family(&source, family, &copy, &into)?;
        let text = format!(
            "family {}: {} entries",
            family.name(),
            units::count(entries)
        );
        out.fact(text, json!({"family": family.name(), "entries": entries}))?;
    }
    copy.close()?;
    let text = format!("the copy is in {}", target.display());
    out.fact(text, json!({"copy": target}))
}

/// Options of the copy, for `family`. Its order is kept, but for LevelDB, which has the one.
fn options(to: Format, family: &ColumnFamily) -> Options {
    let defaults = Options {
        error_if_exists: true,
        ..Options::default()
    };
    match to {
        Format::Rocksdb => Options {
            format: DirectoryFormat::RocksDb,
            family: FamilyOptions {
                order: family.order().clone(),
                ..FamilyOptions::default()
            },
            ..defaults
        },
        Format::Leveldb => Options {
            format: DirectoryFormat::LevelDb,
            // The one codec that every LevelDB reads.
            compression: Compression::new(Codec::Snappy),
            ..defaults
        },
    }
}

fn refuse_other_families(source: &Db, families: &[ColumnFamily]) -> Outcome {
    for family in families.iter().filter(|family| family.id() != 0) {
        let mut entries = source.iter_cf(family, ReadOptions::default());
        entries.seek_to_first();
        if entries.valid() {
            let name = family.name();
            return Err(Failure::Usage(format!(
                "LevelDB has no column families, and '{name}' holds entries; export it with \
                 `drumlin scan --family {name}`"
            )));
        }
        entries.status()?;
    }
    Ok(())
}

/// Copies one family, and returns the number of its entries.
fn copy_family(source: &Db, family: &ColumnFamily, copy: &Db, into: &ColumnFamily) -> Outcome<u64> {
    let read = ReadOptions {
        fill_cache: false,
        ..ReadOptions::default()
    };
    // The copy is worthless until it is whole, so it needs no log: closing flushes it.
    let write = WriteOptions {
        no_wal: true,
        ..WriteOptions::default()
    };
    let mut progress = Progress::new("converting", None);
    let mut entries = source.iter_cf(family, read);
    let (mut batch, mut count) = (WriteBatch::with_capacity(BATCH_BYTES), 0);
    entries.seek_to_first();
    while entries.valid() {
        batch.put_cf(into.id(), entries.key(), entries.try_value()?)?;
        progress.advance((entries.key().len() + entries.value().len()) as u64);
        count += 1;
        if batch.len() >= BATCH_BYTES {
            let next = WriteBatch::with_capacity(BATCH_BYTES);
            copy.write(std::mem::replace(&mut batch, next), &write)?;
        }
        entries.next();
    }
    entries.status()?;
    copy.write(batch, &write)?;
    progress.finish();
    Ok(count)
}
