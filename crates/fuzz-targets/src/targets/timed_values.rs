//! Values with a time behind them: a naive reading says the same of each, of merges and of what compactions keep.
//!
//! The input is the time to live and the present, eight bytes each, and then values, each with its length in a byte before it.

use std::sync::Arc;
use std::time::Duration;

use drumlin::internals::ttl::{EARLIEST, LATEST, Ttl, compaction_filter, merge_operator};
use drumlin::{FilterDecision, FilterJob, MergeOperator, PinnedSlice, StringAppend};
use drumlin_base::coding::Reader;
use drumlin_fs::{Clock, ManualClock};

/// Values of one input.
const VALUES_MAX: usize = 16;

/// The value and its time, told by hand.
fn told(stored: &[u8]) -> Option<(&[u8], u64)> {
    let at = stored.len().checked_sub(4)?;
    let (value, time) = (stored.get(..at)?, stored.get(at..)?);
    let time = time
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    (u64::from(EARLIEST)..=u64::from(LATEST))
        .contains(&time)
        .then_some((value, time))
}

pub(crate) fn run(data: &[u8]) {
    let mut rest = Reader::new(data);
    let (Some(seconds), Some(now)) = (rest.fixed64(), rest.fixed64()) else {
        return;
    };
    let seconds = seconds % (u64::from(LATEST) + 1);
    let mut values = Vec::new();
    while values.len() < VALUES_MAX
        && let Some(len) = rest.u8()
        && let Some(value) = rest.bytes(usize::from(len))
    {
        values.push(value);
    }
    let clock = Arc::new(ManualClock::new(now)) as Arc<dyn Clock>;
    let ttl = Ttl::new(Duration::from_secs(seconds), &clock);
    let lives = |time: u64| seconds == 0 || time + seconds >= now;
    for stored in &values {
        let found = ttl.split(b"key", stored).ok();
        let found = found.map(|(value, time)| (value, u64::from(time)));
        assert_eq!(found, told(stored));
        let mut answer = Ok(Some(PinnedSlice::owned(stored.to_vec())));
        ttl.give(now, b"key", &mut answer);
        let shown = told(stored).map(|(value, time)| lives(time).then(|| value.to_vec()));
        let answer = answer.ok().map(|answer| answer.map(|value| value.to_vec()));
        assert_eq!(answer, shown);
    }
    check_filter(&ttl, &values, &lives);
    check_merge(&ttl, &values, &lives);
}

fn check_filter(ttl: &Arc<Ttl>, values: &[&[u8]], lives: &dyn Fn(u64) -> bool) {
    let Some(factory) = compaction_filter(&None, Some(ttl)) else {
        panic!("a family with times has a filter");
    };
    let filter = factory.create(&FilterJob::new(0, vec![0], 1, 0));
    for stored in values {
        let is_dropped = told(stored).is_some_and(|(_, time)| !lives(time));
        let decision = filter.as_ref().map_or(FilterDecision::Keep, |filter| {
            filter.filter(1, b"key", stored)
        });
        assert_eq!(decision == FilterDecision::Remove, is_dropped);
        assert!(is_dropped || decision == FilterDecision::Keep);
    }
}

/// The first value is what the operands are on.
fn check_merge(ttl: &Arc<Ttl>, values: &[&[u8]], lives: &dyn Fn(u64) -> bool) {
    let Some((existing, operands)) = values.split_first().filter(|(_, rest)| !rest.is_empty())
    else {
        return;
    };
    let plain = Arc::new(StringAppend::new("|")) as Arc<dyn MergeOperator>;
    let Some(timed) = merge_operator(&Some(Arc::clone(&plain)), Some(ttl)) else {
        panic!("there is an operator under it");
    };
    let merged = timed.full_merge(b"key", Some(existing), operands).ok();
    let parts: Option<Vec<_>> = values.iter().map(|stored| told(stored)).collect();
    assert_eq!(merged.is_some(), parts.is_some());
    let (Some(merged), Some(parts)) = (merged, parts) else {
        return;
    };
    let newest = parts.iter().map(|(_, time)| *time).max();
    // Where none lives, all count.
    let none_lives = !newest.is_some_and(lives);
    let counts = |time: u64| none_lives || lives(time);
    let (value, time) = told(&merged).expect("a merged value has a time");
    assert_eq!(Some(time), newest);
    let (base, rest) = parts.split_first().expect("there are two");
    let base = Some(*base).filter(|(_, time)| counts(*time));
    let rest: Vec<_> = rest
        .iter()
        .filter(|(_, time)| counts(*time))
        .map(|(v, _)| *v)
        .collect();
    let wanted = match (base, rest.as_slice()) {
        (Some((base, _)), []) => base.to_vec(),
        (base, rest) => plain
            .full_merge(b"key", base.map(|(base, _)| base), rest)
            .expect("texts are joined"),
    };
    assert_eq!(value, wanted);
}
