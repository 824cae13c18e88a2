//! Packed models: a frame with any claims and content is refused, or the model is sound.

use drumlin_base::checksum::xxh3_64;
use drumlin_succinct::Model;

use super::expect::or_blamed;

/// On disk: the model's last bytes, and the bytes before them in a model that learned nothing.
const SUM_BYTES: usize = 8;
const RAW_BODY_BYTES: usize = 3;
/// On disk: the model's parts are a frame.
const PACKED: u8 = 1;

/// The frame of a packed model.
pub(crate) fn run(frame: &[u8]) {
    let bytes = packed(frame);
    if let Some(model) = or_blamed(Model::from_bytes(&bytes)) {
        assert_eq!(model.id(), xxh3_64(&bytes));
        let again = Model::from_bytes(&model.to_bytes()).expect("our own bytes");
        assert_eq!(again.describe(), model.describe());
    }
}

/// A model with `frame` for its parts, and a checksum that fits.
fn packed(frame: &[u8]) -> Vec<u8> {
    let mut bytes = Model::raw().to_bytes();
    bytes.truncate(bytes.len() - SUM_BYTES - RAW_BODY_BYTES - 1);
    bytes.push(PACKED);
    bytes.extend_from_slice(frame);
    let sum = xxh3_64(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}
