//! Write batches: every accepted one can be walked whole, and written again gives the same bytes.

use drumlin::WriteBatch;
use drumlin::internals::batch::BatchView;

use super::expect::or_blamed;

pub(crate) fn run(data: &[u8]) {
    let view = or_blamed(BatchView::new(data));
    let batch = or_blamed(WriteBatch::from_bytes(data.to_vec()));
    let view = view.filter(|view| !view.is_two_phase()); // The target `two_phase` has those.
    assert_eq!(view.is_some(), batch.is_some(), "one of them is wrong");
    let (Some(view), Some(mut batch)) = (view, batch) else {
        return;
    };
    assert_eq!(batch.bytes(), data);
    let of_batch = batch.iter().filter(Result::is_ok).count();
    let of_view = view.iter().filter(Result::is_ok).count();
    assert_eq!(of_batch, of_view);
    assert_eq!(of_view, view.iter().count(), "an accepted batch decodes");
    assert_eq!(of_view, view.count() as usize, "the count was checked");
    let logged: usize = view.log_data().map(<[u8]>::len).sum();
    assert!(logged <= data.len());
    let count = batch.count();
    let copy = batch.clone();
    if batch.append(&copy).is_ok() {
        assert_eq!(batch.count(), count * 2);
        assert_eq!(batch.iter().filter(Result::is_ok).count(), 2 * of_batch);
    }
}
