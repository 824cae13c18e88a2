//! Whole RDB files.

use drumlin_base::{Error, Result};

use crate::crc64;
use crate::encode::streams::{self, StreamPart};
use crate::encode::{Body, Encoding, Version, length, string, write_value};
use crate::lzf::Compressor;
use crate::value::{Item, Kind, Value};

/// Bytes that are gathered before they are handed on.
const BUFFER_BYTES: usize = 64 << 10;

/// Where a writer's bytes go.
pub trait Sink {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// Those of storing them.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
}

impl Sink for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// The facts of a key that are stored before its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyFacts {
    /// When it expires, in milliseconds of Unix time.
    pub expire_ms: Option<i64>,
    /// Seconds since it was last used.
    pub idle_seconds: Option<u64>,
    /// How often it is used, on Redis's logarithmic scale.
    pub frequency: Option<u8>,
}

/// Writes an RDB file: the header at once, then a part for each call, until [`FileWriter::finish`].
///
/// Values come whole ([`FileWriter::key`]) or item by item ([`FileWriter::begin`]), so that a large one does not
/// have to be in memory.
pub struct FileWriter<S> {
    sink: S,
    encoding: Encoding,
    buffer: Vec<u8>,
    crc: u64,
    lzf: Compressor,
    /// The type of the value that was begun, and the items that it waits for.
    begun: Option<(Kind, u64)>,
}

impl<S> std::fmt::Debug for FileWriter<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("FileWriter");
        out.field("encoding", &self.encoding)
            .field("begun", &self.begun);
        out.finish_non_exhaustive()
    }
}

impl<S: Sink> FileWriter<S> {
    /// Begins a file.
    pub fn new(sink: S, encoding: Encoding) -> Self {
        Self {
            sink,
            encoding,
            buffer: format!("REDIS{:04}", encoding.version.number()).into_bytes(),
            crc: 0,
            lzf: Compressor::new(),
            begun: None,
        }
    }

