//! The tokens of a model in the order of their symbols.
//!
//! A token has a row of sixteen bytes: fifteen of text, padded with zeros, and its length. A decoder
//! copies the whole row and then moves on by the length, so that the copy has one fixed size. Rows
//! with a length of 0 are marks: symbols with another meaning than a text.

use drumlin_base::coding::Reader;
use drumlin_base::{Error, Result};

use crate::huffman::SYMBOLS_MAX;

/// The longest token.
pub const TOKEN_BYTES_MAX: usize = 15;
/// Bytes of a row: the token and its length.
pub const ROW_BYTES: usize = 16;

/// A short string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token([u8; ROW_BYTES]);

impl Token {
    /// The token that is `bytes`; none when they are too many, or none at all.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() || bytes.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let mut row = [0; ROW_BYTES];
        for (slot, &byte) in row.iter_mut().zip(bytes) {
            *slot = byte;
        }
        row[TOKEN_BYTES_MAX] = bytes.len() as u8;
        Some(Self(row))
    }

    /// The mark called `name`.
    pub fn mark(name: u8) -> Self {
        let mut row = [0; ROW_BYTES];
        row[0] = name;
        Self(row)
    }

    /// Its text; empty for a mark.
    pub fn bytes(&self) -> &[u8] {
        &self.0[..self.len()] // A row has a length of 15 at most.
    }

    /// The name of a mark; none for a token with text.
    pub fn mark_name(&self) -> Option<u8> {
        self.is_empty().then_some(self.0[0])
    }

    /// Bytes of text.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.0[TOKEN_BYTES_MAX])
    }

    /// Whether it has no text: a mark.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The token and another behind it; none when they are too long together.
    pub fn joined(&self, next: &Self) -> Option<Self> {
        let len = self.len() + next.len();
        if len > TOKEN_BYTES_MAX || self.is_empty() || next.is_empty() {
            return None;
        }
        let mut row = self.0;
        for (slot, &byte) in row.iter_mut().skip(self.len()).zip(next.bytes()) {
            *slot = byte;
        }
        row[TOKEN_BYTES_MAX] = len as u8;
        Some(Self(row))
    }

    /// The row as it is copied: text, zeros, length.
    #[inline]
    pub fn row(&self) -> &[u8; ROW_BYTES] {
        &self.0
    }
}

/// Tokens and marks by symbol. Immutable, shared by threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    tokens: Vec<Token>,
}

impl Vocabulary {
    /// The vocabulary of `tokens`, symbol 0 first.
    pub fn new(tokens: Vec<Token>) -> Self {
        Self { tokens }
    }

    /// The tokens by symbol.
    #[inline]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Appends the number of symbols, their lengths one byte each, then their texts in a row; a mark
    /// has its name as text.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.tokens.len() as u32).to_le_bytes());
        out.extend(self.tokens.iter().map(|token| token.len() as u8));
        for token in &self.tokens {
            match token.mark_name() {
                Some(name) => out.push(name),
                None => out.extend_from_slice(token.bytes()),
            }
        }
    }

    /// Reads a vocabulary from the bytes of [`Vocabulary::write`].
    ///
    /// # Errors
    /// `Corruption` when the bytes are cut off, or a token is too long, or there are too many.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let cut = || Error::corruption("a vocabulary is cut off");
        let count = reader.fixed32().ok_or_else(cut)? as usize;
        if count > SYMBOLS_MAX {
            return Err(Error::corruption("a vocabulary with too many tokens"));
        }
        let lengths = reader.bytes(count).ok_or_else(cut)?;
        let mut tokens = Vec::with_capacity(count);
        for &length in lengths {
            let length = usize::from(length);
            let token = match reader.bytes(length.max(1)).ok_or_else(cut)? {
                &[name] if length == 0 => Some(Token::mark(name)),
                bytes => Token::new(bytes),
            };
            tokens.push(token.ok_or_else(|| Error::corruption("a token is too long"))?);
        }
        Ok(Self { tokens })
    }

    /// Bytes it takes in memory.
    pub fn memory(&self) -> usize {
        self.tokens.len() * ROW_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Token {
        Token::new(text.as_bytes()).expect("short enough")
    }

    #[test]
    fn tokens_join_up_to_their_limit() {
        let joined = token("drum").joined(&token("lin")).expect("short enough");
        assert_eq!(joined, token("drumlin"));
        assert!(token("eight by").joined(&token("eight by")).is_none());
        assert!(Token::mark(3).joined(&token("a")).is_none());
        assert!(Token::new(&[b'a'; TOKEN_BYTES_MAX + 1]).is_none());
    }

    #[test]
    fn a_vocabulary_reads_back_and_a_cut_one_is_refused() {
        let tokens = vec![token("a"), Token::mark(2), token("fifteen letters")];
        let vocabulary = Vocabulary::new(tokens);
        let mut bytes = Vec::new();
        vocabulary.write(&mut bytes);
        let back = Vocabulary::read(&mut Reader::new(&bytes)).expect("its own bytes");
        assert_eq!(back, vocabulary);
        for cut in 0..bytes.len() {
            assert!(Vocabulary::read(&mut Reader::new(&bytes[..cut])).is_err());
        }
        bytes[4] = 16;
        assert!(Vocabulary::read(&mut Reader::new(&bytes)).is_err());
    }
}
