//! The commands of an append-only file, from bytes that arrive in pieces.
//!
//! `*n\r\n` and n times `$len\r\n` · bytes · `\r\n`; lines that begin with `#` between commands are notes.

use drumlin_base::{Error, ErrorKind, Result};

use crate::value::Bytes;

/// Longest line of a head or a note; Redis's own bound.
const LINE_BYTES_MAX: usize = 1024;
/// Pieces are moved to the front of the buffer from here on.
const MOVED_BYTES_MIN: usize = 4096;
/// Least bytes of an argument: `$0\r\n\r\n`.
const ARGUMENT_BYTES_MIN: usize = 6;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name and arguments; at least the name.
    pub arguments: Vec<Bytes>,
    /// Where the file goes on behind it.
    pub end: u64,
}

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Behind a command, and in no transaction.
    Whole,
    /// Within a command or a transaction. So many bytes are worth keeping: none of a transaction, and none of
    /// its commands may have been carried out.
    Cut(u64),
}

/// Reads commands.
///
/// A transaction counts as one: the caller holds back the commands from MULTI to EXEC.
#[derive(Debug)]
pub struct Commands {
    buffer: Vec<u8>,
    at: usize,
    offset: u64,
    wanted: usize,
    argument_bytes_max: usize,
    arguments_max: usize,
    /// The command that is being read: arguments that are still to come, and those that are here.
    arguments_left: usize,
    arguments: Vec<Bytes>,
    /// Where the file is sound up to, and whether a transaction is open behind that.
    sound: u64,
    in_transaction: bool,
}

enum Line<'a> {
    Here(&'a [u8], usize),
    NotYet,
}

impl Commands {
    /// Commands from `offset` of a file on, each argument of at most `argument_bytes_max` bytes, and at most
    /// `arguments_max` of them.
    pub fn new(offset: u64, argument_bytes_max: usize, arguments_max: usize) -> Self {
        Self {
            buffer: Vec::new(),
            at: 0,
            offset,
            wanted: 0,
            argument_bytes_max,
            arguments_max,
            arguments_left: 0,
            arguments: Vec::new(),
            sound: offset,
            in_transaction: false,
        }
    }

