//! XGROUP and XACK: groups, their consumers, and the end of pending entries.

use drumlin_redis_store::types::stream::{Group, Stream, StreamId};
use drumlin_redis_store::{EventClass, Failure, Outcome};

use super::args::{id, id_or_end, ids};
use crate::call::Call;
use crate::cmd::reply_help;

/// The error of options that a subcommand does not have.
pub(super) fn no_option(call: &Call<'_, '_>, command: &str) -> Failure {
    let name: String = String::from_utf8_lossy(call.arg(1))
        .chars()
        .take(128)
        .collect();
    Failure::because(format!(
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try {command} HELP."
    ))
}

/// The error of a group that is missing.
pub(super) fn no_group(group: &[u8], key: &[u8]) -> Failure {
    Failure::because(format!(
        "NOGROUP No such consumer group '{}' for key name '{}'",
        String::from_utf8_lossy(group),
        String::from_utf8_lossy(key)
    ))
}

/// The options of CREATE and SETID.
#[derive(Debug, Default)]
struct Options {
    makes_stream: bool,
    entries_read: Option<u64>,
}

fn options(call: &Call<'_, '_>) -> Outcome<Options> {
    let mut options = Options::default();
    let (creates, sets) = (call.is(1, "create"), call.is(1, "setid"));
    let mut at = 5;
    while at < call.len() {
        if creates && call.is(at, "mkstream") {
            options.makes_stream = true;
            at += 1;
        } else if (creates || sets) && call.is(at, "entriesread") && at + 1 < call.len() {
            let read = call.integer(at + 1)?;
            if read < -1 {
                return Err(Failure::refused(
                    "ERR value for ENTRIESREAD must be positive or -1",
                ));
            }
            options.entries_read = u64::try_from(read).ok();
            at += 2;
        } else {
            return Err(no_option(call, "XGROUP"));
        }
    }
    Ok(options)
}

pub(super) fn xgroup(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.is(1, "help") {
        return reply_help(call, HELP);
    }
    let options = options(call)?;
    let (key, name) = (call.arg(2), call.arg(3));
    let stream = Stream::open(call.keys, key)?;
    if stream.is_none() && !options.makes_stream {
        return Err(Failure::refused(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want \
             to use the MKSTREAM option to create an empty stream automatically.",
        ));
    }
    if call.is(1, "create") {
        return create(call, stream, &options);
    }
    let Some(stream) = stream else {
        return Err(no_option(call, "XGROUP"));
    };
    let group = stream.group(call.keys, name)?;
    match group {
        Some(group) if call.is(1, "destroy") => destroy(call, group),
        None if call.is(1, "destroy") => {
            call.reply.integer(0);
            Ok(())
        }
        Some(group) => change(call, &stream, group, &options),
        None => Err(no_group(name, key)),
    }
}

fn create(call: &mut Call<'_, '_>, stream: Option<Stream>, options: &Options) -> Outcome<()> {
    let (key, name) = (call.arg(2), call.arg(3));
    let last = match call.arg(4) {
        b"$" => stream.as_ref().map_or(StreamId::MIN, |stream| stream.last),
        text => id(text, 0)?,
    };
    let stream = match stream {
        Some(stream) => stream,
        None => {
            Stream::open_or_new(call.keys, key)?.save(call.keys, key)?;
            Stream::open_or_new(call.keys, key)?
        }
    };
    if stream.group(call.keys, name)?.is_some() {
        return Err(Failure::refused(
            "BUSYGROUP Consumer Group name already exists",
        ));
    }
    stream.create_group(call.keys, name, last, options.entries_read)?;
    call.reply.ok();
    call.keys.event(EventClass::Stream, "xgroup-create", key);
    Ok(())
}

fn destroy(call: &mut Call<'_, '_>, group: Group) -> Outcome<()> {
    let key = call.arg(2);
    group.destroy(call.keys)?;
    call.reply.integer(1);
    call.keys.event(EventClass::Stream, "xgroup-destroy", key);
    // Those who wait for entries of the group are told.
    let db = call.keys.db();
    call.keys.overlay().touch(db, key);
    Ok(())
}

fn change(
    call: &mut Call<'_, '_>,
    stream: &Stream,
    mut group: Group,
    options: &Options,
) -> Outcome<()> {
    let (key, consumer) = (call.arg(2), call.arg(4));
    let event = match () {
        () if call.is(1, "setid") => {
            group.last = match call.arg(4) {
                b"$" => stream.last,
                text => id_or_end(text, 0)?,
            };
            group.entries_read = options.entries_read;
            call.reply.ok();
            Some("xgroup-setid")
        }
        () if call.is(1, "createconsumer") => {
            let is_new = group.consumer(call.keys, consumer)?.is_none();
            if is_new {
                group.see(call.keys, consumer)?;
            }
            call.reply.integer(i64::from(is_new));
            is_new.then_some("xgroup-createconsumer")
        }
        () => {
            let deleted = group.delete_consumer(call.keys, consumer)?;
            call.reply.integer(deleted.unwrap_or(0) as i64);
            deleted.map(|_| "xgroup-delconsumer")
        }
    };
    if let Some(event) = event {
        group.save(call.keys)?;
        call.keys.event(EventClass::Stream, event, key);
    }
    Ok(())
}

pub(super) fn xack(call: &mut Call<'_, '_>) -> Outcome<()> {
    let stream = Stream::open(call.keys, call.arg(1))?;
    let group = match &stream {
        Some(stream) => stream.group(call.keys, call.arg(2))?,
        None => None,
    };
    let Some(mut group) = group else {
        call.reply.integer(0);
        return Ok(());
    };
    let mut settled = 0;
    for id in ids(call, 3)? {
        if let Some(pending) = group.pending(call.keys, id)? {
            group.settle(call.keys, id, &pending);
            settled += 1;
        }
    }
    call.reply.integer(settled);
    match settled {
        0 => Ok(()),
        _ => group.save(call.keys),
    }
}

const HELP: &[&str] = &[
    "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CREATE <key> <groupname> <id|$> [option]",
    "    Create a new consumer group. Options are:",
    "    * MKSTREAM",
    "      Create the empty stream if it does not exist.",
    "    * ENTRIESREAD entries_read",
    "      Set the group's entries_read counter (internal use).",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Create a new consumer in the specified group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove the specified consumer.",
    "DESTROY <key> <groupname>",
    "    Remove the specified group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Set the current group ID and entries_read counter.",
    "HELP",
    "    Prints this help.",
];
