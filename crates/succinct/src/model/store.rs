//! The model: its bytes, its identity, and decoding.
//!
//! Invariant: a model never changes after it was made, and equal bytes mean equal behaviour; the
//! code of a record made under a model is good for every model with the same [`Model::id`].
//!
//! Threads: a model is shared freely.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, OnceLock};

use drumlin_base::checksum::xxh3_64;
use drumlin_base::coding::{Reader, put_fixed64};
use drumlin_base::{Error, Result};

use super::form::{FORMS_MAX, Form};
use super::frame;
use crate::bits::Bits;
use crate::dictionary::{DICTIONARY_BYTES_MAX, Dictionary};
use crate::documents;
use crate::template::Column;
use crate::text::{Ending, Sink, TextCoder, TextEncoder};

/// On disk: the first bytes of a model.
const MAGIC: &[u8; 4] = b"DrSm";
/// On disk: the versions of the encodings: records as they are, and documents as text.
const RECORDS: u8 = 1;
const DOCUMENTS: u8 = 2;
/// On disk: the parts a model has, as bits of one byte.
const HAS_DICTIONARY: u8 = 1;
const HAS_TEXT: u8 = 2;
/// On disk: the packing of a model's parts.
const PLAIN: u8 = 0;
const FRAME: u8 = 1;
/// Parts of fewer bytes are stored plain.
const PACKED_BYTES_MIN: usize = 16 << 10;
/// The level that parts are packed with.
const PACKED_LEVEL: i32 = 9;
/// Codes in a batch that are looked at ahead of the one being decoded.
const AHEAD: usize = 16;
/// Bytes a code may decode to, for each byte of it. Encoders keep to it, decoders insist on it, and so
/// the memory a damaged code can ask for is bounded by its own length.
pub const EXPANSION_MAX: usize = 4096;
/// Most bytes of a model that is unpacked: the largest dictionary, and more than all else of one.
const BODY_BYTES_MAX: usize = DICTIONARY_BYTES_MAX + (64 << 20);
/// The first guess of a record's bytes for each byte of its code, until some were seen.
const EXPANSION_GUESS: usize = 8;

/// The learned description of a sample of records: enough to decode each record from its code.
pub struct Model {
    id: u64,
    /// Whether forms hold the texts of documents; see [`crate::documents`]. Frames and raw codes hold records as they are.
    of_documents: bool,
    forms: Vec<Form>,
    text: Option<TextCoder>,
    /// Bytes of a record for each of its code, as the sample had them.
    expansion: u8,
    /// The part that only encoding needs, made at its first use.
    encoder: OnceLock<Option<TextEncoder>>,
}

impl Model {
    /// The model that learned nothing: a record's code is the record.
    pub fn raw() -> Self {
        Self::new(Vec::new(), None, 1)
    }

    /// The model with these parts, whose codes are `expansion` times shorter than records.
    pub(super) fn new(forms: Vec<Form>, text: Option<TextCoder>, expansion: u8) -> Self {
        let mut model = Self {
            id: 0,
            of_documents: false,
            forms,
            text,
            expansion,
            encoder: OnceLock::new(),
        };
        model.id = xxh3_64(&model.to_bytes());
        model
    }

    /// The same model with another [`expansion`].
    pub(super) fn with_expansion(mut self, expansion: u8) -> Self {
        self.expansion = expansion;
        self.id = xxh3_64(&self.to_bytes());
        self
    }

    /// The same model for documents: it was made for their texts.
    pub(super) fn with_documents(mut self) -> Self {
        self.prepare_documents();
        self.id = xxh3_64(&self.to_bytes());
        self
    }

    fn prepare_documents(&mut self) {
        self.of_documents = true;
        for form in &mut self.forms {
            if let Form::Template(template) = form {
                template.prepare_documents();
            }
        }
    }

    /// Whether its forms hold the texts of documents.
    pub(super) fn is_of_documents(&self) -> bool {
        self.of_documents
    }

