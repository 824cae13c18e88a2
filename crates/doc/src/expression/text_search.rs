//! `$regexMatch`, `$regexFind`, `$regexFindAll`.

use crate::build::Builder;
use crate::code::Code;
use crate::compare::regex_parts;
use crate::raw::{Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};
use crate::regex::{Captured, Pattern};
use crate::watch::step;

use super::function::{Arguments, Function, Made, argument, flag, null};
use super::string::place_value;

/// Most matches of one value.
const MATCHES_MAX: usize = 1 << 20;

/// Text and pattern, where both are there.
fn parts<'a>(name: &str, arguments: Arguments<'a>) -> Outcome<Option<(&'a str, Pattern)>> {
    let input = argument(arguments, 0);
    let regex = argument(arguments, 1);
    let text = match input {
        Some(input) if input.kind == Kind::String => input.as_str(),
        Some(_) => {
            let text = format!("{name} needs 'input' to be of type string");
            return Err(Refusal::new(Code::RegexInput, text));
        }
        None => None,
    };
    let options = match argument(arguments, 2) {
        Some(options) => {
            let wrong = || {
                Refusal::new(
                    Code::RegexOptionsType,
                    format!("{name} needs 'options' to be of type string"),
                )
            };
            Some(
                options
                    .as_str()
                    .filter(|_| options.kind == Kind::String)
                    .ok_or_else(wrong)?,
            )
        }
        None => None,
    };
    let own;
    let (pattern, own) = match regex {
        None => return Ok(None),
        Some(regex) if regex.kind == Kind::Regex => {
            let (pattern, options) = regex_parts(regex.bytes);
            own = String::from_utf8_lossy(options).into_owned();
            (
                std::str::from_utf8(pattern).unwrap_or_default(),
                own.as_str(),
            )
        }
        Some(regex) => match regex.as_str().filter(|_| regex.kind == Kind::String) {
            Some(text) => (text, ""),
            None => {
                let text = format!("{name} needs 'regex' to be of type string or regex");
                return Err(Refusal::new(Code::RegexType, text));
            }
        },
    };
    if !own.is_empty() && options.is_some() {
        let text =
            format!("{name}: found regex option(s) specified in both 'regex' and 'option' fields");
        return Err(Refusal::new(Code::RegexBothOptions, text));
    }
    let pattern = Pattern::new(pattern, options.unwrap_or(own))?;
    Ok(text.map(|text| (text, pattern)))
}

pub(super) fn is_match(function: &Function, arguments: Arguments<'_>) -> Made {
    match parts(function.name, arguments)? {
        Some((text, pattern)) => flag(pattern.is_match(text)?),
        None => flag(false),
    }
}

/// Counts characters up to places that only rise, so that each byte is looked at once.
#[derive(Default)]
struct Characters {
    bytes: usize,
    count: usize,
}

impl Characters {
    fn before(&mut self, text: &str, at: usize) -> usize {
        let more = text.get(self.bytes..at).unwrap_or_default();
        self.count += more.chars().count();
        self.bytes = at.max(self.bytes);
        self.count
    }
}

/// A match as it is told: the text, where it begins in characters, and its groups.
fn described(text: &str, groups: &Captured, characters: &mut Characters) -> Vec<u8> {
    let part = |span: &Option<(usize, usize)>| match span {
        Some((from, to)) => OwnedValue::string(text.get(*from..*to).unwrap_or_default()),
        None => Value::NULL.to_owned(),
    };
    let mut out = Builder::new();
    if let Some((whole, groups)) = groups.split_first() {
        let from = whole.map_or(0, |(from, _)| from);
        let before = characters.before(text, from);
        out.value("match", part(whole).get());
        out.value("idx", place_value(before).get());
        out.value("captures", OwnedValue::array(groups.iter().map(part)).get());
    }
    out.finish()
}

pub(super) fn find(function: &Function, arguments: Arguments<'_>) -> Made {
    let Some((text, pattern)) = parts(function.name, arguments)? else {
        return null();
    };
    match pattern.within(text)?.captures(0)? {
        Some(groups) => {
            let found = described(text, &groups, &mut Characters::default());
            Ok(Some(OwnedValue::document(found)))
        }
        None => null(),
    }
}

pub(super) fn find_all(function: &Function, arguments: Arguments<'_>) -> Made {
    let mut found: Vec<OwnedValue> = Vec::new();
    if let Some((text, pattern)) = parts(function.name, arguments)? {
        let within = pattern.within(text)?;
        let mut characters = Characters::default();
        let mut from = 0;
        let mut bytes = 0;
        while let Some(groups) = within.captures(from)? {
            step()?;
            let (begin, end) = groups.first().copied().flatten().unwrap_or((from, from));
            let one = described(text, &groups, &mut characters);
            bytes += one.len();
            found.push(OwnedValue::document(one));
            if found.len() > MATCHES_MAX || bytes > super::function::BYTES_MAX {
                let text =
                    "$regexFindAll: the size of buffer to store output exceeded the 64MB limit";
                return Err(Refusal::new(Code::RegexTooMuch, text));
            }
            // Behind an empty match it goes on one character later.
            from = match end > begin {
                true => end,
                false => {
                    end + text
                        .get(end..)
                        .and_then(|rest| rest.chars().next())
                        .map_or(1, char::len_utf8)
                }
            };
            if from >= text.len() {
                break;
            }
        }
    }
    Ok(Some(OwnedValue::array(found)))
}
