//! Commands that show what the server did: SLOWLOG, LATENCY, MONITOR.

use drumlin_redis_store::{Failure, Outcome};
use drumlin_resp::integer;

use crate::call::{Call, NOT_AN_INTEGER};
use crate::command::{Command, Flags, NO_KEYS};
use crate::observe::latency;
use crate::observe::stats::Stat;

const ADMIN: Flags = Flags::ADMIN
    .and(Flags::NOSCRIPT)
    .and(Flags::LOADING)
    .and(Flags::STALE);

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("latency", -2, ADMIN, NO_KEYS, latency),
    Command::new("monitor", 1, ADMIN, NO_KEYS, monitor),
    Command::new(
        "slowlog",
        -2,
        Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE),
        NO_KEYS,
        slowlog,
    ),
];

/// Entries that SLOWLOG GET shows by default.
const ENTRIES: i64 = 10;

fn monitor(call: &mut Call<'_, '_>) -> Outcome<()> {
    let id = call.session.id;
    call.server()?.observer.monitors.insert(id);
    call.session.is_monitor = true;
    call.reply.ok();
    Ok(())
}

fn slowlog(call: &mut Call<'_, '_>) -> Outcome<()> {
    match call.len() {
        2 if call.is(1, "help") => return super::reply_help(call, SLOWLOG_HELP),
        2 if call.is(1, "reset") => {
            call.server()?.observer.slowlog.clear();
            call.reply.ok();
        }
        2 if call.is(1, "len") => {
            let entries = call.server()?.observer.slowlog.entries().len();
            call.reply.integer(entries as i64);
        }
        2 | 3 if call.is(1, "get") => return slowlog_get(call),
        _ => return Err(call.unknown_subcommand("SLOWLOG")),
    }
    Ok(())
}

fn slowlog_get(call: &mut Call<'_, '_>) -> Outcome<()> {
    let most = match call.len() {
        2 => ENTRIES,
        _ => integer(call.arg(2))
            .filter(|most| *most >= -1)
            .ok_or(Failure::refused(
                "ERR count should be greater than or equal to -1",
            ))?,
    };
    // All of them for -1.
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let server = call.server.as_deref().ok_or(NOT_AN_INTEGER)?;
    let entries = server.observer.slowlog.entries();
    call.reply.array(entries.len().min(most));
    for entry in entries.take(most) {
        call.reply.array(6);
        for number in [entry.id, entry.seconds, entry.micros] {
            call.reply
                .integer(i64::try_from(number).unwrap_or(i64::MAX));
        }
        call.reply.array(entry.args.len());
        entry.args.iter().for_each(|arg| call.reply.bulk(arg));
        call.reply.bulk(entry.address.as_bytes());
        call.reply.bulk(&entry.name);
    }
    Ok(())
}

fn latency(call: &mut Call<'_, '_>) -> Outcome<()> {
    match call.len() {
        2 if call.is(1, "help") => super::reply_help(call, LATENCY_HELP),
        2 if call.is(1, "latest") => latest(call),
        2 if call.is(1, "doctor") => {
            let observer = &call.server()?.observer;
            let report = observer.latency.report(observer.spike_millis);
            call.reply.verbatim(*b"txt", report.as_bytes());
            Ok(())
        }
        3 if call.is(1, "history") => history(call),
        3 if call.is(1, "graph") => graph(call),
        _ if call.is(1, "reset") => reset(call),
        _ if call.is(1, "histogram") => histogram(call),
        _ => Err(call.unknown_subcommand("LATENCY")),
    }
}

