//! Spans of keys that walks found dead, so that the next walk goes past them instead of over them.
//!
//! A span says: who reads at its sequence number or later, of the store in its state, finds no key from its begin up to its
//! end. The state is the super version's number: whatever changes tables or memtables makes a new one, and all that changes
//! within one is this memtable. So a walk notes what it goes over, and whoever adds anything but a deletion cuts the span.
//!
//! ```text
//! walker   opens a note at the end of a span          writer   adds its entry to the tree
//!          fence                                               fence
//!          walks on from there                                 are there spans? cut them at the key
//!          settles: the span ends at the first
//!          key that is there, or at a cut before it
//! ```
//!
//! Invariant: of a writer and a walker, the walker meets the entry in the tree, or the writer the note. A walker that meets
//! an entry too new for it settles there. A writer cuts before its number is published: so who reads at that number or
//! later finds the span already cut.
//!
//! Any thread. One mutex, which writers take only while there are spans, once for a batch.

use std::sync::PoisonError;

use drumlin_base::{KeyOrder, SeqNo};

use crate::sync::{AtomicBool, Mutex, Ordering, fence};

/// Spans kept at once; the oldest gives way.
const SPANS_MAX: usize = 8;

/// A longer key begins and ends no span.
const KEY_BYTES_MAX: usize = 4 << 10;

/// What a walk sees.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// The number of its super version, in which the memtable is the one that takes writes.
    pub state: u64,
    /// Its sequence number.
    pub seqno: SeqNo,
}

/// What a walk notes from a key on.
#[derive(Debug)]
pub struct Note {
    span: u64,
    /// Where to walk on.
    pub from: Vec<u8>,
}

/// Invariant: `begin` is at or before `end`.
#[derive(Debug)]
struct Span {
    id: u64,
    sight: Sight,
    begin: Vec<u8>,
    /// `None`: there are no more keys.
    end: Option<Vec<u8>>,
    note: Option<OpenNote>,
}

#[derive(Debug)]
struct OpenNote {
    seqno: SeqNo,
    /// The smallest key that was written behind the end of the span since.
    cut: Option<Vec<u8>>,
}

impl Span {
    fn may_serve(&self, sight: Sight) -> bool {
        self.sight.state == sight.state && self.sight.seqno <= sight.seqno
    }

    fn begins_by(&self, order: &KeyOrder, key: &[u8]) -> bool {
        order.compare(&self.begin, key).is_le()
    }

    fn ends_by(&self, order: &KeyOrder, key: &[u8]) -> bool {
        let end = self.end.as_deref();
        end.is_some_and(|end| order.compare(end, key).is_le())
    }

    /// After `key`, which it begins by, was written.
    fn cut(&mut self, order: &KeyOrder, key: &[u8]) {
        if !self.ends_by(order, key) {
            self.end = Some(key.to_vec());
        } else if let Some(note) = &mut self.note {
            let cut = note.cut.as_deref();
            if cut.is_none_or(|cut| order.compare(key, cut).is_lt()) {
                note.cut = Some(key.to_vec());
            }
        }
    }
}

#[derive(Debug, Default)]
struct Spans {
    list: Vec<Span>,
    last_id: u64,
}

/// See the module.
#[derive(Debug)]
pub struct DeadSpans {
    are_there: AtomicBool,
    spans: Mutex<Spans>,
}

impl DeadSpans {
    pub(crate) fn new() -> Self {
        Self {
            are_there: AtomicBool::new(false),
            spans: Mutex::new(Spans::default()),
        }
    }

    /// The end of the span over `key`: no key from there up to it. `Some(None)` where no key follows at all, `None` where
    /// nothing is known.
    pub fn end_over(&self, order: &KeyOrder, key: &[u8], sight: Sight) -> Option<Option<Vec<u8>>> {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |span: &&Span| {
            span.may_serve(sight) && span.begins_by(order, key) && !span.ends_by(order, key)
        };
        let span = spans.list.iter().find(is_over)?;
        Some(span.end.clone())
    }

