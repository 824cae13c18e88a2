//! Bytes of a node's page that others come in the place of, and the way back.

use std::ops::Range;

/// Where the number of items stands, in one byte if it is below [`ITEMS_MAX`].
const ITEMS_AT: usize = 1;
/// Pages with as many items, or more, are not changed in place.
pub(super) const ITEMS_MAX: usize = 128;

/// A change of a page. What it took out stands elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) at: usize,
    /// Bytes that were taken out, and that were put in.
    pub(super) taken: usize,
    pub(super) put: usize,
    /// The byte of the number of items before.
    items: u8,
}

/// Puts `new` in the place of the bytes of `range`, which are appended to `taken`; `None` where there are none such.
pub(super) fn exchange(
    page: &mut Vec<u8>,
    range: Range<usize>,
    new: &[u8],
    taken: &mut Vec<u8>,
) -> Option<Exchange> {
    let items = items_byte(page);
    taken.extend_from_slice(page.get(range.clone())?);
    let exchange = Exchange {
        at: range.start,
        taken: range.len(),
        put: new.len(),
        items,
    };
    replace(page, range, new);
    Some(exchange)
}

/// Notes another number of items, which is below [`ITEMS_MAX`].
pub(super) fn set_items(page: &mut [u8], items: usize) {
    debug_assert!(items < ITEMS_MAX, "one byte has it");
    set_items_byte(page, items as u8);
}

/// The byte of the number of items: the first one, if that has more.
pub(super) fn items_byte(page: &[u8]) -> u8 {
    page.get(ITEMS_AT).copied().unwrap_or(0)
}

pub(super) fn set_items_byte(page: &mut [u8], byte: u8) {
    if let Some(place) = page.get_mut(ITEMS_AT) {
        *place = byte;
    }
}

impl Exchange {
    /// Puts the page back to what it was; `taken` is what was taken out.
    pub(super) fn take_back(self, page: &mut Vec<u8>, taken: &[u8]) {
        replace(page, self.at..self.at + self.put, taken);
        set_items_byte(page, self.items);
    }
}

/// As `Vec::splice`, but the bytes behind are moved, and the new ones copied, in one piece each.
pub(super) fn replace(page: &mut Vec<u8>, range: Range<usize>, new: &[u8]) {
    let len = page.len();
    assert!(range.end <= len, "the range was looked at");
    let end = range.start + new.len();
    if end > range.end {
        page.resize(len + end - range.end, 0);
    }
    page.copy_within(range.end..len, end);
    page.truncate(len + end - range.end);
    if let Some(place) = page.get_mut(range.start..end) {
        place.copy_from_slice(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_is_taken_back() {
        let before = b"\x00\x05abcdef".to_vec();
        for range in [2..2, 2..4, 3..8, 8..8] {
            for new in [&b""[..], b"xy", b"longer than that"] {
                let mut page = before.clone();
                let mut wanted = before.clone();
                wanted.splice(range.clone(), new.iter().copied());
                let mut taken = Vec::new();
                let done = exchange(&mut page, range.clone(), new, &mut taken);
                assert_eq!(page, wanted);
                assert_eq!(taken, before[range.clone()]);
                set_items(&mut page, 9);
                done.expect("in the page").take_back(&mut page, &taken);
                assert_eq!(page, before);
            }
        }
        let mut taken = Vec::new();
        assert!(exchange(&mut before.clone(), 7..9, b"", &mut taken).is_none());
    }
}
