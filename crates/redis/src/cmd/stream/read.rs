//! XREAD and XREADGROUP: entries behind an id, of several streams, and the wait for them.

use std::time::Duration;

use drumlin_redis_store::types::stream::{Stream, StreamId};
use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::{OwnedArgs, Protocol};

use super::args::{Range, id, integer_or, reply_entries};
use crate::call::{Call, SYNTAX};
use crate::wait::{TimeoutReply, Wait};

/// Entries of a reply to a call that waited and names no count.
const WOKEN_ENTRIES_MAX: u64 = 1_000;

/// The options of both.
#[derive(Debug, Default)]
pub(super) struct Request<'a> {
    /// Entries of a stream; 0 for all.
    pub(super) count: u64,
    /// Whether to wait, and how long; `None` for ever.
    wait: Option<Option<Duration>>,
    /// The group and the consumer.
    pub(super) group: Option<(&'a [u8], &'a [u8])>,
    pub(super) is_acknowledged: bool,
    pub(super) keys: Vec<&'a [u8]>,
    /// The place of the first stream's id; the others follow.
    pub(super) ids_at: usize,
}

/// Argument `at` as the timeout of BLOCK, in ms; 0 is for ever.
fn timeout(call: &Call<'_, '_>, at: usize) -> Outcome<Option<Duration>> {
    let no_integer = "ERR timeout is not an integer or out of range";
    let negative = Failure::refused("ERR timeout is negative");
    let ms = integer_or(call, at, no_integer)?;
    let ms = u64::try_from(ms).map_err(|_| negative)?;
    Ok((ms > 0).then_some(Duration::from_millis(ms)))
}

fn only_groups(option: &str) -> Failure {
    Failure::because(format!(
        "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
    ))
}

/// Reads the options.
///
/// # Errors
/// As Redis words them.
pub(super) fn request<'a>(call: &Call<'a, '_>, of_group: bool) -> Outcome<Request<'a>> {
    let mut request = Request::default();
    let mut at = 1;
    while at < call.len() {
        let more = call.len() - at - 1;
        match () {
            () if call.is(at, "block") && more > 0 => {
                if call.session.is_script() {
                    let name = String::from_utf8_lossy(call.arg(0));
                    return Err(Failure::because(format!(
                        "ERR {name} command is not allowed with BLOCK option from scripts"
                    )));
                }
                request.wait = Some(timeout(call, at + 1)?);
                at += 2;
            }
            () if call.is(at, "count") && more > 0 => {
                request.count = u64::try_from(call.integer(at + 1)?).unwrap_or(0);
                at += 2;
            }
            () if call.is(at, "streams") && more > 0 => {
                if !more.is_multiple_of(2) {
                    return Err(Failure::refused(
                        "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' \
                         must be specified.",
                    ));
                }
                let keys = call.args.from(at + 1);
                request.keys = keys.iter().take(more / 2).collect();
                request.ids_at = at + 1 + more / 2;
                break;
            }
            () if call.is(at, "group") && more >= 2 => {
                if !of_group {
                    return Err(only_groups("GROUP"));
                }
                request.group = Some((call.arg(at + 1), call.arg(at + 2)));
                at += 3;
            }
            () if call.is(at, "noack") => {
                if !of_group {
                    return Err(only_groups("NOACK"));
                }
                request.is_acknowledged = true;
                at += 1;
            }
            () => return Err(SYNTAX),
        }
    }
    if request.keys.is_empty() {
        return Err(SYNTAX);
    }
    Ok(request)
}

impl Request<'_> {
    /// The key that the call was woken by, and its place; `None` where it was not.
    pub(super) fn woken(&self, call: &Call<'_, '_>) -> Option<usize> {
        let key = call.woken_by?;
        self.keys.iter().position(|other| *other == key)
    }

    /// The entries of a stream in one reply.
    pub(super) fn most(&self, call: &Call<'_, '_>) -> u64 {
        match (self.count, call.woken_by) {
            (0, Some(_)) => WOKEN_ENTRIES_MAX,
            (count, _) => count,
        }
    }

    /// Waits for entries, if that is asked for; else the reply is that there are none.
    pub(super) fn wait(&self, call: &mut Call<'_, '_>, args: Option<OwnedArgs>) {
        let Some(timeout) = self.wait else {
            call.reply.null_array();
            return;
        };
        call.wait_for(Wait {
            keys: self.keys.iter().map(|key| key.to_vec()).collect(),
            timeout,
            on_timeout: TimeoutReply::NullArray,
            args,
        });
    }
}

