//! What is known of connections: who they are, and the conversation in which they tell it.

use std::collections::HashMap;

use drumlin_base::sync::Mutex;

use super::roles::Role;
use super::scram::Exchange;
use super::users::User;

/// What is known of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// Who it is. One user of a database at a time.
    pub(crate) users: Vec<User>,
    /// The conversation: its number, the user it is about, and, until the proof came, the rest of it.
    pub(crate) conversation: Option<(i32, User, Option<Exchange>)>,
    /// Whether it ends with the server's last message, and no empty one comes.
    pub(crate) skips_last: bool,
}

impl Peer {
    /// All roles of all its users.
    pub(crate) fn roles(&self) -> Vec<Role> {
        let all = self.users.iter().flat_map(|user| user.roles.iter());
        all.cloned().collect()
    }
}

/// All connections that have said anything of themselves.
#[derive(Debug, Default)]
pub(crate) struct Peers(Mutex<HashMap<u64, Peer>>);

impl Peers {
    pub(crate) fn get(&self, connection: u64) -> Peer {
        self.0.lock().get(&connection).cloned().unwrap_or_default()
    }

    pub(crate) fn set(&self, connection: u64, peer: Peer) {
        self.0.lock().insert(connection, peer);
    }

    /// Forgets a connection that is over.
    pub(crate) fn forget(&self, connection: u64) {
        self.0.lock().remove(&connection);
    }

    /// A user was changed or removed: nobody is that one any more.
    pub(crate) fn log_out(&self, database: &str, name: &str) {
        for peer in self.0.lock().values_mut() {
            peer.users
                .retain(|user| !(user.database == database && user.name == name));
            peer.conversation = None;
        }
    }
}