    /// Begins to note what a walk goes over: behind the span that ends at `after`, if there is one, else from `key` on. The
    /// walk goes back to [`Note::from`] first. `None` where another walk notes there, or the key is too long.
    pub fn open(
        &self,
        order: &KeyOrder,
        (key, after): (&[u8], Option<&[u8]>),
        sight: Sight,
    ) -> Option<Note> {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let Spans { list, last_id } = &mut *spans;
        let is_in_the_way = |span: &Span| {
            span.sight.state > sight.state || span.note.is_some() && span.begins_by(order, key)
        };
        if key.len() > KEY_BYTES_MAX || list.iter().any(is_in_the_way) {
            return None;
        }
        let ends_at = |span: &Span, after: &[u8]| {
            let end = span.end.as_deref();
            end.is_some_and(|end| order.compare(end, after).is_eq())
        };
        let mut known = list.iter().position(|span| {
            span.may_serve(sight) && after.is_some_and(|after| ends_at(span, after))
        });
        if known.is_none() {
            list.retain(|span| span.sight.state == sight.state);
            if list.len() == SPANS_MAX {
                list.remove(0);
            }
            *last_id += 1;
            known = Some(list.len());
            list.push(Span {
                id: *last_id,
                sight,
                begin: key.to_vec(),
                end: Some(key.to_vec()),
                note: None,
            });
        }
        let span = list.get_mut(known?)?;
        span.note = Some(OpenNote {
            seqno: sight.seqno,
            cut: None,
        });
        let note = Note {
            span: span.id,
            from: span.end.clone()?,
        };
        // Relaxed: the fence orders it, see `cut`.
        self.are_there.store(true, Ordering::Relaxed);
        drop(spans);
        // Pairs with the fence in `cut`.
        fence(Ordering::SeqCst);
        Some(note)
    }

    /// Ends a note: `found` is the first key from its begin on that is there or may be, `None` where there is none.
    pub fn settle(&self, order: &KeyOrder, note: &Note, found: Option<&[u8]>) {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(span) = spans.list.iter_mut().find(|span| span.id == note.span) else {
            return; // It gave way to others.
        };
        let Some(open) = span.note.take() else {
            return;
        };
        let is_uncut = span.end.as_deref() == Some(&note.from[..]);
        let cut = open
            .cut
            .filter(|_| !drumlin_base::bug!("dead-spans-uncut-behind"));
        let end = match (found, cut.as_deref()) {
            (Some(found), Some(cut)) if order.compare(cut, found).is_lt() => Some(cut),
            (None, cut) => cut,
            (found, _) => found,
        };
        if is_uncut && end.is_none_or(|end| end.len() <= KEY_BYTES_MAX) {
            span.end = end.map(<[u8]>::to_vec);
            span.sight.seqno = span.sight.seqno.max(open.seqno);
        }
    }

    /// Gives a note up: nothing is known of what the walk met.
    pub fn give_up(&self, note: &Note) {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(span) = spans.list.iter_mut().find(|span| span.id == note.span) {
            span.note = None;
        }
    }

