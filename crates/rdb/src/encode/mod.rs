//! From values to bytes: strings, values, whole files.
//!
//! A value is written plainly, item by item, or packed, as Redis keeps small values itself. Plain forms are older than
//! any Redis in use, so a payload of them is taken everywhere; packed ones are smaller and load faster.

use drumlin_base::{Error, Result};

use crate::listpack;
use crate::lzf::Compressor;
use crate::number::{integer, score_text};
use crate::value::{Field, Stream, Value};
use crate::{intset, value};

pub(crate) mod file;
pub(crate) mod streams;

/// A version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Redis 5.0 to 6.2.
    V9,
    /// Redis 7.0: listpacks, counters of streams, functions.
    V10,
    /// Redis 7.2: sets as listpacks, active times of consumers.
    V11,
    /// Redis 7.4: fields that expire.
    V12,
}

impl Version {
    /// Its number in files.
    pub fn number(self) -> u16 {
        match self {
            Self::V9 => 9,
            Self::V10 => 10,
            Self::V11 => 11,
            Self::V12 => 12,
        }
    }

    /// The oldest version that holds all of `value`.
    pub fn oldest_for(value: &Value) -> Self {
        match value {
            Value::Hash(fields) if fields.iter().any(|field| field.expire_ms.is_some()) => {
                Self::V12
            }
            Value::Stream(stream) => streams::oldest_for(stream),
            _ => Self::V9,
        }
    }
}

/// How values are written.
#[derive(Clone, Copy, Debug)]
pub struct Encoding {
    /// The version of the format, and so the oldest Redis that reads it.
    pub version: Version,
    /// Whether strings are compressed where that makes them shorter.
    pub compress: bool,
    /// Most items of a value that is packed; Redis's default is 128 to 512. A list is always packed where its version
    /// has listpacks and this is not 0, in nodes of so many.
    pub packed_items_max: usize,
    /// Most bytes of an item that is packed; Redis's default is 64.
    pub packed_item_bytes_max: usize,
}

impl Encoding {
    /// Nothing packed but small sets of integers, nothing compressed.
    pub fn plain(version: Version) -> Self {
        Self {
            version,
            compress: false,
            packed_items_max: 0,
            packed_item_bytes_max: 0,
        }
    }

    /// Packed and compressed as Redis does by default.
    pub fn compact(version: Version) -> Self {
        Self {
            version,
            compress: true,
            packed_items_max: 128,
            packed_item_bytes_max: 64,
        }
    }

    fn packs<'a>(&self, count: usize, mut texts: impl Iterator<Item = &'a [u8]>) -> bool {
        count <= self.packed_items_max && texts.all(|text| text.len() <= self.packed_item_bytes_max)
    }
}

/// Most members of a set that is written as an intset; Redis's default.
const INTSET_MEMBERS_MAX: usize = 512;
/// Bytes after which a node of a list is closed; Redis's default.
const LIST_NODE_BYTES: usize = 8192;
/// Shorter strings are never compressed; Redis does the same.
const COMPRESSED_BYTES_MIN: usize = 21;

