//! Arguments and replies that commands of hashes and of sets have in common.

use drumlin_base::rng::Rng;
use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::integer;

use super::generic::{scan_cursor, scan_options};
use crate::call::Call;
use crate::glob;

const OUT_OF_RANGE: Failure = Failure::refused(
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
);

/// Argument `at` as the count of a random choice; below 0, elements may repeat.
pub(super) fn random_count(call: &Call<'_, '_>, at: usize) -> Outcome<i64> {
    match call.integer(at)? {
        i64::MIN => Err(OUT_OF_RANGE),
        count => Ok(count),
    }
}

/// Argument `at` as an integer of at least `least`; `error` if it is none.
pub(super) fn at_least(
    call: &Call<'_, '_>,
    at: usize,
    least: i64,
    error: &'static str,
) -> Outcome<u64> {
    let number = integer(call.arg(at)).filter(|number| *number >= least);
    let number = number.ok_or(Failure::refused(error))?;
    Ok(number.unsigned_abs())
}

/// Random numbers for one call.
pub(super) fn random(call: &mut Call<'_, '_>) -> Rng {
    match &mut call.server {
        Some(server) => server.random.fork(),
        // The thread that warms up: any elements are as good.
        None => Rng::new(call.keys.now_ms()),
    }
}

/// Replies a number of things.
pub(super) fn reply_count(call: &mut Call<'_, '_>, count: u64) {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    call.reply.integer(count);
}

/// The arguments of a scan of elements.
pub(super) struct Scan<'a> {
    pub(super) cursor: u64,
    pub(super) count: u64,
    pattern: Option<&'a [u8]>,
}

impl Scan<'_> {
    pub(super) fn wants(&self, name: &[u8]) -> bool {
        self.pattern
            .is_none_or(|pattern| glob::matches(pattern, name))
    }
}

/// The arguments of HSCAN or SSCAN. Options are looked at only where there is a key.
pub(super) fn scan_arguments<'a>(
    call: &Call<'a, '_>,
    has_key: impl FnOnce(&Call<'a, '_>) -> Outcome<bool>,
) -> Outcome<Scan<'a>> {
    let mut scan = Scan {
        cursor: scan_cursor(call.arg(2))?,
        count: 0,
        pattern: None,
    };
    if has_key(call)? {
        let options = scan_options(call, 3, false)?;
        scan.count = options.count as u64;
        scan.pattern = options.pattern;
    }
    Ok(scan)
}

/// Replies the page of a scan.
pub(super) fn reply_page<'n>(
    call: &mut Call<'_, '_>,
    next: u64,
    names: impl ExactSizeIterator<Item = &'n [u8]>,
) {
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(names.len());
    names.for_each(|name| call.reply.bulk(name));
}
