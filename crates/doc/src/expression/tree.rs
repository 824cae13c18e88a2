//! The tree of an expression, and its value for a document.

use std::borrow::Cow;

use crate::build::Builder;
use crate::code::Code;
use crate::compare::compare;
use crate::path::Path;
use crate::raw::{AsValue, Document, Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};
use crate::sort::Sort;
use crate::watch::step;

use super::convert::convert;
use super::function::{Function, Growing, bounded, truth, within_bound};

/// Most bytes that are made for the arguments of one operator.
const KEPT_BYTES_MAX: usize = 100 << 20;

/// An expression. Its depth is bounded by [`crate::DEPTH_MAX`].
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A value.
    Literal(OwnedValue),
    /// `$$REMOVE`, and arguments that are not there: no value.
    Missing,
    /// What the document has at a path.
    Field(Path),
    /// The document.
    Root,
    /// A variable, and what it has at a path.
    Variable(String, Option<Path>),
    /// A document of values.
    Document(Vec<(String, Expression)>),
    /// An array of values.
    Array(Vec<Expression>),
    /// A function of values.
    Call(&'static Function, Vec<Expression>),
    /// An operator that does not look at all of its arguments, or names values for them.
    Special(Box<Special>),
}

/// See [`Expression::Special`].
#[derive(Clone, Debug, PartialEq)]
pub enum Special {
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Cond([Expression; 3]),
    IfNull(Vec<Expression>),
    Switch(Vec<(Expression, Expression)>, Option<Expression>),
    Let(Vec<(String, Expression)>, Expression),
    Map(Over, Expression),
    Filter(Over, Expression, Expression),
    Reduce(Expression, Expression, Expression),
    SortArray(Expression, ArrayOrder),
    Convert(Convert),
    Random(Random),
}

/// The parts of `$convert`.
#[derive(Clone, Debug, PartialEq)]
pub struct Convert {
    pub(super) input: Expression,
    pub(super) to: Expression,
    pub(super) on_error: Option<Expression>,
    pub(super) on_null: Option<Expression>,
}

/// Elements of an array, by a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    pub(super) input: Expression,
    pub(super) name: String,
}

/// How elements are sorted.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrayOrder {
    /// By themselves; whether downwards.
    Whole(bool),
    /// As documents.
    Fields(Sort),
}

/// Numbers that seem to be by chance; one sequence for each expression that was parsed.
#[derive(Clone, Debug)]
pub struct Random(pub(super) std::sync::Arc<drumlin_base::sync::atomic::AtomicU64>);

impl PartialEq for Random {
    fn eq(&self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Random {
    /// From 0 on, below 1: splitmix64.
    fn next(&self) -> f64 {
        use drumlin_base::sync::atomic::Ordering;
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 bits")]
        let unit = (mixed >> 11) as f64 / (1u64 << 53) as f64;
        unit
    }
}

/// Values by names: those that a document is looked at with.
#[derive(Clone, Copy, Debug)]
pub struct Variables<'e> {
    name: &'e str,
    value: Option<Value<'e>>,
    outer: Option<&'e Variables<'e>>,
}

impl<'e> Variables<'e> {
    /// One more variable; the innermost one of a name counts.
    pub fn with(name: &'e str, value: Option<Value<'e>>, outer: Option<&'e Self>) -> Self {
        Self { name, value, outer }
    }

    fn get(&self, name: &str) -> Option<Value<'e>> {
        let mut at = Some(self);
        while let Some(variables) = at {
            if variables.name == name {
                return variables.value;
            }
            at = variables.outer;
        }
        None
    }
}

/// A value, of the document or made.
#[derive(Clone, Debug)]
pub(super) struct Got<'e> {
    kind: Kind,
    bytes: Cow<'e, [u8]>,
}

impl<'e> Got<'e> {
    fn of(value: Value<'e>) -> Self {
        Self {
            kind: value.kind,
            bytes: Cow::Borrowed(value.bytes),
        }
    }

    fn into_owned(self) -> OwnedValue {
        OwnedValue {
            kind: self.kind,
            bytes: self.bytes.into_owned(),
        }
    }
}

impl AsValue for Got<'_> {
    fn as_value(&self) -> Value<'_> {
        Value {
            kind: self.kind,
            bytes: &self.bytes,
        }
    }
}

