//! BSON as it lies: a value is its type and its bytes, a document is walked by lengths.
//!
//! Invariant: the bytes were looked at by [`crate::validate`], or were written by [`crate::Builder`]. A walk over others ends
//! where they make no sense; it does not panic and reads nothing outside.

/// The type byte of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "they are BSON's own names")]
pub enum Kind {
    Double = 0x01,
    String = 0x02,
    Document = 0x03,
    Array = 0x04,
    Binary = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Bool = 0x08,
    Date = 0x09,
    Null = 0x0A,
    Regex = 0x0B,
    DbPointer = 0x0C,
    Code = 0x0D,
    Symbol = 0x0E,
    CodeWithScope = 0x0F,
    Int32 = 0x10,
    Timestamp = 0x11,
    Int64 = 0x12,
    Decimal = 0x13,
    MaxKey = 0x7F,
    MinKey = 0xFF,
}

impl Kind {
    /// All of them, with the names that `$type` takes.
    pub const NAMES: [(Self, &'static str); 21] = [
        (Self::Double, "double"),
        (Self::String, "string"),
        (Self::Document, "object"),
        (Self::Array, "array"),
        (Self::Binary, "binData"),
        (Self::Undefined, "undefined"),
        (Self::ObjectId, "objectId"),
        (Self::Bool, "bool"),
        (Self::Date, "date"),
        (Self::Null, "null"),
        (Self::Regex, "regex"),
        (Self::DbPointer, "dbPointer"),
        (Self::Code, "javascript"),
        (Self::Symbol, "symbol"),
        (Self::CodeWithScope, "javascriptWithScope"),
        (Self::Int32, "int"),
        (Self::Timestamp, "timestamp"),
        (Self::Int64, "long"),
        (Self::Decimal, "decimal"),
        (Self::MaxKey, "maxKey"),
        (Self::MinKey, "minKey"),
    ];

    /// The type that `byte` stands for.
    pub fn of(byte: u8) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(kind, _)| *kind as u8 == byte);
        found.map(|(kind, _)| *kind)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(kind, _)| *kind == self);
        found.map_or("unknown", |(_, name)| name)
    }

    /// Whether it is one of the four types of numbers.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Self::Double | Self::Int32 | Self::Int64 | Self::Decimal
        )
    }
}

/// A value: its type, and its bytes in BSON without type and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    /// The type.
    pub kind: Kind,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// A value that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedValue {
    /// The type.
    pub kind: Kind,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl OwnedValue {
    /// The value, borrowed.
    pub fn get(&self) -> Value<'_> {
        Value {
            kind: self.kind,
            bytes: &self.bytes,
        }
    }

    /// An int32.
    pub fn int32(number: i32) -> Self {
        Self {
            kind: Kind::Int32,
            bytes: number.to_le_bytes().to_vec(),
        }
    }

    /// An int64.
    pub fn int64(number: i64) -> Self {
        Self {
            kind: Kind::Int64,
            bytes: number.to_le_bytes().to_vec(),
        }
    }

    /// A double.
    pub fn double(number: f64) -> Self {
        Self {
            kind: Kind::Double,
            bytes: number.to_le_bytes().to_vec(),
        }
    }
}

/// What can be looked at as a value.
pub trait AsValue {
    /// The value, borrowed.
    fn as_value(&self) -> Value<'_>;
}

impl AsValue for OwnedValue {
    fn as_value(&self) -> Value<'_> {
        self.get()
    }
}

impl AsValue for Value<'_> {
    fn as_value(&self) -> Value<'_> {
        *self
    }
}

