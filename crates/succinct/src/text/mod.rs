//! Texts as rows of bits: tokens, by fixed-width or Huffman codes, and references to a dictionary.
//!
//! - [`sink`]: the destination of decoded bytes, and its bound.
//! - [`coder`]: the symbols of a text; decoding.
//! - [`encoder`]: texts to symbols.

mod coder;
mod encoder;
mod sink;

pub use coder::{END_MARK, Ending, Symbols, TextCoder};
pub use encoder::TextEncoder;
pub(crate) use sink::ROOM_BYTES;
pub use sink::Sink;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::bits::{BitWriter, Bits};
    use crate::dictionary::{Dictionary, REFERENCE_CLASSES};
    use crate::huffman::{Code, Lengths};
    use crate::tokens::{Cutting, Growth, Token, Vocabulary, learn};
    use drumlin_base::coding::Reader;
    use drumlin_base::rng::Rng;

    fn sentence(rng: &mut Rng) -> Vec<u8> {
        let words = [
            "moraine",
            "esker",
            "till",
            "drumlin",
            "ice",
            "\u{0}\u{ff}",
            "kame",
        ];
        let mut text = String::new();
        for _ in 0..rng.below(60) {
            text.push_str(words[rng.below(words.len() as u64) as usize]);
            text.push(' ');
        }
        text.into_bytes()
    }

    /// A coder of each kind, learned from sentences.
    fn coders(rng: &mut Rng) -> Vec<TextCoder> {
        let texts: Vec<Vec<u8>> = (0..300).map(|_| sentence(rng)).collect();
        let sample: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let growth = Growth {
            tokens_max: 700,
            bias: 1.0,
            cutting: Cutting::Cheapest,
        };
        let learned = learn(&sample, growth);
        let marks = (0..=REFERENCE_CLASSES as u8).map(Token::mark);
        let tokens = learned.tokens.iter().map(|(token, _)| *token);
        let vocabulary = Vocabulary::new(tokens.chain(marks).collect());
        let lengths = Lengths::even(vocabulary.tokens().len());
        let huffman = Symbols::Huffman(lengths.clone(), Box::new(Code::new(&lengths)));
        let dictionary = Arc::new(Dictionary::new(texts[..40].concat()));
        vec![
            TextCoder::new(vocabulary.clone(), Symbols::Fixed(10), None),
            TextCoder::new(vocabulary, huffman, Some(dictionary)),
        ]
    }

    fn round_trip(coder: &TextCoder, encoder: &TextEncoder, texts: &[Vec<u8>]) {
        let mut code = Vec::new();
        let mut writer = BitWriter::new(&mut code);
        writer.put(1, 1);
        let (last, marked) = texts.split_last().expect("one text at least");
        for text in marked {
            assert!(encoder.encode(coder, text, Ending::Mark, &mut writer));
        }
        assert!(encoder.encode(coder, last, Ending::Bits, &mut writer));
        writer.finish();
        let mut out = b"kept".to_vec();
        let (bits, mut at) = (Bits::new(&code), 1);
        let mut sink = Sink::new(&mut out, 10, 1 << 20);
        for _ in marked {
            at = coder
                .decode(&bits, at, Ending::Mark, &mut sink)
                .expect("sound");
        }
        coder
            .decode(&bits, at, Ending::Bits, &mut sink)
            .expect("sound");
        sink.finish().expect("within the limit");
        assert_eq!(out[4..], texts.concat());
    }

    #[test]
    fn texts_come_back() {
        let mut rng = Rng::new(21);
        for coder in coders(&mut rng) {
            let mut bytes = Vec::new();
            coder.write(&mut bytes);
            let dictionary = coder.dictionary().cloned();
            let coder = TextCoder::read(&mut Reader::new(&bytes), dictionary).expect("sound");
            let encoder = TextEncoder::new(&coder);
            for _ in 0..300 {
                let count = 1 + rng.below(4);
                let texts: Vec<_> = (0..count).map(|_| sentence(&mut rng)).collect();
                round_trip(&coder, &encoder, &texts);
                let mut noise = vec![0; rng.below(300) as usize];
                rng.fill(&mut noise);
                round_trip(&coder, &encoder, &[noise]);
            }
        }
    }

    #[test]
    fn noise_is_refused_or_decodes_within_the_limit() {
        let mut rng = Rng::new(22);
        for coder in coders(&mut rng) {
            for _ in 0..3000 {
                let mut noise = vec![0; rng.below(60) as usize];
                rng.fill(&mut noise);
                let mut out = Vec::new();
                let mut sink = Sink::new(&mut out, 0, 500);
                let ending = if rng.one_in(2) {
                    Ending::Bits
                } else {
                    Ending::Mark
                };
                let outcome = coder.decode(&Bits::new(&noise), 0, ending, &mut sink);
                if outcome.is_ok() && sink.finish().is_ok() {
                    assert!(out.len() <= 500);
                }
            }
        }
    }
}
