//! Users, as documents of `admin.system.users`, which no other command reads or writes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use drumlin_base::sync::atomic::{AtomicBool, Ordering};
use drumlin_doc::{Builder, Code, Document, Kind, OwnedValue, Refusal, Value, keystring};
use drumlin_doc_store::{Failure, Name, Outcome, Step, Store};

use super::roles::Role;
use super::scram::{Credentials, Mechanism};

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) database: String,
    pub(crate) name: String,
    pub(crate) roles: Vec<Role>,
    pub(crate) credentials: Vec<(&'static str, Credentials)>,
}

/// All of them, in the store.
#[derive(Debug)]
pub(crate) struct Users {
    /// Whether who is nobody may do nothing.
    pub(crate) is_needed: bool,
    /// Whether there is any user: until then the first may be made by anybody.
    any: AtomicBool,
    /// What salts of users are made of that are not there.
    pub(crate) secret: [u8; 32],
}

fn collection() -> Name {
    Name::new("admin", "system.users")
}

fn key_of(database: &str, name: &str) -> Vec<u8> {
    keystring::key_of(OwnedValue::string(&format!("{database}.{name}")).get())
}

impl Users {
    pub(crate) fn new(store: &Store, is_needed: bool) -> Self {
        let found = store.collection(&collection());
        Self {
            is_needed,
            any: AtomicBool::new(found.is_some_and(|users| users.documents() > 0)),
            secret: store.random_bytes(),
        }
    }

    /// Whether anybody may make the first user.
    pub(crate) fn is_first(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// The user of that name in that database.
    ///
    /// # Errors
    /// Of the store.
    pub(crate) fn find(&self, store: &Store, database: &str, name: &str) -> Outcome<Option<User>> {
        let reads = store.reads();
        let Some(users) = reads.collection(&collection()) else {
            return Ok(None);
        };
        let found = reads.document(&users, &key_of(database, name))?;
        found.map(|it| User::decode(Document(&it))).transpose()
    }

    /// All users of a database.
    ///
    /// # Errors
    /// Of the store.
    pub(crate) fn all(&self, store: &Store, database: &str) -> Outcome<Vec<User>> {
        let reads = store.reads();
        let mut all = Vec::new();
        if let Some(users) = reads.collection(&collection()) {
            let filter = drumlin_doc::Filter::And(Vec::new());
            let sort = drumlin_doc::Sort::default();
            let plan = drumlin_doc_store::plan(&reads, &users, &filter, &sort, u64::MAX)?;
            drumlin_doc_store::Walk::new(plan).go_on(&reads, &users, &mut |_, document| {
                all.push(User::decode(document)?);
                Ok(true)
            })?;
        }
        all.retain(|user| user.database == database);
        Ok(all)
    }

    /// Adds a user.
    ///
    /// # Errors
    /// `Location51003` where there is one of that name; of the store.
    pub(crate) fn add(&self, store: &Store, user: &User) -> Outcome<()> {
        store.create_for_server(&collection())?;
        let document = user.encode();
        let done = store.insert(&collection(), &[Document(&document)], true)?;
        let error = done.and_then(|done| done.errors.into_iter().next());
        match error {
            None => {
                self.any.store(true, Ordering::Release);
                Ok(())
            }
            Some((_, refusal)) if refusal.code == Code::DuplicateKey => {
                let text = format!("User \"{}@{}\" already exists", user.name, user.database);
                Err(Refusal::new(Code::UserExists, text).into())
            }
            Some((_, refusal)) => Err(refusal.into()),
        }
    }

    /// Puts a user in the place of that of the same name, or removes it; whether it was there.
    ///
    /// # Errors
    /// Of the store.
    pub(crate) fn change(
        &self,
        store: &Store,
        (database, name): (&str, &str),
        new: Option<&User>,
    ) -> Outcome<bool> {
        if store.collection(&collection()).is_none() {
            return Ok(false);
        }
        let done = store.modify(&collection(), &key_of(database, name), &mut |_| {
            Ok(match new {
                Some(new) => Step::Replace(new.encode()),
                None => Step::Delete,
            })
        })?;
        Ok(done.before.is_some())
    }
}

impl User {
    fn encode(&self) -> Vec<u8> {
        let mut out = Builder::new();
        out.str("_id", &format!("{}.{}", self.database, self.name))
            .str("user", &self.name)
            .str("db", &self.database)
            .open(Kind::Document, "credentials");
        for (name, credentials) in &self.credentials {
            let text = |bytes: &[u8]| STANDARD.encode(bytes);
            out.open(Kind::Document, name)
                .i64("iterationCount", i64::from(credentials.iterations))
                .str("salt", &text(&credentials.salt))
                .str("storedKey", &text(&credentials.stored_key))
                .str("serverKey", &text(&credentials.server_key))
                .close();
        }
        out.close();
        self.write_roles(&mut out);
        out.finish()
    }

    pub(crate) fn write_roles(&self, out: &mut Builder) {
        out.open(Kind::Array, "roles");
        for (at, role) in self.roles.iter().enumerate() {
            out.open(Kind::Document, at.to_string())
                .str("role", &role.name)
                .str("db", &role.database)
                .close();
        }
        out.close();
    }

    fn decode(document: Document<'_>) -> Outcome<Self> {
        let damaged = || {
            let error = drumlin::Error::corruption("a user in admin.system.users is not whole");
            Failure::Engine(error)
        };
        let text = |of: Document<'_>, name: &str| {
            let found = of.get(name).and_then(Value::as_str);
            found.map(str::to_owned).ok_or_else(damaged)
        };
        let mut roles = Vec::new();
        let listed = document.get("roles").and_then(Value::as_array);
        for role in listed.ok_or_else(damaged)? {
            let role = role.value.as_document().ok_or_else(damaged)?;
            roles.push(Role {
                name: text(role, "role")?,
                database: text(role, "db")?,
            });
        }
        let mut credentials = Vec::new();
        let kept = document.get("credentials").and_then(Value::as_document);
        for one in kept.ok_or_else(damaged)? {
            let mechanism = Mechanism::of(one.name_str()).ok_or_else(damaged)?;
            let of = one.value.as_document().ok_or_else(damaged)?;
            let bytes = |name: &str| STANDARD.decode(text(of, name)?).map_err(|_| damaged());
            let iterations = of.get("iterationCount").and_then(Value::as_whole);
            credentials.push((
                mechanism.name(),
                Credentials {
                    iterations: iterations
                        .and_then(|it| u32::try_from(it).ok())
                        .ok_or_else(damaged)?,
                    salt: bytes("salt")?,
                    stored_key: bytes("storedKey")?,
                    server_key: bytes("serverKey")?,
                },
            ));
        }
        Ok(Self {
            database: text(document, "db")?,
            name: text(document, "user")?,
            roles,
            credentials,
        })
    }

    /// What is kept for a mechanism.
    pub(crate) fn credentials_of(&self, mechanism: Mechanism) -> Option<&Credentials> {
        let found = self
            .credentials
            .iter()
            .find(|(name, _)| *name == mechanism.name());
        found.map(|(_, credentials)| credentials)
    }
}
