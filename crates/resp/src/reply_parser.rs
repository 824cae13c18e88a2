//! Replies, as a client reads them: bytes are pushed in pieces, and whole values come out.
//!
//! Aggregates that are open stand on a stack of frames, so nothing recurses. A value goes into the top frame; a frame
//! that has all its items becomes a value itself.

use crate::error::ReplyError;
use crate::number::integer;
use crate::value::{Value, double};

/// Levels of aggregates, whatever the limits say: values are compared, shown and freed by recursion.
const DEPTH_MAX: usize = 512;
/// Bytes that are consumed leave the buffer from here on.
const MOVED_BYTES_MIN: usize = 4096;
/// Least bytes of a reply: `_\r\n`.
const REPLY_BYTES_MIN: usize = 3;
/// What an item costs besides its bytes.
const ITEM_BYTES: usize = size_of::<Value>();

/// What becomes of attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attributes {
    /// They are read and forgotten.
    #[default]
    Skipped,
    /// They come as [`Value::Attributed`].
    Kept,
}

/// How large a reply may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Levels of aggregates within each other; never more than 512. Attributes count as one.
    pub depth_max: usize,
    /// Bytes of one reply in memory, its items counted. What vectors reserve may double it.
    pub value_bytes_max: usize,
    /// What becomes of attributes.
    pub attributes: Attributes,
}

impl Default for ReplyLimits {
    /// 32 levels, 1 GiB, attributes skipped.
    fn default() -> Self {
        Self {
            depth_max: 32,
            value_bytes_max: 1 << 30,
            attributes: Attributes::Skipped,
        }
    }
}

/// Makes values of replies.
///
/// Replies are taken as Redis writes them: lines end with `\r\n` and have no other `\r` or `\n`, integers have their
/// one usual form. The streamed strings and aggregates of RESP3, which Redis does not send, are refused.
///
/// ```
/// use drumlin_resp::{ReplyLimits, ReplyParser, Value};
///
/// let mut parser = ReplyParser::new(ReplyLimits::default());
/// parser.push(b"*2\r\n:1\r\n$2\r");
/// assert_eq!(parser.value()?, None);
/// parser.push(b"\nhi\r\n");
/// let items = vec![Value::Integer(1), Value::Bulk(b"hi".to_vec())];
/// assert_eq!(parser.value()?, Some(Value::Array(items)));
/// # Ok::<(), drumlin_resp::ReplyError>(())
/// ```
#[derive(Debug)]
pub struct ReplyParser {
    limits: ReplyLimits,
    buffer: Vec<u8>,
    /// Where the next line begins, and where the search for its end goes on.
    at: usize,
    searched: usize,
    /// Bytes from the next line's beginning that its value needs, as far as known.
    wanted: usize,
    /// Bytes that left the buffer.
    dropped: u64,
    frames: Vec<Frame>,
    /// Memory of the value that is being read.
    cost: usize,
}

#[derive(Debug)]
struct Frame {
    kind: Kind,
    left: usize,
    items: Vec<Value>,
}

#[derive(Debug)]
enum Kind {
    Array,
    Set,
    Push,
    Map,
    Attributes,
    /// Waits for the value that the attributes are of.
    Attributed(Vec<(Value, Value)>),
}

/// What one line, with its blob, is.
enum Piece {
    Value(Value),
    Open(Kind, usize),
}

impl ReplyParser {
    /// A parser before the first byte of a connection.
    pub fn new(limits: ReplyLimits) -> Self {
        Self {
            limits,
            buffer: Vec::new(),
            at: 0,
            searched: 0,
            wanted: 0,
            dropped: 0,
            frames: Vec::new(),
            cost: 0,
        }
    }

    /// Takes the next bytes of the server.
    pub fn push(&mut self, piece: &[u8]) {
        if self.at >= MOVED_BYTES_MIN.max(self.buffer.len() / 2) {
            self.buffer.drain(..self.at);
            self.dropped += self.at as u64;
            self.searched -= self.at;
            self.at = 0;
        }
        self.buffer.extend_from_slice(piece);
    }

    /// Whether every byte that was pushed belongs to a value that was given.
    pub fn is_idle(&self) -> bool {
        self.frames.is_empty() && self.at == self.buffer.len()
    }

