//! A text for people on what the store is doing and why: whether a write would wait, what the
//! background works on and would do next, and what a read touches.

use std::fmt::Write as _;
use std::time::Duration;

use drumlin_base::key;
use drumlin_base::limits::LEVELS;

use crate::compaction::read_account;
use crate::db::engine::Engine;
use crate::db::handle::Db;
use crate::family::column_family::ColumnFamily;
use crate::files::disk_watch::{DiskCost, share};
use crate::store::state::FamilyState;
use crate::store::state::State;
use crate::version::Version;
use crate::watch::pressure::{Fill, PressureState};
use crate::watch::waits::{WaitCause, WaitsByCause};

impl Db {
    /// How the store stands: health, memtables, levels and debt of every family, the measured speeds
    /// and the verdict on writers with its reason, jobs under way and the one that would be next, and
    /// with `user_key` what a get of it in `family` touches. For people; the words may change.
    pub fn explain(&self, family: &ColumnFamily, user_key: Option<&[u8]>) -> String {
        let engine = &self.engine;
        if let Err(error) = engine.store.check_own(&family.0) {
            return error.to_string();
        }
        let mut text = format!("health: {:?}\n", engine.store.health());
        let state = engine.store.lock_state();
        // Writing to a String cannot fail, here and below.
        if let Some(failure) = &state.failure {
            let _ = writeln!(text, "cause: {failure}");
        }
        for family in state.families.values() {
            explain_family(&mut text, engine, family);
        }
        let cost = engine.store.watch.disk.cost();
        explain_verdict(&mut text, engine, &cost);
        explain_disk(&mut text, &cost);
        if engine.store.id.direct_io {
            text.push_str("flushes and compactions go past the page cache\n");
        }
        explain_jobs(&mut text, engine, &state);
        for (cause, waits) in engine
            .store
            .watch
            .waits
            .iter()
            .filter(|(_, waits)| waits.count() > 0)
        {
            let _ = writeln!(text, "writers waited because {}: {waits}", cause.as_str());
        }
        match (state.families.get(&family.id()), user_key) {
            (None, _) => text.push_str("the family was dropped\n"),
            (Some(family), Some(user_key)) => explain_read(&mut text, family, user_key),
            (Some(_), None) => {}
        }
        text
    }

    /// How long writers waited, by cause, since the database was opened.
    pub fn waits(&self) -> &WaitsByCause {
        &self.engine.store.watch.waits
    }
}

fn megabytes(bytes: f64) -> f64 {
    bytes / 1e6
}

fn explain_family(text: &mut String, engine: &Engine, family: &FamilyState) {
    let settings = family.family.settings();
    let tuning = &settings.tuning;
    let waiting: usize = family.immutables.iter().map(|i| i.memtable.bytes()).sum();
    let _ = writeln!(text, "family {:?}:", family.family.name);
    let _ = writeln!(
        text,
        "  memtables: {} of {}, {:.1} MB being filled, {:.1} MB to be flushed",
        1 + family.immutables.len(),
        tuning.memtables_max,
        megabytes(family.mutable.bytes() as f64),
        megabytes(waiting as f64),
    );
    let levels = (0..LEVELS).filter(|&level| !family.version.level(level).is_empty());
    let levels: Vec<String> = levels
        .map(|level| {
            let files = family.version.level(level).len();
            let bytes = megabytes(family.version.level_bytes(level) as f64);
            format!("L{level} {files} tables {bytes:.1} MB")
        })
        .collect();
    let levels = match levels.is_empty() {
        true => "no tables".to_owned(),
        false => levels.join(", "),
    };
    let _ = writeln!(text, "  {levels}");
    let debt = megabytes(engine.background.compaction_debt(family) as f64);
    let _ = writeln!(text, "  compaction debt: {debt:.1} MB");
    explain_reads(text, family);
    explain_blobs(text, &family.version);
}

/// The cost of several runs to reads, beside the cost of merging them.
fn explain_reads(text: &mut String, family: &FamilyState) {
    let account = read_account(
        &family.version,
        &family.family.settings().compaction,
        &family.in_flight,
    );
    if let Some(account) = account {
        let _ = writeln!(
            text,
            "  reads over several runs have paid {:.1} of the {:.1} MB it costs to merge them",
            megabytes(account.credit as f64),
            megabytes(account.price as f64),
        );
    }
}

fn explain_blobs(text: &mut String, version: &Version) {
    let totals = version.blob_totals();
    if totals.files == 0 {
        return;
    }
    let _ = write!(
        text,
        "  {} blob files {:.1} MB, {:.1} MB of it garbage",
        totals.files,
        megabytes(totals.file_bytes as f64),
        megabytes(totals.garbage_bytes as f64),
    );
    let _ = match version.collection() {
        None => writeln!(text, ", no more than allowed"),
        Some(collection) => writeln!(
            text,
            ": {} are emptied by moving {:.1} MB, {} tables refer to them",
            collection.emptied.len(),
            megabytes(collection.live_bytes as f64),
            collection.tables.len(),
        ),
    };
}

