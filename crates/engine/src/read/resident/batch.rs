//! Many keys: each stage of a lookup is taken with a round of them before the next; see [`super`] for the idea.
//!
//! A stage reads the results of the one before only after the other keys had their turn, or in the same words: a
//! load that spans several stores still in the store buffer waits for all instructions before it, and so for
//! every line that was prefetched.

use std::ops::ControlFlow;

use drumlin_table::{KeyHint, PlainProbe};

use super::get::{Progress, decide, has_usual_memtables, search_table};
use super::layout::ResidentRuns;
use crate::read::context::{Answer, ROUND, ReadView};

/// As [`crate::read::multi_get`]. `None` when the tables are not laid out, or a memtable has range
/// tombstones. Keys that are no case for this folder go to `rest`, which writes the answer of the key it
/// is given.
pub(in crate::read) fn multi_get<K: AsRef<[u8]>>(
    read: ReadView<'_>,
    keys: &[K],
    mut rest: impl FnMut(&[u8], &mut Answer),
) -> Option<Vec<Answer>> {
    let context = read.context;
    let runs = read
        .super_version
        .resident_runs(&context.order, &context.tables);
    let runs = runs.filter(|_| has_usual_memtables(read.super_version))?;
    let mut answers = Vec::with_capacity(keys.len());
    for keys in keys.chunks(ROUND) {
        let from = answers.len();
        answers.extend(keys.iter().map(|_| Ok(None)));
        let answers = &mut answers[from..];
        let mut round = Round::new(read, keys);
        round.search(runs, answers);
        for (at, (answer, key)) in answers.iter_mut().zip(keys).enumerate() {
            if round.unusual & 1 << at != 0 {
                rest(key.as_ref(), answer);
            }
        }
    }
    Some(answers)
}

/// At most [`ROUND`] keys on their way together. Sets of keys are words with a bit for each.
struct Round<'a, K> {
    read: ReadView<'a>,
    keys: &'a [K],
    /// Keys nothing is known of yet.
    open: u32,
    /// Keys left to the general path.
    unusual: u32,
}

/// The lookup of a key in a table that may hold it.
struct Probe<'a> {
    /// Its index in the round.
    key: usize,
    lookup: PlainProbe<'a>,
}

impl<'a, K: AsRef<[u8]>> Round<'a, K> {
    fn new(read: ReadView<'a>, keys: &'a [K]) -> Self {
        const { assert!(ROUND as u32 == u32::BITS) };
        debug_assert!(keys.len() <= ROUND);
        Self {
            read,
            keys,
            open: u32::MAX >> (ROUND - keys.len()),
            unusual: 0,
        }
    }

    /// Looks up all keys, each of which has its answer in `answers`.
    fn search(&mut self, runs: &ResidentRuns, answers: &mut [Answer]) {
        debug_assert_eq!(answers.len(), self.keys.len());
        let mut probes = self.probes(runs);
        for probe in &probes {
            probe.lookup.prefetch_index();
        }
        self.search_memtables(answers);
        let (likely, count) = self.find_records(&mut probes);
        let likely = &likely[..count];
        for &index in likely {
            probes[index].lookup.prefetch_record();
        }
        for &index in likely {
            let key = probes[index].key;
            for probe in probes[index..].iter().take_while(|it| it.key == key) {
                if !self.is_open(key) {
                    break;
                }
                self.search_table(probe, answers);
            }
        }
    }

    /// The lookups of all keys: key by key, and of a key the newest table first.
    #[inline]
    fn probes<'r>(&mut self, runs: &'r ResidentRuns) -> Vec<Probe<'r>> {
        let mut probes = Vec::with_capacity(2 * self.keys.len());
        for (key, user_key) in self.keys.iter().enumerate() {
            let user_key = user_key.as_ref();
            let hint = KeyHint::of(user_key);
            let is_clear = runs.each_table(user_key, |table| {
                let lookup = table.probe(hint);
                probes.push(Probe { key, lookup });
            });
            if !is_clear {
                self.leave(key);
            }
        }
        probes
    }

    /// Finds the records of open keys by their fingerprints. Gives for each key the index of its newest
    /// probe that finds one, and how many such keys there are. Older probes are tried only if that record
    /// turns out to be of another key.
    #[inline]
    fn find_records(&self, probes: &mut [Probe<'_>]) -> ([usize; ROUND], usize) {
        let (mut likely, mut count) = ([0; ROUND], 0);
        let mut last = usize::MAX;
        for (index, probe) in probes.iter_mut().enumerate() {
            if self.is_open(probe.key) && probe.key != last && probe.lookup.find_record() {
                last = probe.key;
                likely[count] = index;
                count += 1;
            }
        }
        (likely, count)
    }

    fn is_open(&self, key: usize) -> bool {
        self.open & 1 << key != 0
    }

    /// Leaves `key` to the general path.
    fn leave(&mut self, key: usize) {
        self.open &= !(1 << key);
        self.unusual |= 1 << key;
    }

    /// Notes how the search for `key` ended.
    #[inline]
    fn note(&mut self, key: usize, state: Progress) {
        match state {
            Progress::Open => {}
            Progress::Decided => self.open &= !(1 << key),
            Progress::Unusual => self.leave(key),
        }
    }

    fn search_memtables(&mut self, answers: &mut [Answer]) {
        let super_version = self.read.super_version;
        for memtable in super_version.memtables() {
            let (mut keys, mut places, mut count) = ([&[][..]; ROUND], [0; ROUND], 0);
            for (at, key) in self.keys.iter().enumerate() {
                if self.is_open(at) {
                    (keys[count], places[count]) = (key.as_ref(), at);
                    count += 1;
                }
            }
            memtable.get_many(&keys[..count], self.read.seqno, |at, _, kind, value| {
                let at = places[at];
                let state = decide(&mut answers[at], kind, |slice| *slice = value.pin());
                self.note(at, state);
                ControlFlow::Break(())
            });
        }
    }

    #[inline]
    fn search_table(&mut self, probe: &Probe<'_>, answers: &mut [Answer]) {
        let (key, lookup) = (probe.key, &probe.lookup);
        let user_key = self.keys[key].as_ref();
        let state = search_table(
            lookup.table(),
            user_key,
            lookup.hint(),
            self.read.seqno,
            &mut answers[key],
        );
        self.note(key, state);
    }
}