    /// Reads a model from the bytes of [`Model::to_bytes`].
    ///
    /// # Errors
    /// `Corruption` when the bytes are damaged, `NotSupported` when a later version wrote them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let cut = || Error::corruption("a model is cut off");
        let mut reader = Reader::new(bytes);
        if reader.bytes(MAGIC.len()) != Some(MAGIC) {
            return Err(Error::corruption("not a model: its first bytes are others"));
        }
        let version = reader.u8().ok_or_else(cut)?;
        if !(RECORDS..=DOCUMENTS).contains(&version) {
            let complaint = format!("model version {version} is not known");
            return Err(Error::not_supported(complaint));
        }
        let packing = reader.u8().ok_or_else(cut)?;
        let body_len = reader.rest().len().checked_sub(8).ok_or_else(cut)?;
        let stored = reader.bytes(body_len).ok_or_else(cut)?;
        let sum = reader.fixed64().ok_or_else(cut)?;
        let summed = bytes.get(..bytes.len() - 8).ok_or_else(cut)?;
        if sum != xxh3_64(summed) {
            return Err(Error::corruption("a model's checksum does not fit"));
        }
        let mut unpacked = Vec::new();
        let mut body = match packing {
            PLAIN => Reader::new(stored),
            FRAME => {
                let bytes_max = stored.len().saturating_mul(EXPANSION_MAX);
                let bytes_max = bytes_max.min(BODY_BYTES_MAX);
                frame::decompress(stored, bytes_max, &mut unpacked)?;
                Reader::new(&unpacked)
            }
            _ => return Err(Error::corruption("a model packed in an unknown way")),
        };
        let mut model = Self::read_body(&mut body)?;
        if !body.is_empty() {
            return Err(Error::corruption("bytes after the end of a model"));
        }
        if version == DOCUMENTS {
            model.prepare_documents();
        }
        model.id = xxh3_64(bytes);
        Ok(model)
    }

    fn read_body(body: &mut Reader<'_>) -> Result<Self> {
        let cut = || Error::corruption("a model is cut off");
        let parts = body.u8().ok_or_else(cut)?;
        let expansion = body.u8().ok_or_else(cut)?;
        let dictionary = if parts & HAS_DICTIONARY == 0 {
            None
        } else {
            let len = body.fixed32().ok_or_else(cut)? as usize;
            let text = body.bytes(len).filter(|_| len <= DICTIONARY_BYTES_MAX);
            Some(Arc::new(Dictionary::new(text.ok_or_else(cut)?.to_vec())))
        };
        let text = if parts & HAS_TEXT == 0 {
            None
        } else {
            Some(TextCoder::read(body, dictionary.clone())?)
        };
        let count = usize::from(body.u8().ok_or_else(cut)?);
        if count > FORMS_MAX || parts > (HAS_DICTIONARY | HAS_TEXT) {
            return Err(Error::corruption("a model with unknown parts"));
        }
        let mut forms = Vec::with_capacity(count);
        for _ in 0..count {
            forms.push(Form::read(body, dictionary.as_deref())?);
        }
        Ok(Self {
            id: 0,
            of_documents: false,
            forms,
            text,
            expansion,
            encoder: OnceLock::new(),
        })
    }

    /// The model as it is stored; see `docs/format/models.md`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (body, mut packed) = (self.body(), Vec::new());
        let pack = body.len() >= PACKED_BYTES_MIN
            && frame::compress(&body, PACKED_LEVEL, &mut packed)
            && packed.len() < body.len()
            && packed.len().saturating_mul(EXPANSION_MAX) >= body.len();
        let (packing, stored) = if pack { (FRAME, packed) } else { (PLAIN, body) };
        let mut out = MAGIC.to_vec();
        let is_told = self.of_documents && !drumlin_base::bug!("model-of-documents-untold");
        let version = if is_told { DOCUMENTS } else { RECORDS };
        out.extend_from_slice(&[version, packing]);
        out.extend_from_slice(&stored);
        let sum = xxh3_64(&out);
        put_fixed64(&mut out, sum);
        out
    }

    /// The parts, one after another.
    fn body(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let dictionary = self.dictionary();
        let parts = u8::from(dictionary.is_some()) * HAS_DICTIONARY
            + u8::from(self.text.is_some()) * HAS_TEXT;
        out.extend_from_slice(&[parts, self.expansion]);
        if let Some(dictionary) = dictionary {
            out.extend_from_slice(&(dictionary.text().len() as u32).to_le_bytes());
            out.extend_from_slice(dictionary.text());
        }
        if let Some(text) = &self.text {
            text.write(&mut out);
        }
        out.push(self.forms.len() as u8);
        self.forms.iter().for_each(|form| form.write(&mut out));
        out
    }

    /// The identity of this model: XXH3 of its stored bytes.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The forms, in the order records try them.
    pub(super) fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// Whether records are split into columns that are not all texts.
    pub(super) fn is_typed(&self) -> bool {
        self.forms.iter().any(|form| match form {
            Form::Template(template) => template.columns().iter().any(|it| *it != Column::Text),
            _ => false,
        })
    }

    /// The coder of texts.
    pub(super) fn text(&self) -> Option<&TextCoder> {
        self.text.as_ref()
    }

    /// The dictionary that references refer to.
    pub(super) fn dictionary(&self) -> Option<&Dictionary> {
        self.text.as_ref()?.dictionary().map(Arc::as_ref)
    }

    /// The encoder of texts.
    pub(super) fn text_encoder(&self) -> Option<&TextEncoder> {
        let made = || self.text.as_ref().map(TextEncoder::new);
        self.encoder.get_or_init(made).as_ref()
    }

    /// Bytes of memory it holds for decoding, and for encoding once that has begun.
    pub fn memory(&self) -> usize {
        let templates = self.forms.iter().map(|form| match form {
            Form::Text | Form::Frame(_) => 0,
            Form::Template(template) => template.memory(),
            Form::Layout(layout) => layout.memory(),
        });
        let dictionary = self.dictionary().map_or(0, Dictionary::memory);
        let text = self.text.as_ref().map_or(0, TextCoder::memory);
        let encoder = self.encoder.get().and_then(Option::as_ref);
        let encoder = encoder.map_or(0, TextEncoder::memory);
        size_of::<Self>() + templates.sum::<usize>() + dictionary + text + encoder
    }

    /// Appends to `out` the record whose code is `code`: at most [`EXPANSION_MAX`] times as long.
    ///
    /// # Errors
    /// `Corruption` when no record has this code; `out` is then as it was.
    #[inline]
    pub fn decode(&self, code: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.decode_within(code, usize::MAX, out)
    }

    /// As [`Model::decode`], of a record of `record_bytes_max` bytes at most.
    ///
    /// # Errors
    /// `Corruption`, also where the record is longer.
    #[inline]
    pub fn decode_within(
        &self,
        code: &[u8],
        record_bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let selector = code.first().copied().unwrap_or(u8::MAX).leading_ones() as usize;
        let Some(form) = self.forms.get(selector) else {
            // Raw: behind the byte that marks it, which a model without forms does not need.
            let skipped = usize::from(!self.forms.is_empty());
            let record = code.get(skipped..).ok_or_else(no_code)?;
            if record.len() > record_bytes_max {
                return Err(too_long());
            }
            out.extend_from_slice(record);
            return Ok(());
        };
        let before = out.len();
        let bytes_max = code.len().saturating_mul(EXPANSION_MAX);
        let record_bytes_max = bytes_max.min(record_bytes_max);
        let outcome = if self.is_read_as_text(form) {
            let text_bytes = record_bytes_max.saturating_mul(documents::TEXT_FACTOR);
            let text_bytes = text_bytes.saturating_add(documents::TEXT_BYTES_MORE);
            with_scratch(|text| {
                let form = (form, text_bytes);
                self.decode_form(form, code, selector + 1, text)?;
                documents::read(text, record_bytes_max, out)
            })
        } else {
            self.decode_form((form, record_bytes_max), code, selector + 1, out)
        };
        if outcome.is_err() {
            out.truncate(before);
        }
        outcome
    }

    /// Whether the form decodes to the text of a document, and that cannot be left out.
    #[inline]
    fn is_read_as_text(&self, form: &Form) -> bool {
        self.of_documents
            && match form {
                Form::Frame(_) => false,
                Form::Template(template) => !template.has_documents(),
                Form::Text | Form::Layout(_) => true,
            }
    }

    /// Decodes `code`, whose bits begin at `at`, to `bytes_max` bytes at most. On failure, `out` may be longer than
    /// it was.
    #[inline]
    fn decode_form(
        &self,
        (form, bytes_max): (&Form, usize),
        code: &[u8],
        at: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let expected = self.expected_bytes(code);
        let text = self.text.as_ref();
        match form {
            Form::Text => {
                let mut sink = Sink::new(out, expected, bytes_max);
                let coder = text.ok_or_else(no_code)?;
                coder.decode(&Bits::new(code), at, Ending::Bits, &mut sink)?;
                sink.finish()
            }
            Form::Template(template) if template.has_documents() => {
                let mut sink = Sink::new(out, expected, bytes_max);
                template.decode_document(&Bits::new(code), at, text, &mut sink)?;
                sink.finish()
            }
            Form::Template(template) => {
                let mut sink = Sink::new(out, expected, bytes_max);
                template.decode(&Bits::new(code), at, text, &mut sink)?;
                sink.finish()
            }
            Form::Layout(layout) => {
                let mut sink = Sink::new(out, layout.bytes(), bytes_max);
                layout.decode(&Bits::new(code), at, &mut sink)?;
                sink.finish()
            }
            Form::Frame(_) => frame::decompress(code.get(1..).ok_or_else(no_code)?, bytes_max, out),
        }
    }

    /// A guess of the size of the record of `code`, from records of the sample.
    #[inline]
    pub fn expected_bytes(&self, code: &[u8]) -> usize {
        code.len().saturating_mul(usize::from(self.expansion))
    }

    /// Decodes many records: appends each to `out`, and to `ends` where in `out` it ends.
    ///
    /// # Errors
    /// `Corruption` when one of `codes` is no code; both are then as they were.
    pub fn decode_batch(
        &self,
        codes: &[&[u8]],
        out: &mut Vec<u8>,
        ends: &mut Vec<usize>,
    ) -> Result<()> {
        let (out_before, ends_before) = (out.len(), ends.len());
        for batch in codes.chunks(AHEAD) {
            // All dictionary lines of the batch are on their way before the first is needed.
            batch.iter().for_each(|code| self.prefetch(code));
            for code in batch {
                if let Err(error) = self.decode(code, out) {
                    out.truncate(out_before);
                    ends.truncate(ends_before);
                    return Err(error);
                }
                ends.push(out.len());
            }
        }
        Ok(())
    }

    /// The form of a code, in the order of [`Model::describe`]; `None` for a raw one.
    pub fn form_of(&self, code: &[u8]) -> Option<usize> {
        let selector = code.first().copied().unwrap_or(u8::MAX).leading_ones() as usize;
        (selector < self.forms.len()).then_some(selector)
    }

    /// Asks for the memory that decoding `code` will read of the dictionary, as far as that is known at
    /// once. Reads the code.
    #[inline]
    pub fn prefetch(&self, code: &[u8]) {
        let selector = code.first().copied().unwrap_or(u8::MAX).leading_ones() as usize;
        if let Some(Form::Template(template)) = self.forms.get(selector)
            && let Some(dictionary) = self.dictionary()
            && let Some((place, len)) = template.piece(&Bits::new(code), selector + 1)
        {
            dictionary.prefetch(place, len);
        }
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("id", &self.id)
            .field("forms", &self.forms.len())
            .field(
                "dictionary",
                &self.dictionary().map(|text| text.text().len()),
            )
            .finish_non_exhaustive()
    }
}

