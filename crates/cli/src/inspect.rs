//! dump-wal and dump-manifest: log files, record by record. Nothing is opened or changed.

use std::path::{Path, PathBuf};

use drumlin::internals::batch::{BatchIter, BatchPart, BatchRecord, BatchView};
use drumlin::internals::names::FileName;
use drumlin::internals::record::{Later, RecordReader, Verdict};
use drumlin::internals::version::{NewFile, VersionEdit};
use drumlin_base::{Error, ValueKind};
use drumlin_fs::Env;
use serde_json::{Map, Value, json};

use crate::args::Place;
use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::formats::json::{bytes_object, put_bytes};
use crate::manifest;
use crate::output::Output;

/// Prints the batches of `file`, or of every log of the database.
pub(crate) fn dump_wal(
    place: &Place,
    file: Option<&Path>,
    keys_only: bool,
    out: &mut Output,
) -> Outcome {
    let env = Env::system();
    let files = match file {
        Some(file) => vec![file.to_path_buf()],
        None => logs(&env, place.dir()?)?,
    };
    for file in files {
        out.remark_of_text(format!("# {}", file.display()))?;
        dump_log(&env, &file, place.form(), keys_only, out)?;
    }
    Ok(())
}

/// The logs in `dir`, oldest first.
pub(crate) fn logs(env: &Env, dir: &Path) -> Outcome<Vec<PathBuf>> {
    let mut logs: Vec<(u64, PathBuf)> = Vec::new();
    for name in env.files.list(dir)? {
        if let Some(FileName::Wal(number)) = FileName::parse(&name) {
            logs.push((number, dir.join(name)));
        }
    }
    logs.sort();
    Ok(logs.into_iter().map(|(_, path)| path).collect())
}

/// The number in a log's name; it distinguishes a recycled file from its old content.
pub(crate) fn log_number(path: &Path) -> u64 {
    let name = path.file_name().map(Path::new).and_then(FileName::parse);
    name.and_then(FileName::number).unwrap_or(0)
}

fn dump_log(env: &Env, path: &Path, form: Form, keys_only: bool, out: &mut Output) -> Outcome {
    let mut reader = RecordReader::new(env.files.open(path)?, log_number(path));
    let is_named = is_named(path, |name| matches!(name, FileName::Wal(_)));
    let mut batches = 0u64;
    while let Some(record) = reader.read()? {
        let at = |error: Error| error.with_file(path).with_offset(record.offset);
        let batch = match BatchView::new(record.payload) {
            Err(error) if batches == 0 && !is_named => return Err(not_one(path, "log", error)),
            batch => batch.map_err(at)?,
        };
        batches += 1;
        let (offset, seqno) = (record.offset, batch.seqno());
        out.remark_of_text(format!("@{offset} seqno {seqno} records {}", batch.count()))?;
        for part in batch.parts() {
            let (step, entries) = match part.map_err(at)? {
                BatchPart::Record(entry) => (None, vec![entry]),
                BatchPart::Prepared(section) => {
                    let entries = BatchIter::new(section.records).collect::<Result<_, _>>();
                    (Some(("prepare", section.name)), entries.map_err(at)?)
                }
                BatchPart::Commit(name) => (Some(("commit", name)), Vec::new()),
                BatchPart::LogData(_) => continue,
                BatchPart::Rollback(name) => (Some(("rollback", name)), Vec::new()),
            };
            if let Some((step, name)) = step {
                out.remark_of_text(format!("  {step} {}", form.show(name)))?;
            }
            for entry in entries {
                if !out.is_json() {
                    out.text(show_entry(&entry, form, keys_only))?;
                    continue;
                }
                let mut object = entry_object(&entry, form, keys_only);
                object.insert("file".to_owned(), json!(path));
                object.insert("offset".to_owned(), offset.into());
                object.insert("batch_seqno".to_owned(), seqno.into());
                if let Some((_, name)) = step {
                    object.insert("prepared".to_owned(), form.show(name).into());
                }
                out.text(Value::Object(object).to_string())?;
            }
        }
    }
    match reader.judge(Later::Marks)? {
        // A log may well end before its first batch does.
        _ if batches == 0 && !is_named => Err(not_one(path, "log", "no batch begins it")),
        verdict => finish(path, verdict, out),
    }
}

