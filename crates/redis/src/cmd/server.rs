//! Commands of the server itself.

use drumlin_redis_store::{DATABASES, Failure, Outcome};
use drumlin_resp::integer;

use crate::call::{Call, SYNTAX};
use crate::command::{Command, Flags, NO_KEYS};
use crate::state::{ServerState, Shutdown};

/// The version that clients are told: they switch features on by it.
pub(super) const REDIS_VERSION: &str = "7.0.15";

const TELL: Flags = Flags::LOADING.and(Flags::STALE);
const ADMIN: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(TELL);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("bgsave", -1, ADMIN, NO_KEYS, bgsave),
    Command::new("compact", 1, ADMIN, NO_KEYS, compact),
    Command::new("config", -2, ADMIN, NO_KEYS, config),
    Command::new("debug", -2, ADMIN, NO_KEYS, debug),
    Command::new("flushall", -1, Flags::WRITE, NO_KEYS, flushall),
    Command::new("flushdb", -1, Flags::WRITE, NO_KEYS, flushdb),
    Command::new("info", -1, TELL, NO_KEYS, info),
    Command::new("lastsave", 1, TELL.and(Flags::FAST), NO_KEYS, lastsave),
    Command::new(
        "lolwut",
        -1,
        Flags::READONLY.and(Flags::FAST),
        NO_KEYS,
        lolwut,
    ),
    Command::new(
        "role",
        1,
        Flags::NOSCRIPT.and(TELL).and(Flags::FAST),
        NO_KEYS,
        role,
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
    Command::new("wait", 3, Flags::NOSCRIPT, NO_KEYS, wait),
];

fn time(call: &mut Call<'_, '_>) -> Outcome<()> {
    let micros = call.server()?.now_micros;
    call.reply.array(2);
    call.reply.bulk((micros / 1_000_000).to_string().as_bytes());
    call.reply.bulk((micros % 1_000_000).to_string().as_bytes());
    Ok(())
}

fn role(call: &mut Call<'_, '_>) -> Outcome<()> {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
    Ok(())
}

/// There are no replicas to be waited for.
fn wait(call: &mut Call<'_, '_>) -> Outcome<()> {
    call.integer(1)?;
    let timeout = integer(call.arg(2));
    let timeout = timeout.ok_or(Failure::refused(
        "ERR timeout is not an integer or out of range",
    ))?;
    if timeout < 0 {
        return Err(Failure::refused("ERR timeout is negative"));
    }
    call.reply.integer(0);
    Ok(())
}

fn lolwut(call: &mut Call<'_, '_>) -> Outcome<()> {
    let text = format!("Redis ver. {REDIS_VERSION}\n");
    call.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

fn debug(call: &mut Call<'_, '_>) -> Outcome<()> {
    match call.len() {
        3 if call.is(1, "set-active-expire") => {
            let on = call.is(2, "1");
            call.server()?.expires_actively = on;
        }
        2 if call.is(1, "jmap") => {}
        _ => return Err(call.unknown_subcommand("DEBUG")),
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
    call.reply.ok();
    Ok(())
}

fn flushall(call: &mut Call<'_, '_>) -> Outcome<()> {
    check_flush_options(call)?;
    (0..DATABASES).try_for_each(|db| clear(call, db))?;
    call.reply.ok();
    Ok(())
}

/// Deletes all keys of `db`, and tells those that watch any of them.
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
        for (watched, _) in call.server()?.watching.of_db(db) {
            let mut exists = false;
            for db in [db, twin] {
                call.keys.select(db);
                exists |= call.keys.lookup(&watched.key)?.is_some();
            }
            if exists {
                call.keys.overlay().touch(db, &watched.key);
            }
        }
        call.server()?.waiting.signal_db(db);
    }
    call.keys.select(own);
    call.keys.swap(one, other);
    call.reply.ok();
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

/// Everything is in the WAL, which a round writes before its replies: a save is a sync, and the loop asks for one.
fn save_now(call: &mut Call<'_, '_>) -> Outcome<()> {
    let server = call.server()?;
    server.asks_sync = true;
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
    let mut how = Shutdown::Save;
    for at in 1..call.len() {
        match () {
            () if call.is(at, "nosave") => how = Shutdown::NoSave,
            () if call.is(at, "save") => how = Shutdown::Save,
            () if call.is(at, "now") || call.is(at, "force") => {}
            () if call.is(at, "abort") => {
                return Err(Failure::refused("ERR No shutdown in progress."));
            }
            () => return Err(SYNTAX),
        }
    }
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
            let server = call.server()?;
            server.config.set_all(&pairs).map_err(Failure::because)?;
            server.configure();
            call.reply.ok();
            Ok(())
        }
        () if call.is(1, "resetstat") && len == 2 => {
            call.server()?.counters = crate::state::Counters::default();
            call.reply.ok();
            Ok(())
        }
        () if call.is(1, "help") && len == 2 => super::reply_help(call, CONFIG_HELP),
        () => Err(call.unknown_subcommand("CONFIG")),
    }
}

