//! Filters: the tree, and its making from a document. `matching` runs it.

use crate::code::Code;
use crate::compare::regex_parts;
use crate::expression::{Expression, Scope};
use crate::geo::{GeoQuery, Near};
use crate::number::truncated;
use crate::path::Path;
use crate::raw::{Document, Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};
use crate::regex::Pattern;
use crate::schema::Schema;
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
    /// An expression that is true of the document.
    Expression(Box<Expression>),
    /// A JSON schema.
    Schema(Box<Schema>),
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
    /// A text in which the expression is found, or the expression itself.
    Regex(Pattern),
    /// Equal to one of these, which are sorted, or as of one of those.
    OneOf(Vec<OwnedValue>, Vec<Pattern>),
    /// Bits at these places.
    Bits(Bits, Vec<u32>),
    /// A place.
    Geo(Box<GeoQuery>),
    /// A place so near to a point, of several the nearest; also the order. At the top of a filter alone.
    Near(Box<Near>),
}

/// What is asked of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the operators' names")]
pub enum Bits {
    AllSet,
    AnySet,
    AllClear,
    AnyClear,
}

impl Filter {
    /// The filter that `document` describes.
    ///
    /// # Errors
    /// `BadValue` for what is malformed, and for an operator that is not served, by its name.
    pub fn new(document: Document<'_>) -> Outcome<Self> {
        Self::with(document, &Scope::default())
    }

    /// As [`Filter::new`], where `$expr` may name what `scope` knows.
    ///
    /// # Errors
    /// As [`Filter::new`]; of expressions.
    pub fn with(document: Document<'_>, scope: &Scope) -> Outcome<Self> {
        let filter = filter(document, 0, Some(scope))?;
        filter.check_near()?;
        Ok(filter)
    }

    /// As [`Filter::with`], where there is no order by nearness.
    ///
    /// # Errors
    /// As [`Filter::with`]; `Location5626500` for `$near`.
    pub fn without_near(document: Document<'_>, scope: &Scope) -> Outcome<Self> {
        let filter = filter(document, 0, Some(scope))?;
        match filter.nears(true) {
            (0, 0) => Ok(filter),
            _ => Err(near_not_allowed()),
        }
    }

    /// What is to be near, and the field.
    pub fn near(&self) -> Option<(&Path, &Near)> {
        match self {
            Self::And(parts) => parts.iter().find_map(Self::near),
            Self::Field(path, Test::Any(Predicate::Near(near))) => Some((path, near)),
            _ => None,
        }
    }

    /// # Errors
    /// `BadValue` for `$near` below anything but `$and`, and for several.
    fn check_near(&self) -> Outcome<()> {
        let (top, below) = self.nears(true);
        match (top, below) {
            (_, 1..) => Err(Refusal::bad_value("geo $near must be top-level expr")),
            (2.., 0) => Err(Refusal::bad_value("Too many geoNear expressions")),
            _ => Ok(()),
        }
    }

