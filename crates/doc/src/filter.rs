//! Filters: the tree, and its making from a document. `matching` runs it.

use crate::decimal::Decimal;
use crate::number::Number;
use crate::path::Path;
use crate::raw::{Document, Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};
use crate::show::show;
use crate::validate::DEPTH_MAX;

/// A condition on a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All of these; none of them is always true.
    And(Vec<Filter>),
    /// At least one of these.
    Or(Vec<Filter>),
    /// None of these.
    Nor(Vec<Filter>),
    /// A condition on what the document has at a path.
    Field(Path, Test),
}

/// A condition on the values at a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Some value, or element of an array, is so.
    Any(Predicate),
    /// The opposite of a test.
    Not(Box<Test>),
    /// All of these.
    All(Vec<Test>),
    /// There is a value.
    Exists,
    /// It is an array of that many elements.
    Size(i64),
    /// It is an array, of which an element is a document that matches.
    ElementDocument(Box<Filter>),
    /// It is an array, of which an element passes the test.
    Element(Box<Test>),
}

/// A condition on one value.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// Equal; null also where there is none.
    Equal(OwnedValue),
    /// Less, of the same class.
    Less(OwnedValue),
    /// Less or equal.
    LessOrEqual(OwnedValue),
    /// Greater.
    Greater(OwnedValue),
    /// Greater or equal.
    GreaterOrEqual(OwnedValue),
    /// Equal to one of these, which are sorted.
    In(Vec<OwnedValue>),
    /// Of one of these types.
    Type(Vec<Kind>),
    /// Divided by the first, it leaves the second.
    Mod(i64, i64),
}

impl Filter {
    /// The filter that `document` describes.
    ///
    /// # Errors
    /// `BadValue` for what is malformed, and for an operator that is not served, by its name.
    pub fn new(document: Document<'_>) -> Outcome<Self> {
        filter(document, 0)
    }

    /// A condition on the elements of an array, as `$pull` has it: a filter for documents, or operators for the element itself.
    ///
    /// # Errors
    /// As [`Filter::new`].
    pub(crate) fn of_element(condition: Value<'_>) -> Outcome<Test> {
        match condition
            .as_document()
            .filter(|_| condition.kind == Kind::Document)
        {
            Some(document) if !is_operators(document) => {
                Ok(Test::ElementDocument(Box::new(filter(document, 0)?)))
            }
            Some(document) => Ok(Test::Element(Box::new(tests(document, 0)?))),
            None => Ok(Test::Element(Box::new(equals(condition)?))),
        }
    }

