//! Texts to symbols.
//!
//! What stands in the dictionary becomes a reference, the rest the longest tokens from left to right.

use super::coder::{END_MARK, Ending, Symbols, TextCoder};
use crate::bits::BitWriter;
use crate::dictionary::{Found, Matcher, REFERENCE_CLASSES, class_of, reference_class};
use crate::huffman::Codes;
use crate::tokens::Finder;

/// The tables that encoding for a [`TextCoder`] needs. Shared by threads.
#[derive(Debug)]
pub struct TextEncoder {
    finder: Finder,
    codes: SymbolCodes,
    matcher: Option<Matcher>,
    end: Option<usize>,
    classes: [Option<usize>; REFERENCE_CLASSES],
}

#[derive(Debug)]
enum SymbolCodes {
    Fixed(u32),
    Huffman(Codes),
}

impl TextEncoder {
    /// Tables for `coder`. References are used if it has a dictionary and marks for all their classes.
    pub fn new(coder: &TextCoder) -> Self {
        let tokens = coder.vocabulary().tokens();
        let mark = |name: u8| {
            let place = tokens
                .iter()
                .position(|token| token.mark_name() == Some(name));
            place.filter(|_| true)
        };
        let classes: [Option<usize>; REFERENCE_CLASSES] =
            std::array::from_fn(|class| mark(class as u8 + 1));
        let referable = classes.iter().all(Option::is_some);
        let dictionary = coder.dictionary().filter(|_| referable);
        Self {
            finder: Finder::new(tokens),
            codes: match coder.symbols() {
                Symbols::Fixed(width) => SymbolCodes::Fixed(*width),
                Symbols::Huffman(lengths, _) => SymbolCodes::Huffman(Codes::new(lengths)),
            },
            matcher: dictionary.map(|dictionary| Matcher::new(dictionary)),
            end: mark(END_MARK),
            classes,
        }
    }

    /// Appends `text` to `writer`; whether that could be done, which it always can when the coder has
    /// an [`END_MARK`] or none is asked for.
    pub fn encode(
        &self,
        coder: &TextCoder,
        text: &[u8],
        ending: Ending,
        writer: &mut BitWriter<'_>,
    ) -> bool {
        match &self.codes {
            SymbolCodes::Fixed(width) => {
                let put = |symbol: usize, writer: &mut BitWriter<'_>| {
                    writer.put(symbol as u32, *width);
                };
                self.run(put, coder, text, ending, writer)
            }
            SymbolCodes::Huffman(codes) => {
                let put = |symbol: usize, writer: &mut BitWriter<'_>| {
                    let (code, width) = codes.of(symbol);
                    writer.put(code, width);
                };
                self.run(put, coder, text, ending, writer)
            }
        }
    }

    #[inline]
    fn run(
        &self,
        put: impl Fn(usize, &mut BitWriter<'_>),
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
                self.tokens(&put, text.get(done..found.at).unwrap_or_default(), writer);
                put(mark, writer);
                reference(found, dictionary.place_bits(), writer);
                done = found.at + found.len;
            });
        }
        self.tokens(&put, text.get(done..).unwrap_or_default(), writer);
        match (ending, self.end) {
            (Ending::Bits, _) => true,
            (Ending::Mark, Some(end)) => {
                put(end, writer);
                true
            }
            (Ending::Mark, None) => false,
        }
    }

    #[inline]
    fn tokens(
        &self,
        put: impl Fn(usize, &mut BitWriter<'_>),
        text: &[u8],
        writer: &mut BitWriter<'_>,
    ) {
        let mut rest = text;
        while !rest.is_empty() {
            let (symbol, len) = self.finder.longest(rest);
            put(symbol, writer);
            rest = rest.get(len..).unwrap_or_default();
        }
    }

    /// Calls `seen` with each symbol that `text` is encoded by.
    pub(crate) fn symbols(&self, coder: &TextCoder, text: &[u8], mut seen: impl FnMut(usize)) {
        let mut done = 0;
        let tokens = |text: &[u8], seen: &mut dyn FnMut(usize)| {
            let mut rest = text;
            while !rest.is_empty() {
                let (symbol, len) = self.finder.longest(rest);
                seen(symbol);
                rest = rest.get(len..).unwrap_or_default();
            }
        };
        if let (Some(matcher), Some(dictionary)) = (&self.matcher, coder.dictionary()) {
            matcher.find(dictionary, text, |found| {
                tokens(text.get(done..found.at).unwrap_or_default(), &mut seen);
                if let Some(mark) = self.classes[class_of(found.len)] {
                    seen(mark);
                }
                done = found.at + found.len;
            });
        }
        tokens(text.get(done..).unwrap_or_default(), &mut seen);
    }

    /// What finds pieces of the dictionary.
    pub fn matcher(&self) -> Option<&Matcher> {
        self.matcher.as_ref()
    }

    /// Bytes it takes in memory.
    pub fn memory(&self) -> usize {
        let codes = match &self.codes {
            SymbolCodes::Fixed(_) => 0,
            SymbolCodes::Huffman(codes) => codes.memory(),
        };
        let matcher = self.matcher.as_ref().map_or(0, Matcher::memory);
        self.finder.memory() + codes + matcher
    }
}

/// Appends what follows a reference's mark.
fn reference(found: Found, place_bits: u32, writer: &mut BitWriter<'_>) {
    let (least, extra) = reference_class(class_of(found.len));
    writer.put((found.len - least) as u32, extra);
    writer.put(found.place as u32, place_bits);
}
