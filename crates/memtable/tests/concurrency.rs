//! Goal: concurrent adds lose nothing and confuse no reader. Method: several writers, with readers
//! walking both ways and getting meanwhile, then a check of the whole.
#![cfg(not(loom))]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use drumlin_base::key::{compare_internal, seek_key, split_internal, tag_seqno};
use drumlin_base::rng::Rng;
use drumlin_base::{InternalIterator, KeyOrder, SEQNO_MAX, ValueKind};
use drumlin_memtable::Memtable;

const WRITERS: u64 = 4;
const ADDS: u64 = 8000;

fn key_of(number: u64) -> Vec<u8> {
    format!("user{number:012}").into_bytes()
}

/// The key of the `index`-th add of `writer`: random, ascending or descending by writer.
fn key_for(writer: u64, index: u64) -> Vec<u8> {
    match writer % 4 {
        0 => key_of(index * 3),
        1 => key_of((ADDS - index) * 3 + 1),
        _ => key_of(Rng::new(writer << 32 | index).below(ADDS * 3)),
    }
}

fn seqno_for(writer: u64, index: u64) -> u64 {
    1 + index * WRITERS + writer
}

fn write_all(memtable: &Memtable, writer: u64, done: &AtomicU64) {
    for index in 0..ADDS {
        let seqno = seqno_for(writer, index);
        memtable.add(
            seqno,
            ValueKind::Value,
            &key_for(writer, index),
            &seqno.to_be_bytes(),
        );
        done.store(index + 1, Ordering::Release);
    }
}

fn assert_walk_is_ordered(memtable: &Arc<Memtable>, forward: bool) -> usize {
    let mut iter = memtable.iter();
    let mut last: Option<Vec<u8>> = None;
    let mut seen = 0;
    if forward {
        iter.seek_to_first();
    } else {
        iter.seek_to_last();
    }
    while iter.valid() {
        if let Some(last) = &last {
            let order = compare_internal(memtable.order(), last, iter.key());
            assert!(if forward {
                order.is_lt()
            } else {
                order.is_gt()
            });
        }
        let (_, tag) = split_internal(iter.key()).expect("an internal key");
        assert_eq!(iter.value(), tag_seqno(tag).to_be_bytes());
        last = Some(iter.key().to_vec());
        seen += 1;
        if forward {
            iter.next();
        } else {
            iter.prev();
        }
    }
    seen
}

#[test]
fn readers_see_every_finished_add_while_writers_go_on() {
    let memtable = Arc::new(Memtable::new(KeyOrder::Bytewise));
    let done: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (memtable, done) = (&memtable, &done[writer as usize]);
                scope.spawn(move || write_all(memtable, writer, done))
            })
            .collect();
        scope.spawn(|| {
            let mut rng = Rng::new(1);
            while !finished.load(Ordering::Acquire) {
                let writer = rng.below(WRITERS);
                let index = rng.below(done[writer as usize].load(Ordering::Acquire));
                if done[writer as usize].load(Ordering::Acquire) > 0 {
                    assert_finds(&memtable, writer, index);
                }
            }
        });
        scope.spawn(|| {
            let mut forward = true;
            while !finished.load(Ordering::Acquire) {
                let floor: u64 = done.iter().map(|done| done.load(Ordering::Acquire)).sum();
                let seen = assert_walk_is_ordered(&memtable, forward);
                assert!(seen as u64 >= floor, "a finished add was missed");
                forward = !forward;
            }
        });
        for writer in writers {
            writer.join().expect("writers do not panic");
        }
        finished.store(true, Ordering::Release);
    });
    assert_complete(&memtable);
}

fn assert_finds(memtable: &Arc<Memtable>, writer: u64, index: u64) {
    let (key, seqno) = (key_for(writer, index), seqno_for(writer, index));
    let mut found = None;
    memtable.get(&key, seqno, |seqno, _, value| {
        found = Some((seqno, value.bytes().to_vec()));
        ControlFlow::Break(())
    });
    assert_eq!(found, Some((seqno, seqno.to_be_bytes().to_vec())));
    let mut iter = memtable.iter();
    iter.seek(&seek_key(&key, seqno));
    let found = split_internal(iter.key()).expect("an internal key");
    assert_eq!((found.0, tag_seqno(found.1)), (&key[..], seqno));
    let here = iter.key().to_vec();
    iter.seek_for_prev(&here);
    assert_eq!(iter.key(), here, "both seeks stand on an exact target");
}

fn assert_complete(memtable: &Arc<Memtable>) {
    let total = (WRITERS * ADDS) as usize;
    assert_eq!(memtable.entries(), total);
    assert_eq!(assert_walk_is_ordered(memtable, true), total);
    assert_eq!(assert_walk_is_ordered(memtable, false), total);
    for writer in 0..WRITERS {
        for index in (0..ADDS).step_by(37) {
            assert_finds(memtable, writer, index);
        }
    }
}

#[test]
fn writers_of_one_key_lose_no_version() {
    let memtable = Arc::new(Memtable::new(KeyOrder::Bytewise));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let memtable = &memtable;
            scope.spawn(move || {
                for index in 0..1000 {
                    memtable.add(seqno_for(writer, index), ValueKind::Merge, b"k", b"");
                }
            });
        }
    });
    let mut expected = WRITERS * 1000;
    memtable.get(b"k", SEQNO_MAX, |seqno, _, _| {
        assert_eq!(seqno, expected, "newest first, none missing");
        expected -= 1;
        ControlFlow::Continue(())
    });
    assert_eq!(expected, 0);
}
