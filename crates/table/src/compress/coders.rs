//! Each thread's contexts for the codecs' libraries.
//!
//! Encoders write to `out[body..]`, the room they need included, and return the bytes they used;
//! decoders fill `out`. `None` stands for every way to fail: it did not fit, or it was damaged.

use std::cell::RefCell;

use super::codec::ZSTD_LEVEL_DEFAULT;
use super::dictionary::PreparedDict;
use super::{bzip2, zlib, zstd};

thread_local! {
    pub(super) static CODERS: RefCell<Coders> = RefCell::new(Coders::default());
}

/// One thread's codec contexts, each made when first needed.
#[derive(Default)]
pub(super) struct Coders {
    zstd: zstd::Contexts,
    zlib: zlib::Contexts,
    snappy_encoder: Option<Box<snap::raw::Encoder>>,
    lz4_table: Option<lz4_flex::block::CompressTable>,
}

/// Makes `out[body..]` at least `bytes` long and returns it.
fn room(out: &mut Vec<u8>, body: usize, bytes: usize) -> Option<&mut [u8]> {
    out.resize(body.checked_add(bytes)?, 0);
    out.get_mut(body..)
}

impl Coders {
    pub(super) fn snappy(&mut self, input: &[u8], body: usize, out: &mut Vec<u8>) -> Option<usize> {
        let encoder = self
            .snappy_encoder
            .get_or_insert_with(|| Box::new(snap::raw::Encoder::new()));
        let bound = snap::raw::max_compress_len(input.len());
        encoder.compress(input, room(out, body, bound)?).ok()
    }

    pub(super) fn lz4(
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

    pub(super) fn zstd(
        &mut self,
        level: Option<i32>,
        dict: Option<&PreparedDict>,
        input: &[u8],
        body: usize,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let space = room(out, body, budget)?;
        let level = level.unwrap_or(ZSTD_LEVEL_DEFAULT);
        self.zstd
            .compress(level, dict.map(|dict| &dict.zstd), input, space)
    }

    pub(super) fn deflate(
        &mut self,
        level: Option<i32>,
        input: &[u8],
        body: usize,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        self.zlib.compress(level, input, room(out, body, budget)?)
    }

    /// `declared` bytes out of `input`, into a vector of their own.
    pub(super) fn inflate(
        &mut self,
        dict: Option<&PreparedDict>,
        input: &[u8],
        declared: usize,
    ) -> Option<Vec<u8>> {
        let dict = dict.map_or(&[][..], |dict| &dict.raw);
        self.zlib.decompress(dict, input, declared)
    }

    pub(super) fn unzstd(
        &mut self,
        dict: Option<&PreparedDict>,
        input: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        self.zstd
            .decompress(dict.map(|dict| &dict.zstd), input, out)
    }
}

pub(super) fn bzip2_compress(
    level: Option<i32>,
    input: &[u8],
    body: usize,
    budget: usize,
    out: &mut Vec<u8>,
) -> Option<usize> {
    bzip2::compress(level, input, room(out, body, budget)?)
}

pub(super) fn lz4_decompress(
    dict: Option<&PreparedDict>,
    body: &[u8],
    out: &mut [u8],
) -> Option<usize> {
    match dict {
        Some(dict) => lz4_flex::block::decompress_into_with_dict(body, out, &dict.raw).ok(),
        None => lz4_flex::block::decompress_into(body, out).ok(),
    }
}