fn show_entry(entry: &BatchRecord<'_>, form: Form, keys_only: bool) -> String {
    let mut text = format!(
        "  {} family {} {}",
        kind_name(entry.kind),
        entry.family,
        form.show(entry.key)
    );
    if !keys_only && !entry.value.is_empty() {
        text.push('\t');
        text.push_str(&form.show(entry.value));
    }
    text
}

fn entry_object(entry: &BatchRecord<'_>, form: Form, keys_only: bool) -> Map<String, Value> {
    let mut object = bytes_object("key", form, entry.key);
    object.insert("kind".to_owned(), kind_name(entry.kind).into());
    object.insert("family".to_owned(), entry.family.into());
    if !keys_only && !entry.value.is_empty() {
        put_bytes(&mut object, "value", form, entry.value);
    }
    object
}

/// The word for a kind of entry.
pub(crate) fn kind_name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Deletion => "delete",
        ValueKind::Value => "put",
        ValueKind::Merge => "merge",
        ValueKind::SingleDeletion => "single-delete",
        ValueKind::DeletionWithTimestamp => "delete-with-timestamp",
        ValueKind::RangeDeletion => "delete-range",
        ValueKind::BlobIndex => "blob",
        ValueKind::WideColumnEntity => "entity",
    }
}

/// Prints the verdict on the end of a log; damage is a failure.
fn finish(path: &Path, verdict: Verdict, out: &mut Output) -> Outcome {
    match verdict {
        Verdict::Clean => out.fact("# the end is clean", json!({"file": path, "end": "clean"})),
        Verdict::Torn {
            offset,
            dropped_bytes,
            reason,
            ..
        } => out.fact(
            format!(
                "# the end is torn at {offset}: {reason}; {dropped_bytes} bytes after it were never \
                 acknowledged as durable"
            ),
            json!({
                "file": path, "end": "torn", "offset": offset, "dropped_bytes": dropped_bytes,
                "reason": reason.to_string(),
            }),
        ),
        Verdict::Corrupt { offset, reason, .. } => {
            out.flush()?;
            Err(Failure::Check(format!(
                "{} is damaged at {offset}: {reason}",
                path.display()
            )))
        }
    }
}

/// Prints the edits of `file`, or of the database's current MANIFEST.
pub(crate) fn dump_manifest(place: &Place, file: Option<&Path>, out: &mut Output) -> Outcome {
    let env = Env::system();
    let path = match file {
        Some(file) => file.to_path_buf(),
        None => {
            let current = manifest::current(&env, place.dir()?);
            current.map_err(|failure| place.explain(failure))?
        }
    };
    let (form, mut edits) = (place.form(), 0u64);
    let read = manifest::each_edit(&env, &path, |offset, edit| {
        if edits == 0 {
            out.remark_of_text(format!("# {}", path.display()))?;
        }
        edits += 1;
        if out.is_json() {
            return out.text(edit_object(offset, &edit, form).to_string());
        }
        out.text(format!("@{offset} family {}", edit.column_family))?;
        show_edit(&edit, form, out)
    });
    let is_named = is_named(&path, |name| matches!(name, FileName::Manifest(_)));
    match read {
        // Under any name, a MANIFEST begins with a whole edit.
        Ok(Verdict::Clean | Verdict::Torn { .. }) if edits == 0 => {
            Err(not_one(&path, "MANIFEST", "no version edit begins it"))
        }
        Ok(Verdict::Corrupt { reason, .. }) if edits == 0 && !is_named => {
            Err(not_one(&path, "MANIFEST", reason))
        }
        Err(Failure::Engine(error)) if error.is_corruption() && edits == 0 && !is_named => {
            Err(not_one(&path, "MANIFEST", error))
        }
        read => finish(&path, read?, out),
    }
}

/// Whether the name of `path` is that of a database's file of a kind.
pub(crate) fn is_named(path: &Path, is_kind: fn(FileName) -> bool) -> bool {
    let name = path.file_name().map(Path::new).and_then(FileName::parse);
    name.is_some_and(is_kind)
}

/// The failure to read `path` as a `what`, which it is neither by name nor by content.
pub(crate) fn not_one(path: &Path, what: &str, why: impl std::fmt::Display) -> Failure {
    Failure::NotFound(format!("{} is no {what}: {why}", path.display()))
}

