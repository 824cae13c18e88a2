//! changes and keep-changes: what was changed, in order, and how long that is kept.

use std::time::Duration;

use drumlin::{ChangeBatch, ChangeEntry, Changes, Db, KeepChanges, Options};
use serde_json::{Map, Value, json};

use crate::args::Place;
use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::formats::json::put_bytes;
use crate::interrupt::Interrupt;
use crate::output::{Output, remark};

/// How long it is waited for more before it is looked whether a signal came.
const WAIT: Duration = Duration::from_millis(50);

/// Prints the changes from the sequence number `from` on, or from the first there is; with `follow` also those to come, until a
/// signal, which comes between two batches: what is printed then is whole, and the number to go on from is remarked.
pub(crate) fn changes(place: &Place, from: Option<u64>, follow: bool, out: &mut Output) -> Outcome {
    let opened = Changes::of_directory(place.dir()?, &place.options(), from.unwrap_or(0));
    let mut changes = opened.map_err(|error| place.explain(error))?;
    let interrupt = follow.then(Interrupt::of_following).transpose()?;
    let is_ended = || interrupt.as_ref().is_some_and(|it| it.token.is_cancelled());
    while !is_ended() {
        let mut found = changes.next().transpose()?;
        if found.is_none() && follow {
            // A reader of the pipe sees what is there before more is waited for.
            out.flush()?;
            found = changes.next_within(WAIT)?;
        }
        match found {
            Some(batch) => show_batch(&batch, place.form(), out)?,
            None if follow => {}
            None => return Ok(()),
        }
    }
    out.flush()?;
    remark(format!("drumlin: go on with --from {}", changes.position()));
    Ok(())
}

fn show_batch(batch: &ChangeBatch, form: Form, out: &mut Output) -> Outcome {
    let mut seqno = batch.seqno();
    for entry in batch.entries() {
        let entry = entry?;
        show(seqno, &entry, form, out)?;
        seqno += match &entry {
            ChangeEntry::LogData(_) => 0,
            ChangeEntry::Ingested { tables, .. } => tables.len() as u64,
            _ => 1,
        };
    }
    Ok(())
}

fn show(seqno: u64, entry: &ChangeEntry<'_>, form: Form, out: &mut Output) -> Outcome {
    let mut object = Map::new();
    object.insert("seqno".to_owned(), seqno.into());
    let mut words = Vec::new();
    let mut bytes: Vec<(&str, &[u8])> = Vec::new();
    let (kind, family) = match entry {
        ChangeEntry::Put { family, key, value } => {
            bytes.extend([("key", *key), ("value", *value)]);
            ("put", Some(family))
        }
        ChangeEntry::PutEntity {
            family,
            key,
            columns,
        } => {
            bytes.extend([("key", *key), ("columns", *columns)]);
            ("entity", Some(family))
        }
        ChangeEntry::Merge {
            family,
            key,
            operand,
        } => {
            bytes.extend([("key", *key), ("operand", *operand)]);
            ("merge", Some(family))
        }
        ChangeEntry::Delete { family, key } => {
            bytes.push(("key", key));
            ("delete", Some(family))
        }
        ChangeEntry::SingleDelete { family, key } => {
            bytes.push(("key", key));
            ("single-delete", Some(family))
        }
        ChangeEntry::DeleteRange { family, begin, end } => {
            bytes.extend([("from", *begin), ("to", *end)]);
            ("delete-range", Some(family))
        }
        ChangeEntry::LogData(data) => {
            bytes.push(("data", data));
            ("log-data", None)
        }
        ChangeEntry::FamilyCreated {
            family,
            name,
            order,
        } => {
            words.extend([("name", json!(name)), ("order", json!(order))]);
            ("create-family", Some(family))
        }
        ChangeEntry::FamilyDropped { family } => ("drop-family", Some(family)),
        ChangeEntry::Ingested { family, tables } => {
            words.push(("tables", json!(tables)));
            ("ingest", Some(family))
        }
        _ => return Err(Failure::Usage("a change of an unknown kind".to_owned())),
    };
    object.insert("kind".to_owned(), kind.into());
    object.extend(family.map(|id| ("family".to_owned(), json!(id))));
    let mut text = format!("{seqno} {kind}");
    if let Some(id) = family {
        text.push_str(&format!(" family {id}"));
    }
    for (at, (name, part)) in bytes.iter().enumerate() {
        text.push(if at == 0 { ' ' } else { '\t' });
        text.push_str(&form.show(part));
        put_bytes(&mut object, name, form, part);
    }
    for (name, word) in words {
        text.push_str(&format!(" {word}"));
        object.insert(name.to_owned(), word);
    }
    out.fact(text, Value::Object(object))
}

/// Sets how long changes are kept; not at all without a bound.
pub(crate) fn keep(place: &Place, seconds: Option<u64>, bytes: Option<u64>) -> Outcome {
    let options = Options {
        create_if_missing: false,
        keep_changes: Some(KeepChanges {
            age: seconds.map(Duration::from_secs),
            bytes,
        }),
        ..place.options()
    };
    let opened = Db::open_all_families(place.dir()?, options);
    opened.map_err(|error| place.explain(error))?.close()?;
    Ok(())
}