thread_local! {
    /// The text of the document that is being read.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Memory that a thread keeps for texts.
const SCRATCH_BYTES_KEPT: usize = 256 << 10;

/// Calls `work` with an empty buffer.
#[inline]
fn with_scratch<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    SCRATCH.with_borrow_mut(|text| {
        text.clear();
        let done = work(text);
        text.shrink_to(SCRATCH_BYTES_KEPT);
        done
    })
}

#[cold]
fn no_code() -> Error {
    Error::corruption("a code without its first byte, or of a form without its parts")
}

#[cold]
fn too_long() -> Error {
    Error::corruption("a code of more bytes than its record may have")
}

/// The expansion to store for records of `bytes` with codes of `code_bytes`: a little more than it is.
pub(super) fn expansion(bytes: u64, code_bytes: u64) -> u8 {
    if code_bytes == 0 {
        return EXPANSION_GUESS as u8;
    }
    (bytes * 5 / 4 / code_bytes + 1).min(255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_comes_back_from_its_bytes() {
        let model = Model::raw();
        let back = Model::from_bytes(&model.to_bytes()).expect("its own bytes");
        assert_eq!(back.id(), model.id());
        assert_eq!(back.to_bytes(), model.to_bytes());
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let sound = Model::raw().to_bytes();
        for cut in 0..sound.len() {
            let error = Model::from_bytes(&sound[..cut]).expect_err("damaged");
            assert!(error.is_corruption(), "{error}");
        }
        for at in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[at] ^= 4;
            let error = Model::from_bytes(&damaged).expect_err("damaged");
            assert_eq!(error.is_corruption(), at != 4, "{error}");
        }
    }
}
