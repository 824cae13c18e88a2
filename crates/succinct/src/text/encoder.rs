//! Texts to symbols.
//!
//! Text in the dictionary becomes references, the rest tokens: with Huffman codes those that cost least
//! together, with codes of one width the longest from left to right.

use super::coder::{END_MARK, Ending, Symbols, TextCoder};
use crate::bits::BitWriter;
use crate::dictionary::{DictionaryMatch, Matcher, REFERENCE_CLASSES, class_of, reference_class};
use crate::huffman::Codes;
use crate::tokens::{COST_PARTS, Cutter, Finder};

/// Bits that a way to cut a text may cost more than another and still be followed. With 1, records of TPC-H
/// took 64.5 bytes, with 4 63.7, with 16 63.6; and encoding went at 99, 75 and 42 MB/s, beside 103 into the
/// longest tokens and 72.7 bytes.
const SLACK_BITS: u32 = 1;

/// The tables that encoding for a [`TextCoder`] needs. Shared by threads.
#[derive(Debug)]
pub struct TextEncoder {
    codes: SymbolCodes,
    matcher: Option<Matcher>,
    end: Option<usize>,
    classes: [Option<usize>; REFERENCE_CLASSES],
}

#[derive(Debug)]
enum SymbolCodes {
    Fixed(u32, Finder),
    Huffman(Codes, Cutter),
}

impl TextEncoder {
    /// Tables for `coder`. References are used if it has a dictionary and marks for all their classes.
    pub fn new(coder: &TextCoder) -> Self {
        let tokens = coder.vocabulary().tokens();
        let mark = |name: u8| {
            tokens
                .iter()
                .position(|token| token.mark_name() == Some(name))
        };
        let classes: [Option<usize>; REFERENCE_CLASSES] =
            std::array::from_fn(|class| mark(class as u8 + 1));
        let referable = classes.iter().all(Option::is_some);
        let dictionary = coder.dictionary().filter(|_| referable);
        Self {
            codes: match coder.symbols() {
                Symbols::Fixed(width) => {
                    SymbolCodes::Fixed(*width, Finder::new(tokens, |_| width * COST_PARTS))
                }
                Symbols::Huffman(lengths, _) => {
                    let codes = Codes::new(lengths);
                    let cost = |symbol: usize| codes.of(symbol).1 * COST_PARTS;
                    let cutter = Cutter::new(tokens, cost, SLACK_BITS);
                    SymbolCodes::Huffman(codes, cutter)
                }
            },
            matcher: dictionary.map(|dictionary| Matcher::new(dictionary)),
            end: mark(END_MARK),
            classes,
        }
    }

    /// Appends `text` to `writer`. Returns whether it could, which is always so when the coder has an
    /// [`END_MARK`] or none is asked for.
    pub fn encode(
        &self,
        coder: &TextCoder,
        text: &[u8],
        ending: Ending,
        writer: &mut BitWriter<'_>,
    ) -> bool {
        match &self.codes {
            SymbolCodes::Fixed(width, finder) => {
                let put = |symbol: usize, writer: &mut BitWriter<'_>| {
                    writer.put(symbol as u32, *width);
                };
                let tokens = |text: &[u8], writer: &mut BitWriter<'_>| {
                    longest(finder, text, |symbol| put(symbol, writer));
                };
                self.run(put, tokens, coder, text, ending, writer)
            }
            SymbolCodes::Huffman(codes, cutter) => {
                let put = |symbol: usize, writer: &mut BitWriter<'_>| {
                    let (code, width) = codes.of(symbol);
                    writer.put(code, width);
                };
                let tokens = |text: &[u8], writer: &mut BitWriter<'_>| {
                    cutter.cut(text, |symbol| put(symbol, writer));
                };
                self.run(put, tokens, coder, text, ending, writer)
            }
        }
    }

    #[inline]
    fn run(
        &self,
        put: impl Fn(usize, &mut BitWriter<'_>),
        tokens: impl Fn(&[u8], &mut BitWriter<'_>),
        coder: &TextCoder,
        text: &[u8],
        ending: Ending,
        writer: &mut BitWriter<'_>,
    ) -> bool {
        let mut done = 0;
        if let (Some(matcher), Some(dictionary)) = (&self.matcher, coder.dictionary()) {
            matcher.find(dictionary, text, |found| {
                let Some(mark) = self.classes[class_of(found.len)] else {
                    return;
                };
                let between = text.get(done..found.at);
                tokens(between.expect("matches ascend and do not overlap"), writer);
                put(mark, writer);
                reference(found, dictionary.place_bits(), writer);
                done = found.at + found.len;
            });
        }
        tokens(text.split_at(done).1, writer);
        match (ending, self.end) {
            (Ending::Bits, _) => true,
            (Ending::Mark, Some(end)) => {
                put(end, writer);
                true
            }
            (Ending::Mark, None) => false,
        }
    }

    /// Calls `seen` with each symbol that `text` is encoded by.
    pub(crate) fn symbols(&self, coder: &TextCoder, text: &[u8], mut seen: impl FnMut(usize)) {
        let mut done = 0;
        let tokens = |text: &[u8], seen: &mut dyn FnMut(usize)| match &self.codes {
            SymbolCodes::Fixed(_, finder) => longest(finder, text, seen),
            SymbolCodes::Huffman(_, cutter) => cutter.cut(text, seen),
        };
        if let (Some(matcher), Some(dictionary)) = (&self.matcher, coder.dictionary()) {
            matcher.find(dictionary, text, |found| {
                let between = text.get(done..found.at);
                tokens(
                    between.expect("matches ascend and do not overlap"),
                    &mut seen,
                );
                if let Some(mark) = self.classes[class_of(found.len)] {
                    seen(mark);
                }
                done = found.at + found.len;
            });
        }
        tokens(text.split_at(done).1, &mut seen);
    }

    /// The matcher for pieces of the dictionary.
    pub fn matcher(&self) -> Option<&Matcher> {
        self.matcher.as_ref()
    }

    /// Bytes it takes in memory.
    pub fn memory(&self) -> usize {
        let codes = match &self.codes {
            SymbolCodes::Fixed(_, finder) => finder.memory(),
            SymbolCodes::Huffman(codes, cutter) => codes.memory() + cutter.memory(),
        };
        codes + self.matcher.as_ref().map_or(0, Matcher::memory)
    }
}

/// Calls `seen` with the symbols of the longest tokens from left to right.
fn longest(finder: &Finder, text: &[u8], mut seen: impl FnMut(usize)) {
    let mut rest = text;
    while !rest.is_empty() {
        let cut = finder.longest(rest);
        seen(cut.symbol);
        debug_assert!(cut.len > 0, "every byte is a token");
        rest = rest.split_at(cut.len).1;
    }
}

/// Appends the bits behind a reference's mark.
fn reference(found: DictionaryMatch, place_bits: u32, writer: &mut BitWriter<'_>) {
    let (least, extra) = reference_class(class_of(found.len));
    writer.put((found.len - least) as u32, extra);
    writer.put(found.place as u32, place_bits);
}
