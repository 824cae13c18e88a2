//! Decompression: no codec may panic or exceed its limit on damage, and each undoes its own work.

use drumlin_table::compress::{Framing, PreparedDict, compress, decompress};
use drumlin_table::{Codec, Compression};

use super::expect::or_blamed;
use crate::input::Input;

/// Far more than any input here can rightly hold.
const LIMIT: usize = 1 << 20;
const FRAMINGS: [Framing; 3] = [Framing::SizePrefix, Framing::LevelDb, Framing::FixedPrefix];

/// Codec, framing and dictionary length from the first three bytes; the rest is the dictionary,
/// then the block.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let type_byte = input.below(10);
    let framing = FRAMINGS[usize::from(input.below(3))];
    let dict_len = usize::from(input.byte());
    let dict = input.take(dict_len).to_vec();
    let dict = (!dict.is_empty()).then(|| PreparedDict::for_reading(dict));
    let block = input.rest();
    if let Some(out) = or_blamed(decompress(type_byte, block, dict.as_ref(), framing, LIMIT)) {
        assert!(out.len() <= LIMIT);
    }
    round_trip(
        Codec::ALL[usize::from(type_byte) % Codec::ALL.len()],
        framing,
        dict,
        block,
    );
}

fn round_trip(codec: Codec, framing: Framing, dict: Option<PreparedDict>, block: &[u8]) {
    let dict = dict.filter(|_| codec.takes_dictionary() && framing == Framing::SizePrefix);
    let dict =
        dict.map(|dict| PreparedDict::for_writing(dict.raw().to_vec(), &Compression::new(codec)));
    let mut out = b"before".to_vec();
    let used = compress(codec, None, dict.as_ref(), block, framing, &mut out);
    let id = used
        .id(framing.style())
        .expect("a codec its files can hold");
    let stored = out.strip_prefix(b"before").expect("compress appends");
    assert!(stored.len() <= block.len());
    let dict = dict.filter(|_| used != Codec::None);
    let limit = LIMIT.max(block.len());
    let back = decompress(id, stored, dict.as_ref(), framing, limit);
    assert_eq!(back.expect("what was compressed decompresses"), block);
}
