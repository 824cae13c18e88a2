//! The stable API of drivers: which commands and stages belong to its only version.

use drumlin_doc::{Code, Kind, Refusal, Value};

use super::call::Call;

/// Commands of version 1, sorted.
const COMMANDS: &[&str] = &[
    "abortTransaction",
    "aggregate",
    "bulkWrite",
    "collMod",
    "commitTransaction",
    "count",
    "create",
    "createIndexes",
    "delete",
    "drop",
    "dropDatabase",
    "dropIndexes",
    "endSessions",
    "explain",
    "find",
    "findAndModify",
    "findandmodify",
    "getMore",
    "hello",
    "insert",
    "killCursors",
    "listCollections",
    "listDatabases",
    "listIndexes",
    "ping",
    "refreshSessions",
    "saslContinue",
    "saslStart",
    "update",
];

/// Stages that are not in version 1.
const STAGES_OUTSIDE: &[&str] = &[
    "$collStats",
    "$currentOp",
    "$indexStats",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
    "$search",
];

/// Refuses what a client has said it does not want to use.
///
/// # Errors
/// `APIVersionError` for other versions, `InvalidOptions` for none, `APIStrictError` for what is not in it.
pub(super) fn check(call: &Call<'_>) -> Result<(), Refusal> {
    let flag = |name: &str| call.body.get(name).is_some_and(Value::is_truthy);
    let Some(version) = call.body.get("apiVersion") else {
        return match ["apiStrict", "apiDeprecationErrors"]
            .into_iter()
            .find(|name| call.body.get(name).is_some())
        {
            Some(name) => {
                let text = format!("Provided {name} without passing apiVersion");
                Err(Refusal::new(Code::InvalidOptions, text))
            }
            None => Ok(()),
        };
    };
    if version.as_str() != Some("1") {
        let text = "API version must be \"1\"";
        return Err(Refusal::new(Code::ApiVersionError, text));
    }
    if !flag("apiStrict") {
        return Ok(());
    }
    if !COMMANDS.contains(&call.name) && !drumlin_base::bug!("mongo-strict-takes-all") {
        let text = format!(
            "Provided apiStrict:true, but the command {} is not in API Version 1",
            call.name
        );
        return Err(Refusal::new(Code::ApiStrictError, text));
    }
    let stages = call
        .body
        .get("pipeline")
        .filter(|_| call.name == "aggregate");
    for stage in stages.and_then(Value::as_array).into_iter().flatten() {
        let first = stage.value.as_document().and_then(|it| it.iter().next());
        let name = first.map(|first| first.name_str()).unwrap_or_default();
        if stage.value.kind == Kind::Document && STAGES_OUTSIDE.contains(&name) {
            let text =
                format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1");
            return Err(Refusal::new(Code::ApiStrictError, text));
        }
    }
    Ok(())
}
