//! Requests: commands as a server finds them in what it reads, and as a client writes them.
//!
//! A command is `*n\r\n` and n times `$len\r\n` · bytes · `\r\n`, or a line of words for people who type
//! ([`crate::split_words`]).

use std::ops::Range;

use crate::error::ProtocolError;
use crate::number::{integer, push_head};
use crate::words::split_into;

/// Longest inline command, and longest line with a count or a length.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Most arguments that a client may send before it authenticates, and their longest.
const UNAUTHENTICATED_ARGS_MAX: i64 = 10;
const UNAUTHENTICATED_BULK_BYTES_MAX: usize = 16 << 10;
/// Longest argument unless a limit says otherwise, Redis's `proto-max-bulk-len`.
const BULK_BYTES_MAX: usize = 512 << 20;
/// Places of arguments for which memory is kept from command to command.
const KEPT_ARGS_MAX: usize = 1024;

/// What a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Longest argument, `proto-max-bulk-len`.
    pub bulk_bytes_max: usize,
    /// Whether the client may send more than it takes to authenticate.
    pub authenticated: bool,
}

impl Default for RequestLimits {
    /// 512 MiB, and no need to authenticate.
    fn default() -> Self {
        Self {
            bulk_bytes_max: BULK_BYTES_MAX,
            authenticated: true,
        }
    }
}

/// A command within the buffer that was parsed.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Bytes at the front of the buffer that it took. The next command begins behind them.
    pub consumed: usize,
    /// Its name and arguments. None at all for an empty line, `*0` or `*-1`: drop the bytes, answer nothing, go on.
    pub args: Args<'a>,
}

/// The name and the arguments of a command, as slices of what was read.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    ranges: &'a [Range<usize>],
}

impl<'a> Args<'a> {
    /// How many there are, the name counted.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there is not even a name.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The one at `index`; the name is at 0.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.ranges.get(index)?.clone())
    }

    /// Those from `index` on; none if there are not so many.
    pub fn from(&self, index: usize) -> Self {
        Self {
            bytes: self.bytes,
            ranges: self.ranges.get(index..).unwrap_or_default(),
        }
    }

    /// All of them in order.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator + Clone + use<'a> {
        let bytes = self.bytes;
        let slice = move |range: &Range<usize>| bytes.get(range.clone()).unwrap_or_default();
        self.ranges.iter().map(slice)
    }
}

/// The name and the arguments of a command that outlives what was read.
#[derive(Clone, Debug, Default)]
pub struct OwnedArgs {
    bytes: Vec<u8>,
    ranges: Vec<Range<usize>>,
}

impl OwnedArgs {
    /// The same arguments, as slices of the bytes kept here.
    pub fn args(&self) -> Args<'_> {
        Args {
            bytes: &self.bytes,
            ranges: &self.ranges,
        }
    }

    /// Bytes that it keeps.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.ranges.len() * size_of::<Range<usize>>()
    }
}

impl<'a> FromIterator<&'a [u8]> for OwnedArgs {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(args: I) -> Self {
        let mut owned = Self::default();
        for arg in args {
            let start = owned.bytes.len();
            owned.bytes.extend_from_slice(arg);
            owned.ranges.push(start..owned.bytes.len());
        }
        owned
    }
}

/// Where the parser is in a command. `left` counts the arguments that are not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before its first byte.
    Begin,
    Inline,
    Count,
    Length {
        left: usize,
    },
    Bulk {
        left: usize,
        len: usize,
    },
    /// Behind its last byte. `inline` says where its arguments are.
    Whole {
        inline: bool,
    },
}