    /// The next reply, or none until more bytes are pushed.
    ///
    /// # Errors
    /// Malformed bytes, or a reply beyond the limits. The connection is of no use after that.
    pub fn value(&mut self) -> Result<Option<Value>, ReplyError> {
        while let Some(piece) = self.piece()? {
            let mut value = match piece {
                Piece::Value(value) => value,
                Piece::Open(kind, left) => {
                    self.open(kind, left)?;
                    match self.close() {
                        Some(value) => value,
                        None => continue,
                    }
                }
            };
            loop {
                let Some(frame) = self.frames.last_mut() else {
                    self.cost = 0;
                    return Ok(Some(value));
                };
                frame.items.push(value);
                frame.left -= 1;
                match self.close() {
                    Some(closed) => value = closed,
                    None => break,
                }
            }
        }
        Ok(None)
    }

    /// Opens an aggregate of `left` items.
    fn open(&mut self, kind: Kind, left: usize) -> Result<(), ReplyError> {
        if self.frames.len() >= self.limits.depth_max.min(DEPTH_MAX) {
            return Err(ReplyError::TooDeep);
        }
        // A claim that could never be met within the limit.
        let room = self.limits.value_bytes_max - self.cost;
        if left > room / ITEM_BYTES {
            return Err(ReplyError::TooLarge);
        }
        // As many as the bytes that are here can hold; the rest grows as it arrives.
        let here = (self.buffer.len() - self.at) / REPLY_BYTES_MIN;
        let items = Vec::with_capacity(left.min(here));
        self.frames.push(Frame { kind, left, items });
        Ok(())
    }

    /// The aggregate on top, if it has all its items.
    fn close(&mut self) -> Option<Value> {
        let Frame { kind, items, .. } = self.frames.pop_if(|frame| frame.left == 0)?;
        let value = match kind {
            Kind::Array => Value::Array(items),
            Kind::Set => Value::Set(items),
            Kind::Push => Value::Push(items),
            Kind::Map => Value::Map(pairs(items)),
            Kind::Attributes => {
                // In the place of the attributes, the value that they are of is awaited.
                self.frames.push(Frame {
                    kind: Kind::Attributed(pairs(items)),
                    left: 1,
                    items: Vec::new(),
                });
                return None;
            }
            Kind::Attributed(pairs) => {
                let value = items.into_iter().next()?;
                match self.limits.attributes {
                    Attributes::Skipped => value,
                    Attributes::Kept => Value::Attributed(pairs, Box::new(value)),
                }
            }
        };
        Some(value)
    }

    /// The next line, with its blob if it has one.
    fn piece(&mut self) -> Result<Option<Piece>, ReplyError> {
        if self.buffer.len() - self.at < self.wanted {
            return Ok(None);
        }
        let Some(end) = self.line_end()? else {
            return Ok(None);
        };
        let line = self.buffer.get(self.at..end).unwrap_or_default();
        let Some((kind, text)) = line.split_first() else {
            return Err(self.malformed("an empty line"));
        };
        let (kind, text) = (*kind, text);
        let taken = end + 2 - self.at;
        let blob = match kind {
            b'$' if text == b"-1" => None,
            b'$' | b'=' | b'!' => Some(self.count(text, 1)?),
            _ => None,
        };
        if let Some(len) = blob {
            return self.blob(kind, taken, len);
        }
        let piece = self.line(kind, text)?;
        if let Piece::Value(value) = &piece {
            let bytes = value.as_bytes().map_or(0, <[u8]>::len);
            self.charge(ITEM_BYTES + bytes)?;
        } else {
            self.charge(ITEM_BYTES)?;
        }
        self.take(taken);
        Ok(Some(piece))
    }

