//! Numbers in the ways they are written.
//!
//! A style has one spelling for each number: [`Style::parse`] takes only that spelling, so that
//! [`Style::render`] writes the text that was read.

use drumlin_base::{Error, Result};

/// Bytes of the longest spelling.
pub(super) const SPELLING_BYTES_MAX: usize = 40;
/// Digits that always fit a signed 64-bit number.
const DIGITS_MAX: usize = 18;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_SHIFT: i64 = 719_468;
/// 0000-01-01 and 9999-12-31 as days from 1970-01-01.
const DAYS: std::ops::RangeInclusive<i64> = -719_528..=2_932_896;

/// A way to write numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `-17`, `0`, `17`: no zeros in front.
    Integer,
    /// `0017`: so many digits (2 to 18), not negative.
    Padded(u8),
    /// `-0.05`: so many digits (1 to 17) behind the point, no needless zeros in front of it.
    Decimal(u8),
    /// `1996-03-13`, as days from 1970-01-01.
    Date,
}

impl Style {
    /// On disk: the style and its parameter.
    pub(super) fn bytes(self) -> [u8; 2] {
        match self {
            Self::Integer => [0, 0],
            Self::Padded(digits) => [1, digits],
            Self::Decimal(digits) => [2, digits],
            Self::Date => [3, 0],
        }
    }

    /// The style of these two bytes.
    pub(super) fn from_bytes(bytes: [u8; 2]) -> Option<Self> {
        match bytes {
            [0, 0] => Some(Self::Integer),
            [1, digits @ 2..=18] => Some(Self::Padded(digits)),
            [2, digits @ 1..=17] => Some(Self::Decimal(digits)),
            [3, 0] => Some(Self::Date),
            _ => None,
        }
    }

    /// The style that `text` could have, were it a number.
    pub fn guess(text: &[u8]) -> Option<Self> {
        if let [_, _, _, _, b'-', _, _, b'-', _, _] = text {
            return Some(Self::Date);
        }
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        if let Some(point) = digits.iter().position(|&byte| byte == b'.') {
            return Some(Self::Decimal((digits.len() - point - 1).min(255) as u8));
        }
        match digits {
            [b'0', _, ..] => Some(Self::Padded(text.len().min(255) as u8)),
            [b'0'..=b'9', ..] => Some(Self::Integer),
            _ => None,
        }
    }

    /// The number that is spelled `text`.
    pub fn parse(self, text: &[u8]) -> Option<i64> {
        match self {
            Self::Integer => {
                let (negative, digits) = sign(text);
                signed(negative, unpadded(digits)?)
            }
            Self::Padded(width) => {
                (text.len() == usize::from(width)).then_some(())?;
                number(text)
            }
            Self::Decimal(behind) => {
                let (negative, digits) = sign(text);
                let point = digits.len().checked_sub(usize::from(behind) + 1)?;
                let (whole, rest) = digits.split_at_checked(point)?;
                let rest = rest.strip_prefix(b".")?;
                (whole.len() + rest.len() <= DIGITS_MAX).then_some(())?;
                let whole = unpadded(whole)? * 10i64.pow(u32::from(behind));
                signed(negative, whole + number(rest)?)
            }
            Self::Date => {
                let &[a, b, c, d, b'-', e, f, b'-', g, h] = text else {
                    return None;
                };
                let (year, month) = (number(&[a, b, c, d])?, number(&[e, f])?);
                let days = days(year, month, number(&[g, h])?);
                (civil(days) == (year, month, number(&[g, h])?)).then_some(days)
            }
        }
    }

    /// Writes `number` at the front of `room`, and returns the number of bytes.
    ///
    /// # Errors
    /// `Corruption` when the style has no such number.
    #[inline]
    pub(super) fn render(self, number: i64, room: &mut [u8; SPELLING_BYTES_MAX]) -> Result<usize> {
        match self {
            Self::Integer if (0..EIGHT_DIGITS_END).contains(&number) => {
                Ok(unpadded_digits(number as u32, room))
            }
            Self::Decimal(2) if (0..100 * EIGHT_DIGITS_END).contains(&number) => {
                let magnitude = number as u64;
                let (whole, rest) = (magnitude / 100, magnitude % 100);
                let point = unpadded_digits(whole as u32, room);
                let pair = PAIRS.get(rest as usize).copied();
                let [tens, ones] = pair.expect("a remainder of 100 has two digits");
                let behind = room.get_mut(point..point + 3);
                let behind = behind.expect("a spelling fits its room");
                behind.copy_from_slice(&[b'.', tens, ones]);
                Ok(point + 3)
            }
            Self::Date => {
                if !DAYS.contains(&number) {
                    return Err(Error::corruption("a date outside the years 0 to 9999"));
                }
                let (year, month, day) = civil(number);
                // YYYYMMDD, the first digit lowest; the dashes go between.
                let text = eight_digits((year * 10_000 + month * 100 + day) as u32) | ZEROS;
                let front = (text & 0xFFFF_FFFF)
                    | u64::from(b'-') << 32
                    | (text >> 32 & 0xFFFF) << 40
                    | u64::from(b'-') << 56;
                if let [front_room @ .., _, _] = &mut room[..10] {
                    front_room.copy_from_slice(&front.to_le_bytes());
                }
                room[8..10].copy_from_slice(&((text >> 48) as u16).to_le_bytes());
                Ok(10)
            }
            _ => self.render_long(number, room),
        }
    }

