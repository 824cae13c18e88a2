//! The model: its bytes, its identity, and decoding.
//!
//! Invariant: a model never changes after it was made, and equal bytes mean equal behaviour; the
//! code of a record made under a model is good for every model with the same [`Model::id`].
//!
//! Threads: a model is shared freely.

use drumlin_base::checksum::xxh3_64;
use drumlin_base::coding::Reader;
use drumlin_base::{Error, Result};

/// On disk: the first bytes of a model.
const MAGIC: &[u8; 4] = b"DrSm";
/// On disk: the version of the encodings.
const VERSION: u8 = 1;
/// Bytes a code may decode to, for each byte of it. Encoders keep to it, decoders insist on it, and so
/// the memory a damaged code can ask for is bounded by its own length.
pub const EXPANSION_MAX: usize = 4096;

/// What was learned from a sample of records: enough to decode each record from its code.
#[derive(Debug)]
pub struct Model {
    id: u64,
}

impl Model {
    /// The model that learned nothing: a record's code is the record.
    pub fn raw() -> Self {
        let mut model = Self { id: 0 };
        model.id = xxh3_64(&model.to_bytes());
        model
    }

    /// Reads what [`Model::to_bytes`] wrote.
    ///
    /// # Errors
    /// `Corruption` when the bytes are damaged, `NotSupported` when a later version wrote them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(MAGIC.len()) != Some(MAGIC) {
            return Err(Error::corruption("not a model: its first bytes are others"));
        }
        match reader.u8() {
            Some(VERSION) => {}
            Some(version) => {
                let complaint = format!("model version {version} is not known");
                return Err(Error::not_supported(complaint));
            }
            None => return Err(Error::corruption("a model without a version")),
        }
        if !reader.is_empty() {
            return Err(Error::corruption("bytes after the end of a model"));
        }
        Ok(Self { id: xxh3_64(bytes) })
    }

    /// The model as it is stored; see `docs/format/models.md`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(VERSION);
        out
    }

    /// Which model this is: XXH3 of its stored bytes.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Bytes of memory it holds for decoding.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
    }

    /// What it learned, in a few lines for people.
    pub fn describe(&self) -> String {
        "raw".to_owned()
    }

    /// Appends to `out` the record whose code is `code`: at most [`EXPANSION_MAX`] times as long.
    ///
    /// # Errors
    /// `Corruption` when no record has this code; `out` is then as it was.
    pub fn decode(&self, code: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(code);
        Ok(())
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
        for code in codes {
            if let Err(error) = self.decode(code, out) {
                out.truncate(out_before);
                ends.truncate(ends_before);
                return Err(error);
            }
            ends.push(out.len());
        }
        Ok(())
    }
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
        for bytes in [&b""[..], b"DrSm", b"DrSx\x01", b"DrSm\x01\x00"] {
            let error = Model::from_bytes(bytes).expect_err("damaged");
            assert!(error.is_corruption(), "{error}");
        }
        let later = Model::from_bytes(b"DrSm\x02").expect_err("a later version");
        assert!(!later.is_corruption());
    }
}
