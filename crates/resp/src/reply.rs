//! Replies, as a server writes them.

use crate::error::ProtocolError;
use crate::number::{Head, push_head};

/// The version of RESP that a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// What every connection speaks until `HELLO 3`.
    #[default]
    Resp2,
    /// With maps, sets, doubles, nulls and pushes of their own.
    Resp3,
}

/// A place for the head of a reply whose items are written before they are counted.
#[must_use = "the head is written by `finish`"]
#[derive(Debug)]
pub struct Mark {
    at: usize,
    kind: u8,
    /// What the count is multiplied with: a map of RESP2 is an array of names and values.
    items: usize,
}

/// Appends replies to a buffer, in the version that the connection speaks.
///
/// One per connection. It checks nothing: after the head of an array so many replies must follow.
///
/// ```
/// use drumlin_resp::{Protocol, ReplyWriter};
///
/// let mut replies = ReplyWriter::new(Protocol::Resp3);
/// replies.map(1);
/// replies.bulk(b"proto");
/// replies.integer(3);
/// assert_eq!(replies.bytes(), b"%1\r\n$5\r\nproto\r\n:3\r\n");
/// ```
#[derive(Debug, Default)]
pub struct ReplyWriter {
    out: Vec<u8>,
    protocol: Protocol,
}

impl ReplyWriter {
    /// A writer with an empty buffer.
    pub fn new(protocol: Protocol) -> Self {
        Self::append_to(Vec::new(), protocol)
    }

