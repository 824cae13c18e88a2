//! INFO: all sections and fields of Redis 7.0.15, and some of our own. Fields of what there is not, such as forks, are 0.

use std::fmt::{Display, Write};

use drumlin_fs::machine;
use drumlin_redis_store::{DATABASES, Outcome};

use super::server::REDIS_VERSION;
use crate::call::Call;
use crate::command::{Command, Flags, NO_KEYS};
use crate::metrics::figures::{KEYS_COUNTED, of_family};
use crate::replica::state::{Phase, Primary};
use crate::replicas::failover;
use crate::state::ServerState;

pub(crate) const COMMANDS: &[Command] = &[Command::new(
    "info",
    -1,
    Flags::LOADING.and(Flags::STALE),
    NO_KEYS,
    info,
)];

/// Lines of a section.
#[derive(Debug, Default)]
struct Lines(String);

impl Lines {
    fn put(&mut self, name: &str, value: impl Display) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    fn zeros(&mut self, names: &str) {
        names.split_whitespace().for_each(|name| self.put(name, 0));
    }

    fn human(&mut self, name: &str, bytes: u64) {
        self.put(name, human(bytes));
    }

    fn with_human(&mut self, name: &str, bytes: u64) {
        self.put(name, bytes);
        self.human(&format!("{name}_human"), bytes);
    }
}

/// A size as people read it.
fn human(bytes: u64) -> String {
    let shift = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        ..1_024 => format!("{bytes}B"),
        1_024..0x10_0000 => format!("{:.2}K", shift(1 << 10)),
        0x10_0000..0x4000_0000 => format!("{:.2}M", shift(1 << 20)),
        0x4000_0000..0x100_0000_0000 => format!("{:.2}G", shift(1 << 30)),
        _ => format!("{:.2}T", shift(1 << 40)),
    }
}

/// A section: its name, its title, whether it is among the default ones, and its lines.
type Section = (
    &'static str,
    &'static str,
    bool,
    fn(&ServerState, &mut Lines),
);

const SECTIONS: &[Section] = &[
    ("server", "Server", true, server),
    ("clients", "Clients", true, clients),
    ("memory", "Memory", true, memory),
    ("persistence", "Persistence", true, persistence),
    ("stats", "Stats", true, stats),
    ("replication", "Replication", true, replication),
    ("cpu", "CPU", true, cpu),
    ("modules", "Modules", true, |_, _| {}),
    ("commandstats", "Commandstats", false, command_stats),
    ("errorstats", "Errorstats", true, error_stats),
    ("latencystats", "Latencystats", false, latency_stats),
    ("cluster", "Cluster", true, cluster),
    ("keyspace", "Keyspace", true, |_, _| {}),
    ("rocksdb", "RocksDB", false, engine),
];

fn info(call: &mut Call<'_, '_>) -> Outcome<()> {
    let words = call.args.from(1);
    let asked: Vec<Vec<u8>> = words.iter().map(<[u8]>::to_ascii_lowercase).collect();
    let has = |name: &str| asked.iter().any(|asked| asked == name.as_bytes());
    let all = has("all") || has("everything");
    let by_default = asked.is_empty() || has("default");
    let mut lines = Lines::default();
    for (name, title, is_default, write) in SECTIONS {
        if !(all || has(name) || by_default && *is_default) {
            continue;
        }
        if !lines.0.is_empty() {
            lines.0.push_str("\r\n");
        }
        lines.0.push_str(&format!("# {title}\r\n"));
        if *name == "keyspace" {
            keyspace(call, &mut lines)?;
        }
        let server = call.server()?;
        server.counts_entries |= *name == "rocksdb";
        write(server, &mut lines);
    }
    call.reply.verbatim(*b"txt", lines.0.as_bytes());
    Ok(())
}

