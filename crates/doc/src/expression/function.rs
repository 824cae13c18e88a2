//! What functions of values are like, and what many of them need.

use crate::build::Builder;
use crate::code::Code;
use crate::raw::{AsValue, Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};

/// Most bytes of one value that is made.
pub(super) const BYTES_MAX: usize = crate::DOCUMENT_BYTES_MAX + (1 << 14);

/// What a function is given: a value for each argument, where there is one.
pub(super) type Arguments<'a> = &'a [Option<Value<'a>>];
/// What it gives.
pub(super) type Made = Outcome<Option<OwnedValue>>;

/// Arguments by their names, and whether they are needed.
pub(super) type Names = &'static [(&'static str, bool)];

/// A function of values.
#[derive(Debug)]
pub struct Function {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) run: fn(&Self, Arguments<'_>) -> Made,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What arguments there are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Exactly(usize),
    Between(usize, usize),
    /// A document of these; codes for what is none, for unknown names, and for missing ones.
    Named(Names, [Code; 3]),
    /// One argument, or a document of these.
    OneOrNamed(Names, [Code; 3]),
}

impl Function {
    /// Whether it takes a date, and options by their names.
    pub(super) fn is_of_dates(&self) -> bool {
        self.name.starts_with("$date") || matches!(self.shape, Shape::OneOrNamed(..))
    }
}

/// The argument at `at`; `None` where it is null, undefined or missing.
pub(super) fn argument<'a>(arguments: Arguments<'a>, at: usize) -> Option<Value<'a>> {
    let value = arguments.get(at).copied().flatten();
    value.filter(|value| !value.is_null())
}

/// Whether one of the arguments is null, undefined or missing.
pub(super) fn any_null(arguments: Arguments<'_>) -> bool {
    (0..arguments.len()).any(|at| argument(arguments, at).is_none())
}

pub(super) fn null() -> Made {
    Ok(Some(OwnedValue::null()))
}

pub(super) fn flag(flag: bool) -> Made {
    Ok(Some(OwnedValue::bool(flag)))
}

/// The name of a type; `missing` of none.
pub(super) fn kind_of(value: Option<Value<'_>>) -> &'static str {
    value.map_or("missing", |value| value.kind.name())
}

/// An int32 where it fits.
pub(super) fn whole(number: i64) -> OwnedValue {
    i32::try_from(number).map_or_else(|_| OwnedValue::int64(number), OwnedValue::int32)
}

/// A place or a count.
pub(super) fn counted(number: usize) -> Made {
    Ok(Some(whole(i64::try_from(number).unwrap_or(i64::MAX))))
}

/// An array of values, refused as soon as no document could hold it.
pub(super) fn array<V: AsValue>(values: impl IntoIterator<Item = V>) -> Outcome<OwnedValue> {
    let mut out = Growing::default();
    for value in values {
        out.push(value.as_value())?;
    }
    Ok(out.finish())
}

/// An array that grows, within the bound of a value.
#[derive(Default)]
pub(super) struct Growing {
    out: Builder,
    /// Values so far.
    pub(super) count: u64,
}

impl Growing {
    pub(super) fn push(&mut self, value: Value<'_>) -> Outcome<()> {
        self.out.value(self.count.to_string(), value);
        self.count += 1;
        within_bound(self.out.len())
    }

    pub(super) fn finish(self) -> OwnedValue {
        OwnedValue {
            kind: Kind::Array,
            bytes: self.out.finish(),
        }
    }
}

/// Refuses what no document could hold, so that a few nested doublings do not take all memory.
pub(super) fn bounded(value: OwnedValue) -> Outcome<OwnedValue> {
    within_bound(value.bytes.len()).map(|()| value)
}

/// [`bounded`] for a size.
pub(super) fn within_bound(bytes: usize) -> Outcome<()> {
    match bytes > BYTES_MAX {
        false => Ok(()),
        true => Err(Refusal::new(
            Code::BsonObjectTooLarge,
            format!("an expression made a value of more than {BYTES_MAX} bytes"),
        )),
    }
}

/// Whether a value counts as true: all but false, null, undefined and 0.
pub(super) fn truth(value: Value<'_>) -> bool {
    match crate::number::Number::of(value) {
        Some(number) => number.compare(crate::number::Number::Int(0)).is_ne(),
        None => value.is_truthy(),
    }
}
