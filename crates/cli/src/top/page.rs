//! The page: what two looks at a store tell of the time between them. A pure function of both.

use std::fmt::Write as _;

use super::samples::Samples;
use crate::units;

/// Two looks, and the seconds between them; with one alone there are no rates.
pub(super) struct Looks<'a> {
    pub(super) before: Option<(&'a Samples, f64)>,
    pub(super) now: &'a Samples,
    /// The figures are those of a directory's files.
    pub(super) is_directory: bool,
}

const ENGINE: &str = "drumlin_engine_";
/// Letters of the widest bar.
const BAR: usize = 20;

impl Looks<'_> {
    fn now(&self, name: &str) -> f64 {
        self.now.sum(&format!("{ENGINE}{name}"))
    }

    /// How much a counter grew, a second. A process that began anew counts from nothing.
    fn rate_of(&self, count: impl Fn(&Samples) -> f64) -> Option<f64> {
        let (before, seconds) = self.before?;
        let (before, now) = (count(before), count(self.now));
        let grown = if now < before { now } else { now - before };
        (seconds > 0.0).then_some(grown / seconds)
    }

    fn rate(&self, name: &str) -> Option<f64> {
        let name = format!("{ENGINE}{name}");
        self.rate_of(|samples| samples.sum(&name))
    }

    /// The mean of a histogram's times since the last look, in microseconds.
    fn mean_micros(&self, name: &str) -> Option<f64> {
        let (before, _) = self.before?;
        let grown = |part: &str| {
            let name = format!("{ENGINE}{name}{part}");
            self.now.sum(&name) - before.sum(&name)
        };
        let count = grown("_count");
        (count > 0.0).then(|| grown("_sum") / count * 1e6)
    }
}

/// The lines of the page.
pub(super) fn page(looks: &Looks<'_>) -> Vec<String> {
    let mut lines = vec![state(looks), writes(looks)];
    if !looks.is_directory {
        lines.push(reads(looks));
        lines.push(waits(looks));
        lines.push(memory(looks));
    }
    lines.push(debt(looks));
    lines.push(disk(looks));
    lines.push(String::new());
    lines.extend(levels(looks));
    if !looks.is_directory {
        lines.push(String::new());
        lines.extend(jobs(looks.now));
    }
    lines
}

fn state(looks: &Looks<'_>) -> String {
    let health = match looks.now("health") as u64 {
        _ if looks.is_directory => "read from its files",
        0 => "healthy",
        1 => "PAUSED: background work failed and is tried again",
        2 => "WRITES STOPPED",
        _ => "READS ONLY: damaged or poisoned, reopen it",
    };
    let newest = looks.now("newest_seqno");
    let ahead = newest - looks.now("durable_seqno");
    match looks.is_directory {
        true => format!("state    {health}, write number {}", number(newest)),
        false => format!(
            "state    {health}, write number {}, {} not synced yet",
            number(newest),
            number(ahead.max(0.0))
        ),
    }
}

fn writes(looks: &Looks<'_>) -> String {
    let seqno = "newest_seqno";
    if looks.is_directory {
        return format!("writes   {}", per_second(looks.rate(seqno), "keys"));
    }
    let mut line = format!(
        "writes   {}, {}, log {}, {}",
        per_second(looks.rate("number_keys_written_total"), "keys"),
        bytes_per_second(looks.rate("bytes_written_total")),
        bytes_per_second(looks.rate("wal_bytes_total")),
        per_second(looks.rate("wal_synced_total"), "syncs"),
    );
    if let Some(micros) = looks.mean_micros("wal_file_sync_seconds") {
        let _ = write!(line, " of {micros:.0} us");
    }
    line
}

fn reads(looks: &Looks<'_>) -> String {
    let calls = [
        ("gets", "db_get_seconds"),
        ("multi-gets", "db_multiget_seconds"),
        ("seeks", "db_seek_seconds"),
    ];
    let is_timed = |name: &str| !looks.now.all(&format!("{ENGINE}{name}_count")).is_empty();
    let mut parts = Vec::new();
    for (what, name) in calls.iter().filter(|(_, name)| is_timed(name)) {
        let mut part = per_second(looks.rate(&format!("{name}_count")), what);
        if let Some(micros) = looks.mean_micros(name) {
            let _ = write!(part, " of {micros:.1} us");
        }
        parts.push(part);
    }
    if parts.is_empty() {
        parts.push("not counted (Options::timings is Jobs)".to_owned());
    }
    parts.push(per_second(
        looks.rate("num_iterator_created_total"),
        "iterators",
    ));
    // A Redis server's own.
    let commands = looks.rate_of(|samples| samples.sum("drumlin_commands_total"));
    if looks.now.number("drumlin_commands_total").is_some() {
        parts.push(per_second(commands, "commands"));
    }
    format!("reads    {}", parts.join(", "))
}

