//! Compression of single blocks, as the two engines store them.
//!
//! A block is stored compressed only if that saves an eighth of it; the type byte in its trailer
//! says which codec was used. How a compressed block tells its original size depends on the file
//! ([`Framing`]). Byte tables: `docs/format/block-table.md`.
//!
//! Invariant: decompression allocates no more than the caller's limit, and never more than the
//! codec could possibly have packed into the input; a block whose contents do not have exactly the
//! size it declares is damaged.
//!
//! Thread safety: functions may be called from any thread; each thread keeps its own codec
//! contexts (a zstd context costs more to make than a block costs to compress).

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;

use drumlin_base::coding::{Reader, put_varint32, varint_len};
use drumlin_base::limits::BLOCK_BYTES_MAX;
use drumlin_base::{Error, Result};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{self, CCtx, DCtx};

use crate::format::TableStyle;

/// zstd's level when none is asked for, as RocksDB has it.
const ZSTD_LEVEL_DEFAULT: i32 = 3;
/// zlib's level when none is asked for.
const ZLIB_LEVEL_DEFAULT: u32 = 6;
/// bzip2's block size in units of 100 kB; blocks here are far smaller than one.
const BZIP2_LEVEL_DEFAULT: u32 = 1;

/// A compression algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Blocks are stored as they are.
    None,
    /// Snappy.
    Snappy,
    /// Raw deflate.
    Zlib,
    /// bzip2.
    Bzip2,
    /// LZ4.
    #[default]
    Lz4,
    /// LZ4 under the name of its slower coder. Read like [`Codec::Lz4`]; written by the fast coder.
    Lz4Hc,
    /// Zstandard.
    Zstd,
}

impl Codec {
    const ALL: [Self; 7] = [
        Self::None,
        Self::Snappy,
        Self::Zlib,
        Self::Bzip2,
        Self::Lz4,
        Self::Lz4Hc,
        Self::Zstd,
    ];

    /// The type byte in the trailer of blocks of a file of `style`; `None` when such files cannot
    /// hold this codec.
    pub fn id(self, style: TableStyle) -> Option<u8> {
        match (style, self) {
            (_, Self::None) => Some(0),
            (_, Self::Snappy) => Some(1),
            (TableStyle::LevelDb, Self::Zstd) => Some(2),
            (TableStyle::LevelDb, _) => None,
            (TableStyle::RocksDb, Self::Zlib) => Some(2),
            (TableStyle::RocksDb, Self::Bzip2) => Some(3),
            (TableStyle::RocksDb, Self::Lz4) => Some(4),
            (TableStyle::RocksDb, Self::Lz4Hc) => Some(5),
            (TableStyle::RocksDb, Self::Zstd) => Some(7),
        }
    }

    /// The codec behind type byte `id` in a file of `style`.
    ///
    /// # Errors
    /// `NotSupported` for Xpress and for custom codecs, `Corruption` for a byte nobody writes.
    pub fn from_id(id: u8, style: TableStyle) -> Result<Self> {
        let found = Self::ALL
            .into_iter()
            .find(|codec| codec.id(style) == Some(id));
        match (found, style) {
            (Some(codec), _) => Ok(codec),
            (None, TableStyle::RocksDb) if id == 6 => {
                Err(Error::not_supported("blocks compressed with Xpress"))
            }
            (None, TableStyle::RocksDb) if id >= 0x80 => Err(Error::not_supported(format!(
                "blocks of a custom compression type, {id:#04x}"
            ))),
            _ => Err(Error::corruption(format!("unknown compression type {id}"))),
        }
    }

    /// RocksDB's name of the codec, the value of property `rocksdb.compression`.
    pub fn property_name(self) -> &'static str {
        match self {
            Self::None => "NoCompression",
            Self::Snappy => "Snappy",
            Self::Zlib => "Zlib",
            Self::Bzip2 => "BZip2",
            Self::Lz4 => "LZ4",
            Self::Lz4Hc => "LZ4HC",
            Self::Zstd => "ZSTD",
        }
    }

    /// Whether blocks of this codec can be written with a dictionary.
    pub fn takes_dictionary(self) -> bool {
        matches!(self, Self::Lz4 | Self::Lz4Hc | Self::Zstd)
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
            Self::Lz4Hc => "lz4hc",
            Self::Zstd => "zstd",
        })
    }
}

impl FromStr for Codec {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|codec| codec.to_string() == name).ok_or_else(|| {
            Error::invalid_argument(format!(
                "unknown compression {name:?} (none, snappy, zlib, bzip2, lz4, lz4hc or zstd)"
            ))
        })
    }
}

