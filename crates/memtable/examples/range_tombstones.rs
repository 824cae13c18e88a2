//! What a range deletion and a lookup cost beside many others in one memtable.
//!
//! `cargo run --release -p drumlin-memtable --example range_tombstones`

use drumlin_base::rng::Rng;
use drumlin_base::{KeyOrder, SEQNO_MAX, ValueKind};
use drumlin_memtable::Memtable;

#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

#[expect(clippy::print_stdout, reason = "a measurement")]
fn main() {
    println!("tombstones   ns to add one   ns to look up a key   at a snapshot   bytes each");
    for count in [1_000u64, 16_000, 128_000] {
        let memtable = Memtable::new(KeyOrder::Bytewise);
        let empty = memtable.bytes();
        let mut rng = Rng::new(count);
        let key = |number: u64| format!("key{number:013}").into_bytes();
        let begins: Vec<u64> = (0..count).map(|_| rng.below(1 << 30)).collect();
        let ranges: Vec<_> = begins.iter().map(|at| (key(*at), key(at + 5))).collect();
        let begin = now();
        for (seqno, (begin, end)) in (1..).zip(&ranges) {
            memtable.add(seqno, ValueKind::RangeDeletion, begin, end);
        }
        let add = begin.elapsed().as_nanos() as u64 / count;
        let keys: Vec<_> = (0..100_000).map(|_| key(rng.below(1 << 30))).collect();
        let look_up = |at: &dyn Fn(u64) -> u64| {
            let begin = now();
            let found = (0..)
                .zip(&keys)
                .map(|(nth, key)| memtable.covering_seqno(key, at(nth)));
            std::hint::black_box(found.max());
            begin.elapsed().as_nanos() as u64 / keys.len() as u64
        };
        let (newest, past) = (
            look_up(&|_| SEQNO_MAX),
            look_up(&|nth| 1 + nth * 7919 % count),
        );
        let bytes = (memtable.bytes() - empty) as u64 / count;
        println!("{count:10} {add:15} {newest:21} {past:15} {bytes:12}");
    }
}