    /// A writer that appends to `out`.
    pub fn append_to(out: Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    /// The version that is written.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Changes the version from the next reply on.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// All that is written and not taken.
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// The buffer itself, to take from what is written, or to append what is a reply already.
    ///
    /// Requires: what is in front of a [`Mark`] stays as it is until that is finished.
    pub fn buffer_mut(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// The buffer with all that is written. The writer goes on with an empty one.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn head(&mut self, kind: u8, number: usize) {
        push_head(&mut self.out, kind, number as i64);
    }

    /// `text` in a line, its own line ends as spaces.
    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.reserve(text.len() + 3);
        self.out.push(kind);
        let start = self.out.len();
        self.out.extend_from_slice(text);
        for byte in self.out.iter_mut().skip(start) {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// A simple string. Line ends in it become spaces.
    pub fn simple(&mut self, text: &[u8]) {
        self.line(b'+', text);
    }

    /// `+OK`.
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// An error: a code in capitals, a space and a sentence. As in Redis, line ends in it become spaces and those at
    /// its end vanish.
    pub fn error(&mut self, text: &[u8]) {
        let ends = |byte: &u8| !matches!(byte, b'\r' | b'\n');
        let len = text.iter().rposition(ends).map_or(0, |last| last + 1);
        self.line(b'-', text.get(..len).unwrap_or_default());
    }

    /// The answer to what is no request.
    pub fn protocol_error(&mut self, error: ProtocolError) {
        self.out.extend_from_slice(b"-ERR ");
        error.write_text(&mut self.out);
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer.
    pub fn integer(&mut self, number: i64) {
        push_head(&mut self.out, b':', number);
    }

    /// A string of any bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len());
        self.out.reserve(bytes.len() + 2);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer as a string.
    pub fn bulk_integer(&mut self, number: i64) {
        // A head with any kind: without that byte and the line's end it is the text.
        let text = Head::new(b':', number);
        let text = text.bytes();
        self.head(b'$', text.len() - 3);
        self.out
            .extend_from_slice(text.get(1..).unwrap_or_default());
    }

    /// No string: `$-1`, or `_` in RESP3.
    pub fn null(&mut self) {
        self.either(b"$-1\r\n", b"_\r\n");
    }

    /// No array: `*-1`, or `_` in RESP3.
    pub fn null_array(&mut self) {
        self.either(b"*-1\r\n", b"_\r\n");
    }

    /// True or false: 1 or 0 in RESP2.
    pub fn boolean(&mut self, value: bool) {
        if value {
            self.either(b":1\r\n", b"#t\r\n");
        } else {
            self.either(b":0\r\n", b"#f\r\n");
        }
    }

    fn either(&mut self, resp2: &[u8], resp3: &[u8]) {
        let chosen = match self.protocol {
            Protocol::Resp2 => resp2,
            Protocol::Resp3 => resp3,
        };
        self.out.extend_from_slice(chosen);
    }

    /// A double from its text, `inf`, `-inf` and `nan` among them: how many digits it has differs from one version
    /// of Redis to the next. A string in RESP2.
    pub fn double(&mut self, text: &[u8]) {
        self.line_or_bulk(b',', text);
    }

    /// An integer of any size from its text. A string in RESP2.
    pub fn big_number(&mut self, text: &[u8]) {
        self.line_or_bulk(b'(', text);
    }

    fn line_or_bulk(&mut self, kind: u8, text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => self.line(kind, text),
        }
    }

    /// A text that says its format, `txt` or `mkd`. A string without it in RESP2.
    pub fn verbatim(&mut self, format: [u8; 3], text: &[u8]) {
        if self.protocol == Protocol::Resp2 {
            return self.bulk(text);
        }
        self.head(b'=', text.len() + format.len() + 1);
        self.out.extend_from_slice(&format);
        self.out.push(b':');
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    /// The head of an array; `len` replies follow.
    pub fn array(&mut self, len: usize) {
        self.head(b'*', len);
    }

    /// The head of a map; `pairs` times two replies follow. An array in RESP2.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.head(b'*', pairs * 2),
            Protocol::Resp3 => self.head(b'%', pairs),
        }
    }

    /// The head of a set; `len` replies follow. An array in RESP2.
    pub fn set(&mut self, len: usize) {
        self.head(self.kind(b'~'), len);
    }

    /// The head of what no command asked for, such as a message of a channel; `len` replies follow. An array in
    /// RESP2.
    pub fn push(&mut self, len: usize) {
        self.head(self.kind(b'>'), len);
    }

    /// The head of attributes of the reply that comes behind them; `pairs` times two replies follow. RESP2 has none:
    /// then nothing is written, the answer is false, and nothing must follow.
    #[must_use = "in RESP2 no attributes may follow"]
    pub fn attribute(&mut self, pairs: usize) -> bool {
        if self.protocol == Protocol::Resp2 {
            return false;
        }
        self.head(b'|', pairs);
        true
    }

    fn kind(&self, resp3: u8) -> u8 {
        match self.protocol {
            Protocol::Resp2 => b'*',
            Protocol::Resp3 => resp3,
        }
    }

    /// Begins an array whose items are counted by [`ReplyWriter::finish`].
    pub fn begin_array(&mut self) -> Mark {
        self.begin(b'*', 1)
    }

    /// Begins a map whose pairs are counted by [`ReplyWriter::finish`].
    pub fn begin_map(&mut self) -> Mark {
        match self.protocol {
            Protocol::Resp2 => self.begin(b'*', 2),
            Protocol::Resp3 => self.begin(b'%', 1),
        }
    }

    /// Begins a set whose members are counted by [`ReplyWriter::finish`].
    pub fn begin_set(&mut self) -> Mark {
        self.begin(self.kind(b'~'), 1)
    }

    fn begin(&mut self, kind: u8, items: usize) -> Mark {
        let at = self.out.len();
        // Room for one digit.
        self.head(kind, 0);
        Mark { at, kind, items }
    }

    /// Writes the head of what was begun: `count` items, or pairs of a map. Marks are finished in the reverse order
    /// of their beginnings.
    ///
    /// Below ten items it costs nothing. Otherwise what is behind the mark moves by the digits that lack room: one
    /// copy in memory, far cheaper than writing it was.
    ///
    /// # Panics
    /// When the mark's place is no longer in the buffer.
    pub fn finish(&mut self, mark: Mark, count: usize) {
        let Mark { at, kind, items } = mark;
        let room = at..at + 4;
        assert!(room.end <= self.out.len(), "the mark's bytes went away");
        let head = Head::new(kind, (count * items) as i64);
        let head = head.bytes();
        let moved = head.len() - room.len();
        if moved > 0 && !drumlin_base::bug!("deferred-count-of-one-digit") {
            let end = self.out.len();
            self.out.resize(end + moved, 0);
            self.out.copy_within(room.end..end, room.end + moved);
        }
        if let Some(slots) = self.out.get_mut(at..at + head.len()) {
            slots.copy_from_slice(head);
        }
    }

    /// Takes back what was begun, with all that was written since.
    pub fn abandon(&mut self, mark: Mark) {
        self.out.truncate(mark.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `write` writes in both versions.
    fn both(write: &dyn Fn(&mut ReplyWriter)) -> [String; 2] {
        [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
            let mut writer = ReplyWriter::new(protocol);
            write(&mut writer);
            String::from_utf8(writer.take()).unwrap()
        })
    }

    #[test]
    fn counts_that_are_known_late_have_the_room_they_need() {
        for count in [0, 1, 9, 10, 99, 100, 12_345] {
            let late = both(&|w| {
                let outer = w.begin_array();
                let set = w.begin_set();
                let map = w.begin_map();
                for number in 0..count {
                    w.integer(number as i64);
                    w.null();
                }
                w.finish(map, count);
                w.finish(set, 1);
                let gone = w.begin_array();
                w.ok();
                w.abandon(gone);
                w.bulk(b"behind");
                w.finish(outer, 2);
            });
            let early = both(&|w| {
                w.array(2);
                w.set(1);
                w.map(count);
                for number in 0..count {
                    w.integer(number as i64);
                    w.null();
                }
                w.bulk(b"behind");
            });
            assert_eq!(late, early);
        }
    }
}
