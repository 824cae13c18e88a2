//! Index blocks: the entries of an accepted one ascend and are within the file, and it is searched
//! like a list.

use drumlin_base::KeyOrder;
use drumlin_base::key::{split_internal, tag_seqno};
use drumlin_table::probe::{IndexProbe, IndexShape};

use super::expect::or_blamed;
use crate::input::Input;

/// The file the index claims to describe.
const FILE_BYTES: u64 = 1 << 24;

/// The first byte says how the index is written and ordered.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let bits = input.byte();
    let shape = IndexShape {
        user_keys: bits & 1 != 0,
        delta_values: bits & 2 != 0,
        first_keys: bits & 4 != 0,
    };
    let order = match bits & 8 {
        0 => KeyOrder::Bytewise,
        _ => KeyOrder::ReverseBytewise,
    };
    let block = input.rest();
    let decoded = IndexProbe::decode(block.to_vec(), shape, &order, FILE_BYTES);
    let Some(index) = or_blamed(decoded) else {
        return;
    };
    let mut separators = Vec::new();
    while let Some((handle, separator)) = index.entry(separators.len()) {
        assert!(handle.check_within(FILE_BYTES).is_ok());
        separators.push(separator.to_vec());
    }
    let mut keys: Vec<Vec<u8>> = vec![Vec::new(), block.iter().copied().take(9).collect()];
    for separator in separators.iter().take(32) {
        let user_key = match shape.user_keys {
            true => separator.as_slice(),
            false => drumlin_base::key::user_key(separator),
        };
        keys.push(user_key.to_vec());
        keys.push([user_key, &[0]].concat());
        keys.push(
            user_key
                .split_last()
                .map_or(&[][..], |(_, most)| most)
                .to_vec(),
        );
    }
    for key in keys {
        for seqno in [0, 5, drumlin_base::SEQNO_MAX] {
            let naive = separators.iter().position(|separator| {
                let Some((user_key, tag)) = split_internal(separator).filter(|_| !shape.user_keys)
                else {
                    return order.compare(separator, &key).is_ge();
                };
                // Kinds do not count: only the newest of equal numbers could matter.
                let after = order.compare(user_key, &key);
                after.is_gt() || (after.is_eq() && tag_seqno(tag) <= seqno)
            });
            let found = index.find(&key, seqno);
            assert_eq!(
                found,
                naive.unwrap_or(separators.len()),
                "{key:?} at {seqno}"
            );
        }
    }
}