/// Finds commands in a read buffer.
///
/// One per connection. [`RequestParser::parse`] is called with all bytes that were read and not yet consumed. When
/// it says that the command is not whole, the same bytes come again with more behind them: the parser goes on where
/// it stopped, so a command costs linear time however it arrives. The buffer may move meanwhile.
///
/// Besides the buffer, the memory is 16 bytes an argument that has arrived. Whoever owns the buffer bounds it, as
/// Redis does with `client-query-buffer-limit`.
///
/// ```
/// use drumlin_resp::{RequestLimits, RequestParser};
///
/// let mut parser = RequestParser::new(RequestLimits::default());
/// assert!(parser.parse(b"*2\r\n$3\r\nGET\r\n$1")?.is_none());
/// let request = parser.parse(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n")?.unwrap();
/// assert_eq!(request.args.iter().collect::<Vec<_>>(), [b"GET".as_slice(), b"k"]);
/// let consumed = request.consumed;
/// let request = parser.parse(&b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n"[consumed..])?.unwrap();
/// assert_eq!(request.args.get(0), Some(b"PING".as_slice()));
/// # Ok::<(), drumlin_resp::ProtocolError>(())
/// ```
#[derive(Debug)]
pub struct RequestParser {
    limits: RequestLimits,
    state: State,
    /// Bytes of the command that are understood, and bytes in which its next line does not end.
    at: usize,
    searched: usize,
    /// Bytes of the buffer at the last call.
    seen: usize,
    /// Where the arguments are: in the buffer, or in `text` for an inline command.
    ranges: Vec<Range<usize>>,
    text: Vec<u8>,
}

