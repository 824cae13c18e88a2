//! Numbers as texts, by Redis's rule of which texts are numbers.

/// Longest text of an `i64`, with its sign.
const INTEGER_TEXT_BYTES_MAX: usize = 20;

/// The integer that `text` is the one usual form of: no sign but a minus, no leading zero, no space.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > INTEGER_TEXT_BYTES_MAX {
        return None;
    }
    let (digits, negative) = match text.strip_prefix(b"-") {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let (first, rest) = digits.split_first()?;
    if *first == b'0' {
        return (rest.is_empty() && !negative).then_some(0);
    }
    // Below zero, since the least has no positive twin.
    let below_zero = digits.iter().try_fold(0i64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_sub(digit)
    })?;
    if negative {
        Some(below_zero)
    } else {
        below_zero.checked_neg()
    }
}

/// A score from its text: decimal, `inf`, `-inf`. None for anything else, a NaN too.
pub(crate) fn score(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse::<f64>().ok().filter(|score| !score.is_nan())
}

/// The text of a score that reads back as the same bits.
pub(crate) fn score_text(score: f64) -> String {
    let magnitude = score.abs();
    if score == 0.0 || score.is_infinite() || (1e-5..1e17).contains(&magnitude) {
        format!("{score}")
    } else {
        format!("{score:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usual_form_of_an_integer_is_one() {
        for number in [0, 1, -1, 127, -4096, i64::MAX, i64::MIN] {
            assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }
        let others = [
            "",
            "-",
            "-0",
            "00",
            "01",
            "-01",
            "+1",
            " 1",
            "1 ",
            "1a",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "123456789012345678901",
        ];
        for text in others {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn scores_keep_their_bits_through_their_text() {
        for number in [
            0.0,
            -0.0,
            3.1,
            -1e300,
            5e-324,
            f64::MAX,
            f64::INFINITY,
            1e17,
            0.1 + 0.2,
        ] {
            let text = score_text(number);
            let back = score(text.as_bytes()).unwrap();
            assert_eq!(back.to_bits(), number.to_bits(), "{text}");
        }
        assert_eq!(score(b"nan"), None);
        assert_eq!(score(b""), None);
    }
}