/// How tables are to be compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// The algorithm.
    pub codec: Codec,
    /// Its level; `None` for the codec's default. Snappy and LZ4 have none.
    pub level: Option<i32>,
    /// Size of a dictionary shared by a table's data blocks; 0 for none. Only zstd and LZ4 use one.
    pub dictionary_bytes: u32,
}

impl Compression {
    /// `codec` at its default level, without a dictionary.
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            ..Self::default()
        }
    }

    /// No compression.
    pub fn none() -> Self {
        Self::new(Codec::None)
    }
}

/// How a compressed block tells the size of its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// LevelDB: each codec's own format tells it.
    LevelDb,
    /// RocksDB of version 2 and later: a varint32 before all codecs but Snappy.
    SizePrefix,
    /// RocksDB of version 1: eight bytes before LZ4; only that and Snappy are read.
    FixedPrefix,
}

impl Framing {
    /// The framing of a file of `style` and `format_version`.
    pub fn of(style: TableStyle, format_version: u32) -> Self {
        match style {
            TableStyle::LevelDb => Self::LevelDb,
            TableStyle::RocksDb if format_version >= 2 => Self::SizePrefix,
            TableStyle::RocksDb => Self::FixedPrefix,
        }
    }

    /// Whose type bytes go with it.
    pub fn style(self) -> TableStyle {
        match self {
            Self::LevelDb => TableStyle::LevelDb,
            Self::SizePrefix | Self::FixedPrefix => TableStyle::RocksDb,
        }
    }
}

/// A dictionary ready for use by many threads.
pub struct PreparedDict {
    raw: Vec<u8>,
    decoder: Option<DecoderDictionary<'static>>,
    encoder: Option<EncoderDictionary<'static>>,
}

impl PreparedDict {
    /// A dictionary to read blocks with: the contents of block `rocksdb.compression_dict`.
    ///
    /// Costs about the dictionary's size once more.
    pub fn for_reading(raw: Vec<u8>) -> Self {
        let decoder = DecoderDictionary::try_copy(&raw).ok();
        Self {
            raw,
            decoder,
            encoder: None,
        }
    }

    /// A dictionary to write blocks with. Reading works too.
    pub fn for_writing(raw: Vec<u8>, compression: &Compression) -> Self {
        let mut dict = Self::for_reading(raw);
        if compression.codec == Codec::Zstd {
            let level = compression.level.unwrap_or(ZSTD_LEVEL_DEFAULT);
            dict.encoder = EncoderDictionary::try_copy(&dict.raw, level).ok();
        }
        dict
    }

    /// The bytes to store in the table.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Memory it holds, about.
    pub fn resident_bytes(&self) -> usize {
        let copies = 1 + usize::from(self.decoder.is_some()) + usize::from(self.encoder.is_some());
        self.raw.len().saturating_mul(copies)
    }
}

impl fmt::Debug for PreparedDict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedDict")
            .field("raw_bytes", &self.raw.len())
            .finish_non_exhaustive()
    }
}

/// A dictionary of at most `dictionary_bytes` for blocks like `samples`.
///
/// zstd's trainer is asked for [`Codec::Zstd`]; when it finds too little to learn from, and for
/// LZ4, the dictionary is the samples themselves, evenly chosen. Empty when there are no samples or
/// the codec takes none.
pub fn train_dictionary(compression: &Compression, samples: &[&[u8]]) -> Vec<u8> {
    let limit = compression.dictionary_bytes as usize;
    if limit == 0 || !compression.codec.takes_dictionary() {
        return Vec::new();
    }
    if compression.codec == Codec::Zstd
        && let Ok(trained) = zstd::dict::from_samples(samples, limit)
        && !trained.is_empty()
    {
        return trained;
    }
    raw_dictionary(samples, limit)
}

/// Whole samples spread evenly over all of them until `limit` is reached; the last one is cut.
fn raw_dictionary(samples: &[&[u8]], limit: usize) -> Vec<u8> {
    let total: usize = samples.iter().map(|sample| sample.len()).sum();
    let step = (total / limit.max(1)).max(1);
    let mut dict = Vec::with_capacity(limit.min(total));
    for sample in samples.iter().step_by(step) {
        let room = limit - dict.len();
        dict.extend_from_slice(sample.get(..room).unwrap_or(sample));
        if dict.len() == limit {
            break;
        }
    }
    dict
}

