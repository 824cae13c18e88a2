//! Passwords: their SHA-256 is kept, and nothing else.

use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The SHA-256 of a password.
pub(crate) type Hash = [u8; 32];

/// The hash of a password.
pub(super) fn hash(password: &[u8]) -> Hash {
    Sha256::digest(password).into()
}

/// The hash that `text` has in lower-case hexadecimal digits.
pub(super) fn parse(text: &[u8]) -> Option<Hash> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut hash = Hash::default();
    if text.len() != 2 * hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(text.chunks(2)) {
        let [high, low] = *pair else {
            return None;
        };
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(hash)
}

/// Bytes in lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the password is one of those hashed, in a time that does not depend on which, nor on how much of one is right.
pub(super) fn is_among(password: &[u8], hashes: &[Hash]) -> bool {
    let given = hash(password);
    let found = hashes
        .iter()
        .fold(Choice::from(0), |found, hash| found | hash.ct_eq(&given));
    found.into()
}

#[cfg(test)]
mod tests {
    use super::{hash, hex, is_among, parse};

    /// Goal: hashes are those of Redis's files. Method: a known one, there and back, and texts that are none.
    #[test]
    fn hashes_are_lower_case_digits() {
        let text = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";
        assert_eq!(hex(&hash(b"alice")), text);
        assert_eq!(parse(text.as_bytes()), Some(hash(b"alice")));
        assert_eq!(parse(text.to_uppercase().as_bytes()), None);
        assert_eq!(parse(&text.as_bytes()[1..]), None);
        assert!(is_among(b"alice", &[hash(b"bob"), hash(b"alice")]));
        assert!(!is_among(b"alice", &[hash(b"bob")]));
        assert!(!is_among(b"alice", &[]));
    }
}
