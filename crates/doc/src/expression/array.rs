//! Arrays, documents, and what is computed over many values.

use std::collections::BTreeMap;

use crate::arithmetic::mean;
use crate::build::Builder;
use crate::code::Code;
use crate::compare::{compare, equal};
use crate::raw::{Document, Element, Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};

use super::arithmetic::Operand;
use super::function::{
    Arguments, Function, Made, any_null, argument, array, counted, flag, kind_of, null,
};
use super::function::{BYTES_MAX, Growing, within_bound};
use super::string::place;

/// Bytes of an array without elements.
const EMPTY_BYTES: usize = 5;

fn elements(value: Value<'_>) -> Option<Vec<Value<'_>>> {
    let array = value.as_array()?;
    Some(array.iter().map(|element| element.value).collect())
}

fn refuse<T>(code: Code, text: String) -> Outcome<T> {
    Err(Refusal::new(code, text))
}

fn owned(value: Option<Value<'_>>) -> Made {
    Ok(value.map(Value::to_owned))
}

pub(super) fn is_array(_: &Function, arguments: Arguments<'_>) -> Made {
    flag(argument(arguments, 0).is_some_and(|value| value.kind == Kind::Array))
}

pub(super) fn size(_: &Function, arguments: Arguments<'_>) -> Made {
    let value = arguments.first().copied().flatten();
    match value.and_then(elements) {
        Some(all) => counted(all.len()),
        None => refuse(
            Code::Size,
            format!(
                "The argument to $size must be an array, but was of type: {}",
                kind_of(value)
            ),
        ),
    }
}

/// The element at a place, from the end where it is negative.
fn at(all: &[Value<'_>], place: i64) -> Made {
    let place = match usize::try_from(place) {
        Ok(place) => Some(place),
        Err(_) => usize::try_from(place.unsigned_abs())
            .ok()
            .and_then(|back| all.len().checked_sub(back)),
    };
    owned(place.and_then(|place| all.get(place)).copied())
}

pub(super) fn element_at(_: &Function, arguments: Arguments<'_>) -> Made {
    let (Some(array), Some(place)) = (argument(arguments, 0), argument(arguments, 1)) else {
        return null();
    };
    let Some(all) = elements(array) else {
        let text = format!(
            "$arrayElemAt's first argument must be an array, but is {}",
            array.kind.name()
        );
        return refuse(Code::ElementOf, text);
    };
    if !place.kind.is_number() {
        let text = format!(
            "$arrayElemAt's second argument must be a numeric value, but is {}",
            place.kind.name()
        );
        return refuse(Code::ElementPlace, text);
    }
    let whole = place
        .as_whole()
        .filter(|whole| i32::try_from(*whole).is_ok());
    match whole {
        Some(whole) => at(&all, whole),
        None => refuse(
            Code::ElementPlaceRange,
            format!(
                "$arrayElemAt's second argument must be representable as a 32-bit integer: {}",
                crate::show(place)
            ),
        ),
    }
}

/// `$first`, `$last`.
pub(super) fn end(function: &Function, arguments: Arguments<'_>) -> Made {
    let Some(array) = argument(arguments, 0) else {
        return null();
    };
    match elements(array) {
        Some(all) => at(&all, if function.name == "$first" { 0 } else { -1 }),
        None => refuse(
            Code::ElementOf,
            format!(
                "{}'s argument must be an array, but is {}",
                function.name,
                array.kind.name()
            ),
        ),
    }
}

/// `n` and the elements of `input`.
fn some<'a>(name: &str, arguments: Arguments<'a>) -> Outcome<(usize, Vec<Value<'a>>)> {
    let count = arguments.first().copied().flatten();
    let whole = count.and_then(Value::as_whole).filter(|whole| *whole > 0);
    let wrong = || {
        Refusal::new(
            Code::ManyCount,
            format!("{name}: 'n' must be a whole number that is greater than 0"),
        )
    };
    let count = usize::try_from(whole.ok_or_else(wrong)?).map_err(|_| wrong())?;
    let input = arguments.get(1).copied().flatten();
    let wrong = || {
        Refusal::new(
            Code::ManyInput,
            format!("{name}: input must be an array, and is {}", kind_of(input)),
        )
    };
    Ok((count, input.and_then(elements).ok_or_else(wrong)?))
}

/// `$firstN`, `$lastN`.
pub(super) fn ends(function: &Function, arguments: Arguments<'_>) -> Made {
    let (count, all) = some(function.name, arguments)?;
    let kept = match function.name {
        "$firstN" => all.get(..count.min(all.len())),
        _ => all.get(all.len().saturating_sub(count)..),
    };
    Ok(Some(OwnedValue::array(
        kept.unwrap_or_default().iter().copied(),
    )))
}

/// `$maxN`, `$minN`.
pub(super) fn extremes(function: &Function, arguments: Arguments<'_>) -> Made {
    let (count, mut all) = some(function.name, arguments)?;
    all.retain(|value| !value.is_null());
    all.sort_by(|a, b| match function.name {
        "$maxN" => compare(*b, *a),
        _ => compare(*a, *b),
    });
    all.truncate(count);
    Ok(Some(OwnedValue::array(all)))
}

pub(super) fn slice(_: &Function, arguments: Arguments<'_>) -> Made {
    if any_null(arguments) {
        return null();
    }
    let array = argument(arguments, 0).unwrap_or(Value::NULL);
    let Some(all) = elements(array) else {
        let text = format!(
            "First argument to $slice must be an array, but is of type: {}",
            array.kind.name()
        );
        return refuse(Code::SliceOf, text);
    };
    let number = |at: usize, numeric: Code, range: Code| {
        let value = argument(arguments, at).unwrap_or(Value::NULL);
        if !value.kind.is_number() {
            let text = format!(
                "an argument to $slice must be numeric, but is of type: {}",
                value.kind.name()
            );
            return refuse(numeric, text);
        }
        let whole = value
            .as_whole()
            .filter(|whole| i32::try_from(*whole).is_ok());
        let wrong = || {
            Refusal::new(
                range,
                format!(
                    "an argument to $slice can't be represented as a 32-bit integer: {}",
                    crate::show(value)
                ),
            )
        };
        whole.ok_or_else(wrong)
    };
    let first = number(1, Code::SliceSecond, Code::SliceSecondRange)?;
    let size = |number: i64| usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    let back = |number: i64| all.len().saturating_sub(size(number));
    let kept = match arguments.len() {
        2 if first < 0 => all.get(back(first)..),
        2 => all.get(..size(first).min(all.len())),
        _ => {
            let count = number(2, Code::SliceThird, Code::SliceThirdRange)?;
            if count <= 0 {
                let text = format!("Third argument to $slice must be positive: {count}");
                return refuse(Code::SliceThirdPositive, text);
            }
            let from = if first < 0 {
                back(first)
            } else {
                size(first).min(all.len())
            };
            all.get(from..from.saturating_add(size(count)).min(all.len()))
        }
    };
    Ok(Some(OwnedValue::array(
        kept.unwrap_or_default().iter().copied(),
    )))
}

pub(super) fn concat(_: &Function, arguments: Arguments<'_>) -> Made {
    let mut all = Vec::new();
    let mut bytes = 0;
    for at in 0..arguments.len() {
        // What is behind it is not looked at.
        let Some(value) = argument(arguments, at) else {
            return null();
        };
        let Some(more) = elements(value) else {
            let text = format!(
                "$concatArrays only supports arrays, not {}",
                value.kind.name()
            );
            return refuse(Code::ConcatArrays, text);
        };
        // The elements of all have at least the bytes that they have here.
        bytes += value.bytes.len().saturating_sub(EMPTY_BYTES);
        within_bound(bytes)?;
        all.extend(more);
    }
    array(all).map(Some)
}

pub(super) fn reverse(_: &Function, arguments: Arguments<'_>) -> Made {
    let Some(value) = argument(arguments, 0) else {
        return null();
    };
    match elements(value) {
        Some(all) => Ok(Some(OwnedValue::array(all.into_iter().rev()))),
        None => refuse(
            Code::Reverse,
            format!(
                "The argument to $reverseArray must be an array, but was of type: {}",
                value.kind.name()
            ),
        ),
    }
}

pub(super) fn contains(_: &Function, arguments: Arguments<'_>) -> Made {
    let array = arguments.get(1).copied().flatten();
    let Some(all) = array.and_then(elements) else {
        return refuse(
            Code::InArray,
            format!(
                "$in requires an array as a second argument, found: {}",
                kind_of(array)
            ),
        );
    };
    let value = arguments.first().copied().flatten();
    flag(value.is_some_and(|value| all.iter().any(|known| equal(*known, value))))
}

pub(super) fn index_of(function: &Function, arguments: Arguments<'_>) -> Made {
    let Some(array) = argument(arguments, 0) else {
        return null();
    };
    let Some(all) = elements(array) else {
        let text = format!(
            "$indexOfArray requires an array as a first argument, found: {}",
            array.kind.name()
        );
        return refuse(Code::IndexOfArray, text);
    };
    let from = place(function.name, arguments, 2)?.unwrap_or(0);
    let to = place(function.name, arguments, 3)?
        .unwrap_or(usize::MAX)
        .min(all.len());
    let value = arguments.get(1).copied().flatten();
    let within = all.get(from..to).unwrap_or_default();
    let found = value.and_then(|value| within.iter().position(|known| equal(*known, value)));
    match found {
        Some(at) => counted(at + from),
        None => Ok(Some(OwnedValue::int32(-1))),
    }
}

pub(super) fn range(_: &Function, arguments: Arguments<'_>) -> Made {
    let number = |at: usize, numeric: Code, range: Code| match arguments.get(at) {
        None => Ok(1),
        Some(value) => {
            let kind = kind_of(*value);
            let value = value.filter(|value| value.kind.is_number());
            let wrong = || {
                Refusal::new(
                    numeric,
                    format!("$range requires numeric arguments, found one of type: {kind}"),
                )
            };
            let whole = value.ok_or_else(wrong)?.as_whole();
            let wrong = || {
                Refusal::new(
                    range,
                    "$range requires arguments that can be represented as a 32-bit integer"
                        .to_owned(),
                )
            };
            whole
                .filter(|whole| i32::try_from(*whole).is_ok())
                .ok_or_else(wrong)
        }
    };
    let start = number(0, Code::RangeStart, Code::RangeStartRange)?;
    let end = number(1, Code::RangeEnd, Code::RangeEndRange)?;
    let step = number(2, Code::RangeStep, Code::RangeStepRange)?;
    if step == 0 {
        return refuse(
            Code::RangeStepZero,
            "$range requires a non-zero step value".to_owned(),
        );
    }
    let mut out = Builder::new();
    let (mut at, mut count) = (start, 0u64);
    while (step > 0 && at < end) || (step < 0 && at > end) {
        out.i32(count.to_string(), i32::try_from(at).unwrap_or_default());
        count += 1;
        at += step;
        if out.len() > BYTES_MAX {
            return refuse(
                Code::MemoryLimit,
                "$range would use too much memory".to_owned(),
            );
        }
    }
    Ok(Some(OwnedValue {
        kind: Kind::Array,
        bytes: out.finish(),
    }))
}

pub(super) fn zip(_: &Function, arguments: Arguments<'_>) -> Made {
    let Some(inputs) = argument(arguments, 0) else {
        return null();
    };
    let Some(inputs) = elements(inputs) else {
        return refuse(
            Code::ZipInputs,
            format!(
                "inputs must be an array of expressions, found {}",
                inputs.kind.name()
            ),
        );
    };
    let is_longest = argument(arguments, 1).is_some_and(|flag| flag.as_bool() == Some(true));
    let defaults = argument(arguments, 2).and_then(elements);
    if defaults.is_some() && !is_longest {
        let text = "cannot specify defaults unless useLongestLength is true";
        return refuse(Code::ZipDefaults, text.to_owned());
    }
    if inputs.is_empty() {
        return refuse(
            Code::ZipMissing,
            "must provide at least one array to zip".to_owned(),
        );
    }
    if defaults
        .as_ref()
        .is_some_and(|defaults| defaults.len() != inputs.len())
    {
        let text = "defaults and inputs must have the same length";
        return refuse(Code::ZipLengths, text.to_owned());
    }
    let mut rows = Vec::new();
    for input in &inputs {
        match elements(*input) {
            Some(row) => rows.push(row),
            None if input.is_null() => return null(),
            None => {
                return refuse(
                    Code::ZipElement,
                    format!(
                        "$zip found a non-array expression in input: {}",
                        crate::show(*input)
                    ),
                );
            }
        }
    }
    let lengths = rows.iter().map(Vec::len);
    let count = if is_longest {
        lengths.max()
    } else {
        lengths.min()
    }
    .unwrap_or(0);
    let one = |at: usize| {
        let cells = rows.iter().enumerate().map(|(row, values)| {
            let instead = || defaults.as_ref().and_then(|defaults| defaults.get(row));
            values
                .get(at)
                .or_else(instead)
                .copied()
                .unwrap_or(Value::NULL)
        });
        array(cells)
    };
    let mut out = Growing::default();
    for at in 0..count {
        out.push(one(at)?.get())?;
    }
    Ok(Some(out.finish()))
}

pub(super) fn of_object(_: &Function, arguments: Arguments<'_>) -> Made {
    let Some(value) = argument(arguments, 0) else {
        return null();
    };
    if value.kind != Kind::Document {
        let text = format!(
            "$objectToArray requires a document input, found: {}",
            value.kind.name()
        );
        return refuse(Code::ObjectToArray, text);
    }
    let pair = |element: Element<'_>| {
        let mut out = Builder::new();
        out.str("k", element.name_str()).value("v", element.value);
        OwnedValue::document(out.finish())
    };
    Ok(Some(OwnedValue::array(
        Document(value.bytes).iter().map(pair),
    )))
}

