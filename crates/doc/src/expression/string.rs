//! Strings.

use crate::code::Code;
use crate::raw::{Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};

use super::convert::text_of;
use super::function::{
    Arguments, Function, Made, any_null, argument, array, counted, kind_of, null, whole,
};
use super::function::{BYTES_MAX, bounded};

fn string(text: &str) -> Made {
    Ok(Some(OwnedValue::string(text)))
}

/// The text of a string.
fn text<'a>(value: Value<'a>, wrong: impl Fn() -> Refusal) -> Outcome<&'a str> {
    match value.kind {
        Kind::String => value.as_str().ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// What a value is as text for the operators that take more than strings; empty for none.
fn coerced(value: Option<Value<'_>>) -> Outcome<String> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(String::new());
    };
    let is_text = value.kind.is_number()
        || matches!(
            value.kind,
            Kind::String | Kind::Symbol | Kind::Code | Kind::Date | Kind::Timestamp
        );
    match text_of(value).filter(|_| is_text) {
        Some(text) => Ok(text),
        None => Err(Refusal::new(
            Code::ToText,
            format!(
                "can't convert from BSON type {} to String",
                value.kind.name()
            ),
        )),
    }
}

pub(super) fn concat(_: &Function, arguments: Arguments<'_>) -> Made {
    let mut all = String::new();
    for at in 0..arguments.len() {
        // What is behind it is not looked at.
        let Some(value) = argument(arguments, at) else {
            return null();
        };
        all.push_str(text(value, || {
            let text = format!("$concat only supports strings, not {}", value.kind.name());
            Refusal::new(Code::Concat, text)
        })?);
        if all.len() > BYTES_MAX {
            return bounded(OwnedValue::string(&all)).map(Some);
        }
    }
    string(&all)
}

pub(super) fn case(function: &Function, arguments: Arguments<'_>) -> Made {
    let text = coerced(argument(arguments, 0))?;
    string(&match function.name {
        "$toUpper" => text.to_ascii_uppercase(),
        _ => text.to_ascii_lowercase(),
    })
}

pub(super) fn compare_case(_: &Function, arguments: Arguments<'_>) -> Made {
    let [a, b] = [0, 1].map(|at| coerced(argument(arguments, at)));
    let order = a?.to_ascii_uppercase().cmp(&b?.to_ascii_uppercase());
    Ok(Some(OwnedValue::int32(order as i32)))
}

pub(super) fn length(function: &Function, arguments: Arguments<'_>) -> Made {
    let value = arguments.first().copied().flatten();
    let is_bytes = function.name == "$strLenBytes";
    let wrong = || {
        let code = if is_bytes {
            Code::LengthBytes
        } else {
            Code::LengthCharacters
        };
        let text = format!(
            "{} requires a string argument, found: {}",
            function.name,
            kind_of(value)
        );
        Refusal::new(code, text)
    };
    let text = text(value.ok_or_else(wrong)?, wrong)?;
    counted(if is_bytes {
        text.len()
    } else {
        text.chars().count()
    })
}

pub(super) fn binary_size(_: &Function, arguments: Arguments<'_>) -> Made {
    let Some(value) = argument(arguments, 0) else {
        return null();
    };
    match value.kind {
        Kind::String => counted(value.bytes.len().saturating_sub(5)),
        Kind::Binary => counted(value.bytes.len().saturating_sub(5)),
        other => Err(Refusal::new(
            Code::BinarySize,
            format!(
                "$binarySize requires a string or BinData argument, found: {}",
                other.name()
            ),
        )),
    }
}

/// The numbers of `$substr…`: where to begin and how many, the latter all where it is negative.
fn bounds(name: &str, arguments: Arguments<'_>, codes: [Code; 2]) -> Outcome<[i64; 2]> {
    let one = |at: usize, code, what: &str| {
        let value = argument(arguments, at).filter(|value| value.kind.is_number());
        let number = value.and_then(crate::number::truncated);
        let kind = kind_of(arguments.get(at).copied().flatten());
        let wrong = || {
            Refusal::new(
                code,
                format!("{name}: {what} must be a numeric type (is BSON type {kind})"),
            )
        };
        number.ok_or_else(wrong)
    };
    let [first, second] = codes;
    Ok([one(1, first, "starting index")?, one(2, second, "length")?])
}