    /// How many there are of `$near`, at the top and below. Recurses as deep as it is nested.
    fn nears(&self, is_top: bool) -> (usize, usize) {
        let sum = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
        match self {
            Self::And(parts) => parts.iter().map(|it| it.nears(is_top)).fold((0, 0), sum),
            Self::Or(parts) | Self::Nor(parts) => {
                parts.iter().map(|it| it.nears(false)).fold((0, 0), sum)
            }
            Self::Field(_, test) => test.nears(is_top),
            Self::Expression(_) | Self::Schema(_) => (0, 0),
        }
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
            Some(document) if !is_operators(document) || is_logical(document) => {
                Test::ElementDocument(Box::new(filter(document, 0, None)?)).refuse_near()
            }
            // Around a list, so that `$elemMatch` is one of an array in the array.
            Some(document) => Test::All(vec![tests(document, 0)?]).refuse_near(),
            None => Ok(Test::Element(Box::new(equals(condition)?))),
        }
    }

    /// Whether there is an expression in it. Recurses as deep as it is nested.
    pub fn has_expression(&self) -> bool {
        match self {
            Self::And(parts) | Self::Or(parts) | Self::Nor(parts) => {
                parts.iter().any(Self::has_expression)
            }
            Self::Field(..) | Self::Schema(_) => false,
            Self::Expression(_) => true,
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
    fn nears(&self, is_top: bool) -> (usize, usize) {
        match self {
            Self::Any(Predicate::Near(_)) if is_top => (1, 0),
            Self::Any(Predicate::Near(_)) => (0, 1),
            Self::Not(test) | Self::Element(test) => test.nears(false),
            Self::ElementDocument(filter) => filter.nears(false),
            Self::All(tests) => tests.iter().fold((0, 0), |(a, b), it| {
                let (top, below) = it.nears(false);
                (a + top, b + below)
            }),
            _ => (0, 0),
        }
    }

    /// Refuses `$near` where no order is asked for.
    ///
    /// # Errors
    /// `Location5626500`.
    pub(crate) fn refuse_near(self) -> Outcome<Self> {
        match self.nears(true) {
            (0, 0) => Ok(self),
            _ => Err(near_not_allowed()),
        }
    }

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

/// `scope` where `$expr` may stand: not below a field.
fn filter(document: Document<'_>, depth: usize, scope: Option<&Scope>) -> Outcome<Filter> {
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
                Kind::Document => filter(Document(item.value.bytes), depth + 1, scope),
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
            "$expr" => {
                let text = "$expr can only be applied to the top-level document";
                let scope = scope.ok_or_else(|| Refusal::bad_value(text))?;
                let expression = Expression::parse(element.value, scope)?;
                parts.push(Filter::Expression(Box::new(expression)));
            }
            "$jsonSchema" if scope.is_none() => {
                let text = "$jsonSchema is not allowed in this context";
                return Err(Refusal::new(Code::QueryFeatureNotAllowed, text));
            }
            "$jsonSchema" => parts.push(Filter::Schema(Box::new(Schema::new(element.value)?))),
            "$text" if scope.is_some() => {
                let text = "text index required for $text query: there are none in this server";
                return Err(Refusal::new(Code::IndexNotFound, text));
            }
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

/// Whether a document begins with a condition on documents.
fn is_logical(document: Document<'_>) -> bool {
    let first = document.iter().next();
    first.is_some_and(|element| matches!(element.name, b"$and" | b"$or" | b"$nor"))
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
        Kind::Regex => Ok(Test::Any(Predicate::Regex(pattern_of(value)?))),
        Kind::Undefined => Err(Refusal::bad_value("cannot compare to undefined")),
        _ => Ok(Test::Any(Predicate::Equal(value.to_owned()))),
    }
}

/// All operators of one field.
fn tests(document: Document<'_>, depth: usize) -> Outcome<Test> {
    too_deep(depth)?;
    let first = document.iter().next().map(|it| (it.name, it.value.kind));
    if let Some((b"$near" | b"$nearSphere" | b"$geoNear", Kind::Array | Kind::Document)) = first {
        let near = Near::new(document)?;
        return Ok(Test::Any(Predicate::Near(Box::new(near))));
    }
    let mut places = document.iter().map(|it| it.name);
    let has_places = places.any(|name| matches!(name, b"$geoWithin" | b"$geoIntersects"));
    if let Some(other) = document.iter().nth(1).filter(|_| has_places) {
        let text = format!("can't parse extra field: {}", other.name_str());
        return Err(Refusal::bad_value(text));
    }
    let mut tests = Vec::new();
    for element in document {
        match element.name_str() {
            "$regex" => {
                let mut names = document.iter().map(|it| it.name);
                let is_before = names.find(|name| matches!(*name, b"$regex" | b"$options"))
                    == Some(b"$options");
                tests.push(regex(element.value, document.get("$options"), is_before)?);
            }
            "$options" if document.get("$regex").is_some() => {}
            "$options" => return Err(Refusal::bad_value("$options needs a $regex")),
            name => tests.push(operator(name, element.value, depth)?),
        }
    }
    Ok(match tests.len() {
        1 => tests.swap_remove(0),
        _ => Test::All(tests),
    })
}

fn operator(name: &str, value: Value<'_>, depth: usize) -> Outcome<Test> {
    let not = |test: Test| Test::Not(Box::new(test));
    let plain = |make: fn(OwnedValue) -> Predicate| match value.kind {
        Kind::Regex if name != "$eq" => Err(Refusal::bad_value(format!(
            "Can't have regex as arg to {name}."
        ))),
        Kind::Undefined => Err(Refusal::bad_value("cannot compare to undefined")),
        _ => Ok(Test::Any(make(value.to_owned()))),
    };
    match name {
        "$eq" => plain(Predicate::Equal),
        "$ne" => plain(Predicate::Equal).map(not),
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
        "$not" if value.kind == Kind::Regex => equals(value).map(not),
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
                .filter(|size| (0..=i64::from(i32::MAX)).contains(size))
                .map(Test::Size)
                .ok_or_else(wrong)
        }
        "$elemMatch" => element_match(value, depth),
        "$mod" => modulus(value),
        "$geoWithin" => GeoQuery::within(value).map(|it| Test::Any(Predicate::Geo(Box::new(it)))),
        "$geoIntersects" => {
            GeoQuery::intersects(value).map(|it| Test::Any(Predicate::Geo(Box::new(it))))
        }
        "$near" | "$nearSphere" | "$geoNear" => {
            let text = format!("{name} must be first among the conditions on its field");
            Err(Refusal::bad_value(text))
        }
        "$bitsAllSet" => bits(name, Bits::AllSet, value),
        "$bitsAnySet" => bits(name, Bits::AnySet, value),
        "$bitsAllClear" => bits(name, Bits::AllClear, value),
        "$bitsAnyClear" => bits(name, Bits::AnyClear, value),
        _ => Err(unknown(name)),
    }
}

fn one_of(name: &str, value: Value<'_>) -> Outcome<Test> {
    let wrong = || Refusal::bad_value(format!("{name} needs an array"));
    let items = value.as_array().ok_or_else(wrong)?;
    let mut values = Vec::new();
    let mut patterns = Vec::new();
    for item in items {
        let nested = item
            .value
            .as_document()
            .filter(|_| item.value.kind == Kind::Document);
        if nested.is_some_and(is_operators) {
            return Err(Refusal::bad_value(format!("cannot nest $ under {name}")));
        }
        match equals(item.value)? {
            Test::Any(Predicate::Equal(value)) => values.push(value),
            Test::Any(Predicate::Regex(pattern)) => patterns.push(pattern),
            _ => {}
        }
    }
    values.sort_by(|a, b| crate::compare::compare(a.get(), b.get()));
    values.dedup_by(|a, b| crate::compare::equal(a.get(), b.get()));
    Ok(Test::Any(match patterns.is_empty() {
        true => Predicate::In(values),
        false => Predicate::OneOf(values, patterns),
    }))
}

/// The expression that a value of BSON is.
fn pattern_of(value: Value<'_>) -> Outcome<Pattern> {
    let (pattern, options) = regex_parts(value.bytes);
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
    Pattern::new(text(pattern), text(options))
}

/// `$regex`, with `$options` where they are there, and whether these stand before it.
fn regex(value: Value<'_>, options: Option<Value<'_>>, is_before: bool) -> Outcome<Test> {
    let options = match options {
        Some(options) => {
            let wrong = || Refusal::bad_value("$options has to be a string");
            Some(options.as_str().ok_or_else(wrong)?)
        }
        None => None,
    };
    let pattern = match (value.kind, value.as_str()) {
        (Kind::Regex, _) => {
            let pattern = pattern_of(value)?;
            match options {
                Some(_) if !pattern.parts().1.is_empty() => {
                    let text = "options set in both $regex and $options";
                    let code = match is_before {
                        true => Code::RegexOptionsBefore,
                        false => Code::RegexOptionsTwice,
                    };
                    return Err(Refusal::new(code, text));
                }
                Some(options) => Pattern::new(pattern.parts().0, options)?,
                None => pattern,
            }
        }
        (Kind::String, Some(text)) if text.contains('\0') => {
            return Err(Refusal::bad_value("$regex must not have a null byte"));
        }
        (Kind::String, Some(text)) => Pattern::new(text, options.unwrap_or_default())?,
        _ => return Err(Refusal::bad_value("$regex has to be a string")),
    };
    Ok(Test::Any(Predicate::Regex(pattern)))
}

/// The places of bits: a mask, the bits of binary data, or a list of places.
fn bits(name: &str, what: Bits, value: Value<'_>) -> Outcome<Test> {
    let text = || {
        format!(
            "{name} takes an Array, a number that is not negative, or a BinData, and not {}",
            show(value)
        )
    };
    let wrong = || Refusal::bad_value(text());
    let set_bits = |bytes: &[u8]| {
        let all = bytes.iter().enumerate();
        let places = all.flat_map(|(at, byte)| (0..8).map(move |bit| (at, bit, byte >> bit & 1)));
        places
            .filter(|(_, _, bit)| *bit == 1)
            .map(|(at, bit, _)| u32::try_from(at * 8 + bit).unwrap_or(u32::MAX))
            .collect::<Vec<u32>>()
    };
    let places = match (value.kind, value.as_array()) {
        (_, Some(items)) => {
            let place = |item: crate::raw::Element<'_>| {
                let place = item.value.as_whole().ok_or_else(wrong)?;
                let place = i32::try_from(place).map_err(|_| wrong())?;
                u32::try_from(place).map_err(|_| wrong())
            };
            items.iter().map(place).collect::<Outcome<_>>()?
        }
        (Kind::Binary, _) => set_bits(value.bytes.get(5..).unwrap_or_default()),
        (kind, _) if kind.is_number() => {
            let mask = value.as_whole().filter(|mask| *mask >= 0);
            let mask = mask.ok_or_else(|| Refusal::parse(text()))?;
            set_bits(&mask.to_le_bytes())
        }
        _ => return Err(wrong()),
    };
    Ok(Test::Any(Predicate::Bits(what, places)))
}

