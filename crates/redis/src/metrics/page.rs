//! The page that a scraper reads: counters of the server, of its commands and of the engine.

use drumlin_fs::machine;

use super::figures::{Figures, OF_ENGINE, OF_FAMILY, of_family};
use crate::observe::stats::Stat;
use crate::replica::state::Phase;
use crate::state::ServerState;
use drumlin_scrape::{Kind, Text};

/// Ends of the buckets of commands' times, in microseconds.
const MICROS: [u64; 19] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
    200_000, 500_000, 1_000_000,
];

/// Writes the page. Takes as long as INFO: a fraction of a millisecond.
pub(crate) fn page(state: &ServerState, figures: &Figures) -> String {
    let mut text = Text::default();
    server(state, &mut text);
    clients(state, &mut text);
    memory(state, figures, &mut text);
    counters(state, &mut text);
    rounds(state, &mut text);
    commands(state, &mut text);
    keys(figures, &mut text);
    engine(state, figures, &mut text);
    text.take()
}

fn server(state: &ServerState, text: &mut Text) {
    use Kind::{Counter, Gauge};
    text.family("info", Gauge, "The versions of this server, as labels.");
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("run_id", &state.run_id),
    ];
    text.sample(&labels, 1);
    let uptime = state.now_seconds.saturating_sub(state.started_seconds);
    text.one("uptime_seconds", Gauge, "Seconds since the start.", uptime);
    let name = "cpu_seconds_total";
    text.family(
        name,
        Counter,
        "Seconds of processor time, by mode and thread.",
    );
    for (thread, is_loop) in [("all", false), ("loop", true)] {
        let (system, user) = machine::processor_seconds(is_loop);
        text.sample(&[("mode", "system"), ("thread", thread)], system);
        text.sample(&[("mode", "user"), ("thread", thread)], user);
    }
    let replication = &state.replication;
    let is_replica = u8::from(replication.is_replica());
    text.one("replica", Gauge, "1 when it follows a primary.", is_replica);
    let is_up = u8::from(replication.phase() == Phase::Connected);
    text.one(
        "replica_link_up",
        Gauge,
        "1 when the primary's changes come.",
        is_up,
    );
    let offset = replication.offset();
    text.one(
        "replication_offset",
        Gauge,
        "The place in the primary's stream.",
        offset,
    );
}

fn clients(state: &ServerState, text: &mut Text) {
    use Kind::Gauge;
    let others = || state.clients.others();
    let count = state.clients.len();
    text.one("clients", Gauge, "Clients that are connected.", count);
    let most = state.config.number("maxclients");
    text.one("clients_max", Gauge, "Clients that may be connected.", most);
    let blocked = others().filter(|it| it.blocked.is_some() || it.is_paused);
    text.one(
        "blocked_clients",
        Gauge,
        "Clients whose command waits.",
        blocked.count(),
    );
    let [tracking, keys, ..] = state.tracker.counts();
    text.one(
        "tracking_clients",
        Gauge,
        "Clients that are told of changes.",
        tracking,
    );
    text.one("tracked_keys", Gauge, "Keys whose changes are told.", keys);
    let unread: usize = state.net.ios.values().map(|io| io.pending_bytes()).sum();
    text.one(
        "client_input_bytes",
        Gauge,
        "Bytes that clients sent and that wait.",
        unread,
    );
    let unsent: usize = others().map(|it| it.out.len()).sum();
    text.one(
        "client_output_bytes",
        Gauge,
        "Bytes that wait to be sent to clients.",
        unsent,
    );
    let channels = state.pubsub.channels().count();
    text.one("channels", Gauge, "Channels with subscribers.", channels);
    let patterns = state.pubsub.pattern_count();
    text.one("patterns", Gauge, "Patterns with subscribers.", patterns);
}

fn memory(state: &ServerState, figures: &Figures, text: &mut Text) {
    use Kind::Gauge;
    let used = figures.memory_bytes;
    text.one(
        "memory_used_bytes",
        Gauge,
        "Bytes that the engine and the server have in memory.",
        used,
    );
    let peak = state.observer.memory_peak.max(used);
    text.one("memory_peak_bytes", Gauge, "The most that it had.", peak);
    let resident = machine::resident_bytes();
    text.one(
        "memory_resident_bytes",
        Gauge,
        "Bytes of the process in memory.",
        resident,
    );
    let budget = &state.purse.budget;
    text.one(
        "memory_max_bytes",
        Gauge,
        "The budget: maxmemory, or a quarter of the machine's.",
        budget.limit_bytes(),
    );
    text.family(
        "memory_bytes",
        Gauge,
        "Bytes charged to the budget, by use.",
    );
    for (name, bytes) in budget.used_by_name() {
        text.sample(&[("use", name)], bytes);
    }
    let lua = state.scripts.lua_bytes();
    text.one("memory_lua_bytes", Gauge, "Bytes of the Lua state.", lua);
}

