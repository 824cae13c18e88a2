//! Goal: reads get the compactions they have paid for, no other, and only when nothing else is at
//! stake. Method: small pictures of levels, tables charged by hand, and the plan expected.

use drumlin_base::KeyOrder;

use super::leveled::Leveled;
use super::picture::{IDLE, show, version};
use super::plan::{CompactionOptions, InFlight, Moment, Picker};
use super::style::{CompactionStyle, FifoOptions, UniversalOptions};
use crate::version::Version;

const MIB: u64 = 1 << 20;
/// When the tables of the pictures were made, some of them.
const LONG_AGO: Moment<'static> = Moment { now: 1000, ..IDLE };

fn options() -> CompactionOptions {
    CompactionOptions {
        level_base_bytes: 1000 * MIB,
        ..CompactionOptions::new(KeyOrder::Bytewise)
    }
}

/// Charges table `number` with `mib`.
fn charge(version: &Version, number: u64, mib: u64) {
    let level = version.level_of(number).unwrap();
    let table = version.level(level).iter();
    let table = table.clone().find(|table| table.number == number).unwrap();
    table.charge_reads(mib * MIB);
}

fn pick(version: &Version, moment: &Moment<'_>) -> String {
    show(Leveled.pick(version, &options(), moment))
}

/// Two tables of 10 MiB in L0 over two in L6, one of which they overlap.
fn two_over_one() -> Version {
    version(
        "L0 4:a-c=10485760 3:b-d=10485760
         L6 1:a-f=20971520 2:k-p=20971520",
    )
}

#[test]
fn l0_goes_down_when_its_tables_together_paid_for_all_that_is_read() {
    let version = two_over_one();
    charge(&version, 4, 15);
    charge(&version, 3, 24);
    assert_eq!(pick(&version, &LONG_AGO), "nothing");
    charge(&version, 3, 1);
    assert_eq!(pick(&version, &LONG_AGO), "L0>L6 L0:4,3 L6:1");
}

#[test]
fn charges_to_the_oldest_run_pay_for_nothing() {
    let version = two_over_one();
    charge(&version, 1, 1000);
    charge(&version, 2, 1000);
    assert_eq!(pick(&version, &LONG_AGO), "nothing");
}

#[test]
fn a_table_of_a_level_pays_for_itself_and_what_it_overlaps() {
    let version = version(
        "L5 3:a-b=8388608 4:c-d=8388608
         L6 1:a-b=8388608 2:c-f=16777216",
    );
    charge(&version, 4, 23);
    charge(&version, 3, 15);
    assert_eq!(pick(&version, &LONG_AGO), "nothing");
    charge(&version, 3, 1);
    assert_eq!(pick(&version, &LONG_AGO), "L5>L6 L5:3 L6:1");
}

#[test]
fn the_most_overpaid_goes_first_and_few_reads_pay_for_nothing() {
    let version = version(
        "L5 3:a-b=100 4:c-d=100
         L6 1:a-b=100 2:c-d=100",
    );
    charge(&version, 3, 7);
    assert_eq!(pick(&version, &LONG_AGO), "nothing", "by luck alone");
    charge(&version, 3, 2);
    charge(&version, 4, 10);
    assert_eq!(pick(&version, &LONG_AGO), "L5>L6 L5:4 L6:2");
}

#[test]
fn what_overlaps_nothing_below_is_moved() {
    let version = version(
        "L5 3:a-b=1048576000
         L6 2:c-d=100",
    );
    charge(&version, 3, 8);
    assert_eq!(pick(&version, &LONG_AGO), "L5>L6 L5:3 move");
}

#[test]
fn nothing_is_done_while_anything_else_runs_or_is_due() {
    let version = two_over_one();
    charge(&version, 3, 100);
    let busy = Moment {
        is_quiet: false,
        ..LONG_AGO
    };
    assert_eq!(pick(&version, &busy), "nothing");
    let full = super::picture::version(
        "L0 4:a-c=10485760 3:b-d=10485760
         L5 7:k-m=1048576001
         L6 1:a-f=20971520 2:k-p=20971520",
    );
    charge(&full, 3, 100);
    assert_eq!(pick(&full, &LONG_AGO), "L5>L6 L5:7 L6:2");
}

#[test]
fn a_store_that_is_written_is_left_alone_unless_it_costs_no_more_than_usual() {
    let made_at_100 = |below: u64| {
        let bytes = below * MIB;
        let version = version(&format!(
            "L0 3:a-c=1048576@100
             L6 1:a-f={bytes}"
        ));
        charge(&version, 3, 1000);
        version
    };
    let at = |version: &Version, now| pick(version, &Moment { now, ..IDLE });
    let (usual, dear) = (made_at_100(10), made_at_100(11));
    assert_eq!(at(&usual, 104), "nothing", "a flush was just now");
    assert_eq!(at(&usual, 105), "L0>L6 L0:3 L6:1");
    assert_eq!(at(&dear, 105), "nothing", "eleven bytes for each moved");
    assert_eq!(at(&dear, 159), "nothing");
    assert_eq!(at(&dear, 160), "L0>L6 L0:3 L6:1", "nobody writes any more");
    assert_eq!(at(&usual, 50), "L0>L6 L0:3 L6:1", "the clock was set back");
}

#[test]
fn nothing_is_done_while_the_next_flush_is_near() {
    let version = two_over_one();
    charge(&version, 3, 100);
    let at = |flush_cf| {
        let moment = Moment {
            flush_cf,
            ..LONG_AGO
        };
        pick(&version, &moment)
    };
    assert_eq!(at(59), "nothing");
    assert_eq!(at(60), "L0>L6 L0:4,3 L6:1");
}

#[test]
fn other_styles_do_nothing_for_reads() {
    let universal = CompactionStyle::Universal(UniversalOptions::default());
    let fifo = CompactionStyle::Fifo(FifoOptions::default());
    for style in [universal, fifo, CompactionStyle::Manual] {
        let version = two_over_one();
        charge(&version, 3, 1000);
        charge(&version, 4, 1000);
        let options = CompactionOptions { style, ..options() };
        assert_eq!(show(super::pick(&version, &options, &LONG_AGO)), "nothing");
        let account = super::read_account(&version, &options, &InFlight::default());
        assert_eq!(account, None);
    }
}

#[test]
fn the_account_tells_how_much_of_the_nearest_compaction_is_paid() {
    let version = two_over_one();
    let account = || Leveled.read_account(&version, &options(), &InFlight::default());
    assert_eq!(account(), None);
    charge(&version, 4, 5);
    charge(&version, 3, 5);
    let account = account().unwrap();
    assert_eq!((account.credit, account.price), (10 * MIB, 40 * MIB));
    version.level(0)[0].forget_reads();
    version.level(0)[1].forget_reads();
    assert_eq!(
        Leveled.read_account(&version, &options(), &InFlight::default()),
        None
    );
}
