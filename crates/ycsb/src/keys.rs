//! Keys: a number's hash behind a word.

/// FNV-1a's constants for 64 bits (Fowler, Noll, Vo).
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 1_099_511_628_211;

/// YCSB's hash: FNV over the eight bytes of `number`, lowest first, without its sign.
pub fn hash(number: u64) -> u64 {
    let mut hash = OFFSET_BASIS;
    for byte in number.to_le_bytes() {
        hash ^= u64::from(byte);
        hash = hash.wrapping_mul(PRIME);
    }
    hash.cast_signed().unsigned_abs()
}

/// How numbers become keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyShape {
    /// Keys in the order of their numbers (`insertorder=ordered`) instead of hashed.
    pub is_ordered: bool,
    /// Fewest digits (`zeropadding`).
    pub digits: usize,
}

impl KeyShape {
    /// Replaces `out` by the key of `number`: `user` and decimal digits.
    pub fn write(&self, number: u64, out: &mut Vec<u8>) {
        let number = if self.is_ordered {
            number
        } else {
            hash(number)
        };
        let mut digits = [b'0'; 20];
        let (mut at, mut rest) = (digits.len(), number);
        while rest > 0 || at == digits.len() {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        out.clear();
        out.extend_from_slice(b"user");
        for _ in digits.len() - at..self.digits {
            out.push(b'0');
        }
        out.extend_from_slice(&digits[at..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ycsbs() {
        let key = |is_ordered, digits, number| {
            let mut out = b"rest".to_vec();
            KeyShape { is_ordered, digits }.write(number, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        // The first keys of any YCSB load.
        assert_eq!(key(false, 1, 0), "user6284781860667377211");
        assert_eq!(key(false, 1, 1), "user8517097267634966620");
        assert_eq!(key(false, 1, 2), "user1820151046732198393");
        assert_eq!(key(true, 1, 0), "user0");
        assert_eq!(key(true, 8, 1234), "user00001234");
        assert_eq!(key(true, 2, 1234), "user1234");
    }
}