    /// As [`Style::render`], of any number but a date.
    #[inline(never)]
    fn render_long(self, number: i64, room: &mut [u8; SPELLING_BYTES_MAX]) -> Result<usize> {
        let magnitude = number.unsigned_abs();
        let negative = usize::from(number < 0);
        room[0] = b'-';
        match self {
            Self::Integer | Self::Date => {
                let len = negative + decimal_len(magnitude);
                digits(room, negative, len, magnitude);
                Ok(len)
            }
            Self::Padded(width) => {
                if number < 0 {
                    return Err(Error::corruption("a negative number where none can be"));
                }
                let len = usize::from(width).max(decimal_len(magnitude));
                digits(room, 0, len, magnitude);
                Ok(len)
            }
            Self::Decimal(behind) => {
                let behind = usize::from(behind);
                let unit = 10u64.pow(behind as u32);
                let (whole, rest) = (magnitude / unit, magnitude % unit);
                let point = negative + decimal_len(whole);
                digits(room, negative, point, whole);
                *room.get_mut(point).expect("a spelling fits its room") = b'.';
                digits(room, point + 1, point + 1 + behind, rest);
                Ok(point + 1 + behind)
            }
        }
    }
}

/// Above the numbers of at most eight digits.
const EIGHT_DIGITS_END: i64 = 100_000_000;
/// The digit zero in each byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The eight digits of a number below [`EIGHT_DIGITS_END`], the first in the lowest byte.
///
/// All are split at once: fours into pairs, pairs into digits, each by a multiplication that divides all
/// lanes of the word.
#[inline]
fn eight_digits(number: u32) -> u64 {
    let fours = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let pairs = hundreds + ((fours - hundreds * 100) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000F_000F_000F_000F;
    tens + ((pairs - tens * 10) << 8)
}

/// Writes a number below [`EIGHT_DIGITS_END`] without zeros in front, and returns the number of its
/// digits.
#[inline]
fn unpadded_digits(number: u32, room: &mut [u8; SPELLING_BYTES_MAX]) -> usize {
    let digits = eight_digits(number);
    let zeros = (digits.trailing_zeros() / 8).min(7);
    let text = (digits >> (8 * zeros)) | ZEROS;
    room[..8].copy_from_slice(&text.to_le_bytes());
    8 - zeros as usize
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    }
}

/// A negative zero would be written as zero.
fn signed(negative: bool, magnitude: i64) -> Option<i64> {
    match (negative, magnitude) {
        (true, 0) => None,
        (true, _) => Some(-magnitude),
        (false, _) => Some(magnitude),
    }
}

fn unpadded(digits: &[u8]) -> Option<i64> {
    if digits.len() > 1 && digits.first() == Some(&b'0') {
        return None;
    }
    number(digits)
}

fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    digits.iter().try_fold(0, |number, &byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + i64::from(byte - b'0'))
    })
}

