//! A command that was sent: its arguments.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use drumlin::{Error, ErrorKind};
use drumlin_base::sync::atomic::Ordering;
use drumlin_doc::{
    Code, Document, Element, Filter, Kind, Outcome, Refusal, Scope, Sort, Value, coerced,
};
use drumlin_doc_store::{Failure, Hint, Manner, Name, Pace, Reads, Validation};

use crate::query::Query;
use crate::shared::Shared;
use crate::sorting::Workspace;

use super::concerns::time_limit;
use super::shape::{self, Shape};

/// Arguments that every command takes.
const GENERIC: [&str; 19] = [
    "$db",
    "lsid",
    "txnNumber",
    "autocommit",
    "startTransaction",
    "readConcern",
    "writeConcern",
    "$readPreference",
    "$clusterTime",
    "maxTimeMS",
    "comment",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
    "$audit",
    "$client",
    "$configServerState",
    "allowImplicitCollectionCreation",
    "$oplogQueryData",
];

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) shared: &'a Shared,
    pub(super) connection: u64,
    pub(super) database: &'a str,
    pub(super) name: &'a str,
    pub(super) body: Document<'a>,
    pub(super) sequences: &'a [(&'a str, Vec<Document<'a>>)],
    /// Whether it may wait; where it must not, it ends with `Incomplete`, and has done nothing.
    pub(super) pace: Pace,
    /// Where it says for how long its answer is to be waited for; `None` where nobody waits.
    pub(super) pause: Option<&'a Cell<Option<Duration>>>,
    /// How many of its statements were refused before this one.
    pub(super) refused: usize,
}

