//! One model for a sample and the shapes it is split by.

use std::cmp::Reverse;
use std::sync::Arc;

use super::form::{FORMS_MAX, Form};
use super::frame::FRAME_BYTES_MIN;
use super::store::{Model, expansion};
use super::train::Effort;
use crate::dictionary::{Dictionary, Matcher, REFERENCE_CLASSES, assemble};
use crate::huffman::{Code, Lengths};
use crate::template::{Column, Layout, Template, type_columns};
use crate::text::{END_MARK, Symbols, TextCoder, TextEncoder};
use crate::tokens::{Cutting, Growth, Token, Vocabulary, learn};

/// Bytes of text that tokens are learned from.
const TEXT_BYTES_MAX: usize = 8 << 20;
/// Bytes of whole texts that tokens are learned from, beside the parts that are not in the
/// dictionary.
const WHOLE_TEXT_BYTES: usize = 1 << 20;
/// Of a text longer than this share of all of them only so much is taken: 1 / this.
const LONG_TEXT_SHARE: usize = 16;
/// Records that columns are typed by.
const TYPED_RECORDS: usize = 20_000;
/// The largest dictionary that training makes.
const DICTIONARY_BYTES: usize = 64 << 20;
/// The smallest that is kept.
const DICTIONARY_BYTES_MIN: usize = 4096;
/// A dictionary is kept if it holds this share of the text, in percent.
const DICTIONARY_PERCENT_MIN: usize = 3;
/// A text is stored as one piece of the dictionary if so many in a hundred can be.
const PIECES_PERCENT_MIN: usize = 90;
/// Bits of the fixed-width codes of [`Effort::Fast`].
const FAST_BITS: u32 = 12;
/// Levels of the frames of large records.
const FAST_LEVEL: i8 = 1;
const SMALL_LEVEL: i8 = 9;
/// Marks: the end, and the classes of references.
const MARKS: usize = 1 + REFERENCE_CLASSES;

/// Builds one model.
pub(super) struct Builder<'s> {
    learned: &'s [&'s [u8]],
    judged: &'s [&'s [u8]],
    effort: Effort,
}

/// A shape with its columns, and the texts that records of it hold.
struct Shaped {
    literals: Vec<Vec<u8>>,
    columns: Vec<Column>,
}

impl<'s> Builder<'s> {
    pub(super) fn new(learned: &'s [&'s [u8]], judged: &'s [&'s [u8]], effort: Effort) -> Self {
        Self {
            learned,
            judged,
            effort,
        }
    }

    /// The model whose templates have these literals, or that tries `layout` first.
    pub(super) fn build(&self, shapes: &[Vec<Vec<u8>>], layout: Option<Layout>) -> Model {
        let shapes: Vec<Shaped> = shapes
            .iter()
            .filter_map(|shape| self.typed(shape))
            .collect();
        let splitters = templates(&shapes, 0);
        let texts = texts(&splitters, self.learned);
        let judged = texts_of_columns(&splitters, self.judged);
        let dictionary = self.dictionary(&texts, &judged);
        let coder = self.coder(&texts, dictionary);
        let mut forms = forms(shapes, &coder, &judged);
        if let Some(layout) = layout {
            forms.insert(0, Form::Layout(layout));
        }
        if self
            .learned
            .iter()
            .any(|record| record.len() >= FRAME_BYTES_MIN)
        {
            forms.push(Form::Frame(match self.effort {
                Effort::Fast => FAST_LEVEL,
                Effort::Small => SMALL_LEVEL,
            }));
        }
        let draft = Model::new(forms, Some(coder), 1);
        let bytes: usize = self.judged.iter().map(|record| record.len()).sum();
        let mut encoder = super::Encoder::new(Arc::new(draft));
        let mut codes = Vec::new();
        for record in self.judged {
            encoder.encode(record, &mut codes);
        }
        let expansion = expansion(bytes as u64, codes.len() as u64);
        let draft = encoder.into_model().expect("nobody else has the draft");
        draft.with_expansion(expansion)
    }

    /// Types for the fields between `literals`.
    fn typed(&self, literals: &[Vec<u8>]) -> Option<Shaped> {
        let fields = literals.len() - 1;
        let splitter = Template::new(literals.to_vec(), vec![Column::Text; fields], 0)?;
        let step = self.learned.len().div_ceil(TYPED_RECORDS);
        let mut rows = Vec::new();
        for record in self.learned.iter().step_by(step) {
            let mut fields = Vec::new();
            if splitter.split(record, &mut fields) {
                rows.push(fields);
            }
        }
        let (literals, columns) = type_columns(literals, &rows)?;
        Some(Shaped { literals, columns })
    }

    /// A dictionary of the text that `texts` share, if that is much.
    fn dictionary(&self, texts: &[&[u8]], judged: &[Vec<&[u8]>]) -> Option<Arc<Dictionary>> {
        if self.effort == Effort::Fast {
            return None;
        }
        let dictionary = Dictionary::new(assemble(texts, DICTIONARY_BYTES));
        if dictionary.text().len() < DICTIONARY_BYTES_MIN {
            return None;
        }
        let matcher = Matcher::new(&dictionary);
        let (mut held, mut all) = (0, 0);
        for text in judged.iter().flatten() {
            all += text.len();
            matcher.find(&dictionary, text, |found| held += found.len);
        }
        (held * 100 >= all * DICTIONARY_PERCENT_MIN).then(|| Arc::new(dictionary))
    }

    /// Tokens for the parts of the texts that are not in the dictionary, and their codes.
    fn coder(&self, texts: &[&[u8]], dictionary: Option<Arc<Dictionary>>) -> TextCoder {
        let mut rest: Vec<&[u8]> = Vec::new();
        if let Some(dictionary) = &dictionary {
            let matcher = Matcher::new(dictionary);
            for text in texts {
                let mut done = 0;
                matcher.find(dictionary, text, |found| {
                    rest.extend(text.get(done..found.at));
                    done = found.at + found.len;
                });
                rest.extend(text.get(done..));
            }
            rest.extend(bounded(texts, WHOLE_TEXT_BYTES));
        }
        let sample = if dictionary.is_some() { &rest } else { texts };
        let sample = bounded(sample, TEXT_BYTES_MAX);
        let growth = match self.effort {
            Effort::Fast => Growth {
                tokens_max: (1 << FAST_BITS) - MARKS,
                bias: f64::from(FAST_BITS),
                cutting: Cutting::Longest,
            },
            Effort::Small => Growth {
                tokens_max: (1 << 16) - MARKS,
                bias: 2.0,
                cutting: Cutting::Cheapest,
            },
        };
        let learned = learn(&sample, growth).tokens;
        let marks = [END_MARK].into_iter().chain(1..=REFERENCE_CLASSES as u8);
        let marks = marks.map(|mark| (Token::mark(mark), sample.len() as u64));
        let tokens = learned.into_iter().chain(marks);
        match self.effort {
            Effort::Fast => {
                let symbols = Symbols::Fixed(FAST_BITS);
                let tokens = tokens.map(|(token, _)| token).collect();
                TextCoder::new(Vocabulary::new(tokens), symbols, dictionary)
            }
            Effort::Small => {
                let draft = ranked(tokens.collect(), dictionary);
                let uses = uses(&draft, &bounded(texts, TEXT_BYTES_MAX));
                ranked(uses, draft.dictionary().cloned())
            }
        }
    }
}

