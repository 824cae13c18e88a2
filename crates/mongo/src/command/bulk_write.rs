//! `bulkWrite`: inserts, updates and deletes of several collections, in one command.

use drumlin_doc::{Builder, Code, Document, Kind, Refusal, Scope, Value};
use drumlin_doc_store::{Failure, Name, Outcome};

use crate::cursors::Source;
use crate::wire::limits::WRITES_MAX;

use super::call::Call;
use super::cursor::first_batch;
use super::refusals::refusal_of;
use super::shape::{Shape, check, check_collation, missing, required, unknown};
use super::write_reply::{TEXTS_BYTES_MAX, details_of};
use super::{delete, insert, update};

const INSERT: &[(&str, Shape)] = &[("insert", Shape::Number), ("document", Shape::Document)];
const UPDATE: &[(&str, Shape)] = &[
    ("update", Shape::Number),
    ("filter", Shape::Document),
    ("sort", Shape::Document),
    ("multi", Shape::Flag),
    ("updateMods", Shape::Any),
    ("upsert", Shape::Flag),
    ("arrayFilters", Shape::Array),
    ("hint", Shape::Hint),
    ("constants", Shape::Document),
    ("collation", Shape::Document),
];
const DELETE: &[(&str, Shape)] = &[
    ("delete", Shape::Number),
    ("filter", Shape::Document),
    ("multi", Shape::Flag),
    ("hint", Shape::Hint),
    ("collation", Shape::Document),
];
/// Where the results of operations are kept under, until they are asked for.
const RESULTS: &str = "$cmd.bulkWrite";

/// An operation, as its command has it.
enum Wanted<'a> {
    Insert(Document<'a>),
    /// A statement of `update`.
    Update(Vec<u8>),
    /// A statement of `delete`.
    Delete(Vec<u8>),
}

struct Operation<'a> {
    /// The place of its collection.
    target: usize,
    wanted: Wanted<'a>,
}

struct Target {
    name: Name,
    uuid: Option<Vec<u8>>,
}

/// What was done, and what is told of each operation.
#[derive(Default)]
struct Done {
    errors: u64,
    inserted: u64,
    matched: u64,
    modified: u64,
    upserted: u64,
    deleted: u64,
    results: Vec<Vec<u8>>,
    /// Bytes of the texts and details of errors.
    texts: usize,
    errors_only: bool,
}

/// The databases that the command is about.
pub(super) fn databases(call: &Call<'_>) -> Vec<String> {
    let targets = targets(call).unwrap_or_default();
    targets.into_iter().map(|it| it.name.database).collect()
}

/// See the module.
pub(super) fn bulk_write(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(
        &[
            "ops",
            "nsInfo",
            "ordered",
            "bypassDocumentValidation",
            "let",
            "errorsOnly",
            "cursor",
        ],
        &[],
    )?;
    call.check(&[
        ("ordered", Shape::Flag),
        ("bypassDocumentValidation", Shape::Truth),
        ("let", Shape::Document),
        ("errorsOnly", Shape::Flag),
        ("cursor", Shape::Document),
    ])?;
    if call.database != "admin" {
        let text = "bulkWrite may only be run against the admin database.";
        return Err(Refusal::new(Code::Unauthorized, text).into());
    }
    let operations = operations(call)?;
    let targets = targets(call)?;
    if let Some(at) = operations.iter().position(|it| it.target >= targets.len()) {
        let text = format!("BulkWrite ops entry {at} has an invalid nsInfo index.");
        return Err(Refusal::bad_value(text).into());
    }
    let scope = call.scope()?;
    let ordered = call.is_ordered();
    let mut done = Done {
        errors_only: call.flag("errorsOnly"),
        ..Done::default()
    };
    let mut at = 0;
    while at < operations.len() && (!ordered || done.errors == 0) {
        at = done.go_on(call, (&operations, at), &targets, (&scope, ordered))?;
    }
    done.reply(call)
}

fn operations<'a>(call: &Call<'a>) -> Result<Vec<Operation<'a>>, Refusal> {
    let all = call.documents("ops")?;
    if !(1..=WRITES_MAX).contains(&all.len()) {
        let text = format!(
            "Write batch sizes must be between 1 and {WRITES_MAX}. Got {} operations.",
            all.len()
        );
        return Err(Refusal::new(Code::InvalidLength, text));
    }
    all.into_iter().map(operation).collect()
}

