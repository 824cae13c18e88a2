//! Numbers with a fraction as Redis counts with them: in the x87 format of 80 bits, written with up to 17 decimals.
//!
//! `INCRBYFLOAT` and `HINCRBYFLOAT` add in C's `long double`, which on x86 has 64 bits of mantissa. With an `f64`, or the
//! 128 bits of other machines, sums would print differently.

use rustc_apfloat::Float as _;
use rustc_apfloat::ieee::X87DoubleExtended;

/// Longest text that is read.
const TEXT_BYTES_MAX: usize = 5 * 1024;
/// Decimals that are written.
const DECIMALS: u32 = 17;
/// The exponent of a number whose mantissa is an integer of 64 bits.
const EXPONENT_BIAS: i32 = 16_383 + 63;

/// A number of 80 bits. Not NaN; it may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongDouble(X87DoubleExtended);

impl LongDouble {
    /// Zero.
    pub const ZERO: Self = Self(X87DoubleExtended::ZERO);

    /// The number that `text` is, as C's `strtold` reads it with nothing before and behind. None where it is beyond the
    /// largest number or so small that it would be 0.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= TEXT_BYTES_MAX {
            return None;
        }
        let lower = text.to_ascii_lowercase();
        let (digits, is_negative) = match lower.split_first()? {
            (b'-', rest) => (rest, true),
            (b'+', rest) => (rest, false),
            _ => (lower.as_slice(), false),
        };
        let number = match digits {
            b"inf" | b"infinity" => X87DoubleExtended::INFINITY,
            _ => finite(digits)?,
        };
        Some(Self(if is_negative { -number } else { number }))
    }

    /// Whether it is no infinity.
    pub fn is_finite(self) -> bool {
        self.0.is_finite()
    }

    /// The sum, if it is a finite number.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let sum = (self.0 + other.0).value;
        sum.is_finite().then_some(Self(sum))
    }

    /// The text that Redis shows: 17 decimals, rounded, without the zeros at the end; no exponent.
    pub fn text(self) -> String {
        let bits = self.0.to_bits();
        let is_negative = bits >> 79 & 1 == 1;
        let exponent = (bits >> 64 & 0x7fff) as i32;
        let mantissa = bits as u64;
        if !self.is_finite() {
            return if is_negative { "-inf" } else { "inf" }.to_owned();
        }
        // The smallest numbers have the exponent of those above them.
        let text = match exponent.max(1) - EXPONENT_BIAS {
            shift if shift >= 0 => integer_text(mantissa, shift.unsigned_abs()),
            shift => fraction_text(mantissa, shift.unsigned_abs()),
        };
        match is_negative && text != "0" {
            true => format!("-{text}"),
            false => text,
        }
    }
}

