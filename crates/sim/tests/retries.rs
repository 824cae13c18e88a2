//! Goal: a caller that waits for work that keeps failing gets the error, and such work is tried again
//! after a pause. Method: one scenario each under the simulated scheduler, where seconds of pauses cost
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use drumlin::{CompactionStyle, Db, ErrorKind, Health, Options, Tuning};
use drumlin_fs::{Fault, FaultFileSystem, FaultRule, FileKind, OpKind, StrictMemFileSystem};
use drumlin_sim::schedule::{End, Order, Scheduler, simulate};
use drumlin_sim::setup::{Case, Setup};

/// Places a switch is possible at before a scenario counts as one that never ends.
const STEPS_MAX: u64 = 200_000;

/// Runs `body` on a database of `threads` background threads that compacts three tables of level 0.
fn on_a_database(
    threads: usize,
    body: impl FnOnce(&Db, &FaultFileSystem, &Scheduler) + Send + 'static,
) {
    let scheduler = Scheduler::new(1, Order::Random(4), STEPS_MAX);
    let shared = Arc::clone(&scheduler);
    let end = simulate(&scheduler, move || {
        let files = FaultFileSystem::over_memory(&StrictMemFileSystem::new());
        files.set_clock(Arc::clone(&shared) as _);
        let setup = Setup::draw(&Case::new(0));
        let options = Options {
            background_threads: Some(threads),
            compaction_style: CompactionStyle::default(),
            tuning: Tuning {
                l0_trigger: 3,
                ..Tuning::default()
            },
            ..setup.options(Arc::new(files.clone()), &shared)
        };
        let db = Db::open("/db", options).expect("the disk is well");
        body(&db, &files, &shared);
        files.clear_rules();
        while db.wait_for_background().is_err() {
            shared.sleep(Duration::from_secs(1));
        }
        assert_eq!(db.health(), Health::Healthy);
        db.close().expect("the disk is well");
    });
    assert!(matches!(end, End::Done), "{end:?}");
}

fn no_new_table_from(index: u64) -> FaultRule {
    let rule = FaultRule::from(index, Fault::Io).on(OpKind::Create);
    rule.of_kind(FileKind::Table)
}

#[test]
fn a_manual_compaction_is_told_that_an_automatic_one_keeps_failing() {
    on_a_database(2, |db, files, _| {
        for table in 0..3 {
            for key in 0..9 {
                db.put(format!("k{key}"), format!("v{table}"))
                    .expect("there is room");
            }
            if table == 2 {
                // The last flush makes its table, the compaction it calls for makes none.
                files.add_rule(no_new_table_from(1));
            }
            db.flush().expect("a flush makes its table");
        }
        let told = db.compact_range(db.default_family(), None, None);
        assert_eq!(told.expect_err("it cannot go on").kind(), ErrorKind::Io);
        files.clear_rules();
        while db.wait_for_background().is_err() {}
        db.compact_range(db.default_family(), None, None)
            .expect("the cause is gone");
    });
}

#[test]
fn threads_whose_flushes_fail_pause_between_tries() {
    on_a_database(3, |db, files, scheduler| {
        files.add_rule(no_new_table_from(0));
        db.put("key", "value").expect("there is room");
        assert!(db.flush().is_err());
        let before = files.injected();
        scheduler.sleep(Duration::from_secs(30));
        let tries = files.injected() - before;
        // Each of three threads tries once a second, after shorter pauses in the beginning.
        assert!((20..150).contains(&tries), "{tries} tries in 30 seconds");
    });
}