fn waits(looks: &Looks<'_>) -> String {
    let name = format!("{ENGINE}wait_seconds_total");
    let causes = looks.now.all(&name).iter();
    let waits = causes.filter_map(|(labels, _)| {
        let cause = labels.get("cause")?;
        let share = looks.rate_of(|samples| samples.sum_where(&name, "cause", cause))?;
        (share >= 0.0005).then(|| format!("{cause} {:.1} %", share * 100.0))
    });
    let waits: Vec<String> = waits.collect();
    let slowed = looks.now("delayed_write_bytes_per_second");
    let slowed = match slowed > 0.0 {
        true => format!(", slowed to {}/s", units::bytes(slowed as u64)),
        false => String::new(),
    };
    match (looks.before, waits.is_empty()) {
        (None, _) => format!("waits    -{slowed}"),
        (_, true) => format!("waits    none{slowed}"),
        (_, false) => format!("waits    {} of the time{slowed}", waits.join(", ")),
    }
}

fn memory(looks: &Looks<'_>) -> String {
    let limit = looks.now("memory_limit_bytes");
    let mut uses: Vec<(&str, f64)> = looks
        .now
        .all("drumlin_engine_memory_bytes")
        .iter()
        .filter_map(|(labels, bytes)| Some((labels.get("use")?.as_str(), *bytes)))
        .filter(|(_, bytes)| *bytes > 0.0)
        .collect();
    uses.sort_by(|a, b| b.1.total_cmp(&a.1));
    let used: f64 = uses.iter().map(|(_, bytes)| bytes).sum();
    let uses: Vec<String> = uses
        .iter()
        .map(|(name, bytes)| format!("{name} {}", units::bytes(*bytes as u64)))
        .collect();
    format!(
        "memory   {} {} of {}: {}",
        bar(used / limit.max(1.0)),
        units::bytes(used as u64),
        units::bytes(limit as u64),
        uses.join(", "),
    )
}

fn debt(looks: &Looks<'_>) -> String {
    let mut line = format!(
        "debt     {} to compact",
        units::bytes(looks.now("pending_compaction_bytes") as u64)
    );
    let blobs = looks.now("blob_bytes");
    if blobs > 0.0 {
        let _ = write!(
            line,
            ", blob files {} with {} of garbage",
            units::bytes(blobs as u64),
            units::bytes(looks.now("blob_garbage_bytes") as u64)
        );
    }
    if !looks.is_directory {
        let _ = write!(
            line,
            ", memtables {} and {} waiting",
            units::bytes(looks.now("active_memtable_bytes") as u64),
            number(looks.now("immutable_memtables")),
        );
    }
    line
}

fn disk(looks: &Looks<'_>) -> String {
    let free = looks.now.number("drumlin_engine_disk_free_bytes");
    let free = free.map_or_else(|| "unknown".to_owned(), |free| units::bytes(free as u64));
    match looks.is_directory {
        true => format!("disk     {free} free"),
        false => format!(
            "disk     {free} free, {} kept free, {} to be removed",
            units::bytes(looks.now("disk_reserve_bytes") as u64),
            units::bytes(looks.now("trash_bytes") as u64),
        ),
    }
}

/// All families together, a line a level that has something.
fn levels(looks: &Looks<'_>) -> Vec<String> {
    let mut lines = vec![match looks.is_directory {
        true => format!("{:<6}{:>8}{:>12}", "level", "tables", "bytes"),
        false => format!(
            "{:<6}{:>8}{:>12}{:>12}{:>14}{:>14}",
            "level", "tables", "bytes", "compacting", "read", "written"
        ),
    }];
    for level in 0..7 {
        let level = level.to_string();
        let of = |samples: &Samples, name: &str| {
            samples.sum_where(&format!("{ENGINE}{name}"), "level", &level)
        };
        let tables = of(looks.now, "level_tables");
        let [read, written] = ["level_read_bytes_total", "level_written_bytes_total"]
            .map(|name| looks.rate_of(|samples| of(samples, name)));
        if tables == 0.0 && written.unwrap_or(0.0) == 0.0 {
            continue;
        }
        let bytes = units::bytes(of(looks.now, "level_bytes") as u64);
        let mut line = format!("L{level:<5}{:>8}{bytes:>12}", number(tables));
        if !looks.is_directory {
            let compacting = number(of(looks.now, "level_tables_compacting"));
            let (read, written) = (bytes_per_second(read), bytes_per_second(written));
            let _ = write!(line, "{compacting:>12}{read:>14}{written:>14}");
        }
        lines.push(line);
    }
    lines
}

