//! Filters, run over documents.

use std::cmp::Ordering;

use crate::compare::{class, compare, equal};
use crate::filter::{Filter, Predicate, Test, truncated};
use crate::number::Number;
use crate::path::{Path, candidates};
use crate::raw::{Document, Kind, Value};

impl Filter {
    /// Whether `document` is as the filter says. Recurses as deep as the filter is nested.
    pub fn matches(&self, document: Document<'_>) -> bool {
        match self {
            Self::And(parts) => parts.iter().all(|part| part.matches(document)),
            Self::Or(parts) => parts.iter().any(|part| part.matches(document)),
            Self::Nor(parts) => !parts.iter().any(|part| part.matches(document)),
            Self::Field(path, test) => test.holds_at(document, path),
        }
    }
}

impl Test {
    fn holds_at(&self, document: Document<'_>, path: &Path) -> bool {
        match self {
            Self::Not(test) => !test.holds_at(document, path),
            Self::All(tests) => tests.iter().all(|test| test.holds_at(document, path)),
            _ => candidates(document, path, &mut |value| self.holds(value)),
        }
    }

    /// Whether it holds for one value, an array with its elements.
    pub(crate) fn holds(&self, value: Option<Value<'_>>) -> bool {
        let elements = value.and_then(Value::as_array);
        match self {
            Self::Not(test) => !test.holds(value),
            Self::All(tests) => tests.iter().all(|test| test.holds(value)),
            Self::Exists => value.is_some(),
            Self::Any(predicate) => {
                predicate.holds(value)
                    || elements.is_some_and(|elements| {
                        elements
                            .iter()
                            .any(|element| predicate.holds(Some(element.value)))
                    })
            }
            Self::Size(size) => {
                elements.is_some_and(|elements| i64::try_from(elements.iter().count()) == Ok(*size))
            }
            Self::ElementDocument(_) | Self::Element(_) => elements.is_some_and(|elements| {
                elements.iter().any(|element| self.holds_for(element.value))
            }),
        }
    }

    /// Whether it holds for one element of an array.
    pub(crate) fn holds_for(&self, element: Value<'_>) -> bool {
        match self {
            Self::ElementDocument(filter) => element
                .as_document()
                .is_some_and(|document| filter.matches(document)),
            Self::Element(test) => test.holds_alone(element),
            other => other.holds(Some(element)),
        }
    }
}

impl Test {
    /// Whether it holds for a value as it is, an array without its elements.
    fn holds_alone(&self, value: Value<'_>) -> bool {
        match self {
            Self::Any(predicate) => predicate.holds(Some(value)),
            Self::Not(test) => !test.holds_alone(value),
            Self::All(tests) => tests.iter().all(|test| test.holds_alone(value)),
            other => other.holds(Some(value)),
        }
    }
}

impl Predicate {
    fn holds(&self, value: Option<Value<'_>>) -> bool {
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
            Self::In(operands) => {
                let value = value.unwrap_or(Value::NULL);
                let found = operands.binary_search_by(|operand| compare(operand.get(), value));
                found.is_ok()
            }
            Self::Type(kinds) => value.is_some_and(|value| kinds.contains(&value.kind)),
            Self::Mod(divisor, rest) => value
                .filter(|value| value.kind.is_number())
                .and_then(truncated)
                .is_some_and(|number| number.wrapping_rem(*divisor) == *rest),
        }
    }
}

/// The order of the two if they are of one class, or if the operand is one of the ends of the order.
fn order_within(value: Option<Value<'_>>, operand: Value<'_>) -> Option<Ordering> {
    let value = match value {
        Some(value) => value,
        None if operand.kind == Kind::Null => Value::NULL,
        None => return None,
    };
    let is_end = matches!(operand.kind, Kind::MinKey | Kind::MaxKey);
    if operand.kind == Kind::Null && value.kind == Kind::Null {
        return Some(Ordering::Equal);
    }
    (is_end || class(value.kind) == class(operand.kind)).then(|| compare(value, operand))
}

/// Whether one of them is no number, which is neither less nor greater than any.
fn is_nan(value: Option<Value<'_>>, operand: Value<'_>) -> bool {
    let is_nan = |value: Value<'_>| Number::of(value).is_some_and(Number::is_nan);
    is_nan(operand) || value.is_some_and(is_nan)
}

impl crate::raw::OwnedValue {
    /// Whether it is the same key as `other`.
    pub fn is(&self, other: Value<'_>) -> bool {
        equal(self.get(), other)
    }
}
