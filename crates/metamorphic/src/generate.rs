//! Op files from a seed.

use std::collections::BTreeMap;

use drumlin_base::rng::Rng;

use crate::op::{Edit, EditKind, Op, ValueSpec};
use crate::verb::Verb;

/// Iterators held at once.
pub(crate) const ITERATORS: usize = 4;
/// Snapshots held at once.
pub(crate) const SNAPSHOTS: usize = 4;
/// Families at once.
const FAMILIES: usize = 4;
/// Bytes of the longest allowed key.
pub(crate) const KEY_BYTES_MAX: usize = 600;

/// The kinds of operations a list may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Everything.
    Full,
    /// Those that LevelDB's directories take: one family, puts and deletions.
    Plain,
}

impl Profile {
    /// The profile `ops` need.
    pub fn of(ops: &[Op]) -> Self {
        let plain = ops.iter().all(|op| {
            let edits = op.edits.iter();
            op.verb.weights().1 > 0
                && edits
                    .map(|edit| edit.kind)
                    .all(|kind| matches!(kind, EditKind::Put | EditKind::Delete))
        });
        if plain { Self::Plain } else { Self::Full }
    }
}

/// The kind of a family, which is the first letter of its name.
pub(crate) fn kind_of(family: &str) -> char {
    match family {
        "default" => 'a',
        name => name.chars().next().unwrap_or('a'),
    }
}

struct Generator {
    rng: Rng,
    profile: Profile,
    /// How keys look.
    shape: u64,
    /// How many there are.
    keys: u64,
    families: Vec<String>,
    made: u32,
    weights: Vec<(u32, Verb)>,
    /// Sum of all weights.
    total: u32,
}

/// `count` operations that follow from `seed`. Every eighth seed makes a plain list.
pub fn generate(seed: u64, count: usize) -> Vec<Op> {
    let profile = match seed % 8 {
        7 => Profile::Plain,
        _ => Profile::Full,
    };
    let mut generator = Generator::new(seed, profile);
    (0..count).map(|_| generator.op()).collect()
}

impl Generator {
    fn new(seed: u64, profile: Profile) -> Self {
        let mut rng = Rng::new(seed ^ 0x6D65_7461);
        // A third of the kinds is drawn more, or hardly at all, each time: swarms find more than the
        // same mixture over and over.
        let mut weights = Vec::new();
        let mut total = 0;
        for verb in Verb::ALL {
            let (full, plain) = verb.weights();
            let weight = match profile {
                Profile::Full => full,
                Profile::Plain => plain,
            };
            let weight = match rng.below(6) {
                0 => weight * 3,
                1 => weight / 4,
                _ => weight,
            };
            total += weight;
            weights.push((total, *verb));
        }
        Self {
            shape: rng.below(4),
            keys: [40, 150, 400][rng.below(3) as usize],
            rng,
            profile,
            families: vec!["default".to_owned()],
            made: 0,
            weights,
            total,
        }
    }

    fn verb(&mut self) -> Verb {
        let drawn = self.rng.below(u64::from(self.total)) as u32;
        let index = self.weights.partition_point(|(sum, _)| *sum <= drawn);
        self.weights[index].1
    }

    fn op(&mut self) -> Op {
        let mut op = Op::new(self.verb());
        op.family = self.family();
        match op.verb {
            Verb::Put
            | Verb::Delete
            | Verb::SinglePut
            | Verb::SingleDelete
            | Verb::Merge
            | Verb::DeleteRange
            | Verb::Batch
            | Verb::BatchAppended
            | Verb::BatchFromBytes
            | Verb::BatchWithLogData
            | Verb::PutSynced
            | Verb::PutUnlogged
            | Verb::PutImpatient
            | Verb::PutParallel
            | Verb::CheckpointWritten
            | Verb::Ingest
            | Verb::IngestTwo
            | Verb::IngestMoved => self.write(&mut op),
            Verb::DeleteRangeInverted => {
                let (begin, end) = self.range(&op.family);
                op.keys = vec![end, begin];
            }
            Verb::CreateFamily | Verb::CreateFamilyTwice | Verb::DropFamily => {
                self.family_change(&mut op);
            }
            _ => self.read(&mut op),
        }
        op
    }

