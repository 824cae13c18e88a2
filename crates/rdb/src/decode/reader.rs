//! Whole RDB files, from bytes that arrive in pieces.
//!
//! A step is one opcode, one key with its head, or one item. It is tried on the bytes that have arrived. When they
//! are too few, the cursor tells the least number that the step needs, and the step is not tried again before they
//! have arrived. A step has at most six lengths in a row that can each come too late, so no byte is read more often
//! than that, with pieces of any size.

use drumlin_base::{Error, Result};

use crate::crc64;
use crate::cursor::{Cursor, Parsed, Stop, bad};
use crate::decode::body::Body;
use crate::decode::strings::{length, string};
use crate::value::{Bytes, Item, Kind};

/// Newest version of RDB files and DUMP payloads that is read: Redis 7.4's.
pub const VERSION_READ_MAX: u16 = 12;
/// Files carry a checksum from this version on.
const CHECKSUM_SINCE: u16 = 5;
const MAGIC: &[u8; 5] = b"REDIS";
/// Pieces are moved to the front of the buffer from here on.
const MOVED_BYTES_MIN: usize = 4096;

mod opcode {
    pub(super) const SLOT_INFO: u8 = 244;
    pub(super) const FUNCTION: u8 = 245;
    pub(super) const FUNCTION_UNRELEASED: u8 = 246;
    pub(super) const MODULE_AUX: u8 = 247;
    pub(super) const IDLE: u8 = 248;
    pub(super) const FREQ: u8 = 249;
    pub(super) const AUX: u8 = 250;
    pub(super) const RESIZE_DB: u8 = 251;
    pub(super) const EXPIRE_MS: u8 = 252;
    pub(super) const EXPIRE_S: u8 = 253;
    pub(super) const SELECT_DB: u8 = 254;
    pub(super) const END: u8 = 255;
}

/// Bounds of a reader's input.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest string, and largest packed node, unpacked.
    pub string_bytes_max: usize,
    /// How long the file is, if that is known. Then no length is taken that reaches behind it, before anything
    /// is waited for.
    pub file_bytes: Option<u64>,
}

impl Default for Limits {
    /// Strings up to 512 MiB, as Redis itself, and a file of unknown length.
    fn default() -> Self {
        Self {
            string_bytes_max: 512 << 20,
            file_bytes: None,
        }
    }
}

/// The fields before the value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyHead {
    /// The database.
    pub db: u64,
    /// The key.
    pub key: Bytes,
    /// The type of its value.
    pub kind: Kind,
    /// When it expires, in milliseconds of Unix time.
    pub expire_ms: Option<i64>,
    /// Seconds since it was last used.
    pub idle_seconds: Option<u64>,
    /// How often it is used, on Redis's logarithmic scale.
    pub frequency: Option<u8>,
}

/// The next part of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The file begins, in this version of the format.
    Begin(u16),
    /// A fact about the file. Unknown ones are to be passed over.
    Aux(Bytes, Bytes),
    /// A hint: keys of the database, and those that expire.
    Size(u64, u64),
    /// A hint: a slot, its keys, and those that expire.
    Slot(u64, u64, u64),
    /// The code of a library of functions.
    Function(Bytes),
    /// A key. Its items follow, then [`Event::KeyEnd`]. Without an item between them the key is absent, except
    /// for streams, which may be empty.
    Key(KeyHead),
    /// A part of the value of the last key.
    Item(Item),
    /// The value is whole.
    KeyEnd,
    /// The file is whole, and its checksum fits if it has one. [`Reader::rest`] has the bytes behind
    /// it.
    End,
}

/// Reads an RDB file.
///
/// # Example
/// ```
/// use drumlin_rdb::{Event, Limits, Reader};
/// let mut reader = Reader::new(Limits::default());
/// let mut events = Vec::new();
/// for piece in [&b"REDIS00"[..], b"04\xff"] {
///     reader.push(piece);
///     while let Some(event) = reader.event()? {
///         events.push(event);
///     }
/// }
/// reader.finish()?;
/// assert_eq!(events, [Event::Begin(4), Event::End]);
/// # Ok::<(), drumlin_base::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    limits: Limits,
    buffer: Vec<u8>,
    /// Where the next step begins in `buffer`, and in the file.
    at: usize,
    offset: u64,
    /// Bytes that have to be there before it is worth a try.
    wanted: usize,
    crc: u64,
    machine: Machine,
}

