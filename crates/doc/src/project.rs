//! Projections: which fields of a document are answered, and which are computed. `$addFields` is one that keeps all others.

use indexmap::IndexMap;
use indexmap::map::Entry;

use crate::build::Builder;
use crate::code::Code;
use crate::expression::{Expression, Scope};
use crate::filter::Filter;
use crate::matching::Failed;
use crate::number::coerced;
use crate::path::Path;
use crate::raw::{Document, Kind, Value};
use crate::refusal::{Outcome, Refusal};
use crate::update::{matched_place, position};
use crate::validate::DEPTH_MAX;

/// What becomes of a field.
#[derive(Clone, Debug, PartialEq)]
enum Rule {
    Keep,
    Drop,
    Computed(Expression),
    /// Of an array: elements from a place on, from the end where it is negative, and how many.
    Slice(Option<i64>, i64),
    /// Of an array: the first element for which it holds.
    FirstMatch(crate::filter::Test),
    /// Of an array: the element that made the query match.
    Positional(Path),
    Nested(Names),
}

/// Fields by their names.
#[derive(Clone, Debug, Default, PartialEq)]
struct Names {
    rules: IndexMap<Box<[u8]>, Rule>,
    /// Whether anything below is computed, so that documents are made where there are none.
    computes: bool,
}

/// What becomes of fields without a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    /// They go.
    Go,
    /// They stay.
    Stay,
    /// They stay, and computed fields keep the places of those that they replace.
    StayInPlace,
}

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    names: Names,
    others: Others,
}

/// Where a projection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectionOf {
    /// `find`, with `$slice`, `$elemMatch` and `$`.
    Find,
    /// A stage, where `$slice` is an expression.
    Stage,
}

impl Projection {
    /// The projection that `document` describes: fields to include and computed ones, or fields to exclude; `_id` may be the other.
    ///
    /// # Errors
    /// `Location31253` and `Location31254` for both at once, `Location31250` for names that begin others; of expressions.
    pub fn new(document: Document<'_>, of: ProjectionOf, scope: &Scope) -> Outcome<Self> {
        let mut parser = Parser {
            of,
            scope,
            mode: None,
            id: None,
            names: Names::default(),
            special: None,
        };
        parser.fields(document, "", 0)?;
        parser.finish()
    }

    /// The projection of `$addFields`: all values are computed.
    ///
    /// # Errors
    /// `Location40176` for names that begin others; of expressions.
    pub fn add_fields(document: Document<'_>, scope: &Scope) -> Outcome<Self> {
        let mut names = Names::default();
        for element in document {
            add_field(&mut names, element.name_str(), element.value, scope, 0)?;
        }
        Ok(Self {
            names,
            others: Others::StayInPlace,
        })
    }

    /// Whether it has the element that made the query match.
    pub fn is_positional(&self) -> bool {
        self.names.is_positional()
    }

    /// Whether it leaves documents as they are.
    pub fn is_all(&self) -> bool {
        self.names.rules.is_empty() && self.others != Others::Go
    }

    /// What is left of `document`, which `filter` found.
    ///
    /// # Errors
    /// Of expressions; `Location51246` for `$` where the filter names no element.
    pub fn apply(&self, document: Document<'_>, filter: Option<&Filter>) -> Outcome<Vec<u8>> {
        let context = Context {
            root: document,
            filter,
            others: self.others,
        };
        let mut out = Builder::with_room(document.0.len());
        context.fields(&self.names, Some(document), &mut out)?;
        let made = out.finish();
        check_size(made.len()).map(|()| made)
    }
}

fn check_size(bytes: usize) -> Outcome<()> {
    match bytes > crate::DOCUMENT_BYTES_MAX + (1 << 14) {
        true => Err(Refusal::new(
            Code::BsonObjectTooLarge,
            "a projection makes a document that is too large",
        )),
        false => Ok(()),
    }
}

struct Context<'a> {
    root: Document<'a>,
    filter: Option<&'a Filter>,
    others: Others,
}

