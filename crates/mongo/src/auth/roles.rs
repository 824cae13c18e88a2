//! Roles of users, those of MongoDB that are served, and what they allow.

use drumlin_doc::{Code, Refusal};

/// A role in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) database: String,
}

/// What a command is allowed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Anybody may.
    Nothing,
    /// To read its database.
    Read,
    /// To write to its database.
    Write,
    /// To do with its database what is to be done.
    Own,
    /// To see and set what is the server's.
    Server,
}

const OF_ONE: [&str; 3] = ["read", "readWrite", "dbOwner"];
const OF_ALL: [&str; 4] = [
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "clusterMonitor",
    "root",
];

impl Role {
    /// The role of that name in a database.
    ///
    /// # Errors
    /// `RoleNotFound` for names that are not served.
    pub(crate) fn new(name: &str, database: &str) -> Result<Self, Refusal> {
        let is_known = OF_ONE.contains(&name) || database == "admin" && OF_ALL.contains(&name);
        match is_known {
            true => Ok(Self {
                name: name.to_owned(),
                database: database.to_owned(),
            }),
            false => {
                let text = format!(
                    "Could not find role: {name}@{database}: this server has {} in any database, {} in admin",
                    OF_ONE.join(", "),
                    OF_ALL.join(", ")
                );
                Err(Refusal::new(Code::RoleNotFound, text))
            }
        }
    }

    fn allows(&self, need: Need, database: &str) -> bool {
        let is_own = self.database == database;
        match self.name.as_str() {
            "root" => true,
            "readWriteAnyDatabase" => matches!(need, Need::Read | Need::Write),
            "readAnyDatabase" => need == Need::Read,
            "clusterMonitor" => need == Need::Server,
            "dbOwner" => is_own && need != Need::Server,
            "readWrite" => is_own && matches!(need, Need::Read | Need::Write),
            "read" => is_own && need == Need::Read,
            _ => false,
        }
    }
}

/// Whether the roles allow it in a database.
pub(crate) fn may(roles: &[Role], need: Need, database: &str) -> bool {
    need == Need::Nothing
        || roles.iter().any(|role| role.allows(need, database))
        || drumlin_base::bug!("mongo-reads-for-all") && need == Need::Read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_allow_what_they_are_for() {
        let role = |name: &str, database: &str| vec![Role::new(name, database).expect("a role")];
        let read = role("read", "a");
        assert!(may(&read, Need::Read, "a") && !may(&read, Need::Read, "b"));
        assert!(!may(&read, Need::Write, "a") && !may(&[], Need::Read, "a"));
        assert!(may(&[], Need::Nothing, "a"));
        let write = role("readWrite", "a");
        assert!(may(&write, Need::Write, "a") && !may(&write, Need::Own, "a"));
        let own = role("dbOwner", "a");
        assert!(
            may(&own, Need::Own, "a")
                && !may(&own, Need::Own, "admin")
                && !may(&own, Need::Server, "a")
        );
        let any = role("readWriteAnyDatabase", "admin");
        assert!(may(&any, Need::Write, "b") && !may(&any, Need::Server, "admin"));
        assert!(may(&role("root", "admin"), Need::Server, "admin"));
        assert!(Role::new("root", "a").is_err() && Role::new("nonsense", "admin").is_err());
    }
}
