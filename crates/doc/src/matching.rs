//! Filters, run over documents.

use std::cell::RefCell;
use std::cmp::Ordering;

use crate::compare::{class, compare, equal, regex_parts};
use crate::filter::{Bits, Filter, Predicate, Test};
use crate::number::{Number, truncated};
use crate::path::{Path, candidates};
use crate::raw::{Document, Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};
use crate::regex::Pattern;

/// What went wrong first, while a filter was looked at: the answer is then none.
#[derive(Debug, Default)]
pub(crate) struct Failed(RefCell<Option<Refusal>>);

impl Failed {
    /// The answer, or what went wrong.
    pub(crate) fn or<T>(self, answer: T) -> Outcome<T> {
        self.0.into_inner().map_or(Ok(answer), Err)
    }

    fn see(&self, answer: Outcome<bool>) -> bool {
        answer.unwrap_or_else(|refusal| {
            self.0.borrow_mut().get_or_insert(refusal);
            false
        })
    }
}

impl Filter {
    /// Whether `document` is as the filter says. Recurses as deep as the filter is nested.
    ///
    /// # Errors
    /// Of expressions, and of regular expressions that take too long.
    pub fn matches(&self, document: Document<'_>) -> Outcome<bool> {
        let failed = Failed::default();
        let answer = self.holds(document, &failed);
        failed.or(answer)
    }

    pub(crate) fn holds(&self, document: Document<'_>, failed: &Failed) -> bool {
        match self {
            Self::And(parts) => parts.iter().all(|part| part.holds(document, failed)),
            Self::Or(parts) => parts.iter().any(|part| part.holds(document, failed)),
            Self::Nor(parts) => !parts.iter().any(|part| part.holds(document, failed)),
            Self::Field(path, test) => test.holds_at(document, path, failed),
            Self::Expression(expression) => failed.see(expression.is_true(document)),
            Self::Schema(schema) => failed.see(schema.holds(document)),
        }
    }
}

impl Test {
    fn holds_at(&self, document: Document<'_>, path: &Path, failed: &Failed) -> bool {
        match self {
            Self::Not(test) => !test.holds_at(document, path, failed),
            Self::All(tests) => tests
                .iter()
                .all(|test| test.holds_at(document, path, failed)),
            Self::Any(Predicate::Near(near)) => failed.see(near.holds(document, path)),
            _ => candidates(document, path, &mut |value| self.holds(value, failed)),
        }
    }

    /// Whether it holds for one value, an array with its elements.
    pub(crate) fn holds(&self, value: Option<Value<'_>>, failed: &Failed) -> bool {
        let elements = value.and_then(Value::as_array);
        match self {
            Self::Not(test) => !test.holds(value, failed),
            Self::All(tests) => tests.iter().all(|test| test.holds(value, failed)),
            Self::Exists => value.is_some(),
            Self::Any(predicate) => {
                predicate.holds(value, failed)
                    || elements.is_some_and(|elements| {
                        elements
                            .iter()
                            .any(|element| predicate.holds(Some(element.value), failed))
                    })
            }
            Self::Size(size) => {
                elements.is_some_and(|elements| i64::try_from(elements.iter().count()) == Ok(*size))
            }
            Self::ElementDocument(_) | Self::Element(_) => elements.is_some_and(|elements| {
                elements
                    .iter()
                    .any(|element| self.holds_for(element.value, failed))
            }),
        }
    }

    /// Whether it holds for one element of an array.
    pub(crate) fn holds_for(&self, element: Value<'_>, failed: &Failed) -> bool {
        match self {
            Self::ElementDocument(filter) => element
                .as_document()
                .is_some_and(|document| filter.holds(document, failed)),
            Self::Element(test) => test.holds_alone(element, failed),
            other => other.holds(Some(element), failed),
        }
    }
}

impl Test {
    /// Whether it holds for a value as it is, an array without its elements.
    fn holds_alone(&self, value: Value<'_>, failed: &Failed) -> bool {
        match self {
            Self::Any(predicate) => predicate.holds(Some(value), failed),
            Self::Not(test) => !test.holds_alone(value, failed),
            Self::All(tests) => tests.iter().all(|test| test.holds_alone(value, failed)),
            other => other.holds(Some(value), failed),
        }
    }
}

