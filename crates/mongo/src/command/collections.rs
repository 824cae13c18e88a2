//! Collections and databases: made, removed, listed.

use std::collections::BTreeMap;

use drumlin_doc::{Builder, Code, Document, Filter, Kind, Refusal, Value};
use drumlin_doc_store::{Name, Outcome};

use super::call::Call;
use super::cursor::batch_of;
use super::options;

/// `create`.
pub(super) fn create(call: &Call<'_>) -> Outcome<Builder> {
    let unserved = [
        "collation",
        "timeseries",
        "expireAfterSeconds",
        "clusteredIndex",
        "changeStreamPreAndPostImages",
        "storageEngine",
        "indexOptionDefaults",
        "encryptedFields",
    ];
    let known = [
        "idIndex",
        "autoIndexId",
        "capped",
        "size",
        "max",
        "validator",
        "validationLevel",
        "validationAction",
        "viewOn",
        "pipeline",
    ];
    call.accept(&known, &unserved)?;
    let name = call.collection()?;
    let options = options::of_create(call)?;
    let store = &call.shared.store;
    let is_new = store.create_with(&name, options.clone())?;
    let is_same = || {
        store
            .collection(&name)
            .is_some_and(|it| it.options == options)
    };
    match is_new || is_same() {
        true => Ok(Builder::new()),
        false => Err(Refusal::new(
            Code::NamespaceExists,
            format!("Collection {name} already exists."),
        )
        .into()),
    }
}

/// `drop`.
pub(super) fn drop_collection(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&[], &["encryptedFields"])?;
    let name = call.collection()?;
    let mut reply = Builder::new();
    if let Some(indexes) = call.shared.store.drop_collection(&name)? {
        call.shared.tell_dropped();
        if indexes > 0 {
            reply.count("nIndexesWas", indexes as u64);
        }
        reply.str("ns", &name.to_string());
    }
    Ok(reply)
}

/// The names of `renameCollection`: from, and to.
pub(super) fn names_of_rename(call: &Call<'_>) -> Result<(Name, Name), Refusal> {
    let first = call.body.iter().next().map(|first| first.value);
    let name = |value: Option<Value<'_>>| {
        let both = value
            .and_then(Value::as_str)
            .and_then(|it| it.split_once('.'));
        let wrong = || {
            let text = "renameCollection takes names with their databases, 'db.collection'";
            Refusal::new(Code::InvalidNamespace, text)
        };
        let (database, collection) = both.ok_or_else(wrong)?;
        call.named(database, collection)
    };
    Ok((name(first)?, name(call.body.get("to"))?))
}

/// `renameCollection`.
pub(super) fn rename(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["to", "dropTarget"], &[])?;
    if call.database != "admin" {
        let text = "renameCollection may only be run against the admin database.";
        return Err(Refusal::new(Code::Unauthorized, text).into());
    }
    let (from, to) = names_of_rename(call)?;
    let store = &call.shared.store;
    store.rename_collection(&from, &to, call.flag("dropTarget"))?;
    call.shared.tell_dropped();
    Ok(Builder::new())
}

/// `dropDatabase`.
pub(super) fn drop_database(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&[], &[])?;
    if call.database == "admin" {
        let text = "Dropping the 'admin' database is prohibited.";
        return Err(Refusal::new(Code::IllegalOperation, text).into());
    }
    call.shared.store.drop_database(call.database)?;
    call.shared.tell_dropped();
    let mut reply = Builder::new();
    reply.str("dropped", call.database);
    Ok(reply)
}

/// `listCollections`.
pub(super) fn list_collections(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(
        &["filter", "nameOnly", "authorizedCollections", "cursor"],
        &[],
    )?;
    let filter = call.filter("filter")?;
    let catalog = call.shared.store.catalog();
    let mut found = Vec::new();
    for collection in catalog
        .iter()
        .filter(|it| it.name.database == call.database)
        .filter(|it| !it.name.collection.starts_with("system."))
    {
        let mut out = Builder::new();
        let is_view = collection.options.view.is_some();
        out.str("name", &collection.name.collection)
            .str("type", if is_view { "view" } else { "collection" });
        if !call.flag("nameOnly") {
            out.document("options", Document(&collection.options.document()));
            out.open(Kind::Document, "info").bool("readOnly", is_view);
            if !is_view {
                out.binary("uuid", 4, &collection.uuid);
            }
            out.close();
        }
        if !call.flag("nameOnly") && !is_view {
            out.open(Kind::Document, "idIndex").i32("v", 2);
            out.open(Kind::Document, "key")
                .i32("_id", 1)
                .close()
                .str("name", "_id_")
                .close();
        }
        let document = out.finish();
        if filter.matches(Document(&document))? {
            found.push(document);
        }
    }
    batch_of(call, "$cmd.listCollections", found)
}

/// `listDatabases`.
pub(super) fn list_databases(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["filter", "nameOnly", "authorizedDatabases"], &[])?;
    let filter: Filter = call.filter("filter")?;
    let catalog = call.shared.store.catalog();
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    for collection in catalog.iter() {
        *sizes.entry(&collection.name.database).or_default() += collection.bytes();
    }
    let mut reply = Builder::new();
    let mut total = 0;
    reply.open(Kind::Array, "databases");
    let mut at = 0;
    for (name, bytes) in sizes {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut out = Builder::new();
        out.str("name", name);
        if !call.flag("nameOnly") {
            out.i64("sizeOnDisk", bytes).bool("empty", false);
        }
        let document = out.finish();
        if filter.matches(Document(&document))? {
            reply.document(at.to_string(), Document(&document));
            at += 1;
            total += bytes;
        }
    }
    reply.close();
    if !call.flag("nameOnly") {
        reply
            .i64("totalSize", total)
            .i64("totalSizeMb", total >> 20);
    }
    Ok(reply)
}
