//! The compaction filters: both look at keys and numbers in memory only.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use drumlin::{CompactionFilter, CompactionFilterFactory, FilterDecision, FilterJob, SeqNo};
use parking_lot::Mutex;

use crate::keys::split_u48;
use crate::live::Live;
use crate::record::expiry_of;

/// Where the store puts what filters ask, once it is open: filters are made before.
pub(crate) type Later<T> = Arc<std::sync::OnceLock<Arc<T>>>;

/// Drops the entries of dead collections, a seek for each collection.
pub(crate) struct DeadCollections {
    pub(crate) live: Later<Live>,
}

impl CompactionFilterFactory for DeadCollections {
    fn create(self: Arc<Self>, job: &FilterJob) -> Option<Arc<dyn CompactionFilter>> {
        let live = Arc::clone(self.live.get()?);
        live.bury(job.durable_seqno).then(|| {
            let last_held = AtomicU64::new(u64::MAX);
            Arc::new(DeadFilter { live, last_held }) as Arc<dyn CompactionFilter>
        })
    }
}

struct DeadFilter {
    live: Arc<Live>,
    /// The collection asked for last that was alive: its neighbours are of the same one.
    last_held: AtomicU64,
}

impl CompactionFilter for DeadFilter {
    fn name(&self) -> &'static str {
        "drumlin.redis.dead-collections"
    }

    fn reads_blobs(&self) -> bool {
        false
    }

    fn filter(&self, _level: u32, key: &[u8], _value: &[u8]) -> FilterDecision {
        let Some((slot, rest)) = key.split_first_chunk::<2>() else {
            return FilterDecision::Keep;
        };
        let Some((cid, _)) = split_u48(rest) else {
            return FilterDecision::Keep;
        };
        // Pairs with itself only: a stale number costs a look-up.
        if self.last_held.load(Ordering::Relaxed) == cid {
            return FilterDecision::Keep;
        }
        if self.live.holds(cid) {
            self.last_held.store(cid, Ordering::Relaxed);
            return FilterDecision::Keep;
        }
        let prefix = u64::from(u16::from_be_bytes(*slot)) << 48 | cid;
        match prefix.checked_add(1) {
            Some(next) => FilterDecision::RemoveUntil(next.to_be_bytes().to_vec()),
            None => FilterDecision::Remove,
        }
    }
}

/// The moment up to which whatever expires has expired for good: nothing that expires at or before it is ever shown again,
/// whatever the clock says later. It is written to the database before it counts.
#[derive(Default)]
pub(crate) struct Watermark {
    /// Written, and by which sequence number; not known to be durable yet.
    written: Mutex<VecDeque<(SeqNo, u64)>>,
    durable_ms: AtomicU64,
    newest_ms: AtomicU64,
}

impl Watermark {
    /// The watermark of a database that was opened.
    pub(crate) fn opened(&self, ms: u64) {
        self.newest_ms.store(ms, Ordering::Relaxed);
    }

    /// The newest one.
    pub(crate) fn newest_ms(&self) -> u64 {
        self.newest_ms.load(Ordering::Relaxed)
    }

    /// Notes that the batch with `seqno` has written `ms`.
    pub(crate) fn wrote(&self, seqno: SeqNo, ms: u64) {
        self.newest_ms.fetch_max(ms, Ordering::Relaxed);
        self.written.lock().push_back((seqno, ms));
    }

    fn durable_ms(&self, durable: SeqNo) -> u64 {
        let mut written = self.written.lock();
        while let Some((seqno, ms)) = written.front().copied()
            && (seqno <= durable || drumlin_base::bug!("redis-expiry-counts-before-a-sync"))
        {
            self.durable_ms.fetch_max(ms, Ordering::Relaxed);
            written.pop_front();
        }
        self.durable_ms.load(Ordering::Relaxed)
    }
}

/// Drops whole values that have expired. Collections are deleted by [`crate::Keyspace::expire_due`], as their
/// deaths must be told.
pub(crate) struct Expired {
    pub(crate) watermark: Arc<Watermark>,
}