impl<'a> Call<'a> {
    /// Catalog and data of one moment, to read.
    pub(super) fn reads(&self) -> Reads<'a> {
        match self.pace {
            Pace::AtOnce => self.shared.store.reads_in_memory(),
            Pace::InTurn => self.shared.store.reads(),
        }
    }

    /// Refuses arguments that are not in `known`, nor in `unserved`, which are refused by name.
    ///
    /// # Errors
    /// `Location40415`, `CommandNotSupported`.
    pub(super) fn accept(&self, known: &[&str], unserved: &[&str]) -> Outcome<()> {
        for element in self.body.iter().skip(1) {
            let name = element.name_str();
            let is_said =
                !matches!(element.value.as_bool(), Some(false)) && element.value.kind != Kind::Null;
            if name == "collation" {
                shape::check_collation(self.name, element.value)?;
            } else if unserved.contains(&name) && is_said {
                return Err(Refusal::not_supported(format!(
                    "the argument '{name}' of {}",
                    self.name
                )));
            }
            if !known.contains(&name) && !unserved.contains(&name) && !GENERIC.contains(&name) {
                return Err(shape::unknown(self.name, name));
            }
        }
        Ok(())
    }

    /// Refuses what all commands refuse.
    ///
    /// # Errors
    /// `IllegalOperation` for transactions and retryable writes.
    pub(super) fn check_generic(&self) -> Outcome<()> {
        if self.body.get("txnNumber").is_some() || self.body.get("startTransaction").is_some() {
            let text = "Transaction numbers are only allowed on a replica set member or mongos";
            return Err(Refusal::new(Code::IllegalOperation, text));
        }
        Ok(())
    }

    /// The collection that the command names as its value.
    ///
    /// # Errors
    /// `InvalidNamespace`, `BadValue`.
    pub(super) fn collection(&self) -> Outcome<Name> {
        let value = self.body.iter().next().map(|first| first.value);
        let name = self.collection_of(value)?;
        let is_wrong = |it: &str| it.starts_with('$') || it.contains('\0');
        match is_wrong(&name.collection) {
            true => Err(Refusal::new(
                Code::InvalidNamespace,
                format!("Invalid collection name: {name}"),
            )),
            false => Ok(name),
        }
    }

    pub(super) fn collection_of(&self, value: Option<Value<'_>>) -> Outcome<Name> {
        let name = value
            .and_then(Value::as_str)
            .filter(|_| value.is_some_and(|value| value.kind == Kind::String));
        let wrong = || {
            Refusal::new(
                Code::InvalidNamespace,
                format!(
                    "collection name has invalid type or is missing in {}",
                    self.name
                ),
            )
        };
        self.named(self.database, name.ok_or_else(wrong)?)
    }

    /// A collection of a database, if it is one for clients.
    ///
    /// # Errors
    /// `InvalidNamespace`, `Unauthorized`.
    pub(super) fn named(&self, database: &str, name: &str) -> Outcome<Name> {
        // Those of the server: users are read and written by commands of their own.
        if name.starts_with("system.") {
            let text = format!("{database}.{name} is not for commands of clients");
            return Err(Refusal::new(Code::Unauthorized, text));
        }
        match name.is_empty() {
            true => Err(Refusal::new(
                Code::InvalidNamespace,
                format!("Invalid namespace specified '{database}.'"),
            )),
            false => Ok(Name::new(database, name)),
        }
    }

    pub(super) fn mismatch(&self, field: &str, value: Value<'_>, wanted: &str) -> Refusal {
        shape::mismatch(self.name, field, value, wanted)
    }

    /// Refuses arguments of other kinds.
    ///
    /// # Errors
    /// As of [`shape::check`].
    pub(super) fn check(&self, shapes: &[(&str, Shape)]) -> Outcome<()> {
        shape::check(self.name, self.body, shapes)
    }

    /// A document, if it is there and not null.
    pub(super) fn document(&self, field: &str) -> Outcome<Option<Document<'a>>> {
        match self.body.get(field) {
            None => Ok(None),
            Some(value) if value.kind == Kind::Null => Ok(None),
            Some(value) if value.kind == Kind::Document => Ok(value.as_document()),
            Some(value) => Err(self.mismatch(field, value, "object")),
        }
    }

    /// A whole number that is not negative.
    pub(super) fn count(&self, field: &str) -> Outcome<Option<u64>> {
        let Some(value) = self
            .body
            .get(field)
            .filter(|value| value.kind != Kind::Null)
        else {
            return Ok(None);
        };
        let whole = coerced(value).ok_or_else(|| self.mismatch(field, value, "long"))?;
        let negative = |_| {
            Refusal::bad_value(format!(
                "BSON field '{field}' value must be >= 0, actual value '{whole}'"
            ))
        };
        u64::try_from(whole).map(Some).map_err(negative)
    }

    /// Whether a write stops at its first error.
    pub(super) fn is_ordered(&self) -> bool {
        let ordered = self.body.get("ordered");
        ordered.is_none_or(|ordered| ordered.is_null() || ordered.is_truthy())
    }

    /// How it writes.
    pub(super) fn manner(&self) -> Manner {
        Manner {
            pace: self.pace,
            validation: match self.flag("bypassDocumentValidation") {
                true => Validation::Bypassed,
                false => Validation::Checked.after(self.refused),
            },
        }
    }

    /// A flag; false where it is not there.
    pub(super) fn flag(&self, field: &str) -> bool {
        self.body.get(field).is_some_and(Value::is_truthy)
    }

    /// The documents of a list, from a sequence beside the body or from the body.
    pub(super) fn documents(&self, field: &str) -> Outcome<Vec<Document<'a>>> {
        if let Some((_, documents)) = self.sequences.iter().find(|(name, _)| *name == field) {
            return Ok(documents.clone());
        }
        let value = shape::required(self.name, self.body, field, Shape::Array)?;
        let items = value.as_array().unwrap_or(Document::EMPTY);
        let documents = items.iter().map(|item| match item.value.kind {
            Kind::Document => Ok(Document(item.value.bytes)),
            _ => Err(self.mismatch(field, item.value, "object")),
        });
        documents.collect()
    }

    /// What expressions of the command know: the time, and what `let` of it names.
    pub(super) fn scope(&self) -> Outcome<Scope> {
        let scope = Scope {
            now_ms: self.shared.now_ms(),
            seed: self.shared.seed(),
            ..Scope::default()
        };
        match self.document("let")? {
            Some(variables) => scope.with_values(variables),
            None => Ok(scope),
        }
    }

    pub(super) fn filter(&self, field: &str) -> Outcome<Filter> {
        let filter = self.document(field)?.unwrap_or(Document::EMPTY);
        Filter::with(filter, &self.scope()?)
    }

    pub(super) fn sort(&self, field: &str) -> Outcome<Sort> {
        let fields = self.document(field)?.unwrap_or(Document::EMPTY);
        for element in fields {
            let wrong = |code| {
                let name = element.name_str();
                let text = format!("$sort key ordering of {name:?} must be 1 or -1");
                Err(Refusal::new(code, text))
            };
            match (element.value.kind, element.value.as_whole()) {
                (Kind::Document, _) | (_, Some(1 | -1)) => {}
                (kind, _) if kind.is_number() => return wrong(Code::SortRange),
                _ => return wrong(Code::SortType),
            }
        }
        Sort::new(fields)
    }

    pub(super) fn hint(&self) -> Outcome<Option<Hint>> {
        hint_of(self.body)
    }

    /// Filter, sort, skip, limit and hint of `find` and `count`.
    pub(super) fn query(&self, filter: &str) -> Outcome<Query> {
        let (sort, natural) = match natural_of(self.document("sort")?)? {
            Some(is_reverse) => (Sort::default(), Some(Hint::Natural { is_reverse })),
            None => (self.sort("sort")?, None),
        };
        Ok(Query {
            filter: self.filter(filter)?,
            sort,
            skip: self.count("skip")?.unwrap_or(0),
            limit: self
                .count("limit")?
                .filter(|limit| *limit > 0)
                .unwrap_or(u64::MAX),
            hint: natural.or(self.hint()?),
        })
    }

    /// What it sorts with: `allowDiskUse` says whether in files, too.
    pub(super) fn workspace(&self) -> Workspace {
        let may_spill = self.body.get("allowDiskUse").is_none_or(Value::is_truthy);
        Workspace::new(&self.shared.scratch, may_spill)
    }

    /// What is asked, while the command works, whether it is to go on.
    ///
    /// # Errors
    /// Of the time limit that it gives.
    pub(super) fn look(&self) -> Outcome<impl Fn() -> Outcome<()> + 'static> {
        // Of a cursor it says for how long new documents are waited for.
        let is_limit = |ms: &u64| *ms > 0 && self.name != "getMore";
        let ms = time_limit(self.name, self.body)?.filter(is_limit);
        let clock = Arc::clone(&self.shared.env.clock);
        let until = ms.map(|ms| clock.monotonic().saturating_add(Duration::from_millis(ms)));
        let is_ending = Arc::clone(&self.shared.is_ending);
        Ok(move || {
            if is_ending.load(Ordering::Relaxed) {
                let text = "interrupted at shutdown";
                return Err(Refusal::new(Code::InterruptedAtShutdown, text));
            }
            if until.is_some_and(|until| clock.monotonic() > until) {
                let text = "operation exceeded time limit";
                return Err(Refusal::new(Code::MaxTimeMsExpired, text));
            }
            Ok(())
        })
    }
}