    /// Cuts the spans at `keys`, to which something else than deletions was added: by whoever did, before it is published.
    pub fn cut<'a>(&self, order: &KeyOrder, keys: impl Iterator<Item = &'a [u8]>) {
        // Pairs with the fence in `open`: the walk meets the entries that were added before, or this the span.
        fence(Ordering::SeqCst);
        if !self.are_there.load(Ordering::Relaxed) || drumlin_base::bug!("dead-spans-uncut") {
            return;
        }
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            let over = spans.list.iter_mut();
            for span in over.filter(|span| span.begins_by(order, key)) {
                span.cut(order, key);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ORDER: KeyOrder = KeyOrder::Bytewise;

    fn sight(state: u64, seqno: SeqNo) -> Sight {
        Sight { state, seqno }
    }

    fn noted(spans: &DeadSpans, from: &[u8], end: Option<&[u8]>, sight: Sight) {
        let note = spans.open(&ORDER, (from, None), sight).expect("is free");
        assert_eq!(note.from, from);
        spans.settle(&ORDER, &note, end);
    }

    #[test]
    fn a_span_serves_later_readers_of_its_state() {
        let spans = DeadSpans::new();
        noted(&spans, b"c", Some(b"m"), sight(3, 10));
        let end = |key: &[u8], state, seqno| spans.end_over(&ORDER, key, sight(state, seqno));
        assert_eq!(end(b"c", 3, 10), Some(Some(b"m".to_vec())));
        assert_eq!(end(b"l", 3, 11), Some(Some(b"m".to_vec())));
        assert_eq!(end(b"m", 3, 11), None, "its end is not in it");
        assert_eq!(end(b"b", 3, 11), None);
        assert_eq!(end(b"d", 3, 9), None, "an earlier reader may see keys");
        assert_eq!(end(b"d", 4, 11), None, "the tables are others");
        noted(&spans, b"x", None, sight(4, 12));
        assert_eq!(end(b"z", 4, 12), Some(None));
        assert_eq!(end(b"d", 3, 11), None, "what is of a former state goes");
        assert!(spans.open(&ORDER, (b"a", None), sight(3, 20)).is_none());
    }

    #[test]
    fn writers_cut_what_is_noted_and_what_is_being_noted() {
        let spans = DeadSpans::new();
        let end = |key: &[u8]| spans.end_over(&ORDER, key, sight(1, 99));
        noted(&spans, b"c", Some(b"m"), sight(1, 10));
        spans.cut(&ORDER, [&b"b"[..], b"m", b"z"].into_iter());
        assert_eq!(
            end(b"c"),
            Some(Some(b"m".to_vec())),
            "nothing in it was written"
        );
        spans.cut(&ORDER, [&b"h"[..], b"k"].into_iter());
        assert_eq!(end(b"c"), Some(Some(b"h".to_vec())));
        // Further, from its end on.
        let open = |key: &[u8], after: &[u8]| spans.open(&ORDER, (key, Some(after)), sight(1, 12));
        let note = open(b"n", b"h").expect("is free");
        assert_eq!(note.from, b"h");
        assert!(open(b"n", b"h").is_none(), "another walk notes there");
        spans.cut(&ORDER, [&b"w"[..], b"q"].into_iter());
        spans.settle(&ORDER, &note, Some(b"t"));
        assert_eq!(end(b"c"), Some(Some(b"q".to_vec())));
        assert_eq!(
            spans.end_over(&ORDER, b"c", sight(1, 11)),
            None,
            "it is of 12 now"
        );
        // What is cut below while it is noted stays cut.
        let note = open(b"r", b"q").expect("is free");
        spans.cut(&ORDER, [&b"d"[..]].into_iter());
        spans.settle(&ORDER, &note, None);
        assert_eq!(end(b"c"), Some(Some(b"d".to_vec())));
        assert_eq!(end(b"e"), None);
        let note = open(b"c", b"d").expect("is free");
        spans.give_up(&note);
        assert_eq!(end(b"c"), Some(Some(b"d".to_vec())));
    }

    #[test]
    fn the_oldest_spans_give_way_and_long_keys_make_none() {
        let spans = DeadSpans::new();
        for begin in 0..20u8 {
            noted(&spans, &[begin, 0], Some(&[begin, 9]), sight(1, 1));
        }
        let known = |begin: u8| spans.end_over(&ORDER, &[begin, 1], sight(1, 1)).is_some();
        assert_eq!((0..20).filter(|begin| known(*begin)).count(), SPANS_MAX);
        assert!(known(19) && !known(0));
        let long = vec![b'x'; KEY_BYTES_MAX + 1];
        assert!(spans.open(&ORDER, (&long, None), sight(1, 1)).is_none());
        let note = spans
            .open(&ORDER, (b"x", None), sight(1, 1))
            .expect("is free");
        spans.settle(&ORDER, &note, Some(&long));
        assert_eq!(spans.end_over(&ORDER, b"x", sight(1, 1)), None);
    }
}
