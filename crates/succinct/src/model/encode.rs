//! Records to codes.

use std::sync::Arc;

use super::form::Form;
use super::frame::{self, FRAME_BYTES_MIN};
use super::store::{EXPANSION_MAX, Model};
use crate::bits::BitWriter;
use crate::documents::{Spelled, VALUE_END};
use crate::text::Ending;

/// Encodes records under one model. One thread's; make one for each thread, the tables behind it are
/// the model's.
#[derive(Debug)]
pub struct Encoder {
    model: Arc<Model>,
    /// The text of the record, where the model is one of documents.
    spelled: Spelled,
    decoded: Vec<u8>,
    counts: Counts,
}

/// Counts of an encoder's work so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records.
    pub records: u64,
    /// Those among them that no form could hold and that are stored as they are.
    pub raw: u64,
}

impl Encoder {
    /// An encoder for `model`.
    pub fn new(model: Arc<Model>) -> Self {
        Self {
            model,
            spelled: Spelled::default(),
            decoded: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// The model encoded for.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The model, if nothing else shares it.
    pub(super) fn into_model(self) -> Option<Model> {
        Arc::into_inner(self.model)
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Appends the code of `record` to `out`. The code of any record decodes to it (each code is
    /// decoded and compared at once), and is longer than the record by one byte at most.
    pub fn encode(&mut self, record: &[u8], out: &mut Vec<u8>) {
        self.counts.records += 1;
        let (before, forms) = (out.len(), self.model.forms().len());
        let is_spelled = !self.model.is_of_documents() || self.spelled.spell(record);
        if !is_spelled || !(0..forms).any(|index| self.try_form(index, record, out)) {
            self.counts.raw += 1;
            if forms > 0 {
                out.push(u8::MAX);
            }
            out.extend_from_slice(record);
        }
        if record.len() >= FRAME_BYTES_MIN
            && let Some(Form::Frame(_)) = self.model.forms().last()
        {
            let middle = out.len();
            let framed = self.try_form(forms - 1, record, out);
            if framed && out.len() - middle < middle - before {
                out.drain(before..middle);
            } else {
                out.truncate(middle);
            }
        }
    }

    /// Appends the code of `record` in one form and decodes it; whether it is good. If not, `out` is as
    /// it was.
    fn try_form(&mut self, index: usize, record: &[u8], out: &mut Vec<u8>) -> bool {
        let before = out.len();
        let done =
            self.encode_as(index, record, out) && self.verify(record, out.split_at(before).1);
        if !done {
            out.truncate(before);
        }
        done
    }

    fn encode_as(&self, index: usize, record: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(form) = self.model.forms().get(index) else {
            return false;
        };
        let text = self.model.text().zip(self.model.text_encoder());
        let spelled = match self.model.is_of_documents() {
            true => self.spelled.text(),
            false => record,
        };
        let mut writer = BitWriter::new(out);
        // As many ones as there are forms before this one, then a zero.
        writer.put((2 << index) - 2, index as u32 + 1);
        let done = match form {
            Form::Text => text.is_some_and(|(coder, encoder)| {
                encoder.encode(coder, spelled, Ending::Bits, &mut writer)
            }),
            // Only after the others, and if it is worth it.
            Form::Frame(_) if record.len() < FRAME_BYTES_MIN => false,
            Form::Frame(level) => {
                writer.finish();
                return frame::compress(record, i32::from(*level), out);
            }
            Form::Layout(layout) => layout.encode(spelled, &mut writer),
            Form::Template(template) => {
                let mut fields = Vec::new();
                let of_documents = self.model.is_of_documents();
                let is_value = |field: &&[u8]| !of_documents || !field.contains(&VALUE_END);
                template.split(spelled, &mut fields)
                    && fields.iter().all(is_value)
                    && template.encode(&fields, text, &mut writer)
            }
        };
        writer.finish();
        done
    }

    /// Whether `code` is worth more than the record itself and decodes to it.
    fn verify(&mut self, record: &[u8], code: &[u8]) -> bool {
        if code.len() > record.len() || code.len().saturating_mul(EXPANSION_MAX) < record.len() {
            return false;
        }
        self.decoded.clear();
        let outcome = self.model.decode(code, &mut self.decoded);
        outcome.is_ok() && self.decoded == record
    }
}
