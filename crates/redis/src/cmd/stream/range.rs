//! Commands that read a stream without waiting.

use drumlin_redis_store::types::stream::Stream;
use drumlin_redis_store::{Direction, Outcome};

use super::args::{Range, range_end, range_start, reply_range};
use crate::call::{Call, SYNTAX};

pub(super) fn xlen(call: &mut Call<'_, '_>) -> Outcome<()> {
    let stream = Stream::open(call.keys, call.arg(1))?;
    call.reply
        .integer(stream.map_or(0, |stream| stream.len() as i64));
    Ok(())
}

pub(super) fn xrange(call: &mut Call<'_, '_>) -> Outcome<()> {
    range(call, Direction::Forward)
}

pub(super) fn xrevrange(call: &mut Call<'_, '_>) -> Outcome<()> {
    range(call, Direction::Backward)
}

fn range(call: &mut Call<'_, '_>, direction: Direction) -> Outcome<()> {
    let (start, end) = match direction {
        Direction::Forward => (2, 3),
        Direction::Backward => (3, 2),
    };
    let (from, to) = (range_start(call.arg(start))?, range_end(call.arg(end))?);
    let mut count = None;
    let mut at = 4;
    while at < call.len() {
        if !call.is(at, "count") || at + 1 == call.len() {
            return Err(SYNTAX);
        }
        count = Some(u64::try_from(call.integer(at + 1)?).unwrap_or(0));
        at += 2;
    }
    let Some(stream) = Stream::open(call.keys, call.arg(1))? else {
        call.reply.array(0);
        return Ok(());
    };
    if count == Some(0) {
        call.reply.null_array();
        return Ok(());
    }
    let range = Range {
        from,
        to,
        direction,
        count: count.unwrap_or(0),
    };
    reply_range(call.reply, call.keys, &stream, range)
}
