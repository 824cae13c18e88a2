//! A time to live, in the layout of RocksDB's `DBWithTTL`: four bytes behind each value and each merge operand say when it
//! was written. Format page: `docs/format/ttl.md`.
//!
//! ```text
//! write     `WriteBatch::stamped` puts the time behind values and operands
//! read      `Ttl::give` and the iterator take it off, and leave out what is older than the time to live
//! merge     `TtlMerge` leaves out parts that are too old beside a live one; the result has the time of its newest part
//! compact   `TtlFilter` drops values that are too old, and shows the others to the user's filter without their time
//! ```
//!
//! A part is judged by its own time, so it does not matter what a compaction has dropped already. A value that is no value
//! with a time (too short, or with a time that cannot be) is `Corruption` for its reader, and kept by compactions: nothing
//! is lost when a store without times was opened with them.
//!
//! Any thread.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumlin_base::{
    CompactionFilter, CompactionFilterFactory, Error, FilterDecision, FilterJob, MergeOperator,
    PinnedSlice, Result,
};
use drumlin_fs::Clock;

/// Bytes of the time behind a value. On disk: `docs/format/ttl.md`.
pub(crate) const TIME_BYTES: usize = 4;

/// The earliest time behind a value: RocksDB takes an earlier one for damage. On disk: `docs/format/ttl.md`.
pub const EARLIEST: u32 = 1_368_146_402;

/// The latest: RocksDB reads a signed number. On disk: `docs/format/ttl.md`.
pub const LATEST: u32 = i32::MAX as u32;

/// The longest time to live; RocksDB has a signed number of seconds.
pub(crate) const TTL_SECONDS_MAX: u64 = LATEST as u64;

/// Seconds of a time to live: no part of one is cut off. 0 is for ever.
pub(crate) fn whole_seconds(ttl: Duration) -> u64 {
    ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)
}

/// The time to live of one family, and the clock it goes by.
pub struct Ttl {
    seconds: AtomicU64,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ttl({} s)", self.seconds())
    }
}

impl Ttl {
    /// A time to live by `clock`; zero is for ever.
    pub fn new(ttl: Duration, clock: &Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            seconds: AtomicU64::new(whole_seconds(ttl)),
            clock: Arc::clone(clock),
        })
    }

    /// Seconds that values live; 0 is for ever.
    pub(crate) fn seconds(&self) -> u64 {
        // Relaxed: a number by itself.
        self.seconds.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, ttl: Duration) {
        self.seconds.store(whole_seconds(ttl), Ordering::Relaxed);
    }

    /// Seconds since 1970.
    pub fn now(&self) -> u64 {
        self.clock.unix_seconds()
    }

    /// The value in `stored` and when it was written.
    ///
    /// # Errors
    /// `Corruption` where there is no such time behind it.
    pub fn split<'v>(&self, key: &[u8], stored: &'v [u8]) -> Result<(&'v [u8], u32)> {
        let Some((value, time)) = stored.split_last_chunk::<TIME_BYTES>() else {
            return Err(no_time(
                key,
                format_args!("has {} bytes, too few", stored.len()),
            ));
        };
        let written = u32::from_le_bytes(*time);
        match (EARLIEST..=LATEST).contains(&written) {
            true => Ok((value, written)),
            false => Err(no_time(
                key,
                format_args!("ends in {written}, which is none"),
            )),
        }
    }

    /// Whether the time of what was written then is up.
    fn is_expired(&self, written: u32, now: u64) -> bool {
        let seconds = self.seconds();
        // As RocksDB: the last second counts.
        seconds > 0 && u64::from(written) + seconds < now
    }

    /// The value in `stored`; `None` where its time is up.
    ///
    /// # Errors
    /// As [`Ttl::split`].
    pub fn live_part<'v>(
        &self,
        now: u64,
        key: &[u8],
        stored: &'v [u8],
    ) -> Result<Option<&'v [u8]>> {
        let (value, written) = self.split(key, stored)?;
        Ok((!self.is_expired(written, now)).then_some(value))
    }

    /// Makes what is stored under `key` the answer to its reader.
    pub fn give(&self, now: u64, key: &[u8], answer: &mut Result<Option<PinnedSlice>>) {
        let Ok(Some(stored)) = answer else { return };
        match self
            .live_part(now, key, stored)
            .map(|live| live.map(<[u8]>::len))
        {
            Ok(Some(len)) => stored.truncate(len),
            Ok(None) => *answer = Ok(None),
            Err(error) => *answer = Err(error),
        }
    }

    /// The time behind what is written now.
    ///
    /// # Errors
    /// `InvalidArgument` where the clock shows one that cannot be stored.
    pub(crate) fn stamp(&self) -> Result<[u8; TIME_BYTES]> {
        let now = self.now();
        let fits = u32::try_from(now).ok();
        match fits.filter(|now| (EARLIEST..=LATEST).contains(now)) {
            Some(now) => Ok(now.to_le_bytes()),
            None => Err(Error::invalid_argument(format!(
                "the clock shows {now} seconds since 1970, which a family with a time to live cannot store: it takes \
                 {EARLIEST} (in 2013) to {LATEST} (in 2038)"
            ))),
        }
    }

    /// Whether `stored` may well be a value with a time: one that can be, and is not to come.
    pub(crate) fn is_plausible(&self, stored: &[u8]) -> bool {
        /// Clocks of machines may differ by so much.
        const DAY: u64 = 24 * 60 * 60;
        let split = self.split(b"", stored);
        split.is_ok_and(|(_, written)| u64::from(written) <= self.now().saturating_add(DAY))
    }
}

