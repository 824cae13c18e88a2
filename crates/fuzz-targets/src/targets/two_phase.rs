//! Two-phase commit in batches of a log: what is accepted can be walked whole, its sections are plain batches, and nobody
//! takes one of these for a plain batch.

use drumlin::WriteBatch;
use drumlin::internals::batch::{BatchIter, BatchPart, BatchView};

use super::expect::or_blamed;

/// The first byte says where a marker is put between the rest, cut in two, so that few mutations give a section.
pub(crate) fn run(data: &[u8]) {
    look_at(data);
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let Some((header, records)) = rest.split_at_checked(12) else {
        return;
    };
    let tag = 0x0a + first % 3;
    let mut made = header.to_vec();
    if tag == 0x0a {
        made.push(0x09);
    }
    made.extend_from_slice(records);
    made.extend_from_slice(&[tag, 1, b'x']);
    look_at(&made);
}

fn look_at(data: &[u8]) {
    let view = or_blamed(BatchView::new(data));
    let batch = or_blamed(WriteBatch::from_bytes(data.to_vec()));
    let Some(view) = view else {
        assert!(batch.is_none(), "a batch that cannot be walked is taken");
        return;
    };
    assert_eq!(
        batch.is_none(),
        view.is_two_phase(),
        "a step passes for plain"
    );
    let (mut records, mut steps) = (0, 0);
    for part in view.parts() {
        match part.expect("an accepted batch decodes") {
            BatchPart::Record(_) => records += 1,
            BatchPart::Prepared(section) => {
                let inside = BatchIter::new(section.records);
                let sound = inside.filter(Result::is_ok).count();
                assert_eq!(sound, section.count as usize, "a section is a plain batch");
                assert!(section.records.len() + section.name.len() <= data.len());
                records += sound;
                steps += 1;
            }
            BatchPart::LogData(data_inside) => assert!(data_inside.len() < data.len()),
            BatchPart::Commit(name) | BatchPart::Rollback(name) => {
                assert!(name.len() < data.len());
                steps += 1;
            }
        }
    }
    assert_eq!(records, view.count() as usize, "the count was checked");
    assert_eq!(steps > 0, view.is_two_phase());
}
