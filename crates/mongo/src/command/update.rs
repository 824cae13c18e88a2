//! `update`.

use drumlin_doc::{
    ArrayFilter, Builder, Code, Document, Element, Filter, Kind, Moment, OwnedValue, Refusal,
    Scope, Sort, Update, Value, step,
};
use drumlin_doc_store::{Failure, Found, Name, Outcome, Pace, Step};

use crate::query::Query;

use super::call::{Call, hint_of, is_by_id, is_of_any, not_at_once};
use super::change::Change;
use super::concerns::syncs_writes;
use super::delete::matching;
use super::first::first;
use super::insert::insert_into;
use super::shape::Shape;
use super::statements::statements;
use super::write_reply::{goes_on, write_errors};

/// Arguments of a statement.
const SHAPES: &[(&str, Shape)] = &[
    ("q", Shape::Document),
    ("u", Shape::Any),
    ("c", Shape::Document),
    ("sort", Shape::Document),
    ("multi", Shape::Flag),
    ("upsert", Shape::Flag),
    ("hint", Shape::Hint),
    ("arrayFilters", Shape::Array),
];
/// How often an upsert begins anew when others make and remove its document.
const UPSERT_TRIES: usize = 100;
/// Longest document that is changed at once.
const AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// A change of what a query finds.
pub(super) struct Statement {
    pub(super) query: Query,
    pub(super) change: Change,
    pub(super) filters: Vec<ArrayFilter>,
    pub(super) is_upsert: bool,
    is_multi: bool,
}

/// What a statement did.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) matched: u64,
    pub(super) modified: u64,
    pub(super) upserted: Option<OwnedValue>,
}

/// Whether it changes one document, by its `_id`, and waits for no sync.
pub(super) fn is_of_one_id(call: &Call<'_>) -> bool {
    let is_plain = |name: &str| matches!(name, "updates" | "ordered" | "writeConcern");
    let mut arguments = call.body.iter().skip(1).map(|it| it.name_str());
    let is_short = arguments.all(|name| is_plain(name) || is_of_any(name));
    let statements = call.documents("updates");
    let Some([statement]) = statements.as_deref().ok().filter(|_| is_short) else {
        return false;
    };
    let is_plain = |it: Element<'_>| match it.name {
        b"q" => is_by_id(it.value),
        b"u" => it.value.kind == Kind::Document && !has_condition(Document(it.value.bytes)),
        b"multi" | b"upsert" => !it.value.is_truthy(),
        _ => false,
    };
    statement.iter().all(is_plain) && syncs_writes(call.name, call.body) == Ok(false)
}

/// Whether it asks of each element whether it goes, maybe by a regular expression, which takes its time.
fn has_condition(change: Document<'_>) -> bool {
    change.get("$pull").is_some() && !drumlin_base::bug!("mongo-pulls-at-once")
}

/// See the module.
pub(super) fn update(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(
        &["updates", "ordered", "bypassDocumentValidation", "let"],
        &[],
    )?;
    call.check(&[
        ("ordered", Shape::Flag),
        ("bypassDocumentValidation", Shape::Truth),
    ])?;
    let scope = call.scope()?;
    let name = call.collection()?;
    let statements = statements(call, "updates", SHAPES)?;
    let ordered = call.is_ordered();
    let (mut matched, mut modified) = (0, 0);
    let (mut upserted, mut errors) = (Vec::new(), Vec::new());
    for (at, statement) in statements.iter().enumerate() {
        let mut done = Done::default();
        let call = &Call {
            refused: errors.len(),
            ..*call
        };
        let outcome = read(call, *statement, &scope).map_err(Failure::from);
        let outcome = outcome.and_then(|statement| run(call, &name, &statement, &mut done));
        matched += done.matched + u64::from(done.upserted.is_some());
        modified += done.modified;
        upserted.extend(done.upserted.map(|id| (at, id)));
        if !goes_on(outcome, (at, ordered), &mut errors)? {
            break;
        }
    }
    call.shared.counters.updates.add(statements.len() as u64);
    call.shared.counters.updated.add(modified);
    call.shared.counters.inserted.add(upserted.len() as u64);
    let mut reply = Builder::new();
    reply.count("n", matched).count("nModified", modified);
    if !upserted.is_empty() {
        reply.open(Kind::Array, "upserted");
        for (at, (index, id)) in upserted.iter().enumerate() {
            reply
                .open(Kind::Document, at.to_string())
                .count("index", *index as u64)
                .value("_id", id.get())
                .close();
        }
        reply.close();
    }
    write_errors(&mut reply, &errors);
    Ok(reply)
}

