//! Numbers for people.

use std::io::IsTerminal;
use std::sync::LazyLock;

use drumlin_base::calendar::Utc;

/// Whether a person reads standard output.
static HAS_READER: LazyLock<bool> = LazyLock::new(|| std::io::stdout().is_terminal());

/// A count: with thousands separated on a terminal, without for programs that read the output.
pub(crate) fn count(number: u64) -> String {
    match *HAS_READER {
        true => grouped(number),
        false => number.to_string(),
    }
}

/// A count with thousands separated: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in decimal units with three digits: `1.23 GB`, `615 B`.
pub(crate) fn bytes(number: u64) -> String {
    let mut size = number as f64;
    for unit in ["B", "kB", "MB", "GB", "TB"] {
        if size < 999.5 {
            let decimals = match size {
                _ if unit == "B" || size >= 99.95 => 0,
                size if size >= 9.995 => 1,
                _ => 2,
            };
            return format!("{size:.decimals$} {unit}");
        }
        size /= 1000.0;
    }
    format!("{size:.2} PB")
}

/// A moment as UTC: `2026-11-24 16:20:05`.
pub(crate) fn moment(unix_seconds: u64) -> String {
    let at = Utc::of(unix_seconds);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        at.year, at.month, at.day, at.hour, at.minute, at.second
    )
}

/// The rate a second of `amount` in `seconds`.
pub(crate) fn rate(amount: u64, seconds: f64) -> u64 {
    (amount as f64 / seconds.max(1e-9)) as u64
}

/// A number of bytes as a user writes it: `4096`, `64k`, `1.5GB`, `2GiB`, `1e6`. `k` and `kB` are 1000,
/// `KiB` 1024, in any case.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(end_of_number(text));
    let scale: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(format!("'{unit}' is no unit; use k, M, G, KiB, MiB or GiB")),
    };
    if let Ok(whole) = number.trim().parse::<u64>() {
        return whole
            .checked_mul(scale)
            .ok_or_else(|| "the size is too large".to_owned());
    }
    match number.trim().parse::<f64>() {
        Ok(size) if size >= 0.0 && size * (scale as f64) < 1e18 => Ok((size * scale as f64) as u64),
        _ => Err(format!(
            "'{text}' is no size; write 4096, 64k, 1.5GB or 2GiB"
        )),
    }
}

/// Where the unit begins behind a number, which may have an exponent: an `e` before a digit.
fn end_of_number(text: &str) -> usize {
    let mut letters = text.char_indices();
    let unit = letters.find(|(at, letter)| {
        let rest = text.get(at + 1..).unwrap_or_default();
        let is_exponent =
            matches!(letter, 'e' | 'E') && rest.starts_with(|c: char| c.is_ascii_digit());
        letter.is_ascii_alphabetic() && !is_exponent
    });
    unit.map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, size) in [
            ("0", 0),
            ("4096", 4096),
            ("64k", 64_000),
            ("1.5GB", 1_500_000_000),
            ("2GiB", 2 << 30),
            ("512MiB", 512 << 20),
            ("4KB", 4000),
            ("1e6", 1_000_000),
            ("2.5E3", 2500),
            ("1e3k", 1_000_000),
        ] {
            assert_eq!(parse_bytes(text), Ok(size), "{text}");
        }
        for text in [
            "",
            "k",
            "-1",
            "5 apples",
            "1e",
            "1ee6",
            "1e30GB",
            "99999999999999999999",
        ] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        assert_eq!(bytes(615), "615 B");
        assert_eq!(bytes(1_234_567_890), "1.23 GB");
        assert_eq!(bytes(999_999), "1.00 MB");
        assert_eq!(bytes(45_600_000), "45.6 MB");
    }

    #[test]
    fn moments_are_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_700_000_000, "2023-11-14 22:13:20"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(moment(seconds), text);
        }
    }

    #[test]
    fn counts_have_separated_thousands() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
