//! Users and the log of what was denied, as ACL shows them.

use drumlin_redis_store::Outcome;
use drumlin_resp::ReplyWriter;

use crate::acl::{LogEntry, Selector, channels_of, commands_of, describe, hex, keys_of};
use crate::call::{Call, SYNTAX};
use crate::double;

/// ACL LIST, or only the names.
pub(super) fn list(call: &mut Call<'_, '_>, whole: bool) -> Outcome<()> {
    let server = call.server.as_deref().ok_or(SYNTAX)?;
    call.reply.array(server.users.len());
    for user in server.users.iter() {
        match whole {
            true => {
                let line = [b"user ", &user.name[..], b" ", &describe(user)].concat();
                call.reply.bulk(&line);
            }
            false => call.reply.bulk(&user.name),
        }
    }
    Ok(())
}

/// ACL GETUSER.
pub(super) fn getuser(call: &mut Call<'_, '_>) -> Outcome<()> {
    let name = call.arg(2);
    let server = call.server.as_deref().ok_or(SYNTAX)?;
    let reply = &mut *call.reply;
    let Some((_, user)) = server.users.find(name) else {
        reply.null();
        return Ok(());
    };
    reply.map(6);
    reply.bulk(b"flags");
    let flags: Vec<_> = user.flags().collect();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(user.passwords.len());
    let hashes = user.passwords.iter();
    hashes.for_each(|hash| reply.bulk(hex(hash).as_bytes()));
    selector(reply, &user.root);
    reply.bulk(b"selectors");
    reply.array(user.others.len());
    for other in &user.others {
        reply.map(3);
        selector(reply, other);
    }
    Ok(())
}

/// The fields of a selector.
fn selector(reply: &mut ReplyWriter, selector: &Selector) {
    let fields = [
        ("commands", commands_of(selector)),
        ("keys", keys_of(selector)),
        ("channels", channels_of(selector)),
    ];
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        reply.bulk(&value);
    }
}

/// ACL LOG: up to `most` entries.
pub(super) fn log(call: &mut Call<'_, '_>, most: usize) -> Outcome<()> {
    let server = call.server.as_deref().ok_or(SYNTAX)?;
    let entries = server.users.log.entries();
    let now_ms = server.now_micros / 1_000;
    call.reply.array(entries.len().min(most));
    for entry in entries.take(most) {
        log_entry(call.reply, entry, now_ms);
    }
    Ok(())
}

fn log_entry(reply: &mut ReplyWriter, entry: &LogEntry, now_ms: u64) {
    reply.map(7);
    reply.bulk(b"count");
    reply.integer(i64::try_from(entry.count).unwrap_or(i64::MAX));
    let texts: [(&str, &[u8]); 4] = [
        ("reason", entry.reason.name().as_bytes()),
        ("context", entry.context.name().as_bytes()),
        ("object", &entry.object),
        ("username", &entry.user),
    ];
    for (name, value) in texts {
        reply.bulk(name.as_bytes());
        reply.bulk(value);
    }
    reply.bulk(b"age-seconds");
    let age_ms = now_ms.saturating_sub(entry.at_ms);
    reply.double(double::print(age_ms as f64 / 1_000.0).as_bytes());
    reply.bulk(b"client-info");
    reply.bulk(entry.client.as_bytes());
}