/// Carries out a statement.
pub(super) fn one(
    call: &Call<'_>,
    name: &Name,
    statement: Document<'_>,
    scope: &Scope,
) -> Outcome<Done> {
    let mut done = Done::default();
    run(call, name, &read(call, statement, scope)?, &mut done)?;
    Ok(done)
}

fn read(call: &Call<'_>, of: Document<'_>, scope: &Scope) -> Result<Statement, Refusal> {
    let flag = |name: &str| of.get(name).is_some_and(Value::is_truthy);
    let filter = of
        .get("q")
        .and_then(Value::as_document)
        .ok_or_else(|| Refusal::parse("an update needs a document as q"))?;
    let mut query = Query::of(Filter::with(filter, scope)?);
    query.hint = hint_of(of)?;
    let sort = of.get("sort").and_then(Value::as_document);
    query.sort = Sort::new(sort.unwrap_or(Document::EMPTY))?;
    if flag("multi") && !query.sort.is_empty() {
        let text = "Cannot specify sort with multi=true";
        return Err(Refusal::parse(text));
    }
    // Constants of the statement, for its pipeline.
    let constants = of.get("c").and_then(Value::as_document);
    let with_constants = constants.map(|constants| scope.clone().with_values(constants));
    let with_constants = with_constants.transpose()?;
    let change = Change::parse(call, of.get("u"), with_constants.as_ref().unwrap_or(scope))?;
    if constants.is_some() && !matches!(change, Change::Pipeline(_)) {
        let text = "Constant values may only be specified for pipeline updates";
        return Err(Refusal::new(Code::ConstantsOfUpdate, text));
    }
    let statement = Statement {
        query,
        filters: array_filters(of.get("arrayFilters"), &change)?,
        change,
        is_upsert: flag("upsert"),
        is_multi: flag("multi"),
    };
    match statement.is_multi && !statement.change.is_partial() {
        true => Err(Refusal::parse(
            "multi update is not supported for replacement-style update",
        )),
        false => Ok(statement),
    }
}

