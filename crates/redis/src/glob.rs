//! Redis's patterns: `*`, `?`, `[a-z]`, `[^x]` and `\`.

/// Stars that Redis goes through before it takes a pattern for one that matches nothing.
const STARS_MAX: usize = 1_000;

/// Whether `text` matches `pattern`. Costs the product of their lengths at most: on a mismatch only the last star
/// takes one more byte.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from, mut stars) = (0, 0, 0);
    // Where to go on after a mismatch: behind the last star, which then takes the text up to here.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            if at == pattern.len() {
                return true;
            }
            if pattern.get(at) != Some(&b'*') {
                stars += 1;
            }
            if stars > STARS_MAX {
                return false;
            }
            star = Some((at, from));
            continue;
        }
        let Some(byte) = text.get(from) else {
            return at == pattern.len();
        };
        match one(pattern, at, *byte) {
            Some(next) => (at, from) = (next, from + 1),
            None => match &mut star {
                None => return false,
                Some((behind, taken)) => {
                    *taken += 1;
                    (at, from) = (*behind, *taken);
                }
            },
        }
    }
}

/// The position behind the part of the pattern at `at` that stands for one byte, if it takes `byte`.
fn one(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match *pattern.get(at)? {
        b'?' => Some(at + 1),
        b'[' => class(pattern, at + 1, byte),
        b'\\' if at + 1 < pattern.len() => (pattern.get(at + 1) == Some(&byte)).then_some(at + 2),
        literal => (literal == byte).then_some(at + 1),
    }
}

/// A class whose inside begins at `at`. One without an end goes to the end of the pattern, as in Redis.
fn class(pattern: &[u8], mut at: usize, byte: u8) -> Option<usize> {
    let negated = pattern.get(at) == Some(&b'^');
    at += usize::from(negated);
    let mut found = false;
    loop {
        match *pattern.get(at..).unwrap_or(&[]) {
            [] => break,
            [b'\\', escaped, ..] => {
                found |= escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [low, b'-', high, ..] => {
                found |= (low.min(high)..=low.max(high)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= literal == byte;
                at += 1;
            }
        }
    }
    (found != negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_redis() {
        let cases = [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("h?llo", "hello", true),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("a\\*c", "a*c", true),
            ("a\\*c", "abc", false),
            ("*.txt", "a.txt.txt", true),
            ("a**b", "ab", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            ("[a", "a", true),
            ("a\\", "a\\", true),
            (
                "*a*a*a*a*a*a*a*b",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                false,
            ),
        ];
        for (pattern, text, wanted) in cases {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                wanted,
                "{pattern} {text}"
            );
        }
    }
}