impl Context<'_> {
    /// Writes the fields of a document. Recurses as deep as the projection names fields, and arrays lie in each other.
    fn fields(&self, names: &Names, of: Option<Document<'_>>, out: &mut Builder) -> Outcome<()> {
        let in_place = self.others == Others::StayInPlace;
        let mut done = vec![false; names.rules.len()];
        for element in of.into_iter().flatten() {
            let Some((at, _, rule)) = names.rules.get_full(element.name) else {
                if self.others != Others::Go {
                    out.value(element.name, element.value);
                }
                continue;
            };
            let Some(done) = done.get_mut(at) else {
                continue;
            };
            match rule {
                Rule::Computed(_) if !in_place => {}
                // With fields that stay it comes behind these.
                Rule::FirstMatch(_) if self.others == Others::Go => {}
                _ if *done => {}
                rule => {
                    *done = true;
                    self.field(rule, element.name, Some(element.value), out)?;
                }
            }
        }
        for ((name, rule), _) in names.rules.iter().zip(&done).filter(|(_, done)| !**done) {
            match rule {
                Rule::Computed(_) => self.field(rule, name, None, out)?,
                Rule::FirstMatch(_) => {
                    let mut fields = of.into_iter().flatten();
                    let value = fields.find(|it| *it.name == **name).map(|it| it.value);
                    self.field(rule, name, value, out)?;
                }
                Rule::Nested(inner) if inner.computes => self.field(rule, name, None, out)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn field(
        &self,
        rule: &Rule,
        name: &[u8],
        value: Option<Value<'_>>,
        out: &mut Builder,
    ) -> Outcome<()> {
        match (rule, value) {
            (Rule::Keep, Some(value)) => drop(out.value(name, value)),
            (Rule::Computed(expression), _) => {
                if let Some(value) = expression.eval(self.root)? {
                    out.value(name, value.get());
                    check_size(out.len())?;
                }
            }
            (Rule::Nested(inner), value) => self.below(inner, name, value, out)?,
            (Rule::Slice(skip, count), Some(value)) => match value.as_array() {
                Some(array) => slice(array, *skip, *count, name, out),
                None => drop(out.value(name, value)),
            },
            (Rule::FirstMatch(test), Some(value)) => {
                let failed = Failed::default();
                let mut elements = value.as_array().into_iter().flatten();
                let found = elements.find(|element| test.holds_for(element.value, &failed));
                if let Some(found) = failed.or(found)? {
                    out.open(Kind::Array, name).value("0", found.value).close();
                }
            }
            (Rule::Positional(path), Some(value)) => {
                let Some(array) = value.as_array() else {
                    out.value(name, value);
                    return Ok(());
                };
                let failed = Failed::default();
                let at = self.filter.and_then(|it| {
                    position(it, self.root, path, &failed)
                        .or_else(|| matched_place(it, self.root, &failed))
                });
                let wrong = |code, text: &str| {
                    let text = format!(
                        "Executor error during find command :: caused by :: positional operator '.$' {text}"
                    );
                    Refusal::new(code, text)
                };
                let none = "couldn't find a matching element in the array";
                let at = failed.or(at)?;
                let at = at.ok_or_else(|| wrong(Code::PositionalNone, none))?;
                let beyond = "element mismatch";
                let found = array.iter().nth(at);
                let found = found.ok_or_else(|| wrong(Code::PositionalBeyond, beyond))?;
                out.open(Kind::Array, name).value("0", found.value).close();
            }
            (Rule::Drop, _) | (_, None) => {}
        }
        Ok(())
    }

    fn below(
        &self,
        names: &Names,
        name: &[u8],
        value: Option<Value<'_>>,
        out: &mut Builder,
    ) -> Outcome<()> {
        match value {
            Some(value) if value.kind == Kind::Document => {
                out.open(Kind::Document, name);
                self.fields(names, Some(Document(value.bytes)), out)?;
                out.close();
            }
            Some(value) if value.kind == Kind::Array => {
                out.open(Kind::Array, name);
                let mut place = 0usize;
                for element in Document(value.bytes) {
                    let is_nested = matches!(element.value.kind, Kind::Document | Kind::Array);
                    if is_nested || names.computes || self.others != Others::Go {
                        let name = place.to_string();
                        self.below(names, name.as_bytes(), Some(element.value), out)?;
                        place += 1;
                    }
                }
                out.close();
            }
            _ if names.computes => {
                out.open(Kind::Document, name);
                self.fields(names, None, out)?;
                out.close();
            }
            Some(value) if self.others != Others::Go => drop(out.value(name, value)),
            _ => {}
        }
        Ok(())
    }
}

fn slice(array: Document<'_>, skip: Option<i64>, count: i64, name: &[u8], out: &mut Builder) {
    let length = array.iter().count();
    let size = |number: i64| usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    let back = |number: i64| length.saturating_sub(size(number));
    let (from, most) = match skip {
        None if count < 0 => (back(count), usize::MAX),
        None => (0, size(count)),
        Some(skip) if skip < 0 => (back(skip), size(count)),
        Some(skip) => (size(skip), size(count)),
    };
    out.open(Kind::Array, name);
    for (at, element) in array.iter().skip(from).take(most).enumerate() {
        out.value(at.to_string(), element.value);
    }
    out.close();
}

impl Names {
    fn is_positional(&self) -> bool {
        self.rules.values().any(|rule| match rule {
            Rule::Positional(_) => true,
            Rule::Nested(inner) => inner.is_positional(),
            _ => false,
        })
    }

    /// Whether `$` stands for an element of the array at that path.
    fn is_positional_at(&self, path: &str) -> bool {
        let (first, rest) = path
            .split_once('.')
            .map_or((path, None), |(a, b)| (a, Some(b)));
        match (self.rules.get(first.as_bytes()), rest) {
            (Some(Rule::Positional(_)), None) => true,
            (Some(Rule::Nested(inner)), Some(rest)) => inner.is_positional_at(rest),
            _ => false,
        }
    }

    /// Puts a rule at a path.
    ///
    /// # Errors
    /// `code` where the path is there, begins another one, or goes on behind one.
    fn put(&mut self, path: &str, rule: Rule, code: Code) -> Outcome<()> {
        let collides = || Refusal::new(code, format!("Path collision at {path}"));
        let computes = matches!(rule, Rule::Computed(_));
        let mut names = self;
        let mut parts = path.split('.').peekable();
        let mut rule = Some(rule);
        while let Some(part) = parts.next() {
            names.computes |= computes;
            let is_end = parts.peek().is_none();
            let below = match names.rules.entry(part.as_bytes().into()) {
                Entry::Occupied(_) if is_end => return Err(collides()),
                Entry::Occupied(there) => there.into_mut(),
                Entry::Vacant(free) => free.insert(match is_end {
                    true => rule.take().ok_or_else(collides)?,
                    false => Rule::Nested(Self::default()),
                }),
            };
            if is_end {
                break;
            }
            match below {
                Rule::Nested(inner) => names = inner,
                _ if code == Code::ProjectCollision => {
                    let text = format!("Path collision at {path} remaining portion {part}");
                    return Err(Refusal::new(Code::CollisionBelow, text));
                }
                _ => return Err(collides()),
            }
        }
        Ok(())
    }
}

/// Refuses paths that are none.
fn check_path(path: &str) -> Outcome<()> {
    for part in path.split('.') {
        if part.is_empty() {
            let code = match path {
                "" => Code::ProjectEmpty,
                _ if path.ends_with('.') => Code::PathDot,
                _ => Code::PathEmpty,
            };
            let text = format!("FieldPath field names may not be empty strings, as in '{path}'.");
            return Err(Refusal::new(code, text));
        }
        if part.starts_with('$') {
            let text = format!("FieldPath field names may not start with '$', as in '{path}'.");
            return Err(Refusal::new(Code::PathDollar, text));
        }
    }
    Ok(())
}

fn operator_of(value: Value<'_>) -> Option<&str> {
    let inner = (value.kind == Kind::Document).then_some(Document(value.bytes))?;
    let first = inner.iter().next()?;
    Some(first.name_str()).filter(|name| name.starts_with('$'))
}

fn add_field(
    names: &mut Names,
    path: &str,
    value: Value<'_>,
    scope: &Scope,
    depth: usize,
) -> Outcome<()> {
    check_path(path)?;
    let inner = (value.kind == Kind::Document).then_some(Document(value.bytes));
    match inner.filter(|inner| !inner.is_empty() && operator_of(value).is_none()) {
        Some(inner) if depth < DEPTH_MAX => inner.iter().try_for_each(|element| {
            let path = format!("{path}.{}", element.name_str());
            add_field(names, &path, element.value, scope, depth + 1)
        }),
        _ => {
            let rule = Rule::Computed(Expression::parse(value, scope)?);
            names.put(path, rule, Code::AddFieldsCollision)
        }
    }
}

struct Parser<'s> {
    of: ProjectionOf,
    scope: &'s Scope,
    /// Whether named fields stay.
    mode: Option<bool>,
    id: Option<bool>,
    names: Names,
    /// The `$` or the `$elemMatch` that was met.
    special: Option<Special>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    Positional,
    FirstMatch,
}

impl Parser<'_> {
    fn fields(&mut self, document: Document<'_>, before: &str, depth: usize) -> Outcome<()> {
        for element in document {
            let path = match before {
                "" => element.name_str().to_owned(),
                _ => format!("{before}.{}", element.name_str()),
            };
            self.field(&path, element.value, depth)?;
        }
        Ok(())
    }

    fn put(&mut self, path: &str, rule: Rule) -> Outcome<()> {
        self.names.put(path, rule, Code::ProjectCollision)
    }

    fn includes(&mut self, path: &str, stays: bool) -> Outcome<()> {
        if self.mode.is_some_and(|mode| mode != stays) {
            let (code, now, before) = match stays {
                true => (Code::ProjectInclusion, "inclusion", "exclusion"),
                false => (Code::ProjectExclusion, "exclusion", "inclusion"),
            };
            let text = format!("Cannot do {now} on field {path} in {before} projection");
            return Err(Refusal::new(code, text));
        }
        self.mode = Some(stays);
        Ok(())
    }

    fn field(&mut self, path: &str, value: Value<'_>, depth: usize) -> Outcome<()> {
        if let Some(array) = path.strip_suffix(".$") {
            return self.positional(path, array, value);
        }
        if path.contains(".$.") {
            let text = format!(
                "As of 4.4, it's illegal to specify positional operator in the middle of a path: {path}"
            );
            return Err(Refusal::new(Code::PositionalMiddle, text));
        }
        check_path(path)?;
        if value.kind.is_number() || value.kind == Kind::Bool {
            let stays = crate::number::Number::of(value).map_or(value.is_truthy(), |number| {
                number.compare(crate::number::Number::Int(0)).is_ne()
            });
            if path == "_id" {
                self.id = Some(stays);
            } else {
                self.includes(path, stays)?;
            }
            return self.put(path, if stays { Rule::Keep } else { Rule::Drop });
        }
        let inner = (value.kind == Kind::Document).then_some(Document(value.bytes));
        let is_find = self.of == ProjectionOf::Find;
        let argument = || {
            inner
                .and_then(|inner| inner.iter().next())
                .map(|it| it.value)
        };
        match operator_of(value) {
            Some("$slice" | "$elemMatch")
                if is_find && inner.is_some_and(|it| it.iter().count() > 1) =>
            {
                let text = format!("FieldPath field names may not start with '$', as in '{path}'.");
                return Err(Refusal::new(Code::PathDollar, text));
            }
            Some("$slice") if is_find && !self.names.is_positional_at(path) => {
                if let Some(rule) = find_slice(argument().unwrap_or(Value::NULL))? {
                    return self.put(path, rule);
                }
            }
            Some("$elemMatch") if is_find => {
                if path.contains('.') {
                    let text = "Cannot use $elemMatch projection on a nested field.";
                    return Err(Refusal::new(Code::ProjectElemMatch, text));
                }
                if self.special == Some(Special::Positional) {
                    let text = "Cannot specify both positional operator and $elemMatch.";
                    return Err(Refusal::new(Code::ElemMatchAfterPositional, text));
                }
                self.special = Some(Special::FirstMatch);
                let condition = argument().unwrap_or(Value::NULL);
                if condition.kind != Kind::Document {
                    let text = "elemMatch: Invalid argument, object required, but got another";
                    return Err(Refusal::new(Code::ElemMatchObject, text));
                }
                let test = crate::filter::element_match(condition, 0)?.refuse_near()?;
                return self.put(path, Rule::FirstMatch(test));
            }
            Some("$meta") => return Err(Refusal::not_supported("$meta")),
            None if inner.is_some_and(|inner| !inner.is_empty()) && depth < DEPTH_MAX => {
                return self.fields(inner.unwrap_or(Document::EMPTY), path, depth + 1);
            }
            None if inner.is_some() => {
                let text =
                    "An empty sub-projection is not a valid value. Found empty object at path";
                return Err(Refusal::new(Code::ProjectNothing, text));
            }
            _ => {}
        }
        if path != "_id" {
            self.includes(path, true)?;
        }
        let expression = Expression::parse(value, self.scope);
        let expression = expression.map_err(|refusal| match operator_of(value) {
            Some(name)
                if refusal.code == Code::InvalidPipelineOperator
                    && refusal.message.contains(&format!("'{name}'")) =>
            {
                Refusal::new(
                    Code::UnknownProjection,
                    format!("Unknown expression {name}"),
                )
            }
            _ => refusal,
        })?;
        self.put(path, Rule::Computed(expression))
    }

    /// The element that made the query match, of the array at a path.
    fn positional(&mut self, path: &str, array: &str, value: Value<'_>) -> Outcome<()> {
        let wrong = |code, text: &str| Err(Refusal::new(code, text));
        if self.of == ProjectionOf::Stage {
            let text = "Cannot use positional projection in an aggregation projection";
            return wrong(Code::PositionalOfStage, text);
        }
        check_path(array)?;
        match value.kind {
            kind if kind.is_number() || kind == Kind::Bool => {}
            Kind::Document => {
                let text = "positional projection cannot be used with an object";
                return wrong(Code::PositionalObject, text);
            }
            _ => {
                let text = "positional projection cannot be used with a literal";
                return wrong(Code::PositionalValue, text);
            }
        }
        match self.special {
            Some(Special::Positional) => {
                let text = "Cannot specify more than one positional projection per query.";
                return wrong(Code::PositionalTwice, text);
            }
            Some(Special::FirstMatch) => {
                let text = "Cannot specify both $elemMatch and a positional projection.";
                return wrong(Code::PositionalAfterElemMatch, text);
            }
            None => self.special = Some(Special::Positional),
        }
        self.includes(path, true)?;
        self.put(array, Rule::Positional(Path::new(array)))
    }

    fn finish(mut self) -> Outcome<Projection> {
        let id = self.names.rules.get(&b"_id"[..]);
        let computes_id = id.is_some_and(|rule| !matches!(rule, Rule::Keep | Rule::Drop));
        let has_match = self.special == Some(Special::FirstMatch);
        let stays = self
            .mode
            .unwrap_or(self.id == Some(true) || computes_id || has_match);
        // `_id` stays, and is first, where nothing is said of it.
        if stays && id.is_none() {
            self.names
                .rules
                .shift_insert(0, (*b"_id").into(), Rule::Keep);
        }
        Ok(Projection {
            names: self.names,
            others: if stays { Others::Go } else { Others::Stay },
        })
    }
}

/// The rule of `$slice`; none where it is the expression of that name.
fn find_slice(value: Value<'_>) -> Outcome<Option<Rule>> {
    let wrong = |text: &str| Refusal::new(Code::ArityRange, text);
    if let Some(count) = coerced(value) {
        return Ok(Some(Rule::Slice(None, count)));
    }
    let Some(items) = value.as_array() else {
        return Err(wrong(
            "Invalid $slice syntax. The given syntax did not match the find() syntax",
        ));
    };
    let numbers: Vec<_> = items.iter().map(|item| coerced(item.value)).collect();
    match numbers.as_slice() {
        [Some(_), Some(..=0)] => Err(Refusal::new(
            Code::SliceLimit,
            "$slice limit must be positive",
        )),
        [Some(skip), Some(count)] => Ok(Some(Rule::Slice(Some(*skip), *count))),
        _ => Ok(None),
    }
}
