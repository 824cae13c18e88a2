//! In-memory sources for the tests of everything that walks internal keys.

use drumlin_base::key::compare_internal;
use drumlin_base::rng::Rng;
use drumlin_base::{Error, InternalIterator, KeyOrder, Result};

/// Short keys that collide often, some of them long enough to share their first eight bytes.
pub(crate) fn random_user_key(rng: &mut Rng) -> Vec<u8> {
    let mut key = match rng.below(3) {
        0 => b"commonprefix".to_vec(),
        _ => Vec::new(),
    };
    key.extend((0..1 + rng.below(2)).map(|_| b'a' + rng.below(5) as u8));
    key
}

/// A cursor over a sorted vector.
#[derive(Debug)]
pub(crate) struct VecSource {
    order: KeyOrder,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    at: Option<usize>,
}

impl VecSource {
    /// Requires: `entries` ascend by internal key.
    pub(crate) fn new(order: KeyOrder, entries: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        Self {
            order,
            entries,
            at: None,
        }
    }
}

impl InternalIterator for VecSource {
    fn valid(&self) -> bool {
        self.at.is_some()
    }
    fn seek_to_first(&mut self) {
        self.at = (!self.entries.is_empty()).then_some(0);
    }
    fn seek_to_last(&mut self) {
        self.at = self.entries.len().checked_sub(1);
    }
    fn seek(&mut self, target: &[u8]) {
        let order = &self.order;
        self.at = self
            .entries
            .iter()
            .position(|(key, _)| compare_internal(order, key, target).is_ge());
    }
    fn seek_for_prev(&mut self, target: &[u8]) {
        let order = &self.order;
        self.at = self
            .entries
            .iter()
            .rposition(|(key, _)| compare_internal(order, key, target).is_le());
    }
    fn next(&mut self) {
        let next = self.at.expect("next needs a valid cursor") + 1;
        self.at = (next < self.entries.len()).then_some(next);
    }
    fn prev(&mut self) {
        self.at = self.at.expect("prev needs a valid cursor").checked_sub(1);
    }
    fn key(&self) -> &[u8] {
        &self.entries[self.at.expect("key needs a valid cursor")].0
    }
    fn value(&self) -> &[u8] {
        &self.entries[self.at.expect("value needs a valid cursor")].1
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
}

/// A source that fails when it would step onto its `fails_at`th entry from the front.
#[derive(Debug)]
pub(crate) struct FailingSource {
    inner: VecSource,
    fails_at: Option<usize>,
    failed: bool,
}

impl FailingSource {
    pub(crate) fn new(inner: VecSource, fails_at: Option<usize>) -> Self {
        Self {
            inner,
            fails_at,
            failed: false,
        }
    }

    fn check(&mut self) {
        self.failed = self.fails_at.is_some() && self.inner.at == self.fails_at;
    }
}

impl InternalIterator for FailingSource {
    fn valid(&self) -> bool {
        !self.failed && self.inner.valid()
    }
    fn seek_to_first(&mut self) {
        self.inner.seek_to_first();
        self.check();
    }
    fn seek_to_last(&mut self) {
        self.inner.seek_to_last();
        self.check();
    }
    fn seek(&mut self, target: &[u8]) {
        self.inner.seek(target);
        self.check();
    }
    fn seek_for_prev(&mut self, target: &[u8]) {
        self.inner.seek_for_prev(target);
        self.check();
    }
    fn next(&mut self) {
        self.inner.next();
        self.check();
    }
    fn prev(&mut self) {
        self.inner.prev();
        self.check();
    }
    fn key(&self) -> &[u8] {
        self.inner.key()
    }
    fn value(&self) -> &[u8] {
        self.inner.value()
    }
    fn status(&self) -> Result<()> {
        if self.failed {
            Err(Error::corruption("entry chosen to fail"))
        } else {
            Ok(())
        }
    }
}
