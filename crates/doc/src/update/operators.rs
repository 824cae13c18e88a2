//! What an update does with one value.

use std::cmp::Ordering;

use crate::arithmetic::Arithmetic;
use crate::build::Builder;
use crate::code::Code;
use crate::compare::{compare, equal};
use crate::filter::Test;
use crate::matching::Failed;
use crate::number::Number;
use crate::raw::{Document, Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};
use crate::show::show;
use crate::sort::Sort;

use super::moment::Moment;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operator {
    Set(OwnedValue),
    SetOnInsert(OwnedValue),
    Unset,
    Arithmetic(Arithmetic, OwnedValue),
    /// The value if it is on that side of the old one.
    Bound(Ordering, OwnedValue),
    CurrentDate(Kind),
    Push(Push),
    AddToSet(Vec<OwnedValue>),
    Pop {
        first: bool,
    },
    Pull(Test),
    PullAll(Vec<OwnedValue>),
    /// One after the other.
    Bits(Vec<(Bits, OwnedValue)>),
}

/// What becomes of the bits of two whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bits {
    And,
    Or,
    Xor,
}

/// How an array grows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Push {
    pub(super) values: Vec<OwnedValue>,
    pub(super) position: Option<i64>,
    pub(super) slice: Option<i64>,
    pub(super) sort: Option<Order>,
}

/// The order of an array's elements.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Order {
    /// Of the elements themselves; whether downwards.
    Whole(bool),
    Fields(Sort),
}

/// What becomes of a value.
pub(super) enum Change {
    Keep,
    Remove,
    Put(OwnedValue),
}

impl Operator {
    /// Whether it makes a value where there is none.
    pub(super) fn creates(&self, is_insert: bool) -> bool {
        match self {
            Self::SetOnInsert(_) => is_insert,
            Self::Unset | Self::Pop { .. } | Self::Pull(_) | Self::PullAll(_) => false,
            _ => true,
        }
    }

    /// # Errors
    /// `TypeMismatch`, `BadValue` for values that it is not for; `name` is the field's, for the text.
    pub(super) fn apply(
        &self,
        name: &str,
        old: Option<Value<'_>>,
        moment: &Moment,
    ) -> Outcome<Change> {
        let put = |value: &OwnedValue| Ok(Change::Put(value.clone()));
        match self {
            Self::Set(value) => put(value),
            Self::SetOnInsert(value) if moment.is_insert => put(value),
            Self::SetOnInsert(_) => Ok(Change::Keep),
            Self::Unset => Ok(Change::Remove),
            Self::Arithmetic(how, operand) => arithmetic(*how, name, old, operand),
            Self::Bound(side, value) => match old {
                Some(old) if compare(value.get(), old) != *side => Ok(Change::Keep),
                _ => put(value),
            },
            Self::CurrentDate(kind) => Ok(Change::Put(moment.value(*kind))),
            Self::Push(push) => Ok(Change::Put(push.apply(elements(name, "$push", old)?))),
            Self::AddToSet(values) => {
                let mut all = elements(name, "$addToSet", old)?;
                add_new(&mut all, values);
                Ok(Change::Put(array_of(&all)))
            }
            Self::Pop { first } => shrink(name, "$pop", old, |all| match *first {
                true if !all.is_empty() => drop(all.remove(0)),
                _ => drop(all.pop()),
            }),
            Self::Pull(test) => {
                let failed = Failed::default();
                let change = shrink(name, "$pull", old, |all| {
                    all.retain(|value| !test.holds_for(*value, &failed))
                })?;
                failed.or(change)
            }
            Self::PullAll(values) => shrink(name, "$pullAll", old, |all| {
                let mut gone: Vec<_> = values.iter().map(|gone| gone.get()).collect();
                gone.sort_by(|a, b| compare(*a, *b));
                all.retain(|value| place_in(&gone, *value).is_err());
            }),
            Self::Bits(steps) => {
                let mut value = old.map_or_else(|| OwnedValue::int32(0), Value::to_owned);
                for (bits, operand) in steps {
                    value = bits.of(name, value.get(), operand.get())?;
                }
                Ok(Change::Put(value))
            }
        }
    }
}

/// Where `value` is in `sorted`.
fn place_in(sorted: &[Value<'_>], value: Value<'_>) -> Result<usize, usize> {
    sorted.binary_search_by(|known| compare(*known, value))
}

/// Appends those of `values` that `all` does not have, each once, in their order. The few are sorted, and the many looked up there.
fn add_new<'a>(all: &mut Vec<Value<'a>>, values: &'a [OwnedValue]) {
    let mut new: Vec<_> = values.iter().map(OwnedValue::get).enumerate().collect();
    new.sort_by(|(_, a), (_, b)| compare(*a, *b));
    new.dedup_by(|(_, a), (_, b)| equal(*a, *b));
    let sorted: Vec<Value<'_>> = new.iter().map(|(_, value)| *value).collect();
    let mut is_known = vec![false; sorted.len()];
    for value in all.iter() {
        if let Ok(at) = place_in(&sorted, *value)
            && let Some(known) = is_known.get_mut(at)
        {
            *known = true;
        }
    }
    let mut left: Vec<_> = new.into_iter().zip(is_known).collect();
    left.retain(|(_, known)| !known);
    left.sort_unstable_by_key(|((at, _), _)| *at);
    all.extend(left.into_iter().map(|((_, value), _)| value));
}

