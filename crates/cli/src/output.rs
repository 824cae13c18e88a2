//! What commands print: buffered, and quiet when nobody reads any more.

use std::io::{self, BufWriter, StdoutLock, Write};

use crate::escape::Form;
use crate::failure::Outcome;

/// Standard output, locked for the life of the command.
pub(crate) struct Output {
    out: BufWriter<StdoutLock<'static>>,
    line: Vec<u8>,
}

impl Output {
    /// Takes standard output.
    pub(crate) fn new() -> Self {
        Self {
            out: BufWriter::with_capacity(1 << 16, io::stdout().lock()),
            line: Vec::new(),
        }
    }

    /// Prints `key`, TAB, `value`.
    pub(crate) fn entry(&mut self, form: Form, key: &[u8], value: &[u8]) -> Outcome {
        self.line.clear();
        form.write(key, &mut self.line);
        self.line.push(b'\t');
        form.write(value, &mut self.line);
        self.line.push(b'\n');
        Ok(self.out.write_all(&self.line)?)
    }

    /// Prints one value on a line of its own.
    pub(crate) fn value(&mut self, form: Form, value: &[u8]) -> Outcome {
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

/// Prints a remark to standard error. When that is closed, nobody is left to tell.
pub(crate) fn remark(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "{}", text.as_ref());
}