impl<'e> From<OwnedValue> for Got<'e> {
    fn from(value: OwnedValue) -> Self {
        Self {
            kind: value.kind,
            bytes: Cow::Owned(value.bytes),
        }
    }
}

#[derive(Clone, Copy)]
struct Env<'e> {
    root: Document<'e>,
    variables: Option<&'e Variables<'e>>,
}

type Found<'e> = Outcome<Option<Got<'e>>>;

impl Expression {
    /// Its value, where it is the same for all documents.
    pub fn known(&self) -> Option<&OwnedValue> {
        match self {
            Self::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// Its value for `document`; `None` where there is none.
    ///
    /// # Errors
    /// Of its operators.
    pub fn eval(&self, document: Document<'_>) -> Outcome<Option<OwnedValue>> {
        self.eval_with(document, None)
    }

    /// Its value for `document`, where variables have values.
    ///
    /// # Errors
    /// Of its operators.
    pub fn eval_with(
        &self,
        document: Document<'_>,
        variables: Option<&Variables<'_>>,
    ) -> Outcome<Option<OwnedValue>> {
        let env = Env {
            root: document,
            variables,
        };
        Ok(self.found(&env)?.map(Got::into_owned))
    }

    /// Whether its value for `document` counts as true.
    ///
    /// # Errors
    /// Of its operators.
    pub fn is_true(&self, document: Document<'_>) -> Outcome<bool> {
        let env = Env {
            root: document,
            variables: None,
        };
        self.holds(&env)
    }

    fn holds(&self, env: &Env<'_>) -> Outcome<bool> {
        Ok(self.found(env)?.is_some_and(|got| truth(got.as_value())))
    }

    fn found<'e>(&'e self, env: &Env<'e>) -> Found<'e> {
        match self {
            Self::Literal(value) => Ok(Some(Got::of(value.get()))),
            Self::Missing => Ok(None),
            Self::Root => Ok(Some(Got::of(env.root.as_value()))),
            Self::Field(path) => Ok(at(env.root.as_value(), path.parts())),
            Self::Variable(name, path) => {
                let value = env.variables.and_then(|variables| variables.get(name));
                Ok(match (value, path) {
                    (Some(value), Some(path)) => at(value, path.parts()),
                    (value, _) => value.map(Got::of),
                })
            }
            Self::Document(fields) => {
                let mut out = Builder::new();
                for (name, expression) in fields {
                    if let Some(value) = expression.found(env)? {
                        out.value(name, value.as_value());
                        within_bound(out.len())?;
                    }
                }
                Ok(Some(OwnedValue::document(out.finish()).into()))
            }
            Self::Array(items) => {
                let mut out = Growing::default();
                for item in items {
                    out.push(item.or_null(env)?.as_value())?;
                }
                Ok(Some(out.finish().into()))
            }
            Self::Call(function, arguments) => {
                let values = arguments.iter().map(|argument| match argument {
                    // Of dates, an argument without a value counts as null, and not as one that was not given.
                    Self::Missing => Ok(None),
                    argument if function.is_of_dates() => argument.or_null(env).map(Some),
                    argument => argument.found(env),
                });
                let values = kept(values)?;
                let values: Vec<_> = values
                    .iter()
                    .map(|value| value.as_ref().map(AsValue::as_value))
                    .collect();
                let made = (function.run)(function, &values)?;
                made.map(|made| bounded(made).map(Got::from)).transpose()
            }
            Self::Special(special) => special.found(env),
        }
    }

    fn or_null<'e>(&'e self, env: &Env<'e>) -> Outcome<Got<'e>> {
        let value = self.found(env)?;
        Ok(value.unwrap_or_else(|| Got::of(Value::NULL)))
    }
}

impl Special {
    fn found<'e>(&'e self, env: &Env<'e>) -> Found<'e> {
        let flag = |flag: bool| Ok(Some(OwnedValue::bool(flag).into()));
        match self {
            Self::And(parts) => {
                for part in parts {
                    if !part.holds(env)? {
                        return flag(false);
                    }
                }
                flag(true)
            }
            Self::Or(parts) => {
                for part in parts {
                    if part.holds(env)? {
                        return flag(true);
                    }
                }
                flag(false)
            }
            Self::Cond([condition, then, other]) => match condition.holds(env)? {
                true => then.found(env),
                false => other.found(env),
            },
            Self::IfNull(parts) => {
                let mut last = None;
                for part in parts {
                    last = part.found(env)?;
                    if last.as_ref().is_some_and(|it| !it.as_value().is_null()) {
                        break;
                    }
                }
                Ok(last)
            }
            Self::Switch(branches, other) => {
                for (case, then) in branches {
                    if case.holds(env)? {
                        return then.found(env);
                    }
                }
                let none = || {
                    let text = "$switch could not find a matching branch for an input, and no default was specified.";
                    Refusal::new(Code::SwitchNoBranch, text)
                };
                other.as_ref().ok_or_else(none)?.found(env)
            }
            Self::Let(variables, inner) => {
                let values = variables.iter().map(|(_, value)| value.found(env));
                let values = kept(values)?;
                let names = variables.iter().map(|(name, _)| name.as_str());
                let pairs: Vec<_> = names.zip(&values).collect();
                with_all(env, &pairs, &mut |env| {
                    Ok(inner.found(env)?.map(|got| got.into_owned().into()))
                })
            }
            Self::Map(over, inner) => {
                let Some(elements) = over.elements(env, "$map", Code::MapInput)? else {
                    return Ok(Some(Got::of(Value::NULL)));
                };
                let mut out = Growing::default();
                over.each(env, &elements, &mut |env, _| {
                    out.push(inner.or_null(env)?.as_value())?;
                    Ok(true)
                })?;
                Ok(Some(out.finish().into()))
            }
            Self::Filter(over, condition, limit) => {
                let Some(elements) = over.elements(env, "$filter", Code::FilterInput)? else {
                    return Ok(Some(Got::of(Value::NULL)));
                };
                let most = filter_limit(limit.found(env)?)?;
                let mut out = Growing::default();
                over.each(env, &elements, &mut |env, element| {
                    if condition.holds(env)? {
                        out.push(element)?;
                    }
                    Ok(out.count < most)
                })?;
                Ok(Some(out.finish().into()))
            }
            Self::Reduce(input, initial, inner) => reduce(env, input, initial, inner),
            Self::SortArray(input, order) => sort_array(env, input, order),
            Self::Convert(parts) => {
                let [input, to] = [&parts.input, &parts.to].map(|part| part.found(env));
                let (input, to) = (input?, to?);
                let [input, to] = [&input, &to].map(|it| it.as_ref().map(AsValue::as_value));
                let instead = |of: &'e Option<Expression>| of.as_ref().map(|it| it.found(env));
                if input.is_none_or(Value::is_null) {
                    return instead(&parts.on_null).unwrap_or(Ok(Some(Got::of(Value::NULL))));
                }
                match convert(input, to) {
                    Err(refusal) if refusal.code == Code::ConversionFailure => {
                        instead(&parts.on_error).unwrap_or(Err(refusal))
                    }
                    made => Ok(made?.map(Got::from)),
                }
            }
            Self::Random(random) => Ok(Some(OwnedValue::double(random.next()).into())),
        }
    }
}

/// Values that are needed at a time, refused where too much of them was made.
fn kept<'e>(values: impl Iterator<Item = Found<'e>>) -> Outcome<Vec<Option<Got<'e>>>> {
    let mut all = Vec::new();
    let mut bytes = 0;
    for value in values {
        let value = value?;
        if let Some(Cow::Owned(made)) = value.as_ref().map(|value| &value.bytes) {
            bytes += made.len();
        }
        if bytes > KEPT_BYTES_MAX {
            return Err(Refusal::new(
                Code::MemoryLimit,
                format!("the arguments of an operator have more than {KEPT_BYTES_MAX} bytes"),
            ));
        }
        all.push(value);
    }
    Ok(all)
}

