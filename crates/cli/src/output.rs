//! The output of commands: buffered, and quiet when its reader is gone.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde_json::Value;

use crate::escape::Form;
use crate::failure::{Failure, Outcome};
use crate::formats::EntryFormat;
use crate::formats::json::bytes_object;
use crate::formats::write::EntryWriter;
use crate::units;

/// Standard output, locked for the life of the command.
pub(crate) struct Output {
    out: BufWriter<StdoutLock<'static>>,
    line: Vec<u8>,
    json: bool,
}

impl Output {
    /// Takes standard output.
    pub(crate) fn new() -> Self {
        let out = io::stdout().lock();
        Self {
            out: BufWriter::with_capacity(1 << 16, out),
            line: Vec::new(),
            json: false,
        }
    }

    /// From now on facts are JSON objects, one a line, or text.
    pub(crate) fn set_json(&mut self, json: bool) {
        self.json = json;
    }

    /// Whether they are.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints an entry in `format`, or its key alone.
    pub(crate) fn entry(
        &mut self,
        writer: EntryWriter,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Outcome {
        self.line.clear();
        writer.write(key, value, &mut self.line).map_err(|what| {
            let key = Form::Plain.show(key);
            Failure::Usage(format!(
                "the entry '{key}' cannot be written in this format: {what}; text, csv, json and binary hold any bytes"
            ))
        })?;
        Ok(self.out.write_all(&self.line)?)
    }

    /// The format of entries where a command has no flag for it.
    pub(crate) fn format(&self) -> EntryFormat {
        match self.json {
            true => EntryFormat::Json,
            false => EntryFormat::Text,
        }
    }

    /// Prints a fact: `text`, or `json` under --json.
    pub(crate) fn fact(&mut self, text: impl AsRef<str>, json: Value) -> Outcome {
        match self.json {
            true => self.text(json.to_string()),
            false => self.text(text),
        }
    }

    /// Prints a line that says in words what the facts of JSON have already.
    pub(crate) fn remark_of_text(&mut self, text: impl AsRef<str>) -> Outcome {
        match self.json {
            true => Ok(()),
            false => self.text(text),
        }
    }

    /// Prints one value on a line of its own; in JSON it is called `name`.
    pub(crate) fn value(&mut self, name: &str, form: Form, value: &[u8]) -> Outcome {
        if self.json {
            return self.text(Value::Object(bytes_object(name, form, value)).to_string());
        }
        self.line.clear();
        form.write(value, &mut self.line);
        self.line.push(b'\n');
        Ok(self.out.write_all(&self.line)?)
    }

    /// Prints a line of text.
    pub(crate) fn text(&mut self, line: impl AsRef<str>) -> Outcome {
        self.out.write_all(line.as_ref().as_bytes())?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// Prints a number that is all there is on its line; in JSON it is called `name`.
    pub(crate) fn count(&mut self, name: &str, number: u64) -> Outcome {
        let json = serde_json::json!({ name: number });
        self.fact(units::count(number), json)
    }

    /// Hands everything printed to the system.
    pub(crate) fn flush(&mut self) -> Outcome {
        Ok(self.out.flush()?)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Prints a remark to standard error. When that is closed, the remark is lost.
pub(crate) fn remark(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "{}", text.as_ref());
}
