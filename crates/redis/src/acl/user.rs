//! A user.

use drumlin_resp::Args;

use super::password::{self, Hash};
use super::selector::{Denial, Denied, Selector, takes_channel};
use crate::catalog::{self, Entry, KeyFlags, KeyPlace};

/// What a user says about the checks of payloads that are restored. They are always made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sanitize {
    #[default]
    Unsaid,
    Never,
    Always,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: Vec<u8>,
    pub(super) is_on: bool,
    /// Any password is right.
    pub(crate) needs_no_password: bool,
    pub(super) sanitize: Sanitize,
    pub(crate) passwords: Vec<Hash>,
    pub(crate) root: Selector,
    pub(crate) others: Vec<Selector>,
    /// One of the selectors allows everything.
    is_unlimited: bool,
}

impl User {
    /// One that is off and may do nothing.
    pub(super) fn new(name: &[u8], all_channels: bool) -> Self {
        Self {
            name: name.to_vec(),
            is_on: false,
            needs_no_password: false,
            sanitize: Sanitize::default(),
            passwords: Vec::new(),
            root: Selector::new(all_channels),
            others: Vec::new(),
            is_unlimited: false,
        }
    }

    /// The one who everybody is at first, unless the operator says otherwise.
    pub(super) fn everybody() -> Self {
        let mut user = Self::new(b"default", false);
        user.root.set_all_commands(true);
        (user.root.all_keys, user.root.all_channels) = (true, true);
        (user.is_on, user.needs_no_password) = (true, true);
        user.is_unlimited = true;
        user
    }

    /// Notes whether it may do everything, after its selectors have changed.
    pub(super) fn note_limits(&mut self) {
        let is_unlimited = self.selectors().any(Selector::is_unlimited);
        self.is_unlimited = is_unlimited;
    }

    /// The names of what it is, as Redis tells them.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &'static str> {
        let sanitize = match self.sanitize {
            Sanitize::Unsaid => None,
            Sanitize::Never => Some("skip-sanitize-payload"),
            Sanitize::Always => Some("sanitize-payload"),
        };
        let nopass = self.needs_no_password.then_some("nopass");
        let on = if self.is_on { "on" } else { "off" };
        [Some(on), nopass, sanitize].into_iter().flatten()
    }

    /// The root first.
    pub(super) fn selectors(&self) -> impl Iterator<Item = &Selector> {
        [&self.root].into_iter().chain(&self.others)
    }

    /// Whether somebody who says this password is this user.
    pub(super) fn has_password(&self, password: &[u8]) -> bool {
        // Worked out in any case: the time tells nobody whether there is such a user.
        let is_right = password::is_among(password, &self.passwords);
        self.is_on && (self.needs_no_password || is_right)
    }

    /// Sets the only password; any is right if it is empty.
    pub(super) fn set_password(&mut self, password: &[u8]) {
        self.needs_no_password = password.is_empty();
        self.passwords.clear();
        if !password.is_empty() {
            self.passwords.push(password::hash(password));
        }
    }

    /// Whether nobody has to authenticate as this user.
    pub(super) fn is_open(&self) -> bool {
        self.is_on && self.needs_no_password
    }

    /// What the call needs that no selector allows: of several selectors what the last key or channel is about, rather than the
    /// command.
    pub(crate) fn lacks(&self, entry: &Entry, args: Args<'_>) -> Option<Denied> {
        if self.is_unlimited {
            return None;
        }
        let keys = keys_of(entry, args);
        let mut worst = Denied {
            what: Denial::Command,
            at: 0,
        };
        for selector in self.selectors() {
            worst = worst.max(selector.lacks(entry, args, &keys)?);
        }
        Some(worst)
    }

    /// Whether a selector allows the call, and every key to be used so.
    pub(crate) fn may_with_all_keys(&self, entry: &Entry, args: Args<'_>, flags: KeyFlags) -> bool {
        let keys = keys_of(entry, args);
        self.selectors()
            .any(|it| it.has_all_keys(flags) && it.lacks(entry, args, &keys).is_none())
    }

    /// Whether a selector allows the command, which reads, with any keys.
    pub(crate) fn may_read_all_by(&self, entry: &Entry) -> bool {
        let mut selectors = self.selectors();
        self.is_unlimited
            || selectors.any(|it| it.has_all_keys(KeyFlags::ACCESS) && it.has_command(entry))
    }

    /// Whether a client who subscribed as `old` may go on as this one, who has the same name. What it listens to are names and whether
    /// they are patterns.
    pub(crate) fn may_listen_on<'a>(
        &self,
        old: &Self,
        mut listens_to: impl Iterator<Item = (&'a Vec<u8>, bool)>,
    ) -> bool {
        if self.selectors().any(|it| it.all_channels) {
            return true;
        }
        let new: Vec<_> = self
            .selectors()
            .flat_map(|it| it.channels.clone())
            .collect();
        let mut before = old.selectors();
        before.all(|it| !it.all_channels && it.channels.iter().all(|it| new.contains(it)))
            || listens_to.all(|(name, is_pattern)| takes_channel(&new, name, is_pattern))
    }
}

fn keys_of(entry: &Entry, args: Args<'_>) -> Vec<KeyPlace> {
    match catalog::has_keys(entry) {
        true => catalog::key_places(entry, args),
        false => Vec::new(),
    }
}
