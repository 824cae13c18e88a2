//! Arrays as sets: each value once, in the order of values.

use crate::code::Code;
use crate::compare::{compare, equal as same};
use crate::raw::{Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};

use super::function::truth;
use super::function::{Arguments, Function, Made, any_null, array, flag, kind_of, null};

/// Values that `$setUnion` keeps before it looks which are the same.
const VALUES_KEPT: usize = 1 << 16;

fn values<'a>(name: &str, value: Option<Value<'a>>, code: Code) -> Outcome<Vec<Value<'a>>> {
    match value.and_then(Value::as_array) {
        Some(array) => Ok(array.iter().map(|element| element.value).collect()),
        None => Err(Refusal::new(
            code,
            format!(
                "All operands of {name} must be arrays. One argument is of type: {}",
                kind_of(value)
            ),
        )),
    }
}

fn set<'a>(name: &str, value: Option<Value<'a>>, code: Code) -> Outcome<Vec<Value<'a>>> {
    let mut all = values(name, value, code)?;
    once(&mut all);
    Ok(all)
}

/// Puts them in order, each once.
fn once(all: &mut Vec<Value<'_>>) {
    all.sort_by(|a, b| compare(*a, *b));
    all.dedup_by(|a, b| same(*a, *b));
}

fn has(set: &[Value<'_>], value: Value<'_>) -> bool {
    set.binary_search_by(|known| compare(*known, value)).is_ok()
}

pub(super) fn union(function: &Function, arguments: Arguments<'_>) -> Made {
    let mut all = Vec::new();
    let mut most = VALUES_KEPT;
    for value in arguments {
        // What is behind it is not looked at.
        if any_null(std::slice::from_ref(value)) {
            return null();
        }
        all.extend(values(function.name, *value, Code::SetUnion)?);
        // Arguments that say the same again do not add up.
        if all.len() > most {
            once(&mut all);
            most = most.max(2 * all.len());
        }
    }
    once(&mut all);
    array(all).map(Some)
}

pub(super) fn intersection(function: &Function, arguments: Arguments<'_>) -> Made {
    let mut all: Option<Vec<Value<'_>>> = None;
    for value in arguments {
        // What is behind it is not looked at, nor is anything once nothing is left.
        if any_null(std::slice::from_ref(value)) {
            return null();
        }
        let own = set(function.name, *value, Code::SetIntersection)?;
        let both = match all {
            None => own,
            Some(all) => all.into_iter().filter(|value| has(&own, *value)).collect(),
        };
        if both.is_empty() {
            return Ok(Some(OwnedValue::array(both)));
        }
        all = Some(both);
    }
    Ok(Some(OwnedValue::array(all.unwrap_or_default())))
}

/// In the order of the first one.
pub(super) fn difference(function: &Function, arguments: Arguments<'_>) -> Made {
    if any_null(arguments) {
        return null();
    }
    let [first, second] = arguments else {
        return null();
    };
    let gone = set(function.name, *second, Code::SetDifferenceSecond)?;
    let all = values(function.name, *first, Code::SetDifferenceFirst)?;
    // The first of each that is the same stays: the order is stable.
    let mut left: Vec<_> = all.into_iter().enumerate().collect();
    left.sort_by(|(_, a), (_, b)| compare(*a, *b));
    left.dedup_by(|(_, a), (_, b)| same(*a, *b));
    left.retain(|(_, value)| !has(&gone, *value));
    left.sort_unstable_by_key(|(at, _)| *at);
    let left = left.into_iter().map(|(_, value)| value);
    Ok(Some(OwnedValue::array(left)))
}

pub(super) fn equal(function: &Function, arguments: Arguments<'_>) -> Made {
    let sets = arguments
        .iter()
        .map(|value| set(function.name, *value, Code::SetEquals));
    let sets: Vec<_> = sets.collect::<Outcome<_>>()?;
    let is_same = |a: &[Value<'_>], b: &[Value<'_>]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(*a, *b))
    };
    flag(
        sets.windows(2)
            .all(|pair| matches!(pair, [a, b] if is_same(a, b))),
    )
}

pub(super) fn is_subset(_: &Function, arguments: Arguments<'_>) -> Made {
    let [first, second] = arguments else {
        return null();
    };
    let wrong = |which: &str, code, value: Option<Value<'_>>| {
        let text = format!(
            "both operands of $setIsSubset must be arrays. {which} argument is of type: {}",
            kind_of(value)
        );
        Refusal::new(code, text)
    };
    let inner = values("$setIsSubset", *first, Code::SetSubsetFirst)
        .map_err(|_| wrong("First", Code::SetSubsetFirst, *first))?;
    let outer = set("$setIsSubset", *second, Code::SetSubsetSecond)
        .map_err(|_| wrong("Second", Code::SetSubsetSecond, *second))?;
    flag(inner.into_iter().all(|value| has(&outer, value)))
}

fn truths(name: &str, arguments: Arguments<'_>, code: Code) -> Outcome<Vec<bool>> {
    let value = arguments.first().copied().flatten();
    match value
        .filter(|value| value.kind == Kind::Array)
        .and_then(Value::as_array)
    {
        Some(array) => Ok(array.iter().map(|element| truth(element.value)).collect()),
        None => Err(Refusal::new(
            code,
            format!(
                "{name}'s argument must be an array, but is {}",
                kind_of(value)
            ),
        )),
    }
}

pub(super) fn any_true(function: &Function, arguments: Arguments<'_>) -> Made {
    flag(truths(function.name, arguments, Code::AnyElement)?.contains(&true))
}

pub(super) fn all_true(function: &Function, arguments: Arguments<'_>) -> Made {
    flag(!truths(function.name, arguments, Code::AllElements)?.contains(&false))
}