pub(super) fn to_object(_: &Function, arguments: Arguments<'_>) -> Made {
    let Some(value) = argument(arguments, 0) else {
        return null();
    };
    let Some(all) = elements(value) else {
        let text = format!(
            "$arrayToObject requires an array input, found: {}",
            value.kind.name()
        );
        return refuse(Code::ArrayToObject, text);
    };
    let mut fields = Fields::default();
    for item in all {
        let pair = match (item.kind, elements(item)) {
            (Kind::Array, Some(pair)) => match pair.as_slice() {
                [name, value] => Some((*name, *value)),
                _ => None,
            },
            (Kind::Document, _) if Document(item.bytes).iter().count() == 2 => {
                let document = Document(item.bytes);
                document.get("k").zip(document.get("v"))
            }
            _ => None,
        };
        let Some((name, value)) = pair else {
            let text = "$arrayToObject requires an array of key-value pairs, either [k, v] or {k: …, v: …}";
            return refuse(Code::ArrayToObjectPair, text.to_owned());
        };
        let name = name.as_str().filter(|_| name.kind == Kind::String);
        let wrong = || {
            Refusal::new(
                Code::ArrayToObjectKey,
                "$arrayToObject requires keys that are strings".to_owned(),
            )
        };
        let name = name.ok_or_else(wrong)?;
        if name.contains('\0') {
            return refuse(
                Code::ArrayToObjectNull,
                "Key field cannot contain an embedded null byte".to_owned(),
            );
        }
        fields.put(name.as_bytes(), value);
    }
    Ok(Some(OwnedValue::document(fields.finish())))
}

