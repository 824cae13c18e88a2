//! Who may do what: users, their passwords by SCRAM, their roles.

mod peers;
mod roles;
mod scram;
mod users;

pub(crate) use peers::{Peer, Peers};
pub(crate) use roles::{Need, Role, may};
pub(crate) use scram::{Credentials, Exchange, Mechanism, failed, first};
pub(crate) use users::{User, Users};