fn jobs(now: &Samples) -> Vec<String> {
    let jobs = now.all("drumlin_engine_job_share");
    if jobs.is_empty() {
        return vec!["nothing runs in the background".to_owned()];
    }
    let line = |(labels, share): &(super::samples::Labels, f64)| {
        let label = |name: &str| labels.get(name).map_or("", String::as_str);
        format!(
            "{} {:>3.0} %  {} in '{}'",
            bar(*share),
            share * 100.0,
            shown(label("what")),
            shown(label("family"))
        )
    };
    jobs.iter().map(line).collect()
}

/// Bytes of somebody else's page may steer no terminal.
fn shown(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect()
}

fn bar(share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    format!("[{}{}]", "#".repeat(full), " ".repeat(BAR - full))
}

fn number(value: f64) -> String {
    units::count(value.max(0.0) as u64)
}

fn per_second(rate: Option<f64>, what: &str) -> String {
    match rate {
        Some(rate) => format!("{} {what}/s", number(rate.round())),
        None => format!("- {what}/s"),
    }
}

fn bytes_per_second(rate: Option<f64>) -> String {
    match rate {
        Some(rate) => format!("{}/s", units::bytes(rate as u64)),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(keys: u32, sync_seconds: f64) -> Samples {
        Samples::parse(&format!(
            "drumlin_engine_health 0\ndrumlin_engine_newest_seqno {keys}\ndrumlin_engine_durable_seqno 10\n\
             drumlin_engine_number_keys_written_total {keys}\ndrumlin_engine_bytes_written_total {keys}000\n\
             drumlin_engine_memory_limit_bytes 1000\ndrumlin_engine_memory_bytes{{use=\"blocks\"}} 500\n\
             drumlin_engine_level_tables{{family=\"a\",level=\"6\"}} 3\n\
             drumlin_engine_level_tables{{family=\"b\",level=\"6\"}} 4\n\
             drumlin_engine_wait_seconds_total{{cause=\"L0\"}} {sync_seconds}\n\
             drumlin_engine_job_share{{job=\"0\",family=\"a\",what=\"flush\\n\"}} 0.5\n"
        ))
    }

    #[test]
    fn rates_are_of_the_time_between_two_looks() {
        let (before, now) = (text(100, 1.0), text(300, 1.5));
        let looks = Looks {
            before: Some((&before, 2.0)),
            now: &now,
            is_directory: false,
        };
        let page = page(&looks).join("\n");
        for wanted in [
            "state    healthy, write number 300, 290 not synced yet",
            "writes   100 keys/s",
            "waits    L0 25.0 % of the time",
            "[##########          ] 500 B of 1.00 kB: blocks 500 B",
            "L6           7",
            "[##########          ]  50 %  flush? in 'a'",
        ] {
            assert!(page.contains(wanted), "{wanted} in\n{page}");
        }
        // A process that was started again.
        let looks = Looks {
            before: Some((&now, 2.0)),
            now: &before,
            is_directory: false,
        };
        assert!(
            super::page(&looks)
                .join("\n")
                .contains("writes   50 keys/s")
        );
    }

    #[test]
    fn one_look_has_no_rates_and_a_directory_tells_only_of_its_files() {
        let now = text(300, 1.5);
        let page = |is_directory| {
            let looks = Looks {
                before: None,
                now: &now,
                is_directory,
            };
            page(&looks).join("\n")
        };
        assert!(page(false).contains("writes   - keys/s"));
        let of_files = page(true);
        assert!(
            of_files.contains("read from its files, write number 300"),
            "{of_files}"
        );
        for unknown in ["memory", "waits", "reads", "synced"] {
            assert!(!of_files.contains(unknown), "{of_files}");
        }
    }
}
