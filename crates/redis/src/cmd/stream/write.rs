//! Commands that change the entries of a stream.

use drumlin_redis_store::types::stream::{Stream, StreamId, Trim, TrimTo};
use drumlin_redis_store::{EventClass, Failure, Outcome};

use super::args::{OpenId, id, ids, open_id, reply_id};
use crate::call::{Call, SYNTAX};

/// A rough trim that names no limit takes at most so many nodes, within these bounds.
const ROUGH_NODES_MAX: u64 = 100;
const ROUGH_ENTRIES_MAX: u64 = 1_000_000;
/// Where nodes have no bound of entries.
const ROUGH_ENTRIES: u64 = 10_000;
/// Largest sum of the fields and values of an entry.
const ENTRY_BYTES_MAX: usize = 1 << 30;

/// The options of XADD and XTRIM.
#[derive(Debug, Default)]
struct Options {
    trim: Option<(TrimTo, bool)>,
    limit: Option<u64>,
    needs_stream: bool,
    /// `None` for `*`.
    id: Option<OpenId>,
}

impl Options {
    /// Reads a trim at `at`; the place behind it.
    fn read_trim(&mut self, call: &Call<'_, '_>, at: usize) -> Outcome<usize> {
        if self.trim.is_some() {
            return Err(Failure::refused(
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
            ));
        }
        let has_sign = at + 2 < call.len() && matches!(call.arg(at + 1), b"~" | b"=");
        let is_exact = !(has_sign && call.arg(at + 1) == b"~");
        let value_at = at + 1 + usize::from(has_sign);
        let to = match call.is(at, "maxlen") {
            true => {
                let negative = Failure::refused("ERR The MAXLEN argument must be >= 0.");
                let most = call.integer(value_at)?;
                TrimTo::Length(u64::try_from(most).map_err(|_| negative)?)
            }
            false => TrimTo::Id(id(call.arg(value_at), 0)?),
        };
        self.trim = Some((to, is_exact));
        Ok(value_at + 1)
    }

    /// The trim, once all options are read.
    fn checked(&self, call: &Call<'_, '_>, is_trim: bool) -> Outcome<Option<Trim>> {
        let error = |line| Err(Failure::refused(line));
        let Some((to, is_exact)) = self.trim else {
            return match (self.limit, is_trim) {
                (Some(1..), _) => error(
                    "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
                ),
                (_, true) => {
                    error("ERR syntax error, XTRIM must be called with a trimming strategy")
                }
                // A primary has replaced a rough trim by what came of it.
                (Some(0), false) if !call.session.is_primary => error(WITHOUT_ROUGH),
                (Some(0), false) => Ok(None),
                (None, false) => Ok(None),
            };
        };
        let obeys = call.session.is_primary;
        if is_exact && self.limit.is_some() && !obeys {
            return error(WITHOUT_ROUGH);
        }
        let limit = self.limit.filter(|_| !obeys).unwrap_or_else(|| {
            let entries = call.limits.stream_nodes.entries_max;
            match entries.saturating_mul(ROUGH_NODES_MAX) {
                _ if is_exact || obeys => 0,
                0 => ROUGH_ENTRIES,
                entries => entries.min(ROUGH_ENTRIES_MAX),
            }
        });
        Ok(Some(Trim {
            to,
            is_exact,
            limit,
        }))
    }
}

const WITHOUT_ROUGH: &str = "ERR syntax error, LIMIT cannot be used without the special ~ option";

/// The options, and the place of what is behind them.
fn options(call: &Call<'_, '_>, is_trim: bool) -> Outcome<(Options, usize)> {
    let mut options = Options::default();
    let mut at = 2;
    while at < call.len() {
        let has_more = at + 1 < call.len();
        match () {
            () if !is_trim && call.arg(at) == b"*" => break,
            () if has_more && (call.is(at, "maxlen") || call.is(at, "minid")) => {
                at = options.read_trim(call, at)?;
            }
            () if has_more && call.is(at, "limit") => {
                let negative = Failure::refused("ERR The LIMIT argument must be >= 0.");
                let limit = call.integer(at + 1)?;
                options.limit = Some(u64::try_from(limit).map_err(|_| negative)?);
                at += 2;
            }
            () if !is_trim && call.is(at, "nomkstream") => {
                options.needs_stream = true;
                at += 1;
            }
            () if is_trim => return Err(SYNTAX),
            () => {
                options.id = Some(open_id(call.arg(at), 0)?);
                break;
            }
        }
    }
    Ok((options, at))
}

/// The id of a new entry.
fn new_id(stream: &Stream, asked: Option<OpenId>, now_ms: u64) -> Outcome<StreamId> {
    let exhausted = Failure::refused(
        "ERR The stream has exhausted the last possible ID, unable to add more items",
    );
    let next = stream.last.next().ok_or(exhausted)?;
    let id = match asked {
        None if now_ms > stream.last.ms => StreamId { ms: now_ms, seq: 0 },
        None => next,
        // Within the newest ms; where that has no number left the next one is of another.
        Some(OpenId { id, is_open: true }) if id.ms == stream.last.ms => StreamId {
            ms: id.ms,
            seq: next.seq,
        },
        Some(asked) => asked.id,
    };
    match id > stream.last {
        true => Ok(id),
        false => Err(Failure::refused(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        )),
    }
}

