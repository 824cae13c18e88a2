//! Models that several tables share: their files, and a table's reference to one.
//!
//! A model file holds a model's own bytes and a trailer with the size of its sample:
//!
//! ```text
//! model | records' bytes u64 | judged bytes u64 | bytes of their codes u64 | data bytes u64
//!       | effort u8, 0 × 7 | XXH3-64 of model and trailer up to here | magic number
//! ```
//!
//! A table names its model by the model's id, the hash of the model's own bytes, so a file under
//! another name is never mistaken for it. Byte layout: `docs/format/models.md`.

use std::fmt;
use std::sync::Arc;

use drumlin_base::checksum::xxh3_64;
use drumlin_base::coding::{Reader, fixed64_at, put_fixed64};
use drumlin_base::{Error, Result};
use drumlin_succinct::{Effort, Model};

/// On disk: the last eight bytes of a model file.
const FILE_MAGIC: u64 = 0x6d0d_e17a_93b1_c85e;
/// On disk: the trailer of a model file.
const TRAILER_BYTES: usize = 56;
const EFFORT_AT: usize = 32;
const CHECKSUM_AT: usize = TRAILER_BYTES - 16;
/// On disk: the first bytes of a table's model section that names a model instead of holding one.
const REFERENCE_MAGIC: &[u8; 8] = b"DrSr\0\0\0\0";

/// Where a table finds the model that it names.
pub trait ModelSource: fmt::Debug + Send + Sync {
    /// The model with this id.
    ///
    /// # Errors
    /// `Corruption` when it is missing or damaged; `Io`.
    fn model(&self, id: u64) -> Result<Arc<Model>>;
}

/// One model that is there already.
pub(crate) struct KnownModel(pub(crate) Arc<Model>);

impl ModelSource for KnownModel {
    fn model(&self, id: u64) -> Result<Arc<Model>> {
        if self.0.id() == id {
            Ok(Arc::clone(&self.0))
        } else {
            Err(missing(id))
        }
    }
}

impl fmt::Debug for KnownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnownModel").field(&self.0.id()).finish()
    }
}

/// The data that a model was learned from, kept beside it to tell when another model pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFacts {
    /// The goal it was trained for.
    pub effort: Effort,
    /// Bytes of the records it was learned from.
    pub sample_bytes: u64,
    /// Bytes of the records it was judged by.
    pub judged_bytes: u64,
    /// Bytes of the judged records' codes.
    pub code_bytes: u64,
    /// Bytes of all values it was made for, about.
    pub data_bytes: u64,
}

impl ModelFacts {
    /// The bytes of the file of `model`.
    pub fn encode(&self, model: &Model) -> Vec<u8> {
        let mut out = model.to_bytes();
        for number in [
            self.sample_bytes,
            self.judged_bytes,
            self.code_bytes,
            self.data_bytes,
            match self.effort {
                Effort::Small => 0,
                Effort::Fast => 1,
            },
        ] {
            put_fixed64(&mut out, number);
        }
        let checksum = xxh3_64(&out);
        put_fixed64(&mut out, checksum);
        put_fixed64(&mut out, FILE_MAGIC);
        out
    }

    /// Bytes at the end of a file that [`ModelFacts::effort_told`] looks at.
    pub const TOLD_BYTES: usize = TRAILER_BYTES;

    /// The goal the model was trained for, from the last bytes of its file. They are not checked; `None` when
    /// they make no sense.
    pub fn effort_told(trailer: &[u8]) -> Option<Effort> {
        match fixed64_at(trailer, EFFORT_AT)? {
            0 => Some(Effort::Small),
            1 => Some(Effort::Fast),
            _ => None,
        }
    }

    /// Decodes a file that [`ModelFacts::encode`] made.
    ///
    /// # Errors
    /// `Corruption` for damage; `NotSupported` for models of a later version.
    pub fn decode(bytes: &[u8]) -> Result<(Model, Self)> {
        let cut = || Error::corruption("a model file is cut off");
        let model_bytes = bytes.len().checked_sub(TRAILER_BYTES).ok_or_else(cut)?;
        let (model, trailer) = bytes.split_at_checked(model_bytes).ok_or_else(cut)?;
        let number = |at| fixed64_at(trailer, at).expect("the trailer is long enough");
        if number(TRAILER_BYTES - 8) != FILE_MAGIC {
            return Err(Error::corruption(
                "not a model file: its last bytes are others",
            ));
        }
        let covered = bytes.get(..model_bytes + CHECKSUM_AT).ok_or_else(cut)?;
        if xxh3_64(covered) != number(CHECKSUM_AT) {
            return Err(Error::corruption("a model file's checksum does not fit"));
        }
        let effort = Self::effort_told(trailer)
            .ok_or_else(|| Error::corruption("a model file of an unknown effort"))?;
        let facts = Self {
            effort,
            sample_bytes: number(0),
            judged_bytes: number(8),
            code_bytes: number(16),
            data_bytes: number(24),
        };
        Ok((Model::from_bytes(model)?, facts))
    }
}

/// The contents of a table's model section.
pub(crate) enum StoredModel {
    /// The model itself.
    Own(Arc<Model>),
    /// The id of one that is in a file of its own.
    Shared(u64),
}

impl StoredModel {
    /// Decodes a table's model section.
    pub(crate) fn decode(section: &[u8]) -> Result<Self> {
        match shared_id(section) {
            Some(id) => id.map(Self::Shared),
            None => Ok(Self::Own(Arc::new(Model::from_bytes(section)?))),
        }
    }
}

/// The id in a model section that names a model; `None` for one that holds it.
pub(crate) fn shared_id(section: &[u8]) -> Option<Result<u64>> {
    let mut from = Reader::new(section);
    if from.bytes(REFERENCE_MAGIC.len()) != Some(REFERENCE_MAGIC) {
        return None;
    }
    let id = from.fixed64().filter(|_| from.is_empty());
    Some(id.ok_or_else(|| Error::corruption("the name of a table's model is damaged")))
}

/// The model section of a table whose model is in a file of its own.
pub(crate) fn reference(id: u64) -> Vec<u8> {
    let mut out = REFERENCE_MAGIC.to_vec();
    put_fixed64(&mut out, id);
    out
}

/// The error of a model `id` that is nowhere.
pub(crate) fn missing(id: u64) -> Error {
    Error::corruption(format!(
        "the model {id:016x}, which the table names, is missing"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> ModelFacts {
        ModelFacts {
            effort: Effort::Fast,
            sample_bytes: 5,
            judged_bytes: 4,
            code_bytes: 3,
            data_bytes: 1 << 40,
        }
    }

    #[test]
    fn a_model_file_comes_back_and_every_flipped_bit_is_seen() {
        let records: Vec<String> = (0..600).map(|n| format!("{n}|till|{}", n % 7)).collect();
        let sample: Vec<&[u8]> = records.iter().map(|record| record.as_bytes()).collect();
        let model = Model::train(&sample, Effort::Small);
        let bytes = facts().encode(&model);
        let (back, told) = ModelFacts::decode(&bytes).unwrap();
        assert_eq!((back.id(), told), (model.id(), facts()));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(ModelFacts::decode(&damaged).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(ModelFacts::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn a_table_names_its_model_or_holds_it() {
        let model = Model::raw();
        assert!(shared_id(&model.to_bytes()).is_none());
        let name = reference(model.id());
        assert_eq!(shared_id(&name).unwrap().unwrap(), model.id());
        assert!(shared_id(&name[..12]).unwrap().is_err());
        assert!(StoredModel::decode(&name[..7]).is_err());
    }
}
