//! Zstandard, by its own library.

use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{self, CCtx, DCtx, DParameter, InBuffer, OutBuffer};

use super::buffers::MEASURED_BYTES;

/// The largest window that zstd supports.
const WINDOW_LOG_MAX: u32 = if usize::BITS == 32 { 30 } else { 31 };

/// One thread's contexts, each made when first needed.
#[derive(Default)]
pub(super) struct Contexts {
    encoder: Option<CCtx<'static>>,
    decoder: Option<DCtx<'static>>,
}

/// A dictionary's tables for the library.
pub(super) struct Tables {
    decoder: Option<DecoderDictionary<'static>>,
    encoder: Option<EncoderDictionary<'static>>,
}

impl Contexts {
    /// At `level`, or with the tables of a dictionary, which have their own.
    pub(super) fn compress(
        &mut self,
        level: i32,
        dict: Option<&Tables>,
        input: &[u8],
        space: &mut [u8],
    ) -> Option<usize> {
        if self.encoder.is_none() {
            self.encoder = CCtx::try_create();
        }
        let encoder = self.encoder.as_mut()?;
        match dict {
            Some(dict) => {
                let prepared = dict.encoder.as_ref()?.as_cdict();
                encoder.compress_using_cdict(space, input, prepared).ok()
            }
            None => encoder.compress(space, input, level).ok(),
        }
    }

    pub(super) fn decompress(
        &mut self,
        dict: Option<&Tables>,
        input: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        if self.decoder.is_none() {
            self.decoder = DCtx::try_create();
        }
        let decoder = self.decoder.as_mut()?;
        match dict {
            Some(dict) => {
                let prepared = dict.decoder.as_ref()?.as_ddict();
                decoder.decompress_using_ddict(out, input, prepared).ok()
            }
            None => decoder.decompress(out, input).ok(),
        }
    }
}

impl Tables {
    pub(super) fn for_reading(raw: &[u8]) -> Self {
        Self {
            decoder: DecoderDictionary::try_copy(raw).ok(),
            encoder: None,
        }
    }

    pub(super) fn add_writing(&mut self, raw: &[u8], level: i32) {
        self.encoder = EncoderDictionary::try_copy(raw, level).ok();
    }

    /// Copies of the dictionary in them.
    pub(super) fn copies(&self) -> usize {
        usize::from(self.decoder.is_some()) + usize::from(self.encoder.is_some())
    }
}

/// The size that a frame tells.
pub(super) fn content_size(frame: &[u8]) -> Option<u64> {
    zstd_safe::get_frame_content_size(frame).ok().flatten()
}

/// A dictionary of at most `limit` bytes, where the trainer finds enough to learn from.
pub(super) fn train(samples: &[&[u8]], limit: usize) -> Option<Vec<u8>> {
    let trained = zstd::dict::from_samples(samples, limit).ok();
    trained.filter(|trained| !trained.is_empty())
}

/// The number of bytes in a block, if it is at most `most`.
pub(super) fn measure(dict: Option<&Tables>, body: &[u8], most: usize) -> Option<usize> {
    let mut decoder = DCtx::try_create()?;
    let window = DParameter::WindowLogMax(WINDOW_LOG_MAX);
    decoder.set_parameter(window).ok()?;
    if let Some(dict) = dict {
        decoder.ref_ddict(dict.decoder.as_ref()?.as_ddict()).ok()?;
    }
    let mut scratch = vec![0; MEASURED_BYTES];
    let (mut from, mut measured) = (InBuffer::around(body), 0usize);
    loop {
        let before = from.pos();
        let mut into = OutBuffer::around(scratch.as_mut_slice());
        let left = decoder.decompress_stream(&mut into, &mut from).ok()?;
        measured += into.pos();
        if left == 0 && from.pos() == body.len() {
            return Some(measured);
        }
        let is_stuck = into.pos() == 0 && from.pos() == before;
        if is_stuck || measured > most {
            return None;
        }
    }
}
