//! Whole key indexes of many small blocks, whose lengths add up as they must: the keys that blocks claim
//! stay in proportion to their bytes.

use drumlin_base::coding::{put_varint32, put_varint64};
use drumlin_succinct::KeyIndex;

use super::expect::or_blamed;
use super::key_index::{BLOCK_KEYS, check_first_keys};
use crate::input::Input;

/// On disk: bytes of a code of letters, two lengths each; all letters have eight bits.
const LETTERS: [u8; 128] = [0x88; 128];
const BLOCKS_MAX: usize = 4096;
const BLOCK_BYTES_MAX: u8 = 64;

/// The input: two bytes with the number of blocks; the length of a template, or 0 for texts alone, and the
/// template; the number of keys the last block lacks; then blocks with their lengths before them, again and
/// again.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let count = usize::from(input.byte()) | usize::from(input.byte()) << 8;
    let count = 1 + count % BLOCKS_MAX;
    let len = usize::from(input.byte());
    let template = input.take(len);
    let lacking = u64::from(input.below(BLOCK_KEYS as u8));
    let mut patterns = Vec::new();
    while !input.is_empty() {
        let len = 1 + usize::from(input.below(BLOCK_BYTES_MAX));
        patterns.push(input.take(len));
    }
    patterns.retain(|pattern| !pattern.is_empty());
    if patterns.is_empty() {
        return;
    }
    let mut tail = Vec::new();
    put_varint64(&mut tail, (count * BLOCK_KEYS) as u64 - lacking);
    tail.push(1 + u8::from(!template.is_empty()));
    tail.push(0);
    tail.extend_from_slice(&LETTERS);
    if !template.is_empty() {
        tail.push(1);
        tail.extend_from_slice(template);
    }
    let mut blocks = Vec::new();
    for pattern in patterns.iter().cycle().take(count) {
        put_varint32(&mut tail, pattern.len() as u32);
        blocks.extend_from_slice(pattern);
    }
    let given = blocks.len() + tail.len();
    let Some(index) = or_blamed(KeyIndex::open(blocks, &tail)) else {
        return;
    };
    check_first_keys(&index, given);
    for key in [&b""[..], b"k", &[0xFF; 40]] {
        assert!(index.get(key).is_none_or(|rank| rank < index.len()));
        assert!(index.seek(key) <= index.len());
    }
}
