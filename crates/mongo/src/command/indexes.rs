//! Indexes: made, removed, listed.

use drumlin_doc::{Builder, Code, Document, Kind, Refusal, Value, to_f64};
use drumlin_doc_store::{Collection, Index, NewIndex, Outcome, PlaceOptions};

use super::call::Call;
use super::cursor::batch_of;

/// `createIndexes`.
pub(super) fn create(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(
        &["indexes", "commitQuorum", "ignoreUnknownIndexOptions"],
        &[],
    )?;
    let name = call.collection()?;
    let wanted = call.documents("indexes")?;
    if wanted.is_empty() {
        return Err(Refusal::bad_value("Must specify at least one index to create").into());
    }
    let wanted: Vec<NewIndex> = wanted
        .iter()
        .map(|spec| new_index(*spec))
        .collect::<Result<_, _>>()?;
    let is_made = call.shared.store.create(&name)?;
    let (before, after) = call.shared.store.create_indexes(&name, &wanted)?;
    let mut reply = Builder::new();
    reply
        .count("numIndexesBefore", before as u64)
        .count("numIndexesAfter", after as u64);
    reply.bool("createdCollectionAutomatically", is_made);
    if before == after {
        reply.str("note", "all indexes already exist");
    }
    Ok(reply)
}

fn new_index(spec: Document<'_>) -> Result<NewIndex, Refusal> {
    for element in spec {
        let name = element.name_str();
        let is_said = element.value.is_truthy();
        match name {
            "key" | "name" | "unique" | "sparse" | "v" | "ns" | "background" => {}
            "partialFilterExpression" | "expireAfterSeconds" => {}
            "2dsphereIndexVersion" | "bits" | "min" | "max" => {}
            "hidden" | "prepareUnique" if !is_said => {}
            "collation" | "hidden" | "prepareUnique" | "storageEngine" | "weights"
            | "default_language" | "language_override" | "textIndexVersion" | "bucketSize"
            | "wildcardProjection" | "clustered" => {
                let text = format!("the index option '{name}' is not supported by this server");
                return Err(Refusal::new(Code::CannotCreateIndex, text));
            }
            _ => {
                let text = format!("The field '{name}' is not valid for an index specification");
                return Err(Refusal::new(Code::InvalidIndexSpecificationOption, text));
            }
        }
    }
    let key = spec
        .get("key")
        .filter(|key| key.kind == Kind::Document)
        .and_then(Value::as_document);
    let key = key.ok_or_else(|| {
        Refusal::parse("The 'key' field is a required property of an index specification")
    })?;
    let name = spec
        .get("name")
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty() && *name != "*");
    let name = name.ok_or_else(|| {
        Refusal::parse("The 'name' field is a required property of an index specification")
    })?;
    let flag = |name: &str| spec.get(name).is_some_and(Value::is_truthy);
    Ok(NewIndex {
        name: name.to_owned(),
        key: key.0.to_vec(),
        unique: flag("unique"),
        sparse: flag("sparse"),
        partial: match spec.get("partialFilterExpression") {
            Some(filter) if filter.kind == Kind::Document => Some(filter.bytes.to_vec()),
            Some(_) => {
                let text = "partialFilterExpression has to be a document";
                return Err(Refusal::type_mismatch(text));
            }
            None => None,
        },
        expire_after_seconds: spec.get("expireAfterSeconds").map(expiry).transpose()?,
        place_options: place_options(spec)?,
    })
}

/// What is said of places.
fn place_options(spec: Document<'_>) -> Result<PlaceOptions, Refusal> {
    let number = |name: &str| {
        let Some(value) = spec.get(name) else {
            return Ok(None);
        };
        let number = to_f64(value);
        number.map(Some).ok_or_else(|| {
            let kind = value.kind.name();
            let text = format!("The field '{name}' must be a number, but got {kind}");
            Refusal::type_mismatch(text)
        })
    };
    let whole = |name: &str, code: Code| {
        let wrong = || Refusal::new(code, format!("{name} must be a whole number above 0"));
        let value = number(name)?.and(spec.get(name));
        let is_decimal = value.is_some_and(|it| it.kind == Kind::Decimal);
        let whole = value.map(|it| it.as_whole().filter(|_| !is_decimal));
        whole
            .map(|it| it.and_then(|it| u32::try_from(it).ok()).ok_or_else(wrong))
            .transpose()
    };
    Ok(PlaceOptions {
        version: whole("2dsphereIndexVersion", Code::CannotCreateIndex)?,
        bits: whole("bits", Code::InvalidOptions)?,
        min: number("min")?,
        max: number("max")?,
    })
}

