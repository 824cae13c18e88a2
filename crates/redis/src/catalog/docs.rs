//! The documentation of commands, as `COMMAND DOCS` tells it.

use std::collections::HashMap;
use std::sync::LazyLock;

use drumlin_resp::{ReplyLimits, ReplyParser, ReplyWriter, Value};

const REPLY: &[u8] = include_bytes!("docs.resp3");

static DOCS: LazyLock<HashMap<Vec<u8>, Value>> = LazyLock::new(|| {
    let mut parser = ReplyParser::new(ReplyLimits::default());
    parser.push(REPLY);
    let Ok(Some(Value::Map(commands))) = parser.value() else {
        panic!("the catalogue's documents are one reply");
    };
    let mut docs = HashMap::new();
    for (name, value) in commands {
        let families = subcommands(&value).to_vec();
        let named = families.into_iter().chain([(name, value)]);
        docs.extend(named.filter_map(|(name, value)| Some((name.as_bytes()?.to_vec(), value))));
    }
    docs
});

/// The documents of the subcommands among those of a family.
fn subcommands(value: &Value) -> &[(Value, Value)] {
    let Value::Map(fields) = value else {
        return &[];
    };
    let field = fields
        .iter()
        .find(|(name, _)| name.as_bytes() == Some(b"subcommands"));
    match field {
        Some((_, Value::Map(found))) => found,
        _ => &[],
    }
}

/// Whether there are documents of the command or subcommand called `name`.
pub(crate) fn has_docs(name: &str) -> bool {
    DOCS.contains_key(name.as_bytes())
}

/// Writes them.
pub(crate) fn write_docs(name: &str, reply: &mut ReplyWriter) {
    match DOCS.get(name.as_bytes()) {
        Some(value) => write(value, reply),
        None => reply.null(),
    }
}

/// Recurses no deeper than the parser let the value be.
fn write(value: &Value, reply: &mut ReplyWriter) {
    match value {
        Value::Simple(text) => reply.simple(text),
        Value::Bulk(text) => reply.bulk(text),
        Value::Integer(number) => reply.integer(*number),
        Value::Array(items) => {
            reply.array(items.len());
            items.iter().for_each(|item| write(item, reply));
        }
        Value::Set(items) => {
            reply.set(items.len());
            items.iter().for_each(|item| write(item, reply));
        }
        Value::Map(pairs) => {
            reply.map(pairs.len());
            for (name, value) in pairs {
                write(name, reply);
                write(value, reply);
            }
        }
        // The documents have no other kinds.
        _ => reply.null(),
    }
}