    fn write(&mut self, op: &mut Op) {
        let family = op.family.clone();
        let count = match op.verb {
            Verb::Batch | Verb::BatchAppended | Verb::BatchFromBytes | Verb::BatchWithLogData => {
                2 + self.rng.below(10)
            }
            Verb::PutParallel => 12 + self.rng.below(40),
            Verb::CheckpointWritten => 5,
            Verb::Ingest | Verb::IngestTwo | Verb::IngestMoved => 3 + self.rng.below(30),
            _ => 1,
        };
        for _ in 0..count {
            let edit = match op.verb {
                Verb::Put
                | Verb::PutSynced
                | Verb::PutUnlogged
                | Verb::PutImpatient
                | Verb::CheckpointWritten
                | Verb::Ingest
                | Verb::IngestTwo => self.edit(EditKind::Put, &family),
                Verb::Delete => self.edit(EditKind::Delete, &family),
                Verb::Merge => self.edit(EditKind::Merge, &family),
                Verb::DeleteRange => self.edit(EditKind::Range, &family),
                Verb::SinglePut => self.single(EditKind::Put, &family),
                Verb::SingleDelete => self.single(EditKind::Single, &family),
                Verb::IngestMoved | Verb::PutParallel => {
                    let kind = self.point_kind();
                    self.edit(kind, &family)
                }
                _ => {
                    let (family, kind) = (self.family(), self.any_kind());
                    self.edit(kind, &family)
                }
            };
            op.edits.push(edit);
        }
        op.count = self.rng.below(1 << 16);
        if op.verb == Verb::IngestMoved
            && op.count.is_multiple_of(3)
            && self.profile == Profile::Full
        {
            self.add_range_between(op);
        }
    }

    /// Adds the deletion of what is between the first two keys of `op`, which takes no random number: lists are what they
    /// were without it.
    fn add_range_between(&mut self, op: &mut Op) {
        let [first, second, ..] = &op.edits[..] else {
            return;
        };
        let (low, high) = match first.key < second.key {
            true => (&first.key, &second.key),
            false => (&second.key, &first.key),
        };
        let (key, end) = match kind_of(&op.family) {
            'r' => (high.clone(), low.clone()),
            _ => (low.clone(), high.clone()),
        };
        if key != end {
            op.edits.push(Edit {
                kind: EditKind::Range,
                family: op.family.clone(),
                key,
                end,
                value: ValueSpec::default(),
            });
        }
    }

    fn point_kind(&mut self) -> EditKind {
        match (self.rng.below(10), self.profile) {
            (0..=5, _) => EditKind::Put,
            (6 | 7, Profile::Full) => EditKind::Merge,
            _ => EditKind::Delete,
        }
    }

    fn any_kind(&mut self) -> EditKind {
        match (self.rng.below(12), self.profile) {
            (0, Profile::Full) => EditKind::Range,
            _ => self.point_kind(),
        }
    }

    /// An edit that `family` supports.
    fn edit(&mut self, kind: EditKind, family: &str) -> Edit {
        let kind = match (kind, kind_of(family)) {
            (EditKind::Merge, 'n') => EditKind::Put,
            (kind, _) => kind,
        };
        let (key, end) = match kind {
            EditKind::Range => self.range(family),
            _ => (self.key(), Vec::new()),
        };
        Edit {
            kind,
            family: family.to_owned(),
            key,
            end,
            value: match kind {
                EditKind::Put | EditKind::Merge => self.value(family),
                _ => ValueSpec::default(),
            },
        }
    }

    fn single(&mut self, kind: EditKind, family: &str) -> Edit {
        let key = format!("s{:02}", self.rng.below(20)).into_bytes();
        let value = match kind {
            EditKind::Put => self.value(family),
            _ => ValueSpec::default(),
        };
        Edit {
            kind,
            family: family.to_owned(),
            key,
            end: Vec::new(),
            value,
        }
    }

    fn value(&mut self, family: &str) -> ValueSpec {
        let len = match (kind_of(family), self.rng.below(60)) {
            ('u', _) => 8,
            (_, 0) => 0,
            (_, 1) => 1500 + self.rng.below(4000),
            (_, 2..=8) => 100 + self.rng.below(300),
            _ => self.rng.below(80),
        };
        ValueSpec {
            len: len as u32,
            seed: self.rng.below(1 << 20) as u32,
        }
    }

    fn key(&mut self) -> Vec<u8> {
        match self.rng.below(60) {
            0 => return Vec::new(),
            1 => return vec![0xFF; 1 + self.rng.below(3) as usize],
            _ => {}
        }
        let number = self.rng.below(self.keys);
        match self.shape {
            0 => format!("k{number:03}").into_bytes(),
            1 => (number * 1_000_003).to_be_bytes().to_vec(),
            2 => {
                let (bucket, row) = (number / 16, number % 16);
                format!("user/{bucket:04}/row/{row:02}").into_bytes()
            }
            _ => {
                let mut key = vec![0; 2 + (number % 30) as usize];
                Rng::new(number).fill(&mut key);
                key
            }
        }
    }

    /// Two keys, not against the family's order.
    fn range(&mut self, family: &str) -> (Vec<u8>, Vec<u8>) {
        let (a, b) = (self.key(), self.key());
        let (low, high) = (a.clone().min(b.clone()), a.max(b));
        match kind_of(family) {
            'r' => (high, low),
            _ => (low, high),
        }
    }

    fn family(&mut self) -> String {
        let index = self.rng.below(self.families.len() as u64) as usize;
        self.families[index].clone()
    }

