//! Records to codes.

use std::sync::Arc;

use super::Model;

/// Encodes records under one model. One thread's; make one for each thread, the tables behind it are
/// the model's.
#[derive(Debug)]
pub struct Encoder {
    model: Arc<Model>,
}

impl Encoder {
    /// An encoder for `model`.
    pub fn new(model: Arc<Model>) -> Self {
        Self { model }
    }

    /// The model encoded for.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Appends the code of `record` to `out`. Whatever the record holds, its code decodes to it; it
    /// is longer than the record by one byte at most.
    pub fn encode(&mut self, record: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::rng::Rng;

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        let model = Arc::new(Model::raw());
        let mut encoder = Encoder::new(Arc::clone(&model));
        let mut rng = Rng::new(1);
        for len in 0..200 {
            let mut record = vec![0; len];
            rng.fill(&mut record);
            let (mut code, mut back) = (b"before".to_vec(), Vec::new());
            encoder.encode(&record, &mut code);
            let code = code.strip_prefix(b"before").expect("encode appends");
            model.decode(code, &mut back).expect("a sound code");
            assert_eq!(back, record);
        }
    }
}
