//! Commands of the server itself.

use std::sync::Arc;
use std::time::Duration;

use drumlin_redis_store::{DATABASES, Failure, Outcome};
use drumlin_resp::integer;

use crate::accounts;
use crate::call::{Call, SYNTAX};
use crate::cmd::debug;
use crate::command::{Command, Flags, NO_KEYS};
use crate::config::Config;
use crate::config_rewrite;
use crate::listen::listen_anew;
use crate::log::Level;
use crate::permit;
use crate::session::Watched;
use crate::state::{ServerState, Shutdown};
use crate::tls;

/// The version that clients are told: they switch features on by it.
pub(super) const REDIS_VERSION: &str = "7.0.15";

const TELL: Flags = Flags::LOADING.and(Flags::STALE);
const ADMIN: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(TELL);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("bgrewriteaof", 1, ADMIN, NO_KEYS, bgrewriteaof),
    Command::new("bgsave", -1, ADMIN, NO_KEYS, bgsave),
    Command::new("compact", 1, ADMIN, NO_KEYS, compact),
    Command::new("config", -2, ADMIN, NO_KEYS, config),
    Command::new("debug", -2, ADMIN, NO_KEYS, debug),
    Command::new("flushall", -1, Flags::WRITE, NO_KEYS, flushall),
    Command::new("flushdb", -1, Flags::WRITE, NO_KEYS, flushdb),
    Command::new("lastsave", 1, TELL.and(Flags::FAST), NO_KEYS, lastsave),
    Command::new(
        "lolwut",
        -1,
        Flags::READONLY.and(Flags::FAST),
        NO_KEYS,
        lolwut,
    ),
    Command::new("save", 1, ADMIN.and(Flags::NO_MULTI), NO_KEYS, save),
    Command::new(
        "shutdown",
        -1,
        ADMIN.and(Flags::NO_MULTI),
        NO_KEYS,
        shutdown,
    ),
    Command::new("swapdb", 3, Flags::WRITE.and(Flags::FAST), NO_KEYS, swapdb),
    Command::new("time", 1, TELL.and(Flags::FAST), NO_KEYS, time),
];

fn time(call: &mut Call<'_, '_>) -> Outcome<()> {
    let micros = call.server()?.now_micros;
    call.reply.array(2);
    call.reply.bulk((micros / 1_000_000).to_string().as_bytes());
    call.reply.bulk((micros % 1_000_000).to_string().as_bytes());
    Ok(())
}