fn operation(of: Document<'_>) -> Result<Operation<'_>, Refusal> {
    let first = of.iter().next().map(|it| it.name_str()).unwrap_or_default();
    let shapes = match first {
        "insert" => INSERT,
        "update" => UPDATE,
        "delete" => DELETE,
        other => return Err(unknown("bulkWrite.ops", other)),
    };
    for element in of {
        let name = element.name_str();
        if !shapes.iter().any(|(known, _)| *known == name) {
            return Err(unknown(first, name));
        }
    }
    check(first, of, shapes)?;
    if let Some(collation) = of.get("collation") {
        check_collation(first, collation)?;
    }
    let target = required(first, of, first, Shape::Number)?.as_whole();
    let target = target.and_then(|at| usize::try_from(at).ok());
    let text = "BulkWrite ops entry has an invalid nsInfo index.";
    let target = target.ok_or_else(|| Refusal::bad_value(text))?;
    let said = |name: &str| of.get(name).filter(|value| value.kind != Kind::Null);
    let is_multi = said("multi").is_some_and(Value::is_truthy);
    let wanted = match first {
        "insert" => {
            let document = required(first, of, "document", Shape::Document)?;
            Wanted::Insert(Document(document.bytes))
        }
        "update" => {
            required(first, of, "filter", Shape::Document)?;
            let mods = of.get("updateMods");
            let mods = mods.ok_or_else(|| missing(first, "updateMods"))?;
            if !matches!(mods.kind, Kind::Document | Kind::Array) {
                let text = "Update argument must be either an object or an array";
                return Err(Refusal::parse(text));
            }
            Wanted::Update(statement(
                of,
                &[
                    ("filter", "q"),
                    ("updateMods", "u"),
                    ("constants", "c"),
                    ("multi", "multi"),
                    ("upsert", "upsert"),
                    ("arrayFilters", "arrayFilters"),
                    ("hint", "hint"),
                    ("sort", "sort"),
                ],
                None,
            ))
        }
        _ => {
            required(first, of, "filter", Shape::Document)?;
            let names = [("filter", "q"), ("hint", "hint")];
            Wanted::Delete(statement(of, &names, Some(i32::from(!is_multi))))
        }
    };
    Ok(Operation { target, wanted })
}

/// The statement of the command for one collection.
fn statement(of: Document<'_>, names: &[(&str, &str)], limit: Option<i32>) -> Vec<u8> {
    let mut out = Builder::new();
    for (here, there) in names {
        if let Some(value) = of.get(here).filter(|value| value.kind != Kind::Null) {
            out.value(there, value);
        }
    }
    if let Some(limit) = limit {
        out.i32("limit", limit);
    }
    out.finish()
}

fn targets(call: &Call<'_>) -> Result<Vec<Target>, Refusal> {
    let context = "bulkWrite.nsInfo";
    let target = |of: Document<'_>| {
        for element in of {
            let name = element.name_str();
            if !matches!(name, "ns" | "collectionUUID" | "encryptionInformation") {
                return Err(unknown(context, name));
            }
        }
        let name = required(context, of, "ns", Shape::Text)?;
        let name = name.as_str().unwrap_or_default();
        let wrong = || {
            let text = format!("Invalid namespace specified '{name}'");
            Refusal::new(Code::InvalidNamespace, text)
        };
        let (database, collection) = name.split_once('.').ok_or_else(wrong)?;
        if database.is_empty() {
            return Err(wrong());
        }
        let uuid = of
            .get("collectionUUID")
            .filter(|it| it.kind == Kind::Binary);
        Ok(Target {
            name: call.named(database, collection)?,
            uuid: uuid.map(|uuid| uuid.bytes.get(5..).unwrap_or_default().to_vec()),
        })
    };
    call.documents("nsInfo")?.into_iter().map(target).collect()
}

impl Target {
    /// # Errors
    /// `CollectionUUIDMismatch` where the collection is not the one that was meant.
    fn check(&self, call: &Call<'_>) -> Result<(), Refusal> {
        let Some(uuid) = &self.uuid else {
            return Ok(());
        };
        let found = call.shared.store.collection(&self.name);
        match found.is_some_and(|it| it.uuid.as_slice() == uuid) {
            true => Ok(()),
            false => Err(Refusal::new(
                Code::CollectionUuidMismatch,
                format!("Collection UUID does not match that of {}", self.name),
            )),
        }
    }
}

