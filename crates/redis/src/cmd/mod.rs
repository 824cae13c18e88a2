//! The handlers of commands, a file or a folder for each family.

pub(crate) mod acl;
mod acl_show;
pub(crate) mod bitfield;
pub(crate) mod bitmap;
pub(crate) mod client;
mod client_tracking;
pub(crate) mod cluster;
pub(crate) mod command;
mod command_info;
pub(crate) mod connection;
mod debug;
mod digest;
pub(crate) mod dump;
mod elements;
pub(crate) mod failover;
pub(crate) mod field_expiry;
pub(crate) mod function;
pub(crate) mod generic;
pub(crate) mod geo;
pub(crate) mod hash;
pub(crate) mod hyperloglog;
pub(crate) mod info;
pub(crate) mod lcs;
pub(crate) mod list;
pub(crate) mod memory;
pub(crate) mod migrate;
pub(crate) mod module;
pub(crate) mod multi;
pub(crate) mod observe;
pub(crate) mod pubsub;
pub(crate) mod replication;
pub(crate) mod script;
pub(crate) mod server;
pub(crate) mod set;
pub(crate) mod sort;
pub(crate) mod stream;
pub(crate) mod string;
pub(crate) mod zset;

use drumlin_redis_store::Outcome;

use crate::call::Call;

/// Replies the lines of a HELP subcommand.
fn reply_help(call: &mut Call<'_, '_>, lines: &[&str]) -> Outcome<()> {
    call.reply.array(lines.len());
    for line in lines {
        call.reply.simple(line.as_bytes());
    }
    Ok(())
}