/// A finite number without a sign, in lower case.
fn finite(text: &[u8]) -> Option<X87DoubleExtended> {
    let (digits, is_hexadecimal) = match text.strip_prefix(b"0x") {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let mark = if is_hexadecimal { b'p' } else { b'e' };
    let at = digits.iter().position(|byte| *byte == mark);
    let (mantissa, exponent) = match at {
        Some(at) => (digits.get(..at)?, digits.get(at + 1..)?),
        None => (digits, &b"0"[..]),
    };
    let is_digit = |byte: &&u8| match is_hexadecimal {
        true => byte.is_ascii_hexdigit(),
        false => byte.is_ascii_digit(),
    };
    let count = mantissa.iter().filter(is_digit).count();
    let dots = mantissa.iter().filter(|byte| **byte == b'.').count();
    if count == 0 || dots > 1 || count + dots != mantissa.len() {
        return None;
    }
    let (sign, power) = match exponent.split_first()? {
        (b'-', rest) => ("-", rest),
        (b'+', rest) => ("", rest),
        _ => ("", exponent),
    };
    if power.is_empty() || !power.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let is_zero = mantissa.iter().all(|byte| matches!(byte, b'0' | b'.'));
    if is_zero {
        return Some(X87DoubleExtended::ZERO);
    }
    // Any text is shorter than 10,000 digits, so that this power and all higher ones are out of range.
    let power: u32 = std::str::from_utf8(power).ok()?.parse().unwrap_or(99_999);
    let power = power.min(99_999);
    let mantissa = std::str::from_utf8(mantissa).ok()?;
    let text = match is_hexadecimal {
        true => format!("0x{mantissa}p{sign}{power}"),
        false => format!("{mantissa}e{sign}{power}"),
    };
    let number = text.parse::<X87DoubleExtended>().ok()?;
    (number.is_finite() && !number.is_zero()).then_some(number)
}

/// `mantissa` times 2 to the power `shift`.
fn integer_text(mantissa: u64, shift: u32) -> String {
    const BASE: u64 = 1_000_000_000;
    // Groups of nine digits, the lowest first.
    let mut groups = Vec::new();
    let mut rest = mantissa;
    while rest > 0 {
        groups.push(rest % BASE);
        rest /= BASE;
    }
    let mut left = shift;
    while left > 0 {
        let step = left.min(32);
        let mut carry = 0;
        for group in &mut groups {
            let sum = (*group << step) + carry;
            *group = sum % BASE;
            carry = sum / BASE;
        }
        while carry > 0 {
            groups.push(carry % BASE);
            carry /= BASE;
        }
        left -= step;
    }
    let mut text = groups.pop().unwrap_or(0).to_string();
    for group in groups.iter().rev() {
        text.push_str(&format!("{group:09}"));
    }
    text
}

/// `mantissa` divided by 2 to the power `shift`, which is not 0.
fn fraction_text(mantissa: u64, shift: u32) -> String {
    let one = 10u128.pow(DECIMALS);
    // Below 2^121: a shift of more bits leaves less than a half.
    let scaled = u128::from(mantissa) * one;
    let rounded = match shift {
        1..=121 => {
            let (whole, rest) = (scaled >> shift, scaled & ((1 << shift) - 1));
            let half = 1 << (shift - 1);
            let is_up = rest > half || (rest == half && whole & 1 == 1);
            whole + u128::from(is_up)
        }
        _ => 0,
    };
    let decimals = format!("{:017}", rounded % one);
    let text = format!("{}.{decimals}", rounded / one);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> LongDouble {
        LongDouble::parse(text.as_bytes()).expect("a number")
    }

    /// Goal: sums print as Redis prints them. Method: replies of `INCRBYFLOAT` of Redis 7.0.15 on x86-64.
    #[test]
    fn sums_are_those_of_redis() {
        for (one, other, sum) in SUMS {
            let found = number(one).checked_add(number(other)).map(LongDouble::text);
            assert_eq!(found.as_deref(), Some(*sum), "{one} + {other}");
        }
    }

    const SUMS: &[(&str, &str, &str)] = &[
        ("3", "1.1", "4.1"),
        ("0.1", "0.2", "0.3"),
        ("1.5", "-1.5", "0"),
        ("-1", "0.5", "-0.5"),
        ("10.50", "0.1", "10.6"),
        ("5.0e3", "2.0e2", "5200"),
        ("1e17", "0.3", "100000000000000000.296875"),
        ("1e20", "1", "100000000000000000000"),
        ("3.0e-18", "0", "0"),
        ("5e-18", "0", "0"),
        ("1.5e-17", "0", "0.00000000000000002"),
        ("2.5e-17", "0", "0.00000000000000002"),
        ("-1e-20", "0", "0"),
        ("-0", "0", "0"),
        ("0x1p3", "0X.8", "8.5"),
        ("0x1.8", "1", "2.5"),
        (
            "123456789012345678901234567890",
            "0.5",
            "123456789012345678899921813504",
        ),
        ("17179869184", "17179869184.25", "34359738368.25"),
        ("-0.000000000000000005", "0", "0"),
        ("1e-4940", "1", "1"),
        (".5", "5.", "5.5"),
        ("1E2", "+7", "107"),
        ("0.3", "-0.1", "0.2"),
        ("922337203685477580.7", "0.05", "922337203685477580.75"),
        ("18446744073709551615", "1", "18446744073709551616"),
        ("18446744073709551616", "1", "18446744073709551616"),
        ("9.99999999999999999", "0", "9.99999999999999999"),
        ("0.99999999999999999999", "0", "1"),
    ];

    #[test]
    fn infinities_are_read_and_not_summed() {
        let infinity = number("-INF");
        assert!(!infinity.is_finite());
        assert_eq!(infinity.text(), "-inf");
        assert_eq!(infinity.checked_add(number("1")), None);
        assert_eq!(number("1.1e4932").checked_add(number("1.1e4932")), None);
    }

    #[test]
    fn other_texts_are_no_numbers() {
        let others = [
            "",
            " 1",
            "1 ",
            "+",
            "-",
            ".",
            "e5",
            "1e",
            "1e+",
            "1..2",
            "1.2.3",
            "--1",
            "nan",
            "0x",
            "0x.p1",
            "1p3",
            "infinit",
            "1e4933",
            "-1e99999999999999",
            "1e-4970",
            "1_0",
            "0x1p20000",
        ];
        for text in others {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(LongDouble::parse(&[b'1'; TEXT_BYTES_MAX]), None);
    }
}
