//! What is known of a collection without reading it: for `collStats`, `dbStats` and the stage `$collStats`.

use drumlin_doc::{Builder, Code, Document, Kind, Outcome as Parsed, Refusal, Value};
use drumlin_doc_store::{Name, Outcome, Reads};

/// What sizes are divided by.
///
/// # Errors
/// `TypeMismatch` for what is no number, `Location51024` for one below 1.
pub(crate) fn scale(of: Option<Value<'_>>) -> Parsed<u64> {
    let Some(of) = of.filter(|of| of.kind != Kind::Null) else {
        return Ok(1);
    };
    let wrong = || Refusal::type_mismatch("BSON field 'scale' must be a whole number");
    let scale = of.as_whole().ok_or_else(wrong)?;
    u64::try_from(scale)
        .ok()
        .filter(|scale| *scale > 0)
        .ok_or_else(|| {
            let text = format!("BSON field 'scale' value must be >= 1, actual value '{scale}'");
            Refusal::new(Code::TooSmall, text)
        })
}

/// Documents, indexes and bytes; zeros for a collection that is not there.
///
/// # Errors
/// Of the engine.
pub(crate) fn storage(
    out: &mut Builder,
    reads: &Reads<'_>,
    name: &Name,
    scale: u64,
) -> Outcome<()> {
    let collection = reads.collection(name);
    collection.iter().try_for_each(|it| it.refuse_view())?;
    let (count, size, stored) = match &collection {
        Some(it) => (it.documents(), it.bytes(), reads.stored_bytes(it)?),
        None => Default::default(),
    };
    let in_indexes: u64 = stored.indexes.iter().sum();
    let names = collection.iter().flat_map(|it| &it.indexes);
    let bounds = collection.as_ref().and_then(|it| it.bounds());
    out.count("size", size / scale).count("count", count);
    out.count("avgObjSize", size.checked_div(count).unwrap_or(0))
        .count("numOrphanDocs", 0)
        .count("storageSize", stored.documents / scale)
        .count("freeStorageSize", 0)
        .bool("capped", bounds.is_some());
    if let Some(bounds) = bounds {
        out.count("max", bounds.documents_max.unwrap_or(0))
            .count("maxSize", bounds.size_bytes / scale);
    }
    let indexes = collection.as_ref().map(|it| it.index_count() as u64);
    out.count("nindexes", indexes.unwrap_or(0))
        .open(Kind::Array, "indexBuilds")
        .close();
    out.count("totalIndexSize", in_indexes / scale)
        .count("totalSize", (stored.documents + in_indexes) / scale)
        .open(Kind::Document, "indexSizes");
    if collection.is_some() && bounds.is_none() {
        // Documents lie under their `_id`: its index is they themselves.
        out.count("_id_", 0);
    }
    for (index, bytes) in names.zip(&stored.indexes) {
        out.count(&index.name, bytes / scale);
    }
    out.close().count("scaleFactor", scale);
    Ok(())
}

/// `$collStats`: which parts of its document are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CollectionStatistics {
    has_count: bool,
    /// The scale of the sizes.
    storage: Option<u64>,
}

/// The document that is there for a part.
fn part<'v>(name: &str, value: Value<'v>) -> Parsed<Document<'v>> {
    let inner = (value.kind == Kind::Document).then_some(Document(value.bytes));
    let wrong = || Refusal::new(Code::CollStatsShape, format!("{name} must be a document"));
    inner.ok_or_else(wrong)
}

impl CollectionStatistics {
    /// # Errors
    /// `Location40166` for what is no document, `Location40415` for unknown parts, `CommandNotSupported` for those that are not
    /// kept here.
    pub(crate) fn parse(of: Value<'_>) -> Parsed<Self> {
        let mut wanted = Self {
            has_count: false,
            storage: None,
        };
        for element in part("$collStats", of)? {
            match element.name_str() {
                "count" => {
                    part("count argument to $collStats", element.value)?;
                    wanted.has_count = true;
                }
                "storageStats" => {
                    let inner = part("storageStats argument to $collStats", element.value)?;
                    wanted.storage = Some(scale(inner.get("scale"))?);
                }
                name @ ("latencyStats" | "queryExecStats") => {
                    return Err(Refusal::not_supported(format!("{name} of $collStats")));
                }
                name => {
                    let text = format!("BSON field '$collStats.{name}' is an unknown field.");
                    return Err(Refusal::new(Code::UnknownField, text));
                }
            }
        }
        Ok(wanted)
    }

    /// The one document of the stage.
    ///
    /// # Errors
    /// `NamespaceNotFound` for the count of a collection that is not there; of the engine.
    pub(crate) fn document(self, reads: &Reads<'_>, name: &Name, now_ms: i64) -> Outcome<Vec<u8>> {
        let mut out = Builder::new();
        out.str("ns", &name.to_string())
            .str("host", "localhost")
            .date("localTime", now_ms);
        if let Some(scale) = self.storage {
            out.open(Kind::Document, "storageStats");
            storage(&mut out, reads, name, scale)?;
            out.close();
        }
        if self.has_count {
            let collection = reads.collection(name).ok_or_else(|| {
                let text = format!("Unable to retrieve count in $collStats stage :: caused by :: Collection [{name}] not found.");
                Refusal::new(Code::NamespaceNotFound, text)
            })?;
            out.count("count", collection.documents());
        }
        Ok(out.finish())
    }
}
