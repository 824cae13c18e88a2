//! The kinds of number in keys, and their mapping to integers and back.
//!
//! Each kind maps the texts it accepts one to one to integers: a parsed text is printed as it was.
//! Printing takes any integer, also one of no text, and its output is bounded by the kind's width.

use drumlin_base::coding::Reader;

use super::digits;

/// Digits a decimal number may have so that it fits 64 bits.
pub(super) const DECIMAL_DIGITS_MAX: u8 = 19;
/// Digits an ordered number may have: eleven to this power fits 64 bits.
pub(super) const ORDERED_DIGITS_MAX: u8 = 18;
/// Longest decimal text of a number of 64 bits.
const U64_DIGITS: usize = 20;

/// A kind of number. The numbers of the variants are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Decimal digits without leading zero. Their integers are in another order than the texts.
    Decimal,
    /// One to `digits` decimal digits, leading zeros allowed, filled up at the end to `digits` by an
    /// eleventh digit: the highest if the next byte of the key sorts after digits (`end_high`), else
    /// the lowest. So the integers are in the order of the keys.
    Ordered {
        /// Most digits.
        digits: u8,
        /// The next byte sorts after digits.
        end_high: bool,
    },
    /// Exactly this many decimal digits.
    FixedDecimal(u8),
    /// Exactly this many hexadecimal digits in lower case.
    HexLower(u8),
    /// Exactly this many hexadecimal digits in upper case.
    HexUpper(u8),
    /// Exactly this many bytes, the most significant first.
    Binary(u8),
}

impl Field {
    /// Whether the integers are in the order of the texts.
    pub(super) fn ascends(self) -> bool {
        !matches!(self, Self::Decimal)
    }

    /// The number at the front of `text`, and the bytes it takes.
    #[inline]
    pub(super) fn parse(self, text: &[u8]) -> Option<(u64, usize)> {
        match self {
            Self::Decimal => parse_decimal(text),
            Self::Ordered { digits, end_high } => parse_ordered(text, digits, end_high),
            Self::FixedDecimal(width) => {
                let width = usize::from(width);
                let (value, len) = digits::leading::<10>(text, width, 0);
                (len == width).then_some((value, len))
            }
            Self::HexLower(width) => parse_hex(text, width, b'a'),
            Self::HexUpper(width) => parse_hex(text, width, b'A'),
            Self::Binary(width) => {
                let width = usize::from(width);
                if let Some(word) = text.first_chunk::<8>() {
                    // The width is 1 to 8.
                    return Some((u64::from_be_bytes(*word) >> (64 - 8 * width as u32), width));
                }
                let text = text.get(..width)?;
                let value = text.iter().fold(0, |v, &byte| (v << 8) | u64::from(byte));
                Some((value, width))
            }
        }
    }

    /// Appends the text of `value`.
    #[inline]
    pub(super) fn print(self, value: u64, out: &mut Vec<u8>) {
        match self {
            Self::Decimal => {
                let mut digits = [0; U64_DIGITS];
                out.extend_from_slice(decimal(value, &mut digits, 1));
            }
            Self::FixedDecimal(width) => {
                let mut digits = [b'0'; U64_DIGITS];
                decimal(value, &mut digits, 1);
                let skipped = U64_DIGITS.saturating_sub(usize::from(width));
                out.extend_from_slice(digits.get(skipped..).unwrap_or(&[]));
            }
            Self::Ordered { digits, end_high } => print_ordered(value, digits, end_high, out),
            Self::HexLower(width) => print_hex(value, width, b"0123456789abcdef", out),
            Self::HexUpper(width) => print_hex(value, width, b"0123456789ABCDEF", out),
            Self::Binary(width) => {
                let bytes = value.to_be_bytes();
                let skipped = bytes.len().saturating_sub(usize::from(width));
                out.extend_from_slice(bytes.get(skipped..).unwrap_or(&[]));
            }
        }
    }

