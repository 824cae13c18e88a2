//! The facts about a command that are asked for each call.

use drumlin_redis_store::Outcome;
use drumlin_resp::Args;

use crate::catalog::{self, Entry};

/// Facts about a command, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    /// None of these.
    pub(crate) const NONE: Self = Self(0);
    /// May change keys.
    pub(crate) const WRITE: Self = Self(1);
    /// Reads keys and changes none.
    pub(crate) const READONLY: Self = Self(1 << 1);
    /// May need more memory or disk: refused when there is none.
    pub(crate) const DENYOOM: Self = Self(1 << 2);
    pub(crate) const ADMIN: Self = Self(1 << 3);
    pub(crate) const PUBSUB: Self = Self(1 << 4);
    pub(crate) const NOSCRIPT: Self = Self(1 << 5);
    /// May wait for a key.
    pub(crate) const BLOCKING: Self = Self(1 << 6);
    pub(crate) const LOADING: Self = Self(1 << 7);
    pub(crate) const STALE: Self = Self(1 << 8);
    /// Allowed before authentication.
    pub(crate) const NO_AUTH: Self = Self(1 << 9);
    pub(crate) const FAST: Self = Self(1 << 10);
    pub(crate) const MOVABLE_KEYS: Self = Self(1 << 11);
    /// Refused inside MULTI.
    pub(crate) const NO_MULTI: Self = Self(1 << 12);
    /// Walks all keys: outside of MULTI it runs on a thread that may wait for the disk.
    pub(crate) const WALKS: Self = Self(1 << 13);
    pub(crate) const SKIP_MONITOR: Self = Self(1 << 14);
    /// Reads keys, and may keep with them what it worked out: it runs where and when commands that write do.
    pub(crate) const KEEPS: Self = Self(1 << 15);
    /// Runs on a node that is importing the slot.
    pub(crate) const ASKING: Self = Self(1 << 16);
    pub(crate) const NO_MANDATORY_KEYS: Self = Self(1 << 17);
    /// Runs a script, and with it other commands: not by its handler.
    pub(crate) const SCRIPT: Self = Self(1 << 18);
    /// A family of subcommands some of which write, which clients are not told of the family.
    pub(crate) const FAMILY_WRITES: Self = Self(1 << 19);
    /// A script that declares what it does: the other flags are its own.
    pub(crate) const DECLARED: Self = Self(1 << 20);
    pub(crate) const NO_ASYNC_LOADING: Self = Self(1 << 24);
    /// Runs while a script is busy.
    pub(crate) const ALLOW_BUSY: Self = Self(1 << 25);

    /// These and those.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without those.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether a command may change what is stored.
    pub(crate) const fn may_write(self) -> bool {
        let is_script = self.has(Self::SCRIPT) && !self.has(Self::READONLY);
        self.has(Self::WRITE) || self.has(Self::KEEPS) || self.has(Self::FAMILY_WRITES) || is_script
    }

    /// Whether all of `other` are among these.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Where the keys are among the arguments: the first (0: there are none), the last (from the end if negative) and the
/// distance from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPositions {
    pub(crate) first: i32,
    pub(crate) last: i32,
    pub(crate) step: i32,
}

/// No keys.
pub(crate) const NO_KEYS: KeyPositions = KeyPositions {
    first: 0,
    last: 0,
    step: 0,
};
/// One key, the first argument.
pub(crate) const ONE_KEY: KeyPositions = KeyPositions {
    first: 1,
    last: 1,
    step: 1,
};
/// Every argument is a key.
pub(crate) const ALL_KEYS: KeyPositions = KeyPositions {
    first: 1,
    last: -1,
    step: 1,
};
/// The first two arguments are keys.
pub(crate) const TWO_KEYS: KeyPositions = KeyPositions {
    first: 1,
    last: 2,
    step: 1,
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// In lower case.
    pub(crate) name: &'static str,
    /// The number of arguments with the name; at least so many if negative.
    pub(crate) arity: i32,
    pub(crate) flags: Flags,
    pub(crate) keys: KeyPositions,
    /// Its place in the catalogue, which the table gives it.
    pub(crate) index: u16,
}

impl Facts {
    /// What the catalogue has of it.
    pub(crate) fn entry(&self) -> &'static Entry {
        catalog::get(usize::from(self.index))
    }

    /// What the arguments ask for: the command, or a subcommand of it.
    ///
    /// # Errors
    /// As Redis words them: for a subcommand that is not known, or has another number of arguments.
    pub(crate) fn resolve(&self, args: Args<'_>) -> Outcome<&'static Entry> {
        catalog::resolve(self.entry(), args)
    }

    /// Whether the keys that it looks up count as hits and misses of INFO: those of commands that read.
    pub(crate) fn counts_lookups(&self) -> bool {
        match self.flags.has(Flags::READONLY) {
            true => self.name != "memory",
            false => matches!(self.name, "getset" | "getdel" | "getex"),
        }
    }

    /// Whether it can have so many arguments, the name counted.
    pub(crate) fn takes(&self, args: usize) -> bool {
        let args = i32::try_from(args).unwrap_or(i32::MAX);
        match self.arity >= 0 {
            true => args == self.arity,
            false => args >= -self.arity,
        }
    }

    /// The positions of the keys among `args` arguments, the name counted.
    pub(crate) fn key_positions(&self, args: usize) -> impl Iterator<Item = usize> + use<> {
        let KeyPositions { first, last, step } = self.keys;
        let args = i32::try_from(args).unwrap_or(i32::MAX);
        let last = if last < 0 { args + last } else { last };
        let has_keys = first > 0;
        (first..=last.min(args - 1))
            .step_by(step.max(1) as usize)
            .filter(move |_| has_keys)
            .map(|at| at as usize)
    }
}
