//! dump-blob: the header of a blob file, and the values in it.

use std::path::Path;

use drumlin::internals::names::FileName;
use drumlin_fs::Env;
use drumlin_table::blob::{BlobHeader, BlobIndex, BlobReader, BlobRecords};
use serde_json::{Value, json};

use crate::args::Place;
use crate::escape::Form;
use crate::failure::Outcome;
use crate::formats::json::{bytes_object, put_bytes};
use crate::inspect::{is_named, not_one};
use crate::output::Output;

/// Prints the header of `path`, and with `entries` every value in it. The sound front of a file
/// with a damaged end is printed all the same, before the damage is reported.
pub(crate) fn dump_blob(place: &Place, path: &Path, entries: bool, out: &mut Output) -> Outcome {
    let files = Env::system().files;
    let name = path.file_name().map(Path::new).and_then(FileName::parse);
    let number = name.and_then(FileName::number).unwrap_or(0);
    let is_named = is_named(path, |name| matches!(name, FileName::Blob(_)));
    let opened = BlobReader::open(&*files, path, number);
    let (records, damage) = match opened {
        Ok(reader) => {
            let counts = [
                ("size", reader.file_bytes()),
                ("blobs", reader.blob_count()),
                ("blob bytes", reader.blob_bytes()),
            ];
            show_header(reader.header(), &counts, out)?;
            (reader.records(), None)
        }
        Err(error) if error.is_corruption() => {
            let records = match BlobRecords::open_unfinished(&*files, path, number) {
                Err(error) if error.is_corruption() && !is_named => {
                    return Err(not_one(path, "blob file", error));
                }
                opened => opened?,
            };
            show_header(records.header(), &[], out)?;
            (records, Some(error))
        }
        Err(error) => return Err(error.into()),
    };
    if entries {
        show_entries(records, place.form(), out)?;
    }
    damage.map_or(Ok(()), |error| Err(error.into()))
}

fn show_header(header: BlobHeader, counts: &[(&str, u64)], out: &mut Output) -> Outcome {
    if out.is_json() {
        let mut object = json!({
            "family id": header.family_id, "compression": header.codec.to_string(),
        });
        if let Some(members) = object.as_object_mut() {
            members.extend(
                counts
                    .iter()
                    .map(|(name, count)| ((*name).to_owned(), json!(count))),
            );
        }
        return out.text(object.to_string());
    }
    out.text(format!("# family id: {}", header.family_id))?;
    out.text(format!("# compression: {}", header.codec))?;
    for (name, count) in counts {
        out.text(format!("# {name}: {count}"))?;
    }
    Ok(())
}

fn show_entries(mut records: BlobRecords, form: Form, out: &mut Output) -> Outcome {
    while records.next()? {
        let index = records.index();
        if out.is_json() {
            let mut object = bytes_object("key", form, records.key());
            put_bytes(&mut object, "value", form, &records.value()?);
            object.insert("offset".to_owned(), index.offset.into());
            object.insert("stored_bytes".to_owned(), index.size.into());
            out.text(Value::Object(object).to_string())?;
            continue;
        }
        let (key, value) = (form.show(records.key()), form.show(&records.value()?));
        let place = format!("{} {}", index.offset, index.size);
        out.text(format!("{key}\t{place}\t{value}"))?;
    }
    Ok(())
}

/// A reference as text; bytes that are none as they are.
pub(crate) fn reference(bytes: &[u8], form: Form) -> String {
    match BlobIndex::decode(bytes) {
        Ok(index) => format!(
            "file {} offset {} size {} {}",
            index.file, index.offset, index.size, index.codec
        ),
        Err(_) => form.show(bytes),
    }
}
