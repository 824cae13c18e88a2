//! Documents as text: a record that is spelled comes back, and text that spells nothing is refused.

use drumlin_succinct::documents::{Spelled, TEXT_BYTES_MORE, TEXT_FACTOR, read};

use super::expect::or_blamed;

/// The input is a record, and a text.
pub(crate) fn run(data: &[u8]) {
    let mut spelled = Spelled::default();
    if spelled.spell(data) {
        let text = spelled.text();
        assert!(text.len() <= data.len() * TEXT_FACTOR + TEXT_BYTES_MORE);
        let mut back = Vec::new();
        read(text, data.len(), &mut back).expect("what was spelled can be read");
        assert_eq!(back, data);
        if let Some(literals) = spelled.shape(64) {
            assert!(literals.concat().len() <= text.len());
        }
    }
    let (mut record, bytes_max) = (b"kept".to_vec(), data.len() * 4);
    let outcome = or_blamed(read(data, bytes_max, &mut record));
    assert!(record.starts_with(b"kept") && record.len() - 4 <= bytes_max);
    if outcome.is_some() && spelled.spell(&record[4..]) {
        let mut again = Vec::new();
        read(spelled.text(), usize::MAX, &mut again).expect("what was spelled can be read");
        assert_eq!(again, record[4..]);
    }
}
