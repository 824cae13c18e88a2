//! Keys and values that follow from a seed.

use drumlin_base::rng::Rng;

/// `count` keys with values: keys `key00000000`, `key00000001`, ... in order, values of up to
/// `value_bytes_max` random bytes.
pub fn pairs(seed: u64, count: usize, value_bytes_max: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rng = Rng::new(seed);
    let pair = |index| {
        let len = rng.below(value_bytes_max as u64 + 1) as usize;
        let mut value = vec![0; len];
        rng.fill(&mut value);
        (format!("key{index:08}").into_bytes(), value)
    };
    (0..count).map(pair).collect()
}

/// Up to `bytes_max` bytes that text formats trip over: separators, escapes, control bytes, bytes
/// above ASCII, in between plain letters.
pub fn untidy_bytes(rng: &mut Rng, bytes_max: usize) -> Vec<u8> {
    const UNTIDY: &[u8] = b"\t\n\r\\\0\"' x:0\x7f\x80\xc3\xff|";
    let len = rng.below(bytes_max as u64 + 1) as usize;
    let byte = |_| {
        if rng.one_in(3) {
            let index = rng.below(UNTIDY.len() as u64) as usize;
            UNTIDY.get(index).copied().unwrap_or(b'\\')
        } else {
            b'a' + rng.below(26) as u8
        }
    };
    (0..len).map(byte).collect()
}