fn server(state: &ServerState, lines: &mut Lines) {
    let uptime = state.now_seconds.saturating_sub(state.started_seconds);
    lines.put("redis_version", REDIS_VERSION);
    lines.put("redis_git_sha1", "00000000");
    lines.zeros("redis_git_dirty redis_build_id");
    let is_cluster = state.config.get("cluster-enabled") == "yes";
    let mode = if is_cluster { "cluster" } else { "standalone" };
    lines.put("redis_mode", mode);
    lines.put("server_name", "drumlin");
    lines.put("drumlin_version", env!("CARGO_PKG_VERSION"));
    lines.put("os", machine::system_name());
    lines.put("arch_bits", usize::BITS);
    lines.put("monotonic_clock", "POSIX clock_gettime");
    lines.put("multiplexing_api", "epoll");
    lines.put("atomicvar_api", "c11-builtin");
    lines.put("gcc_version", "0.0.0");
    lines.put("process_id", std::process::id());
    lines.put("process_supervised", "no");
    lines.put("run_id", &state.run_id);
    let port = |name: &str| state.config.number(name);
    let shown = if port("port") == 0 {
        "tls-port"
    } else {
        "port"
    };
    lines.put("tcp_port", port(shown));
    lines.put("server_time_usec", state.now_micros);
    lines.put("uptime_in_seconds", uptime);
    lines.put("uptime_in_days", uptime / 86_400);
    lines.put("hz", 10);
    lines.put("configured_hz", state.config.get("hz"));
    lines.put("lru_clock", state.now_seconds & 0xff_ffff);
    let program = std::env::current_exe().unwrap_or_default();
    lines.put("executable", program.display());
    let file = state.config.file().map(|path| path.display().to_string());
    lines.put("config_file", file.unwrap_or_default());
    lines.put("io_threads_active", u8::from(state.hands.count() > 0));
}

fn clients(state: &ServerState, lines: &mut Lines) {
    let others = || state.clients.others();
    let sum = |wanted: fn(&&crate::session::Session) -> bool| others().filter(wanted).count();
    lines.put("connected_clients", state.clients.len());
    lines.zeros("cluster_connections");
    lines.put("maxclients", state.config.get("maxclients"));
    let unread = state.net.ios.values().map(|io| io.pending_bytes()).max();
    lines.put("client_recent_max_input_buffer", unread.unwrap_or(0));
    let unsent = others().map(|session| session.out.len()).max();
    lines.put("client_recent_max_output_buffer", unsent.unwrap_or(0));
    let blocked = sum(|session| session.blocked.is_some() || session.is_paused);
    lines.put("blocked_clients", blocked);
    lines.put("tracking_clients", state.tracker.counts()[0]);
    lines.put("clients_in_timeout_table", state.net.timers.len());
}

