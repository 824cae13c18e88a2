//! Commands, keys and channels that are allowed together.

use std::collections::BTreeMap;

use drumlin_resp::Args;

use super::key_pattern::KeyPattern;
use crate::catalog::{self, Categories, Entry, KeyFlags, KeyPlace};
use crate::glob;

/// What a user lacks. A later one is told rather than an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denial {
    Command,
    Key,
    Channel,
}

/// Why a call is not allowed, and the argument that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Denied {
    pub(crate) what: Denial,
    pub(crate) at: usize,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(super) all_keys: bool,
    pub(super) all_channels: bool,
    /// All commands are allowed: none was taken away since `+@all`.
    pub(super) all_commands: bool,
    /// It began with `+@all`, and would allow commands that are not there yet.
    pub(super) is_open: bool,
    /// By the places of the catalogue, 64 a word.
    commands: Vec<u64>,
    /// First arguments with which a command is allowed that is not otherwise, by its place.
    first_args: BTreeMap<usize, Vec<Vec<u8>>>,
    pub(super) keys: Vec<KeyPattern>,
    pub(super) channels: Vec<Vec<u8>>,
}

impl Selector {
    /// Allows nothing, but all channels if it is so wished.
    pub(super) fn new(all_channels: bool) -> Self {
        Self {
            all_keys: false,
            all_channels,
            all_commands: false,
            is_open: false,
            commands: vec![0; catalog::all().len().div_ceil(64)],
            first_args: BTreeMap::new(),
            keys: Vec::new(),
            channels: Vec::new(),
        }
    }

    // Commands.

    /// Allows all commands, or none.
    pub(super) fn set_all_commands(&mut self, allowed: bool) {
        (self.all_commands, self.is_open) = (allowed, allowed);
        self.commands.fill(if allowed { u64::MAX } else { 0 });
        self.first_args.clear();
    }

    /// Allows a command and its subcommands, or takes them away.
    pub(super) fn set_command(&mut self, entry: &Entry, allowed: bool) {
        self.first_args.remove(&entry.index);
        for entry in [entry].into_iter().chain(catalog::children(entry)) {
            let Some(word) = self.commands.get_mut(entry.index / 64) else {
                continue;
            };
            let bit = 1 << (entry.index % 64);
            match allowed {
                true => *word |= bit,
                false => {
                    *word &= !bit;
                    self.all_commands = false;
                }
            }
        }
    }

    /// The same for all commands of a category.
    pub(super) fn set_category(&mut self, category: Categories, allowed: bool) {
        let all = catalog::all().iter();
        all.filter(|entry| entry.categories.has(category))
            .for_each(|entry| self.set_command(entry, allowed));
    }

    /// Allows a command with this first argument.
    pub(super) fn allow_first_arg(&mut self, entry: &Entry, arg: &[u8]) {
        let args = self.first_args.entry(entry.index).or_default();
        if !args.iter().any(|known| known.eq_ignore_ascii_case(arg)) {
            args.push(arg.to_vec());
        }
    }

    /// The first arguments with which it is allowed although it is not otherwise.
    pub(super) fn first_args_of(&self, entry: &Entry) -> &[Vec<u8>] {
        self.first_args.get(&entry.index).map_or(&[], Vec::as_slice)
    }

    /// Whether the command is allowed with whatever arguments.
    pub(super) fn has_command(&self, entry: &Entry) -> bool {
        let word = self.commands.get(entry.index / 64).copied().unwrap_or(0);
        word & (1 << (entry.index % 64)) != 0
    }

    fn takes_command(&self, entry: &Entry, args: Args<'_>) -> bool {
        let takes = |first: &[u8]| {
            let known = self.first_args_of(entry).iter();
            known.into_iter().any(|it| it.eq_ignore_ascii_case(first))
        };
        self.all_commands
            || self.has_command(entry)
            || entry.is("no_auth")
            || args.get(1).is_some_and(takes)
    }

    // Keys and channels.

    /// Whether everything is allowed.
    pub(super) fn is_unlimited(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    /// Whether every key may be used so.
    pub(super) fn has_all_keys(&self, flags: KeyFlags) -> bool {
        let mut keys = self.keys.iter();
        self.all_keys || keys.any(|it| it.pattern == b"*" && it.allows(flags))
    }

    fn takes_key(&self, key: &[u8], flags: KeyFlags) -> bool {
        self.all_keys || self.keys.iter().any(|it| it.matches(key, flags))
    }

    fn takes_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_channels || takes_channel(&self.channels, channel, is_pattern)
    }

    /// What the call needs and this does not allow. `keys` are those of the call.
    pub(super) fn lacks(&self, entry: &Entry, args: Args<'_>, keys: &[KeyPlace]) -> Option<Denied> {
        if !self.takes_command(entry, args) {
            return Some(Denied {
                what: Denial::Command,
                at: 0,
            });
        }
        let arg = |at: usize| args.get(at).unwrap_or_default();
        let key = keys
            .iter()
            .find(|key| !self.takes_key(arg(key.at), key.flags));
        if let Some(key) = key {
            return Some(Denied {
                what: Denial::Key,
                at: key.at,
            });
        }
        let (mut channels, is_pattern) = channels(entry, args);
        let at = channels.find(|at| !self.takes_channel(arg(*at), is_pattern))?;
        Some(Denied {
            what: Denial::Channel,
            at,
        })
    }
}

/// Whether a channel is among those of `patterns`. A pattern is, if it is one of them to the byte.
pub(super) fn takes_channel(patterns: &[Vec<u8>], channel: &[u8], is_pattern: bool) -> bool {
    patterns.iter().any(|pattern| match is_pattern {
        true => pattern == channel,
        false => glob::matches(pattern, channel),
    })
}

/// The places of the channels for which a call needs a right, and whether they are patterns.
fn channels(entry: &Entry, args: Args<'_>) -> (std::ops::Range<usize>, bool) {
    match entry.name {
        "publish" | "spublish" => (1..2, false),
        "subscribe" | "ssubscribe" => (1..args.len(), false),
        "psubscribe" => (1..args.len(), true),
        _ => (0..0, false),
    }
}