fn filter_limit(limit: Option<Got<'_>>) -> Outcome<u64> {
    let limit = limit.filter(|limit| !limit.as_value().is_null());
    let Some(limit) = limit else {
        return Ok(u64::MAX);
    };
    let whole = limit.as_value().as_whole().filter(|limit| *limit > 0);
    let wrong = || {
        Refusal::new(
            Code::FilterLimit,
            "$filter: limit must be a whole number that is greater than 0",
        )
    };
    u64::try_from(whole.ok_or_else(wrong)?).map_err(|_| wrong())
}

/// Runs `inner` with all of the variables.
fn with_all<'e>(
    env: &Env<'_>,
    rest: &[(&str, &Option<Got<'_>>)],
    inner: &mut dyn FnMut(&Env<'_>) -> Found<'e>,
) -> Found<'e> {
    let Some(((name, value), rest)) = rest.split_first() else {
        return inner(env);
    };
    let value = value.as_ref().map(AsValue::as_value);
    let variables = Variables::with(name, value, env.variables);
    let env = Env {
        root: env.root,
        variables: Some(&variables),
    };
    with_all(&env, rest, inner)
}

impl Over {
    /// The array; `None` where there is nothing.
    fn elements<'e>(&'e self, env: &Env<'e>, of: &str, code: Code) -> Outcome<Option<Got<'e>>> {
        array_of(self.input.found(env)?, of, code)
    }

    fn each(
        &self,
        env: &Env<'_>,
        elements: &Got<'_>,
        visit: &mut dyn FnMut(&Env<'_>, Value<'_>) -> Outcome<bool>,
    ) -> Outcome<()> {
        for element in Document(&elements.bytes) {
            step()?;
            let variables = Variables::with(&self.name, Some(element.value), env.variables);
            let env = Env {
                root: env.root,
                variables: Some(&variables),
            };
            if !visit(&env, element.value)? {
                break;
            }
        }
        Ok(())
    }
}

fn array_of<'e>(input: Option<Got<'e>>, of: &str, code: Code) -> Found<'e> {
    match input.filter(|input| !input.as_value().is_null()) {
        None => Ok(None),
        Some(input) if input.kind == Kind::Array => Ok(Some(input)),
        Some(input) => Err(Refusal::new(
            code,
            format!("input to {of} must be an array not {}", input.kind.name()),
        )),
    }
}

