//! The symbols of a text, and decoding them.
//!
//! A text is a row of symbols. A symbol is a token, or a mark: the end of the text, where more follows
//! in the same row of bits, or a reference: a class of lengths, followed by the length within the class
//! and the place in the dictionary as plain bits.
//!
//! The hot loop decodes two tokens from one window of bits, and copies each as a whole row of sixteen
//! bytes. It knows beforehand that bits and room suffice for both, so only marks leave it.

use std::sync::Arc;

use drumlin_base::coding::Reader;
use drumlin_base::{Error, Result};

use super::sink::Sink;
use crate::bits::Bits;
use crate::dictionary::{Dictionary, REFERENCE_CLASSES, reference_class};
use crate::huffman::{Code, LENGTH_MAX, Lengths};
use crate::tokens::{ROW_BYTES, Token, Vocabulary};

/// On disk: the mark that ends a text. Marks from 1 on are the classes of references.
pub const END_MARK: u8 = 0;
/// Bits that two symbols take at most.
const TWO_SYMBOLS: usize = 2 * LENGTH_MAX;

/// How symbols are written.
#[derive(Debug)]
pub enum Symbols {
    /// Each in so many bits, 8 to 17.
    Fixed(u32),
    /// By a Huffman code.
    Huffman(Lengths, Box<Code>),
}

/// Where a text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With the bits; fewer than eight ones remain.
    Bits,
    /// At an [`END_MARK`].
    Mark,
}

/// Turns bits into text. Immutable, shared by threads.
#[derive(Debug)]
pub struct TextCoder {
    vocabulary: Vocabulary,
    symbols: Symbols,
    dictionary: Option<Arc<Dictionary>>,
}

/// On disk: the first byte of a coder, which names the code of its texts.
const FIXED: u8 = 0;
const HUFFMAN: u8 = 1;

impl TextCoder {
    /// A coder of the symbols in `vocabulary`, whose order is theirs.
    ///
    /// Requires: 256 symbols or more, and for Huffman codes the lengths of as many.
    pub fn new(
        vocabulary: Vocabulary,
        symbols: Symbols,
        dictionary: Option<Arc<Dictionary>>,
    ) -> Self {
        Self {
            vocabulary,
            symbols,
            dictionary,
        }
    }