    /// The fields that the filter says are equal to a value, as an upsert takes them over.
    pub fn equalities(&self) -> Vec<(&Path, &OwnedValue)> {
        match self {
            Self::And(parts) => parts.iter().flat_map(Self::equalities).collect(),
            Self::Or(parts) if parts.len() == 1 => {
                parts.iter().flat_map(Self::equalities).collect()
            }
            Self::Field(path, test) => test
                .equality()
                .map(|value| (path, value))
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }
}

impl Test {
    fn equality(&self) -> Option<&OwnedValue> {
        match self {
            Self::Any(Predicate::Equal(value)) => Some(value),
            Self::Any(Predicate::In(values)) if values.len() == 1 => values.first(),
            Self::All(tests) => tests.iter().find_map(Self::equality),
            _ => None,
        }
    }
}

fn unknown(name: &str) -> Refusal {
    Refusal::bad_value(format!("unknown operator: {name}"))
}

fn too_deep(depth: usize) -> Outcome<()> {
    match depth > DEPTH_MAX {
        true => Err(Refusal::bad_value("the filter is nested too deep")),
        false => Ok(()),
    }
}

fn filter(document: Document<'_>, depth: usize) -> Outcome<Filter> {
    too_deep(depth)?;
    let mut parts = Vec::new();
    for element in document {
        let name = element.name_str();
        let list = |what: fn(Vec<Filter>) -> Filter| {
            let wrong = || {
                Refusal::bad_value(format!(
                    "{name} argument must be a non-empty array of documents"
                ))
            };
            let items = element.value.as_array().ok_or_else(wrong)?;
            let filters = items.iter().map(|item| match item.value.kind {
                Kind::Document => filter(Document(item.value.bytes), depth + 1),
                _ => Err(wrong()),
            });
            let filters: Vec<_> = filters.collect::<Outcome<_>>()?;
            if filters.is_empty() {
                return Err(wrong());
            }
            Ok(what(filters))
        };
        match name {
            "$and" => parts.push(list(Filter::And)?),
            "$or" => parts.push(list(Filter::Or)?),
            "$nor" => parts.push(list(Filter::Nor)?),
            "$comment" => {}
            _ if name.starts_with('$') => {
                return Err(Refusal::bad_value(format!(
                    "unknown top level operator: {name}. It is not supported by this server"
                )));
            }
            _ => parts.push(Filter::Field(Path::new(name), field(element.value, depth)?)),
        }
    }
    Ok(match parts.len() {
        1 => parts.swap_remove(0),
        _ => Filter::And(parts),
    })
}

/// Whether a document is operators and no value.
fn is_operators(document: Document<'_>) -> bool {
    let first = document.iter().next();
    first.is_some_and(|element| {
        element.name.first() == Some(&b'$') && !matches!(element.name, b"$ref" | b"$id" | b"$db")
    })
}

/// The condition that a filter has for one field.
pub(crate) fn field(value: Value<'_>, depth: usize) -> Outcome<Test> {
    match value.kind {
        Kind::Document if is_operators(Document(value.bytes)) => {
            tests(Document(value.bytes), depth + 1)
        }
        _ => equals(value),
    }
}

fn equals(value: Value<'_>) -> Outcome<Test> {
    match value.kind {
        Kind::Regex => Err(Refusal::bad_value(
            "regular expressions ($regex) are not supported by this server",
        )),
        Kind::Undefined => Err(Refusal::bad_value("cannot compare to undefined")),
        _ => Ok(Test::Any(Predicate::Equal(value.to_owned()))),
    }
}

/// All operators of one field.
fn tests(document: Document<'_>, depth: usize) -> Outcome<Test> {
    too_deep(depth)?;
    let mut tests = Vec::new();
    for element in document {
        tests.push(operator(element.name_str(), element.value, depth)?);
    }
    Ok(match tests.len() {
        1 => tests.swap_remove(0),
        _ => Test::All(tests),
    })
}

fn operator(name: &str, value: Value<'_>, depth: usize) -> Outcome<Test> {
    let not = |test: Test| Test::Not(Box::new(test));
    let plain = |make: fn(OwnedValue) -> Predicate| match equals(value)? {
        Test::Any(Predicate::Equal(value)) => Ok(Test::Any(make(value))),
        other => Ok(other),
    };
    match name {
        "$eq" => equals(value),
        "$ne" => equals(value).map(not),
        "$lt" => plain(Predicate::Less),
        "$lte" => plain(Predicate::LessOrEqual),
        "$gt" => plain(Predicate::Greater),
        "$gte" => plain(Predicate::GreaterOrEqual),
        "$in" => one_of(name, value),
        "$nin" => one_of(name, value).map(not),
        "$exists" => Ok(match value.is_truthy() {
            true => Test::Exists,
            false => not(Test::Exists),
        }),
        "$type" => types(value).map(|kinds| Test::Any(Predicate::Type(kinds))),
        "$not" => match value.as_document().filter(|inner| is_operators(*inner)) {
            Some(inner) => tests(inner, depth + 1).map(not),
            None => Err(Refusal::bad_value("$not needs a document of operators")),
        },
        "$all" => all(value, depth),
        "$size" => {
            let wrong = || {
                Refusal::bad_value(format!(
                    "Failed to parse $size. Expected a number that is not negative in: $size: {}",
                    show(value)
                ))
            };
            value
                .as_whole()
                .filter(|size| *size >= 0)
                .map(Test::Size)
                .ok_or_else(wrong)
        }
        "$elemMatch" => element_match(value, depth),
        "$mod" => modulus(value),
        _ => Err(unknown(name)),
    }
}

fn one_of(name: &str, value: Value<'_>) -> Outcome<Test> {
    let wrong = || Refusal::bad_value(format!("{name} needs an array"));
    let items = value.as_array().ok_or_else(wrong)?;
    let mut values = Vec::new();
    for item in items {
        let nested = item
            .value
            .as_document()
            .filter(|_| item.value.kind == Kind::Document);
        if nested.is_some_and(is_operators) {
            return Err(Refusal::bad_value(format!("cannot nest $ under {name}")));
        }
        if let Test::Any(Predicate::Equal(value)) = equals(item.value)? {
            values.push(value);
        }
    }
    values.sort_by(|a, b| crate::compare::compare(a.get(), b.get()));
    values.dedup_by(|a, b| crate::compare::equal(a.get(), b.get()));
    Ok(Test::Any(Predicate::In(values)))
}

fn element_match(value: Value<'_>, depth: usize) -> Outcome<Test> {
    let wrong = || Refusal::bad_value("$elemMatch needs an Object");
    let inner = value
        .as_document()
        .filter(|_| value.kind == Kind::Document)
        .ok_or_else(wrong)?;
    let first = inner.iter().next();
    let is_logical =
        first.is_some_and(|element| matches!(element.name, b"$and" | b"$or" | b"$nor"));
    Ok(match is_operators(inner) && !is_logical {
        true => Test::Element(Box::new(tests(inner, depth + 1)?)),
        false => Test::ElementDocument(Box::new(filter(inner, depth + 1)?)),
    })
}

fn all(value: Value<'_>, depth: usize) -> Outcome<Test> {
    let items = value
        .as_array()
        .ok_or_else(|| Refusal::bad_value("$all needs an array"))?;
    let mut tests = Vec::new();
    for item in items {
        let inner = item
            .value
            .as_document()
            .filter(|inner| is_operators(*inner));
        tests.push(match inner {
            Some(inner) => match inner.get("$elemMatch") {
                Some(condition) => element_match(condition, depth + 1)?,
                None => return Err(Refusal::bad_value("no $ expressions in $all")),
            },
            None => equals(item.value)?,
        });
    }
    // Nothing has all of nothing.
    Ok(match tests.is_empty() {
        true => Test::Any(Predicate::In(Vec::new())),
        false => Test::All(tests),
    })
}

fn types(value: Value<'_>) -> Outcome<Vec<Kind>> {
    let items: Vec<Value<'_>> = match value.as_array() {
        Some(items) => items.iter().map(|item| item.value).collect(),
        None => vec![value],
    };
    let mut kinds = Vec::new();
    for item in items {
        let wrong =
            || Refusal::bad_value(format!("Unknown type name alias or number: {}", show(item)));
        if item.as_str() == Some("number") {
            kinds.extend([Kind::Double, Kind::Int32, Kind::Int64, Kind::Decimal]);
            continue;
        }
        let by_name = |name: &str| {
            Kind::NAMES
                .iter()
                .find(|(_, known)| *known == name)
                .map(|(kind, _)| *kind)
        };
        let by_number = |number: i64| match number {
            -1 => Some(Kind::MinKey),
            _ => u8::try_from(number)
                .ok()
                .and_then(Kind::of)
                .filter(|kind| *kind != Kind::MinKey),
        };
        let kind = item
            .as_str()
            .and_then(by_name)
            .or_else(|| item.as_whole().and_then(by_number));
        kinds.push(kind.ok_or_else(wrong)?);
    }
    match kinds.is_empty() {
        true => Err(Refusal::parse("$type must match at least one type")),
        false => Ok(kinds),
    }
}

fn modulus(value: Value<'_>) -> Outcome<Test> {
    let wrong = || Refusal::bad_value("malformed mod, it needs an array of two numbers");
    let items = value.as_array().ok_or_else(wrong)?;
    let numbers: Vec<_> = items.iter().map(|item| truncated(item.value)).collect();
    match numbers.as_slice() {
        [Some(0), Some(_)] => Err(Refusal::bad_value("divisor cannot be 0")),
        [Some(divisor), Some(rest)] => Ok(Test::Any(Predicate::Mod(*divisor, *rest))),
        _ => Err(wrong()),
    }
}

/// A number without its fraction.
pub(crate) fn truncated(value: Value<'_>) -> Option<i64> {
    match Number::of(value)?.decimal() {
        Decimal::Finite(digits) => {
            let whole = i64::try_from(digits.whole()?.0).ok()?;
            Some(if digits.is_negative { -whole } else { whole })
        }
        _ => None,
    }
}