/// Fields of a document that is made: each name once, where it came first, with the value that came last.
#[derive(Default)]
struct Fields<'a> {
    all: Vec<(&'a [u8], Value<'a>)>,
    places: BTreeMap<&'a [u8], usize>,
}

impl<'a> Fields<'a> {
    fn put(&mut self, name: &'a [u8], value: Value<'a>) {
        let place = *self.places.entry(name).or_insert(self.all.len());
        match self.all.get_mut(place) {
            Some((_, known)) => *known = value,
            None => self.all.push((name, value)),
        }
    }

    fn put_all(&mut self, document: Document<'a>) {
        for element in document {
            self.put(element.name, element.value);
        }
    }

    fn finish(self) -> Vec<u8> {
        let mut out = Builder::new();
        for (name, value) in self.all {
            out.value(name, value);
        }
        out.finish()
    }
}

pub(super) fn merge(_: &Function, arguments: Arguments<'_>) -> Made {
    let mut all = Fields::default();
    let over_array = match arguments {
        [Some(only)] => elements(*only),
        _ => None,
    };
    let values = match over_array {
        Some(values) => values.into_iter().map(Some).collect(),
        None => arguments.to_vec(),
    };
    for value in values
        .into_iter()
        .flatten()
        .filter(|value| !value.is_null())
    {
        if value.kind != Kind::Document {
            let text = format!(
                "$mergeObjects requires object inputs, but input is of type {}",
                value.kind.name()
            );
            return refuse(Code::MergeObjects, text);
        }
        all.put_all(Document(value.bytes));
    }
    Ok(Some(OwnedValue::document(all.finish())))
}