impl Done {
    /// Does the operation at that place, an insert with those behind it for the same collection; the place of the next one.
    fn go_on(
        &mut self,
        call: &Call<'_>,
        (operations, at): (&[Operation<'_>], usize),
        targets: &[Target],
        (scope, ordered): (&Scope, bool),
    ) -> Outcome<usize> {
        let rest = operations.get(at..).unwrap_or_default();
        let Some((first, target)) = rest
            .first()
            .and_then(|first| Some((first, targets.get(first.target)?)))
        else {
            return Ok(operations.len());
        };
        if let Err(refusal) = target.check(call) {
            self.refused(at, &refusal);
            return Ok(at + 1);
        }
        let call = &Call {
            refused: usize::try_from(self.errors).unwrap_or(usize::MAX),
            ..*call
        };
        let counters = &call.shared.counters;
        match &first.wanted {
            Wanted::Insert(_) => {
                let documents: Vec<_> = rest
                    .iter()
                    .map_while(|it| match it.wanted {
                        Wanted::Insert(document) if it.target == first.target => Some(document),
                        _ => None,
                    })
                    .collect();
                let with_ids: Vec<_> = documents
                    .iter()
                    .map(|document| call.shared.with_id(*document))
                    .collect();
                let news: Vec<_> = with_ids.iter().map(|it| Document(it)).collect();
                counters.inserts.add(news.len() as u64);
                let outcome = insert::insert_into(call, &target.name, &news, ordered);
                let Some(made) = self.or_refused(at, outcome)? else {
                    return Ok(at + 1);
                };
                counters.inserted.add(made.count);
                self.inserted += made.count;
                let mut errors = made.errors.iter().peekable();
                for place in 0..news.len() {
                    match errors.next_if(|(wrong, _)| *wrong == place) {
                        Some((_, refusal)) => self.refused(at + place, refusal),
                        None => self.told(at + place, 1, None, None),
                    }
                    if ordered && self.errors > 0 {
                        break;
                    }
                }
                return Ok(at + news.len());
            }
            Wanted::Update(statement) => {
                counters.updates.add(1);
                let outcome = update::one(call, &target.name, Document(statement), scope);
                if let Some(done) = self.or_refused(at, outcome)? {
                    let n = done.matched + u64::from(done.upserted.is_some());
                    counters.updated.add(done.modified);
                    counters.inserted.add(u64::from(done.upserted.is_some()));
                    self.matched += done.matched;
                    self.modified += done.modified;
                    self.upserted += u64::from(done.upserted.is_some());
                    let id = done.upserted.as_ref().map(|id| id.get());
                    self.told(at, n, Some(done.modified), id);
                }
            }
            Wanted::Delete(statement) => {
                counters.deletes.add(1);
                let mut count = 0;
                let statement = (Document(statement), scope);
                let outcome = delete::one_statement(call, &target.name, statement, &mut count);
                counters.deleted.add(count);
                self.deleted += count;
                if self.or_refused(at, outcome)?.is_some() {
                    self.told(at, count, None, None);
                }
            }
        }
        Ok(at + 1)
    }

    fn or_refused<T>(&mut self, at: usize, outcome: Outcome<T>) -> Outcome<Option<T>> {
        match outcome {
            Ok(done) => Ok(Some(done)),
            Err(Failure::Engine(error)) => Err(error.into()),
            Err(Failure::Refused(refusal)) if refusal.code.is_end() => Err(refusal.into()),
            Err(failure) => {
                self.refused(at, &refusal_of(failure));
                Ok(None)
            }
        }
    }

    fn told(&mut self, at: usize, n: u64, modified: Option<u64>, upserted: Option<Value<'_>>) {
        if self.errors_only {
            return;
        }
        let mut out = Builder::new();
        out.f64("ok", 1.0).count("idx", at as u64).count("n", n);
        if let Some(modified) = modified {
            out.count("nModified", modified);
        }
        if let Some(id) = upserted {
            out.open(Kind::Document, "upserted")
                .value("_id", id)
                .close();
        }
        self.results.push(out.finish());
    }

    fn refused(&mut self, at: usize, refusal: &Refusal) {
        self.errors += 1;
        let text = match self.texts > TEXTS_BYTES_MAX {
            false => refusal.message.as_str(),
            true => "",
        };
        let details = details_of(refusal, self.texts);
        self.texts += text.len() + details.0.len();
        let mut out = Builder::new();
        out.f64("ok", 0.0)
            .count("idx", at as u64)
            .i32("code", refusal.code.number())
            .str("errmsg", text);
        for element in details {
            out.value(element.name, element.value);
        }
        out.i32("n", 0);
        self.results.push(out.finish());
    }

    fn reply(self, call: &Call<'_>) -> Outcome<Builder> {
        let batch = call
            .document("cursor")?
            .and_then(|cursor| cursor.get("batchSize")?.as_whole())
            .and_then(|batch| u64::try_from(batch).ok());
        let name = Name::new(call.database, RESULTS);
        let source = Source::Ready(self.results.into());
        let reads = call.shared.store.reads();
        let mut reply = first_batch(call, &reads, name, source, batch.or(Some(u64::MAX)), false)?;
        reply
            .count("nErrors", self.errors)
            .count("nInserted", self.inserted)
            .count("nMatched", self.matched)
            .count("nModified", self.modified)
            .count("nUpserted", self.upserted)
            .count("nDeleted", self.deleted);
        Ok(reply)
    }
}
