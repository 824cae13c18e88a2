//! What values the arguments of commands may have.

use drumlin_doc::{Code, Document, Kind, Refusal, Value};

/// The kinds of an argument's value; null is as if nothing was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Flag,
    /// A flag that may be a number.
    Truth,
    Number,
    Text,
    Document,
    Array,
    /// The name of an index, or its key.
    Hint,
    /// Whatever the argument's reader takes.
    Any,
}

impl Shape {
    fn allows(self, kind: Kind) -> bool {
        match self {
            Self::Flag => kind == Kind::Bool,
            Self::Truth => kind == Kind::Bool || kind.is_number(),
            Self::Number => kind.is_number(),
            Self::Text => kind == Kind::String,
            Self::Document => kind == Kind::Document,
            Self::Array => kind == Kind::Array,
            Self::Hint => matches!(kind, Kind::String | Kind::Document),
            Self::Any => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Flag => "bool",
            Self::Truth => "bool, long, int, decimal or double",
            Self::Number => "int, decimal, double or long",
            Self::Text => "string",
            Self::Document => "object",
            Self::Array => "array",
            Self::Hint => "string or object",
            Self::Any => "any",
        }
    }
}

/// Refuses arguments that are of other kinds. `context` is what they are arguments of.
///
/// # Errors
/// `TypeMismatch`; `FailedToParse` for a hint.
pub(super) fn check(
    context: &str,
    of: Document<'_>,
    shapes: &[(&str, Shape)],
) -> Result<(), Refusal> {
    for element in of {
        let (name, kind) = (element.name_str(), element.value.kind);
        let shape = shapes.iter().find(|(known, _)| *known == name);
        let Some((_, shape)) = shape.filter(|(_, shape)| !shape.allows(kind)) else {
            continue;
        };
        if *shape == Shape::Hint {
            let text = format!("Hint must be a string or an object, and {context} has another");
            return Err(Refusal::parse(text));
        }
        if kind != Kind::Null {
            return Err(mismatch(context, name, element.value, shape.name()));
        }
    }
    Ok(())
}

/// An argument that has to be there, of that shape.
///
/// # Errors
/// `Location40414` where it is not said, `TypeMismatch`.
pub(super) fn required<'a>(
    context: &str,
    of: Document<'a>,
    name: &str,
    shape: Shape,
) -> Result<Value<'a>, Refusal> {
    let said = of.get(name).filter(|value| value.kind != Kind::Null);
    let value = said.ok_or_else(|| missing(context, name))?;
    match shape.allows(value.kind) {
        true => Ok(value),
        false => Err(mismatch(context, name, value, shape.name())),
    }
}

/// `TypeMismatch` of an argument.
pub(super) fn mismatch(context: &str, name: &str, value: Value<'_>, wanted: &str) -> Refusal {
    Refusal::type_mismatch(format!(
        "BSON field '{context}.{name}' is the wrong type '{}', expected type '{wanted}'",
        value.kind.name()
    ))
}

/// `Location40414`: an argument that has to be there and is not.
pub(super) fn missing(context: &str, name: &str) -> Refusal {
    let text = format!("BSON field '{context}.{name}' is missing but a required field");
    Refusal::new(Code::MissingField, text)
}

/// `Location40415`: an argument that there is none of.
pub(super) fn unknown(context: &str, name: &str) -> Refusal {
    let text = format!("BSON field '{context}.{name}' is an unknown field.");
    Refusal::new(Code::UnknownField, text)
}

/// Refuses a collation other than the simple one, which compares texts by their bytes as everything here does.
///
/// # Errors
/// `TypeMismatch`, `Location40414`, `CommandNotSupported`.
pub(super) fn check_collation(context: &str, value: Value<'_>) -> Result<(), Refusal> {
    if value.kind == Kind::Null {
        return Ok(());
    }
    if value.kind != Kind::Document {
        return Err(mismatch(context, "collation", value, "object"));
    }
    let collation = Document(value.bytes);
    if collation.is_empty() {
        return Ok(());
    }
    let locale = required("collation", collation, "locale", Shape::Text)?;
    match locale.as_str() {
        Some("simple") => Ok(()),
        _ => Err(Refusal::not_supported(
            "a collation other than the simple one",
        )),
    }
}