impl<'a> Value<'a> {
    /// Null.
    pub const NULL: Value<'static> = Value {
        kind: Kind::Null,
        bytes: &[],
    };

    /// A copy of its bytes.
    pub fn to_owned(self) -> OwnedValue {
        OwnedValue {
            kind: self.kind,
            bytes: self.bytes.to_vec(),
        }
    }

    /// The text of a string or symbol, without the terminator.
    pub fn as_str(self) -> Option<&'a str> {
        match self.kind {
            Kind::String | Kind::Symbol | Kind::Code => std::str::from_utf8(self.text()?).ok(),
            _ => None,
        }
    }

    /// The bytes of a text, without length and terminator.
    pub(crate) fn text(self) -> Option<&'a [u8]> {
        let (len, rest) = u32_at(self.bytes)?;
        rest.get(..len.checked_sub(1)?)
    }

    /// A document or an array, whose names are numbers.
    pub fn as_document(self) -> Option<Document<'a>> {
        match self.kind {
            Kind::Document | Kind::Array => Some(Document(self.bytes)),
            _ => None,
        }
    }

    /// The document of an array.
    pub fn as_array(self) -> Option<Document<'a>> {
        (self.kind == Kind::Array).then_some(Document(self.bytes))
    }

    /// A bool.
    pub fn as_bool(self) -> Option<bool> {
        (self.kind == Kind::Bool).then(|| self.bytes.first() == Some(&1))
    }

    /// The number of a date (milliseconds since 1970), int32, int64 or timestamp as it lies.
    pub(crate) fn fixed_i64(self) -> Option<i64> {
        match self.kind {
            Kind::Int32 => Some(i64::from(i32::from_le_bytes(
                *self.bytes.first_chunk::<4>()?,
            ))),
            _ => Some(i64::from_le_bytes(*self.bytes.first_chunk::<8>()?)),
        }
    }

    /// A double.
    pub(crate) fn double(self) -> Option<f64> {
        Some(f64::from_le_bytes(*self.bytes.first_chunk::<8>()?))
    }

    /// The whole number that it is, of any type of number that has no fraction.
    pub fn as_whole(self) -> Option<i64> {
        match self.kind {
            Kind::Int32 | Kind::Int64 => self.fixed_i64(),
            Kind::Double => {
                let number = self.double()?;
                let fits = number.trunc() == number && number.abs() < 9.2e18;
                #[expect(clippy::cast_possible_truncation, reason = "it fits, as was looked at")]
                fits.then_some(number as i64)
            }
            Kind::Decimal => crate::decimal::whole(self.bytes),
            _ => None,
        }
    }

    /// Whether it says that there is nothing: null or undefined.
    pub fn is_null(self) -> bool {
        matches!(self.kind, Kind::Null | Kind::Undefined)
    }

    /// Whether a flag of a command is set by it: true, or a number that is not 0.
    pub fn is_truthy(self) -> bool {
        match self.kind {
            Kind::Bool => self.as_bool() == Some(true),
            Kind::Null | Kind::Undefined => false,
            Kind::Double => self.double() != Some(0.0),
            Kind::Int32 | Kind::Int64 => self.fixed_i64() != Some(0),
            Kind::Decimal => crate::decimal::whole(self.bytes) != Some(0),
            _ => true,
        }
    }
}

/// A field of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The name, which is UTF-8 without NUL.
    pub name: &'a [u8],
    /// The value.
    pub value: Value<'a>,
}

impl<'a> Element<'a> {
    /// The name as text.
    pub fn name_str(&self) -> &'a str {
        std::str::from_utf8(self.name).unwrap_or_default()
    }
}

/// A document: all its bytes, with length and terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a>(pub &'a [u8]);

impl<'a> Document<'a> {
    /// The document without fields.
    pub const EMPTY: Document<'static> = Document(&[5, 0, 0, 0, 0]);

    /// Its fields, in order.
    pub fn iter(self) -> Elements<'a> {
        Elements {
            rest: self.0.get(4..).unwrap_or_default(),
        }
    }

    /// The first field called `name`. Costs a step for each field before it.
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        let mut fields = self.iter();
        let found = fields.find(|element| element.name == name.as_bytes());
        found.map(|element| element.value)
    }

    /// Whether it has no fields.
    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    /// It as a value.
    pub fn as_value(self) -> Value<'a> {
        Value {
            kind: Kind::Document,
            bytes: self.0,
        }
    }
}

impl<'a> IntoIterator for Document<'a> {
    type Item = Element<'a>;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

/// The fields of a document.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (kind, rest) = self.rest.split_first()?;
        let kind = Kind::of(*kind)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (name, rest) = rest.split_at_checked(end)?;
        let rest = rest.get(1..)?;
        let (bytes, rest) = rest.split_at_checked(value_len(kind, rest)?)?;
        self.rest = rest;
        Some(Element {
            name,
            value: Value { kind, bytes },
        })
    }
}

/// A length in front of `bytes`, and what is behind it.
pub(crate) fn u32_at(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    Some((usize::try_from(u32::from_le_bytes(*len)).ok()?, rest))
}

/// How many bytes of `rest` a value takes, as far as its own lengths say.
pub(crate) fn value_len(kind: Kind, rest: &[u8]) -> Option<usize> {
    let counted = |more: usize| u32_at(rest)?.0.checked_add(more);
    match kind {
        Kind::Undefined | Kind::Null | Kind::MaxKey | Kind::MinKey => Some(0),
        Kind::Bool => Some(1),
        Kind::Int32 => Some(4),
        Kind::Double | Kind::Date | Kind::Timestamp | Kind::Int64 => Some(8),
        Kind::ObjectId => Some(12),
        Kind::Decimal => Some(16),
        Kind::String | Kind::Code | Kind::Symbol => counted(4),
        Kind::Document | Kind::Array | Kind::CodeWithScope => counted(0),
        Kind::Binary => counted(5),
        Kind::DbPointer => counted(16),
        Kind::Regex => {
            let mut ends = rest.iter().enumerate().filter(|(_, byte)| **byte == 0);
            ends.nth(1).map(|(at, _)| at + 1)
        }
    }
}
