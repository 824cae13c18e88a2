//! Key indexes: damage is refused or gives wrong answers within bounds, and an index that passes its own
//! check answers for each of its keys.

use drumlin_succinct::KeyIndex;

use super::expect::or_blamed;
use crate::input::Input;

/// Steps of a walk: an index of few bytes may have many keys.
const STEPS_MAX: usize = 2000;

/// Keys of a block, and bytes of a key that are not from its block's own: a template's texts and digits.
pub(super) const BLOCK_KEYS: usize = 64;
const TEMPLATE_BYTES_MAX: usize = 8 << 10;

/// Opening an index prints the first key of every block: all together they must stay in proportion to the
/// input, at any claimed length.
pub(super) fn check_first_keys(index: &KeyIndex, given: usize) {
    let (mut key, mut total, mut blocks) = (Vec::new(), 0, 0);
    for rank in (0..index.len()).step_by(BLOCK_KEYS) {
        key.clear();
        total += usize::from(index.key(rank, &mut key)) * key.len();
        blocks += 1;
    }
    // Texts take at least a bit a letter.
    assert!(total <= 8 * given + blocks * TEMPLATE_BYTES_MAX, "{total}");
}

/// The length of the tail in two bytes, the tail, and the blocks.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let len = usize::from(input.byte()) | usize::from(input.byte()) << 8;
    let tail = input.take(len).to_vec();
    let blocks = input.rest().to_vec();
    let given = blocks.len();
    let Some(index) = or_blamed(KeyIndex::open(blocks, &tail)) else {
        return;
    };
    assert!(index.memory() > 0);
    check_first_keys(&index, given);
    let sound = index.len() <= STEPS_MAX as u64 && or_blamed(index.verify()).is_some();
    let mut keys = Vec::new();
    let mut cursor = index.cursor();
    cursor.go_to(0);
    while cursor.valid() && keys.len() < STEPS_MAX {
        keys.push((cursor.rank(), cursor.key().to_vec()));
        cursor.next();
    }
    cursor.go_to(index.len().saturating_sub(1));
    for _ in 0..STEPS_MAX {
        if cursor.valid() {
            cursor.prev();
        }
    }
    keys.push((index.len(), vec![0xFF; 40]));
    for (rank, key) in keys.iter().step_by(13) {
        let found = index.get(key);
        let place = index.seek(key);
        assert!(found.is_none_or(|found| found < index.len()));
        assert!(place <= index.len());
        if sound && *rank < index.len() {
            assert_eq!((found, place), (Some(*rank), *rank));
        }
    }
    let views: Vec<&[u8]> = keys.iter().map(|(_, key)| key.as_slice()).collect();
    let mut ranks = Vec::new();
    index.get_batch(&views, &mut ranks);
    assert_eq!(ranks.len(), views.len());
}
