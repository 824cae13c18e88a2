//! Users as the configuration and the file of users have them, and clients whose users are gone.

use std::path::Path;

use drumlin::{Error, Result};
use drumlin_fs::{CreateOptions, Env, FileKind};

use crate::acl::{self, User, UserId, Users, has_spaces};
use crate::config::{Config, UserLine};
use crate::session::Session;
use crate::state::ServerState;

/// Longest file of users.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The users of the configuration or of `aclfile`, before anybody comes.
///
/// # Errors
/// `InvalidArgument` with the place of what makes no sense; of the file system.
pub(crate) fn load(config: &Config, env: &Env) -> Result<Users> {
    let mut users = Users::default();
    users.all_channels = config.get("acl-pubsub-default") == "allchannels";
    users.set_default_password(config.get("requirepass").as_bytes());
    let has_file = !config.get("aclfile").is_empty();
    if has_file && !config.users().is_empty() {
        return Err(Error::invalid_argument(
            "users are in the configuration, and it names an aclfile: one of the two is to go",
        ));
    }
    for line in config.users() {
        let user = of_line(&users, line);
        let at = |reason: String| Error::invalid_argument(format!("{}: {reason}", line.place));
        users.put(user.map_err(at)?);
    }
    if has_file {
        let read = read(&users, config, env).map_err(Error::invalid_argument)?;
        users.replace(read);
    }
    Ok(users)
}

fn of_line(users: &Users, line: &UserLine) -> std::result::Result<User, String> {
    let (name, rules) = line.words.split_first().ok_or("a user has no name")?;
    if has_spaces(name) {
        return Err("the name of a user has no spaces".to_owned());
    }
    // The default user is told whole, as all others.
    let first: &[&[u8]] = match name.as_slice() {
        b"default" => &[b"reset"],
        _ => &[],
    };
    let rules: Vec<&[u8]> = rules.iter().map(Vec::as_slice).collect();
    users.changed(name, &[first, &rules].concat())
}

fn read(users: &Users, config: &Config, env: &Env) -> std::result::Result<Vec<User>, String> {
    let name = config.get("aclfile");
    let text = env.files.read_file(Path::new(name), FILE_BYTES_MAX);
    let text =
        text.map_err(|error| format!("Error loading ACLs, opening file '{name}': {error}"))?;
    acl::parse(&text, name, users.all_channels)
}

/// Takes the users of `aclfile` for all there were, and closes the clients of those who are gone; those are told.
///
/// # Errors
/// As Redis words them; then nothing has changed.
pub(crate) fn read_file(state: &mut ServerState) -> std::result::Result<Vec<UserId>, String> {
    let users = read(&state.users, &state.config, &state.observer.env)?;
    let gone = state.users.replace(users);
    close(state, &gone);
    Ok(gone)
}

/// Writes all users into `aclfile`: the old one stays until the new one is whole.
///
/// # Errors
/// The file system's.
pub(crate) fn write_file(state: &ServerState) -> Result<()> {
    let path = Path::new(state.config.get("aclfile"));
    replace_file(&state.observer.env, path, &acl::write(state.users.iter()))
}

/// The lines of all users for the configuration's file: none where they have a file of their own.
///
/// # Errors
/// For a user whose rules are not UTF-8, as the configuration's file is.
pub(crate) fn lines(state: &ServerState) -> std::result::Result<Vec<String>, String> {
    if !state.config.get("aclfile").is_empty() {
        return Ok(Vec::new());
    }
    let line = |user: &User| {
        let line = [&user.name[..], b" ", &acl::describe(user)].concat();
        String::from_utf8(line).map_err(|_| {
            let name = String::from_utf8_lossy(&user.name);
            format!("ERR Rewriting config file: the rules of user '{name}' are not UTF-8; an aclfile may have them")
        })
    };
    state.users.iter().map(line).collect()
}

/// Writes a file in the place of another.
///
/// # Errors
/// The file system's.
pub(crate) fn replace_file(env: &Env, path: &Path, text: &[u8]) -> Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".tmp-{}", std::process::id()));
    let new = Path::new(&new);
    let mut file = env.files.create(new, CreateOptions::new(FileKind::Other))?;
    file.append(text)?;
    file.sync()?;
    file.close()?;
    env.files.rename(new, path)?;
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    env.files.sync_dir(parent.unwrap_or(Path::new(".")))
}

/// Closes the clients of users who are gone. Until they are closed they are the default user who has not authenticated.
pub(crate) fn close(state: &mut ServerState, gone: &[UserId]) {
    let of_gone = |user: Option<UserId>| user.is_some_and(|id| gone.contains(&id));
    let clients = state.clients.others();
    let ids: Vec<u64> = clients
        .filter(|session| of_gone(session.user))
        .map(|session| session.id)
        .collect();
    for id in ids {
        if let Some(session) = state.clients.get_mut(id) {
            session.user = Some(UserId::DEFAULT);
            session.is_authenticated = false;
        }
        state.clients.kill(id);
    }
}

/// Puts a user in the place of an older one, and closes the clients who may not listen any more to what they listen to. Whether the
/// client whose command runs is one of them.
pub(crate) fn change(state: &mut ServerState, user: User, own: &Session) -> bool {
    let found = state.users.find(&user.name);
    let Some((id, old)) = found.map(|(id, old)| (id, old.clone())) else {
        state.users.put(user);
        return false;
    };
    let ends = |session: &Session| {
        let channels = session.channels.iter().chain(&session.shard_channels);
        let patterns = session.patterns.iter().map(|it| (it, true));
        let listens_to = channels.map(|it| (it, false)).chain(patterns);
        session.user == Some(id)
            && session.subscriptions() > 0
            && !user.may_listen_on(&old, listens_to)
    };
    let clients = state.clients.others();
    let ids: Vec<u64> = clients.filter(|it| ends(it)).map(|it| it.id).collect();
    for id in ids {
        state.clients.kill(id);
    }
    let ends_own = ends(own);
    state.users.put(user);
    ends_own
}
