//! dump-table: a table file's properties and entries. Reads RocksDB's tables and LevelDB's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin::internals::names::{self, FileName};
use drumlin_base::key::ParsedKey;
use drumlin_base::{InternalIterator, KeyOrder, MemoryBudget, ValueKind};
use drumlin_fs::Env;
use drumlin_table::{
    BlockCache, Model, ModelFacts, ModelSource, Table, TableReadOptions, TableReaderOptions,
};

use serde_json::{Map, Value};

use crate::args::Place;
use crate::blobs;
use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::formats::json::{bytes_object, put_bytes};
use crate::inspect::{is_named, kind_name, not_one};
use crate::output::Output;

/// Memory for the blocks of one table that is walked once.
const CACHE_BYTES: usize = 8 << 20;
/// Bytes of the largest model file that is read.
const MODEL_BYTES_MAX: u64 = 2 << 30;

/// Prints the properties of `path`, and with `entries` all its entries.
pub(crate) fn dump_table(place: &Place, path: &Path, entries: bool, out: &mut Output) -> Outcome {
    let is_named = is_named(path, |name| matches!(name, FileName::Table(_)));
    let table = match open(&Env::system(), path) {
        Err(Failure::Engine(error)) if error.is_corruption() && !is_named => {
            return Err(not_one(path, "table file", error));
        }
        opened => opened?,
    };
    show_properties(&table, out)?;
    if entries {
        show_entries(&table, place.form(), out)?;
    }
    Ok(())
}

/// Models in the directory of the table that names them.
#[derive(Debug)]
struct Beside(Env, PathBuf);

impl ModelSource for Beside {
    fn model(&self, id: u64) -> drumlin::Result<Arc<Model>> {
        let path = names::model(&self.1, id);
        let bytes = self.0.files.read_file(&path, MODEL_BYTES_MAX)?;
        let (model, _) = ModelFacts::decode(&bytes).map_err(|error| error.with_file(&path))?;
        Ok(Arc::new(model))
    }
}

/// Opens one table, in the order its properties name.
pub(crate) fn open(env: &Env, path: &Path) -> Outcome<Arc<Table>> {
    let name = path.file_name().map(Path::new).and_then(FileName::parse);
    let number = name.and_then(FileName::number).unwrap_or(0);
    let budget = MemoryBudget::new(CACHE_BYTES);
    let cache = BlockCache::new(Arc::clone(&budget));
    let mut options = TableReaderOptions::new(path.to_path_buf(), number, cache, budget);
    let dir = path.parent().unwrap_or(Path::new("")).to_path_buf();
    options.models = Some(Arc::new(Beside(env.clone(), dir)));
    let table = Table::open(env.files.open(path)?, options.clone())?;
    if table.properties().comparator_name == KeyOrder::ReverseBytewise.name() {
        options.order = KeyOrder::ReverseBytewise;
        return Ok(Table::open(env.files.open(path)?, options)?);
    }
    Ok(table)
}

fn show_properties(table: &Table, out: &mut Output) -> Outcome {
    let known = table.properties();
    let numbers = [
        ("size", table.size()),
        ("format version", known.format_version),
        ("entries", known.num_entries),
        ("deletions", known.num_deletions),
        ("merge operands", known.num_merge_operands),
        ("range deletions", known.num_range_deletions),
        ("raw key bytes", known.raw_key_size),
        ("raw value bytes", known.raw_value_size),
        ("data blocks", known.num_data_blocks),
        ("data bytes", known.data_size),
        ("index bytes", known.index_size),
        ("filter bytes", known.filter_size),
        ("family id", known.column_family_id),
        ("created", known.creation_time),
        ("smallest seqno", known.smallest_seqno),
        ("largest seqno", known.largest_seqno),
    ];
    let texts = [
        ("family", &known.column_family_name),
        ("comparator", &known.comparator_name),
        ("merge operator", &known.merge_operator_name),
        ("prefix extractor", &known.prefix_extractor_name),
        ("filter policy", &known.filter_policy_name),
        ("compression", &known.compression_name),
        ("database id", &known.db_id),
        ("session id", &known.db_session_id),
    ];
    if out.is_json() {
        return show_object(table, &numbers, &texts, out);
    }
    for (name, number) in numbers {
        if number != u64::MAX {
            out.text(format!("# {name}: {number}"))?;
        }
    }
    for (name, text) in texts {
        if !text.is_empty() {
            out.text(format!("# {name}: {text}"))?;
        }
    }
    for (name, value) in &known.user {
        out.text(format!("# {name}: {}", Form::Plain.show(value)))?;
    }
    for line in table.describe() {
        out.text(format!("# {line}"))?;
    }
    Ok(())
}

fn show_object(
    table: &Table,
    numbers: &[(&str, u64)],
    texts: &[(&str, &String)],
    out: &mut Output,
) -> Outcome {
    let mut object = Map::new();
    for (name, number) in numbers.iter().filter(|(_, number)| *number != u64::MAX) {
        object.insert((*name).to_owned(), (*number).into());
    }
    for (name, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
        object.insert((*name).to_owned(), text.as_str().into());
    }
    let mut user = Map::new();
    for (name, value) in &table.properties().user {
        put_bytes(&mut user, name, Form::Plain, value);
    }
    object.insert("user".to_owned(), Value::Object(user));
    object.insert("layout".to_owned(), table.describe().into());
    out.text(Value::Object(object).to_string())
}

fn show_entries(table: &Arc<Table>, form: Form, out: &mut Output) -> Outcome {
    for tombstone in table.range_tombstones() {
        let (begin, end) = (form.show(&tombstone.begin), form.show(&tombstone.end));
        let mut object = bytes_object("key", form, &tombstone.begin);
        put_bytes(&mut object, "end", form, &tombstone.end);
        object.insert("seqno".to_owned(), tombstone.seqno.into());
        object.insert(
            "kind".to_owned(),
            kind_name(ValueKind::RangeDeletion).into(),
        );
        let text = format!("{begin}\t{} delete-range\t{end}", tombstone.seqno);
        out.fact(text, Value::Object(object))?;
    }
    let mut entries = table.iter(TableReadOptions {
        fill_cache: false,
        ..TableReadOptions::default()
    });
    entries.seek_to_first();
    while entries.valid() {
        let key = ParsedKey::parse(entries.key())?;
        if out.is_json() {
            let mut object = bytes_object("key", form, key.user_key);
            object.insert("seqno".to_owned(), key.seqno.into());
            object.insert("kind".to_owned(), kind_name(key.kind).into());
            match key.kind {
                ValueKind::BlobIndex => {
                    let text = blobs::reference(entries.value(), form);
                    object.insert("blob".to_owned(), text.into());
                }
                _ => put_bytes(&mut object, "value", form, entries.value()),
            }
            out.text(Value::Object(object).to_string())?;
            entries.next();
            continue;
        }
        let user_key = form.show(key.user_key);
        let value = match key.kind {
            ValueKind::BlobIndex => blobs::reference(entries.value(), form),
            _ => form.show(entries.value()),
        };
        out.text(format!(
            "{user_key}\t{} {}\t{value}",
            key.seqno,
            kind_name(key.kind)
        ))?;
        entries.next();
    }
    Ok(entries.status()?)
}
