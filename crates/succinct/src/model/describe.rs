//! A description of a model, in lines for people.

use std::fmt::Write;

use super::form::Form;
use super::store::Model;
use crate::template::{Column, Relation, Style, Template};
use crate::text::{Symbols, TextCoder};

/// Bytes of a literal or value that are shown.
const SHOWN_BYTES: usize = 24;

impl Model {
    /// The learned model in a few lines for people: its forms, in the order records try them, and
    /// its text coder.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        if self.is_of_documents() {
            out.push_str("documents, as text:\n");
        }
        // Writing to a string does not fail.
        for form in self.forms() {
            let _infallible = match form {
                Form::Text => writeln!(out, "text: the whole record"),
                Form::Frame(level) => writeln!(out, "large records: zstd frames of level {level}"),
                Form::Layout(layout) => {
                    let (bytes, bits) = (layout.bytes(), layout.bits());
                    let numbers = layout.numbers();
                    writeln!(
                        out,
                        "struct of {bytes} bytes: {numbers} numbers, {bits} bits"
                    )
                }
                Form::Template(template) => describe_template(template, &mut out),
            };
        }
        if let Some(text) = self.text() {
            let _infallible = describe_text(text, &mut out);
        }
        out.push_str("raw: the record as it is\n");
        out
    }
}

fn describe_text(text: &TextCoder, out: &mut String) -> std::fmt::Result {
    let tokens = text.vocabulary().tokens().len();
    match text.symbols() {
        Symbols::Fixed(width) => write!(out, "texts: {tokens} symbols of {width} bits")?,
        Symbols::Huffman(..) => write!(out, "texts: {tokens} symbols with Huffman codes")?,
    }
    match text.dictionary() {
        Some(dictionary) => writeln!(out, ", a dictionary of {} bytes", dictionary.text().len()),
        None => writeln!(out),
    }
}

fn describe_template(template: &Template, out: &mut String) -> std::fmt::Result {
    let bits = template.fixed_bits();
    writeln!(out, "template: {bits} bits and texts")?;
    let mut literals = template.literals();
    let first = literals.next().unwrap_or_default();
    if !first.is_empty() {
        writeln!(out, "  {}", shown(first))?;
    }
    for (index, (column, literal)) in template.columns().iter().zip(literals).enumerate() {
        write!(out, "  column {index}: ")?;
        match column {
            Column::Choice { values } => {
                let examples = values.iter().take(4).map(|value| shown(value));
                let examples: Vec<String> = examples.collect();
                write!(out, "one of {} ({})", values.len(), examples.join(" "))?;
            }
            Column::Number {
                style,
                base,
                bits,
                relation,
            } => {
                match style {
                    Style::Integer => write!(out, "integer")?,
                    Style::Padded(digits) => write!(out, "number of {digits} digits")?,
                    Style::Decimal(digits) => write!(out, "decimal with {digits} digits")?,
                    Style::Date => write!(out, "date")?,
                }
                match relation {
                    Relation::Alone => {}
                    Relation::Sum(other) => write!(out, " from column {other} on")?,
                    Relation::Product(other) => write!(out, " in multiples of column {other}")?,
                }
                write!(out, ", {bits} bits from {base}")?;
            }
            Column::Text => write!(out, "text")?,
            Column::Piece { .. } => write!(out, "one piece of the dictionary")?,
        }
        writeln!(out, ", then {}", shown(literal))?;
    }
    Ok(())
}

fn shown(bytes: &[u8]) -> String {
    let start = bytes.get(..bytes.len().min(SHOWN_BYTES));
    format!("\"{}\"", start.unwrap_or_default().escape_ascii())
}