/// Appends `input` to `out`, compressed when that saves an eighth, else as it is; the codec whose
/// id belongs into the block's trailer.
///
/// `level` is ignored when `dict` is used, which was prepared with one. A codec that `framing`'s
/// files cannot hold stores the block as it is.
pub fn compress(
    codec: Codec,
    level: Option<i32>,
    dict: Option<&PreparedDict>,
    input: &[u8],
    framing: Framing,
    out: &mut Vec<u8>,
) -> Codec {
    let start = out.len();
    if try_compress(codec, level, dict, input, framing, out).is_some() {
        return codec;
    }
    out.truncate(start);
    out.extend_from_slice(input);
    Codec::None
}

/// Largest stored size worth it: RocksDB and LevelDB both ask for less than seven eighths.
fn worthwhile_bytes(input: usize) -> usize {
    (input - input / 8).saturating_sub(1)
}

fn try_compress(
    codec: Codec,
    level: Option<i32>,
    dict: Option<&PreparedDict>,
    input: &[u8],
    framing: Framing,
    out: &mut Vec<u8>,
) -> Option<()> {
    codec.id(framing.style())?;
    if framing == Framing::FixedPrefix {
        return None; // Such files are only read.
    }
    let start = out.len();
    let input_len = u32::try_from(input.len()).ok()?;
    let prefix = match codec {
        Codec::None => return None,
        Codec::Snappy => 0,
        _ if framing == Framing::LevelDb => 0,
        _ => {
            put_varint32(out, input_len);
            varint_len(u64::from(input_len))
        }
    };
    let budget = worthwhile_bytes(input.len()).checked_sub(prefix)?;
    let body = start + prefix;
    let written = CODERS.with_borrow_mut(|coders| match codec {
        Codec::None => None,
        Codec::Snappy => coders.snappy(input, body, out),
        Codec::Zlib => coders.deflate(level, input, body, budget, out),
        Codec::Bzip2 => bzip2_compress(level, input, body, budget, out),
        Codec::Lz4 | Codec::Lz4Hc => coders.lz4(dict, input, body, out),
        Codec::Zstd => coders.zstd(level, dict, input, body, budget, out),
    })?;
    out.truncate(body + written);
    (written <= budget).then_some(())
}

thread_local! {
    static CODERS: RefCell<Coders> = RefCell::new(Coders::default());
}

/// One thread's codec contexts, each made when first needed.
#[derive(Default)]
struct Coders {
    zstd_encoder: Option<CCtx<'static>>,
    zstd_decoder: Option<DCtx<'static>>,
    snappy_encoder: Option<Box<snap::raw::Encoder>>,
    lz4_table: Option<lz4_flex::block::CompressTable>,
    deflater: Option<(u32, flate2::Compress)>,
    inflater: Option<flate2::Decompress>,
}

/// Makes `out[body..]` at least `bytes` long and returns it.
fn room(out: &mut Vec<u8>, body: usize, bytes: usize) -> Option<&mut [u8]> {
    out.resize(body.checked_add(bytes)?, 0);
    out.get_mut(body..)
}

impl Coders {
    fn snappy(&mut self, input: &[u8], body: usize, out: &mut Vec<u8>) -> Option<usize> {
        let encoder = self
            .snappy_encoder
            .get_or_insert_with(|| Box::new(snap::raw::Encoder::new()));
        let bound = snap::raw::max_compress_len(input.len());
        encoder.compress(input, room(out, body, bound)?).ok()
    }

    fn lz4(
        &mut self,
        dict: Option<&PreparedDict>,
        input: &[u8],
        body: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let space = room(
            out,
            body,
            lz4_flex::block::get_maximum_output_size(input.len()),
        )?;
        match dict {
            Some(dict) => lz4_flex::block::compress_into_with_dict(input, space, &dict.raw).ok(),
            None => {
                let table = self.lz4_table.get_or_insert_default();
                lz4_flex::block::compress_into_with_table(input, space, table).ok()
            }
        }
    }

    fn zstd(
        &mut self,
        level: Option<i32>,
        dict: Option<&PreparedDict>,
        input: &[u8],
        body: usize,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        if self.zstd_encoder.is_none() {
            self.zstd_encoder = CCtx::try_create();
        }
        let encoder = self.zstd_encoder.as_mut()?;
        let space = room(out, body, budget)?;
        match dict {
            Some(dict) => {
                let prepared = dict.encoder.as_ref()?;
                encoder
                    .compress_using_cdict(space, input, prepared.as_cdict())
                    .ok()
            }
            None => encoder
                .compress(space, input, level.unwrap_or(ZSTD_LEVEL_DEFAULT))
                .ok(),
        }
    }