fn lolwut(call: &mut Call<'_, '_>) -> Outcome<()> {
    let text = format!("Redis ver. {REDIS_VERSION}\n");
    call.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// Names that DEBUG takes with a value, without an effect.
const DEBUG_SWITCHES: [&str; 3] = [
    "pause-cron",
    "quicklist-packed-threshold",
    "set-skip-checksum-validation",
];

fn debug(call: &mut Call<'_, '_>) -> Outcome<()> {
    match call.len() {
        3 if call.is(1, "set-active-expire") => {
            let on = call.is(2, "1");
            call.server()?.expires_actively = on;
        }
        3 if call.is(1, "set-disable-deny-scripts") => {
            let denies = call.is(2, "0");
            call.server()?.scripts.denies = denies;
        }
        2 if call.is(1, "jmap") => {}
        // Nothing here has these switches, and no test that sets them needs an effect.
        3 if DEBUG_SWITCHES.iter().any(|name| call.is(1, name)) => {}
        4 if call.is(1, "replybuffer") => {}
        2 if call.is(1, "change-repl-id") => {}
        3 if call.is(1, "log") => {}
        3 if call.is(1, "error") => {
            let text = String::from_utf8_lossy(call.arg(2)).into_owned();
            return Err(Failure::because(text));
        }
        3 if call.is(1, "protocol") => return debug::protocol(call),
        3 if call.is(1, "object") => return debug::object(call),
        3..=5 if call.is(1, "populate") => debug::populate(call)?,
        2 if call.is(1, "digest") => return super::digest::reply_all(call),
        2.. if call.is(1, "digest-value") => return super::digest::reply_values(call),
        2.. if call.is(1, "reload") => debug::reload(call)?,
        2 if call.is(1, "loadaof") => {}
        3 if call.is(1, "sleep") => {
            let seconds = std::str::from_utf8(call.arg(2)).ok();
            let seconds: f64 = seconds.and_then(|it| it.parse().ok()).unwrap_or(0.0);
            let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            // The server answers nobody meanwhile, which is the purpose.
            call.server()?.observer.env.clock.sleep(time);
        }
        _ => {
            let name = String::from_utf8_lossy(call.arg(1)).into_owned();
            let name: String = name.chars().take(128).collect();
            return Err(Failure::because(format!(
                "ERR unknown subcommand or wrong number of arguments for '{name}'. Try DEBUG HELP."
            )));
        }
    }
    call.reply.ok();
    Ok(())
}

// Databases.

fn check_flush_options(call: &Call<'_, '_>) -> Outcome<()> {
    match call.len() {
        1 => Ok(()),
        2 if call.is(1, "async") || call.is(1, "sync") => Ok(()),
        _ => Err(SYNTAX),
    }
}

fn flushdb(call: &mut Call<'_, '_>) -> Outcome<()> {
    check_flush_options(call)?;
    clear(call, call.keys.db())?;
    call.server()?.tracker.cleared();
    call.tell_replicas_all();
    call.reply.ok();
    Ok(())
}

fn flushall(call: &mut Call<'_, '_>) -> Outcome<()> {
    check_flush_options(call)?;
    (0..DATABASES).try_for_each(|db| clear(call, db))?;
    call.server()?.tracker.cleared();
    call.tell_replicas_all();
    call.reply.ok();
    Ok(())
}

/// Deletes all keys of `db`, and tells those that watch any of them or wait for one.
fn clear(call: &mut Call<'_, '_>, db: u16) -> Outcome<()> {
    let own = call.keys.db();
    call.keys.select(db);
    let watched = call.server()?.watching.of_db(db);
    for (watched, _) in watched {
        if call.keys.lookup(&watched.key)?.is_some() {
            call.keys.overlay().touch(db, &watched.key);
        }
    }
    if !call.keys.is_empty()? {
        call.keys.clear();
        call.server()?.waiting.signal_db(db);
    }
    call.keys.select(own);
    Ok(())
}

fn swapdb(call: &mut Call<'_, '_>) -> Outcome<()> {
    let number =
        |at: usize, which: &'static str| integer(call.arg(at)).ok_or(Failure::refused(which));
    let one = number(1, "ERR invalid first DB index")?;
    let other = number(2, "ERR invalid second DB index")?;
    let in_range = |number: i64| {
        let number = u16::try_from(number)
            .ok()
            .filter(|number| *number < DATABASES);
        number.ok_or(Failure::refused("ERR DB index is out of range"))
    };
    let (one, other) = (in_range(one)?, in_range(other)?);
    if one == other {
        call.reply.ok();
        return Ok(());
    }
    let own = call.keys.db();
    // A watched key changes where either database has it.
    for (db, twin) in [(one, other), (other, one)] {
        for (watched, clients) in call.server()?.watching.of_db(db) {
            let mut exists = false;
            for db in [db, twin] {
                call.keys.select(db);
                exists |= call.keys.lookup(&watched.key)?.is_some();
            }
            if exists {
                call.keys.overlay().touch(db, &watched.key);
            } else if call.keys.has_expired(&watched.key)? {
                // It was not there, and still is not to be seen.
                clients
                    .into_iter()
                    .try_for_each(|id| watches_expired(call, id, &watched))?;
            }
        }
        call.server()?.waiting.signal_db(db);
    }
    call.keys.select(own);
    call.keys.swap(one, other);
    call.reply.ok();
    Ok(())
}

/// Has a client watch the key as one that has expired.
fn watches_expired(call: &mut Call<'_, '_>, id: u64, watched: &Watched) -> Outcome<()> {
    let own = call.session.id == id;
    if own {
        call.session.watched.insert(watched.clone(), true);
    } else if let Some(session) = call.server()?.clients.get_mut(id) {
        session.watched.insert(watched.clone(), true);
    }
    Ok(())
}

// The disk.

fn save(call: &mut Call<'_, '_>) -> Outcome<()> {
    save_now(call)?;
    call.reply.ok();
    Ok(())
}

fn bgsave(call: &mut Call<'_, '_>) -> Outcome<()> {
    if call.len() > 2 || call.len() == 2 && !call.is(1, "schedule") {
        return Err(SYNTAX);
    }
    save_now(call)?;
    call.reply.simple(b"Background saving started");
    Ok(())
}

/// There is no file of commands to be written anew. What it is asked for, that all is on disk, is done as a save does it.
fn bgrewriteaof(call: &mut Call<'_, '_>) -> Outcome<()> {
    save_now(call)?;
    call.reply
        .simple(b"Background append only file rewriting started");
    Ok(())
}

/// Everything is in the WAL, which a round writes before its replies: a save is a sync, and the loop asks for one.
fn save_now(call: &mut Call<'_, '_>) -> Outcome<()> {
    let server = call.server()?;
    server.asks_sync = true;
    server.saved_seqno = server.store.db().latest_seqno();
    server.last_save_seconds = server.now_seconds;
    Ok(())
}

fn lastsave(call: &mut Call<'_, '_>) -> Outcome<()> {
    let seconds = call.server()?.last_save_seconds;
    call.reply
        .integer(i64::try_from(seconds).unwrap_or(i64::MAX));
    Ok(())
}

fn compact(call: &mut Call<'_, '_>) -> Outcome<()> {
    call.server()?.asks_compaction = true;
    call.reply.ok();
    Ok(())
}

fn shutdown(call: &mut Call<'_, '_>) -> Outcome<()> {
    let words = ["nosave", "save", "now", "force", "abort"];
    if (1..call.len()).any(|at| !words.iter().any(|word| call.is(at, word))) {
        return Err(SYNTAX);
    }
    let has = |word: &str| (1..call.len()).any(|at| call.is(at, word));
    let has_others = words.iter().any(|word| *word != "abort" && has(word));
    if has("abort") && has_others || has("save") && has("nosave") {
        return Err(SYNTAX);
    }
    if has("abort") {
        // It is carried out at the end of the turn.
        return Err(Failure::refused("ERR No shutdown in progress."));
    }
    let how = match has("nosave") {
        true => Shutdown::NoSave,
        false => Shutdown::Save,
    };
    call.server()?.shutdown = Some(how);
    // The connection ends without a reply, as Redis's does.
    call.session.is_killed = true;
    Ok(())
}

// The configuration.

fn config(call: &mut Call<'_, '_>) -> Outcome<()> {
    let len = call.len();
    match () {
        () if call.is(1, "get") && len >= 3 => {
            let patterns: Vec<&[u8]> = call.args.from(2).iter().collect();
            let server = call.server()?;
            let found = server.config.matching(&patterns);
            let found: Vec<_> = found
                .map(|(name, value)| (name, value.to_owned()))
                .collect();
            call.reply.map(found.len());
            for (name, value) in found {
                call.reply.bulk(name.as_bytes());
                call.reply.bulk(value.as_bytes());
            }
            Ok(())
        }
        () if call.is(1, "set") && len >= 4 && len.is_multiple_of(2) => {
            let args: Vec<&[u8]> = call.args.from(2).iter().collect();
            let pairs = args.chunks_exact(2);
            let pairs: Vec<(&[u8], &[u8])> = pairs
                .filter_map(|pair| Some((*pair.first()?, *pair.get(1)?)))
                .collect();
            let elsewhere = Failure::refused("ERR CONFIG runs on the server's own thread");
            let server = call.server.as_deref_mut().ok_or(elsewhere)?;
            let may = permit::is_enabled(server, call.session, "enable-protected-configs");
            set(server, &pairs, may)?;
            call.reply.ok();
            Ok(())
        }
        () if call.is(1, "rewrite") && len == 2 => rewrite(call),
        () if call.is(1, "resetstat") && len == 2 => {
            let server = call.server()?;
            server.counters = crate::state::Counters::default();
            server.observer.stats.clear();
            call.reply.ok();
            Ok(())
        }
        () if call.is(1, "help") && len == 2 => super::reply_help(call, CONFIG_HELP),
        () => Err(call.unknown_subcommand("CONFIG")),
    }
}

/// Names that say where the server listens.
const LISTENING: [&[u8]; 4] = [b"bind", b"metrics-port", b"port", b"tls-port"];

/// Takes values over, all or none. Those of TLS have its files read anew: a certificate may be another under the same name.
fn set(server: &mut ServerState, pairs: &[(&[u8], &[u8])], may_set_protected: bool) -> Outcome<()> {
    let mut config = server.config.clone();
    config
        .set_all(pairs, may_set_protected)
        .map_err(Failure::because)?;
    let failed = |name: &[u8], reason: &str| {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        Failure::because(format!(
            "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
        ))
    };
    let names: Vec<Vec<u8>> = pairs.iter().map(|it| it.0.to_ascii_lowercase()).collect();
    let mut tls = None;
    if let Some(name) = names.iter().find(|name| name.starts_with(b"tls-")) {
        let loaded = tls::load(&config, &server.observer.env).map_err(|reason| {
            failed(
                name,
                &format!("Unable to update TLS configuration. {reason}"),
            )
        })?;
        tls = Some(loaded);
    }
    let listening = names.iter().find(|it| LISTENING.contains(&it.as_slice()));
    if let Some(name) = listening.filter(|_| !listens(server, &config)) {
        return Err(match name.as_slice() {
            b"bind" => failed(name, "Failed to bind to specified addresses."),
            _ => failed(name, "Unable to listen on this port. Check server logs."),
        });
    }
    server.tls = tls.unwrap_or_else(|| server.tls.take());
    server.config = config;
    server.configure();
    if names.iter().any(|name| name == b"requirepass") {
        let password = server.config.get("requirepass").as_bytes();
        server.users.set_default_password(password);
    }
    Ok(())
}

/// Listens where `config` says; whether it does. If not, the log has the reason.
fn listens(server: &mut ServerState, config: &Config) -> bool {
    let network = Arc::clone(&server.replication.network);
    let Err(error) = listen_anew(config, &*network, &mut server.net) else {
        return true;
    };
    let fields = [("error", error.to_string())];
    let journal = &mut server.journal;
    let message = "the server listens where it did, as it cannot listen elsewhere";
    journal.tell_once(Level::Warning, "listen", message, &fields);
    false
}

/// Writes the configuration's file while the loop waits: an operator's rare command, of a small file.
fn rewrite(call: &mut Call<'_, '_>) -> Outcome<()> {
    let server = call.server()?;
    let Some(path) = server.config.file() else {
        return Err(Failure::refused(
            "ERR The server is running without a config file",
        ));
    };
    let env = &server.observer.env;
    let users = accounts::lines(server).map_err(Failure::because)?;
    config_rewrite::rewrite(&server.config, &users, env, path)
        .map_err(|error| Failure::because(format!("ERR Rewriting config file: {error}")))?;
    call.reply.ok();
    Ok(())
}

const CONFIG_HELP: &[&str] = &[
    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET <pattern>",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Set the configuration <directive> to <value>.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "REWRITE",
    "    Rewrite the configuration file.",
    "HELP",
    "    Prints this help.",
];