fn reduce<'e>(
    env: &Env<'e>,
    input: &'e Expression,
    initial: &'e Expression,
    inner: &'e Expression,
) -> Found<'e> {
    let input = array_of(input.found(env)?, "$reduce", Code::ReduceInput)?;
    let Some(elements) = input else {
        return Ok(Some(Got::of(Value::NULL)));
    };
    let mut value: Option<OwnedValue> = initial.found(env)?.map(Got::into_owned);
    for element in Document(&elements.bytes) {
        step()?;
        let this = Variables::with("this", Some(element.value), env.variables);
        let both = Variables::with("value", value.as_ref().map(OwnedValue::get), Some(&this));
        let env = Env {
            root: env.root,
            variables: Some(&both),
        };
        let next = inner.found(&env)?.map(Got::into_owned);
        value = next;
    }
    Ok(value.map(Got::from))
}

fn sort_array<'e>(env: &Env<'e>, input: &'e Expression, order: &ArrayOrder) -> Found<'e> {
    let wrong = |kind: &str| {
        let text =
            format!("The input argument to $sortArray must be an array, but was of type: {kind}");
        Refusal::new(Code::SortArrayInput, text)
    };
    let Some(input) = input.found(env)?.filter(|it| !it.as_value().is_null()) else {
        return Ok(Some(Got::of(Value::NULL)));
    };
    if input.kind != Kind::Array {
        return Err(wrong(input.kind.name()));
    }
    let elements = Document(&input.bytes).iter();
    let mut values: Vec<Value<'_>> = elements.map(|element| element.value).collect();
    match order {
        ArrayOrder::Whole(is_descending) => values.sort_by(|a, b| match is_descending {
            true => compare(*b, *a),
            false => compare(*a, *b),
        }),
        ArrayOrder::Fields(sort) => values.sort_by_cached_key(|value| match value.kind {
            Kind::Document => sort.key_of(Document(value.bytes)),
            _ => sort.key_of(Document::EMPTY),
        }),
    }
    Ok(Some(OwnedValue::array(values).into()))
}

/// The value at a path; an array on the way gives the array of what its documents have.
fn at<'e>(value: Value<'e>, parts: &[Box<[u8]>]) -> Option<Got<'e>> {
    let Some((first, rest)) = parts.split_first() else {
        return Some(Got::of(value));
    };
    match value.kind {
        Kind::Document => {
            let mut fields = Document(value.bytes).iter();
            let found = fields.find(|element| *element.name == **first)?;
            at(found.value, rest)
        }
        Kind::Array => {
            let elements = Document(value.bytes).iter();
            let found = elements.filter_map(|element| at(element.value, parts));
            Some(OwnedValue::array(found).into())
        }
        _ => None,
    }
}