    /// Appends the kind as it is stored: two bytes.
    pub(super) fn store(self, out: &mut Vec<u8>) {
        let (kind, width) = match self {
            Self::Decimal => (0, 0),
            Self::Ordered { digits, end_high } => (1 + u8::from(end_high), digits),
            Self::FixedDecimal(width) => (3, width),
            Self::HexLower(width) => (4, width),
            Self::HexUpper(width) => (5, width),
            Self::Binary(width) => (6, width),
        };
        out.extend_from_slice(&[kind, width]);
    }

    /// Reads a field from the bytes of [`Field::store`]. `None` for an unknown kind or a width out
    /// of its bounds.
    pub(super) fn load(from: &mut Reader<'_>) -> Option<Self> {
        let (kind, width) = (from.u8()?, from.u8()?);
        let (field, width_max) = match kind {
            0 => return (width == 0).then_some(Self::Decimal),
            1 | 2 => (
                Self::Ordered {
                    digits: width,
                    end_high: kind == 2,
                },
                ORDERED_DIGITS_MAX,
            ),
            3 => (Self::FixedDecimal(width), DECIMAL_DIGITS_MAX),
            4 => (Self::HexLower(width), 16),
            5 => (Self::HexUpper(width), 16),
            6 => (Self::Binary(width), 8),
            _ => return None,
        };
        (1..=width_max).contains(&width).then_some(field)
    }
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Decimal => write!(f, "<decimal>"),
            Self::Ordered { digits, .. } => write!(f, "<ordered decimal, up to {digits}>"),
            Self::FixedDecimal(width) => write!(f, "<{width} digits>"),
            Self::HexLower(width) | Self::HexUpper(width) => write!(f, "<{width} hex digits>"),
            Self::Binary(width) => write!(f, "<{width} bytes>"),
        }
    }
}

#[inline]
fn parse_decimal(text: &[u8]) -> Option<(u64, usize)> {
    let (value, len) = digits::leading::<10>(text, usize::from(DECIMAL_DIGITS_MAX), 0);
    let zero_first = text.first() == Some(&b'0') && len > 1;
    (len > 0 && !zero_first).then_some((value, len))
}

#[inline]
fn parse_ordered(text: &[u8], digits: u8, end_high: bool) -> Option<(u64, usize)> {
    let first = if end_high { 0 } else { 1 };
    let (value, len) = digits::leading::<11>(text, usize::from(digits), first);
    // Filled up with zeros, or with the digit ten as often.
    let filled = digits::power::<11>(usize::from(digits) - len);
    let value = value * filled + if end_high { filled - 1 } else { 0 };
    (len > 0).then_some((value, len))
}

fn print_ordered(value: u64, digits: u8, end_high: bool, out: &mut Vec<u8>) {
    let (first, end) = if end_high { (0, 10) } else { (1, 0) };
    let mut text = [0u8; ORDERED_DIGITS_MAX as usize];
    let mut rest = value;
    let text = text.get_mut(..usize::from(digits)).unwrap_or(&mut []);
    for place in text.iter_mut().rev() {
        *place = (rest % 11) as u8;
        rest /= 11;
    }
    let len = text.iter().position(|&digit| digit == end);
    let text = text.get(..len.unwrap_or(text.len())).unwrap_or(&[]);
    out.extend(text.iter().map(|digit| b'0' + digit.saturating_sub(first)));
}

#[inline]
fn parse_hex(text: &[u8], width: u8, letter: u8) -> Option<(u64, usize)> {
    let text = text.get(..usize::from(width))?;
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        let digit = match digit <= 9 {
            true => digit,
            false => match byte.wrapping_sub(letter) {
                above @ 0..=5 => above + 10,
                _ => return None,
            },
        };
        value = (value << 4) | u64::from(digit);
    }
    Some((value, text.len()))
}