/// Appends a length.
pub(crate) fn length(out: &mut Vec<u8>, length: u64) {
    match length {
        0..=0x3f => out.push(length as u8),
        0x40..=0x3fff => out.extend_from_slice(&[0x40 | (length >> 8) as u8, length as u8]),
        0x4000..=0xffff_ffff => {
            out.push(0x80);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
        _ => {
            out.push(0x81);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

/// Appends a string: as an integer of up to 32 bits, compressed, or as it is.
pub(crate) fn string(out: &mut Vec<u8>, text: &[u8], lzf: Option<&mut Compressor>) {
    let small = integer(text).and_then(|number| i32::try_from(number).ok());
    if let Some(number) = small {
        let word = number.to_le_bytes();
        let (mark, bytes) = match number {
            -0x80..=0x7f => (0xc0, 1),
            -0x8000..=0x7fff => (0xc1, 2),
            _ => (0xc2, 4),
        };
        out.push(mark);
        return out.extend_from_slice(word.get(..bytes).unwrap_or_default());
    }
    let packed = lzf.filter(|_| text.len() >= COMPRESSED_BYTES_MIN);
    if let Some(packed) = packed.and_then(|lzf| lzf.compress(text)) {
        out.push(0xc3);
        length(out, packed.len() as u64);
        length(out, text.len() as u64);
        return out.extend_from_slice(&packed);
    }
    length(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Writes strings and values made of them.
pub(crate) struct Body<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) encoding: &'a Encoding,
    pub(crate) lzf: &'a mut Compressor,
}

impl Body<'_> {
    pub(crate) fn length(&mut self, value: u64) {
        length(self.out, value);
    }

    pub(crate) fn string(&mut self, text: &[u8]) {
        string(
            self.out,
            text,
            self.encoding.compress.then_some(&mut *self.lzf),
        );
    }

    pub(crate) fn scored(&mut self, member: &[u8], score: f64) -> Result<()> {
        if score.is_nan() {
            return Err(Error::invalid_argument("a score is not a number"));
        }
        self.string(member);
        self.out.extend_from_slice(&score.to_bits().to_le_bytes());
        Ok(())
    }

    fn packed<'t>(&mut self, texts: impl Iterator<Item = &'t [u8]>) -> Result<()> {
        let mut node = listpack::Writer::new();
        texts.for_each(|text| node.push(text));
        let node = node.finish()?;
        self.string(&node);
        Ok(())
    }
}

/// Appends the body of `value` to `out`, and returns its type.
pub(crate) fn write_value(
    out: &mut Vec<u8>,
    value: &Value,
    encoding: &Encoding,
    lzf: &mut Compressor,
) -> Result<u8> {
    let mut body = Body { out, encoding, lzf };
    let empty = match value {
        Value::String(text) => {
            body.string(text);
            return Ok(0);
        }
        Value::Stream(stream) => return write_stream(&mut body, stream),
        Value::List(elements) => elements.is_empty(),
        Value::Set(members) => members.is_empty(),
        Value::ZSet(members) => members.is_empty(),
        Value::Hash(fields) => fields.is_empty(),
    };
    if empty {
        return Err(Error::invalid_argument("an empty collection is no value"));
    }
    match value {
        Value::List(elements) => write_list(&mut body, elements),
        Value::Set(members) => write_set(&mut body, members),
        Value::ZSet(members) => write_zset(&mut body, members),
        Value::Hash(fields) => write_hash(&mut body, fields),
        Value::String(_) | Value::Stream(_) => Ok(0),
    }
}

fn write_stream(body: &mut Body<'_>, stream: &Stream) -> Result<u8> {
    streams::write(body, stream)
}

fn write_list(body: &mut Body<'_>, elements: &[value::Bytes]) -> Result<u8> {
    let encoding = *body.encoding;
    if encoding.version < Version::V10 || encoding.packed_items_max == 0 {
        body.length(elements.len() as u64);
        elements.iter().for_each(|element| body.string(element));
        return Ok(1);
    }
    // Runs of small elements, and large ones each on its own.
    let mut nodes: Vec<&[value::Bytes]> = Vec::new();
    let mut rest = elements;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |element: &&value::Bytes| {
            bytes += element.len();
            bytes <= LIST_NODE_BYTES
        };
        let run = rest.iter().take(encoding.packed_items_max).take_while(fits);
        let (node, behind) = rest.split_at(run.count().max(1));
        nodes.push(node);
        rest = behind;
    }
    body.length(nodes.len() as u64);
    for node in nodes {
        match node {
            [large] if large.len() > LIST_NODE_BYTES => {
                body.length(1);
                body.string(large);
            }
            node => {
                body.length(2);
                body.packed(node.iter().map(Vec::as_slice))?;
            }
        }
    }
    Ok(18)
}

fn write_set(body: &mut Body<'_>, members: &[value::Bytes]) -> Result<u8> {
    if members.len() <= INTSET_MEMBERS_MAX {
        let integers: Option<Vec<i64>> = members.iter().map(|member| integer(member)).collect();
        if let Some(packed) = integers.and_then(|mut integers| intset::encode(&mut integers)) {
            body.string(&packed);
            return Ok(11);
        }
    }
    let texts = || members.iter().map(Vec::as_slice);
    if body.encoding.version >= Version::V11 && body.encoding.packs(members.len(), texts()) {
        body.packed(texts())?;
        return Ok(20);
    }
    body.length(members.len() as u64);
    texts().for_each(|member| body.string(member));
    Ok(2)
}

fn write_zset(body: &mut Body<'_>, members: &[(value::Bytes, f64)]) -> Result<u8> {
    let texts = || members.iter().map(|(member, _)| member.as_slice());
    let packs = body.encoding.packs(members.len(), texts());
    if body.encoding.version < Version::V10 || !packs {
        body.length(members.len() as u64);
        for (member, score) in members {
            body.scored(member, *score)?;
        }
        return Ok(5);
    }
    if members.iter().any(|(_, score)| score.is_nan()) {
        return Err(Error::invalid_argument("a score is not a number"));
    }
    // A packed one is in the order of its scores, and members of one score in that of their bytes. -0 and 0 are
    // one score.
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by(|(one, low), (other, high)| {
        low.partial_cmp(high)
            .unwrap_or(std::cmp::Ordering::Equal)
            .then_with(|| one.cmp(other))
    });
    let mut node = listpack::Writer::new();
    for (member, score) in sorted {
        node.push(member);
        node.push(score_text(*score).as_bytes());
    }
    let node = node.finish()?;
    body.string(&node);
    Ok(17)
}

fn write_hash(body: &mut Body<'_>, fields: &[Field]) -> Result<u8> {
    if fields.iter().any(|field| field.expire_ms.is_some()) {
        return write_timed_hash(body, fields);
    }
    let texts = || {
        fields
            .iter()
            .flat_map(|field| [field.name.as_slice(), &field.value])
    };
    if body.encoding.version >= Version::V10 && body.encoding.packs(fields.len(), texts()) {
        body.packed(texts())?;
        return Ok(16);
    }
    body.length(fields.len() as u64);
    texts().for_each(|text| body.string(text));
    Ok(4)
}

fn write_timed_hash(body: &mut Body<'_>, fields: &[Field]) -> Result<u8> {
    if body.encoding.version < Version::V12 {
        let message = "fields that expire are of version 12, which Redis 7.4 reads";
        return Err(Error::not_supported(message));
    }
    let times = fields.iter().filter_map(|field| field.expire_ms);
    let most = crate::decode::chunk::FIELD_EXPIRE_MS_MAX;
    if times.clone().any(|time| time == 0 || time > most) {
        return Err(Error::invalid_argument("the expiry of a field is no time"));
    }
    let least = times.min().unwrap_or_default();
    body.out.extend_from_slice(&least.to_le_bytes());
    let texts = fields
        .iter()
        .flat_map(|field| [field.name.as_slice(), &field.value]);
    if !body.encoding.packs(fields.len(), texts) {
        body.length(fields.len() as u64);
        for field in fields {
            body.length(field.expire_ms.map_or(0, |time| time - least + 1));
            body.string(&field.name);
            body.string(&field.value);
        }
        return Ok(24);
    }
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|field| field.expire_ms.unwrap_or(u64::MAX));
    let mut node = listpack::Writer::new();
    for field in sorted {
        node.push(&field.name);
        node.push(&field.value);
        // At most 48 bits, as was seen above.
        node.push_integer(field.expire_ms.unwrap_or_default() as i64);
    }
    let node = node.finish()?;
    body.string(&node);
    Ok(25)
}
