//! The texts of integers.

/// Longest text of an `i64`, with its sign.
const INTEGER_TEXT_BYTES_MAX: usize = 20;
/// Longest head of a reply: its kind, an integer and the line's end.
const HEAD_BYTES_MAX: usize = 1 + INTEGER_TEXT_BYTES_MAX + 2;

/// The integer that `text` is the one usual form of: no sign but a minus, no leading zero, no space. So Redis reads
/// lengths, counts, and most arguments that are integers.
pub fn integer(text: &[u8]) -> Option<i64> {
    if text.len() > INTEGER_TEXT_BYTES_MAX {
        return None;
    }
    let (digits, negative) = match text.strip_prefix(b"-") {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    if *digits.first()? == b'0' {
        return (digits.len() == 1 && !negative).then_some(0);
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

/// Appends the usual form of `number`.
pub fn push_integer(out: &mut Vec<u8>, number: i64) {
    let mut text = [0; INTEGER_TEXT_BYTES_MAX];
    let start = fill(&mut text, number);
    out.extend_from_slice(text.get(start..).unwrap_or_default());
}

/// Appends `kind`, the number, and a line's end.
pub(crate) fn push_head(out: &mut Vec<u8>, kind: u8, number: i64) {
    out.extend_from_slice(Head::new(kind, number).bytes());
}

/// The first line of a reply: its kind and an integer.
pub(crate) struct Head {
    line: [u8; HEAD_BYTES_MAX],
    start: usize,
}

impl Head {
    pub(crate) fn new(kind: u8, number: i64) -> Self {
        let mut line = [0; HEAD_BYTES_MAX];
        let mut start = 0;
        if let Some((text, end)) = line.split_last_chunk_mut::<2>() {
            *end = *b"\r\n";
            // `text` has one byte more than the longest number.
            start = fill(text, number).saturating_sub(1);
        }
        if let Some(first) = line.get_mut(start) {
            *first = kind;
        }
        Self { line, start }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.line.get(self.start..).unwrap_or_default()
    }
}

/// Writes `number` at the end of `text`, which has room for the longest, and returns where it begins.
fn fill(text: &mut [u8], number: i64) -> usize {
    let mut start = text.len();
    let mut left = number.unsigned_abs();
    let mut slots = text.iter_mut().rev();
    for slot in slots.by_ref() {
        *slot = b'0' + (left % 10) as u8;
        start -= 1;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if number < 0
        && let Some(slot) = slots.next()
    {
        *slot = b'-';
        start -= 1;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [i64; 12] = [
        0,
        1,
        -1,
        9,
        10,
        127,
        -4096,
        999_999,
        1_000_000,
        i64::MAX,
        i64::MIN,
        i64::MIN + 1,
    ];

    #[test]
    fn integers_are_written_as_they_are_read() {
        for number in NUMBERS {
            let mut text = Vec::new();
            push_integer(&mut text, number);
            assert_eq!(text, number.to_string().as_bytes());
            assert_eq!(integer(&text), Some(number));
            let mut head = b"before".to_vec();
            push_head(&mut head, b':', number);
            assert_eq!(head, format!("before:{number}\r\n").as_bytes());
        }
    }

    #[test]
    fn only_the_usual_form_of_an_integer_is_one() {
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
}