pub(super) fn part_of_bytes(_: &Function, arguments: Arguments<'_>) -> Made {
    let text = coerced(argument(arguments, 0))?;
    let codes = [Code::SubstringStart, Code::SubstringLength];
    let [start, length] = bounds("$substrBytes", arguments, codes)?;
    let Ok(start) = usize::try_from(start) else {
        return Err(Refusal::new(
            Code::SubstringNegative,
            format!("$substrBytes: starting index must be non-negative (got: {start})"),
        ));
    };
    if start >= text.len() {
        return string("");
    }
    let end = match usize::try_from(length) {
        Ok(length) => start.saturating_add(length).min(text.len()),
        Err(_) => text.len(),
    };
    if !text.is_char_boundary(start) {
        let text =
            "$substrBytes:  Invalid range, starting index is in the middle of a UTF-8 character.";
        return Err(Refusal::new(Code::SubstringBegin, text));
    }
    match text.get(start..end) {
        Some(part) => string(part),
        None => Err(Refusal::new(
            Code::SubstringEnd,
            "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.",
        )),
    }
}

pub(super) fn part_of_characters(_: &Function, arguments: Arguments<'_>) -> Made {
    let text = coerced(argument(arguments, 0))?;
    let codes = [
        Code::SubstringCharactersStart,
        Code::SubstringCharactersLength,
    ];
    let [start, length] = bounds("$substrCP", arguments, codes)?;
    let negative = |code, what: &str| {
        let text = format!("$substrCP: {what} must be a nonnegative integer.");
        Refusal::new(code, text)
    };
    let start = usize::try_from(start)
        .map_err(|_| negative(Code::SubstringCharactersStartNegative, "the starting index"))?;
    let length = usize::try_from(length)
        .map_err(|_| negative(Code::SubstringCharactersLengthNegative, "length"))?;
    string(&text.chars().skip(start).take(length).collect::<String>())
}

pub(super) fn split(_: &Function, arguments: Arguments<'_>) -> Made {
    let (Some(input), Some(separator)) = (argument(arguments, 0), argument(arguments, 1)) else {
        return null();
    };
    let wrong = |code, which: &str, value: Value<'_>| {
        let kind = value.kind.name();
        let text = format!(
            "$split requires an expression that evaluates to a string as a {which} argument, found: {kind}"
        );
        Refusal::new(code, text)
    };
    let input = text(input, || wrong(Code::SplitInput, "first", input))?;
    let separator = text(separator, || {
        wrong(Code::SplitSeparator, "second", separator)
    })?;
    if separator.is_empty() {
        return Err(Refusal::new(
            Code::SplitEmpty,
            "$split requires a non-empty separator",
        ));
    }
    array(input.split(separator).map(OwnedValue::string)).map(Some)
}

/// `$indexOfBytes`, `$indexOfCP`.
pub(super) fn index_of(function: &Function, arguments: Arguments<'_>) -> Made {
    let name = function.name;
    let Some(input) = argument(arguments, 0) else {
        return null();
    };
    let wrong = |code, which: &str, kind: &str| {
        let text = format!("{name} requires a string as the {which} argument, found: {kind}");
        Refusal::new(code, text)
    };
    let input = text(input, || {
        wrong(Code::IndexInput, "first", input.kind.name())
    })?;
    let token = arguments.get(1).copied().flatten();
    let second = || wrong(Code::IndexToken, "second", kind_of(token));
    let token = text(token.ok_or_else(second)?, second)?;
    let [from, to] = [place(name, arguments, 2)?, place(name, arguments, 3)?];
    let found = match name {
        "$indexOfBytes" => {
            let end = to.unwrap_or(usize::MAX).min(input.len());
            position(input, token, from.unwrap_or(0), end)
        }
        _ => {
            let from = from.unwrap_or(0);
            let count = to.unwrap_or(usize::MAX).saturating_sub(from);
            let within: String = input.chars().skip(from).take(count).collect();
            let is_behind = from > input.chars().count() || to.is_some_and(|to| to < from);
            let at = within.find(token).filter(|_| !is_behind);
            at.and_then(|at| within.get(..at))
                .map(|before| before.chars().count() + from)
        }
    };
    match found {
        Some(at) => counted(at),
        None => Ok(Some(OwnedValue::int32(-1))),
    }
}