    /// What a line without a blob is.
    fn line(&self, kind: u8, text: &[u8]) -> Result<Piece, ReplyError> {
        let value = match (kind, text) {
            (b'+', _) => Value::Simple(text.to_vec()),
            (b'-', _) => Value::Error(text.to_vec()),
            (b':', _) => {
                let number = integer(text).ok_or_else(|| self.malformed("no integer"))?;
                Value::Integer(number)
            }
            (b'$', _) | (b'_', b"") => Value::Null,
            (b'*', b"-1") => Value::NullArray,
            (b'#', b"t") => Value::Bool(true),
            (b'#', b"f") => Value::Bool(false),
            (b',', _) if double(text).is_some() => Value::Double(text.to_vec()),
            (b'(', _) if is_big_number(text) => Value::BigNumber(text.to_vec()),
            (b'*', _) => return Ok(Piece::Open(Kind::Array, self.count(text, 1)?)),
            (b'~', _) => return Ok(Piece::Open(Kind::Set, self.count(text, 1)?)),
            (b'%', _) => return Ok(Piece::Open(Kind::Map, self.count(text, 2)?)),
            (b'|', _) => return Ok(Piece::Open(Kind::Attributes, self.count(text, 2)?)),
            (b'>', _) if self.frames.is_empty() => {
                return Ok(Piece::Open(Kind::Push, self.count(text, 1)?));
            }
            (b'>', _) => return Err(self.malformed("a push within a reply")),
            (b'_' | b'#' | b',' | b'(', _) => return Err(self.malformed("no such value")),
            _ => return Err(self.malformed("no such kind of reply")),
        };
        Ok(Piece::Value(value))
    }

    /// The string of `len` bytes behind the `head` bytes of its line.
    fn blob(&mut self, kind: u8, head: usize, len: usize) -> Result<Option<Piece>, ReplyError> {
        let cost = ITEM_BYTES.saturating_add(len);
        if cost > self.limits.value_bytes_max - self.cost {
            return Err(ReplyError::TooLarge);
        }
        let whole = head + len + 2;
        let Some(bytes) = self.buffer.get(self.at + head..self.at + whole) else {
            self.wanted = whole;
            return Ok(None);
        };
        let Some(bytes) = bytes.strip_suffix(b"\r\n") else {
            return Err(self.malformed("a string is longer than it says"));
        };
        let value = match (kind, bytes) {
            (b'=', [a, b, c, b':', text @ ..]) => Value::Verbatim([*a, *b, *c], text.to_vec()),
            (b'=', _) => return Err(self.malformed("a verbatim string has no format")),
            (b'!', _) => Value::Error(bytes.to_vec()),
            _ => Value::Bulk(bytes.to_vec()),
        };
        self.charge(cost)?;
        self.take(whole);
        Ok(Some(Piece::Value(value)))
    }

    /// The count or length that `text` says, times `items`.
    fn count(&self, text: &[u8], items: usize) -> Result<usize, ReplyError> {
        let count = integer(text).and_then(|count| usize::try_from(count).ok());
        let count = count.ok_or_else(|| self.malformed("no count"))?;
        Ok(count.saturating_mul(items))
    }

    fn charge(&mut self, bytes: usize) -> Result<(), ReplyError> {
        let cost = self.cost.saturating_add(bytes);
        if cost > self.limits.value_bytes_max {
            return Err(ReplyError::TooLarge);
        }
        self.cost = cost;
        Ok(())
    }

    /// Where the line that begins here ends, without its end.
    fn line_end(&mut self) -> Result<Option<usize>, ReplyError> {
        let unseen = self.buffer.get(self.searched..).unwrap_or_default();
        let stop = unseen.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        self.searched += stop.unwrap_or(unseen.len());
        let end = self.searched;
        if end - self.at > self.limits.value_bytes_max {
            return Err(ReplyError::TooLarge);
        }
        match self.buffer.get(end..).unwrap_or_default() {
            [] | [b'\r'] => Ok(None),
            [b'\r', b'\n', ..] => Ok(Some(end)),
            _ => Err(self.malformed("a line does not end as one")),
        }
    }

    fn take(&mut self, bytes: usize) {
        self.at += bytes;
        self.searched = self.at;
        self.wanted = 0;
    }

    fn malformed(&self, what: &'static str) -> ReplyError {
        let offset = self.dropped + self.at as u64;
        ReplyError::Malformed { what, offset }
    }
}

/// Names with their values. Requires: an even number of items.
fn pairs(items: Vec<Value>) -> Vec<(Value, Value)> {
    let mut items = items.into_iter();
    let next = || Some((items.next()?, items.next()?));
    std::iter::from_fn(next).collect()
}

fn is_big_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}