fn edit_object(offset: u64, edit: &VersionEdit, form: Form) -> Value {
    let added = edit.new_files.iter().map(|(level, file)| {
        let mut object = table_object(file, form);
        object.insert("level".to_owned(), (*level).into());
        Value::Object(object)
    });
    let mut object = json!({
        "offset": offset, "family": edit.column_family, "add_family": edit.add_family,
        "drop_family": edit.drop_family, "db_id": edit.db_id, "comparator": edit.comparator,
        "log_number": edit.log_number, "next_file_number": edit.next_file_number,
        "last_seqno": edit.last_seqno, "atomic_group_remaining": edit.atomic_group_remaining,
        "add_tables": added.collect::<Vec<_>>(),
        "delete_tables": edit.deleted_files.iter()
            .map(|(level, number)| json!({"level": level, "number": number})).collect::<Vec<_>>(),
        "add_logs": edit.wal_additions.iter()
            .map(|(number, synced)| json!({"number": number, "synced_bytes": synced})).collect::<Vec<_>>(),
        "add_blob_files": edit.blob_additions.iter()
            .map(|blob| json!({"number": blob.number, "bytes": blob.blob_bytes})).collect::<Vec<_>>(),
        "blob_garbage": edit.blob_garbage.iter()
            .map(|blob| json!({"number": blob.number, "bytes": blob.garbage_bytes})).collect::<Vec<_>>(),
    });
    // What an edit does not say is left out.
    if let Some(members) = object.as_object_mut() {
        members
            .retain(|_, value| !value.is_null() && *value != json!([]) && *value != json!(false));
    }
    object
}

/// A table as JSON.
pub(crate) fn table_object(file: &NewFile, form: Form) -> Map<String, Value> {
    let mut object = bytes_object("smallest", form, file.smallest_user_key());
    put_bytes(&mut object, "largest", form, file.largest_user_key());
    let numbers = [
        ("number", file.number),
        ("bytes", file.size),
        ("smallest_seqno", file.smallest_seqno),
        ("largest_seqno", file.largest_seqno),
        ("epoch", file.epoch),
    ];
    for (name, number) in numbers {
        object.insert(name.to_owned(), number.into());
    }
    object
}

fn show_edit(edit: &VersionEdit, form: Form, out: &mut Output) -> Outcome {
    let numbers = [
        ("log number", edit.log_number),
        ("previous log number", edit.prev_log_number),
        ("next file number", edit.next_file_number),
        ("last seqno", edit.last_seqno),
        ("highest family", edit.max_column_family.map(u64::from)),
        ("oldest log to keep", edit.min_log_number_to_keep),
        ("logs deleted below", edit.wals_deleted_below),
        (
            "edits of the group that follow",
            edit.atomic_group_remaining.map(u64::from),
        ),
    ];
    let texts = [
        ("database id", &edit.db_id),
        ("comparator", &edit.comparator),
        ("add family", &edit.add_family),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            out.text(format!("  {name}: {text}"))?;
        }
    }
    if edit.drop_family {
        out.text("  drop family")?;
    }
    for (name, number) in numbers {
        if let Some(number) = number {
            out.text(format!("  {name}: {number}"))?;
        }
    }
    for (number, synced) in &edit.wal_additions {
        let synced = synced.map_or(String::new(), |bytes| format!(", {bytes} bytes synced"));
        out.text(format!("  add log {number}{synced}"))?;
    }
    for (level, number) in &edit.deleted_files {
        out.text(format!("  delete L{level} table {number}"))?;
    }
    for (level, file) in &edit.new_files {
        out.text(format!("  add L{level} {}", show_table(file, form)))?;
    }
    for (level, key) in &edit.compact_cursors {
        let key = form.show(drumlin_base::key::user_key(key));
        out.text(format!("  compact L{level} from {key}"))?;
    }
    for blob in &edit.blob_additions {
        out.text(format!(
            "  add blob file {} ({} bytes)",
            blob.number, blob.blob_bytes
        ))?;
    }
    for blob in &edit.blob_garbage {
        out.text(format!(
            "  garbage in blob file {}: {} bytes",
            blob.number, blob.garbage_bytes
        ))?;
    }
    Ok(())
}

fn show_table(file: &NewFile, form: Form) -> String {
    format!(
        "table {}: {} bytes, {} .. {}, seqnos {}..={}, epoch {}",
        file.number,
        file.size,
        form.show(file.smallest_user_key()),
        form.show(file.largest_user_key()),
        file.smallest_seqno,
        file.largest_seqno,
        file.epoch,
    )
}