impl Bits {
    /// An int32 of two int32s, else an int64.
    fn of(self, name: &str, old: Value<'_>, operand: Value<'_>) -> Outcome<OwnedValue> {
        let whole = |value: Value<'_>| {
            let is_whole = matches!(value.kind, Kind::Int32 | Kind::Int64);
            value.fixed_i64().filter(|_| is_whole)
        };
        let (Some(a), Some(b)) = (whole(old), whole(operand)) else {
            let text = format!(
                "Cannot apply $bit to a value of non-integral type: the field {name} is of type {}",
                old.kind.name()
            );
            return Err(Refusal::bad_value(text));
        };
        let made = match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        };
        let is_wide = [old, operand].iter().any(|it| it.kind == Kind::Int64);
        let narrow = i32::try_from(made).ok().filter(|_| !is_wide);
        Ok(narrow.map_or_else(|| OwnedValue::int64(made), OwnedValue::int32))
    }
}

fn arithmetic(
    how: Arithmetic,
    name: &str,
    old: Option<Value<'_>>,
    operand: &OwnedValue,
) -> Outcome<Change> {
    let zero = OwnedValue::int32(0);
    match (old, how) {
        (None, Arithmetic::Add) => Ok(Change::Put(operand.clone())),
        (None, Arithmetic::Multiply) => how.of(operand.get(), zero.get()).map(Change::Put),
        (Some(old), _) if !old.kind.is_number() => {
            let text = format!(
                "Cannot apply an arithmetic operator to a value of non-numeric type. The field '{name}' is of type {}",
                old.kind.name()
            );
            Err(Refusal::type_mismatch(text))
        }
        (Some(old), _) => {
            let made = how.of(old, operand.get())?;
            // A zero stays what it is, with its sign.
            let is_same = made.kind == old.kind && !matches!(old.kind, Kind::Int32 | Kind::Int64);
            let is_same = is_same && is_zero(old);
            Ok(match is_same && equal(made.get(), old) {
                true => Change::Keep,
                false => Change::Put(made),
            })
        }
    }
}

fn is_zero(value: Value<'_>) -> bool {
    Number::of(value).is_some_and(|number| number.compare(Number::Int(0)).is_eq())
}

/// The elements of an array; none where there is nothing.
fn elements<'a>(name: &str, operator: &str, old: Option<Value<'a>>) -> Outcome<Vec<Value<'a>>> {
    let Some(old) = old else {
        return Ok(Vec::new());
    };
    let wrong = || {
        let text = format!(
            "The field '{name}' must be an array for {operator} but is {} of type {}",
            show(old),
            old.kind.name()
        );
        let code = match operator {
            "$pop" => Code::TypeMismatch,
            _ => Code::BadValue,
        };
        Refusal::new(code, text)
    };
    let elements = old.as_array().ok_or_else(wrong)?;
    Ok(elements.iter().map(|element| element.value).collect())
}

fn shrink<'a>(
    name: &str,
    operator: &str,
    old: Option<Value<'a>>,
    change: impl FnOnce(&mut Vec<Value<'a>>),
) -> Outcome<Change> {
    if old.is_none() {
        return Ok(Change::Keep);
    }
    let mut all = elements(name, operator, old)?;
    change(&mut all);
    Ok(Change::Put(array_of(&all)))
}

/// An array of `values`.
pub(super) fn array_of(values: &[Value<'_>]) -> OwnedValue {
    let mut array = Builder::new();
    for (at, value) in values.iter().enumerate() {
        array.value(at.to_string(), *value);
    }
    OwnedValue {
        kind: Kind::Array,
        bytes: array.finish(),
    }
}

impl Push {
    fn apply<'a>(&'a self, mut all: Vec<Value<'a>>) -> OwnedValue {
        let len = all.len();
        let place = |position: i64| {
            let distance = usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX);
            if position < 0 {
                len.saturating_sub(distance)
            } else {
                distance.min(len)
            }
        };
        let at = self.position.map_or(len, place);
        all.splice(at..at, self.values.iter().map(OwnedValue::get));
        match &self.sort {
            Some(Order::Whole(is_descending)) => all.sort_by(|a, b| match is_descending {
                true => compare(*b, *a),
                false => compare(*a, *b),
            }),
            Some(Order::Fields(sort)) => all.sort_by_cached_key(|value| {
                let document = value.as_document().unwrap_or(Document::EMPTY);
                sort.key_of(document)
            }),
            None => {}
        }
        if let Some(slice) = self.slice {
            let kept = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX);
            match slice < 0 {
                true => drop(all.drain(..all.len().saturating_sub(kept))),
                false => all.truncate(kept),
            }
        }
        array_of(&all)
    }
}
