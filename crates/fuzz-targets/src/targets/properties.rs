//! Table properties: accepted ones are the same after they are written and read again.

use drumlin_base::Result;
use drumlin_base::coding::Reader;
use drumlin_table::TableProperties;

use super::expect::or_blamed;

/// The input is pairs of length-prefixed names and values.
pub(crate) fn run(data: &[u8]) {
    let mut input = Reader::new(data);
    let pairs = std::iter::from_fn(|| Some((input.slice()?, input.slice()?)));
    let Some(mut properties) = or_blamed(TableProperties::decode(pairs.map(Ok))) else {
        return;
    };
    let _ = or_blamed(properties.index_type());
    let _ = (
        properties.whole_key_filtering(),
        properties.prefix_filtering(),
    );
    let _ = properties.global_seqno();
    // Writers must know this size, foreign bytes may leave it out.
    properties.raw_key_size = properties.raw_key_size.max(1);
    let written = properties.encode();
    let pairs = written
        .iter()
        .map(|pair| -> Result<_> { Ok((&pair.0, &pair.1)) });
    let again = TableProperties::decode(pairs).expect("what was written is accepted");
    assert_eq!(again.encode(), written, "writing is a fixed point");
    assert!(properties.resident_bytes() >= properties.user.len());
}
