//! Doubles as Redis 7.0 reads and prints them.

/// Digits of a mantissa that are always enough.
const DIGITS: i32 = 17;

/// A double as Redis prints it: C's `%.17g`.
pub(crate) fn print(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // 17 digits, rounded once: what is left is where the point goes.
    let text = format!("{number:.16e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return trimmed(&format!("{number:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let size = exponent.unsigned_abs();
    format!("{}e{sign}{size:02}", trimmed(mantissa))
}

/// A double, as `strtod` reads one that is all of `text`. No NaN, nothing that does not fit, no space.
pub(crate) fn parse(text: &[u8]) -> Option<f64> {
    let (number, fits) = read(text)?;
    fits.then_some(number)
}

/// The end of a range of scores: what does not fit is infinite or 0, space before it is passed over, and nothing is 0.
pub(crate) fn parse_bound(text: &[u8]) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = text.iter().take_while(|byte| is_space(byte)).count();
    read(text.get(start..)?).map(|(number, _)| number)
}

/// The number, and whether it is one that a double can hold.
fn read(text: &[u8]) -> Option<(f64, bool)> {
    let text = std::str::from_utf8(text).ok()?;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.starts_with(['+', '-']) {
        return None;
    }
    let lower = unsigned.to_ascii_lowercase();
    let size = match lower.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits)?,
        None => lower.parse::<f64>().ok()?,
    };
    let is_named = lower.starts_with('i');
    let is_zero = lower
        .split('e')
        .next()
        .is_some_and(|mantissa| !mantissa.contains(|digit| ('1'..='9').contains(&digit)));
    let fits =
        (size.is_finite() || is_named) && (size != 0.0 || is_zero || lower.starts_with("0x"));
    let number = if text.starts_with('-') { -size } else { size };
    (!size.is_nan()).then_some((number, fits))
}

/// What follows `0x`: digits with at most one point, and a power of two.
fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, power) = text.split_once('p').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return None;
    }
    let power: i32 = power.parse().ok()?;
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let shift = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    Some(value * 2f64.powi(power.saturating_sub(shift)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `printf("%.17g")` prints.
    #[test]
    fn doubles_are_printed_with_seventeen_digits() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (3.1, "3.1000000000000001"),
            (0.1, "0.10000000000000001"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (1e-4, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (-1.5e300, "-1.5000000000000001e+300"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (99_999_999_999_999_990.0, "99999999999999984"),
        ] {
            assert_eq!(print(number), text);
        }
    }

    #[test]
    fn doubles_are_read_as_strtod_reads_them() {
        for (text, number) in [
            ("1", 1.0),
            ("+1.50", 1.5),
            ("-.5e1", -5.0),
            ("5.", 5.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0x1F", 31.0),
            ("-0x1.8p1", -3.0),
            ("0e999", 0.0),
            ("4e-324", 5e-324),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(number), "{text}");
        }
        for text in [
            "", " 1", "1 ", "nan", "-nan", "1e999", "1e-999", "x", ".", "+-1", "0x", "1e", "0xg",
            "infin",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_bound(b"1e999"), Some(f64::INFINITY));
        assert_eq!(parse_bound(b" 1"), Some(1.0));
        assert_eq!(parse_bound(b""), Some(0.0));
        assert_eq!(parse_bound(b" "), None);
        assert_eq!(parse_bound(b"nan"), None);
    }
}
