//! Seeded mutations of known inputs: they replace a coverage-guided fuzzer on machines without one.

use drumlin_base::rng::Rng;

/// Bytes that sit at the borders decoders care about.
const BORDERS: [u8; 10] = [0, 1, 2, 4, 7, 0x0F, 0x7F, 0x80, 0xFE, 0xFF];
/// Longest input made from nothing, and most that a mutation adds.
const GROWTH_MAX: u64 = 512;

/// An input for a round: a mutated seed, two seeds joined, or bytes from nothing.
pub(crate) fn input(rng: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let Some(seed) = pick(rng, seeds) else {
        return noise(rng);
    };
    if rng.one_in(16) {
        return noise(rng);
    }
    let mut bytes = seed.clone();
    if rng.one_in(8) {
        let other = pick(rng, seeds).unwrap_or(seed);
        bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
        bytes.extend_from_slice(&other[rng.below(other.len() as u64 + 1) as usize..]);
    }
    for _ in 0..1 + rng.below(4) {
        mutate(rng, &mut bytes);
    }
    bytes
}

fn pick<'a>(rng: &mut Rng, seeds: &'a [Vec<u8>]) -> Option<&'a Vec<u8>> {
    seeds.get(rng.below(seeds.len() as u64) as usize)
}

fn noise(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; rng.below(GROWTH_MAX) as usize];
    rng.fill(&mut bytes);
    bytes
}

/// One small change.
fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        *bytes = noise(rng);
        return;
    }
    let len = bytes.len() as u64;
    // Trailers and footers hold most of the meaning, so the end is hit more often than its share.
    let near_end = rng.one_in(3).then(|| len - 1 - rng.below(len.min(64)));
    let at = near_end.unwrap_or_else(|| rng.below(len)) as usize;
    match rng.below(8) {
        0 | 1 => bytes[at] ^= 1 << rng.below(8),
        2 => bytes[at] = BORDERS[rng.below(BORDERS.len() as u64) as usize],
        3 => bytes[at] = rng.next_u64() as u8,
        4 => bytes[at] = bytes[at].wrapping_add(if rng.one_in(2) { 1 } else { 0xFF }),
        5 => bytes.truncate(at),
        6 => {
            let end = bytes.len().min(at + 1 + rng.below(16) as usize);
            bytes.drain(at..end);
        }
        _ => {
            let from = rng.below(len) as usize;
            let count = rng.below(GROWTH_MAX.min(len - from as u64) + 1) as usize;
            let piece = bytes[from..from + count].to_vec();
            bytes.splice(at..at, piece);
        }
    }
}
