//! Entries outside the database: how they are written by `scan` and `get` and read by `load` and `write-table`.
//!
//! Every format gives back exactly the bytes it was given, or says that it cannot hold them.

pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod read;
pub(crate) mod write;

use clap::ValueEnum;

/// How entries are laid out in a stream of bytes. `docs/cli.md` has the rules of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EntryFormat {
    /// `key TAB value` lines with escapes, or hex with --hex.
    #[default]
    Text,
    /// `key TAB value` lines, every byte as it is.
    Lines,
    /// Two fields a record, as RFC 4180 has it.
    Csv,
    /// A JSON object a line, with `key` and `value`, or `key_hex` and `value_hex`.
    Json,
    /// Length and bytes of the key, then of the value; lengths are four bytes, the lowest first.
    Binary,
}
