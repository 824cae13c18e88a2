//! A dictionary put together from overlapping records.
//!
//! Records that are cut from one large text overlap where they were cut from the same place. Each
//! record is laid over the first earlier one that shares an anchor with it; if they agree wherever
//! both are, they belong to one piece of the large text, with a known distance (a union-find whose
//! members know their distance from their leader). In the end each piece is written once, from its
//! members. What no second record has is left out: the vocabulary serves it better.
//!
//! For text cut from a pool this needs about seven times the pool in records to get the pool back,
//! where storing the records themselves would give a dictionary of seven times the size.

use std::collections::HashMap;

use super::anchors::{Gear, WINDOW_BYTES};

/// A piece is kept whole if this share of it, in percent, stands in two records; else only what does.
const WHOLE_PERCENT: usize = 50;
/// Pieces shorter than this are left out.
const PIECE_BYTES_MIN: usize = WINDOW_BYTES;

/// Puts together what two or more of `records` share, at most `bytes_max` bytes, what most of them
/// share first. Empty when they share nothing.
pub fn assemble(records: &[&[u8]], bytes_max: usize) -> Vec<u8> {
    let mut layout = Layout::new(records);
    let gear = Gear::new();
    // By hash: the first record with the anchor, and where in it the anchor ends.
    let mut seen: HashMap<u64, (u32, u32)> = HashMap::new();
    for (index, record) in records.iter().enumerate() {
        gear.anchors(record, 0, |end, hash| {
            let mine = (index as u32, end as u32);
            let &mut (other, other_end) = seen.entry(hash).or_insert(mine);
            if other as usize != index {
                layout.join(index, other as usize, i64::from(other_end) - end as i64);
            }
            true
        });
    }
    layout.pieces(bytes_max)
}

struct Layout<'a> {
    records: &'a [&'a [u8]],
    /// The next record towards the leader of this one's piece, and the distance to it.
    leader: Vec<(usize, i64)>,
}

impl<'a> Layout<'a> {
    fn new(records: &'a [&'a [u8]]) -> Self {
        Self {
            records,
            leader: (0..records.len()).map(|index| (index, 0)).collect(),
        }
    }

    /// The leader of a record's piece, and where the record begins, counted from its leader's begin.
    fn find(&mut self, index: usize) -> (usize, i64) {
        let (mut root, mut offset) = (index, 0);
        while self.leader[root].0 != root {
            offset += self.leader[root].1;
            root = self.leader[root].0;
        }
        // All on the way point to the leader from now on.
        let (mut at, mut rest) = (index, offset);
        while self.leader[at].0 != root {
            let (next, step) = self.leader[at];
            self.leader[at] = (root, rest);
            rest -= step;
            at = next;
        }
        (root, offset)
    }

    /// Joins the pieces of two records, the first of which begins `shift` bytes after the second.
    fn join(&mut self, index: usize, other: usize, shift: i64) {
        let ((root, offset), (other_root, other_offset)) = (self.find(index), self.find(other));
        if root == other_root || !self.agree(index, other, shift) {
            return;
        }
        self.leader[root] = (other_root, other_offset + shift - offset);
    }

    /// Whether two records say the same wherever both are.
    fn agree(&self, index: usize, other: usize, shift: i64) -> bool {
        let (a, b) = (self.records[index], self.records[other]);
        let (skip_a, skip_b) = if shift < 0 {
            (shift.unsigned_abs() as usize, 0)
        } else {
            (0, shift as usize)
        };
        let (a, b) = (a.get(skip_a..), b.get(skip_b..));
        let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
        let len = a.len().min(b.len());
        a[..len] == b[..len]
    }

    /// Writes each piece of two or more records once.
    fn pieces(mut self, bytes_max: usize) -> Vec<u8> {
        let mut members: HashMap<usize, Vec<(i64, usize)>> = HashMap::new();
        for index in 0..self.records.len() {
            let (root, offset) = self.find(index);
            members.entry(root).or_default().push((offset, index));
        }
        let mut parts: Vec<(usize, usize, Vec<u8>)> = members
            .into_iter()
            .filter(|(_, members)| members.len() > 1)
            .flat_map(|(root, members)| {
                let parts = self.piece(members);
                parts
                    .into_iter()
                    .map(move |(uses, text)| (uses, root, text))
            })
            .collect();
        // Uses for each byte, then the order of the sample.
        parts.sort_by(|a, b| {
            let density = |part: &(usize, usize, Vec<u8>)| part.0 as f64 / part.2.len() as f64;
            density(b).total_cmp(&density(a)).then(a.1.cmp(&b.1))
        });
        let mut text = Vec::new();
        for (_, _, part) in parts {
            if text.len() + part.len() <= bytes_max {
                text.extend_from_slice(&part);
            }
        }
        text
    }

    /// The parts of one piece that are worth keeping, each with the bytes its records have in it.
    fn piece(&self, mut members: Vec<(i64, usize)>) -> Vec<(usize, Vec<u8>)> {
        members.sort_unstable();
        let begin = members.first().map_or(0, |(offset, _)| *offset);
        let span = |&(offset, index): &(i64, usize)| {
            let from = (offset - begin) as usize;
            (from, from + self.records[index].len())
        };
        let len = members.iter().map(|member| span(member).1).max();
        let len = len.unwrap_or(0);
        let (mut text, mut cover) = (vec![0u8; len], vec![0u32; len]);
        for member in &members {
            let (from, to) = span(member);
            text[from..to].copy_from_slice(self.records[member.1]);
            cover[from..to].iter_mut().for_each(|count| *count += 1);
        }
        let twice = cover.iter().filter(|&&count| count > 1).count();
        if twice * 100 >= len * WHOLE_PERCENT {
            let uses = cover.iter().map(|&count| count as usize).sum();
            return vec![(uses, text)];
        }
        let mut parts = Vec::new();
        let mut at = 0;
        for run in cover.chunk_by(|a, b| (*a > 1) == (*b > 1)) {
            if run[0] > 1 && run.len() >= PIECE_BYTES_MIN {
                let uses = run.iter().map(|&count| count as usize).sum();
                parts.push((uses, text[at..at + run.len()].to_vec()));
            }
            at += run.len();
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumlin_base::rng::Rng;

    #[test]
    fn a_pool_comes_back_from_its_cuts() {
        let mut rng = Rng::new(12);
        let mut pool = vec![0; 50_000];
        rng.fill(&mut pool);
        let cuts: Vec<&[u8]> = (0..700)
            .map(|_| {
                let len = 204 + rng.below(616) as usize;
                let at = rng.below((pool.len() - len) as u64) as usize;
                &pool[at..at + len]
            })
            .collect();
        let dictionary = assemble(&cuts, 1 << 20);
        assert!(dictionary.len() <= pool.len());
        assert!(
            dictionary.len() > pool.len() * 9 / 10,
            "{}",
            dictionary.len()
        );
        assert_eq!(assemble(&cuts, 1 << 20), dictionary, "the same every time");
    }

    #[test]
    fn what_nobody_shares_is_left_out() {
        let mut rng = Rng::new(13);
        let own: Vec<Vec<u8>> = (0..100)
            .map(|_| {
                let mut text = vec![0; 500];
                rng.fill(&mut text);
                text
            })
            .collect();
        let mut records: Vec<&[u8]> = own.iter().map(Vec::as_slice).collect();
        assert!(assemble(&records, 1 << 20).is_empty());
        records.push(own[3].as_slice());
        assert_eq!(assemble(&records, 1 << 20), own[3]);
        assert!(assemble(&records, 100).is_empty(), "the limit holds");
    }
}
