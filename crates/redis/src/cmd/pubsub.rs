//! Commands of channels.

use drumlin_redis_store::Outcome;

use crate::call::Call;
use crate::command::{Command, Flags, NO_KEYS};
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
    Command::new("subscribe", -2, SUBSCRIBE, NO_KEYS, subscribe),
    Command::new("unsubscribe", -1, SUBSCRIBE, NO_KEYS, unsubscribe),
];

fn subscribe(call: &mut Call<'_, '_>) -> Outcome<()> {
    add(call, Subject::Channel, b"subscribe")
}

fn psubscribe(call: &mut Call<'_, '_>) -> Outcome<()> {
    add(call, Subject::Pattern, b"psubscribe")
}

fn add(call: &mut Call<'_, '_>, subject: Subject, word: &[u8]) -> Outcome<()> {
    let id = call.session.id;
    for name in call.args.from(1).iter() {
        call.server()?.pubsub.subscribe(subject, name, id);
        match subject {
            Subject::Channel => call.session.channels.insert(name.to_vec()),
            Subject::Pattern => call.session.patterns.insert(name.to_vec()),
        };
        confirm(call, word, Some(name));
    }
    Ok(())
}

fn confirm(call: &mut Call<'_, '_>, word: &[u8], name: Option<&[u8]>) {
    call.reply.push(3);
    call.reply.bulk(word);
    match name {
        Some(name) => call.reply.bulk(name),
        None => call.reply.null(),
    }
    call.reply.integer(call.session.subscriptions() as i64);
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
        };
        confirm(call, word, Some(name));
    }
    if names.is_empty() {
        confirm(call, word, None);
    }
    Ok(())
}

fn publish(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (channel, message) = (call.arg(1), call.arg(2));
    let server = call.server()?;
    let sent = server.pubsub.publish(channel, message, &mut server.clients);
    call.reply.integer(sent as i64);
    Ok(())
}

fn pubsub(call: &mut Call<'_, '_>) -> Outcome<()> {
    let (args, len) = (call.args, call.len());
    let is = |word: &str| call.is(1, word);
    let (channels, numsub, numpat) = (is("channels"), is("numsub"), is("numpat"));
    if is("help") && len == 2 {
        return super::reply_help(call, HELP);
    }
    if !(channels && len <= 3 || numsub || numpat && len == 2) {
        return Err(call.unknown_subcommand("PUBSUB"));
    }
    let pubsub = &call.server()?.pubsub;
    if channels {
        let pattern = args.get(2);
        let wanted = |name: &[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, name));
        let names = pubsub
            .channels()
            .map(|(name, _)| name)
            .filter(|name| wanted(name));
        let names: Vec<Vec<u8>> = names.map(<[u8]>::to_vec).collect();
        call.reply.array(names.len());
        names.iter().for_each(|name| call.reply.bulk(name));
    } else if numsub {
        let counted: Vec<_> = args
            .from(2)
            .iter()
            .map(|name| (name, pubsub.subscribers(name)))
            .collect();
        call.reply.array(counted.len() * 2);
        for (name, subscribers) in counted {
            call.reply.bulk(name);
            call.reply.integer(subscribers as i64);
        }
    } else {
        let patterns = pubsub.pattern_count();
        call.reply.integer(patterns as i64);
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
    "HELP",
    "    Print this help.",
];
