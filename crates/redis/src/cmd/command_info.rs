//! What COMMAND INFO tells of a command.

use drumlin_resp::ReplyWriter;

use crate::catalog::{self, BeginSearch, Entry, FindKeys, KeySpec};

/// Writes all of it, with that of the subcommands.
pub(super) fn reply(reply: &mut ReplyWriter, entry: &Entry) {
    reply.array(10);
    reply.bulk(entry.name.as_bytes());
    reply.integer(i64::from(entry.arity));
    reply_names(reply, entry.flags.iter().copied());
    for position in entry.positions {
        reply.integer(position);
    }
    let categories: Vec<_> = entry.categories.names().collect();
    reply.set(categories.len());
    for name in categories {
        reply.simple(format!("@{name}").as_bytes());
    }
    reply.set(entry.tips.len());
    entry.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(entry.specs.len());
    entry.specs.iter().for_each(|spec| key_spec(reply, spec));
    let children = catalog::children(entry);
    // None of them are a set, as Redis has it, and some an array.
    match children.len() {
        0 => reply.set(0),
        count => reply.array(count),
    }
    // One level: subcommands have none.
    children.iter().for_each(|child| self::reply(reply, child));
}

/// Writes a set of names.
pub(super) fn reply_names(reply: &mut ReplyWriter, names: impl Iterator<Item = &'static str>) {
    let names: Vec<_> = names.collect();
    reply.set(names.len());
    names.iter().for_each(|name| reply.simple(name.as_bytes()));
}

fn key_spec(reply: &mut ReplyWriter, spec: &KeySpec) {
    reply.map(3 + usize::from(spec.notes.is_some()));
    if let Some(notes) = spec.notes {
        reply.bulk(b"notes");
        reply.bulk(notes.as_bytes());
    }
    reply.bulk(b"flags");
    reply_names(reply, spec.flags.names());
    reply.bulk(b"begin_search");
    match spec.begin {
        BeginSearch::Index(at) => search(reply, "index", &[("index", at)]),
        BeginSearch::Keyword(word, from) => {
            head(reply, "keyword", 2);
            reply.bulk(b"keyword");
            reply.bulk(word.as_bytes());
            reply.bulk(b"startfrom");
            reply.integer(from);
        }
        BeginSearch::Unknown => search(reply, "unknown", &[]),
    }
    reply.bulk(b"find_keys");
    match spec.keys {
        FindKeys::Range { last, step, limit } => {
            let fields = [("lastkey", last), ("keystep", step), ("limit", limit)];
            search(reply, "range", &fields);
        }
        FindKeys::Counted { count, first, step } => {
            let fields = [("keynumidx", count), ("firstkey", first), ("keystep", step)];
            search(reply, "keynum", &fields);
        }
        FindKeys::Unknown => search(reply, "unknown", &[]),
    }
}

fn head(reply: &mut ReplyWriter, kind: &str, fields: usize) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields);
}

fn search(reply: &mut ReplyWriter, kind: &str, fields: &[(&str, i64)]) {
    head(reply, kind, fields.len());
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        reply.integer(*value);
    }
}