impl Predicate {
    fn holds(&self, value: Option<Value<'_>>, failed: &Failed) -> bool {
        let order = |operand: Value<'_>| order_within(value, operand);
        match self {
            Self::Equal(operand) => order(operand.get()) == Some(Ordering::Equal),
            Self::Less(operand) => {
                matches!(order(operand.get()), Some(Ordering::Less))
                    && !is_nan(value, operand.get())
            }
            Self::LessOrEqual(operand) => match order(operand.get()) {
                Some(Ordering::Equal) => true,
                Some(Ordering::Less) => !is_nan(value, operand.get()),
                _ => false,
            },
            Self::Greater(operand) => {
                matches!(order(operand.get()), Some(Ordering::Greater))
                    && !is_nan(value, operand.get())
            }
            Self::GreaterOrEqual(operand) => match order(operand.get()) {
                Some(Ordering::Equal) => true,
                Some(Ordering::Greater) => !is_nan(value, operand.get()),
                _ => false,
            },
            Self::In(operands) => is_among(operands, value),
            Self::OneOf(operands, patterns) => {
                let mut patterns = patterns.iter();
                is_among(operands, value)
                    || patterns.any(|pattern| failed.see(is_found(pattern, value)))
            }
            Self::Regex(pattern) => failed.see(is_found(pattern, value)),
            Self::Bits(what, places) => value.is_some_and(|value| bits(*what, places, value)),
            Self::Geo(query) => value.is_some_and(|value| failed.see(query.holds(value))),
            // It is held against documents.
            Self::Near(_) => false,
            Self::Type(kinds) => value.is_some_and(|value| kinds.contains(&value.kind)),
            Self::Mod(divisor, rest) => value
                .filter(|value| value.kind.is_number())
                .and_then(truncated)
                .is_some_and(|number| number.wrapping_rem(*divisor) == *rest),
        }
    }
}

fn is_among(sorted: &[OwnedValue], value: Option<Value<'_>>) -> bool {
    let value = value.unwrap_or(Value::NULL);
    let found = sorted.binary_search_by(|operand| compare(operand.get(), value));
    found.is_ok()
}

/// Whether it is a text that the expression is found in, or that expression.
fn is_found(pattern: &Pattern, value: Option<Value<'_>>) -> Outcome<bool> {
    match value {
        Some(value) if matches!(value.kind, Kind::String | Kind::Symbol) => value
            .as_str()
            .map_or(Ok(false), |text| pattern.is_match(text)),
        Some(value) if value.kind == Kind::Regex => {
            let (text, options) = pattern.parts();
            Ok(regex_parts(value.bytes) == (text.as_bytes(), options.as_bytes()))
        }
        _ => Ok(false),
    }
}

/// What is asked of the bits of a whole number, or of binary data.
fn bits(what: Bits, places: &[u32], value: Value<'_>) -> bool {
    let whole = value.as_whole();
    let bytes = (value.kind == Kind::Binary).then(|| value.bytes.get(5..).unwrap_or_default());
    let is_set = |place: &u32| match (whole, bytes) {
        // Beyond the highest bit is the sign.
        (Some(whole), _) => whole >> (*place).min(63) & 1 == 1,
        (_, Some(bytes)) => {
            let byte = usize::try_from(place / 8).ok().and_then(|at| bytes.get(at));
            byte.is_some_and(|byte| byte >> (place % 8) & 1 == 1)
        }
        _ => false,
    };
    if whole.is_none() && bytes.is_none() {
        return false;
    }
    let mut places = places.iter();
    match what {
        Bits::AllSet => places.all(is_set),
        Bits::AnySet => places.any(is_set),
        Bits::AllClear => !places.any(is_set),
        Bits::AnyClear => !places.all(is_set),
    }
}

/// The order of the two if they are of one class, or if the operand is one of the ends of the order.
fn order_within(value: Option<Value<'_>>, operand: Value<'_>) -> Option<Ordering> {
    let value = match value {
        Some(value) => value,
        None => match operand.kind {
            Kind::Null => Value::NULL,
            // Between the ends of the order lies what is not there, too.
            Kind::MinKey => return Some(Ordering::Greater),
            Kind::MaxKey => return Some(Ordering::Less),
            _ => return None,
        },
    };
    let is_end = matches!(operand.kind, Kind::MinKey | Kind::MaxKey);
    if operand.kind == Kind::Null && value.kind == Kind::Null {
        return Some(Ordering::Equal);
    }
    (is_end || class(value.kind) == class(operand.kind)).then(|| compare(value, operand))
}

/// Whether one of them is no number, which is neither less nor greater than any number.
fn is_nan(value: Option<Value<'_>>, operand: Value<'_>) -> bool {
    let is_nan = |value: Value<'_>| Number::of(value).is_some_and(Number::is_nan);
    operand.kind.is_number() && (is_nan(operand) || value.is_some_and(is_nan))
}

impl OwnedValue {
    /// Whether it is the same key as `other`.
    pub fn is(&self, other: Value<'_>) -> bool {
        equal(self.get(), other)
    }
}
