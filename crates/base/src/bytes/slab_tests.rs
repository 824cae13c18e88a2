//! Goal: no two buffers ever share a byte, in any order of takes, frees and drains by any threads,
//! and all memory goes back in the end. Method: each buffer is filled with a number of its own and
//! checked when it is let go (freed slots are poisoned in these builds); the slab's own figures are
//! compared with a plain list of the buffers held.

use std::collections::HashSet;
use std::sync::Arc;

use super::pages::HUGE_PAGE_BYTES;
use super::shared::{Draft, SharedBytes};
use super::slab::{CHUNK_SPANS, Slab};
use crate::budget::{MemoryBudget, MemoryUse};
use crate::rng::Rng;

type Buffer = SharedBytes<u64>;

fn slab(chunks_max: usize) -> (Arc<MemoryBudget>, Arc<Slab>) {
    let budget = MemoryBudget::new(1 << 30);
    let slab = Slab::new(Arc::clone(&budget), chunks_max);
    (budget, slab)
}

fn buffer(slab: &Arc<Slab>, len: usize, mark: u64) -> Option<Buffer> {
    let mut draft = Draft::in_slab(slab, len, (mark % 40) as u32)?;
    draft.bytes_mut().fill(mark as u8);
    Some(draft.share(mark))
}

fn check(buffer: &Buffer) {
    let mark = *buffer.meta() as u8;
    assert!(buffer.bytes().iter().all(|&byte| byte == mark));
    let words = buffer.words(|room| {
        room.fill(*buffer.meta());
        room.len()
    });
    let words = words.expect("one thread at a time checks a buffer");
    assert_eq!(words.len() as u64, *buffer.meta() % 40);
    assert!(words.iter().all(|word| word == buffer.meta()));
}

fn random_len(rng: &mut Rng) -> usize {
    match rng.below(4) {
        0 => rng.below(600) as usize,
        1 => 4096 + rng.below(600) as usize,
        2 => rng.below(20_000) as usize,
        _ => rng.below(240_000) as usize,
    }
}

#[test]
fn a_slot_wastes_at_most_a_ninth() {
    let (_, slab) = slab(1);
    assert_eq!(slab.slot_bytes(1), Some(256));
    for bytes in (256..=256 << 10).step_by(63) {
        let slot = slab.slot_bytes(bytes).unwrap();
        assert!(slot >= bytes && slot % 64 == 0);
        assert!(slot - bytes <= slot / 8 + 64, "{bytes} in {slot}");
    }
    assert_eq!(slab.slot_bytes((256 << 10) + 1), None);
}

#[test]
fn buffers_never_overlap_and_all_memory_comes_back() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let (budget, slab) = slab(6);
        let mut held: Vec<Buffer> = Vec::new();
        for mark in 0..3000u64 {
            if rng.one_in(200) {
                slab.drain(rng.below(6) as usize);
            }
            if rng.one_in(3) && !held.is_empty() {
                let gone = held.swap_remove(rng.below(held.len() as u64) as usize);
                check(&gone);
                continue;
            }
            let len = random_len(&mut rng);
            let made = buffer(&slab, len, mark);
            let made = made.or_else(|| slab.grow().then(|| buffer(&slab, len, mark))?);
            match made {
                Some(made) => held.push(made),
                None => held.truncate(held.len() / 2),
            }
            let places: HashSet<_> = held.iter().map(|held| held.place().unwrap()).collect();
            assert_eq!(places.len(), held.len());
            let bytes: usize = held.iter().map(Buffer::memory_bytes).sum();
            assert!(bytes <= slab.mapped_bytes());
            assert_eq!(budget.used(MemoryUse::Blocks), slab.mapped_bytes());
        }
        held.iter().for_each(check);
        drop(held);
        assert_eq!(
            slab.draining_bytes(),
            0,
            "drained chunks end with their last buffer"
        );
        while slab.shrink() {}
        assert_eq!(slab.mapped_bytes(), 0, "seed {seed}");
        assert_eq!(budget.used_total(), 0);
    }
}