impl CompactionFilterFactory for Expired {
    fn create(self: Arc<Self>, job: &FilterJob) -> Option<Arc<dyn CompactionFilter>> {
        let until_ms = self.watermark.durable_ms(job.durable_seqno);
        (until_ms > 0).then(|| Arc::new(ExpiredFilter { until_ms }) as Arc<dyn CompactionFilter>)
    }
}

struct ExpiredFilter {
    until_ms: u64,
}

impl CompactionFilter for ExpiredFilter {
    fn name(&self) -> &'static str {
        "drumlin.redis.expired"
    }

    fn reads_blobs(&self) -> bool {
        false
    }

    fn filter(&self, _level: u32, _key: &[u8], value: &[u8]) -> FilterDecision {
        match expiry_of(value) {
            Some((ms, false)) if ms <= self.until_ms => FilterDecision::Remove,
            _ => FilterDecision::Keep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::LiveChange;
    use crate::record::NewRecord;

    fn job(durable: SeqNo) -> FilterJob {
        FilterJob::new(1, vec![0], 1, durable)
    }

    fn element(cid: u64) -> Vec<u8> {
        [&[0, 9][..], &crate::keys::u48(cid), b"e"].concat()
    }

    /// Goal: elements go only once the deletion of their collection is durable. Method: a death at 10, jobs at 9
    /// and 10.
    #[test]
    fn the_dead_are_dropped_once_their_death_is_durable() {
        let live = Arc::new(Live::new(5, [(0, 1, 11), (0, 2, 22)].into_iter()));
        let later = Later::default();
        assert!(later.set(Arc::clone(&live)).is_ok());
        let factory = Arc::new(DeadCollections { live: later });
        let dead = LiveChange::Died {
            db: 0,
            cid: 1,
            hash: 11,
        };
        live.apply(&[dead], 10);
        assert!(!live.may_own(0, 11) && live.may_own(0, 22));

        let early = Arc::clone(&factory).create(&job(9)).expect("a filter");
        assert_eq!(early.filter(1, &element(1), b""), FilterDecision::Keep);
        let filter = Arc::clone(&factory).create(&job(10)).expect("a filter");
        let until = [&[0, 9][..], &crate::keys::u48(2)].concat();
        assert_eq!(
            filter.filter(1, &element(1), b""),
            FilterDecision::RemoveUntil(until)
        );
        assert_eq!(filter.filter(1, &element(2), b""), FilterDecision::Keep);
        assert_eq!(filter.filter(1, &element(2), b""), FilterDecision::Keep);
        assert!(
            factory.create(&job(4)).is_none(),
            "older than what was opened"
        );
    }

    /// Goal: an expired value goes only once the watermark over it is durable. Method: marks at 7 and 8.
    #[test]
    fn values_go_once_the_watermark_over_them_is_durable() {
        let watermark = Arc::new(Watermark::default());
        let factory = Arc::new(Expired {
            watermark: Arc::clone(&watermark),
        });
        watermark.wrote(7, 1_000);
        watermark.wrote(8, 2_000);
        assert!(Arc::clone(&factory).create(&job(6)).is_none());
        let filter = factory.create(&job(7)).expect("a filter");
        let says = |value: NewRecord| filter.filter(1, b"k", &value.into_bytes());
        assert_eq!(
            says(NewRecord::string(b"v", Some(1_000))),
            FilterDecision::Remove
        );
        assert_eq!(
            says(NewRecord::string(b"v", Some(1_001))),
            FilterDecision::Keep
        );
        assert_eq!(says(NewRecord::string(b"v", None)), FilterDecision::Keep);
        let place = crate::record::Collection { slot: 0, cid: 1 };
        let collection = NewRecord::new(crate::Kind::Set, Some(place), Some(1), 0);
        assert_eq!(says(collection), FilterDecision::Keep);
    }
}
