//! What every command may be told of reads, writes and its time: `readConcern`, `writeConcern`, `maxTimeMS`.

use drumlin_doc::{Code, Document, Kind, Number, Refusal, Value, coerced};

use super::shape::{Shape, check, mismatch, unknown};

/// Commands that take every `readConcern`; the others take `local` alone.
const READERS: &[&str] = &["aggregate", "count", "distinct", "explain", "find"];
/// Commands that take a `writeConcern`. `getMore` and `aggregate` take it as MongoDB has them do.
const WRITERS: &[&str] = &[
    "aggregate",
    "bulkWrite",
    "cloneCollectionAsCapped",
    "collMod",
    "convertToCapped",
    "create",
    "createIndexes",
    "createUser",
    "delete",
    "drop",
    "dropDatabase",
    "dropIndexes",
    "dropUser",
    "findAndModify",
    "findandmodify",
    "insert",
    "renameCollection",
    "update",
    "updateUser",
];
const LEVELS: [&str; 5] = ["local", "available", "majority", "linearizable", "snapshot"];
/// Where a concern comes from, as routers say it.
const PROVENANCES: [&str; 4] = [
    "clientSupplied",
    "implicitDefault",
    "customDefault",
    "getLastErrorDefaults",
];

/// What is not null.
fn said<'a>(of: Document<'a>, name: &str) -> Option<Value<'a>> {
    of.get(name).filter(|value| value.kind != Kind::Null)
}

fn concern<'a>(
    (command, body): (&str, Document<'a>),
    name: &'static str,
    fields: &[(&str, Shape)],
) -> Result<Option<Document<'a>>, Refusal> {
    let Some(value) = said(body, name) else {
        return Ok(None);
    };
    check(command, body, &[(name, Shape::Document)])?;
    let concern = value.as_document().unwrap_or(Document::EMPTY);
    for element in concern {
        let known = element.name_str();
        if !fields.iter().any(|(field, _)| *field == known) {
            return Err(unknown(name, known));
        }
    }
    check(name, concern, fields)?;
    if let Some(provenance) = said(concern, "provenance").and_then(Value::as_str) {
        one_of(name, "provenance", provenance, &PROVENANCES)?;
    }
    Ok(Some(concern))
}

fn one_of(of: &str, field: &str, given: &str, known: &[&str]) -> Result<(), Refusal> {
    match known.contains(&given) {
        true => Ok(()),
        false => Err(Refusal::bad_value(format!(
            "Enumeration value '{given}' for field '{of}.{field}' is not a valid value."
        ))),
    }
}

/// Whether what is read has to outlive a power cut.
///
/// # Errors
/// `TypeMismatch` and `BadValue` for what is no read concern; `InvalidOptions` where the command takes none but `local`;
/// `NotAReplicaSet` for what only members of one have, `IllegalOperation` for times of a cluster.
pub(super) fn syncs_reads(name: &str, body: Document<'_>) -> Result<bool, Refusal> {
    let fields = [
        ("level", Shape::Text),
        ("afterOpTime", Shape::Document),
        ("afterClusterTime", Shape::Any),
        ("atClusterTime", Shape::Any),
        ("provenance", Shape::Text),
        ("waitLastStableRecoveryTimestamp", Shape::Flag),
    ];
    let Some(concern) = concern((name, body), "readConcern", &fields)? else {
        return Ok(false);
    };
    let level = said(concern, "level").and_then(Value::as_str);
    if let Some(level) = level {
        one_of("readConcern", "level", level, &LEVELS)?;
    }
    for field in ["afterClusterTime", "atClusterTime"] {
        if let Some(value) = concern.get(field) {
            if value.kind != Kind::Timestamp {
                return Err(mismatch("readConcern", field, value, "timestamp"));
            }
            let text = format!("readConcern {field} is for members of a replica set");
            return Err(Refusal::new(Code::IllegalOperation, text));
        }
    }
    let level = level.unwrap_or("local");
    if level != "local" && !READERS.contains(&name) {
        let text = format!(
            "Command {} does not support {{ readConcern: {{ level: \"{level}\" }} }}",
            name
        );
        return Err(Refusal::new(Code::InvalidOptions, text));
    }
    match level {
        "snapshot" | "linearizable" => Err(Refusal::new(
            Code::NotAReplicaSet,
            format!("node needs to be a replica set member to use readConcern: {level}"),
        )),
        level => Ok(level == "majority"),
    }
}