/// A coder by Huffman codes for tokens and how often each is used.
fn ranked(mut uses: Vec<(Token, u64)>, dictionary: Option<Arc<Dictionary>>) -> TextCoder {
    uses.sort_unstable_by_key(|&(token, uses)| (Reverse(uses), token));
    let (tokens, uses): (Vec<Token>, Vec<u64>) = uses.into_iter().unzip();
    let lengths = Lengths::for_frequencies(&uses);
    let code = Box::new(Code::new(&lengths));
    let symbols = Symbols::Huffman(lengths, code);
    TextCoder::new(Vocabulary::new(tokens), symbols, dictionary)
}

/// The tokens of `coder` with how often each is used in `texts`.
fn uses(coder: &TextCoder, texts: &[&[u8]]) -> Vec<(Token, u64)> {
    let encoder = TextEncoder::new(coder);
    let tokens = coder.vocabulary().tokens();
    let mut uses = vec![0u64; tokens.len()];
    for text in texts {
        encoder.symbols(coder, text, |symbol| uses[symbol] += 1);
    }
    tokens.iter().copied().zip(uses).collect()
}

/// Forms: each shape with its pieces, each shape with its texts, and the record as one text.
fn forms(shapes: Vec<Shaped>, coder: &TextCoder, judged: &[Vec<&[u8]>]) -> Vec<Form> {
    let place_bits = coder.dictionary().map_or(0, |text| text.place_bits());
    let mut forms = Vec::new();
    let whole = [Shaped {
        literals: vec![Vec::new(), Vec::new()],
        columns: vec![Column::Text],
    }];
    let pieced = if shapes.is_empty() {
        &whole[..]
    } else {
        &shapes
    };
    for (index, shape) in pieced.iter().enumerate() {
        // The texts of records of this shape are known for the first one only.
        let piece = (index == 0).then(|| pieces(coder, judged)).flatten();
        if let Some((column, piece)) = piece
            && let Some(at) = text_columns(&shape.columns).nth(column)
        {
            let mut columns = shape.columns.clone();
            columns[at] = piece;
            let template = Template::new(shape.literals.clone(), columns, place_bits);
            forms.extend(template.map(Form::Template));
        }
    }
    forms.extend(
        templates(&shapes, place_bits)
            .into_iter()
            .map(Form::Template),
    );
    // Room for a layout, the text, and frames.
    forms.truncate(FORMS_MAX - 3);
    forms.push(Form::Text);
    forms
}