impl RequestParser {
    /// A parser before the first byte of a connection.
    pub fn new(limits: RequestLimits) -> Self {
        Self {
            limits,
            state: State::Begin,
            at: 0,
            searched: 0,
            seen: 0,
            ranges: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Changes what may be sent from the next count or length on.
    pub fn set_limits(&mut self, limits: RequestLimits) {
        self.limits = limits;
    }

    /// What may be sent.
    pub fn limits(&self) -> RequestLimits {
        self.limits
    }

    /// The command that `buffer` begins with, or none until there are more bytes.
    ///
    /// Requires: after a command, `buffer` begins behind what it consumed; after none, it begins with the bytes of
    /// the last call.
    ///
    /// # Errors
    /// What is wrong with the request, in Redis's words. The connection is of no use after that.
    pub fn parse<'a>(&'a mut self, buffer: &'a [u8]) -> Result<Option<Request<'a>>, ProtocolError> {
        if let State::Whole { .. } = self.state {
            self.begin_anew();
        }
        debug_assert!(self.at <= buffer.len(), "bytes went away");
        self.seen = buffer.len();
        let inline = loop {
            let next = match self.state {
                State::Begin => self.begin(buffer),
                State::Inline => self.inline(buffer)?,
                State::Count => self.count(buffer)?,
                State::Length { left } => self.length(buffer, left)?,
                State::Bulk { left, len } => self.bulk(buffer, left, len),
                State::Whole { inline } => break inline,
            };
            match next {
                Some(next) => self.state = next,
                None => return Ok(None),
            }
        };
        Ok(Some(Request {
            consumed: self.at,
            args: Args {
                bytes: if inline { &self.text } else { buffer },
                ranges: &self.ranges,
            },
        }))
    }

    /// How many bytes the argument that is being read still lacked at the last call, its line's end counted. 0
    /// where that is not known.
    ///
    /// A hint for the next read. It is what the client announced: reserve no more of it than may be lost.
    pub fn needed(&self) -> usize {
        match self.state {
            State::Bulk { len, .. } => self.bulk_end(len).saturating_sub(self.seen),
            _ => 0,
        }
    }

    fn begin_anew(&mut self) {
        self.state = State::Begin;
        self.at = 0;
        self.searched = 0;
        self.text.clear();
        self.ranges.clear();
        self.ranges.shrink_to(KEPT_ARGS_MAX);
    }

    fn begin(&self, buffer: &[u8]) -> Option<State> {
        match buffer.first()? {
            b'*' => Some(State::Count),
            _ => Some(State::Inline),
        }
    }

    fn inline(&mut self, buffer: &[u8]) -> Result<Option<State>, ProtocolError> {
        let Some(end) = self.line_end(buffer, b'\n', ProtocolError::InlineTooLong)? else {
            return Ok(None);
        };
        let line = buffer.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        split_into(line, &mut self.text, &mut self.ranges)
            .ok_or(ProtocolError::UnbalancedQuotes)?;
        self.at = end + 1;
        Ok(Some(State::Whole { inline: true }))
    }

    fn count(&mut self, buffer: &[u8]) -> Result<Option<State>, ProtocolError> {
        let Some(line) = self.head(buffer, ProtocolError::CountLineTooLong)? else {
            return Ok(None);
        };
        let count = integer(line.get(1..).unwrap_or_default());
        let count = count.filter(|count| *count <= i64::from(i32::MAX));
        let count = count.ok_or(ProtocolError::InvalidCount)?;
        if count > UNAUTHENTICATED_ARGS_MAX && !self.limits.authenticated {
            return Err(ProtocolError::UnauthenticatedCount);
        }
        self.take(line.len() + 2);
        Ok(Some(match usize::try_from(count) {
            Ok(left) if left > 0 => State::Length { left },
            _ => State::Whole { inline: false },
        }))
    }

    fn length(&mut self, buffer: &[u8], left: usize) -> Result<Option<State>, ProtocolError> {
        let Some(line) = self.head(buffer, ProtocolError::LengthLineTooLong)? else {
            return Ok(None);
        };
        // A line of no byte: what is there is its end.
        let (kind, text) = line.split_first().unwrap_or((&b'\r', &[]));
        if *kind != b'$' {
            return Err(ProtocolError::ExpectedBulk(*kind));
        }
        let len = integer(text).and_then(|len| usize::try_from(len).ok());
        let len = len.filter(|len| *len <= self.limits.bulk_bytes_max);
        let len = len.ok_or(ProtocolError::InvalidLength)?;
        if len > UNAUTHENTICATED_BULK_BYTES_MAX && !self.limits.authenticated {
            return Err(ProtocolError::UnauthenticatedLength);
        }
        self.take(line.len() + 2);
        Ok(Some(State::Bulk { left, len }))
    }

    fn bulk(&mut self, buffer: &[u8], left: usize, len: usize) -> Option<State> {
        let end = self.bulk_end(len);
        if buffer.len() < end {
            return None;
        }
        self.ranges.push(self.at..self.at + len);
        self.take(len + 2);
        Some(match left - 1 {
            0 => State::Whole { inline: false },
            left => State::Length { left },
        })
    }

    /// Where the bulk that begins here ends, the two bytes behind it counted. Redis does not look at these.
    fn bulk_end(&self, len: usize) -> usize {
        self.at.saturating_add(len).saturating_add(2)
    }

    fn take(&mut self, bytes: usize) {
        self.at += bytes;
        self.searched = self.at;
    }

    /// The line of a count or a length without its end: a `\r` and whatever byte follows.
    fn head<'b>(
        &mut self,
        buffer: &'b [u8],
        too_long: ProtocolError,
    ) -> Result<Option<&'b [u8]>, ProtocolError> {
        let end = self.line_end(buffer, b'\r', too_long)?;
        let end = end.filter(|end| end + 1 < buffer.len());
        Ok(end.and_then(|end| buffer.get(self.at..end)))
    }

    /// Where the next `end` is. As in Redis, no line ends behind a NUL.
    fn line_end(
        &mut self,
        buffer: &[u8],
        end: u8,
        too_long: ProtocolError,
    ) -> Result<Option<usize>, ProtocolError> {
        let unseen = buffer.get(self.searched..).unwrap_or_default();
        let mut stops = unseen.iter();
        let stop = stops.position(|byte| *byte == end || *byte == 0);
        self.searched += stop.unwrap_or(unseen.len());
        let found = buffer.get(self.searched) == Some(&end);
        let searched = if found { self.searched } else { buffer.len() };
        if searched - self.at > LINE_BYTES_MAX {
            return Err(too_long);
        }
        Ok(found.then_some(searched))
    }
}

/// Appends a command as clients send it.
///
/// ```
/// let mut out = Vec::new();
/// drumlin_resp::encode_command(&mut out, &["GET", "key"]);
/// assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
/// ```
pub fn encode_command<A: AsRef<[u8]>>(out: &mut Vec<u8>, args: &[A]) {
    push_head(out, b'*', args.len() as i64);
    for arg in args {
        let arg = arg.as_ref();
        push_head(out, b'$', arg.len() as i64);
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}
