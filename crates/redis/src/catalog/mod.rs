//! What commands and subcommands there are, and all that clients are told of them: Redis 7.0.15's, and ours.
//!
//! `commands.tsv` has a line for each command and each subcommand: its name, its arity, its flags, the places of its keys, its
//! categories, its tips and its key specifications, with a tab between any two. `docs.resp3` is redis-server's reply to
//! `COMMAND DOCS` in RESP3; both are Redis's, under its licence in `LICENSE-redis`. `ours.tsv` has what Redis 7.0.15 does not.

mod categories;
mod docs;
mod entry;
mod key_spec;
mod keys;
mod lines;
mod list;

pub(crate) use categories::{Categories, NAMES as CATEGORIES, category};
pub(crate) use docs::{has_docs, write_docs};
pub(crate) use entry::Entry;
pub(crate) use key_spec::{BeginSearch, FindKeys, KeyFlags, KeySpec};
pub(crate) use keys::{KeyPlace, has_keys, key_places};
pub(crate) use list::{all, child, children, find, get, lookup, resolve};