    fn family_change(&mut self, op: &mut Op) {
        match op.verb {
            Verb::CreateFamily if self.families.len() < FAMILIES => {
                let kind = ["a", "r", "u", "n"][self.rng.below(4) as usize];
                // A name comes back now and then.
                self.made += u32::from(!self.rng.one_in(4));
                op.family = format!("{kind}{}", self.made);
                if !self.families.contains(&op.family) {
                    self.families.push(op.family.clone());
                }
            }
            Verb::DropFamily if self.families.len() > 1 => {
                let index = 1 + self.rng.below(self.families.len() as u64 - 1) as usize;
                op.family = self.families.remove(index);
            }
            _ => op.verb = Verb::CreateFamilyTwice,
        }
    }

    fn read(&mut self, op: &mut Op) {
        let slots = match op.verb {
            Verb::SnapshotTake | Verb::SnapshotDrop => SNAPSHOTS,
            _ => ITERATORS,
        };
        op.slot = self.rng.below(slots as u64) as usize;
        op.at = self.rng.below(SNAPSHOTS as u64) as usize;
        op.count = match op.verb {
            Verb::IterNext | Verb::IterPrev => 1 + self.rng.below(12),
            Verb::Advance => 1 + self.rng.below(40 * 24 * 3600),
            _ => self.rng.below(1 << 32),
        };
        let keys = match op.verb {
            Verb::MultiGet | Verb::MultiGetAt => 2 + self.rng.below(60),
            Verb::Get
            | Verb::GetAt
            | Verb::GetUncached
            | Verb::GetUnverified
            | Verb::GetCached
            | Verb::GetHeld
            | Verb::GetEveryWay
            | Verb::IterSeek
            | Verb::IterSeekForPrev
            | Verb::ScanPrefix
            | Verb::ReadDropped
            | Verb::MergeRefused => 1,
            Verb::CompactBeside => 10,
            _ => 0,
        };
        op.keys = (0..keys).map(|_| self.key()).collect();
        match op.verb {
            Verb::IterNew | Verb::IterNewAt | Verb::ScanBounded | Verb::CompactRange => {
                let (lower, upper) = self.range(&op.family);
                op.keys = vec![lower, upper];
            }
            Verb::ScanPrefix => {
                let len = 1 + self.rng.below(8) as usize;
                op.keys[0].truncate(len);
            }
            _ => {}
        }
    }
}

/// Leaves out the edits that the contract of single deletions forbids, so that any part of a list is
/// a list: a key of theirs is put when it is not there, and single-deleted when it was put.
pub fn legalize(ops: &[Op]) -> Vec<Op> {
    let mut there: BTreeMap<(String, Vec<u8>), bool> = BTreeMap::new();
    let mut legal = Vec::with_capacity(ops.len());
    for op in ops {
        let mut op = op.clone();
        if op.verb == Verb::DropFamily {
            there.retain(|(family, _), _| *family != op.family);
        }
        op.edits.retain(|edit| {
            let place = (edit.family.clone(), edit.key.clone());
            match edit.kind {
                EditKind::Put if op.verb == Verb::SinglePut => {
                    there.insert(place, true) != Some(true)
                }
                EditKind::Single => there.insert(place, false) == Some(true),
                EditKind::Range => {
                    let (low, high) = match edit.key <= edit.end {
                        true => (&edit.key, &edit.end),
                        false => (&edit.end, &edit.key),
                    };
                    // At most these are gone; to put them again is allowed once they surely are.
                    there.retain(|(family, key), _| {
                        *family != edit.family || key < low || key > high || is_edge(key, edit)
                    });
                    true
                }
                _ => true,
            }
        });
        legal.push(op);
    }
    legal
}

/// Whether `key` is the end of a range, and so not in it.
fn is_edge(key: &[u8], range: &Edit) -> bool {
    key == range.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::parse_ops;

    #[test]
    fn a_list_follows_from_its_seed_and_survives_being_written() {
        for seed in [1, 7] {
            let ops = generate(seed, 3000);
            assert_eq!(ops, generate(seed, 3000));
            let text: String = ops.iter().map(|op| format!("{op}\n")).collect();
            assert_eq!(parse_ops(&text).unwrap(), ops);
        }
        assert_ne!(generate(1, 50), generate(2, 50));
    }

    #[test]
    fn every_eighth_list_suits_leveldb() {
        assert_eq!(Profile::of(&generate(7, 3000)), Profile::Plain);
        assert_eq!(Profile::of(&generate(8, 3000)), Profile::Full);
    }

    #[test]
    fn no_part_of_a_list_single_deletes_what_was_put_twice() {
        let ops = generate(3, 4000);
        let part: Vec<Op> = ops.into_iter().step_by(2).collect();
        let mut puts: BTreeMap<(String, Vec<u8>), u32> = BTreeMap::new();
        for op in legalize(&part) {
            if op.verb == Verb::DropFamily {
                puts.clear();
            }
            for edit in &op.edits {
                let place = puts.entry((edit.family.clone(), edit.key.clone()));
                match edit.kind {
                    EditKind::Put if op.verb == Verb::SinglePut => *place.or_default() += 1,
                    EditKind::Single => assert!(std::mem::take(place.or_default()) <= 2),
                    _ => {}
                }
            }
        }
    }
}