/// Whether the reply waits until the write outlives a power cut.
///
/// # Errors
/// `TypeMismatch` and `FailedToParse` for what is no write concern, `BadValue` for more nodes than one; `InvalidOptions` where the
/// command takes none.
pub(super) fn syncs_writes(name: &str, body: Document<'_>) -> Result<bool, Refusal> {
    let fields = [
        ("w", Shape::Any),
        ("j", Shape::Truth),
        ("fsync", Shape::Truth),
        ("wtimeout", Shape::Any),
        ("provenance", Shape::Text),
        ("getLastError", Shape::Any),
        ("wElectionId", Shape::Any),
        ("wOpTime", Shape::Any),
    ];
    let Some(concern) = concern((name, body), "writeConcern", &fields)? else {
        return Ok(false);
    };
    if !WRITERS.contains(&name) {
        let text = format!("Command {} does not support writeConcern", name);
        return Err(Refusal::new(Code::InvalidOptions, text));
    }
    let flag = |name: &str| said(concern, name).is_some_and(Value::is_truthy);
    if flag("j") && flag("fsync") {
        return Err(Refusal::parse(
            "fsync and j options cannot be used together",
        ));
    }
    let timeout = said(concern, "wtimeout").filter(|it| it.kind.is_number());
    if timeout.is_some_and(|it| Number::of(it).is_some_and(is_beyond_int32)) {
        return Err(Refusal::parse("wtimeout is too large"));
    }
    let is_majority = match concern.get("w") {
        None => false,
        Some(w) => is_majority(w)?,
    };
    Ok(flag("j") || flag("fsync") || is_majority)
}

/// Whether a write is one of which nothing is to be told: `w: 0`.
pub(super) fn asks_for_nothing(name: &str, body: Document<'_>) -> bool {
    let concern = body.get("writeConcern").and_then(Value::as_document);
    let w = concern.and_then(|concern| concern.get("w")?.as_whole());
    w == Some(0) && matches!(name, "insert" | "update" | "delete")
}

fn is_beyond_int32(number: Number<'_>) -> bool {
    number.compare(Number::Int(i64::from(i32::MAX))).is_gt()
}

fn is_nan(value: Value<'_>) -> bool {
    Number::of(value).is_some_and(Number::is_nan)
}

/// Whether `w` is the majority.
fn is_majority(w: Value<'_>) -> Result<bool, Refusal> {
    let unreplicated = |what: &str| {
        let text = format!("cannot use {what} when a host is not a member of a replica set");
        Err(Refusal::bad_value(text))
    };
    match w.kind {
        kind if kind.is_number() => match coerced(w).filter(|_| !is_nan(w)) {
            Some(0 | 1) => Ok(false),
            Some(2..=50) => unreplicated("'w' > 1"),
            _ => Err(Refusal::parse("w has to be a number from 0 to 50")),
        },
        Kind::String if w.as_str() == Some("majority") => Ok(true),
        Kind::String | Kind::Null => unreplicated("non-majority 'w' mode"),
        // Tags of members: there are none to wait for.
        Kind::Document => {
            let tags = Document(w.bytes);
            match !tags.is_empty() && tags.iter().all(|tag| tag.value.kind.is_number()) {
                true => Ok(false),
                false => Err(Refusal::parse("tags of w have to be numbers")),
            }
        }
        _ => Err(Refusal::parse("w has to be a number, string, or object")),
    }
}

/// The milliseconds that a command may take; `None` where it may take as long as it does.
///
/// # Errors
/// `TypeMismatch` for what is no number, `FailedToParse` for one that is not whole, `BadValue` beyond an int32.
pub(super) fn time_limit(name: &str, body: Document<'_>) -> Result<Option<u64>, Refusal> {
    let Some(value) = said(body, "maxTimeMS") else {
        return Ok(None);
    };
    if !value.kind.is_number() {
        return Err(mismatch(name, "maxTimeMS", value, "number"));
    }
    let text = "maxTimeMS has to be a whole number";
    let ms = value.as_whole().ok_or_else(|| Refusal::parse(text))?;
    let ms = i32::try_from(ms).ok().and_then(|ms| u64::try_from(ms).ok());
    let wrong = || Refusal::bad_value("maxTimeMS is out of the range [0, 2147483647]");
    ms.map(Some).ok_or_else(wrong)
}
