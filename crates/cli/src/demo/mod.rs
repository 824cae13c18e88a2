//! demo: the whole engine at work in one command.
//!
//! Rows of TPC-H lineitem are generated and loaded; then threads read rows at random while another
//! adds more, and every value read is compared byte for byte with the row generated again. The
//! results are printed as a table.

mod load;
mod reads;
mod report;

use std::sync::Arc;

use drumlin::{Db, Options};
use drumlin_bench::datasets::scaled_pool_bytes;
use drumlin_bench::runner::directory_bytes;
use drumlin_fs::{Env, machine};
use drumlin_table::{Codec, Compression};

use crate::args::{Demo, Place};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::progress::Progress;
use report::Report;

/// Most reading threads.
const THREADS_MAX: usize = 256;

/// Runs the demo in `--db`, which must hold no database yet.
pub(crate) fn demo(place: &Place, demo: &Demo, out: &mut Output) -> Outcome {
    let dir = place.dir()?;
    let env = Env::system();
    if demo.threads == 0 || demo.threads > THREADS_MAX {
        return Err(Failure::Usage(format!(
            "--threads must be 1 to {THREADS_MAX}"
        )));
    }
    let spec = demo.shape.spec(None, Some(demo.bytes.saturating_mul(2)));
    let items = demo.shape.rows(&spec, scaled_pool_bytes(demo.bytes))?;
    let text = Arc::clone(items.text());
    let db = Db::open(dir, options(demo)?)
        .map_err(|error| Failure::Engine(error.context("the demo needs a directory of its own")))?;
    let mut report = Report::new(&spec, &text);
    let loaded = load::load(&db, items, demo.bytes, &env)?;
    report.load = loaded.summary;
    if demo.compact {
        let began = env.clock.monotonic();
        db.compact_range(db.default_family(), None, None)?;
        report.compact = Some(env.clock.monotonic() - began);
    }
    let rows = Arc::new(loaded.rows);
    report.rows_bytes = (rows.len() * size_of::<drumlin_bench::lineitem::Row>()) as u64;
    let mut progress = Progress::seconds("reading", demo.seconds);
    report.reads = reads::run(
        &db,
        Arc::clone(&rows),
        loaded.source,
        demo,
        &env,
        &mut progress,
    )?;
    progress.finish();
    report.memory_bytes = machine::resident_bytes();
    db.flush()?;
    db.wait_for_background()?;
    report.take_counters(&db);
    // At rest: an open database also keeps files that readers may still need.
    db.close()?;
    report.disk_bytes = directory_bytes(&env, dir)?;
    if out.is_json() {
        return out.text(report.object().to_string());
    }
    for line in report.lines() {
        out.text(line)?;
    }
    Ok(())
}

fn options(demo: &Demo) -> Outcome<Options> {
    let codec: Codec = demo.compression.parse()?;
    Ok(Options {
        error_if_exists: true,
        compression: Compression::new(codec),
        memory_budget: demo
            .memory_budget
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        ..Options::default()
    })
}