/// The fields of both; those of the second count.
pub fn merged(first: Document<'_>, second: Document<'_>) -> Vec<u8> {
    let mut all = Fields::default();
    all.put_all(first);
    all.put_all(second);
    all.finish()
}

fn field<'a>(name: &str, arguments: Arguments<'a>) -> Outcome<&'a str> {
    let field = arguments.first().copied().flatten();
    let text = field
        .filter(|field| field.kind == Kind::String)
        .and_then(Value::as_str);
    let wrong = || {
        Refusal::new(
            Code::FieldName,
            format!(
                "{name} requires 'field' to evaluate to type String, but got {}",
                kind_of(field)
            ),
        )
    };
    text.ok_or_else(wrong)
}

pub(super) fn get_field(function: &Function, arguments: Arguments<'_>) -> Made {
    let name = field(function.name, arguments)?;
    let Some(input) = arguments.get(1).copied().flatten() else {
        return Ok(None);
    };
    match input.kind {
        Kind::Document => owned(Document(input.bytes).get(name)),
        _ if input.is_null() => null(),
        _ => Ok(None),
    }
}

/// `$setField`, `$unsetField`.
pub(super) fn set_field(function: &Function, arguments: Arguments<'_>) -> Made {
    let name = field(function.name, arguments)?;
    if name.contains('\0') {
        let text = "FieldPath field names may not contain '\\0'.".to_owned();
        return refuse(Code::PathNull, text);
    }
    let Some(input) = argument(arguments, 1) else {
        return null();
    };
    if input.kind != Kind::Document {
        let text = format!(
            "{} requires 'input' to evaluate to type Object, but got {}",
            function.name,
            input.kind.name()
        );
        return refuse(Code::FieldInput, text);
    }
    let new = arguments.get(2).copied().flatten();
    let mut out = Builder::new();
    let mut is_done = false;
    for element in Document(input.bytes) {
        match (element.name == name.as_bytes(), new) {
            (false, _) => drop(out.value(element.name, element.value)),
            (true, Some(new)) => {
                is_done = true;
                out.value(element.name, new);
            }
            (true, None) => {}
        }
    }
    if let Some(new) = new.filter(|_| !is_done) {
        out.value(name, new);
    }
    Ok(Some(OwnedValue::document(out.finish())))
}