    /// Takes the next bytes of the file.
    pub fn push(&mut self, piece: &[u8]) {
        if self.at >= MOVED_BYTES_MIN.max(self.buffer.len() / 2) {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(piece);
    }

    /// The next command, or none until more bytes are pushed.
    ///
    /// # Errors
    /// Corruption for bytes that are no command, TooLarge over the limits.
    pub fn command(&mut self) -> Result<Option<Command>> {
        loop {
            let step = if self.arguments_left == 0 {
                self.head()
            } else {
                self.argument()
            };
            match step.map_err(|error| error.with_offset(self.offset))? {
                None => return Ok(None),
                Some(false) => {}
                Some(true) => return Ok(Some(self.close())),
            }
        }
    }

    /// How the file ends, when no more bytes will come.
    pub fn finish(&self) -> Tail {
        let within = self.arguments_left > 0 || self.at < self.buffer.len();
        if within || self.in_transaction {
            Tail::Cut(self.sound)
        } else {
            Tail::Whole
        }
    }

    /// Reads the head of a command, or a note. None if it is not there yet; else whether a command is whole.
    fn head(&mut self) -> Result<Option<bool>> {
        let Line::Here(line, taken) = self.line()? else {
            return Ok(None);
        };
        if line.first() == Some(&b'#') {
            self.take(taken);
            if !self.in_transaction {
                self.sound = self.offset;
            }
            return Ok(Some(false));
        }
        let count = counted(line, b'*').filter(|count| *count > 0);
        let count = count.ok_or_else(|| Error::corruption("a command does not begin as one"))?;
        if count > self.arguments_max {
            let message = format!("a command of {count} arguments");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        self.arguments_left = count;
        // As many as the bytes that are here can hold; the rest grows as it arrives.
        let here = (self.buffer.len() - self.at) / ARGUMENT_BYTES_MIN;
        self.arguments = Vec::with_capacity(count.min(here));
        self.take(taken);
        Ok(Some(false))
    }

    fn argument(&mut self) -> Result<Option<bool>> {
        if self.buffer.len() - self.at < self.wanted {
            return Ok(None);
        }
        let Line::Here(line, head) = self.line()? else {
            return Ok(None);
        };
        let len = counted(line, b'$');
        let len = len.ok_or_else(|| Error::corruption("an argument does not begin as one"))?;
        if len > self.argument_bytes_max {
            let message = format!("an argument of {len} bytes");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let whole = self.at + head + len + 2;
        let Some(bytes) = self.buffer.get(self.at + head..whole) else {
            self.wanted = head + len + 2;
            return Ok(None);
        };
        let Some(argument) = bytes.strip_suffix(b"\r\n") else {
            return Err(Error::corruption("an argument is longer than it says"));
        };
        self.arguments.push(argument.to_vec());
        self.take(head + len + 2);
        self.wanted = 0;
        self.arguments_left -= 1;
        Ok(Some(self.arguments_left == 0))
    }

    fn close(&mut self) -> Command {
        let arguments = std::mem::take(&mut self.arguments);
        let name = arguments.first().map(Vec::as_slice).unwrap_or_default();
        if name.eq_ignore_ascii_case(b"multi") {
            self.in_transaction = true;
        } else if name.eq_ignore_ascii_case(b"exec") || name.eq_ignore_ascii_case(b"discard") {
            self.in_transaction = false;
        }
        let end = self.offset;
        if !self.in_transaction || drumlin_base::bug!("cut-transaction-kept") {
            self.sound = end;
        }
        Command { arguments, end }
    }

    /// The next line without its end, and its bytes with it.
    fn line(&self) -> Result<Line<'_>> {
        let rest = self.buffer.get(self.at..).unwrap_or_default();
        let seen = rest.get(..LINE_BYTES_MAX).unwrap_or(rest);
        let Some(end) = seen.iter().position(|byte| *byte == b'\n') else {
            if seen.len() == LINE_BYTES_MAX {
                return Err(Error::corruption(
                    "a line of an append-only file is too long",
                ));
            }
            return Ok(Line::NotYet);
        };
        let line = seen.get(..end).unwrap_or_default();
        Ok(Line::Here(
            line.strip_suffix(b"\r").unwrap_or(line),
            end + 1,
        ))
    }

    fn take(&mut self, bytes: usize) {
        self.at += bytes;
        self.offset += bytes as u64;
    }
}

/// The number behind `mark`.
fn counted(line: &[u8], mark: u8) -> Option<usize> {
    let (first, digits) = line.split_first()?;
    let sound = *first == mark && !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| sound)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aof::begins_as_rdb;

    fn command(arguments: &[&str]) -> Vec<u8> {
        let one = |argument: &&str| format!("${}\r\n{argument}\r\n", argument.len());
        let body: String = arguments.iter().map(one).collect();
        format!("*{}\r\n{body}", arguments.len()).into_bytes()
    }

    fn read(bytes: &[u8], piece: usize) -> Result<(Vec<Command>, Tail)> {
        let mut commands = Commands::new(0, 1 << 20, 100);
        let mut found = Vec::new();
        for piece in bytes.chunks(piece) {
            commands.push(piece);
            while let Some(command) = commands.command()? {
                found.push(command);
            }
        }
        Ok((found, commands.finish()))
    }

    #[test]
    fn commands_are_the_same_however_the_file_is_cut_into_pieces() {
        let set = command(&["SET", "k", "a\r\nb"]);
        let file = [set.as_slice(), b"#TS:1700000000\r\n", &command(&["PING"])].concat();
        let (whole, tail) = read(&file, file.len()).unwrap();
        assert_eq!(tail, Tail::Whole);
        assert_eq!(whole.len(), 2);
        assert_eq!(
            whole[0].arguments,
            [b"SET".to_vec(), b"k".to_vec(), b"a\r\nb".to_vec()]
        );
        assert_eq!(
            (whole[0].end, whole[1].end),
            (set.len() as u64, file.len() as u64)
        );
        for piece in 1..file.len() {
            assert_eq!(read(&file, piece).unwrap(), (whole.clone(), tail));
        }
    }

    #[test]
    fn a_cut_file_is_sound_up_to_its_last_whole_command_or_transaction() {
        let first = command(&["SET", "a", "1"]);
        let parts = [
            first.clone(),
            command(&["MULTI"]),
            command(&["SET", "b", "2"]),
            command(&["EXEC"]),
            command(&["SET", "c", "3"]),
        ];
        let file = parts.concat();
        let sound = [
            0,
            first.len(),
            first.len() + parts[1].len() + parts[2].len() + parts[3].len(),
            file.len(),
        ];
        for len in 0..=file.len() {
            let last = *sound.iter().rev().find(|sound| **sound <= len).unwrap();
            let expected = if last == len {
                Tail::Whole
            } else {
                Tail::Cut(last as u64)
            };
            assert_eq!(read(&file[..len], 7).unwrap().1, expected, "{len} bytes");
        }
    }

    #[test]
    fn damage_is_no_cut() {
        for broken in [
            "SET\r\n",
            "*0\r\n",
            "*x\r\n",
            "*1\r\nSET",
            "*1\r\n:3\r\n",
            "*1\r\n$1\r\nab\r\n",
            "*-1\r\n",
        ] {
            let broken = [broken.as_bytes(), b"\r\n\r\n"].concat();
            assert!(
                read(&broken, 100).is_err(),
                "{:?}",
                String::from_utf8_lossy(&broken)
            );
        }
        assert!(read(b"*1\r\n$99999999999\r\n", 100).is_err());
        assert!(read(b"*101\r\n", 100).is_err());
        assert!(read(&[b'*'; 2000], 100).is_err());
    }

    #[test]
    fn an_rdb_head_is_told_from_commands() {
        assert_eq!(begins_as_rdb(b"REDIS0010"), Some(true));
        assert_eq!(begins_as_rdb(b"*1\r\n"), Some(false));
        assert_eq!(begins_as_rdb(b"RED"), None);
        assert_eq!(begins_as_rdb(b"RX"), Some(false));
    }
}