fn told(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn latest(call: &mut Call<'_, '_>) -> Outcome<()> {
    let latency = &call
        .server
        .as_deref()
        .ok_or(NOT_AN_INTEGER)?
        .observer
        .latency;
    call.reply.array(latency.all().len());
    for (event, series) in latency.all() {
        call.reply.array(4);
        call.reply.bulk(event.as_bytes());
        let newest = series.newest();
        let seconds = newest.map_or(0, |sample| sample.seconds);
        let millis = newest.map_or(0, |sample| sample.millis);
        for number in [seconds, millis, series.worst] {
            call.reply.integer(told(number));
        }
    }
    Ok(())
}

fn history(call: &mut Call<'_, '_>) -> Outcome<()> {
    let event = call.arg(2);
    let latency = &call
        .server
        .as_deref()
        .ok_or(NOT_AN_INTEGER)?
        .observer
        .latency;
    let Some((_, series)) = latency.of(event) else {
        call.reply.array(0);
        return Ok(());
    };
    call.reply.array(series.samples().len());
    for sample in series.samples() {
        call.reply.array(2);
        call.reply.integer(told(sample.seconds));
        call.reply.integer(told(sample.millis));
    }
    Ok(())
}

fn graph(call: &mut Call<'_, '_>) -> Outcome<()> {
    let event = call.arg(2);
    let server = call.server()?;
    let Some((name, series)) = server.observer.latency.of(event) else {
        let event = String::from_utf8_lossy(event);
        return Err(Failure::because(format!(
            "ERR No samples available for event '{event}'"
        )));
    };
    let text = latency::graph(name, series, server.now_seconds);
    call.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

fn reset(call: &mut Call<'_, '_>) -> Outcome<()> {
    let events = call.args.from(2);
    let latency = &mut call.server()?.observer.latency;
    let forgotten = match events.len() {
        0 => latency.clear(),
        _ => events.iter().filter(|event| latency.forget(event)).count(),
    };
    call.reply.integer(forgotten as i64);
    Ok(())
}

fn histogram(call: &mut Call<'_, '_>) -> Outcome<()> {
    let names = call.args.from(2);
    let stats = &call.server.as_deref().ok_or(NOT_AN_INTEGER)?.observer.stats;
    let asked: Vec<&Stat> = match names.len() {
        0 => stats.used().collect(),
        _ => names.iter().flat_map(|name| stats.named(name)).collect(),
    };
    let timed: Vec<_> = asked
        .iter()
        .filter_map(|stat| Some((stat, stat.times.as_ref()?)))
        .collect();
    call.reply.map(timed.len());
    for (stat, times) in timed {
        call.reply.bulk(stat.name.as_bytes());
        call.reply.map(2);
        call.reply.bulk(b"calls");
        call.reply.integer(told(times.len()));
        call.reply.bulk(b"histogram_usec");
        // Buckets that double, as Redis shows them: only those that hold something.
        let mut sum = 0;
        let mut buckets = Vec::new();
        for bucket in times.iter_log(1_024, 2.0) {
            if bucket.count_since_last_iteration() > 0 {
                sum += bucket.count_since_last_iteration();
                let highest = times.highest_equivalent(bucket.value_iterated_to());
                buckets.push((highest / 1_000, sum));
            }
        }
        call.reply.map(buckets.len());
        for (micros, count) in buckets {
            call.reply.integer(told(micros));
            call.reply.integer(told(count));
        }
    }
    Ok(())
}

const SLOWLOG_HELP: &[&str] = &[
    "SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET [<count>]",
    "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
    "    Entries are made of:",
    "    id, timestamp, time in microseconds, arguments array, client IP and port,",
    "    client name",
    "LEN",
    "    Return the length of the slowlog.",
    "RESET",
    "    Reset the slowlog.",
    "HELP",
    "    Prints this help.",
];

const LATENCY_HELP: &[&str] = &[
    "LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DOCTOR",
    "    Return a human readable latency analysis report.",
    "GRAPH <event>",
    "    Return an ASCII latency graph for the <event> class.",
    "HISTORY <event>",
    "    Return time-latency samples for the <event> class.",
    "LATEST",
    "    Return the latest latency samples for all events.",
    "RESET [<event> ...]",
    "    Reset latency data of one or more <event> classes.",
    "    (default: reset all data for all event classes)",
    "HISTOGRAM [COMMAND ...]",
    "    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
    "    If no commands are specified then all histograms are replied.",
    "HELP",
    "    Prints this help.",
];