fn explain_verdict(text: &mut String, engine: &Engine, cost: &DiskCost) {
    let verdict = match engine.store.watch.board.allowed() {
        free if free.is_infinite() => "writers are free".to_owned(),
        rate => format!(
            "writers may write {:.1} MB/s: {}{}",
            megabytes(rate),
            engine.store.watch.board.cause().as_str(),
            behind(engine.store.watch.board.cause(), cost),
        ),
    };
    let _ = writeln!(text, "verdict: {verdict}");
    let Some(PressureState {
        sample,
        flush_speed,
        compaction_speed,
        amplification,
        sustainable,
    }) = engine.store.watch.board.state()
    else {
        return;
    };
    let fills = [
        ("memtables", sample.memory),
        ("L0", sample.level0),
        ("debt", sample.debt),
        ("waste", sample.waste),
    ];
    let share = |fill: Fill| 100.0 * fill.share();
    let fills = fills.map(|(name, fill)| format!("{name} {:.0} %", share(fill)));
    let _ = writeln!(text, "  of what is allowed: {}", fills.join(", "));
    let speed = |speed: Option<f64>| match speed {
        Some(speed) => format!("{:.1} MB/s", megabytes(speed)),
        None => "not measured yet".to_owned(),
    };
    let _ = writeln!(text, "  flushes: {}", speed(flush_speed));
    let _ = writeln!(
        text,
        "  compactions: {}, {:.1} bytes for each byte written, so they follow {:.1} MB/s",
        speed(compaction_speed),
        amplification.unwrap_or(1.0),
        megabytes(sustainable),
    );
}

/// The disk as the reason behind a cause, if it is one.
fn behind(cause: WaitCause, cost: &DiskCost) -> &'static str {
    match cause {
        WaitCause::Memtables | WaitCause::FullLine if cost.bounds_flushes() => {
            ", which wait for the disk"
        }
        WaitCause::Level0 | WaitCause::Debt if cost.bounds_compactions() => {
            ", which waits for the disk"
        }
        _ => "",
    }
}

fn explain_disk(text: &mut String, cost: &DiskCost) {
    let mut known = Vec::new();
    let shares = [
        ("flushes", cost.flush_share),
        ("compactions", cost.compaction_share),
    ];
    for (what, share) in shares {
        known.extend(
            share.map(|it| format!("{what} wait for it {:.0} % of their time", 100.0 * it)),
        );
    }
    let syncs = [("the WAL", cost.wal_sync), ("a table", cost.table_sync)];
    for (what, time) in syncs {
        let millis =
            |time: Duration| format!("a sync of {what} takes {:.2} ms", 1e3 * time.as_secs_f64());
        known.extend(time.map(millis));
    }
    if !known.is_empty() && !drumlin_base::bug!("cost-of-the-disk-untold") {
        let _ = writeln!(text, "disk: {}", known.join(", "));
    }
}

fn explain_jobs(text: &mut String, engine: &Engine, state: &State) {
    let now = engine.store.id.env.clock.monotonic();
    for job in engine.store.watch.board.jobs() {
        let progress = &job.progress;
        let took = now.saturating_sub(job.since);
        let _ = writeln!(
            text,
            "running: {} of family {}, {:.0} % of {:.1} MB after {:.1} s, {:.0} % of it waiting for the disk",
            job.what,
            job.family,
            100.0 * progress.share(),
            megabytes(progress.bytes_total() as f64),
            took.as_secs_f64(),
            100.0 * share(took, progress.io()).unwrap_or(0.0),
        );
    }
    let _ = writeln!(text, "next: {}", engine.background.describe_next(state));
}

fn explain_read(text: &mut String, family: &FamilyState, user_key: &[u8]) {
    let order = &family.family.options.order;
    let _ = writeln!(
        text,
        "a get looks into {} memtables, then:",
        1 + family.immutables.len()
    );
    let seek = key::seek_key(user_key, drumlin_base::SEQNO_MAX);
    for level in 0..LEVELS {
        let files = family.version.level(level);
        if level == 0 {
            for file in files {
                let inside = order.compare(file.smallest_user_key(), user_key).is_le()
                    && order.compare(user_key, file.largest_user_key()).is_le();
                if inside && !drumlin_base::bug!("explained-get-skips-l0") {
                    let _ = writeln!(text, "  L0 table {} (its filter first)", file.number);
                }
            }
            continue;
        }
        let Some(found) = family.version.find_file(order, level, &seek) else {
            continue;
        };
        if let Some(file) = files.get(found)
            && order.compare(file.smallest_user_key(), user_key).is_le()
        {
            let _ = writeln!(text, "  L{level} table {} (its filter first)", file.number);
        }
    }
}