impl Reader {
    /// A reader at the beginning of a file.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            buffer: Vec::new(),
            at: 0,
            offset: 0,
            wanted: 0,
            crc: 0,
            machine: Machine::default(),
        }
    }

    /// Takes the next bytes of the file. Buffers stay small when events are taken in between.
    pub fn push(&mut self, piece: &[u8]) {
        if self.at >= MOVED_BYTES_MIN.max(self.buffer.len() / 2) {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(piece);
    }

    /// Bytes of the file that are behind the reader; after an error, the start of the failed step.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that were pushed and not taken: after [`Event::End`] those behind the file, such as the
    /// commands of an append-only file.
    pub fn rest(&self) -> &[u8] {
        self.buffer.get(self.at..).unwrap_or_default()
    }

    /// The next event, or none until more bytes are pushed; none for ever after [`Event::End`].
    ///
    /// # Errors
    /// Corruption for damage, NotSupported for values of modules and for newer versions, TooLarge for strings over
    /// the limit. No event follows an error.
    pub fn event(&mut self) -> Result<Option<Event>> {
        loop {
            let here = self.buffer.get(self.at..).unwrap_or_default();
            if matches!(self.machine.state, State::Ended) || here.len() < self.wanted {
                return Ok(None);
            }
            let arrived = self.offset + here.len() as u64;
            let to_come = self
                .limits
                .file_bytes
                .map(|all| all.saturating_sub(arrived));
            let mut input = Cursor::new(here, to_come);
            let step = self.machine.step(&mut input, self.crc, &self.limits);
            let taken = input.taken();
            match step {
                Ok(event) => {
                    let bytes = here.get(..taken).unwrap_or_default();
                    self.crc = crc64::extend(self.crc, bytes);
                    self.at += taken;
                    self.offset += taken as u64;
                    self.wanted = 0;
                    if event.is_some() {
                        return Ok(event);
                    }
                }
                Err(Stop::Short(wanted)) => {
                    self.wanted = wanted;
                    return Ok(None);
                }
                Err(Stop::Bad(error)) => {
                    self.machine.state = State::Failed;
                    return Err(error.with_offset(self.offset));
                }
            }
        }
    }

    /// Says that no bytes will come.
    ///
    /// # Errors
    /// Corruption when the file is not whole.
    pub fn finish(&self) -> Result<()> {
        if matches!(self.machine.state, State::Ended) {
            return Ok(());
        }
        Err(Error::corruption("an RDB file ends too early").with_offset(self.offset))
    }
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Magic,
    Between,
    Body(Body),
    Checksum,
    Ended,
    Failed,
}

/// The state of the reader in a file, and the facts of the next key.
#[derive(Debug, Default)]
struct Machine {
    state: State,
    version: u16,
    db: u64,
    expire_ms: Option<i64>,
    idle_seconds: Option<u64>,
    frequency: Option<u8>,
}

impl Machine {
    /// One step. `crc` covers all bytes before it.
    fn step(&mut self, input: &mut Cursor<'_>, crc: u64, limits: &Limits) -> Parsed<Option<Event>> {
        match &mut self.state {
            State::Magic => {
                self.version = version(input)?;
                self.state = State::Between;
                Ok(Some(Event::Begin(self.version)))
            }
            State::Between => self.opcode(input, limits.string_bytes_max),
            State::Body(body) => {
                if body.is_done() {
                    self.state = State::Between;
                    return Ok(Some(Event::KeyEnd));
                }
                let item = body.step(input, limits.string_bytes_max)?;
                Ok(item.map(Event::Item))
            }
            State::Checksum => {
                if self.version >= CHECKSUM_SINCE {
                    let told = input.u64_le()?;
                    // Redis writes 0 when checksums are off.
                    if told != 0 && told != crc {
                        return bad(format!(
                            "the checksum is {told:#x}, and that of the file {crc:#x}"
                        ));
                    }
                }
                self.state = State::Ended;
                Ok(Some(Event::End))
            }
            State::Ended => Ok(None),
            State::Failed => bad("nothing is read behind damage"),
        }
    }

