//! The table of commands, and how one is run.

use std::cell::Cell;
use std::time::Duration;

use drumlin::ErrorKind;
use drumlin_doc::{Builder, Code, Document, Refusal, watched};
use drumlin_doc_store::{Failure, Outcome, Pace};

use crate::auth::{Need, may};
use crate::counters::COMMANDS_MAX;
use crate::shared::Shared;

use super::call::Call;
use super::concerns::{asks_for_nothing, syncs_reads, syncs_writes};
use super::refusals::{refusal_of, refused};
use super::{
    aggregate, bulk_write, collections, cursor, delete, diagnosis, explain, find, find_and_modify,
    handshake, indexes, insert, options, sasl, server_status, stable_api, update, users, values,
};

type Run = fn(&Call<'_>) -> Outcome<Builder>;

/// Commands by their names. `aliases` follow.
const COMMANDS: &[(&str, Run)] = &[
    ("aggregate", aggregate::aggregate),
    ("buildInfo", handshake::build_info),
    ("buildinfo", handshake::build_info),
    ("bulkWrite", bulk_write::bulk_write),
    ("cloneCollectionAsCapped", options::convert),
    ("collMod", options::modify),
    ("collStats", diagnosis::collection_stats),
    ("collstats", diagnosis::collection_stats),
    ("compact", diagnosis::compact),
    ("connectionStatus", handshake::connection_status),
    ("convertToCapped", options::convert),
    ("count", values::count),
    ("create", collections::create),
    ("createIndexes", indexes::create),
    ("createUser", users::create),
    ("dbStats", diagnosis::database_stats),
    ("dbstats", diagnosis::database_stats),
    ("delete", delete::delete),
    ("distinct", values::distinct),
    ("drop", collections::drop_collection),
    ("dropDatabase", collections::drop_database),
    ("dropIndexes", indexes::drop_indexes),
    ("dropUser", users::remove),
    ("endSessions", handshake::ok),
    ("explain", explain::explain),
    ("find", find::find),
    ("findAndModify", find_and_modify::find_and_modify),
    ("findandmodify", find_and_modify::find_and_modify),
    ("getCmdLineOpts", diagnosis::command_line),
    ("getLog", diagnosis::log),
    ("getMore", cursor::get_more),
    ("getParameter", diagnosis::parameters),
    ("hello", handshake::hello),
    ("hostInfo", diagnosis::host),
    ("insert", insert::insert),
    ("isMaster", handshake::hello),
    ("ismaster", handshake::hello),
    ("killCursors", cursor::kill_cursors),
    ("listCollections", collections::list_collections),
    ("listCommands", list_commands),
    ("listDatabases", collections::list_databases),
    ("listIndexes", indexes::list),
    ("logout", sasl::logout),
    ("ping", handshake::ok),
    ("refreshSessions", handshake::ok),
    ("renameCollection", collections::rename),
    ("saslContinue", sasl::go_on),
    ("saslStart", sasl::start),
    ("serverStatus", server_status),
    ("setParameter", diagnosis::set_parameter),
    ("startSession", handshake::start_session),
    ("update", update::update),
    ("updateUser", users::update),
    ("usersInfo", users::list),
    ("validate", diagnosis::validate),
    ("whatsmyuri", handshake::uri),
];

const _: () = assert!(COMMANDS.len() <= COMMANDS_MAX);

/// The names of all, by their places.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(name, _)| *name)
}

/// Commands of MongoDB that are known and refused.
const REFUSED: &[&str] = &[
    "abortTransaction",
    "authenticate",
    "commitTransaction",
    "configureFailPoint",
    "createRole",
    "currentOp",
    "eval",
    "fsync",
    "geoNear",
    "group",
    "killOp",
    "mapReduce",
    "profile",
    "reIndex",
    "replSetGetStatus",
    "shutdown",
    "top",
];

