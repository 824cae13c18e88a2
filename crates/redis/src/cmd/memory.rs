//! MEMORY: bytes of keys, on disk before compression, and of the server in memory.

use drumlin_fs::machine;
use drumlin_redis_store::{Direction, Kind, Outcome, Record};
use drumlin_resp::integer;

use super::info::client_bytes;
use crate::call::{Call, NOT_AN_INTEGER, SYNTAX};
use crate::command::{Command, Flags, NO_KEYS};

pub(crate) const COMMANDS: &[Command] = &[Command::new("memory", -2, Flags::NONE, NO_KEYS, memory)];

/// Elements that MEMORY USAGE looks at by default.
const SAMPLES: i64 = 5;

fn memory(call: &mut Call<'_, '_>) -> Outcome<()> {
    match call.len() {
        2 if call.is(1, "help") => super::reply_help(call, HELP),
        2 if call.is(1, "stats") => stats(call),
        2 if call.is(1, "doctor") => doctor(call),
        2 if call.is(1, "purge") => {
            call.reply.ok();
            Ok(())
        }
        2 if call.is(1, "malloc-stats") => {
            call.reply
                .bulk(b"Stats not supported for the current allocator");
            Ok(())
        }
        3.. if call.is(1, "usage") => usage(call),
        _ => Err(call.unknown_subcommand("MEMORY")),
    }
}

fn usage(call: &mut Call<'_, '_>) -> Outcome<()> {
    let mut samples = SAMPLES;
    for at in (3..call.len()).step_by(2) {
        if !call.is(at, "samples") || at + 1 == call.len() {
            return Err(SYNTAX);
        }
        samples = integer(call.arg(at + 1)).ok_or(NOT_AN_INTEGER)?;
        if samples < 0 {
            return Err(SYNTAX);
        }
    }
    let samples = match samples {
        0 => u64::MAX,
        some => some as u64,
    };
    let key = call.arg(2);
    match call.keys.lookup(key)? {
        None => call.reply.null(),
        Some(record) => {
            let elements = element_bytes(call, &record, samples)?;
            let bytes = (key.len() + record.payload().len()) as u64 + elements;
            call.reply.integer(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }
    Ok(())
}

/// Bytes of the entries of a collection, from the first `samples` of them.
fn element_bytes(call: &Call<'_, '_>, record: &Record, samples: u64) -> Outcome<u64> {
    let Some(collection) = record.collection() else {
        return Ok(0);
    };
    let mut walk = call.keys.sub_walk(collection, b"", b"", Direction::Forward);
    let (mut entries, mut bytes) = (0, 0);
    while entries < samples {
        let Some((key, value)) = walk.next()? else {
            // Those were all.
            return Ok(bytes);
        };
        entries += 1;
        bytes += (key.len() + value.len()) as u64;
    }
    // A member of a sorted set has an entry by its name and one by its score.
    let per_element = if record.kind() == Kind::SortedSet {
        2
    } else {
        1
    };
    let all = (record.len() as u64).saturating_mul(per_element);
    Ok(bytes.saturating_mul(all) / entries.max(1))
}

fn doctor(call: &mut Call<'_, '_>) -> Outcome<()> {
    let server = call.server()?;
    let used = server.purse.budget.used_bytes();
    let text = format!(
        "The data is on disk. The engine and the server have {used} bytes in memory, within the budget that maxmemory \
         sets;\nthe process has {} bytes in all. Nothing is evicted, and there is nothing to be mended.\n",
        machine::resident_bytes()
    );
    call.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

fn stats(call: &mut Call<'_, '_>) -> Outcome<()> {
    let server = call.server()?;
    let used = server.purse.budget.used_bytes() as u64;
    let peak = server.observer.memory_peak.max(used);
    let clients = client_bytes(server) as u64;
    let resident = machine::resident_bytes();
    let ratio = resident as f64 / used.max(1) as f64;
    let (keys, _) = call.keys.count_up_to(100_000)?;
    let numbers = [
        ("peak.allocated", peak),
        ("total.allocated", used),
        ("startup.allocated", 0),
        ("replication.backlog", 0),
        ("clients.slaves", 0),
        ("clients.normal", clients),
        ("cluster.links", 0),
        ("aof.buffer", 0),
        ("lua.caches", 0),
        ("functions.caches", 0),
        ("overhead.total", clients),
        ("keys.count", keys),
        ("keys.bytes-per-key", used / keys.max(1)),
        ("dataset.bytes", used),
    ];
    let percent = used as f64 * 100.0 / peak.max(1) as f64;
    call.reply.map(27);
    let put = |call: &mut Call<'_, '_>, name: &str, number: u64| {
        call.reply.bulk(name.as_bytes());
        call.reply
            .integer(i64::try_from(number).unwrap_or(i64::MAX));
    };
    let put_ratio = |call: &mut Call<'_, '_>, name: &str, ratio: f64| {
        call.reply.bulk(name.as_bytes());
        call.reply.double(ratio.to_string().as_bytes());
    };
    for (name, number) in numbers {
        put(call, name, number);
    }
    put_ratio(call, "dataset.percentage", 100.0);
    put_ratio(call, "peak.percentage", percent);
    put(call, "allocator.allocated", used);
    put(call, "allocator.active", resident);
    put(call, "allocator.resident", resident);
    for name in ["allocator-fragmentation", "allocator-rss", "rss-overhead"] {
        put_ratio(call, &format!("{name}.ratio"), 1.0);
        put(call, &format!("{name}.bytes"), 0);
    }
    put_ratio(call, "fragmentation", ratio);
    put(call, "fragmentation.bytes", resident.saturating_sub(used));
    Ok(())
}

const HELP: &[&str] = &[
    "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DOCTOR",
    "    Return memory problems reports.",
    "MALLOC-STATS",
    "    Return internal statistics report from the memory allocator.",
    "PURGE",
    "    Attempt to purge dirty pages for reclamation by the allocator.",
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value. Nested values are",
    "    sampled up to <count> times (default: 5, 0 means sample all).",
    "HELP",
    "    Prints this help.",
];