/// The hint of a command or of one of its statements.
pub(super) fn hint_of(of: Document<'_>) -> Outcome<Option<Hint>> {
    let hint = of.get("hint").filter(|hint| hint.kind != Kind::Null);
    let hint = hint.filter(|hint| hint.as_document().is_none_or(|key| !key.is_empty()));
    hint.map(Hint::of).transpose()
}

/// Whether a sort asks for the order of the collection itself, and whether backwards.
///
/// # Errors
/// `BadValue` where it asks for more than that.
fn natural_of(sort: Option<Document<'_>>) -> Outcome<Option<bool>> {
    let natural = sort.and_then(|sort| Some((sort, sort.get("$natural")?)));
    let Some((sort, way)) = natural else {
        return Ok(None);
    };
    match (sort.iter().count(), way.as_whole()) {
        (1, Some(way @ (1 | -1))) => Ok(Some(way < 0)),
        (1, _) => Err(Refusal::bad_value("$natural has to be 1 or -1")),
        _ => Err(Refusal::bad_value(
            "$natural cannot be in a sort with other fields",
        )),
    }
}

/// What a command refuses that must not wait and would: it is done again in its turn.
pub(super) fn not_at_once() -> Failure {
    Error::new(ErrorKind::Incomplete, "the command would have to wait").into()
}

/// Whether a filter, or what stands for one, is a look-up of one document by its `_id`.
pub(super) fn is_by_id(value: Value<'_>) -> bool {
    let mut fields = Document(value.bytes).iter();
    let is_id = |it: Element<'_>| it.name == b"_id" && is_scalar(it.value.kind);
    value.kind == Kind::Document && fields.next().is_some_and(is_id) && fields.next().is_none()
}

/// Whether a value of `_id` is compared as it is.
fn is_scalar(kind: Kind) -> bool {
    kind.is_number()
        || matches!(
            kind,
            Kind::String | Kind::ObjectId | Kind::Binary | Kind::Date
        )
}

/// Whether an argument says nothing of what a command does: who asks, for how long, and how surely.
pub(super) fn is_of_any(name: &str) -> bool {
    matches!(
        name,
        "$db"
            | "lsid"
            | "$readPreference"
            | "maxTimeMS"
            | "comment"
            | "apiVersion"
            | "apiStrict"
            | "apiDeprecationErrors"
    )
}