#[cold]
fn no_time(key: &[u8], what: fmt::Arguments<'_>) -> Error {
    Error::corruption(format!(
        "the value of the key \"{}\" {what} for the time that its family has behind values: it is damaged, or was written \
         where the family had no time to live",
        key.escape_ascii()
    ))
}

/// `operator` over values with times, where there are times.
pub fn merge_operator(
    operator: &Option<Arc<dyn MergeOperator>>,
    ttl: Option<&Arc<Ttl>>,
) -> Option<Arc<dyn MergeOperator>> {
    let inner = Arc::clone(operator.as_ref()?);
    Some(match ttl {
        None => inner,
        Some(ttl) => Arc::new(TtlMerge {
            inner,
            ttl: Arc::clone(ttl),
        }),
    })
}

struct TtlMerge {
    inner: Arc<dyn MergeOperator>,
    ttl: Arc<Ttl>,
}

impl TtlMerge {
    /// What the user's operator made of the parts, with the time of the newest.
    fn with_time(mut value: Vec<u8>, written: u32) -> Vec<u8> {
        value.extend_from_slice(&written.to_le_bytes());
        value
    }

    /// Whether a part that was written at a time counts in a value of which the newest part was written at `newest`: the
    /// live ones do. Where none is, all of them: nobody sees the value, unless its time to live becomes longer.
    fn counts(&self, newest: u32) -> impl Fn(u32) -> bool {
        let now = self.ttl.now();
        let none_lives = self.ttl.is_expired(newest, now);
        move |written| none_lives || !self.ttl.is_expired(written, now)
    }
}

impl MergeOperator for TtlMerge {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn options_text(&self) -> String {
        self.inner.options_text()
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let split = |stored| self.ttl.split(key, stored);
        let existing = existing.map(split).transpose()?;
        let operands = operands.iter().copied().map(split);
        let operands: Vec<_> = operands.collect::<Result<_>>()?;
        let times = existing
            .iter()
            .chain(&operands)
            .map(|(_, written)| *written);
        let newest = times.max().unwrap_or(EARLIEST);
        let counts = self.counts(newest);
        let base = existing.filter(|(_, written)| counts(*written));
        let base = base.map(|(value, _)| value);
        let operands = operands.into_iter().filter(|(_, written)| counts(*written));
        let operands: Vec<_> = operands.map(|(value, _)| value).collect();
        let merged = match (base, operands.as_slice()) {
            (Some(base), []) => base.to_vec(),
            (base, operands) => self.inner.full_merge(key, base, operands)?,
        };
        match drumlin_base::bug!("merges-renew-the-time") {
            true => Ok(Self::with_time(merged, self.ttl.now() as u32)),
            false => Ok(Self::with_time(merged, newest)),
        }
    }

    fn partial_merge(&self, key: &[u8], left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
        let (older, older_written) = self.ttl.split(key, left).ok()?;
        let (newer, newer_written) = self.ttl.split(key, right).ok()?;
        let newest = older_written.max(newer_written);
        let counts = self.counts(newest);
        if !counts(older_written) {
            return Some(right.to_vec());
        }
        if !counts(newer_written) {
            return Some(left.to_vec());
        }
        let merged = self.inner.partial_merge(key, older, newer)?;
        Some(Self::with_time(merged, newest))
    }
}

/// `factory` over values with times, where there are times.
pub fn compaction_filter(
    factory: &Option<Arc<dyn CompactionFilterFactory>>,
    ttl: Option<&Arc<Ttl>>,
) -> Option<Arc<dyn CompactionFilterFactory>> {
    match ttl {
        None => factory.clone(),
        Some(ttl) => Some(Arc::new(TtlFilters {
            inner: factory.clone(),
            ttl: Arc::clone(ttl),
        })),
    }
}

struct TtlFilters {
    inner: Option<Arc<dyn CompactionFilterFactory>>,
    ttl: Arc<Ttl>,
}

impl CompactionFilterFactory for TtlFilters {
    fn create(self: Arc<Self>, job: &FilterJob) -> Option<Arc<dyn CompactionFilter>> {
        let inner = self.inner.clone().and_then(|inner| inner.create(job));
        if inner.is_none() && self.ttl.seconds() == 0 {
            return None;
        }
        Some(Arc::new(TtlFilter {
            inner,
            now: self.ttl.now(),
            ttl: Arc::clone(&self.ttl),
        }))
    }
}

struct TtlFilter {
    inner: Option<Arc<dyn CompactionFilter>>,
    ttl: Arc<Ttl>,
    /// When the compaction began.
    now: u64,
}

impl CompactionFilter for TtlFilter {
    fn name(&self) -> &str {
        self.inner
            .as_ref()
            .map_or("TtlCompactionFilter", |inner| inner.name())
    }

    fn reads_blobs(&self) -> bool {
        self.ttl.seconds() > 0 || self.inner.as_ref().is_some_and(|inner| inner.reads_blobs())
    }

    fn filter(&self, level: u32, key: &[u8], value: &[u8]) -> FilterDecision {
        let Ok((part, written)) = self.ttl.split(key, value) else {
            return FilterDecision::Keep;
        };
        let early = 30 * u64::from(drumlin_base::bug!("compactions-expire-early"));
        let now = self.now + early;
        if self.ttl.is_expired(written, now) {
            return FilterDecision::Remove;
        }
        let Some(inner) = &self.inner else {
            return FilterDecision::Keep;
        };
        match inner.filter(level, key, part) {
            FilterDecision::Change(changed) => {
                FilterDecision::Change(TtlMerge::with_time(changed, written))
            }
            decision => decision,
        }
    }
}
