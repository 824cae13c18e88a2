//! family list, create, drop.

use drumlin::{Db, FamilyOptions, Options};
use drumlin_fs::Env;

use crate::args::{FamilyTask, Place};
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Carries out one of the tasks.
pub(crate) fn family(place: &Place, task: FamilyTask, out: &mut Output) -> Outcome {
    match task {
        FamilyTask::List => list(place, out),
        FamilyTask::Create { name } => create(place, &name),
        FamilyTask::Drop { name } => drop_family(place, &name),
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
    db.create_family(name, FamilyOptions::default())?;
    place.finish(db)
}

fn drop_family(place: &Place, name: &str) -> Outcome {
    let db = open(place)?;
    let missing = || Failure::NotFound(format!("there is no column family '{name}'"));
    let family = db.column_family(name).ok_or_else(missing)?;
    db.drop_family(&family)?;
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