pub(super) fn array_filters(
    value: Option<Value<'_>>,
    change: &Change,
) -> Result<Vec<ArrayFilter>, Refusal> {
    let empty = OwnedValue::array(std::iter::empty::<Value<'_>>());
    let said = value.filter(|value| value.kind != Kind::Null);
    let value = said.unwrap_or(empty.get());
    if said.is_some() && matches!(change, Change::Pipeline(_)) {
        let text = "arrayFilters may not be specified for pipeline-style updates";
        return Err(Refusal::parse(text));
    }
    let wrong = || Refusal::type_mismatch("arrayFilters has to be an array of documents");
    let items = value.as_array().ok_or_else(wrong)?;
    let mut filters: Vec<ArrayFilter> = Vec::new();
    for item in items {
        let filter = ArrayFilter::new(item.value.as_document().ok_or_else(wrong)?)?;
        let name = filter.name();
        if filters.iter().any(|known| known.name() == name) {
            let text =
                format!("Found multiple array filters with the same top-level field name {name}");
            return Err(Refusal::parse(text));
        }
        filters.push(filter);
    }
    let names = change.element_names();
    let is_known = |name: &String| filters.iter().any(|it| it.name() == name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        let text = format!("No array filter found for identifier '{name}'");
        return Err(Refusal::bad_value(text));
    }
    let is_used = |filter: &&ArrayFilter| names.iter().any(|name| name == filter.name());
    if let Some(filter) = filters.iter().find(|it| !is_used(it)) {
        let name = filter.name();
        let text = format!("The array filter for identifier '{name}' was not used in the update");
        return Err(Refusal::parse(text));
    }
    Ok(filters)
}

fn run(call: &Call<'_>, name: &Name, statement: &Statement, done: &mut Done) -> Outcome<()> {
    for _ in 0..UPSERT_TRIES {
        let most = if statement.is_multi { usize::MAX } else { 1 };
        let matching = match statement.query.sort.is_empty() {
            true => matching(call, name, &statement.query, most)?,
            false => first(call, name, &statement.query)?,
        };
        let is_none = matching.keys.is_empty();
        for found in matching.found(name) {
            step()?;
            if let Some((_, after, is_changed)) = change(call, found, statement)? {
                drop(after);
                done.matched += 1;
                // A replacement counts, whatever was there before.
                done.modified += u64::from(is_changed || !statement.change.is_partial());
            }
        }
        if done.matched > 0 || (is_none && !statement.is_upsert) || (statement.is_multi && !is_none)
        {
            return Ok(());
        }
        if !is_none {
            // Somebody else changed it meanwhile.
            continue;
        }
        if let Some(document) = upsert(call, name, statement)? {
            done.upserted = Document(&document).get("_id").map(Value::to_owned);
            return Ok(());
        }
    }
    Err(Refusal::new(
        Code::WriteConflict,
        "other writers changed the document each time",
    )
    .into())
}

/// A document before and after a change, and whether it is another one.
pub(super) type Changed = (Vec<u8>, Vec<u8>, bool);

/// Changes one document, if it still matches.
pub(super) fn change(
    call: &Call<'_>,
    found: Found<'_>,
    statement: &Statement,
) -> Outcome<Option<Changed>> {
    let moment = moment(call, statement, false);
    let mut after = None;
    let store = &call.shared.store;
    let modified = store.modify_with(found, call.manner(), &mut |document| {
        after = None;
        if call.pace == Pace::AtOnce && document.0.len() > AT_ONCE_BYTES_MAX {
            return Err(not_at_once());
        }
        if !statement.query.filter.matches(document)? {
            return Ok(Step::Keep);
        }
        let applied = statement
            .change
            .apply(document, &statement.query.filter, &moment)?;
        let step = match applied.is_changed {
            true => Step::Replace(applied.document.clone()),
            false => Step::Keep,
        };
        after = Some((applied.document, applied.is_changed));
        Ok(step)
    })?;
    let before = modified.before.unwrap_or_default();
    Ok(after.map(|(after, is_changed)| (before, after, is_changed)))
}

fn moment(call: &Call<'_>, statement: &Statement, is_insert: bool) -> Moment {
    Moment {
        now_ms: call.shared.now_ms(),
        is_insert,
        filters: statement.filters.clone(),
    }
}

/// Inserts what the filter and the update make; `None` where somebody else has made a document with the same key meanwhile.
pub(super) fn upsert(
    call: &Call<'_>,
    name: &Name,
    statement: &Statement,
) -> Outcome<Option<Vec<u8>>> {
    let filter = &statement.query.filter;
    let moment = moment(call, statement, true);
    let seed = Update::of_equalities(filter)?
        .apply(Document::EMPTY, filter, &moment)?
        .document;
    let seed = match statement.change.is_partial() {
        true => seed,
        // Of a replacement only the key is taken over.
        false => {
            let mut with_id = Builder::new();
            if let Some(id) = Document(&seed).get("_id") {
                with_id.value("_id", id);
            }
            with_id.finish()
        }
    };
    let made = statement
        .change
        .apply(Document(&seed), filter, &moment)?
        .document;
    let fixed = (Document(&seed).get("_id"), Document(&made).get("_id"));
    if let (Some(wanted), Some(made)) = fixed
        && !drumlin_doc::equal(wanted, made)
    {
        let text = "Performing an update on the path '_id' would modify the immutable field '_id'";
        return Err(Refusal::new(Code::ImmutableField, text).into());
    }
    let document = call.shared.with_id(Document(&made));
    let mut done = insert_into(call, name, &[Document(&document)], true)?;
    match done.errors.pop() {
        None => Ok(Some(document)),
        Some((_, refusal)) => {
            // Where the filter finds the other document, the update is for that one.
            let is_race = refusal.code == Code::DuplicateKey
                && !matching(call, name, &statement.query, 1)?.keys.is_empty();
            if is_race {
                Ok(None)
            } else {
                Err(refusal.into())
            }
        }
    }
}

impl Statement {
    /// For one document, as `findAndModify` has it.
    pub(super) fn of_one(
        query: Query,
        change: Change,
        filters: Vec<ArrayFilter>,
        is_upsert: bool,
    ) -> Self {
        Self {
            query,
            change,
            filters,
            is_upsert,
            is_multi: false,
        }
    }
}
