//! The one look at foreign bytes: lengths, types, terminators, UTF-8, depth.

use crate::code::Code;
use crate::raw::{Kind, u32_at, value_len};
use crate::refusal::{Outcome, Refusal};

/// How deep documents and arrays may lie in each other.
pub const DEPTH_MAX: usize = 100;

/// Looks at all of `bytes`, which are to be one document. The time is linear, nothing is allocated but a place for each level.
///
/// # Errors
/// `InvalidBSON`, with what is wrong and at which byte.
pub fn validate(bytes: &[u8]) -> Outcome<()> {
    let wrong = |at: usize, what: &str| {
        Refusal::new(
            Code::InvalidBson,
            format!("{what} at byte {at} of a document"),
        )
    };
    // Ends of the documents around the place, the innermost last.
    let mut ends = vec![document_end(bytes, 0, bytes.len()).map_err(|what| wrong(0, what))?];
    if ends.first() != Some(&bytes.len()) {
        return Err(wrong(0, "the length is not that of the bytes"));
    }
    let mut at = 4;
    while let Some(end) = ends.last().copied() {
        let byte = bytes.get(at).copied().unwrap_or_default();
        if byte == 0 {
            if at + 1 != end {
                return Err(wrong(at, "a terminator is not at the end"));
            }
            ends.pop();
            at = end;
            continue;
        }
        let kind = Kind::of(byte).ok_or_else(|| wrong(at, "an unknown type"))?;
        at += 1;
        let inside = bytes.get(at..end - 1).unwrap_or_default();
        at +=
            text_len(inside).ok_or_else(|| wrong(at, "a name that is not UTF-8 or has no end"))?;
        let rest = bytes.get(at..end - 1).unwrap_or_default();
        match kind {
            Kind::Document | Kind::Array => {
                ends.push(document_end(bytes, at, end - 1).map_err(|what| wrong(at, what))?);
                at += 4;
            }
            Kind::CodeWithScope => {
                let all = value_len(kind, rest).filter(|len| *len <= rest.len());
                let text = rest.get(4..).and_then(string_len);
                let (Some(all), Some(text)) = (all, text) else {
                    return Err(wrong(at, "code whose length is wrong"));
                };
                let inner = document_end(bytes, at + 4 + text, end - 1);
                ends.push(inner.map_err(|what| wrong(at, what))?);
                if ends.last() != Some(&(at + all)) {
                    return Err(wrong(at, "code whose length is wrong"));
                }
                at += 4 + text + 4;
            }
            _ => at += scalar_len(kind, rest).map_err(|what| wrong(at, what))?,
        }
        if ends.len() > DEPTH_MAX + 1 {
            return Err(wrong(at, "documents nested too deep"));
        }
    }
    Ok(())
}

/// Where the document at `at` ends, which is not behind `limit`.
fn document_end(bytes: &[u8], at: usize, limit: usize) -> Result<usize, &'static str> {
    let inside = bytes.get(at..limit).unwrap_or_default();
    let (len, _) = u32_at(inside).ok_or("a document is cut off")?;
    match len < 5 || len > inside.len() {
        true => Err("a document whose length is wrong"),
        false if inside.get(len - 1) != Some(&0) => Err("a document without its terminator"),
        false => Ok(at + len),
    }
}

/// The length of a text and its terminator.
fn text_len(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(bytes.get(..end)?).ok()?;
    Some(end + 1)
}

/// The length of a string with its own length and terminator.
fn string_len(bytes: &[u8]) -> Option<usize> {
    let (len, rest) = u32_at(bytes)?;
    let (last, text) = rest.get(..len)?.split_last()?;
    (*last == 0 && std::str::from_utf8(text).is_ok()).then_some(len + 4)
}

fn scalar_len(kind: Kind, rest: &[u8]) -> Result<usize, &'static str> {
    let len = match kind {
        Kind::String | Kind::Code | Kind::Symbol => {
            return string_len(rest).ok_or("a string that is not whole or not UTF-8");
        }
        Kind::DbPointer => string_len(rest).map(|len| len + 12),
        Kind::Regex => {
            let pattern = text_len(rest);
            pattern.and_then(|len| Some(len + text_len(rest.get(len..)?)?))
        }
        Kind::Bool if rest.first().is_some_and(|byte| *byte > 1) => {
            return Err("a bool that is neither 0 nor 1");
        }
        _ => value_len(kind, rest),
    };
    let len = len.filter(|len| *len <= rest.len());
    let len = len.ok_or("a value that is cut off")?;
    // The old form of binary data has its length twice.
    if kind == Kind::Binary && rest.get(4) == Some(&2) {
        let inner = rest.get(5..len).and_then(u32_at).map(|(inner, _)| inner);
        if inner.map(|inner| inner + 9) != Some(len) {
            return Err("old binary data whose length is wrong");
        }
    }
    Ok(len)
}