pub(crate) fn element_match(value: Value<'_>, depth: usize) -> Outcome<Test> {
    let wrong = || Refusal::bad_value("$elemMatch needs an Object");
    let inner = value
        .as_document()
        .filter(|_| value.kind == Kind::Document)
        .ok_or_else(wrong)?;
    let first = inner.iter().next().map(|it| it.name);
    let is_of_documents = is_logical(inner) || first == Some(b"$jsonSchema");
    match is_operators(inner) && !is_of_documents {
        true => tests(inner, depth + 1).map(|it| Test::Element(Box::new(it))),
        false => filter(inner, depth + 1, None).map(|it| Test::ElementDocument(Box::new(it))),
    }
}

/// What is told of `$near` where no index would serve it.
fn near_not_allowed() -> Refusal {
    Refusal::new(
        Code::NearNotAllowed,
        "$geoNear, $near, and $nearSphere are not allowed in this context",
    )
}

fn all(value: Value<'_>, depth: usize) -> Outcome<Test> {
    let items = value
        .as_array()
        .ok_or_else(|| Refusal::bad_value("$all needs an array"))?;
    let mut tests = Vec::new();
    let mut matches = 0;
    for item in items {
        let inner = item
            .value
            .as_document()
            .filter(|inner| is_operators(*inner));
        matches += usize::from(inner.is_some());
        tests.push(match inner {
            Some(inner) => match inner.get("$elemMatch") {
                Some(condition) => element_match(condition, depth + 1)?,
                None => return Err(Refusal::bad_value("no $ expressions in $all")),
            },
            None => equals(item.value)?,
        });
    }
    if matches > 0 && matches < tests.len() {
        return Err(Refusal::bad_value("no $ expressions in $all beside values"));
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
        if item.as_str().is_none() && !item.kind.is_number() {
            return Err(Refusal::type_mismatch(
                "type must be represented as a number or a string",
            ));
        }
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
