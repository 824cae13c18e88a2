//! The text of `/metrics`: the server's counters, then the engine's.

use drumlin_base::sync::atomic::Ordering;
use drumlin_scrape::{Kind, Text};

use crate::command;
use crate::counters::{Class, Count};
use crate::shared::Shared;

/// See the module. Takes microseconds, and asks the system how much room the disk has.
pub(crate) fn page(shared: &Shared) -> String {
    let counters = &shared.counters;
    let mut text = Text::default();
    let mut one = |name: &str, kind: Kind, help: &str, value: u64| {
        text.one(&format!("mongo_{name}"), kind, help, value);
    };
    let (counter, gauge) = (Kind::Counter, Kind::Gauge);
    one(
        "uptime_seconds",
        gauge,
        "Since the server was started.",
        shared.uptime().as_secs(),
    );
    let current = shared.connections.load(Ordering::Relaxed);
    one("connections", gauge, "Connections that are open.", current);
    one(
        "cursors",
        gauge,
        "Cursors that are open.",
        shared.cursors.count() as u64,
    );
    let of = |count: &Count| count.get();
    for (name, help, count) in [
        (
            "connections_total",
            "Connections that were accepted.",
            &counters.connections,
        ),
        ("requests_total", "Messages that came.", &counters.requests),
        (
            "received_bytes_total",
            "Bytes of messages that came.",
            &counters.bytes_in,
        ),
        ("sent_bytes_total", "Bytes of replies.", &counters.bytes_out),
        (
            "refused_total",
            "Commands that ended with an error.",
            &counters.refused,
        ),
    ] {
        one(name, counter, help, of(count));
    }
    let expired = shared.expired.load(Ordering::Relaxed);
    one(
        "expired_documents_total",
        counter,
        "Documents whose time was over.",
        expired,
    );
    text.family(
        "mongo_documents_total",
        counter,
        "Documents by what was done with them.",
    );
    for (what, count) in [
        ("inserted", &counters.inserted),
        ("updated", &counters.updated),
        ("deleted", &counters.deleted),
        ("returned", &counters.returned),
    ] {
        text.sample(&[("what", what)], of(count));
    }
    let classes = [
        ("read", Class::Read),
        ("write", Class::Write),
        ("command", Class::Command),
    ];
    text.family(
        "mongo_command_seconds_total",
        counter,
        "Time that commands took.",
    );
    for (class, of_class) in classes {
        #[expect(clippy::cast_precision_loss, reason = "a time for people")]
        let seconds = of(&counters.taken(of_class).micros) as f64 / 1e6;
        text.sample(&[("class", class)], seconds);
    }
    for (name, help) in [
        ("commands_total", "Commands that were run."),
        (
            "commands_failed_total",
            "Commands that ended with an error, by command.",
        ),
    ] {
        text.family(&format!("mongo_{name}"), counter, help);
        for (command, runs) in command::names().zip(&counters.by_command) {
            let count = match name {
                "commands_total" => &runs.total,
                _ => &runs.failed,
            };
            if of(&runs.total) > 0 {
                text.sample(&[("command", command)], of(count));
            }
        }
    }
    // Without the engine's figures, as where the disk cannot be asked, those of the server are still of use.
    if let Ok(engine) = shared.store.db().metrics() {
        text.append(&engine.to_prometheus());
    }
    text.take()
}