pub(super) fn xadd(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (options, at) = options(call, false)?;
    let trim = options.checked(call, false)?;
    let pairs: Vec<_> = call.args.from((at + 1).min(call.len())).iter().collect();
    if pairs.is_empty() || pairs.len() % 2 == 1 {
        return Err(call.wrong_arity("xadd"));
    }
    let asked = options.id;
    if asked.is_some_and(|asked| !asked.is_open && asked.id == StreamId::MIN) {
        return Err(Failure::refused(
            "ERR The ID specified in XADD must be greater than 0-0",
        ));
    }
    let key = call.arg(1);
    let stream = match options.needs_stream {
        true => Stream::open(call.keys, key)?,
        false => Some(Stream::open_or_new(call.keys, key)?),
    };
    let Some(mut stream) = stream else {
        call.reply.null();
        return Ok(());
    };
    let id = new_id(&stream, asked, call.keys.now_ms())?;
    if pairs.iter().map(|part| part.len()).sum::<usize>() > ENTRY_BYTES_MAX {
        return Err(Failure::refused("ERR Elements are too large to be stored"));
    }
    stream.append(call.keys, id, &pairs, call.limits.stream_nodes);
    reply_id(call.reply, id);
    call.keys.event(EventClass::Stream, "xadd", key);
    let mut length = None;
    if let Some(trim) = trim
        && stream.trim(call.keys, trim)? > 0
    {
        call.keys.event(EventClass::Stream, "xtrim", key);
        length = Some(stream.len().to_string());
    }
    if call.collects {
        let id = id.to_string();
        let mut command = vec![b"XADD".as_slice(), key];
        if let Some(length) = &length {
            command.extend([b"MAXLEN".as_slice(), b"=", length.as_bytes()]);
        }
        command.push(id.as_bytes());
        command.extend(&pairs);
        call.tell_replicas(&command);
    }
    stream.save(call.keys, key)
}

pub(super) fn xtrim(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (options, _) = options(call, true)?;
    let trim = options.checked(call, true)?;
    let key = call.arg(1);
    let stream = Stream::open(call.keys, key)?;
    let (Some(mut stream), Some(trim)) = (stream, trim) else {
        call.reply.integer(0);
        return Ok(());
    };
    let deleted = stream.trim(call.keys, trim)?;
    call.reply.integer(deleted as i64);
    if deleted > 0 {
        call.keys.event(EventClass::Stream, "xtrim", key);
        let length = stream.len().to_string();
        call.tell_replicas(&[b"XTRIM", key, b"MAXLEN", b"=", length.as_bytes()]);
        stream.save(call.keys, key)?;
    }
    Ok(())
}

pub(super) fn xdel(call: &mut Call<'_, '_>) -> Outcome<()> {
    let key = call.arg(1);
    let Some(mut stream) = Stream::open(call.keys, key)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let ids = ids(call, 2)?;
    let deleted = stream.delete(call.keys, &ids)?;
    call.reply.integer(deleted as i64);
    if deleted > 0 {
        stream.save(call.keys, key)?;
        call.keys.event(EventClass::Stream, "xdel", key);
    }
    Ok(())
}

pub(super) fn xsetid(call: &mut Call<'_, '_>) -> Outcome<()> {
    let last = id(call.arg(2), 0)?;
    let (mut entries_added, mut max_deleted) = (None, StreamId::MIN);
    let mut at = 3;
    while at < call.len() {
        let has_more = at + 1 < call.len();
        match () {
            () if has_more && call.is(at, "entriesadded") => {
                let negative = Failure::refused("ERR entries_added must be positive");
                let added = call.integer(at + 1)?;
                entries_added = Some(u64::try_from(added).map_err(|_| negative)?);
            }
            () if has_more && call.is(at, "maxdeletedid") => {
                max_deleted = id(call.arg(at + 1), 0)?;
                if last < max_deleted {
                    return Err(Failure::refused(
                        "ERR The ID specified in XSETID is smaller than the provided \
                         max_deleted_entry_id",
                    ));
                }
            }
            () => return Err(SYNTAX),
        }
        at += 2;
    }
    let key = call.arg(1);
    let no_key = Failure::refused("ERR no such key");
    let mut stream = Stream::open(call.keys, key)?.ok_or(no_key)?;
    if stream.top(call.keys)?.is_some_and(|top| last < top) {
        return Err(Failure::refused(
            "ERR The ID specified in XSETID is smaller than the target stream top item",
        ));
    }
    if !stream.is_empty() && entries_added.is_some_and(|added| stream.len() > added) {
        return Err(Failure::refused(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    stream.last = last;
    stream.entries_added = entries_added.unwrap_or(stream.entries_added);
    if max_deleted != StreamId::MIN {
        stream.max_deleted = max_deleted;
    }
    call.reply.ok();
    call.keys.event(EventClass::Stream, "xsetid", key);
    let mark = call.keys.overlay().mark();
    stream.save(call.keys, key)?;
    // There is no entry to wake for, and Redis does not count it as a change either.
    call.keys.overlay().forget_touched(mark);
    Ok(())
}