/// `used_memory` is what the budget counts: the engine's, since the data is on disk, and the server's own.
fn memory(state: &ServerState, lines: &mut Lines) {
    let budget = &state.purse.budget;
    let used = budget.used_bytes() as u64;
    let peak = state.observer.memory_peak.max(used);
    let resident = machine::resident_bytes();
    let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
    let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    lines.with_human("used_memory", used);
    lines.with_human("used_memory_rss", resident);
    lines.with_human("used_memory_peak", peak);
    lines.put(
        "used_memory_peak_perc",
        format!("{:.2}%", percent(used, peak)),
    );
    lines.zeros("used_memory_overhead used_memory_startup");
    lines.put("used_memory_dataset", used);
    lines.put("used_memory_dataset_perc", "100.00%");
    lines.put("allocator_allocated", used);
    lines.put("allocator_active", resident);
    lines.put("allocator_resident", resident);
    lines.with_human("total_system_memory", machine::memory_limit_bytes());
    let scripts = &state.scripts;
    scripts.tidy();
    let (lua, texts) = (scripts.lua_bytes() as u64, scripts.script_bytes() as u64);
    lines.put("used_memory_lua", lua);
    lines.put("used_memory_vm_eval", lua);
    lines.human("used_memory_lua_human", lua);
    lines.put("used_memory_scripts_eval", texts);
    lines.put("number_of_cached_scripts", scripts.len());
    lines.put("number_of_functions", scripts.libraries.function_count());
    lines.put("number_of_libraries", scripts.libraries.len());
    lines.zeros("used_memory_vm_functions");
    lines.with_human("used_memory_vm_total", lua);
    lines.zeros("used_memory_functions");
    lines.with_human("used_memory_scripts", texts);
    lines.with_human("maxmemory", state.config.number("maxmemory"));
    lines.put("maxmemory_policy", state.config.get("maxmemory-policy"));
    lines.put("allocator_frag_ratio", "1.00");
    lines.zeros("allocator_frag_bytes");
    lines.put("allocator_rss_ratio", "1.00");
    lines.zeros("allocator_rss_bytes");
    lines.put("rss_overhead_ratio", "1.00");
    lines.zeros("rss_overhead_bytes");
    let fragmentation = format!("{:.2}", ratio(resident, used));
    lines.put("mem_fragmentation_ratio", fragmentation);
    let over = resident as i64 - used as i64;
    lines.put("mem_fragmentation_bytes", over);
    lines.zeros("mem_not_counted_for_evict");
    let backlog = state.replicas.backlog.bytes();
    lines.put("mem_replication_backlog", backlog);
    lines.put("mem_total_replication_buffers", backlog);
    lines.zeros("mem_clients_slaves");
    lines.put("mem_clients_normal", client_bytes(state));
    lines.zeros("mem_cluster_links mem_aof_buffer");
    lines.put("mem_allocator", "system");
    lines.put("budget_limit", budget.limit_bytes());
    for (name, bytes) in budget.used_by_name() {
        lines.put(&format!("budget_{name}"), bytes);
    }
    lines.put("clients_limit", state.bounds.clients_bytes);
    lines.zeros("active_defrag_running lazyfree_pending_objects lazyfreed_objects");
}

/// Bytes of clients: what they sent, what they are to get, and themselves.
pub(super) fn client_bytes(state: &ServerState) -> usize {
    state.net.crowd.bytes()
}

fn persistence(state: &ServerState, lines: &mut Lines) {
    let db = state.store.db();
    let is_healthy = db.health() == drumlin::Health::Healthy;
    let status = if is_healthy { "ok" } else { "err" };
    let (newest, durable) = (db.latest_seqno(), db.durable_seqno());
    lines.zeros("loading async_loading current_cow_peak current_cow_size current_cow_size_age");
    lines.put("current_fork_perc", "0.00");
    lines.zeros("current_save_keys_processed current_save_keys_total");
    let changes = newest.saturating_sub(state.saved_seqno);
    lines.put("rdb_changes_since_last_save", changes);
    lines.zeros("rdb_bgsave_in_progress");
    lines.put("rdb_last_save_time", state.last_save_seconds);
    lines.put("rdb_last_bgsave_status", status);
    lines.put("rdb_last_bgsave_time_sec", -1);
    lines.put("rdb_current_bgsave_time_sec", -1);
    lines.zeros("rdb_saves rdb_last_cow_size rdb_last_load_keys_expired rdb_last_load_keys_loaded");
    lines.put("aof_enabled", 1);
    lines.zeros("aof_rewrite_in_progress aof_rewrite_scheduled");
    lines.put("aof_last_rewrite_time_sec", -1);
    lines.put("aof_current_rewrite_time_sec", -1);
    lines.put("aof_last_bgrewrite_status", "ok");
    lines.zeros("aof_rewrites aof_rewrites_consecutive_failures");
    lines.put("aof_last_write_status", status);
    lines.zeros("aof_last_cow_size module_fork_in_progress module_fork_last_cow_size");
    lines.put("newest_seqno", newest);
    lines.put("durable_seqno", durable);
    lines.put(
        "last_error",
        state.last_error.as_deref().unwrap_or_default(),
    );
}