/// The first byte of `token` in `from..end`, which may be within characters. What is found begins and ends with a whole one, so the
/// search of texts finds it, whose time is linear whatever the two look like.
fn position(input: &str, token: &str, from: usize, end: usize) -> Option<usize> {
    if from > end {
        return None;
    }
    if token.is_empty() {
        return Some(from);
    }
    let begin = input.ceil_char_boundary(from);
    let within = input.get(begin..input.floor_char_boundary(end))?;
    within.find(token).map(|at| at + begin)
}

/// A place that an argument names, if it does.
pub(super) fn place(name: &str, arguments: Arguments<'_>, at: usize) -> Outcome<Option<usize>> {
    let Some(value) = argument(arguments, at) else {
        return Ok(None);
    };
    let which = if at == 2 {
        "starting index"
    } else {
        "ending index"
    };
    let number = value.as_whole().ok_or_else(|| {
        Refusal::new(
            Code::IndexWhole,
            format!("{name} requires an integral {which}"),
        )
    })?;
    let number = usize::try_from(number).map_err(|_| {
        Refusal::new(
            Code::IndexNegative,
            format!("{name} requires a nonnegative {which}"),
        )
    })?;
    Ok(Some(number))
}

/// White space and null, as MongoDB trims them, in their order.
const WHITE: &[char] = &[
    '\0', '\t', '\n', '\u{B}', '\u{C}', '\r', ' ', '\u{A0}', '\u{1680}', '\u{2000}', '\u{2001}',
    '\u{2002}', '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}',
    '\u{200A}',
];

pub(super) fn trim(function: &Function, arguments: Arguments<'_>) -> Made {
    let name = function.name;
    let Some(input) = argument(arguments, 0) else {
        return null();
    };
    let wrong = |code, what: &str, value: Value<'_>| {
        let text = format!(
            "{name} requires its {what} to be a string, got (of type {})",
            value.kind.name()
        );
        Refusal::new(code, text)
    };
    let input = text(input, || wrong(Code::TrimInput, "input", input))?;
    let given: Vec<char>;
    let chars = match arguments.get(1) {
        Some(Some(chars)) if chars.is_null() => return null(),
        Some(Some(chars)) => {
            let chars = text(*chars, || wrong(Code::TrimCharacters, "'chars'", *chars))?;
            let mut chars: Vec<char> = chars.chars().collect();
            chars.sort_unstable();
            chars.dedup();
            given = chars;
            given.as_slice()
        }
        _ => WHITE,
    };
    let is_gone = |char: char| chars.binary_search(&char).is_ok();
    string(match name {
        "$ltrim" => input.trim_start_matches(is_gone),
        "$rtrim" => input.trim_end_matches(is_gone),
        _ => input.trim_matches(is_gone),
    })
}

/// `$replaceOne`, `$replaceAll`.
pub(super) fn replace(function: &Function, arguments: Arguments<'_>) -> Made {
    let name = function.name;
    let codes = [
        ("input", Code::ReplaceInput),
        ("find", Code::ReplaceFind),
        ("replacement", Code::ReplaceReplacement),
    ];
    for ((what, code), value) in codes.into_iter().zip(arguments) {
        if let Some(value) = value.filter(|value| !value.is_null() && value.kind != Kind::String) {
            let text = format!(
                "{name} requires that '{what}' be a string, found: {}",
                value.kind.name()
            );
            return Err(Refusal::new(code, text));
        }
    }
    if any_null(arguments) {
        return null();
    }
    let part = |at| {
        argument(arguments, at)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (input, find, new) = (part(0), part(1), part(2));
    if name == "$replaceOne" {
        return string(&input.replacen(find, new, 1));
    }
    let count = input.matches(find).count();
    let size = input.len().saturating_add(count.saturating_mul(new.len()));
    match size > 2 * BYTES_MAX {
        true => bounded(OwnedValue::document(vec![0; BYTES_MAX + 1])).map(Some),
        false => string(&input.replace(find, new)),
    }
}

/// How many there are, as a value.
pub(super) fn place_value(at: usize) -> OwnedValue {
    whole(i64::try_from(at).unwrap_or(i64::MAX))
}
