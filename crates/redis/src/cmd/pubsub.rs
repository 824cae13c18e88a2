//! Commands of channels.

use drumlin_redis_store::Outcome;

use crate::call::{Call, SYNTAX};
use crate::command::{ALL_KEYS, Command, Flags, NO_KEYS, ONE_KEY};
use crate::glob;
use crate::pubsub::Subject;

const SUBSCRIBE: Flags = Flags::PUBSUB
    .and(Flags::NOSCRIPT)
    .and(Flags::LOADING)
    .and(Flags::STALE);
const TELL: Flags = Flags::PUBSUB.and(Flags::LOADING).and(Flags::STALE);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("psubscribe", -2, SUBSCRIBE, NO_KEYS, psubscribe),
    Command::new("publish", 3, TELL.and(Flags::FAST), NO_KEYS, publish),
    Command::new("pubsub", -2, TELL, NO_KEYS, pubsub),
    Command::new("punsubscribe", -1, SUBSCRIBE, NO_KEYS, punsubscribe),
    Command::new("spublish", 3, TELL.and(Flags::FAST), ONE_KEY, spublish),
    Command::new("ssubscribe", -2, SUBSCRIBE, ALL_KEYS, ssubscribe),
    Command::new("sunsubscribe", -1, SUBSCRIBE, ALL_KEYS, sunsubscribe),
    Command::new("subscribe", -2, SUBSCRIBE, NO_KEYS, subscribe),
    Command::new("unsubscribe", -1, SUBSCRIBE, NO_KEYS, unsubscribe),
];

fn subscribe(call: &mut Call<'_, '_>) -> Outcome<()> {
    add(call, Subject::Channel, b"subscribe")
}

fn psubscribe(call: &mut Call<'_, '_>) -> Outcome<()> {
    add(call, Subject::Pattern, b"psubscribe")
}

fn ssubscribe(call: &mut Call<'_, '_>) -> Outcome<()> {
    add(call, Subject::Shard, b"ssubscribe")
}

fn sunsubscribe(call: &mut Call<'_, '_>) -> Outcome<()> {
    end(call, Subject::Shard, b"sunsubscribe")
}

fn spublish(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (channel, message) = (call.arg(1), call.arg(2));
    let server = call.server()?;
    let sent = server
        .pubsub
        .publish_to_shard(channel, message, &mut server.clients);
    call.tell_replicas_all();
    call.reply.integer(sent as i64);
    Ok(())
}

fn add(call: &mut Call<'_, '_>, subject: Subject, word: &[u8]) -> Outcome<()> {
    let id = call.session.id;
    for name in call.args.from(1).iter() {
        call.server()?.pubsub.subscribe(subject, name, id);
        match subject {
            Subject::Channel => call.session.channels.insert(name.to_vec()),
            Subject::Pattern => call.session.patterns.insert(name.to_vec()),
            Subject::Shard => call.session.shard_channels.insert(name.to_vec()),
        };
        confirm(call, subject, word, Some(name));
    }
    Ok(())
}

fn confirm(call: &mut Call<'_, '_>, subject: Subject, word: &[u8], name: Option<&[u8]>) {
    let session = &call.session;
    let count = match subject {
        Subject::Shard => session.shard_channels.len(),
        Subject::Channel | Subject::Pattern => session.channels.len() + session.patterns.len(),
    };
    call.reply.push(3);
    call.reply.bulk(word);
    match name {
        Some(name) => call.reply.bulk(name),
        None => call.reply.null(),
    }
    call.reply.integer(count as i64);
}

fn unsubscribe(call: &mut Call<'_, '_>) -> Outcome<()> {
    end(call, Subject::Channel, b"unsubscribe")
}

fn punsubscribe(call: &mut Call<'_, '_>) -> Outcome<()> {
    end(call, Subject::Pattern, b"punsubscribe")
}

fn end(call: &mut Call<'_, '_>, subject: Subject, word: &[u8]) -> Outcome<()> {
    let own = match subject {
        Subject::Channel => &call.session.channels,
        Subject::Pattern => &call.session.patterns,
        Subject::Shard => &call.session.shard_channels,
    };
    let names: Vec<Vec<u8>> = match call.len() {
        1 => own.iter().cloned().collect(),
        _ => call.args.from(1).iter().map(<[u8]>::to_vec).collect(),
    };
    let id = call.session.id;
    for name in &names {
        call.server()?.pubsub.unsubscribe(subject, name, id);
        match subject {
            Subject::Channel => call.session.channels.remove(name),
            Subject::Pattern => call.session.patterns.remove(name),
            Subject::Shard => call.session.shard_channels.remove(name),
        };
        confirm(call, subject, word, Some(name));
    }
    if names.is_empty() {
        confirm(call, subject, word, None);
    }
    Ok(())
}

fn publish(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (channel, message) = (call.arg(1), call.arg(2));
    let server = call.server()?;
    let sent = server.pubsub.publish(channel, message, &mut server.clients);
    call.tell_replicas_all();
    call.reply.integer(sent as i64);
    Ok(())
}

fn pubsub(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (args, len) = (call.args, call.len());
    let is = |word: &str| call.is(1, word);
    let (channels, shard_channels) = (is("channels"), is("shardchannels"));
    let (numsub, shard_numsub) = (is("numsub"), is("shardnumsub"));
    let help = is("help");
    let pubsub = &call.server.as_deref().ok_or(SYNTAX)?.pubsub;
    match len {
        2 if help => return super::reply_help(call, HELP),
        2 if is("numpat") => call.reply.integer(pubsub.pattern_count() as i64),
        2 | 3 if channels || shard_channels => {
            let names: Vec<&[u8]> = match channels {
                true => pubsub.channels().map(|(name, _)| name).collect(),
                false => pubsub.shard_channels().map(|(name, _)| name).collect(),
            };
            let pattern = args.get(2);
            let wanted = |name: &&[u8]| pattern.is_none_or(|it| glob::matches(it, name));
            let names: Vec<&[u8]> = names.into_iter().filter(wanted).collect();
            call.reply.array(names.len());
            names.iter().for_each(|name| call.reply.bulk(name));
        }
        2.. if numsub || shard_numsub => {
            let names = args.from(2);
            call.reply.array(names.len() * 2);
            for name in names.iter() {
                let subscribers = match numsub {
                    true => pubsub.subscribers(name),
                    false => pubsub.shard_subscribers(name),
                };
                call.reply.bulk(name);
                call.reply.integer(subscribers as i64);
            }
        }
        _ => return Err(call.unknown_subcommand("PUBSUB")),
    }
    Ok(())
}

const HELP: &[&str] = &[
    "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CHANNELS [<pattern>]",
    "    Return the currently active channels matching a <pattern> (default: '*').",
    "NUMPAT",
    "    Return number of subscriptions to patterns.",
    "NUMSUB [<channel> ...]",
    "    Return the number of subscribers for the specified channels, excluding",
    "    pattern subscriptions(default: no channels).",
    "SHARDCHANNELS [<pattern>]",
    "    Return the currently active shard level channels matching a <pattern> (default: '*').",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Return the number of subscribers for the specified shard level channel(s)",
    "HELP",
    "    Prints this help.",
];
