//! demo: the whole engine at work in one command.
//!
//! Rows of TPC-H lineitem are generated and loaded; then threads read rows at random while another
//! adds more, and every value read is compared byte for byte with the row generated again. What
//! came of it is printed as a table.

mod load;
mod reads;
mod report;

use std::path::Path;
use std::sync::Arc;

use drumlin::{Db, Options};
use drumlin_bench::text::POOL_BYTES_TPCH;
use drumlin_fs::{Env, machine};
use drumlin_table::{Codec, Compression};

use crate::args::{Demo, Place};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::progress::Progress;
use report::Report;

/// Bytes of the data set of the published TPC-H measurement that the demo is cut down from.
const FULL_SIZE_BYTES: u64 = 554_539_419_806;
/// The smallest pool a cut-down data set gets.
const POOL_BYTES_MIN: u64 = 64 << 10;
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

/// A pool in proportion to the data: text then repeats as often as in the full data set.
fn scaled_pool_bytes(data_bytes: u64) -> u64 {
    let scaled = u128::from(POOL_BYTES_TPCH) * u128::from(data_bytes) / u128::from(FULL_SIZE_BYTES);
    u64::try_from(scaled)
        .unwrap_or(POOL_BYTES_TPCH)
        .clamp(POOL_BYTES_MIN, POOL_BYTES_TPCH)
}

/// Bytes of all files in `dir`.
fn directory_bytes(env: &Env, dir: &Path) -> Outcome<u64> {
    let mut total = 0;
    for name in env.files.list(dir)? {
        match env.files.info(&dir.join(name)) {
            Ok(info) if !info.is_dir => total += info.size,
            Ok(_) => {}
            // Files come and go while the directory is listed.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_shrinks_with_the_data() {
        assert_eq!(scaled_pool_bytes(FULL_SIZE_BYTES), POOL_BYTES_TPCH);
        assert_eq!(scaled_pool_bytes(u64::MAX), POOL_BYTES_TPCH);
        assert_eq!(scaled_pool_bytes(1000), POOL_BYTES_MIN);
        // What the reference's miniature used for 1.2 GB: about 700 KB.
        assert!((650_000..750_000).contains(&scaled_pool_bytes(1_226_700_000)));
    }
}