fn print_hex(value: u64, width: u8, letters: &[u8; 16], out: &mut Vec<u8>) {
    for place in (0..u32::from(width)).rev() {
        let digit = (value >> (4 * place)) & 0xF;
        out.push(letters.get(digit as usize).copied().unwrap_or(b'0'));
    }
}

/// Writes `value` to the end of `digits`, at least `len_min` digits of it; those written.
#[inline]
fn decimal(mut value: u64, digits: &mut [u8; U64_DIGITS], len_min: usize) -> &[u8] {
    let mut start = U64_DIGITS;
    for (index, place) in digits.iter_mut().enumerate().rev() {
        if value == 0 && U64_DIGITS - start >= len_min {
            break;
        }
        *place = b'0' + (value % 10) as u8;
        value /= 10;
        start = index;
    }
    digits.get(start..).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use drumlin_base::rng::Rng;

    use super::*;

    fn round_trip(field: Field, text: &str) -> u64 {
        let (value, len) = field.parse(text.as_bytes()).unwrap();
        let mut out = Vec::new();
        field.print(value, &mut out);
        assert_eq!(out, &text.as_bytes()[..len], "{field:?}");
        value
    }

    #[test]
    fn every_kind_prints_what_it_parsed() {
        assert_eq!(
            round_trip(Field::Decimal, "1234567890123456789|"),
            1_234_567_890_123_456_789
        );
        assert_eq!(round_trip(Field::Decimal, "0"), 0);
        assert_eq!(round_trip(Field::FixedDecimal(6), "000420x"), 420);
        assert_eq!(
            round_trip(Field::HexLower(16), "ffffffffffffffff"),
            u64::MAX
        );
        assert_eq!(round_trip(Field::HexUpper(3), "0AF"), 0xAF);
        for end_high in [false, true] {
            let field = Field::Ordered {
                digits: 18,
                end_high,
            };
            for text in ["0", "007", "999999999999999999", "10|x"] {
                round_trip(field, text);
            }
        }
        let (value, _) = Field::Binary(8).parse(&[0xFF; 9]).unwrap();
        assert_eq!(value, u64::MAX);
    }

    #[test]
    fn texts_that_would_print_otherwise_are_refused() {
        assert_eq!(Field::Decimal.parse(b"012"), None);
        assert_eq!(Field::Decimal.parse(b"x"), None);
        assert_eq!(Field::FixedDecimal(3).parse(b"12"), None);
        assert_eq!(Field::HexLower(2).parse(b"0A"), None);
        assert_eq!(
            Field::Ordered {
                digits: 3,
                end_high: true
            }
            .parse(b"|"),
            None
        );
    }

    #[test]
    fn ordered_integers_are_in_the_order_of_the_keys() {
        let mut rng = Rng::new(1);
        for (end_high, end) in [(true, "|"), (false, "-"), (false, "")] {
            let field = Field::Ordered {
                digits: 7,
                end_high,
            };
            let mut texts: Vec<String> = (0..500)
                .map(|_| {
                    let below = 10u64.pow(1 + rng.below(7) as u32);
                    format!("{}{end}", rng.below(below))
                })
                .collect();
            texts.sort_unstable();
            texts.dedup();
            let values: Vec<u64> = texts.iter().map(|text| round_trip(field, text)).collect();
            assert!(values.is_sorted_by(|a, b| a < b), "{end}");
        }
    }

    #[test]
    fn any_integer_is_printed_within_its_width() {
        let mut rng = Rng::new(2);
        let mut out = Vec::new();
        for _ in 0..2000 {
            let stored = [rng.below(8) as u8, rng.below(24) as u8];
            let Some(field) = Field::load(&mut Reader::new(&stored)) else {
                continue;
            };
            let mut again = Vec::new();
            field.store(&mut again);
            assert_eq!(again, stored);
            out.clear();
            field.print(rng.next_u64(), &mut out);
            assert!(out.len() <= U64_DIGITS);
        }
    }
}
