//! Values as people read them in messages: `{ a: 1, b: "x" }`.

use std::fmt::Write;

use crate::number::Number;
use crate::raw::{Document, Kind, Value};

/// Bytes from which on a text of a value is cut off.
const CHARS_MAX: usize = 1024;

/// `value` in a message; cut off where it is long.
pub fn show(value: Value<'_>) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

fn write_value(out: &mut String, value: Value<'_>) {
    if is_full(out) {
        return;
    }
    match value.kind {
        Kind::String | Kind::Symbol | Kind::Code => {
            let text = value.as_str().unwrap_or_default();
            let part = text.get(..text.floor_char_boundary(CHARS_MAX));
            write_to(out, format_args!("{:?}", part.unwrap_or_default()));
            if text.len() > CHARS_MAX {
                out.push_str("...");
            }
        }
        Kind::Document => write_fields(out, Document(value.bytes), ("{ ", " }"), true),
        Kind::Array => write_fields(out, Document(value.bytes), ("[ ", " ]"), false),
        Kind::Bool => write_to(out, format_args!("{}", value.as_bool() == Some(true))),
        Kind::Null => out.push_str("null"),
        Kind::Int32 | Kind::Int64 | Kind::Double => match Number::of(value) {
            Some(Number::Double(number)) => write_to(out, format_args!("{number:?}")),
            Some(Number::Int(number)) => write_to(out, format_args!("{number}")),
            _ => {}
        },
        Kind::ObjectId => {
            out.push_str("ObjectId('");
            value
                .bytes
                .iter()
                .for_each(|byte| write_to(out, format_args!("{byte:02x}")));
            out.push_str("')");
        }
        Kind::Date => {
            let ms = value.fixed_i64().unwrap_or_default();
            write_to(out, format_args!("new Date({ms})"));
        }
        other => write_to(out, format_args!("<{}>", other.name())),
    }
}

/// Whether nothing more is to be written, which the text says then.
fn is_full(out: &mut String) -> bool {
    let is_full = out.len() > CHARS_MAX;
    if is_full && !out.ends_with("...") {
        out.push_str("...");
    }
    is_full
}

fn write_fields(out: &mut String, fields: Document<'_>, ends: (&str, &str), with_names: bool) {
    if fields.is_empty() {
        out.push_str(ends.0.trim_end());
        out.push_str(ends.1.trim_start());
        return;
    }
    out.push_str(ends.0);
    for (at, element) in fields.iter().enumerate() {
        if is_full(out) {
            return;
        }
        if at > 0 {
            out.push_str(", ");
        }
        if with_names {
            let name = element.name_str();
            let part = name.get(..name.floor_char_boundary(CHARS_MAX));
            out.push_str(part.unwrap_or_default());
            out.push_str(": ");
        }
        write_value(out, element.value);
    }
    out.push_str(ends.1);
}

fn write_to(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
}
