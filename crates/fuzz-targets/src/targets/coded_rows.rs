//! Large rows: a record of up to 128 KiB is encoded, its code damaged at a few places, most at the
//! front with a frame's header; it is refused or decodes within its bound.

use std::sync::Arc;

use drumlin_succinct::Encoder;

use super::model::{MODELS, decode};
use crate::input::Input;

/// The record's length is this many times a number of two bytes.
const UNIT_BYTES: usize = 2;
const PATTERN_BYTES_MAX: u8 = 64;

/// Model, length in two bytes, a pattern with its length before it that fills the record, then places (two
/// bytes each) with the byte that is put there.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let model = &MODELS[usize::from(input.byte()) % MODELS.len()];
    let len = usize::from(input.byte()) | usize::from(input.byte()) << 8;
    let pattern_len = usize::from(input.below(PATTERN_BYTES_MAX)) + 1;
    let pattern = input.take(pattern_len).to_vec();
    let pattern = [pattern.as_slice(), b"."].concat();
    let filled = pattern.iter().cycle().take(len * UNIT_BYTES);
    let record: Vec<u8> = filled.copied().collect();
    let mut encoder = Encoder::new(Arc::clone(model));
    let mut code = Vec::new();
    encoder.encode(&record, &mut code);
    assert_eq!(decode(model, &code).as_deref(), Some(record.as_slice()));
    while !input.is_empty() {
        let place = usize::from(input.byte()) | usize::from(input.byte()) << 8;
        let at = place % code.len().max(1);
        let byte = input.byte();
        if let Some(there) = code.get_mut(at) {
            *there = byte;
        }
    }
    decode(model, &code);
}