    fn deflate(
        &mut self,
        level: Option<i32>,
        input: &[u8],
        body: usize,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let level = level
            .and_then(|level| u32::try_from(level).ok())
            .map_or(ZLIB_LEVEL_DEFAULT, |level| level.min(9));
        if self.deflater.as_ref().is_none_or(|(has, _)| *has != level) {
            let coder = flate2::Compress::new(flate2::Compression::new(level), false);
            self.deflater = Some((level, coder));
        }
        let (_, coder) = self.deflater.as_mut()?;
        coder.reset();
        let space = room(out, body, budget)?;
        let status = coder
            .compress(input, space, flate2::FlushCompress::Finish)
            .ok()?;
        if status != flate2::Status::StreamEnd {
            return None; // It did not fit.
        }
        usize::try_from(coder.total_out()).ok()
    }

    /// `declared` bytes out of `input`, into a vector of their own.
    fn inflate(
        &mut self,
        dict: Option<&PreparedDict>,
        input: &[u8],
        declared: usize,
    ) -> Option<Vec<u8>> {
        let coder = self
            .inflater
            .get_or_insert_with(|| flate2::Decompress::new(false));
        coder.reset(false);
        // The coder takes no dictionary for raw deflate. The same is reached by a stored block
        // with the dictionary in front of the stream: matches may then reach back into it. Stored
        // blocks end on a byte, so the two streams simply follow each other.
        let preset = dict.map_or(&[][..], |dict| last_window(&dict.raw));
        let mut out = vec![0; preset.len().checked_add(declared)?];
        if !preset.is_empty() {
            let stored = stored_block(preset)?;
            let status = coder.decompress(&stored, &mut out, flate2::FlushDecompress::None);
            let taken = usize::try_from(coder.total_in()).ok()?;
            if status.ok()? != flate2::Status::Ok || taken != stored.len() {
                return None;
            }
        }
        let written = usize::try_from(coder.total_out()).ok()?;
        let space = out.get_mut(written..)?;
        let status = coder.decompress(input, space, flate2::FlushDecompress::Finish);
        if status.ok()? != flate2::Status::StreamEnd {
            return None;
        }
        out.truncate(usize::try_from(coder.total_out()).ok()?);
        out.drain(..preset.len());
        Some(out)
    }

    fn unzstd(
        &mut self,
        dict: Option<&PreparedDict>,
        input: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        if self.zstd_decoder.is_none() {
            self.zstd_decoder = DCtx::try_create();
        }
        let decoder = self.zstd_decoder.as_mut()?;
        match dict {
            Some(dict) => {
                let prepared = dict.decoder.as_ref()?;
                decoder
                    .decompress_using_ddict(out, input, prepared.as_ddict())
                    .ok()
            }
            None => decoder.decompress(out, input).ok(),
        }
    }
}

/// The part of a dictionary that deflate can reach: the last 32 KiB.
fn last_window(dict: &[u8]) -> &[u8] {
    const WINDOW_BYTES: usize = 32 << 10;
    dict.get(dict.len().saturating_sub(WINDOW_BYTES)..)
        .unwrap_or(dict)
}

/// `bytes` as a deflate block that is stored, not compressed, and not the last.
fn stored_block(bytes: &[u8]) -> Option<Vec<u8>> {
    let len = u16::try_from(bytes.len()).ok()?;
    let mut block = Vec::with_capacity(5 + bytes.len());
    block.push(0);
    block.extend_from_slice(&len.to_le_bytes());
    block.extend_from_slice(&(!len).to_le_bytes());
    block.extend_from_slice(bytes);
    Some(block)
}

fn bzip2_compress(
    level: Option<i32>,
    input: &[u8],
    body: usize,
    budget: usize,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let level = level
        .and_then(|level| u32::try_from(level).ok())
        .map_or(BZIP2_LEVEL_DEFAULT, |level| level.clamp(1, 9));
    let mut coder = bzip2::Compress::new(bzip2::Compression::new(level), 0);
    let space = room(out, body, budget)?;
    let status = coder.compress(input, space, bzip2::Action::Finish).ok()?;
    if status != bzip2::Status::StreamEnd {
        return None;
    }
    usize::try_from(coder.total_out()).ok()
}