/// Decimal digits of a number.
#[inline]
fn decimal_len(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// The two digits of each number below a hundred.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Writes the last digits of `number` to `room[from..to]`.
#[inline]
fn digits(room: &mut [u8], from: usize, to: usize, mut number: u64) {
    let Some(room) = room.get_mut(from..to) else {
        return;
    };
    let mut pairs = room.rchunks_exact_mut(2);
    for two in &mut pairs {
        let pair = PAIRS.get((number % 100) as usize);
        two.copy_from_slice(pair.unwrap_or(b"00"));
        number /= 100;
    }
    if let [first] = pairs.into_remainder() {
        *first = b'0' + (number % 10) as u8;
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, counted in years that begin in March so
/// that leap days come last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_SHIFT
}

/// Undoes [`days`]: year, month, day. Requires: not before the year -400, nor some ten thousand years after
/// the last of [`DAYS`].
///
/// As days in a row of whole centuries, of years that begin in March, and of months, each found by a
/// multiplication in place of a division (Neri and Schneider, *Euclidean affine functions and their
/// application to calendar algorithms*, 2023).
#[inline]
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    // An era later, so that nothing is negative.
    let quarters = 4 * (days + EPOCH_SHIFT + ERA_DAYS) as u32 + 3;
    let (century, of_century) = (quarters / 146_097, quarters % 146_097 / 4);
    let years = u64::from(4 * of_century + 3) * 2_939_745;
    let of_year = years as u32 / 2_939_745 / 4;
    let months = 2_141 * of_year + 197_913;
    let (month, day) = (months >> 16, (months & 0xFFFF) / 2_141 + 1);
    // January and February are the thirteenth and fourteenth month of the year before.
    let is_next = of_year >= 306;
    let year = 100 * i64::from(century) + (years >> 32) as i64 - 400 + i64::from(is_next);
    let month = if is_next { month - 12 } else { month };
    (year, i64::from(month), i64::from(day))
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::rng::Rng;

    fn rendered(style: Style, number: i64) -> Vec<u8> {
        let mut room = [0; SPELLING_BYTES_MAX];
        let len = style.render(number, &mut room).expect("in range");
        room[..len].to_vec()
    }

    #[test]
    fn numbers_are_written_as_they_were_read() {
        let cases: [(Style, &str, i64); 12] = [
            (Style::Integer, "0", 0),
            (Style::Integer, "-17", -17),
            (
                Style::Integer,
                "999999999999999999",
                999_999_999_999_999_999,
            ),
            (Style::Padded(4), "0017", 17),
            (Style::Padded(2), "99", 99),
            (Style::Decimal(2), "-0.05", -5),
            (Style::Decimal(2), "64140.45", 6_414_045),
            (Style::Decimal(1), "0.0", 0),
            (Style::Date, "1970-01-01", 0),
            (Style::Date, "1996-02-29", 9555),
            (Style::Date, "0000-01-01", -719_528),
            (Style::Date, "9999-12-31", 2_932_896),
        ];
        for (style, text, number) in cases {
            assert_eq!(style.parse(text.as_bytes()), Some(number), "{text}");
            assert_eq!(rendered(style, number), text.as_bytes());
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        let cases = [
            (Style::Integer, "007 -0 +1 1.0  1e3 1000000000000000000 -"),
            (Style::Padded(3), "17 0017 -17 a17"),
            (Style::Decimal(2), "1.5 1.555 .50 00.50 -0.00 1,50 1.5a"),
            (
                Style::Date,
                "1995-02-29 1995-13-01 1995-00-10 1995-1-01 1995/01/01",
            ),
        ];
        for (style, texts) in cases {
            for text in texts.split(' ') {
                assert_eq!(style.parse(text.as_bytes()), None, "{style:?} {text}");
            }
        }
    }

    #[test]
    fn every_number_can_be_written() {
        let mut rng = Rng::new(7);
        let styles = [
            Style::Integer,
            Style::Padded(18),
            Style::Decimal(17),
            Style::Decimal(1),
        ];
        for round in 0..3000 {
            let number = match round {
                0 => i64::MIN,
                1 => i64::MAX,
                _ => rng.next_u64() as i64 >> rng.below(64),
            };
            for style in styles {
                let padded = matches!(style, Style::Padded(_));
                let number = if padded { number & i64::MAX } else { number };
                let text = rendered(style, number);
                assert!(style.parse(&text).is_none_or(|back| back == number));
            }
        }
        for day in (*DAYS.start()..=*DAYS.end()).step_by(211) {
            assert_eq!(Style::Date.parse(&rendered(Style::Date, day)), Some(day));
        }
        let mut room = [0; SPELLING_BYTES_MAX];
        assert!(Style::Date.render(*DAYS.end() + 1, &mut room).is_err());
    }

    #[test]
    fn days_follow_one_another() {
        let (mut year, mut month, mut day) = civil(*DAYS.start());
        assert_eq!((year, month, day), (0, 1, 1));
        for at in *DAYS.start() + 1..=*DAYS.end() + 400 {
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + i64::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, day) if day == last => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
            assert_eq!(civil(at), (year, month, day), "{at}");
        }
    }

    #[test]
    fn short_numbers_are_written_as_long_ones() {
        let mut rng = Rng::new(9);
        for round in 0..20_000 {
            let number = match round {
                0..1000 => round,
                1000..1010 => EIGHT_DIGITS_END - 5 + round - 1000,
                _ => (rng.next_u64() >> (30 + rng.below(34))) as i64,
            };
            for style in [Style::Integer, Style::Decimal(2)] {
                let (mut short, mut long) = ([0; SPELLING_BYTES_MAX], [0; SPELLING_BYTES_MAX]);
                let len = style.render(number, &mut short).expect("any number");
                assert_eq!(style.render_long(number, &mut long).expect("too"), len);
                assert_eq!(short[..len], long[..len], "{number}");
            }
        }
    }
}