pub(super) fn bson_size(_: &Function, arguments: Arguments<'_>) -> Made {
    let Some(value) = argument(arguments, 0) else {
        return null();
    };
    match value.kind {
        Kind::Document => counted(value.bytes.len()),
        other => refuse(
            Code::BsonSize,
            format!(
                "$bsonSize requires a document input, found: {}",
                other.name()
            ),
        ),
    }
}

/// The values that an operator is over: those of the only argument, where that is an array.
fn over<'a>(arguments: Arguments<'a>) -> Vec<Value<'a>> {
    match arguments {
        [Some(only)] => elements(*only).unwrap_or_else(|| vec![*only]),
        _ => arguments.iter().copied().flatten().collect(),
    }
}

fn numbers(arguments: Arguments<'_>) -> Outcome<Vec<Operand>> {
    let all = over(arguments)
        .into_iter()
        .filter_map(|value| Operand::binary(value).transpose());
    all.collect()
}

pub(super) fn sum(_: &Function, arguments: Arguments<'_>) -> Made {
    let all = over(arguments).into_iter().filter_map(Operand::of);
    Ok(Some(all.fold(Operand::Int(0), Operand::plus).value()))
}

pub(super) fn average(_: &Function, arguments: Arguments<'_>) -> Made {
    let all: Vec<_> = over(arguments)
        .into_iter()
        .filter_map(Operand::of)
        .collect();
    if all.is_empty() {
        return null();
    }
    let count = all.len() as u64;
    let sum = all.into_iter().reduce(|a, b| match (a, b) {
        (Operand::Decimal(_), _) | (_, Operand::Decimal(_)) => a.plus(b),
        (a, b) => Operand::Double(a.double() + b.double()),
    });
    Ok(sum.map(|sum| mean(sum.value().get(), count)))
}

/// `$max`, `$min`.
pub(super) fn extreme(function: &Function, arguments: Arguments<'_>) -> Made {
    let all = over(arguments).into_iter().filter(|value| !value.is_null());
    let found = match function.name {
        "$max" => all.max_by(|a, b| compare(*a, *b)),
        _ => all.min_by(|a, b| compare(*a, *b)),
    };
    Ok(Some(found.unwrap_or(Value::NULL).to_owned()))
}

/// `$stdDevPop`, `$stdDevSamp`.
pub(super) fn deviation(function: &Function, arguments: Arguments<'_>) -> Made {
    let mut state = super::Deviation::default();
    numbers(arguments)?
        .into_iter()
        .for_each(|number| state.add(number.double()));
    Ok(Some(state.value(function.name == "$stdDevSamp")))
}