    /// The tokens and marks.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// How they are written.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The dictionary that references refer to.
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref()
    }

    /// Bytes it takes in memory, the dictionary aside.
    pub fn memory(&self) -> usize {
        let code = match &self.symbols {
            Symbols::Fixed(_) => 0,
            Symbols::Huffman(..) => size_of::<Code>() + 4096,
        };
        self.vocabulary.memory() + code
    }

    /// Appends the coder as it is stored, the dictionary aside.
    pub fn write(&self, out: &mut Vec<u8>) {
        match &self.symbols {
            Symbols::Fixed(width) => out.extend_from_slice(&[FIXED, *width as u8]),
            Symbols::Huffman(lengths, _) => {
                out.push(HUFFMAN);
                lengths.write(out);
            }
        }
        self.vocabulary.write(out);
    }

    /// Reads a coder from the bytes of [`TextCoder::write`].
    ///
    /// # Errors
    /// `Corruption` when it is damaged.
    pub fn read(reader: &mut Reader<'_>, dictionary: Option<Arc<Dictionary>>) -> Result<Self> {
        let cut = || Error::corruption("a text coder is cut off");
        let symbols = match reader.u8().ok_or_else(cut)? {
            FIXED => Symbols::Fixed(u32::from(reader.u8().ok_or_else(cut)?)),
            HUFFMAN => {
                let lengths = Lengths::read(reader)?;
                let code = Box::new(Code::new(&lengths));
                Symbols::Huffman(lengths, code)
            }
            kind => {
                let complaint = format!("a text coder of unknown kind {kind}");
                return Err(Error::corruption(complaint));
            }
        };
        let vocabulary = Vocabulary::read(reader)?;
        let sound = match &symbols {
            Symbols::Fixed(width) => {
                (8..=17).contains(width) && vocabulary.tokens().len() <= 1 << width
            }
            Symbols::Huffman(lengths, _) => lengths.symbols() == vocabulary.tokens().len(),
        };
        let bytes_covered = {
            let mut seen = [false; 256];
            for token in vocabulary.tokens() {
                if let &[byte] = token.bytes() {
                    seen[usize::from(byte)] = true;
                }
            }
            seen.iter().all(|&seen| seen)
        };
        if !sound || !bytes_covered {
            return Err(Error::corruption("a text coder's parts do not fit"));
        }
        Ok(Self::new(vocabulary, symbols, dictionary))
    }

    /// Decodes the text that begins at bit `at` of `bits` into `sink`, and returns its end in
    /// `bits`.
    ///
    /// # Errors
    /// `Corruption` when the bits are no text, or one that is too long for the sink.
    #[inline]
    pub fn decode(
        &self,
        bits: &Bits<'_>,
        at: usize,
        ending: Ending,
        sink: &mut Sink<'_>,
    ) -> Result<usize> {
        match &self.symbols {
            Symbols::Fixed(width) => {
                let width = *width;
                let symbol = |window: u64| ((window >> (64 - width)) as usize, width);
                self.run(symbol, bits, at, ending, sink)
            }
            Symbols::Huffman(_, code) => {
                self.run(|window| code.decode(window), bits, at, ending, sink)
            }
        }
    }

    #[inline]
    fn run(
        &self,
        symbol: impl Fn(u64) -> (usize, u32),
        bits: &Bits<'_>,
        mut at: usize,
        ending: Ending,
        sink: &mut Sink<'_>,
    ) -> Result<usize> {
        let tokens = self.vocabulary.tokens();
        let end = bits.len();
        loop {
            let room = sink.room()?;
            let (moved, written) = pairs(&symbol, tokens, bits, at, room);
            at += moved;
            sink.advance(written);
            // One symbol with every check: a mark, one of the last, or room was short.
            let (index, width) = symbol(bits.window(at));
            let next = at + width as usize;
            if next > end {
                return match ending {
                    Ending::Bits if end - at.min(end) < 8 => Ok(end),
                    _ => Err(Error::corruption("a text is cut off")),
                };
            }
            at = next;
            let token = tokens.get(index).ok_or_else(no_token)?;
            match token.mark_name() {
                None => {
                    let room = sink.room()?;
                    copy(token, room, 0);
                    sink.advance(token.len());
                }
                Some(END_MARK) if ending == Ending::Mark => return Ok(at),
                Some(mark) => at = self.reference(mark, bits, at, sink)?,
            }
        }
    }

    /// Decodes the rest of a reference, whose mark ended at bit `at`.
    fn reference(
        &self,
        mark: u8,
        bits: &Bits<'_>,
        at: usize,
        sink: &mut Sink<'_>,
    ) -> Result<usize> {
        let unknown = || Error::corruption("a text holds a mark that means nothing");
        let dictionary = self.dictionary.as_ref().ok_or_else(unknown)?;
        let class = usize::from(mark).checked_sub(1);
        let class = class.filter(|&class| class < REFERENCE_CLASSES);
        let (least, extra) = reference_class(class.ok_or_else(unknown)?);
        let len = least + bits.field(at, extra) as usize;
        let place_at = at + extra as usize;
        let place = bits.field(place_at, dictionary.place_bits()) as usize;
        let next = place_at + dictionary.place_bits() as usize;
        if next > bits.len() {
            return Err(Error::corruption("a reference is cut off"));
        }
        sink.extend(dictionary.get(place, len)?)?;
        Ok(next)
    }
}

/// Decodes tokens two by two while bits and room suffice and no mark comes: the bits read, and the
/// bytes written to `room`.
#[inline]
fn pairs(
    symbol: &impl Fn(u64) -> (usize, u32),
    tokens: &[Token],
    bits: &Bits<'_>,
    from: usize,
    room: &mut [u8],
) -> (usize, usize) {
    let (mut at, mut written) = (from, 0);
    let last_at = bits.len().saturating_sub(TWO_SYMBOLS);
    let last_written = room.len().saturating_sub(2 * ROW_BYTES);
    while at <= last_at && written <= last_written {
        let window = bits.window(at);
        let (first, first_width) = symbol(window);
        let (second, second_width) = symbol(window << first_width);
        let (Some(first), Some(second)) = (tokens.get(first), tokens.get(second)) else {
            break;
        };
        if first.is_empty() || second.is_empty() {
            break;
        }
        copy(first, room, written);
        copy(second, room, written + first.len());
        written += first.len() + second.len();
        at += (first_width + second_width) as usize;
    }
    (at - from, written)
}

/// Copies the whole row of `token` to `at`, if there is room for one.
#[inline]
fn copy(token: &Token, room: &mut [u8], at: usize) {
    let row = room.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
    if let Some(row) = row {
        *row = *token.row();
    }
}

#[cold]
fn no_token() -> Error {
    Error::corruption("a text holds a symbol that is no token")
}