/// Replies the head of one stream among others.
pub(super) fn reply_key(call: &mut Call<'_, '_>, key: &[u8]) {
    if call.reply.protocol() == Protocol::Resp2 {
        call.reply.array(2);
    }
    call.reply.bulk(key);
}

/// Replies the head of one stream alone.
pub(super) fn reply_only(call: &mut Call<'_, '_>, key: &[u8]) {
    match call.reply.protocol() {
        Protocol::Resp2 => call.reply.array(1),
        Protocol::Resp3 => call.reply.map(1),
    }
    reply_key(call, key);
}

/// Calls `serve` with the place of each stream; it replies entries, if there are any, and says so. Whether there were.
pub(super) fn reply_streams(
    call: &mut Call<'_, '_>,
    streams: usize,
    mut serve: impl FnMut(&mut Call<'_, '_>, usize) -> Outcome<bool>,
) -> Outcome<bool> {
    let mark = match call.reply.protocol() {
        Protocol::Resp2 => call.reply.begin_array(),
        Protocol::Resp3 => call.reply.begin_map(),
    };
    let mut served = 0;
    for at in 0..streams {
        served += usize::from(serve(call, at)?);
    }
    match served {
        0 => call.reply.abandon(mark),
        _ => call.reply.finish(mark, served),
    }
    Ok(served > 0)
}

/// Replies the entries of a stream behind `id`, if there are any.
fn serve(
    call: &mut Call<'_, '_>,
    key: &[u8],
    stream: &Stream,
    (behind, count): (StreamId, u64),
) -> Outcome<bool> {
    if stream.last <= behind {
        return Ok(false);
    }
    let before = call.reply.bytes().len();
    reply_key(call, key);
    let mark = call.reply.begin_array();
    let range = Range::behind(behind, count);
    let told = reply_entries(call.reply, call.keys, stream, range, |_| {})?;
    call.reply.finish(mark, told);
    if told == 0 {
        call.reply.buffer_mut().truncate(before);
    }
    Ok(told > 0)
}

pub(super) fn xread(call: &mut Call<'_, '_>) -> Outcome<()> {
    let request = request(call, false)?;
    if call.woken_by.is_some() {
        return xread_woken(call, &request);
    }
    let (mut streams, mut resolved) = (Vec::new(), None);
    for (place, key) in request.keys.iter().enumerate() {
        let stream = Stream::open(call.keys, key)?;
        let at = request.ids_at + place;
        let behind = match call.arg(at) {
            b"$" => {
                let last = stream.as_ref().map_or(StreamId::MIN, |stream| stream.last);
                let all = || call.args.iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
                let args = resolved.get_or_insert_with(all);
                if let Some(arg) = args.get_mut(at) {
                    *arg = last.to_string().into_bytes();
                }
                last
            }
            b">" => {
                return Err(Failure::refused(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP \
                     <group> <consumer> option.",
                ));
            }
            text => id(text, 0)?,
        };
        streams.push((stream, behind));
    }
    let count = request.count;
    let served = reply_streams(call, streams.len(), |call, at| {
        let found = request.keys.get(at).zip(streams.get(at));
        let Some((key, (Some(stream), behind))) = found else {
            return Ok(false);
        };
        serve(call, key, stream, (*behind, count))
    })?;
    if !served {
        // The end of a stream is the one at the arrival of the call.
        let args = resolved.map(|args| args.iter().map(Vec::as_slice).collect());
        request.wait(call, args);
    }
    Ok(())
}

/// The key that changed may be a stream with entries that nobody has seen.
fn xread_woken(call: &mut Call<'_, '_>, request: &Request<'_>) -> Outcome<()> {
    let stream = match call.woken_by {
        Some(key) => Stream::open(call.keys, key).or_else(|failure| match failure {
            Failure::WrongType => Ok(None),
            failure => Err(failure),
        })?,
        None => None,
    };
    let (Some(stream), Some(place)) = (stream, request.woken(call)) else {
        request.wait(call, None);
        return Ok(());
    };
    let behind = id(call.arg(request.ids_at + place), 0)?;
    if stream.last <= behind {
        request.wait(call, None);
        return Ok(());
    }
    let key = call.woken_by.unwrap_or_default();
    reply_only(call, key);
    let mark = call.reply.begin_array();
    let range = Range::behind(behind, request.most(call));
    let told = reply_entries(call.reply, call.keys, &stream, range, |_| {})?;
    call.reply.finish(mark, told);
    Ok(())
}