/// Seconds after which documents go.
fn expiry(value: Value<'_>) -> Result<u32, Refusal> {
    let seconds = value
        .as_whole()
        .filter(|seconds| *seconds <= i64::from(i32::MAX));
    let seconds = seconds.and_then(|seconds| u32::try_from(seconds).ok());
    seconds.ok_or_else(|| {
        let text = "TTL index 'expireAfterSeconds' option must be a whole number of seconds from 0 to 2147483647";
        Refusal::new(Code::CannotCreateIndex, text)
    })
}

/// `listIndexes`.
pub(super) fn list(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["cursor"], &["includeBuildUUIDs", "includeIndexBuildInfo"])?;
    let name = call.collection()?;
    let missing = || {
        Refusal::new(
            Code::NamespaceNotFound,
            format!("ns does not exist: {name}"),
        )
    };
    let collection = call.shared.store.collection(&name).ok_or_else(missing)?;
    collection.refuse_view()?;
    let mut id = Builder::new();
    id.i32("v", 2)
        .open(Kind::Document, "key")
        .i32("_id", 1)
        .close()
        .str("name", "_id_");
    let mut all = vec![id.finish()];
    all.extend(collection.secondary_indexes().map(|index| describe(index)));
    batch_of(call, &name.collection, all)
}

fn describe(index: &Index) -> Vec<u8> {
    let mut out = Builder::new();
    out.i32("v", 2)
        .document("key", Document(&index.key))
        .str("name", &index.name);
    if index.unique {
        out.bool("unique", true);
    }
    if index.sparse {
        out.bool("sparse", true);
    }
    if let Some(partial) = &index.partial {
        out.document("partialFilterExpression", Document(&partial.given));
    }
    if let Some(seconds) = index.expire_after_seconds {
        out.i32(
            "expireAfterSeconds",
            i32::try_from(seconds).unwrap_or(i32::MAX),
        );
    }
    let PlaceOptions {
        version,
        bits,
        min,
        max,
    } = index.place_options;
    for (name, number) in [("2dsphereIndexVersion", version), ("bits", bits)] {
        if let Some(number) = number.and_then(|it| i32::try_from(it).ok()) {
            out.i32(name, number);
        }
    }
    for (name, number) in [("min", min), ("max", max)] {
        if let Some(number) = number {
            out.f64(name, number);
        }
    }
    out.finish()
}

/// `dropIndexes`: by name, by key, by a list of names, or all.
pub(super) fn drop_indexes(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&["index"], &[])?;
    let name = call.collection()?;
    let missing = || Refusal::new(Code::NamespaceNotFound, format!("ns not found {name}"));
    let collection = call.shared.store.collection(&name).ok_or_else(missing)?;
    collection.refuse_view()?;
    let wanted = call
        .body
        .get("index")
        .ok_or_else(|| Refusal::type_mismatch("dropIndexes needs an index"))?;
    let names = named(&collection, wanted)?;
    let before = call
        .shared
        .store
        .drop_indexes(&name, &|index| names.contains(&index.name))?;
    let mut reply = Builder::new();
    reply.count("nIndexesWas", before as u64);
    Ok(reply)
}

fn named(collection: &Collection, wanted: Value<'_>) -> Result<Vec<String>, Refusal> {
    if let Some(list) = wanted.as_array() {
        let all = list.iter().map(|item| named(collection, item.value));
        return Ok(all.collect::<Result<Vec<_>, _>>()?.concat());
    }
    let id = || Refusal::new(Code::InvalidOptions, "cannot drop _id index");
    let all = collection.secondary_indexes();
    if let Some(name) = wanted.as_str() {
        let missing = || {
            Refusal::new(
                Code::IndexNotFound,
                format!("index not found with name [{name}]"),
            )
        };
        return match name {
            "*" => Ok(all.map(|index| index.name.clone()).collect()),
            "_id_" => Err(id()),
            _ => all
                .clone()
                .find(|index| index.name == name)
                .map(|index| vec![index.name.clone()])
                .ok_or_else(missing),
        };
    }
    let key = wanted
        .as_document()
        .ok_or_else(|| Refusal::type_mismatch("an index is named by a string or its key"))?;
    if key
        .iter()
        .map(|element| element.name)
        .eq([b"_id".as_slice()])
    {
        return Err(id());
    }
    let missing = || {
        Refusal::new(
            Code::IndexNotFound,
            format!("can't find index with key: {}", drumlin_doc::show(wanted)),
        )
    };
    let found = all
        .clone()
        .find(|index| drumlin_doc::equal(Document(&index.key).as_value(), key.as_value()));
    found
        .map(|index| vec![index.name.clone()])
        .ok_or_else(missing)
}
