//! What fuzzers look at.

use drumlin_resp::OwnedArgs;

use crate::acl::{self, User};
use crate::catalog;

/// The users of an ACL file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersFile(Vec<User>);

impl UsersFile {
    /// Of a text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        acl::parse(text, "the file", false).map(Self)
    }

    /// The text that is written for them.
    pub fn text(&self) -> Vec<u8> {
        acl::write(self.0.iter())
    }

    /// What each user lacks for a call, from the name of the command on; nothing for a command that is not there.
    pub fn lacks(&self, call: &[&[u8]]) -> Vec<String> {
        let args: OwnedArgs = call.iter().copied().collect();
        let found = call.first().and_then(|name| catalog::find(name));
        let Some(entry) = found.and_then(|entry| catalog::lookup(entry, args.args())) else {
            return Vec::new();
        };
        let users = self.0.iter();
        users
            .map(|user| format!("{:?}", user.lacks(entry, args.args())))
            .collect()
    }
}
