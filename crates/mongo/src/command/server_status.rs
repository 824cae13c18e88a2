//! `serverStatus`: the fields that tools and exporters read.

use drumlin_base::sync::atomic::Ordering;
use drumlin_doc::{Builder, Kind};
use drumlin_doc_store::Outcome;

use crate::counters::{Class, Count};

use super::call::Call;

fn long(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A document of counters.
fn counts(reply: &mut Builder, name: &str, fields: &[(&str, u64)]) {
    reply.open(Kind::Document, name);
    for (name, value) in fields {
        reply.i64(*name, long(*value));
    }
    reply.close();
}

/// See the module. `names` are those of the table of commands.
pub(super) fn server_status(
    call: &Call<'_>,
    names: impl Iterator<Item = &'static str>,
) -> Outcome<Builder> {
    let shared = call.shared;
    let counters = &shared.counters;
    let of = |count: &Count| count.get();
    let mut reply = Builder::new();
    reply
        .str("host", "localhost")
        .str("version", super::handshake::VERSION)
        .str("process", "drumlin");
    let uptime = shared.uptime();
    reply
        .f64("uptime", uptime.as_secs_f64().floor())
        .i64(
            "uptimeMillis",
            i64::try_from(uptime.as_millis()).unwrap_or(i64::MAX),
        )
        .date("localTime", shared.now_ms());
    counts(&mut reply, "asserts", &[("user", of(&counters.refused))]);
    let current = shared.connections.load(Ordering::Relaxed);
    let created = of(&counters.connections);
    counts(
        &mut reply,
        "connections",
        &[("current", current), ("totalCreated", created)],
    );
    let network = [
        ("bytesIn", of(&counters.bytes_in)),
        ("bytesOut", of(&counters.bytes_out)),
        ("numRequests", of(&counters.requests)),
    ];
    counts(&mut reply, "network", &network);
    let operations = [
        ("insert", of(&counters.inserts)),
        ("query", of(&counters.queries)),
        ("update", of(&counters.updates)),
        ("delete", of(&counters.deletes)),
        ("getmore", of(&counters.get_mores)),
        ("command", of(&counters.commands)),
    ];
    counts(&mut reply, "opcounters", &operations);
    reply.open(Kind::Document, "opLatencies");
    for (name, class) in [
        ("reads", Class::Read),
        ("writes", Class::Write),
        ("commands", Class::Command),
    ] {
        let taken = counters.taken(class);
        let fields = [("latency", of(&taken.micros)), ("ops", of(&taken.commands))];
        counts(&mut reply, name, &fields);
    }
    reply.close();
    metrics(call, names, &mut reply);
    reply
        .open(Kind::Document, "storageEngine")
        .str("name", "drumlin")
        .bool("persistent", true)
        .close();
    let budget = shared.store.db().budget();
    reply
        .open(Kind::Document, "mem")
        .i32("bits", 64)
        .bool("supported", true)
        .i64("resident", long(budget.used_bytes() as u64 >> 20))
        .close();
    Ok(reply)
}

fn metrics(call: &Call<'_>, names: impl Iterator<Item = &'static str>, reply: &mut Builder) {
    let shared = call.shared;
    let counters = &shared.counters;
    reply.open(Kind::Document, "metrics");
    reply.open(Kind::Document, "commands");
    for (name, runs) in names.zip(&counters.by_command) {
        let total = runs.total.get();
        if total > 0 {
            counts(
                reply,
                name,
                &[("total", total), ("failed", runs.failed.get())],
            );
        }
    }
    reply.close();
    let open = shared.cursors.count() as u64;
    reply.open(Kind::Document, "cursor");
    counts(reply, "open", &[("total", open)]);
    reply.close();
    reply.open(Kind::Document, "query");
    counts(
        reply,
        "sort",
        &[("spillToDisk", shared.scratch.spilled.get())],
    );
    reply.close();
    let documents = [
        ("inserted", counters.inserted.get()),
        ("updated", counters.updated.get()),
        ("deleted", counters.deleted.get()),
        ("returned", counters.returned.get()),
    ];
    counts(reply, "document", &documents);
    let expired = shared.expired.load(Ordering::Relaxed);
    counts(reply, "ttl", &[("deletedDocuments", expired)]);
    reply.close();
}