const CONFIG_HELP: &[&str] = &[
    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET <pattern>",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Set the configuration <directive> to <value>.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "HELP",
    "    Print this help.",
];

// INFO.

/// A section: its name, whether it is among the default ones, and its lines.
type Section = (&'static str, bool, fn(&mut Call<'_, '_>) -> Outcome<String>);

const SECTIONS: &[Section] = &[
    ("server", true, info_server),
    ("clients", true, info_clients),
    ("memory", true, info_memory),
    ("persistence", true, info_persistence),
    ("stats", true, info_stats),
    ("replication", true, info_replication),
    ("cpu", true, |_| Ok(String::new())),
    ("commandstats", false, |_| Ok(String::new())),
    ("cluster", true, |_| Ok("cluster_enabled:0\r\n".to_owned())),
    ("keyspace", true, info_keyspace),
];

fn info(call: &mut Call<'_, '_>) -> Outcome<()> {
    let asked: Vec<Vec<u8>> = call
        .args
        .from(1)
        .iter()
        .map(<[u8]>::to_ascii_lowercase)
        .collect();
    let has = |name: &str| asked.iter().any(|asked| asked == name.as_bytes());
    let all = has("all") || has("everything");
    let by_default = asked.is_empty() || has("default");
    let mut text = String::new();
    for (name, is_default, lines) in SECTIONS {
        if all || has(name) || by_default && *is_default {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let mut title = (*name).to_owned();
            if let Some(first) = title.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            if *name == "cpu" {
                title = "CPU".to_owned();
            }
            text.push_str(&format!("# {title}\r\n{}", lines(call)?));
        }
    }
    call.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

fn info_server(call: &mut Call<'_, '_>) -> Outcome<String> {
    let server = call.server()?;
    let uptime = server.now_seconds.saturating_sub(server.started_seconds);
    Ok(format!(
        "redis_version:{REDIS_VERSION}\r\nredis_git_sha1:00000000\r\nredis_git_dirty:0\r\n\
         redis_mode:standalone\r\nserver_name:drumlin\r\ndrumlin_version:{}\r\narch_bits:64\r\n\
         multiplexing_api:epoll\r\nprocess_id:{}\r\nrun_id:{}\r\ntcp_port:{}\r\n\
         server_time_usec:{}\r\nuptime_in_seconds:{uptime}\r\nuptime_in_days:{}\r\nhz:10\r\n\
         configured_hz:10\r\nio_threads_active:0\r\n",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        server.run_id,
        server.config.get("port"),
        server.now_micros,
        uptime / 86_400,
    ))
}

fn info_clients(call: &mut Call<'_, '_>) -> Outcome<String> {
    let server = call.server()?;
    let blocked = server
        .clients
        .others()
        .filter(|session| session.blocked.is_some())
        .count();
    Ok(format!(
        "connected_clients:{}\r\ncluster_connections:0\r\nmaxclients:{}\r\nblocked_clients:{blocked}\r\n\
         tracking_clients:0\r\n",
        server.clients.len(),
        server.config.get("maxclients"),
    ))
}

fn info_memory(call: &mut Call<'_, '_>) -> Outcome<String> {
    let server = call.server()?;
    let used = server.store.memory_bytes();
    Ok(format!(
        "used_memory:{used}\r\nused_memory_dataset:{used}\r\nmaxmemory:{}\r\nmaxmemory_policy:{}\r\n\
         mem_allocator:system\r\n",
        server.config.get("maxmemory"),
        server.config.get("maxmemory-policy"),
    ))
}

fn info_persistence(call: &mut Call<'_, '_>) -> Outcome<String> {
    let server = call.server()?;
    let (newest, durable) = (
        server.store.db().latest_seqno(),
        server.store.db().durable_seqno(),
    );
    let is_healthy = server.store.db().health() == drumlin::Health::Healthy;
    let status = if is_healthy { "ok" } else { "err" };
    Ok(format!(
        "loading:0\r\nasync_loading:0\r\nrdb_bgsave_in_progress:0\r\nrdb_last_save_time:{}\r\n\
         rdb_last_bgsave_status:{status}\r\naof_enabled:1\r\naof_rewrite_in_progress:0\r\n\
         aof_last_write_status:{status}\r\nnewest_seqno:{newest}\r\ndurable_seqno:{durable}\r\nlast_error:{}\r\n",
        server.last_save_seconds,
        server.last_error.as_deref().unwrap_or_default(),
    ))
}

fn info_stats(call: &mut Call<'_, '_>) -> Outcome<String> {
    let server = call.server()?;
    let counters = &server.counters;
    let ServerState { pubsub, .. } = &*server;
    Ok(format!(
        "total_connections_received:{}\r\ntotal_commands_processed:{}\r\ntotal_net_input_bytes:{}\r\n\
         total_net_output_bytes:{}\r\nrejected_connections:{}\r\nexpired_keys:{}\r\nevicted_keys:0\r\n\
         keyspace_hits:{}\r\nkeyspace_misses:{}\r\npubsub_channels:{}\r\npubsub_patterns:{}\r\n\
         total_error_replies:{}\r\nrounds:{}\r\ncold_commands:{}\r\nstalled_rounds:{}\r\n\
         collections:{}\r\n",
        counters.connections,
        counters.commands,
        counters.bytes_in,
        counters.bytes_out,
        counters.rejected,
        counters.expired,
        counters.hits,
        counters.misses,
        pubsub.channels().count(),
        pubsub.pattern_count(),
        counters.errors,
        counters.rounds,
        counters.cold,
        counters.stalls,
        server.store.collections(),
    ))
}

fn info_replication(call: &mut Call<'_, '_>) -> Outcome<String> {
    let server = call.server()?;
    Ok(format!(
        "role:master\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\n\
         master_replid:{}\r\nmaster_repl_offset:0\r\n",
        server.run_id,
    ))
}

/// Databases with keys. Counting them is a walk: up to so many keys are counted, and more are told as so many.
fn info_keyspace(call: &mut Call<'_, '_>) -> Outcome<String> {
    let own = call.keys.db();
    let mut lines = String::new();
    for db in 0..DATABASES {
        call.keys.select(db);
        let counted = call.keys.count_up_to(KEYS_COUNTED);
        call.keys.select(own);
        let (keys, expires) = counted?;
        if keys > 0 {
            lines.push_str(&format!(
                "db{db}:keys={keys},expires={expires},avg_ttl=0\r\n"
            ));
        }
    }
    Ok(lines)
}

/// Keys that INFO counts in a database.
const KEYS_COUNTED: u64 = 100_000;
