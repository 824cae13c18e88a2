//! `createUser`, `updateUser`, `dropUser`, `usersInfo`.

use drumlin_doc::{Builder, Code, Kind, Refusal, Value};
use drumlin_doc_store::Outcome;

use crate::auth::{Credentials, Mechanism, Need, Role, User, may};

use super::call::Call;

fn name<'a>(call: &Call<'a>) -> Result<&'a str, Refusal> {
    let first = call.body.iter().next().map(|first| first.value);
    let name = first
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty());
    name.ok_or_else(|| Refusal::bad_value(format!("{} needs the name of a user", call.name)))
}

fn roles(call: &Call<'_>) -> Result<Option<Vec<Role>>, Refusal> {
    let Some(roles) = call.body.get("roles") else {
        return Ok(None);
    };
    let wrong = || Refusal::bad_value("a role is a name, or a document of role and db");
    let items = roles.as_array().ok_or_else(wrong)?;
    let one = |item: drumlin_doc::Element<'_>| match item.value.as_document() {
        Some(role) => {
            let part = |name: &str| role.get(name).and_then(Value::as_str).ok_or_else(wrong);
            Role::new(part("role")?, part("db")?)
        }
        None => Role::new(item.value.as_str().ok_or_else(wrong)?, call.database),
    };
    items.iter().map(one).collect::<Result<_, _>>().map(Some)
}

/// The roles that the command gives, each in a database that is the caller's own: nobody gives what it could not take.
///
/// # Errors
/// `Unauthorized`, and those of [`roles`].
fn granted(call: &Call<'_>) -> Result<Option<Vec<Role>>, Refusal> {
    let granted = roles(call)?;
    let users = &call.shared.users;
    if !users.is_needed || users.is_first() {
        return Ok(granted);
    }
    let own = call.shared.peers.get(call.connection).roles();
    for role in granted.iter().flatten() {
        if !may(&own, Need::Own, &role.database) {
            let text = format!(
                "Not authorized to grant role: {}@{}",
                role.name, role.database
            );
            return Err(Refusal::new(Code::Unauthorized, text));
        }
    }
    Ok(granted)
}

/// What is kept of the password, for each mechanism.
fn credentials(
    call: &Call<'_>,
    user: &str,
) -> Result<Option<Vec<(&'static str, Credentials)>>, Refusal> {
    let Some(password) = call.body.get("pwd") else {
        return Ok(None);
    };
    let wrong = || Refusal::bad_value("pwd has to be a string that is not empty");
    let password = password.as_str().filter(|password| !password.is_empty());
    let password = password.ok_or_else(wrong)?;
    if call
        .body
        .get("digestPassword")
        .is_some_and(|flag| !flag.is_truthy())
    {
        return Err(Refusal::bad_value(
            "passwords that the client has digested are not supported by this server",
        ));
    }
    let mut wanted = Vec::new();
    match call.body.get("mechanisms").and_then(Value::as_array) {
        Some(items) => {
            for item in items {
                let mechanism = item.value.as_str().and_then(Mechanism::of);
                let wrong = || {
                    Refusal::bad_value(format!(
                        "unknown mechanism {}",
                        drumlin_doc::show(item.value)
                    ))
                };
                wanted.push(mechanism.ok_or_else(wrong)?);
            }
        }
        None => wanted.extend(Mechanism::ALL),
    }
    let random = call.shared.store.random_bytes::<28>();
    let one = |mechanism: Mechanism| {
        let salt = random
            .get(..mechanism.salt_bytes())
            .unwrap_or(&random)
            .to_vec();
        Ok((
            mechanism.name(),
            mechanism.credentials(user, password, salt)?,
        ))
    };
    wanted
        .into_iter()
        .map(one)
        .collect::<Result<_, _>>()
        .map(Some)
}

const OF_A_USER: &[&str] = &["pwd", "roles", "mechanisms", "digestPassword"];
const UNSERVED: &[&str] = &["customData", "authenticationRestrictions"];