/// The text column that is nearly always one piece of the dictionary, and the column type for it.
fn pieces(coder: &TextCoder, judged: &[Vec<&[u8]>]) -> Option<(usize, Column)> {
    let dictionary = coder.dictionary()?;
    let matcher = Matcher::new(dictionary);
    let texts_each = judged.iter().map(Vec::len).max()?;
    for column in 0..texts_each {
        let texts: Vec<&[u8]> = judged
            .iter()
            .filter_map(|row| row.get(column).copied())
            .collect();
        let is_piece = |text: &&&[u8]| {
            let mut whole = false;
            matcher.find(dictionary, text, |found| whole |= found.len == text.len());
            whole
        };
        let found = texts.iter().filter(is_piece).count();
        if found == 0 || found * 100 < judged.len() * PIECES_PERCENT_MIN {
            continue;
        }
        let lengths = texts.iter().filter(is_piece).map(|text| text.len() as u32);
        let (low, high) = (lengths.clone().min()?, lengths.max()?);
        let bits = u32::BITS - (high - low).leading_zeros();
        let spare = (1u32 << bits) - 1 - (high - low);
        let shortest = low - (spare / 4).min(low);
        return (bits <= 20).then_some((column, Column::Piece { shortest, bits }));
    }
    None
}

fn templates(shapes: &[Shaped], place_bits: u32) -> Vec<Template> {
    let built = shapes
        .iter()
        .map(|shape| Template::new(shape.literals.clone(), shape.columns.clone(), place_bits));
    built.flatten().collect()
}

fn text_columns(columns: &[Column]) -> impl Iterator<Item = usize> {
    let columns = columns.iter().enumerate();
    columns
        .filter(|(_, column)| **column == Column::Text)
        .map(|(index, _)| index)
}

/// The texts of each record: its text columns by the first template it fits, or itself.
fn texts_of_columns<'s>(templates: &[Template], records: &[&'s [u8]]) -> Vec<Vec<&'s [u8]>> {
    let mut fields = Vec::new();
    let texts = records.iter().map(|record| {
        let shaped = templates
            .iter()
            .find(|template| template.split(record, &mut fields));
        match shaped {
            None => vec![*record],
            Some(template) => text_columns(template.columns())
                .filter_map(|index| fields.get(index).copied())
                .collect(),
        }
    });
    texts.collect()
}

fn texts<'s>(templates: &[Template], records: &[&'s [u8]]) -> Vec<&'s [u8]> {
    texts_of_columns(templates, records)
        .into_iter()
        .flatten()
        .collect()
}

/// Texts evenly spread of about `bytes_max` bytes together, and no more. Only the first part of a long one
/// is taken, so that it does not crowd out all others.
fn bounded<'s>(texts: &[&'s [u8]], bytes_max: usize) -> Vec<&'s [u8]> {
    let long = bytes_max / LONG_TEXT_SHARE;
    let cut = |text: &&'s [u8]| text.get(..long).unwrap_or(text);
    let size: usize = texts.iter().map(|text| cut(text).len()).sum();
    let (mut passed, mut taken) = (0, 0);
    let mut kept = Vec::new();
    for text in texts.iter().map(cut) {
        // The bytes that should have been taken up to this text.
        passed += text.len();
        let due = passed as u128 * bytes_max.min(size) as u128 / size.max(1) as u128;
        if (taken as u128) < due || size <= bytes_max {
            let room = bytes_max - taken;
            kept.push(text.get(..room).unwrap_or(text));
            taken += text.len().min(room);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded_together_and_evenly_spread() {
        let texts: Vec<Vec<u8>> = (0..100).map(|n| vec![n; 50]).collect();
        let views: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        assert_eq!(bounded(&views, 5000), views);
        let half = bounded(&views, 2500);
        assert_eq!(half, views.iter().step_by(2).copied().collect::<Vec<_>>());
        assert!(bounded(&[], 100).is_empty());
        assert_eq!(bounded(&[b"", b""], 100).len(), 2);
    }

    #[test]
    fn a_long_text_does_not_crowd_out_the_others() {
        let long = vec![b'l'; 1 << 20];
        let short = vec![b's'; 100];
        let mut views: Vec<&[u8]> = vec![&short; 1000];
        for at in [0, 500, 999] {
            views[at] = &long;
        }
        for bytes_max in [16, 1000, 50_000, 1 << 20] {
            let kept = bounded(&views, bytes_max);
            let bytes: usize = kept.iter().map(|text| text.len()).sum();
            let of_short = kept.iter().filter(|text| text.starts_with(b"s"));
            let of_short: usize = of_short.map(|text| text.len()).sum();
            assert!(bytes <= bytes_max, "{bytes} {bytes_max}");
            assert!(
                of_short * 2 >= bytes.min(50_000) || bytes_max == 16,
                "{of_short} {bytes_max}"
            );
        }
    }
}