fn stats(state: &ServerState, lines: &mut Lines) {
    let counters = &state.counters;
    let rates = &state.observer.rates;
    let kbps = |rate: f64| format!("{:.2}", rate / 1_024.0);
    lines.put("total_connections_received", counters.connections);
    lines.put("total_commands_processed", counters.all_commands());
    let per_second = rates.commands.per_second() as u64;
    lines.put("instantaneous_ops_per_sec", per_second);
    lines.put("total_net_input_bytes", counters.bytes_in);
    lines.put("total_net_output_bytes", counters.bytes_out);
    lines.zeros("total_net_repl_input_bytes total_net_repl_output_bytes");
    lines.put(
        "instantaneous_input_kbps",
        kbps(rates.bytes_in.per_second()),
    );
    lines.put(
        "instantaneous_output_kbps",
        kbps(rates.bytes_out.per_second()),
    );
    lines.put("instantaneous_input_repl_kbps", "0.00");
    lines.put("instantaneous_output_repl_kbps", "0.00");
    lines.put("rejected_connections", counters.rejected);
    lines.put("sync_full", state.replicas.syncs.full);
    lines.put("sync_partial_ok", state.replicas.syncs.partial);
    lines.put("sync_partial_err", state.replicas.syncs.refused);
    lines.put("expired_keys", counters.counted.expired);
    lines.put("expired_stale_perc", "0.00");
    lines.zeros("expired_time_cap_reached_count expire_cycle_cpu_milliseconds evicted_keys");
    lines.put("evicted_clients", counters.evicted_clients);
    lines.zeros("total_eviction_exceeded_time current_eviction_exceeded_time");
    lines.put("keyspace_hits", counters.all_looked_up().found);
    lines.put("keyspace_misses", counters.all_looked_up().missed);
    lines.put("pubsub_channels", state.pubsub.channels().count());
    lines.put("pubsub_patterns", state.pubsub.pattern_count());
    lines.put(
        "pubsubshard_channels",
        state.pubsub.shard_channels().count(),
    );
    lines.zeros("latest_fork_usec total_forks migrate_cached_sockets");
    lines.zeros("slave_expires_tracked_keys active_defrag_hits active_defrag_misses");
    lines.zeros("active_defrag_key_hits active_defrag_key_misses total_active_defrag_time");
    lines.zeros("current_active_defrag_time");
    let [_, keys, items, prefixes] = state.tracker.counts();
    lines.put("tracking_total_keys", keys);
    lines.put("tracking_total_items", items);
    lines.put("tracking_total_prefixes", prefixes);
    lines.zeros("unexpected_error_replies");
    lines.put("total_error_replies", counters.errors);
    lines.zeros("dump_payload_sanitizations");
    lines.put("total_reads_processed", counters.reads);
    lines.put("total_writes_processed", counters.writes);
    lines.put("io_threaded_reads_processed", counters.reads_of_hands);
    lines.put("io_threaded_writes_processed", counters.writes_of_hands);
    lines.zeros("reply_buffer_shrinks reply_buffer_expands");
    lines.put("rounds", counters.rounds);
    lines.put("lent_connections", counters.lent);
    lines.put("cold_commands", counters.cold);
    lines.put("stalled_rounds", counters.stalls);
    lines.put("compactions_asked_for", state.compactions);
    lines.put("collections", state.store.collections());
}

fn of_replica(state: &ServerState, primary: &Primary, lines: &mut Lines) {
    let replication = &state.replication;
    let phase = replication.phase();
    let is_up = phase == Phase::Connected;
    let since = |seconds: u64| state.now_seconds.saturating_sub(seconds);
    lines.put("role", "slave");
    lines.put("master_host", &primary.host);
    lines.put("master_port", primary.port);
    lines.put("master_link_status", if is_up { "up" } else { "down" });
    match is_up {
        true => lines.put(
            "master_last_io_seconds_ago",
            since(replication.heard_seconds),
        ),
        false => lines.put("master_last_io_seconds_ago", -1),
    }
    let syncs = matches!(phase, Phase::Sync | Phase::Loading);
    lines.put("master_sync_in_progress", u8::from(syncs));
    lines.put("slave_read_repl_offset", replication.offset());
    lines.put("slave_repl_offset", replication.offset());
    if !is_up {
        lines.put(
            "master_link_down_since_seconds",
            since(replication.down_since_seconds),
        );
    }
    if let Some(error) = &replication.last_error {
        lines.put("master_link_last_error", error);
    }
    lines.put("slave_priority", state.config.get("replica-priority"));
    lines.put(
        "slave_read_only",
        u8::from(state.config.get("replica-read-only") == "yes"),
    );
    lines.put(
        "replica_announced",
        u8::from(state.config.get("replica-announced") == "yes"),
    );
}