    fn opcode(&mut self, input: &mut Cursor<'_>, bytes_max: usize) -> Parsed<Option<Event>> {
        let event = match input.byte()? {
            opcode::END => {
                self.state = State::Checksum;
                return Ok(None);
            }
            opcode::SELECT_DB => {
                self.db = length(input)?;
                return Ok(None);
            }
            opcode::EXPIRE_S => {
                let seconds = i32::from_le_bytes(input.array()?);
                self.expire_ms = Some(i64::from(seconds) * 1000);
                return Ok(None);
            }
            opcode::EXPIRE_MS => {
                self.expire_ms = Some(i64::from_le_bytes(input.array()?));
                return Ok(None);
            }
            opcode::FREQ => {
                self.frequency = Some(input.byte()?);
                return Ok(None);
            }
            opcode::IDLE => {
                self.idle_seconds = Some(length(input)?);
                return Ok(None);
            }
            opcode::RESIZE_DB => Event::Size(length(input)?, length(input)?),
            opcode::SLOT_INFO => Event::Slot(length(input)?, length(input)?, length(input)?),
            opcode::AUX => Event::Aux(string(input, bytes_max)?, string(input, bytes_max)?),
            opcode::FUNCTION => Event::Function(string(input, bytes_max)?),
            opcode::FUNCTION_UNRELEASED => {
                let message = "functions of a release candidate of Redis 7.0 are not read";
                return Err(Stop::Bad(Error::not_supported(message)));
            }
            opcode::MODULE_AUX => {
                let module = module_name(length(input)?);
                let message = format!("the file holds data of the module {module:?}");
                return Err(Stop::Bad(Error::not_supported(message)));
            }
            code => {
                let key = string(input, bytes_max)?;
                if let 6 | 7 = code {
                    let module = module_name(length(input)?);
                    let message = format!("a value is of the module {module:?}");
                    return Err(Stop::Bad(Error::not_supported(message)));
                }
                Event::Key(self.begin_key(code, key)?)
            }
        };
        Ok(Some(event))
    }

    fn begin_key(&mut self, code: u8, key: Bytes) -> Result<KeyHead> {
        let body = Body::new(code)?;
        let head = KeyHead {
            db: self.db,
            key,
            kind: body.kind(),
            expire_ms: self.expire_ms.take(),
            idle_seconds: self.idle_seconds.take(),
            frequency: self.frequency.take(),
        };
        self.state = State::Body(body);
        Ok(head)
    }
}

/// The version in the first nine bytes.
fn version(input: &mut Cursor<'_>) -> Parsed<u16> {
    let header: [u8; 9] = input.array()?;
    let digits = header.strip_prefix(MAGIC);
    let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_digit));
    let Some(digits) = digits else {
        return bad("the file does not begin as an RDB file");
    };
    let sum = |sum: u16, digit: &u8| sum * 10 + u16::from(digit - b'0');
    let version = digits.iter().fold(0, sum);
    if version == 0 || version > VERSION_READ_MAX {
        let message = format!("version {version} of RDB files is not read");
        return Err(Stop::Bad(Error::not_supported(message)));
    }
    Ok(version)
}

/// The name in the number of a module: nine letters of six bits above ten bits of its version.
fn module_name(number: u64) -> String {
    let letter = |place: u32| match (number >> (10 + 6 * place)) as u8 & 0x3f {
        code @ 0..=25 => char::from(b'A' + code),
        code @ 26..=51 => char::from(b'a' + code - 26),
        code @ 52..=61 => char::from(b'0' + code - 52),
        62 => '-',
        _ => '_',
    };
    (0..9).rev().map(letter).collect()
}
