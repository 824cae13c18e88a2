//! A dictionary put together from overlapping records.
//!
//! Records that are cut from the same place of one large text overlap. Each record is aligned with
//! the first earlier one that shares an anchor with it. If their overlap agrees, they belong to one
//! piece of the large text, at a known distance (a union-find whose members know their distance
//! from their leader). In the end each piece is written once, from its members. Text in one record
//! only is left out: the vocabulary serves it better.
//!
//! For text cut from a pool this needs about seven times the pool in records to get the pool back,
//! while storing the records themselves would give a dictionary of seven times the size.

use std::collections::HashMap;

use super::anchors::{Gear, WINDOW_BYTES};
use super::matcher::common_prefix;

/// A piece is kept whole if this share of it, in percent, is in two records; else only that part is
/// kept.
const WHOLE_PERCENT: usize = 50;
/// Pieces shorter than this are left out.
const PIECE_BYTES_MIN: usize = WINDOW_BYTES;
/// Bytes of others that a record is compared with in vain, to a byte of its own. A record of a text that
/// repeats has anchors that would align it with another in as many ways as it has bytes.
const VAIN_SHARE: usize = 32;

/// Puts together the text that two or more of `records` share, at most `bytes_max` bytes, the most
/// widely shared first. Empty when they share nothing.
pub fn assemble(records: &[&[u8]], bytes_max: usize) -> Vec<u8> {
    Layout::of(records).pieces(bytes_max)
}

struct Layout<'a> {
    records: &'a [&'a [u8]],
    /// The next record towards the leader of this one's piece, and the distance to it.
    leader: Vec<(usize, i64)>,
    /// Bytes that were compared in vain.
    vain: usize,
}

impl<'a> Layout<'a> {
    /// Lays each of `records` over an earlier one that it shares an anchor and all else with.
    fn of(records: &'a [&'a [u8]]) -> Self {
        let mut layout = Self {
            records,
            leader: (0..records.len()).map(|index| (index, 0)).collect(),
            vain: 0,
        };
        let gear = Gear::new();
        // By hash: the first record with the anchor, and where in it the anchor ends.
        let mut seen: HashMap<u64, (u32, u32)> = HashMap::new();
        for (index, record) in records.iter().enumerate() {
            let vain_max = layout.vain + record.len().saturating_mul(VAIN_SHARE);
            // Anchors that follow each other mostly align a record with another in the same way.
            let mut refused = None;
            gear.anchors(record, 0, |end, hash| {
                let mine = (index as u32, end as u32);
                let &mut (other, other_end) = seen.entry(hash).or_insert(mine);
                let way = (other as usize, i64::from(other_end) - end as i64);
                if way.0 != index
                    && refused != Some(way)
                    && layout.vain <= vain_max
                    && !layout.join(index, way)
                {
                    refused = Some(way);
                }
                true
            });
        }
        layout
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

    /// Joins the pieces of two records, the first of which begins so many bytes after the second, if their
    /// overlap agrees. Returns whether they are in one piece now.
    fn join(&mut self, index: usize, (other, shift): (usize, i64)) -> bool {
        let ((root, offset), (other_root, other_offset)) = (self.find(index), self.find(other));
        if root == other_root {
            return true;
        }
        let (mine, theirs) = self.shared(index, other, shift);
        if mine != theirs {
            self.vain += common_prefix(mine, theirs) + 1;
            return false;
        }
        self.leader[root] = (other_root, other_offset + shift - offset);
        true
    }

    /// The overlap of two records, as each of them has it; the first begins `shift` bytes after the
    /// second.
    fn shared(&self, index: usize, other: usize, shift: i64) -> (&'a [u8], &'a [u8]) {
        let (a, b) = (self.records[index], self.records[other]);
        let (skip_a, skip_b) = if shift < 0 {
            (shift.unsigned_abs() as usize, 0)
        } else {
            (0, shift as usize)
        };
        // Records that do not overlap at this shift share nothing.
        let (a, b) = (a.get(skip_a..), b.get(skip_b..));
        let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
        let len = a.len().min(b.len());
        (&a[..len], &b[..len])
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
    fn records_that_could_be_laid_in_any_way_are_not_compared_in_all_of_them() {
        // One period throughout, and ends that differ: each period lays a record over the first one in a way
        // of its own, and each time only the end says that they do not agree.
        let mut rng = Rng::new(14);
        let mut period = vec![0; 200];
        rng.fill(&mut period);
        let record = |index: u8| [period.repeat(1000), vec![index; 100]].concat();
        let records: Vec<Vec<u8>> = (0..3).map(record).collect();
        let views: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let layout = Layout::of(&views);
        let size: usize = views.iter().map(|record| record.len()).sum();
        assert!(layout.vain > size, "the case is the hard one");
        assert!(layout.vain <= size * (VAIN_SHARE + 1), "{}", layout.vain);
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
