//! The content of a field.

use drumlin_base::rng::Rng;

/// Appends `len` random printable bytes, by YCSB's recipe: six from each draw, of 32, 64 or 96 letters
/// in turn.
pub(crate) fn append_random(len: usize, rng: &mut Rng, out: &mut Vec<u8>) {
    const STEPS: [(u32, u32); 6] = [(0, 31), (5, 63), (10, 95), (15, 31), (20, 63), (25, 95)];
    let mut left = len;
    while left > 0 {
        let bits = (rng.next_u64() >> 32) as u32;
        for (shift, mask) in STEPS.iter().take(left) {
            out.push(((bits >> shift) & mask) as u8 + b' ');
        }
        left = left.saturating_sub(STEPS.len());
    }
}

/// Appends the value that `field` of the record `key` has under `dataintegrity`: key, field and then
/// the hash of all that came before, again and again.
pub(crate) fn append_fixed(key: &[u8], field: &[u8], len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(key);
    out.push(b':');
    out.extend_from_slice(field);
    while out.len() - start < len {
        out.push(b':');
        let so_far = java_hash(out.get(start..).unwrap_or_default());
        out.extend_from_slice(so_far.to_string().as_bytes());
    }
    out.truncate(start + len);
}

/// Java's hash of a string.
fn java_hash(text: &[u8]) -> i32 {
    text.iter().fold(0i32, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(i32::from(*byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_are_printable_and_of_the_length_asked_for() {
        let mut rng = Rng::new(1);
        for len in 0..40 {
            let mut out = b"x".to_vec();
            append_random(len, &mut rng, &mut out);
            assert_eq!(out.len(), len + 1);
            assert!(out.iter().all(|byte| (32..128).contains(byte)));
        }
    }

    #[test]
    fn fixed_values_follow_from_key_and_field() {
        assert_eq!(java_hash(b"hello"), 99_162_322);
        let mut out = Vec::new();
        append_fixed(b"user1", b"field0", 30, &mut out);
        let first = java_hash(b"user1:field0:");
        let mut expected = format!("user1:field0:{first}:");
        let second = java_hash(expected.as_bytes());
        expected.push_str(&second.to_string());
        assert_eq!(out, expected.as_bytes()[..30]);
        out.clear();
        append_fixed(b"user1", b"field0", 3, &mut out);
        assert_eq!(out, b"use");
    }
}