fn counters(state: &ServerState, text: &mut Text) {
    let counters = &state.counters;
    let list = [
        (
            "connections",
            counters.connections,
            "Connections that came.",
        ),
        (
            "rejected_connections",
            counters.rejected,
            "Connections that were too many.",
        ),
        (
            "evicted_clients",
            counters.evicted_clients,
            "Clients that were cut off because all together had too much memory.",
        ),
        ("commands", counters.all_commands(), "Commands that ran."),
        ("input_bytes", counters.bytes_in, "Bytes that clients sent."),
        (
            "output_bytes",
            counters.bytes_out,
            "Bytes that clients were sent.",
        ),
        ("reads", counters.reads, "Reads of sockets."),
        ("writes", counters.writes, "Writes of sockets."),
        (
            "expired_keys",
            counters.counted.expired,
            "Keys that were deleted by their expiry.",
        ),
        (
            "keyspace_hits",
            counters.all_looked_up().found,
            "Keys that were looked up and found.",
        ),
        (
            "keyspace_misses",
            counters.all_looked_up().missed,
            "Keys that were looked up in vain.",
        ),
        (
            "error_replies",
            counters.errors,
            "Errors that clients were told.",
        ),
        ("rounds", counters.rounds, "Rounds of commands."),
        (
            "cold_commands",
            counters.cold,
            "Commands that needed the disk.",
        ),
        (
            "stalled_rounds",
            counters.stalls,
            "Rounds that the engine did not take at once.",
        ),
    ];
    for (name, value, help) in list {
        text.one(&format!("{name}_total"), Kind::Counter, help, value);
    }
    text.family("errors_total", Kind::Counter, "Errors by their first word.");
    for (code, count) in state.observer.stats.errors() {
        text.sample(&[("code", code)], count);
    }
}

fn rounds(state: &ServerState, text: &mut Text) {
    let counters = &state.counters;
    let (commands, micros) = (&counters.round_commands, &counters.round_micros);
    text.powers(
        "round_commands",
        "Commands of a turn of the loop.",
        commands,
        1.0,
    );
    text.powers(
        "round_duration_seconds",
        "Time of a turn with commands.",
        micros,
        1e6,
    );
}

fn commands(state: &ServerState, text: &mut Text) {
    let stats = || state.observer.stats.used();
    let mut each = |name: &str, help: &str, value: &dyn Fn(&Stat) -> f64| {
        text.family(name, Kind::Counter, help);
        for stat in stats() {
            text.sample(&[("command", &stat.name)], value(stat));
        }
    };
    each("command_calls_total", "Calls by command.", &|it| {
        it.calls as f64
    });
    let help = "Time by command.";
    each("command_seconds_total", help, &|it| it.micros as f64 / 1e6);
    let help = "Calls that were refused before they ran.";
    each("command_rejected_total", help, &|it| it.rejected as f64);
    let help = "Calls that failed.";
    each("command_failed_total", help, &|it| it.failed as f64);
    let name = "command_duration_seconds";
    let help = "Times by command, within a hundredth, while latency-tracking is on.";
    text.family(name, Kind::Histogram, help);
    for stat in stats() {
        let Some(times) = &stat.times else {
            continue;
        };
        let mut recorded = times.iter_recorded().peekable();
        let mut seen = 0;
        let up_to = MICROS.iter().map(|micros| {
            // A recorded value stands for those that begin with it.
            let within = |nanos: u64| times.lowest_equivalent(nanos) <= micros * 1_000;
            while let Some(value) = recorded.next_if(|it| within(it.value_iterated_to())) {
                seen += value.count_at_value();
            }
            (*micros as f64 / 1e6, seen)
        });
        let sum = stat.timed_micros as f64 / 1e6;
        text.histogram(&[("command", &stat.name)], up_to, sum, times.len());
    }
}

fn keys(figures: &Figures, text: &mut Text) {
    let help = "Keys by database, counted up to 100,000.";
    text.family("keys", Kind::Gauge, help);
    let counts = || figures.keys.iter().flatten();
    for count in counts() {
        text.sample(&[("db", &count.db.to_string())], count.keys);
    }
    let help = "Keys with an expiry by database, among those that were counted.";
    text.family("expiring_keys", Kind::Gauge, help);
    for count in counts() {
        text.sample(&[("db", &count.db.to_string())], count.expiring);
    }
}

fn engine(state: &ServerState, figures: &Figures, text: &mut Text) {
    let db = state.store.db();
    let help = "0 is healthy, 1 pauses in the background, 2 writes stopped, 3 reads only.";
    text.one("health", Kind::Gauge, help, db.health() as u8);
    let help = "The number of the newest write.";
    text.one("newest_seqno", Kind::Gauge, help, db.latest_seqno());
    let help = "The newest write that outlives a power cut.";
    text.one("durable_seqno", Kind::Gauge, help, db.durable_seqno());
    let help = "Hashes, sets and so on that are not whole in one record.";
    text.one("collections", Kind::Gauge, help, state.store.collections());
    // All figures of the engine, in its own text; of the numbers of INFO those that are not among them.
    let is_told = |name: &str| {
        let head = format!("# TYPE drumlin_engine_{name} ");
        figures.engine_text.contains(&head)
    };
    for ((_, name, help), value) in OF_ENGINE.iter().zip(&figures.engine) {
        if !is_told(name) {
            text.one(&format!("engine_{name}"), Kind::Gauge, help, value);
        }
    }
    for (_, name, help) in OF_FAMILY.iter().filter(|(_, name, _)| !is_told(name)) {
        text.family(&format!("engine_{name}"), Kind::Gauge, help);
        for (family, numbers) in &figures.families {
            text.sample(&[("family", family)], of_family(numbers, name));
        }
    }
    text.append(&figures.engine_text);
}