fn replication(state: &ServerState, lines: &mut Lines) {
    let replication = &state.replication;
    match &replication.primary {
        None => lines.put("role", "master"),
        Some(primary) => of_replica(state, primary, lines),
    }
    of_replicas(state, lines);
    let replicas = &state.replicas;
    let (history, backlog) = (&replicas.history, &replicas.backlog);
    let before = history.before.as_ref();
    lines.put(
        "master_failover_state",
        failover::told(state.failover.as_ref()),
    );
    lines.put("master_replid", &history.id);
    match before {
        Some((id, _)) => lines.put("master_replid2", id),
        None => lines.put("master_replid2", "0".repeat(40)),
    }
    lines.put("master_repl_offset", replicas.offset());
    match before {
        Some((_, offset)) => lines.put("second_repl_offset", offset + 1),
        None => lines.put("second_repl_offset", -1),
    }
    lines.put("repl_backlog_active", u8::from(replicas.is_active));
    lines.put("repl_backlog_size", state.config.get("repl-backlog-size"));
    match replicas.is_active {
        true => {
            lines.put("repl_backlog_first_byte_offset", backlog.first() + 1);
            lines.put("repl_backlog_histlen", backlog.end() - backlog.first());
        }
        false => lines.zeros("repl_backlog_first_byte_offset repl_backlog_histlen"),
    }
}

/// The servers that follow this one.
fn of_replicas(state: &ServerState, lines: &mut Lines) {
    let replicas = &state.replicas;
    lines.put("connected_slaves", replicas.members.len());
    if let Some(good) = replicas.told_good(state.now_seconds) {
        lines.put("min_slaves_good_slaves", good);
    }
    for (at, (id, member)) in replicas.members.iter().enumerate() {
        let lag = if member.is_online() {
            member.lag(state.now_seconds)
        } else {
            0
        };
        let text = format!(
            "ip={},port={},state={},offset={},lag={lag}",
            state.replica_address(*id),
            member.greeting.port,
            member.state(),
            member.acked
        );
        lines.put(&format!("slave{at}"), text);
    }
}

fn cpu(_: &ServerState, lines: &mut Lines) {
    let mut put = |of: &str, (system, user): (f64, f64)| {
        lines.put(&format!("used_cpu_sys{of}"), format!("{system:.6}"));
        lines.put(&format!("used_cpu_user{of}"), format!("{user:.6}"));
    };
    put("", machine::processor_seconds(false));
    put("_children", (0.0, 0.0));
    put("_main_thread", machine::processor_seconds(true));
}

fn command_stats(state: &ServerState, lines: &mut Lines) {
    for stat in state.observer.stats.used() {
        let each = stat.micros as f64 / stat.calls.max(1) as f64;
        let text = format!(
            "calls={},usec={},usec_per_call={each:.2},rejected_calls={},failed_calls={}",
            stat.calls, stat.micros, stat.rejected, stat.failed
        );
        lines.put(&format!("cmdstat_{}", stat.name), text);
    }
}

fn error_stats(state: &ServerState, lines: &mut Lines) {
    for (code, count) in state.observer.stats.errors() {
        // A name may not end the line or the name.
        let code = code.replace(['#', ':', '\n', '\r'], "_");
        lines.put(&format!("errorstat_{code}"), format!("count={count}"));
    }
}