    /// A fact about the file, such as `redis-ver`.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn aux(&mut self, name: &[u8], value: &[u8]) -> Result<()> {
        self.buffer.push(250);
        string(&mut self.buffer, name, None);
        string(&mut self.buffer, value, None);
        self.hand_on()
    }

    /// The code of a library of functions.
    ///
    /// # Errors
    /// NotSupported before version 10; those of the sink.
    pub fn function(&mut self, code: &[u8]) -> Result<()> {
        if self.encoding.version < Version::V10 {
            return Err(Error::not_supported(
                "functions are of version 10, which Redis 7.0 reads",
            ));
        }
        self.buffer.push(245);
        string(&mut self.buffer, code, None);
        self.hand_on()
    }

    /// The database of the keys that follow, with its number of keys, and of those that expire.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn select(&mut self, db: u64, keys: u64, expiring: u64) -> Result<()> {
        self.buffer.push(254);
        length(&mut self.buffer, db);
        self.buffer.push(251);
        length(&mut self.buffer, keys);
        length(&mut self.buffer, expiring);
        self.hand_on()
    }

    /// A key with its value.
    ///
    /// # Errors
    /// Those of [`crate::dump::encode`], and then nothing was written; those of the sink.
    pub fn key(&mut self, key: &[u8], facts: &KeyFacts, value: &Value) -> Result<()> {
        self.between()?;
        let before = self.buffer.len();
        self.facts(facts);
        let code_at = self.buffer.len();
        self.buffer.push(0);
        string(&mut self.buffer, key, None);
        let written = write_value(&mut self.buffer, value, &self.encoding, &mut self.lzf);
        let code = written.inspect_err(|_| self.buffer.truncate(before))?;
        if let Some(slot) = self.buffer.get_mut(code_at) {
            *slot = code;
        }
        self.hand_on()
    }

    /// A key whose `count` items follow one by one, in a plain form.
    ///
    /// # Errors
    /// InvalidArgument for strings, which come whole, and streams, which begin with [`FileWriter::begin_stream`], for no items,
    /// and within another value; those of the sink.
    pub fn begin(&mut self, key: &[u8], facts: &KeyFacts, kind: Kind, count: u64) -> Result<()> {
        self.between()?;
        let code = match kind {
            Kind::List => 1,
            Kind::Set => 2,
            Kind::Hash => 4,
            Kind::ZSet => 5,
            Kind::String | Kind::Stream => {
                return Err(Error::invalid_argument("its items are no values"));
            }
        };
        if count == 0 {
            return Err(Error::invalid_argument("an empty collection is no value"));
        }
        self.facts(facts);
        self.buffer.push(code);
        string(&mut self.buffer, key, None);
        length(&mut self.buffer, count);
        self.begun = Some((kind, count));
        self.hand_on()
    }

    /// The next item of the value that was begun. The last one ends it.
    ///
    /// # Errors
    /// InvalidArgument when none is waited for, for one of another type, and for a NaN; NotSupported for a field that
    /// expires, as its hash has to come whole; those of the sink.
    pub fn item(&mut self, item: &Item) -> Result<()> {
        let Some((kind, left)) = self.begun else {
            return Err(Error::invalid_argument("an item belongs to no value"));
        };
        let (out, encoding, lzf) = (&mut self.buffer, &self.encoding, &mut self.lzf);
        let mut body = Body { out, encoding, lzf };
        match (kind, item) {
            (Kind::List, Item::Element(text)) | (Kind::Set, Item::Member(text)) => {
                body.string(text)
            }
            (Kind::ZSet, Item::Scored(member, score)) => body.scored(member, *score)?,
            (Kind::Hash, Item::Field(field)) if field.expire_ms.is_none() => {
                body.string(&field.name);
                body.string(&field.value);
            }
            (Kind::Hash, Item::Field(_)) => {
                return Err(Error::not_supported(
                    "a hash whose fields expire comes whole",
                ));
            }
            _ => {
                return Err(Error::invalid_argument(
                    "an item is of another type than its value",
                ));
            }
        }
        self.begun = (left > 1).then_some((kind, left - 1));
        self.hand_on()
    }

    /// A stream whose parts follow one by one, until [`FileWriter::end_stream`]; it has `nodes` nodes.
    ///
    /// # Errors
    /// InvalidArgument within another value; those of the sink.
    pub fn begin_stream(&mut self, key: &[u8], facts: &KeyFacts, nodes: u64) -> Result<()> {
        self.between()?;
        self.facts(facts);
        self.buffer.push(streams::code(self.encoding.version));
        string(&mut self.buffer, key, None);
        length(&mut self.buffer, nodes);
        self.begun = Some((Kind::Stream, nodes));
        self.hand_on()
    }

    /// The next part of the stream that was begun.
    ///
    /// # Errors
    /// InvalidArgument outside of a stream, for more or fewer nodes than were told, and for fields that no node holds; those
    /// of the sink.
    pub fn stream_part(&mut self, part: &StreamPart<'_>) -> Result<()> {
        let Some((Kind::Stream, left)) = self.begun else {
            return Err(Error::invalid_argument("a part belongs to no stream"));
        };
        let left = match (part, left) {
            (StreamPart::Node(_), 1..) => left - 1,
            (StreamPart::Node(_), 0) | (_, 1..) => {
                let message = "a stream has other nodes than were told";
                return Err(Error::invalid_argument(message));
            }
            _ => 0,
        };
        self.begun = Some((Kind::Stream, left));
        let (out, encoding, lzf) = (&mut self.buffer, &self.encoding, &mut self.lzf);
        streams::write_part(&mut Body { out, encoding, lzf }, part)?;
        self.hand_on()
    }

    /// Ends the stream that was begun.
    ///
    /// # Errors
    /// InvalidArgument outside of a stream and for missing nodes.
    pub fn end_stream(&mut self) -> Result<()> {
        match self.begun.take() {
            Some((Kind::Stream, 0)) => Ok(()),
            _ => Err(Error::invalid_argument("no stream ends here")),
        }
    }

    /// Ends the file, and returns the sink.
    ///
    /// # Errors
    /// InvalidArgument within a value; those of the sink.
    pub fn finish(mut self) -> Result<S> {
        self.between()?;
        self.buffer.push(255);
        self.flush()?;
        let crc = self.crc;
        self.sink.append(&crc.to_le_bytes())?;
        Ok(self.sink)
    }

    fn between(&self) -> Result<()> {
        if self.begun.is_some() {
            return Err(Error::invalid_argument("the value before misses items"));
        }
        Ok(())
    }

    fn facts(&mut self, facts: &KeyFacts) {
        if let Some(time) = facts.expire_ms {
            self.buffer.push(252);
            self.buffer.extend_from_slice(&time.to_le_bytes());
        }
        if let Some(seconds) = facts.idle_seconds {
            self.buffer.push(248);
            length(&mut self.buffer, seconds);
        }
        if let Some(frequency) = facts.frequency {
            self.buffer.extend_from_slice(&[249, frequency]);
        }
    }

    fn hand_on(&mut self) -> Result<()> {
        if self.buffer.len() < BUFFER_BYTES {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        self.crc = crc64::extend(self.crc, &self.buffer);
        self.sink.append(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
