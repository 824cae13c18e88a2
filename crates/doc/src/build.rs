//! Documents, written field by field.

use crate::raw::{AsValue, Document, Kind, OwnedValue, Value};

/// Writes one document. Documents within it are opened and closed.
#[derive(Clone, Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    /// Where the documents begin that are not closed, the outermost first.
    open: Vec<usize>,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// An empty document.
    pub fn new() -> Self {
        Self {
            bytes: vec![0; 4],
            open: vec![0],
        }
    }

    /// Appends a field.
    pub fn value(&mut self, name: impl AsRef<[u8]>, value: Value<'_>) -> &mut Self {
        self.bytes.push(value.kind as u8);
        self.bytes.extend_from_slice(name.as_ref());
        self.bytes.push(0);
        self.bytes.extend_from_slice(value.bytes);
        self
    }

    /// Appends an int32.
    pub fn i32(&mut self, name: impl AsRef<[u8]>, number: i32) -> &mut Self {
        self.fixed(Kind::Int32, name, &number.to_le_bytes())
    }

    /// Appends an int64.
    pub fn i64(&mut self, name: impl AsRef<[u8]>, number: i64) -> &mut Self {
        self.fixed(Kind::Int64, name, &number.to_le_bytes())
    }

    /// Appends a number as MongoDB counts: an int32 where it fits.
    pub fn count(&mut self, name: impl AsRef<[u8]>, number: u64) -> &mut Self {
        match i32::try_from(number) {
            Ok(number) => self.i32(name, number),
            Err(_) => self.i64(name, i64::try_from(number).unwrap_or(i64::MAX)),
        }
    }

    /// Appends a double.
    pub fn f64(&mut self, name: impl AsRef<[u8]>, number: f64) -> &mut Self {
        self.fixed(Kind::Double, name, &number.to_le_bytes())
    }

    /// Appends a bool.
    pub fn bool(&mut self, name: impl AsRef<[u8]>, flag: bool) -> &mut Self {
        self.fixed(Kind::Bool, name, &[u8::from(flag)])
    }

    /// Appends a date: milliseconds since 1970.
    pub fn date(&mut self, name: impl AsRef<[u8]>, ms: i64) -> &mut Self {
        self.fixed(Kind::Date, name, &ms.to_le_bytes())
    }

    /// Appends null.
    pub fn null(&mut self, name: impl AsRef<[u8]>) -> &mut Self {
        self.fixed(Kind::Null, name, &[])
    }

    /// Appends a string.
    pub fn str(&mut self, name: impl AsRef<[u8]>, text: &str) -> &mut Self {
        let mut bytes = Vec::with_capacity(text.len() + 5);
        let len = u32::try_from(text.len() + 1).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
        self.fixed(Kind::String, name, &bytes)
    }

    /// Appends binary data of the given subtype.
    pub fn binary(&mut self, name: impl AsRef<[u8]>, subtype: u8, data: &[u8]) -> &mut Self {
        let mut bytes = u32::try_from(data.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes()
            .to_vec();
        bytes.push(subtype);
        bytes.extend_from_slice(data);
        self.fixed(Kind::Binary, name, &bytes)
    }

    /// Appends a document.
    pub fn document(&mut self, name: impl AsRef<[u8]>, document: Document<'_>) -> &mut Self {
        self.value(name, document.as_value())
    }

    fn fixed(&mut self, kind: Kind, name: impl AsRef<[u8]>, bytes: &[u8]) -> &mut Self {
        self.value(name, Value { kind, bytes })
    }

    /// Appends a document or an array, whose fields follow up to [`Builder::close`].
    pub fn open(&mut self, kind: Kind, name: impl AsRef<[u8]>) -> &mut Self {
        self.value(name, Value { kind, bytes: &[] });
        self.open.push(self.bytes.len());
        self.bytes.extend_from_slice(&[0; 4]);
        self
    }

    /// Ends what was opened last.
    ///
    /// # Panics
    /// When nothing is open.
    pub fn close(&mut self) -> &mut Self {
        let from = self.open.pop().expect("each close has its open");
        self.bytes.push(0);
        let len = self.bytes.len() - from;
        let len = u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
        if let Some(place) = self.bytes.get_mut(from..from + 4) {
            place.copy_from_slice(&len);
        }
        self
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has no fields.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == 4
    }

    /// The bytes of the document, all of whose parts are closed by this.
    pub fn finish(mut self) -> Vec<u8> {
        while !self.open.is_empty() {
            self.close();
        }
        self.bytes
    }
}

/// Documents of known parts.
impl Builder {
    /// An empty document with room for `bytes`.
    pub fn with_room(bytes: usize) -> Self {
        let mut builder = Self::new();
        builder.bytes.reserve(bytes);
        builder
    }

    /// The document with `rest` behind its fields, which is fields and the terminator, as a document has them at its end.
    pub fn finish_with(mut self, rest: &[u8]) -> Vec<u8> {
        self.bytes
            .extend_from_slice(rest.split_last().map_or(&[], |(_, fields)| fields));
        self.finish()
    }
}

/// Values that are made.
impl OwnedValue {
    /// Null.
    pub fn null() -> Self {
        Value::NULL.to_owned()
    }

    /// A bool.
    pub fn bool(flag: bool) -> Self {
        Self {
            kind: Kind::Bool,
            bytes: vec![u8::from(flag)],
        }
    }

    /// A date: milliseconds since 1970.
    pub fn date(ms: i64) -> Self {
        Self {
            kind: Kind::Date,
            bytes: ms.to_le_bytes().to_vec(),
        }
    }

    /// A string.
    pub fn string(text: &str) -> Self {
        let len = u32::try_from(text.len() + 1).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(text.len() + 5);
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
        Self {
            kind: Kind::String,
            bytes,
        }
    }

    /// An array of values.
    pub fn array<V: AsValue>(values: impl IntoIterator<Item = V>) -> Self {
        let mut out = Builder::new();
        for (at, value) in values.into_iter().enumerate() {
            out.value(at.to_string(), value.as_value());
        }
        Self {
            kind: Kind::Array,
            bytes: out.finish(),
        }
    }

    /// A document.
    pub fn document(bytes: Vec<u8>) -> Self {
        Self {
            kind: Kind::Document,
            bytes,
        }
    }
}
