//! Entries as bytes of a format.

use serde_json::Value;

use super::{EntryFormat, csv, json};
use crate::escape::Form;

/// Writes entries of one format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryWriter {
    format: EntryFormat,
    form: Form,
    /// When the entry was written, to be written after it; in text, CSV and JSON.
    time: Option<u64>,
}

impl EntryWriter {
    /// A writer of `format`. Text, CSV and JSON have hex where `form` says so.
    ///
    /// # Errors
    /// A sentence, where the format has no hex.
    pub(crate) fn new(format: EntryFormat, form: Form) -> Result<Self, String> {
        match format {
            EntryFormat::Lines | EntryFormat::Binary if form == Form::Hex => Err(
                "--hex is for the formats text, csv and json; this one has the bytes as they are"
                    .to_owned(),
            ),
            _ => Ok(Self {
                format,
                form,
                time: None,
            }),
        }
    }

    /// A writer of an entry that was written then, in seconds since 1970, where that is to be told.
    pub(crate) fn at(self, time: Option<u64>) -> Self {
        Self { time, ..self }
    }

    /// Appends an entry, or its key alone.
    ///
    /// # Errors
    /// A sentence, where the format cannot hold these bytes; nothing was appended then.
    pub(crate) fn write(
        self,
        key: &[u8],
        value: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let time = self.time.map(|time| time.to_string());
        match self.format {
            EntryFormat::Lines | EntryFormat::Binary if time.is_some() => {
                return Err("there is no place for the time".to_owned());
            }
            EntryFormat::Text => {
                self.form.write(key, out);
                if let Some(value) = value {
                    out.push(b'\t');
                    self.form.write(value, out);
                }
                if let Some(time) = time {
                    out.push(b'\t');
                    out.extend_from_slice(time.as_bytes());
                }
                out.push(b'\n');
            }
            EntryFormat::Lines => write_line(key, value, out)?,
            EntryFormat::Csv => self.write_record(key, value, out),
            EntryFormat::Json => {
                let mut object = json::bytes_object("key", self.form, key);
                if let Some(value) = value {
                    json::put_bytes(&mut object, "value", self.form, value);
                }
                if let Some(time) = self.time {
                    object.insert("written_at".to_owned(), time.into());
                }
                out.extend_from_slice(Value::Object(object).to_string().as_bytes());
                out.push(b'\n');
            }
            EntryFormat::Binary => [Some(key), value]
                .into_iter()
                .flatten()
                .try_for_each(|bytes| write_prefixed(bytes, out))?,
        }
        Ok(())
    }

    fn write_record(self, key: &[u8], value: Option<&[u8]>, out: &mut Vec<u8>) {
        let field = |bytes: &[u8], out: &mut Vec<u8>| match self.form {
            Form::Plain => csv::write_field(bytes, out),
            Form::Hex => self.form.write(bytes, out),
        };
        field(key, out);
        if let Some(value) = value {
            out.push(b',');
            field(value, out);
        }
        if let Some(time) = self.time {
            out.extend_from_slice(format!(",{time}").as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// A line of bytes as they are. Refused is what would be read back as something else.
fn write_line(key: &[u8], value: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), String> {
    let breaks = |bytes: &[u8]| bytes.contains(&b'\n');
    if key.contains(&b'\t') || breaks(key) {
        return Err("its key has a TAB or a line's end in it".to_owned());
    }
    if value.is_some_and(breaks) {
        return Err("its value has a line's end in it".to_owned());
    }
    if value.unwrap_or(key).ends_with(b"\r") {
        return Err("it ends in a CR, which belongs to a line's end".to_owned());
    }
    out.extend_from_slice(key);
    if let Some(value) = value {
        out.push(b'\t');
        out.extend_from_slice(value);
    }
    out.push(b'\n');
    Ok(())
}

fn write_prefixed(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let length = u32::try_from(bytes.len()).map_err(|_| "it is longer than 4 GiB".to_owned())?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}
