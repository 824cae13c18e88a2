//! Prints nanoseconds per operation, elapsed and of this thread's processor time, of one memtable at db_bench's shapes.
//!
//! `cargo run --release -p drumlin-memtable --example memtable [entries]`
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use drumlin_base::rng::Rng;
use drumlin_base::{InternalIterator, KeyOrder, SEQNO_MAX, ValueKind};
use drumlin_memtable::Memtable;

const VALUE: [u8; 100] = [0x61; 100];
/// Keys are drawn below this, as `db_bench --num=10000000` does.
const KEY_SPACE: u64 = 10_000_000;

/// How a number becomes a 16-byte key.
type KeyOf = fn(u64) -> [u8; 16];

fn bench_key(number: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

fn text_key(number: u64) -> [u8; 16] {
    let mut key = *b"user000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Nanoseconds this thread has run: a shared machine's wall clock says little. Zero off Linux.
fn thread_nanos() -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or_default()
}

fn report(name: &str, operations: u64, run: impl FnOnce()) {
    let (start, start_nanos) = (Instant::now(), thread_nanos());
    run();
    let wall = start.elapsed().as_nanos() as f64 / operations as f64;
    let own = (thread_nanos() - start_nanos) / operations as f64;
    println!("{name:<40} {wall:>8.1} ns/op elapsed {own:>8.1} on this thread");
}

fn fresh() -> Arc<Memtable> {
    Arc::new(Memtable::new(KeyOrder::Bytewise))
}

fn add_random(memtable: &Memtable, key_of: KeyOf, seed: u64, entries: u64, first_seqno: u64) {
    let mut rng = Rng::new(seed);
    for seqno in first_seqno..first_seqno + entries {
        let key = key_of(rng.below(KEY_SPACE));
        memtable.add(seqno, ValueKind::Value, &key, &VALUE);
    }
}

fn reads(name: &str, memtable: &Arc<Memtable>, key_of: KeyOf, entries: u64) {
    report(&format!("{name}: random gets, present"), entries, || {
        let mut rng = Rng::new(1);
        let mut found = 0;
        for _ in 0..entries {
            let key = key_of(rng.below(KEY_SPACE));
            memtable.get(&key, SEQNO_MAX, |_, _, value| {
                found += black_box(value.bytes()).len();
                ControlFlow::Break(())
            });
        }
        assert_eq!(found as u64, entries * VALUE.len() as u64);
    });
    report(
        &format!("{name}: random gets, mostly absent"),
        entries,
        || {
            let mut rng = Rng::new(99);
            for _ in 0..entries {
                let key = key_of(rng.below(KEY_SPACE));
                memtable.get(&key, SEQNO_MAX, |_, _, value| {
                    black_box(value.bytes());
                    ControlFlow::Break(())
                });
            }
        },
    );
    for forward in [true, false] {
        let way = if forward { "forward" } else { "backward" };
        report(&format!("{name}: scan {way}"), entries, || {
            let mut iter = memtable.iter();
            let mut sum = 0;
            if forward {
                iter.seek_to_first();
            } else {
                iter.seek_to_last();
            }
            while iter.valid() {
                sum += usize::from(iter.key()[7]) + usize::from(iter.value()[99]);
                if forward {
                    iter.next();
                } else {
                    iter.prev();
                }
            }
            black_box(sum);
        });
    }
}

fn main() {
    let entries = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_800_000u64);
    for (name, key_of) in [("bench keys", bench_key as KeyOf), ("text keys", text_key)] {
        let memtable = fresh();
        report(&format!("{name}: sequential adds"), entries, || {
            for number in 0..entries {
                memtable.add(number + 1, ValueKind::Value, &key_of(number), &VALUE);
            }
        });
        let per_entry = memtable.bytes() as f64 / entries as f64;
        println!("{name}: {per_entry:.1} bytes per sequential entry");
        let memtable = fresh();
        report(&format!("{name}: random adds"), entries, || {
            add_random(&memtable, key_of, 1, entries, 1);
        });
        let per_entry = memtable.bytes() as f64 / entries as f64;
        println!("{name}: {per_entry:.1} bytes per random entry");
        reads(name, &memtable, key_of, entries);
        let memtable = fresh();
        report(&format!("{name}: random adds, 2 threads"), entries, || {
            std::thread::scope(|scope| {
                for half in 0..2 {
                    let memtable = &memtable;
                    scope.spawn(move || {
                        let first_seqno = 1 + half * entries;
                        add_random(memtable, key_of, half + 1, entries / 2, first_seqno);
                    });
                }
            });
        });
    }
}