#[test]
fn a_span_serves_another_size_when_it_is_free() {
    let (_, slab) = slab(1);
    assert!(slab.grow());
    for len in [300, 4000, 30_000, 200_000, 300] {
        let all: Vec<_> = std::iter::from_fn(|| buffer(&slab, len, 1)).collect();
        let used: usize = all.iter().map(Buffer::memory_bytes).sum();
        assert!(used >= HUGE_PAGE_BYTES * 7 / 8, "{len}: {used}");
    }
}

#[test]
fn a_drained_chunk_hands_out_nothing_and_goes_with_its_last_buffer() {
    let (budget, slab) = slab(2);
    assert!(slab.grow());
    let first = buffer(&slab, 5000, 1).unwrap();
    let chunk = first.place().unwrap().span as usize / CHUNK_SPANS;
    assert!(slab.drain(chunk) && !slab.drain(chunk));
    assert_eq!(slab.draining_bytes(), HUGE_PAGE_BYTES);
    assert!(buffer(&slab, 5000, 2).is_none());
    let clone = first.clone();
    drop(first);
    assert_eq!(budget.used(MemoryUse::Blocks), HUGE_PAGE_BYTES);
    drop(clone);
    assert_eq!((slab.mapped_bytes(), slab.draining_bytes()), (0, 0));
    assert_eq!(budget.used(MemoryUse::Blocks), 0);
}

#[test]
fn a_drained_chunk_is_taken_back_before_another_is_mapped() {
    let (_, slab) = slab(2);
    assert!(slab.grow());
    let held = buffer(&slab, 5000, 1).unwrap();
    assert!(slab.drain(0) && slab.grow());
    assert_eq!(
        (slab.mapped_bytes(), slab.draining_bytes()),
        (HUGE_PAGE_BYTES, 0)
    );
    let beside = buffer(&slab, 5000, 2).unwrap();
    assert_eq!(beside.place().unwrap().span, held.place().unwrap().span);
    check(&held);
}

#[test]
fn pinned_bytes_keep_their_slot() {
    let (_, slab) = slab(1);
    assert!(slab.grow());
    let held = buffer(&slab, 5000, 9).unwrap();
    let pinned = crate::PinnedSlice::of_shared(&held, 100..200).unwrap();
    assert!(crate::PinnedSlice::of_shared(&held, 100..5001).is_none());
    drop(held);
    let other = buffer(&slab, 5000, 3).unwrap();
    assert_eq!(&*pinned, &[9; 100]);
    drop((pinned, other));
    assert!(slab.shrink(), "nothing is left in the chunk");
}

#[test]
fn buffers_may_be_freed_by_any_thread() {
    let (_, slab) = slab(8);
    let (send, receive) = std::sync::mpsc::sync_channel::<Buffer>(100);
    let receive = std::sync::Mutex::new(receive);
    std::thread::scope(|scope| {
        let receive = &receive;
        for _ in 0..2 {
            scope.spawn(move || {
                while let Ok(buffer) = { receive.lock().unwrap().recv() } {
                    check(&buffer);
                }
            });
        }
        let makers: Vec<_> = (0..2)
            .map(|seed| {
                let (send, slab) = (send.clone(), &slab);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed);
                    for mark in 0..2000 {
                        let len = random_len(&mut rng) / 4;
                        if rng.one_in(300) {
                            slab.drain(rng.below(8) as usize);
                        }
                        let made = buffer(slab, len, mark);
                        let made = made.or_else(|| slab.grow().then(|| buffer(slab, len, mark))?);
                        made.into_iter().for_each(|made| send.send(made).unwrap());
                    }
                })
            })
            .collect();
        makers.into_iter().for_each(|maker| maker.join().unwrap());
        drop(send);
    });
    while slab.shrink() {}
    assert_eq!(slab.mapped_bytes(), 0);
}
