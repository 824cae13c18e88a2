//! All commands. A family of commands has its table beside its handlers.

use std::collections::HashMap;

use crate::cmd;
use crate::command::Command;
use crate::facts::Facts;

/// Longest name of a command.
const NAME_BYTES_MAX: usize = 32;

/// Commands by name.
#[derive(Debug)]
pub(crate) struct Table {
    by_name: HashMap<&'static [u8], Command>,
}

impl Table {
    /// The table of all families.
    pub(crate) fn new() -> Self {
        let families = [
            cmd::bitfield::COMMANDS,
            cmd::bitmap::COMMANDS,
            cmd::client::COMMANDS,
            cmd::cluster::COMMANDS,
            cmd::command::COMMANDS,
            cmd::connection::COMMANDS,
            cmd::dump::COMMANDS,
            cmd::failover::COMMANDS,
            cmd::field_expiry::COMMANDS,
            cmd::function::COMMANDS,
            cmd::generic::COMMANDS,
            cmd::geo::COMMANDS,
            cmd::hash::COMMANDS,
            cmd::hyperloglog::COMMANDS,
            cmd::lcs::COMMANDS,
            cmd::info::COMMANDS,
            cmd::list::COMMANDS,
            cmd::memory::COMMANDS,
            cmd::migrate::COMMANDS,
            cmd::multi::COMMANDS,
            cmd::observe::COMMANDS,
            cmd::pubsub::COMMANDS,
            cmd::replication::COMMANDS,
            cmd::script::COMMANDS,
            cmd::server::COMMANDS,
            cmd::set::COMMANDS,
            cmd::sort::COMMANDS,
            cmd::stream::COMMANDS,
            cmd::string::COMMANDS,
            cmd::zset::COMMANDS,
        ];
        let mut commands: Vec<Command> = families.into_iter().flatten().copied().collect();
        commands.sort_by_key(|command| command.facts.name);
        for (index, command) in commands.iter_mut().enumerate() {
            command.facts.index = u16::try_from(index).unwrap_or(u16::MAX);
        }
        let commands = commands.into_iter();
        let by_name: HashMap<_, _> = commands
            .map(|command| (command.facts.name.as_bytes(), command))
            .collect();
        Self { by_name }
    }

    /// The command called `name`, in any case.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Command> {
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.by_name.get(&*lower)
    }

    /// The facts of all of them, by name.
    pub(crate) fn all(&self) -> Vec<Facts> {
        let mut all: Vec<_> = self.by_name.values().map(|command| command.facts).collect();
        all.sort_by_key(|facts| facts.name);
        all
    }
}