/// The contents of a block stored as `input` under type byte `compression` (0 included: a copy).
///
/// `dict` is the table's dictionary, if it has one and this is a data block. At most `limit` bytes
/// are allocated.
///
/// # Errors
/// `Corruption` when the input is damaged, declares more than `limit` or more than its codec could
/// hold, or does not have exactly the size it declares. `NotSupported`, by name, for codecs that
/// this crate does not read.
pub fn decompress(
    compression: u8,
    input: &[u8],
    dict: Option<&PreparedDict>,
    framing: Framing,
    limit: usize,
) -> Result<Vec<u8>> {
    let codec = Codec::from_id(compression, framing.style())?;
    if codec == Codec::None {
        check_size(codec, input.len(), input.len(), limit)?;
        return Ok(input.to_vec());
    }
    let (declared, body) = declared_size(codec, input, framing)?;
    check_size(codec, declared, body.len(), limit)?;
    // Zlib makes its own buffer, which holds the dictionary too.
    let mut out = vec![0; if codec == Codec::Zlib { 0 } else { declared }];
    let written = match codec {
        Codec::None => None,
        Codec::Snappy => snap::raw::Decoder::new().decompress(body, &mut out).ok(),
        Codec::Zlib => CODERS.with_borrow_mut(|coders| {
            out = coders.inflate(dict, body, declared)?;
            Some(out.len())
        }),
        Codec::Bzip2 => bzip2_decompress(body, &mut out),
        Codec::Lz4 | Codec::Lz4Hc => lz4_decompress(dict, body, &mut out),
        Codec::Zstd => CODERS.with_borrow_mut(|coders| coders.unzstd(dict, body, &mut out)),
    };
    match written {
        Some(written) if written == declared => Ok(out),
        Some(written) => Err(Error::corruption(format!(
            "{codec} block holds {written} bytes, but declares {declared}"
        ))),
        None => Err(Error::corruption(format!(
            "damaged {codec} block of {} bytes, declared to hold {declared}",
            input.len()
        ))),
    }
}

fn lz4_decompress(dict: Option<&PreparedDict>, body: &[u8], out: &mut [u8]) -> Option<usize> {
    match dict {
        Some(dict) => lz4_flex::block::decompress_into_with_dict(body, out, &dict.raw).ok(),
        None => lz4_flex::block::decompress_into(body, out).ok(),
    }
}

fn bzip2_decompress(body: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut coder = bzip2::Decompress::new(false);
    let status = coder.decompress(body, out).ok()?;
    if status != bzip2::Status::StreamEnd {
        return None;
    }
    usize::try_from(coder.total_out()).ok()
}

/// What the block says its contents measure, and what follows that.
fn declared_size(codec: Codec, input: &[u8], framing: Framing) -> Result<(usize, &[u8])> {
    let damaged = || Error::corruption(format!("{codec} block does not tell its size"));
    let mut reader = Reader::new(input);
    let declared = match (codec, framing) {
        (Codec::Snappy, _) => snap::raw::decompress_len(input).ok().map(|len| len as u64),
        (Codec::Zstd, Framing::LevelDb) => zstd_safe::get_frame_content_size(input).ok().flatten(),
        (_, Framing::SizePrefix) => reader.varint32().map(u64::from),
        (Codec::Lz4 | Codec::Lz4Hc, Framing::FixedPrefix) => reader.fixed64(),
        (_, Framing::FixedPrefix | Framing::LevelDb) => {
            return Err(Error::not_supported(format!(
                "{codec} blocks in tables of format_version 1"
            )));
        }
    };
    let declared = declared
        .and_then(|declared| usize::try_from(declared).ok())
        .ok_or_else(damaged)?;
    Ok((declared, reader.rest()))
}

/// Refuses sizes over `limit`, and sizes the codec cannot have packed into `stored` bytes.
fn check_size(codec: Codec, declared: usize, stored: usize, limit: usize) -> Result<()> {
    let plausible = match codec {
        Codec::None => stored,
        // The longest copies take three bytes for 64.
        Codec::Snappy => stored.saturating_mul(22),
        // A byte of a length adds at most 255.
        Codec::Lz4 | Codec::Lz4Hc => stored.saturating_mul(255).saturating_add(64),
        // zlib's technical note: 1032 to 1 at best.
        Codec::Zlib => stored.saturating_mul(1032).saturating_add(64),
        // A repeated byte takes four bytes for a block of 128 KiB.
        Codec::Zstd => stored.saturating_mul(32 << 10).saturating_add(128 << 10),
        // Runs are packed twice; an empty block of 900 kB takes some 40 bytes.
        Codec::Bzip2 => stored.saturating_mul(2 << 20),
    };
    let most = limit.min(plausible).min(BLOCK_BYTES_MAX);
    if declared > most {
        return Err(Error::corruption(format!(
            "{codec} block of {stored} bytes declares {declared}, more than the {most} it may hold"
        )));
    }
    Ok(())
}
