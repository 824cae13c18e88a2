//! Arguments and replies that several commands of streams have.

use drumlin_redis_store::types::stream::{Entry, Stream, StreamId};
use drumlin_redis_store::{Direction, Failure, Keyspace, Outcome};
use drumlin_resp::{ReplyWriter, integer};

use crate::call::Call;

const NO_ID: Failure =
    Failure::refused("ERR Invalid stream ID specified as stream command argument");
/// Longest text of an id that Redis looks at.
const ID_TEXT_BYTES_MAX: usize = 127;

/// A number as `strtoull` reads it, since Redis does: space and a sign before it, zeros, a wrap below zero.
fn number(text: &[u8]) -> Option<u64> {
    if let Some(number) = integer(text) {
        return u64::try_from(number).ok();
    }
    let (negative, digits) = match text.trim_ascii_start() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| all_digits)?;
    let number: u64 = digits.parse().ok()?;
    Some(if negative {
        number.wrapping_neg()
    } else {
        number
    })
}

/// An id that may leave the number within its ms open: `ms-*`.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenId {
    pub(super) id: StreamId,
    pub(super) is_open: bool,
}

/// `text` as an id; `seq` is what an id without a number has.
///
/// # Errors
/// As Redis words it.
pub(super) fn open_id(text: &[u8], seq: u64) -> Outcome<OpenId> {
    parse(text, seq, true).ok_or(NO_ID)
}

/// As [`open_id`], for an id that is whole.
///
/// # Errors
/// As Redis words it.
pub(super) fn id(text: &[u8], seq: u64) -> Outcome<StreamId> {
    let parsed = parse(text, seq, false).ok_or(NO_ID)?;
    Ok(parsed.id)
}

/// As [`id`], where `-` is the lowest and `+` the highest.
///
/// # Errors
/// As Redis words it.
pub(super) fn id_or_end(text: &[u8], seq: u64) -> Outcome<StreamId> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => id(text, seq),
    }
}

fn parse(text: &[u8], missing_seq: u64, may_be_open: bool) -> Option<OpenId> {
    if text.len() > ID_TEXT_BYTES_MAX {
        return None;
    }
    let text = text.split(|byte| *byte == 0).next()?;
    let mut halves = text.splitn(2, |byte| *byte == b'-');
    let ms = number(halves.next()?)?;
    let (seq, is_open) = match halves.next() {
        None => (missing_seq, false),
        Some(b"*") if may_be_open => (0, true),
        Some(seq) => (number(seq)?, false),
    };
    let id = StreamId { ms, seq };
    Some(OpenId { id, is_open })
}

/// `text` as the first id of a range; behind `(` it is not in the range itself.
///
/// # Errors
/// As Redis words them.
pub(super) fn range_start(text: &[u8]) -> Outcome<StreamId> {
    let error = Failure::refused("ERR invalid start ID for the interval");
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => id(rest, 0)?.next().ok_or(error),
        _ => id_or_end(text, 0),
    }
}

/// `text` as the last id of a range.
///
/// # Errors
/// As Redis words them.
pub(super) fn range_end(text: &[u8]) -> Outcome<StreamId> {
    let error = Failure::refused("ERR invalid end ID for the interval");
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => id(rest, u64::MAX)?.previous().ok_or(error),
        _ => id_or_end(text, u64::MAX),
    }
}

/// The arguments from `at` on as ids.
///
/// # Errors
/// As Redis words it.
pub(super) fn ids(call: &Call<'_, '_>, at: usize) -> Outcome<Vec<StreamId>> {
    call.args.from(at).iter().map(|text| id(text, 0)).collect()
}

/// Argument `at` as an integer, with an error of its own.
///
/// # Errors
/// That one.
pub(super) fn integer_or(call: &Call<'_, '_>, at: usize, error: &'static str) -> Outcome<i64> {
    integer(call.arg(at)).ok_or(Failure::refused(error))
}

// Replies.

pub(super) fn reply_id(reply: &mut ReplyWriter, id: StreamId) {
    reply.bulk(id.to_string().as_bytes());
}

pub(super) fn reply_entry(reply: &mut ReplyWriter, entry: &Entry<'_>) {
    reply.array(2);
    reply_id(reply, entry.id);
    reply.array(entry.fields() as usize * 2);
    entry.parts().for_each(|part| reply.bulk(part));
}

/// Which entries of a stream are told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) from: StreamId,
    pub(super) to: StreamId,
    pub(super) direction: Direction,
    /// 0 for all.
    pub(super) count: u64,
}

impl Range {
    /// One entry.
    pub(super) fn one(id: StreamId) -> Self {
        Self {
            from: id,
            to: id,
            direction: Direction::Forward,
            count: 1,
        }
    }

    /// Up to `count` entries behind `id`.
    pub(super) fn behind(id: StreamId, count: u64) -> Self {
        Self {
            // Nothing is behind the last; the range is empty then.
            from: id.next().unwrap_or(StreamId::MAX),
            to: id.next().map_or(StreamId::MIN, |_| StreamId::MAX),
            direction: Direction::Forward,
            count,
        }
    }
}

/// Replies the entries of a range without the array around them; how many. `told` is called with the id of each.
pub(super) fn reply_entries(
    reply: &mut ReplyWriter,
    keys: &Keyspace<'_>,
    stream: &Stream,
    range: Range,
    mut told: impl FnMut(StreamId),
) -> Outcome<usize> {
    let mut entries = stream.entries(keys, (range.from, range.to), range.direction);
    let mut count = 0;
    while let Some(entry) = entries.next()? {
        reply_entry(reply, &entry);
        told(entry.id);
        count += 1;
        if count as u64 == range.count {
            break;
        }
    }
    Ok(count)
}

/// As [`reply_entries`], with the array.
pub(super) fn reply_range(
    reply: &mut ReplyWriter,
    keys: &Keyspace<'_>,
    stream: &Stream,
    range: Range,
) -> Outcome<()> {
    let mark = reply.begin_array();
    let count = reply_entries(reply, keys, stream, range, |_| {})?;
    reply.finish(mark, count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: ids are read as Redis reads them. Method: texts that Redis 7.0.15 was given.
    #[test]
    fn ids_are_what_redis_takes_for_ids() {
        let read = |text: &str| id(text.as_bytes(), 7).ok().map(|id| id.to_string());
        for (text, wanted) in [
            ("5", Some("5-7")),
            ("5-6", Some("5-6")),
            ("05-+6", Some("5-6")),
            (" 5-06", Some("5-6")),
            ("5--0", Some("5-0")),
            ("5--06", Some("5-18446744073709551610")),
            ("5--6", None),
            (
                "18446744073709551615-18446744073709551615",
                Some("18446744073709551615-18446744073709551615"),
            ),
            ("18446744073709551616", None),
            ("5-*", None),
            ("-", None),
            ("+", None),
            ("", None),
            ("5-", None),
            ("x", None),
        ] {
            assert_eq!(read(text).as_deref(), wanted, "{text:?}");
        }
        assert!(open_id(b"5-*", 0).expect("an id").is_open);
        assert_eq!(
            range_end(b"(5").expect("an id").to_string(),
            "5-18446744073709551614"
        );
        assert!(range_end(b"(0-0").is_err() && range_start(b"(-").is_err());
        assert_eq!(range_start(b"(5").expect("an id").to_string(), "5-1");
    }
}
