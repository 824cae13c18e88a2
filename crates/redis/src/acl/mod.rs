//! Users, and what each may do: the access control lists of Redis 7.0.
//!
//! A user has selectors: a set of commands, patterns of keys and patterns of channels each. A call is allowed if one selector allows
//! all of it. `rules` changes a user as an operator words it, `describe` says it back in the same words.
//!
//! ```text
//! users -> file -> rules, describe -> user -> selector, password -> catalog
//! ```

mod describe;
mod file;
mod key_pattern;
mod log;
mod merge;
mod password;
mod rule_error;
mod rules;
mod selector;
mod spaces;
mod user;
mod users;

pub(crate) use describe::{channels_of, commands_of, describe, keys_of};
pub(crate) use file::{parse, write};
pub(crate) use log::{Context, LogEntry, Reason};
pub(crate) use password::hex;
pub(crate) use selector::{Denial, Denied, Selector};
pub(crate) use spaces::has_spaces;
pub(crate) use user::User;
pub(crate) use users::{UserId, Users};
