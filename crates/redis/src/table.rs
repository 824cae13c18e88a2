//! All commands. A family of commands has its table beside its handlers.

use std::collections::HashMap;

use crate::catalog;
use crate::cmd;
use crate::command::{Command, Handler};
use crate::facts::Facts;
use crate::known::Known;

/// Longest name of a command.
const NAME_BYTES_MAX: usize = 32;

/// Commands by name.
#[derive(Debug)]
pub(crate) struct Table {
    by_name: HashMap<Vec<u8>, Command>,
    /// By their places in the catalogue, whatever clients call them.
    handlers: Vec<Option<Handler>>,
}

impl Table {
    /// The table of all families; `renames` are old and new names in lower case, of which an empty one takes a command away.
    ///
    /// # Errors
    /// A sentence, if a name is not known or is there twice.
    pub(crate) fn new(renames: &[(String, String)]) -> Result<Self, String> {
        let families = [
            cmd::acl::COMMANDS,
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
            cmd::module::COMMANDS,
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
        let mut by_name = HashMap::new();
        let mut handlers = vec![None; catalog::all().len()];
        for mut command in families.into_iter().flatten().copied() {
            let entry = catalog::find(command.facts.name.as_bytes());
            let entry = entry.expect("the catalogue has every command");
            command.facts.index = u16::try_from(entry.index).unwrap_or(u16::MAX);
            if let Some(place) = handlers.get_mut(entry.index) {
                *place = Some(command.handler);
            }
            by_name.insert(command.facts.name.as_bytes().to_vec(), command);
        }
        for (old, new) in renames {
            let found = by_name.remove(old.as_bytes());
            let command = found.ok_or_else(|| format!("there is no command '{old}'"))?;
            if new.is_empty() {
                continue;
            }
            if new.len() > NAME_BYTES_MAX {
                return Err(format!("the name '{new}' is too long"));
            }
            if by_name.insert(new.as_bytes().to_vec(), command).is_some() {
                return Err(format!("there is a command '{new}' already"));
            }
        }
        Ok(Self { by_name, handlers })
    }

    /// The command called `name`, in any case.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Command> {
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.by_name.get(&*lower)
    }

    /// The command that was found before, by its facts.
    ///
    /// # Panics
    /// When it was found elsewhere: the table does not change.
    pub(crate) fn get(&self, facts: &Facts) -> Command {
        let handler = self.handlers.get(usize::from(facts.index)).copied();
        Command {
            facts: *facts,
            handler: handler.flatten().expect("it was found here"),
        }
    }

    /// The facts of all of them, by the names that clients call them.
    pub(crate) fn known(&self) -> Known {
        let facts = self.by_name.iter();
        Known::new(facts.map(|(name, command)| (name.clone(), command.facts)))
    }
}

#[cfg(test)]
mod tests {
    use super::Table;
    use crate::facts::Flags;

    fn renamed(old: &str, new: &str) -> Result<Table, String> {
        Table::new(&[(old.to_owned(), new.to_owned())])
    }

    /// Goal: what commands are dispatched by is what clients are told. Method: the facts of each beside the catalogue's.
    #[test]
    fn the_facts_of_commands_are_the_catalogues() {
        let flags = [
            (Flags::WRITE, "write"),
            (Flags::READONLY, "readonly"),
            (Flags::DENYOOM, "denyoom"),
            (Flags::BLOCKING, "blocking"),
            (Flags::NO_AUTH, "no_auth"),
            (Flags::FAST, "fast"),
            (Flags::NO_MULTI, "no_multi"),
        ];
        let table = Table::new(&[]).expect("a table");
        for facts in table.known().all() {
            let (entry, keys) = (facts.entry(), facts.keys);
            assert_eq!((facts.name, facts.arity), (entry.name, entry.arity));
            let positions = [keys.first, keys.last, keys.step].map(i64::from);
            // Those of a family are its subcommands'.
            if !entry.is_family() {
                assert_eq!(positions, entry.positions, "{}", facts.name);
                for (flag, name) in flags {
                    let told = (facts.name, name, entry.is(name));
                    assert_eq!((facts.name, name, facts.flags.has(flag)), told);
                }
            }
        }
    }

    /// Goal: commands have other names or none if the operator wants so. Method: renames that make sense and some that do not.
    #[test]
    fn commands_are_renamed_and_taken_away() {
        let table = renamed("config", "secret").expect("a table");
        assert!(table.find(b"config").is_none());
        let found = table.find(b"SECRET").expect("it is there");
        assert_eq!(found.facts.name, "config");
        assert!(
            renamed("flushall", "")
                .expect("a table")
                .find(b"flushall")
                .is_none()
        );
        assert!(renamed("get", "set").is_err());
        assert!(renamed("nothing", "x").is_err());
    }
}
