//! The output of commands: buffered, and quiet when its reader is gone.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use crate::escape::Form;
use crate::failure::Outcome;
use crate::units;

/// Standard output, locked for the life of the command.
pub(crate) struct Output {
    out: BufWriter<StdoutLock<'static>>,
    line: Vec<u8>,
    is_terminal: bool,
}

impl Output {
    /// Takes standard output.
    pub(crate) fn new() -> Self {
        let out = io::stdout().lock();
        Self {
            is_terminal: out.is_terminal(),
            out: BufWriter::with_capacity(1 << 16, out),
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

    /// Prints a number that is all there is on its line: with separators for people, without for programs.
    pub(crate) fn count(&mut self, number: u64) -> Outcome {
        match self.is_terminal {
            true => self.text(units::count(number)),
            false => self.text(number.to_string()),
        }
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