/// The reply to a command: a document with `ok`.
pub(crate) fn run(
    shared: &Shared,
    connection: u64,
    body: Document<'_>,
    sequences: &[(&str, Vec<Document<'_>>)],
) -> Vec<u8> {
    let begin = shared.env.clock.monotonic();
    let call = call(shared, connection, body, sequences);
    let outcome = run_call(&call);
    told(&call, outcome, begin)
}

/// As [`run`], or for how long the reply is to be waited for, after which the command is run again: nothing was done then.
///
/// # Errors
/// That time.
pub(crate) fn run_or_wait(
    shared: &Shared,
    connection: u64,
    body: Document<'_>,
    sequences: &[(&str, Vec<Document<'_>>)],
) -> Result<Vec<u8>, Duration> {
    let begin = shared.env.clock.monotonic();
    let pause = Cell::new(None);
    let mut call = call(shared, connection, body, sequences);
    call.pause = Some(&pause);
    let outcome = run_call(&call);
    match pause.get() {
        Some(pause) => Err(pause),
        None => Ok(told(&call, outcome, begin)),
    }
}

/// The reply to a command, if it is about one document, or few new ones, and need not wait. Otherwise nothing was done.
pub(crate) fn run_at_once(
    shared: &Shared,
    connection: u64,
    body: Document<'_>,
    sequences: &[(&str, Vec<Document<'_>>)],
) -> Option<Vec<u8>> {
    let begin = shared.env.clock.monotonic();
    let mut call = call(shared, connection, body, sequences);
    call.pace = Pace::AtOnce;
    let is_short = match call.name {
        "find" => find::is_lookup(&call),
        "insert" => insert::is_short(&call),
        "update" => update::is_of_one_id(&call),
        _ => false,
    };
    if !is_short {
        return None;
    }
    let outcome = run_call(&call);
    match &outcome {
        Err(Failure::Engine(error)) if error.kind() == ErrorKind::Incomplete => None,
        _ => Some(told(&call, outcome, begin)),
    }
}

fn call<'a>(
    shared: &'a Shared,
    connection: u64,
    body: Document<'a>,
    sequences: &'a [(&'a str, Vec<Document<'a>>)],
) -> Call<'a> {
    let first = body.iter().next();
    let database = body.get("$db").and_then(|database| database.as_str());
    Call {
        shared,
        connection,
        database: database.unwrap_or_default(),
        name: first.map(|first| first.name_str()).unwrap_or_default(),
        body,
        sequences,
        pace: Pace::InTurn,
        pause: None,
        refused: 0,
    }
}

/// Its place in the table.
fn place_of(call: &Call<'_>) -> Option<usize> {
    COMMANDS.iter().position(|(known, _)| *known == call.name)
}

/// The reply to a command that began then; it is counted.
fn told(call: &Call<'_>, outcome: Outcome<Builder>, begin: Duration) -> Vec<u8> {
    let shared = call.shared;
    let duration = shared.env.clock.monotonic().saturating_sub(begin);
    shared
        .counters
        .ran(call.name, place_of(call), outcome.is_err(), duration);
    match outcome {
        Ok(mut reply) => {
            reply.f64("ok", 1.0);
            reply.finish()
        }
        Err(failure) => refused(&refusal_of(failure)),
    }
}

/// What a command is allowed by. What is not named here may be done by the owner of its database.
fn need_of(name: &str) -> Need {
    match name {
        "buildInfo" | "buildinfo" | "connectionStatus" | "endSessions" | "hello" | "isMaster"
        | "ismaster" | "listCommands" | "logout" | "ping" | "refreshSessions" | "saslContinue"
        | "saslStart" | "startSession" | "whatsmyuri" => Need::Nothing,
        "aggregate" | "collStats" | "collstats" | "count" | "dbStats" | "dbstats" | "distinct"
        | "explain" | "find" | "getMore" | "killCursors" | "listCollections" | "listIndexes" => {
            Need::Read
        }
        "bulkWrite" | "convertToCapped" | "create" | "createIndexes" | "delete" | "drop"
        | "dropIndexes" | "findAndModify" | "findandmodify" | "insert" | "renameCollection"
        | "update" => Need::Write,
        "getCmdLineOpts" | "getLog" | "getParameter" | "hostInfo" | "listDatabases"
        | "serverStatus" | "setParameter" => Need::Server,
        _ => Need::Own,
    }
}

/// The databases that a command is about.
fn databases_of(call: &Call<'_>) -> Vec<String> {
    if call.name == "bulkWrite" {
        return bulk_write::databases(call);
    }
    match collections::names_of_rename(call) {
        Ok((from, to)) if call.name == "renameCollection" => vec![from.database, to.database],
        _ => vec![call.database.to_owned()],
    }
}

/// # Errors
/// `Unauthorized` for what the connection's users may not do. The first user of all may be made by anybody.
fn check_need(call: &Call<'_>) -> Result<(), Refusal> {
    let users = &call.shared.users;
    if !users.is_needed || call.name == "createUser" && users.is_first() {
        return Ok(());
    }
    let need = need_of(call.name);
    if need == Need::Nothing {
        return Ok(());
    }
    let peer = call.shared.peers.get(call.connection);
    let roles = peer.roles();
    if databases_of(call)
        .iter()
        .all(|database| may(&roles, need, database))
    {
        return Ok(());
    }
    let text = match peer.users.is_empty() {
        true => format!("Command {} requires authentication", call.name),
        false => format!(
            "not authorized on {} to execute command {}",
            call.database, call.name
        ),
    };
    Err(Refusal::new(Code::Unauthorized, text))
}

fn run_call(call: &Call<'_>) -> Outcome<Builder> {
    if call.database.is_empty() {
        return Err(
            Refusal::new(Code::UnknownField, "OP_MSG requests require a $db argument").into(),
        );
    }
    let found = place_of(call).and_then(|place| COMMANDS.get(place));
    check_need(call)?;
    let Some((_, run)) = found else {
        let name = call.name;
        return Err(match REFUSED.contains(&name) {
            true => Refusal::not_supported(format!("the command {name}")),
            false => Refusal::new(Code::CommandNotFound, format!("no such command: '{name}'")),
        }
        .into());
    };
    call.check_generic()?;
    stable_api::check(call)?;
    let look = call.look()?;
    if syncs_reads(call.name, call.body)? {
        call.shared.store.sync()?;
    }
    let is_synced = syncs_writes(call.name, call.body)?;
    let reply = match watched(look, || run(call))? {
        // Who does not ask is told nothing of what was done.
        _ if asks_for_nothing(call.name, call.body) => Builder::new(),
        reply => reply,
    };
    if is_synced && !drumlin_base::bug!("mongo-journaled-unsynced") {
        call.shared.store.sync()?;
    }
    Ok(reply)
}

fn server_status(call: &Call<'_>) -> Outcome<Builder> {
    server_status::server_status(call, names())
}

fn list_commands(_: &Call<'_>) -> Outcome<Builder> {
    let mut reply = Builder::new();
    reply.open(drumlin_doc::Kind::Document, "commands");
    for (name, _) in COMMANDS {
        reply
            .open(drumlin_doc::Kind::Document, name)
            .str("help", "see docs/mongo.md")
            .close();
    }
    reply.close();
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use drumlin::Options;
    use drumlin_doc::Kind;
    use drumlin_doc_store::{Name, Store, StoreOptions};
    use drumlin_fs::{CrashPolicy, Env, StrictMemFileSystem};

    use super::*;

    fn open(files: Arc<StrictMemFileSystem>) -> (Store, Env) {
        let env = Env::system().with_files(files);
        let engine = Options {
            env: env.clone(),
            background_threads: Some(0),
            memory_budget: Some(4 << 20),
            ..Options::default()
        };
        let store = Store::open(Path::new("/mongo"), StoreOptions { engine });
        (store.expect("opens"), env)
    }

    #[test]
    fn what_is_journaled_outlives_a_power_cut() {
        let files = Arc::new(StrictMemFileSystem::new());
        let (store, env) = open(Arc::clone(&files));
        let shared = Shared::new(store, env);
        for n in 0..20 {
            let mut body = Builder::new();
            body.str("insert", "c")
                .str("$db", "d")
                .open(Kind::Array, "documents");
            body.open(Kind::Document, "0").i32("_id", n).close().close();
            body.open(Kind::Document, "writeConcern");
            match n % 2 {
                0 => body.bool("j", true),
                _ => body.str("w", "majority"),
            };
            let reply = run(&shared, 1, Document(&body.finish()), &[]);
            assert_eq!(
                Document(&reply).get("n").and_then(|n| n.as_whole()),
                Some(1)
            );
            let image = files.crash_image(1, CrashPolicy::KeepNothing);
            let (copy, _) = open(Arc::new(image));
            let collection = copy.collection(&Name::new("d", "c")).expect("a collection");
            assert_eq!(collection.documents(), n as u64 + 1);
        }
    }

    #[test]
    fn the_tables_are_sorted_and_have_each_name_once() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.0 < b.0));
        assert!(REFUSED.is_sorted_by(|a, b| a < b));
        assert!(COMMANDS.iter().all(|(name, _)| !REFUSED.contains(name)));
    }
}
