//! Models and codes of records: damage is refused or decodes within its bound, and every record that
//! an accepted model encodes comes back.

use std::sync::{Arc, LazyLock};

use drumlin_base::checksum::xxh3_64;
use drumlin_base::{Error, Result};
use drumlin_succinct::model::EXPANSION_MAX;
use drumlin_succinct::{Encoder, Model};
use drumlin_table::{ModelFacts, ModelSource};

use super::expect::or_blamed;
use crate::input::Input;
use crate::models::models;
use crate::reseal;

/// The models that codes are decoded with.
pub(super) static MODELS: LazyLock<Vec<Arc<Model>>> = LazyLock::new(|| {
    let trained = models().into_iter();
    trained.map(|(_, model, _)| Arc::new(model)).collect()
});

/// A length in two bytes, a model of that length whose checksum is made to fit, then a record, which
/// is also taken for a code.
pub(crate) fn run_model(data: &[u8]) {
    let mut input = Input::new(data);
    let len = usize::from(input.byte()) | usize::from(input.byte()) << 8;
    let mut bytes = input.take(len).to_vec();
    if let Some(body) = bytes.len().checked_sub(8) {
        let sum = xxh3_64(&bytes[..body]);
        bytes[body..].copy_from_slice(&sum.to_le_bytes());
    }
    let Some(model) = or_blamed(Model::from_bytes(&bytes)) else {
        return;
    };
    assert_eq!(model.id(), xxh3_64(&bytes));
    assert!(!model.describe().is_empty() && model.memory() > 0);
    let model = Arc::new(model);
    decode(&model, input.rest());
    round_trip(&model, input.rest());
}

/// A model file as it is, and with checksums that fit: refused, or the same again.
pub(crate) fn run_file(data: &[u8]) {
    read_file(data);
    let mut sealed = data.to_vec();
    reseal::model_file(&mut sealed);
    if sealed != data {
        read_file(&sealed);
    }
}

fn read_file(bytes: &[u8]) {
    let Some((model, facts)) = or_blamed(ModelFacts::decode(bytes)) else {
        return;
    };
    // Packing may differ: the bytes read need not be those we would write.
    let again = facts.encode(&model);
    let (back, told) = ModelFacts::decode(&again).expect("our own bytes");
    assert_eq!((back.describe(), told), (model.describe(), facts));
}

/// The input: the number of a trained model, then a code.
pub(crate) fn run_code(data: &[u8]) {
    let mut input = Input::new(data);
    let model = &MODELS[usize::from(input.byte()) % MODELS.len()];
    if let Some(record) = decode(model, input.rest()) {
        round_trip(model, &record);
    }
}

pub(super) fn decode(model: &Model, code: &[u8]) -> Option<Vec<u8>> {
    let mut out = b"kept".to_vec();
    let outcome = or_blamed(model.decode(code, &mut out));
    if outcome.is_none() {
        assert_eq!(out, b"kept");
    }
    let record = out.split_off(4);
    assert!(record.len() <= code.len() * EXPANSION_MAX);
    outcome.map(|()| record)
}

fn round_trip(model: &Arc<Model>, record: &[u8]) {
    let mut encoder = Encoder::new(Arc::clone(model));
    let mut code = Vec::new();
    encoder.encode(record, &mut code);
    assert!(code.len() <= record.len() + 1);
    assert_eq!(decode(model, &code).as_deref(), Some(record));
}

/// The trained models, for tables that name one of them.
#[derive(Debug)]
pub(super) struct Trained;

impl ModelSource for Trained {
    fn model(&self, id: u64) -> Result<Arc<Model>> {
        let found = MODELS.iter().find(|model| model.id() == id);
        found
            .cloned()
            .ok_or_else(|| Error::corruption("no such model"))
    }
}