/// `createUser`.
pub(super) fn create(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(OF_A_USER, UNSERVED)?;
    let name = name(call)?;
    let missing = |what: &str| Refusal::bad_value(format!("createUser needs {what}"));
    let user = User {
        database: call.database.to_owned(),
        name: name.to_owned(),
        roles: granted(call)?.ok_or_else(|| missing("an array of roles"))?,
        credentials: credentials(call, name)?.ok_or_else(|| missing("a password as pwd"))?,
    };
    call.shared.users.add(&call.shared.store, &user)?;
    call.shared.store.sync()?;
    Ok(Builder::new())
}

fn missing(call: &Call<'_>, name: &str) -> Refusal {
    let text = format!("User '{name}@{}' not found", call.database);
    Refusal::new(Code::UserNotFound, text)
}

/// `updateUser`: another password, other roles. Whoever is that user has to say so again.
pub(super) fn update(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(OF_A_USER, UNSERVED)?;
    let name = name(call)?;
    let shared = call.shared;
    let found = shared.users.find(&shared.store, call.database, name)?;
    let mut user = found.ok_or_else(|| missing(call, name))?;
    let (roles, credentials) = (granted(call)?, credentials(call, name)?);
    if roles.is_none() && credentials.is_none() {
        return Err(Refusal::bad_value("updateUser needs a pwd or roles").into());
    }
    user.roles = roles.unwrap_or(user.roles);
    user.credentials = credentials.unwrap_or(user.credentials);
    changed(call, name, Some(&user))
}

/// `dropUser`.
pub(super) fn remove(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(&[], &[])?;
    changed(call, name(call)?, None)
}

fn changed(call: &Call<'_>, name: &str, new: Option<&User>) -> Outcome<Builder> {
    let shared = call.shared;
    let which = (call.database, name);
    if !shared.users.change(&shared.store, which, new)? {
        return Err(missing(call, name).into());
    }
    shared.peers.log_out(call.database, name);
    shared.store.sync()?;
    Ok(Builder::new())
}

/// `usersInfo`: of a database, or of one user.
pub(super) fn list(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(
        &["showCredentials", "showPrivileges", "showCustomData"],
        &["filter", "showAuthenticationRestrictions"],
    )?;
    let shared = call.shared;
    let first = call
        .body
        .iter()
        .next()
        .map_or(Value::NULL, |first| first.value);
    let one = |name: &str, database: &str| {
        let found = shared.users.find(&shared.store, database, name)?;
        Ok::<_, drumlin_doc_store::Failure>(found.into_iter().collect())
    };
    let users: Vec<User> = match (first.as_str(), first.as_document()) {
        (Some(name), _) => one(name, call.database)?,
        (_, Some(of)) if first.kind == Kind::Document => {
            let part = |name: &str| of.get(name).and_then(Value::as_str).unwrap_or_default();
            match part("db") == call.database || call.database == "admin" {
                true => one(part("user"), part("db"))?,
                false => {
                    return Err(Refusal::bad_value(
                        "usersInfo of another database is asked for in admin",
                    )
                    .into());
                }
            }
        }
        _ => shared.users.all(&shared.store, call.database)?,
    };
    let mut reply = Builder::new();
    reply.open(Kind::Array, "users");
    for (at, user) in users.iter().enumerate() {
        reply
            .open(Kind::Document, at.to_string())
            .str("_id", &format!("{}.{}", user.database, user.name))
            .str("user", &user.name)
            .str("db", &user.database);
        user.write_roles(&mut reply);
        reply.open(Kind::Array, "mechanisms");
        for (at, (name, _)) in user.credentials.iter().enumerate() {
            reply.str(at.to_string(), name);
        }
        reply.close().close();
    }
    reply.close();
    Ok(reply)
}

/// The mechanisms of a user, as `hello` tells them who asks: `db.user`.
pub(super) fn mechanisms(call: &Call<'_>, of: &str, reply: &mut Builder) {
    let Some((database, name)) = of.split_once('.') else {
        return;
    };
    let shared = call.shared;
    if let Ok(Some(user)) = shared.users.find(&shared.store, database, name) {
        reply.open(Kind::Array, "saslSupportedMechs");
        for (at, (name, _)) in user.credentials.iter().enumerate() {
            reply.str(at.to_string(), name);
        }
        reply.close();
    }
}
