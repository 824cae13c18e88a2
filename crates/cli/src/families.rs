//! family list, create, drop, export, import.

use std::path::Path;

use drumlin::{ColumnFamily, Db, FamilyOptions, ImportOptions, Options};
use drumlin_fs::Env;
use serde_json::json;

use crate::args::{FamilyTask, Place};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::progress::Progress;
use crate::units;

/// Carries out one of the tasks.
pub(crate) fn family(place: &Place, task: FamilyTask, out: &mut Output) -> Outcome {
    match task {
        FamilyTask::List => list(place, out),
        FamilyTask::Create { name } => create(place, &name),
        FamilyTask::Drop { name } => drop_family(place, &name),
        FamilyTask::Export { name, target } => export(place, &name, &target, out),
        FamilyTask::Import {
            name,
            source,
            move_files,
        } => import(place, &name, (&source, move_files), out),
    }
}

/// Prints the names.
fn list(place: &Place, out: &mut Output) -> Outcome {
    let listed = Db::list_families(place.dir()?, &Env::system());
    for name in listed.map_err(|error| place.explain(error))? {
        out.value("family", place.form(), name.as_bytes())?;
    }
    Ok(())
}

fn create(place: &Place, name: &str) -> Outcome {
    let db = open(place)?;
    if db.column_family(name).is_some() {
        let text = format!("there is a column family '{name}' already");
        return Err(Failure::Usage(text));
    }
    let options = FamilyOptions {
        ttl: place.ttl(),
        ..FamilyOptions::default()
    };
    db.create_family(name, options)?;
    place.finish(db)
}

fn drop_family(place: &Place, name: &str) -> Outcome {
    let db = open(place)?;
    db.drop_family(&named(&db, name)?)?;
    place.finish(db)
}

fn named(db: &Db, name: &str) -> Outcome<ColumnFamily> {
    let missing = || Failure::NotFound(format!("there is no column family '{name}'"));
    db.column_family(name).ok_or_else(missing)
}

fn export(place: &Place, name: &str, target: &Path, out: &mut Output) -> Outcome {
    let db = open(place)?;
    let family = named(&db, name)?;
    let progress = Progress::waiting("export");
    let made = db.export_family(&family, target);
    progress.finish();
    made?;
    let text = format!("family '{name}' is in {}", target.display());
    out.fact(text, json!({"family": name, "export": target}))?;
    drop(family);
    place.finish(db)
}

fn import(
    place: &Place,
    name: &str,
    (source, move_files): (&Path, bool),
    out: &mut Output,
) -> Outcome {
    let db = open(place)?;
    let progress = Progress::waiting("import");
    let import = ImportOptions {
        family: None,
        move_files,
    };
    let made = db.import_family(name, source, import);
    progress.finish();
    let family = match made {
        Err(error) if error.is_not_found() => {
            let text = format!("there is no database in {}", source.display());
            return Err(Failure::NotFound(text));
        }
        made => made?,
    };
    let (mut tables, mut size) = (0, 0);
    for table in db.live_tables(&family)? {
        (tables, size) = (tables + 1, size + table.bytes);
    }
    let text = format!(
        "family '{name}' has {} tables, {}",
        units::count(tables),
        units::bytes(size)
    );
    out.fact(
        text,
        json!({"family": name, "tables": tables, "bytes": size}),
    )?;
    drop(family);
    place.finish(db)
}

/// Opens an existing database with all its families.
fn open(place: &Place) -> Outcome<Db> {
    if let Some(db) = &place.held {
        return Ok(db.clone());
    }
    let options = Options {
        create_if_missing: false,
        ..place.options()
    };
    let opened = Db::open_all_families(place.dir()?, options);
    opened.map_err(|error| place.explain(error))
}
