//! All users.

use std::collections::BTreeMap;

use super::log::AclLog;
use super::rules::apply_all;
use super::user::User;

/// The number of a user, which no other user of this run gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UserId(usize);

impl UserId {
    /// Of the user called `default`, who is always there.
    pub(crate) const DEFAULT: Self = Self(0);
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Users {
    by_name: BTreeMap<Vec<u8>, UserId>,
    /// By number; `None` for one who is deleted.
    all: Vec<Option<Box<User>>>,
    /// A new selector allows all channels, `acl-pubsub-default`.
    pub(crate) all_channels: bool,
    pub(crate) log: AclLog,
}

impl Default for Users {
    fn default() -> Self {
        let mut users = Self {
            by_name: BTreeMap::new(),
            all: Vec::new(),
            all_channels: false,
            log: AclLog::default(),
        };
        users.put(User::everybody());
        users
    }
}

impl Users {
    /// The user of this number, if not deleted.
    pub(crate) fn get(&self, id: UserId) -> Option<&User> {
        self.all.get(id.0)?.as_deref()
    }

    /// The user of this name, and the number.
    pub(crate) fn find(&self, name: &[u8]) -> Option<(UserId, &User)> {
        let id = *self.by_name.get(name)?;
        Some((id, self.get(id)?))
    }

    /// All of them, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &User> {
        self.by_name.values().filter_map(|id| self.get(*id))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether nobody needs to authenticate to be the default user.
    pub(crate) fn are_open(&self) -> bool {
        self.get(UserId::DEFAULT).is_some_and(User::is_open)
    }

    /// Whether any password is the default user's.
    pub(crate) fn default_needs_no_password(&self) -> bool {
        let default = self.get(UserId::DEFAULT);
        default.is_some_and(|user| user.needs_no_password)
    }

    /// The user who says this name and this password.
    pub(crate) fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<UserId> {
        match self.find(name) {
            Some((id, user)) => user.has_password(password).then_some(id),
            None => {
                // Takes as long as if there were such a user.
                let nobody = User::new(name, false);
                nobody.has_password(password);
                None
            }
        }
    }

    /// The user called `name` with further rules, or a new one; nothing is changed yet.
    ///
    /// # Errors
    /// As Redis words them.
    pub(crate) fn changed(&self, name: &[u8], rules: &[&[u8]]) -> Result<User, String> {
        let known = self.find(name).map(|(_, user)| user.clone());
        let mut user = known.unwrap_or_else(|| User::new(name, self.all_channels));
        apply_all(&mut user, rules, self.all_channels)?;
        Ok(user)
    }

    /// Puts a user in the place of the one with the same name, or adds one.
    pub(crate) fn put(&mut self, user: User) {
        match self.by_name.get(&user.name) {
            Some(id) => {
                if let Some(place) = self.all.get_mut(id.0) {
                    *place = Some(Box::new(user));
                }
            }
            None => {
                let id = UserId(self.all.len());
                self.by_name.insert(user.name.clone(), id);
                self.all.push(Some(Box::new(user)));
            }
        }
    }

    /// Deletes a user; the number, if there was one. The default user stays.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<UserId> {
        if name == b"default" {
            return None;
        }
        let id = self.by_name.remove(name)?;
        if let Some(place) = self.all.get_mut(id.0) {
            *place = None;
        }
        Some(id)
    }

    /// Takes the users of a file for all there were; those who are deleted.
    pub(crate) fn replace(&mut self, users: Vec<User>) -> Vec<UserId> {
        let old: Vec<Vec<u8>> = self.by_name.keys().cloned().collect();
        let gone = old.iter().filter_map(|name| self.remove(name)).collect();
        self.put(User::everybody());
        users.into_iter().for_each(|user| self.put(user));
        gone
    }

    /// Sets the password of the default user; none if it is empty.
    pub(crate) fn set_default_password(&mut self, password: &[u8]) {
        let Some(Some(user)) = self.all.get_mut(UserId::DEFAULT.0) else {
            return;
        };
        user.set_password(password);
    }
}