fn latency_stats(state: &ServerState, lines: &mut Lines) {
    let config = state.config.get("latency-tracking-info-percentiles");
    let percentiles: Vec<(&str, f64)> = config
        .split_whitespace()
        .filter_map(|text| Some((text, text.parse().ok()?)))
        .collect();
    if !state.observer.stats.tracks_times {
        return;
    }
    for stat in state.observer.stats.used() {
        let Some(times) = &stat.times else {
            continue;
        };
        let at = |percentile: f64| times.value_at_percentile(percentile) as f64 / 1_000.0;
        let shown = percentiles.iter();
        let shown: Vec<String> = shown
            .map(|(text, percentile)| format!("p{text}={:.3}", at(*percentile)))
            .collect();
        let name = format!("latency_percentiles_usec_{}", stat.name);
        lines.put(&name, shown.join(","));
    }
}

fn cluster(state: &ServerState, lines: &mut Lines) {
    let is_on = state.config.get("cluster-enabled") == "yes";
    lines.put("cluster_enabled", u8::from(is_on));
}

/// Numbers of Kvrocks's engine, under the same names, for programs that read them. They are up to a second old.
fn engine(state: &ServerState, lines: &mut Lines) {
    let figures = &state.figures;
    lines.put("block_cache_usage", figures.of_engine("block_cache_bytes"));
    for (family, numbers) in &figures.families {
        let mut put = |name: &str, value: u64| lines.put(&format!("{name}[{family}]"), value);
        put("estimate_keys", of_family(numbers, "entries"));
        put("level0_tables", of_family(numbers, "level0_tables"));
        put("table_bytes", of_family(numbers, "table_bytes"));
    }
    let mut put = |name: &str, known: &str| lines.put(name, figures.of_engine(known));
    put(
        "index_and_filter_cache_usage[default]",
        "table_reader_bytes",
    );
    put("all_mem_tables", "memtable_bytes");
    put("cur_mem_tables", "active_memtable_bytes");
    put("snapshots", "snapshots");
    put("num_immutable_tables", "immutable_memtables");
    put("num_running_flushes", "running_flushes");
    put("num_running_compactions", "running_compactions");
    put("num_background_errors", "background_errors");
    let waits = |known: &str| u8::from(figures.of_engine(known) > 0);
    lines.put("memtable_flush_pending", waits("immutable_memtables"));
    lines.put("compaction_pending", waits("pending_compaction_bytes"));
    let statistics = state.store.db().statistics();
    lines.put("flush_count", statistics.flushes.get());
    lines.put("compaction_count", statistics.compactions.get());
    lines.put("sequence", state.store.db().latest_seqno());
    let bytes = ["table_bytes", "blob_bytes"].map(|known| figures.of_engine(known));
    lines.put("used_db_size", bytes.iter().sum::<u64>());
    lines.put("is_bgsaving", "no");
    let compacts = figures.of_engine("running_compactions") > 0;
    lines.put("is_compacting", if compacts { "yes" } else { "no" });
}

/// Databases with keys. Counting them is a walk: up to so many keys are counted, and more are told as so many.
fn keyspace(call: &mut Call<'_, '_>, lines: &mut Lines) -> Outcome<()> {
    let own = call.keys.db();
    for db in 0..DATABASES {
        call.keys.select(db);
        let counted = call.keys.count_up_to(KEYS_COUNTED);
        call.keys.select(own);
        let (keys, expires) = counted?;
        if keys > 0 {
            let text = format!("keys={keys},expires={expires},avg_ttl=0");
            lines.put(&format!("db{db}"), text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::human;

    /// Goal: sizes are written as Redis writes them. Method: some of its INFO.
    #[test]
    fn sizes_are_written_as_redis_writes_them() {
        assert_eq!(human(200), "200B");
        assert_eq!(human(916_352), "894.88K");
        assert_eq!(human(6_848_512), "6.53M");
        assert_eq!(human(25_276_510_208), "23.54G");
    }
}
