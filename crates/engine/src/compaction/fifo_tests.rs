//! Goal: FIFO drops the oldest tables, no more than it must, and never one that is older than a
//! table it keeps. Method: pictures and the plan expected of each.

use drumlin_base::KeyOrder;

use super::fifo::Fifo;
use super::picture::{IDLE, show, version};
use super::plan::{CompactionOptions, Moment, Picker};
use super::style::FifoOptions;

fn pick(limits: FifoOptions, now: u64, picture: &str) -> String {
    let options = CompactionOptions {
        target_file_bytes: 10,
        ..CompactionOptions::new(KeyOrder::Bytewise)
    };
    let moment = Moment { now, ..IDLE };
    show(Fifo { limits }.pick(&version(picture), &options, &moment))
}

fn by_size(picture: &str) -> String {
    let limits = FifoOptions {
        table_bytes_max: 100,
        ..FifoOptions::default()
    };
    pick(limits, 0, picture)
}

#[test]
fn the_oldest_go_until_the_rest_fits() {
    let cases = [
        ("nothing is there", "", "nothing"),
        ("all fits", "L0 3:a-f=50 2:a-f=20 1:a-f=30", "nothing"),
        (
            "one is enough",
            "L0 3:a-f=50 2:a-f=21 1:a-f=30",
            "L0>L0 L0:1 drop",
        ),
        (
            "two must go",
            "L0 3:a-f=90 2:a-f=21 1:a-f=30",
            "L0>L0 L0:2,1 drop",
        ),
        (
            "what another style left goes first, the deepest first",
            "L0 3:a-f=90
             L5 2:a-f=30
             L6 1:a-f=30 4:g-h=30",
            "L6>L6 L6:1,4 drop",
        ),
        (
            "a busy table holds the newer ones back",
            "L0 3:a-f=90 2:a-f=90 1:a-f=30*",
            "nothing",
        ),
    ];
    for (name, picture, expected) in cases {
        assert_eq!(by_size(picture), expected, "{name}\n{picture}");
    }
}

#[test]
fn tables_whose_newest_entry_is_too_old_go() {
    let limits = FifoOptions {
        ttl_seconds: Some(10),
        ..FifoOptions::default()
    };
    let picture = "L0 4:a-f@30 3:a-f@20 2:a-f@12 1:a-f@11";
    assert_eq!(pick(limits, 20, picture), "nothing");
    assert_eq!(pick(limits, 21, picture), "L0>L0 L0:1 drop");
    assert_eq!(pick(limits, 35, picture), "L0>L0 L0:3,2,1 drop");
    let unknown = "L0 3:a-f@20 2:a-f@0 1:a-f@11";
    assert_eq!(pick(limits, 90, unknown), "L0>L0 L0:1 drop");
    let never = FifoOptions::default();
    assert_eq!(pick(never, u64::MAX, picture), "nothing");
}

#[test]
fn small_tables_are_merged_where_asked_for_and_large_ones_left() {
    let picture = "L0 6:a-f=2 5:a-f=2 4:a-f=2 3:a-f=2 2:a-f=90 1:a-f=90";
    let merging = FifoOptions {
        merge_small: true,
        ..FifoOptions::default()
    };
    assert_eq!(pick(FifoOptions::default(), 0, picture), "nothing");
    assert_eq!(pick(merging, 0, picture), "L0>L0 L0:6,5,4,3");
    assert_eq!(
        pick(merging, 0, "L0 4:a-f=50 3:a-f=50 2:a-f=50 1:a-f=50"),
        "nothing"
    );
}
