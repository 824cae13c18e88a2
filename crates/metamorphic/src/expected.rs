//! The answer that every operation must give, from the model alone.
//!
//! Nothing here asks the engine. The rules on the side (an empty slot answers `none`, a family that
//! is not there `no family`, one made after a snapshot `young`) make any part of a list a legal
//! list, so that a failing one can be cut down.

use std::collections::BTreeMap;

use drumlin_testkit::model::{Change, Cursor, FamilyModel, MergeRule, Model, Rules};

use crate::digest;
use crate::generate::{ITERATORS, SNAPSHOTS, kind_of};
use crate::op::{Edit, EditKind, Op};
use crate::verb::Verb;

/// The rules of families called `name`.
pub(crate) fn rules(name: &str) -> Rules {
    let kind = kind_of(name);
    Rules {
        descending: kind == 'r',
        merge: match kind {
            'n' => MergeRule::None,
            'u' => MergeRule::Add,
            _ => MergeRule::Append,
        },
    }
}

/// The edits of `op` that go into an external table: the ranges, which delete nothing that is in the table, and then of
/// each key the last, by key.
pub(crate) fn external(edits: &[Edit]) -> Vec<&Edit> {
    let is_range = |edit: &&Edit| edit.kind == EditKind::Range;
    let points = edits.iter().filter(|edit| !is_range(edit));
    let points: BTreeMap<&[u8], &Edit> = points.map(|edit| (&edit.key[..], edit)).collect();
    let ranges = edits.iter().filter(is_range);
    ranges.chain(points.into_values()).collect()
}

/// The trace of a list: each operation's answer, and the state after it.
#[derive(Debug)]
pub struct Trace {
    /// The answers.
    pub lines: Vec<String>,
    /// The states, each after the operation of the same index.
    pub states: Vec<Model>,
}

/// The trace that `ops` must lead to.
pub fn expect(ops: &[Op]) -> Trace {
    let mut world = World::new();
    let (mut lines, mut states) = (Vec::with_capacity(ops.len()), Vec::new());
    for op in ops {
        lines.push(world.perform(op));
        states.push(world.model.clone());
    }
    Trace { lines, states }
}

#[derive(Clone)]
struct Snapshot {
    model: Model,
    births: BTreeMap<String, u64>,
}

struct Iterator {
    cursor: Cursor,
    family: String,
    birth: u64,
    pinned: bool,
}

struct World {
    model: Model,
    /// When each family was made: a name may come back.
    births: BTreeMap<String, u64>,
    time: u64,
    snapshots: [Option<Snapshot>; SNAPSHOTS],
    iterators: [Option<Iterator>; ITERATORS],
    held: Vec<Option<Vec<u8>>>,
    dropped: Option<FamilyModel>,
}

impl World {
    fn new() -> Self {
        Self {
            model: Model::new(rules("default")),
            births: BTreeMap::from([("default".to_owned(), 0)]),
            time: 0,
            snapshots: Default::default(),
            iterators: Default::default(),
            held: Vec::new(),
            dropped: None,
        }
    }

    fn perform(&mut self, op: &Op) -> String {
        let missing = op
            .edits
            .iter()
            .any(|e| self.model.family(&e.family).is_none());
        let known = self.model.family(&op.family).is_some();
        match op.verb {
            Verb::CreateFamily => return self.create(op),
            Verb::CheckHeld => return self.check_held(),
            Verb::SnapshotTake | Verb::SnapshotDrop => return self.snapshot(op),
            Verb::ReadDropped => return self.read_dropped(op),
            Verb::IterFirst
            | Verb::IterLast
            | Verb::IterSeek
            | Verb::IterSeekForPrev
            | Verb::IterNext
            | Verb::IterPrev
            | Verb::IterTurn
            | Verb::IterPin
            | Verb::IterRefresh
            | Verb::IterDrop => return self.iterate(op),
            _ if missing || !known => return "no family".to_owned(),
            _ => {}
        }
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
            | Verb::PutParallel => self.write(&op.edits),
            Verb::Ingest | Verb::IngestTwo | Verb::IngestMoved => self.ingest(op),
            Verb::DeleteRangeInverted => self.inverted(op),
            Verb::MergeRefused => match kind_of(&op.family) {
                'n' => "InvalidArgument".to_owned(),
                _ => "it has an operator".to_owned(),
            },
            Verb::PutOversize => "TooLarge".to_owned(),
            Verb::DropFamily => self.drop_family(op),
            Verb::CreateFamilyTwice | Verb::OpenExisting => "InvalidArgument".to_owned(),
            Verb::OpenTwice => "Locked".to_owned(),
            _ => self.read(op),
        }
    }

    fn family(&self, op: &Op) -> &FamilyModel {
        self.model.family(&op.family).expect("looked for before")
    }

    fn write(&mut self, edits: &[Edit]) -> String {
        for edit in edits {
            self.model.apply(&edit.family, &edit.change());
        }
        "ok".to_owned()
    }

    fn ingest(&mut self, op: &Op) -> String {
        if op.edits.is_empty() {
            return "nothing".to_owned();
        }
        let half = match op.verb {
            Verb::IngestTwo => op.edits.len() / 2,
            _ => 0,
        };
        let (first, second) = op.edits.split_at(half);
        for part in [first, second] {
            for edit in external(part) {
                self.model.apply(&op.family, &edit.change());
            }
        }
        "ok".to_owned()
    }

    fn inverted(&mut self, op: &Op) -> String {
        let (begin, end) = (op.key(0), op.key(1));
        let refused = match rules(&op.family).descending {
            false => end < begin,
            true => end > begin,
        };
        if refused {
            return "InvalidArgument".to_owned();
        }
        let range = Change::DeleteRange(begin.to_vec(), end.to_vec());
        self.model.apply(&op.family, &range);
        "ok".to_owned()
    }

    fn create(&mut self, op: &Op) -> String {
        if !self.model.create(&op.family, rules(&op.family)) {
            return "InvalidArgument".to_owned();
        }
        self.time += 1;
        self.births.insert(op.family.clone(), self.time);
        "ok".to_owned()
    }

    fn drop_family(&mut self, op: &Op) -> String {
        let Some(held) = self.model.drop_family(&op.family) else {
            return "InvalidArgument".to_owned();
        };
        self.births.remove(&op.family);
        self.dropped = Some(held);
        "ok".to_owned()
    }

    fn read_dropped(&self, op: &Op) -> String {
        let Some(family) = &self.dropped else {
            return "none".to_owned();
        };
        let value = digest::value(family.get(op.key(0)));
        format!("{value}; {}", scan(family, true))
    }

    fn check_held(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        digest::values(held.iter().map(|value| value.as_deref()))
    }

    fn snapshot(&mut self, op: &Op) -> String {
        let place = &mut self.snapshots[op.slot % SNAPSHOTS];
        if op.verb == Verb::SnapshotDrop {
            return if place.take().is_some() { "ok" } else { "none" }.to_owned();
        }
        *place = Some(Snapshot {
            model: self.model.clone(),
            births: self.births.clone(),
        });
        "ok".to_owned()
    }

    /// The family of `op` as of the snapshot it names, and whether there is such a snapshot; `None`
    /// when the family is younger.
    fn family_at(&self, op: &Op) -> Option<(FamilyModel, bool)> {
        let Some(snapshot) = &self.snapshots[op.at % SNAPSHOTS] else {
            return Some((self.family(op).clone(), false));
        };
        if snapshot.births.get(&op.family) != self.births.get(&op.family) {
            return None;
        }
        Some((snapshot.model.family(&op.family)?.clone(), true))
    }

    fn read(&mut self, op: &Op) -> String {
        let young = || "young".to_owned();
        match op.verb {
            Verb::Get | Verb::GetUncached | Verb::GetUnverified | Verb::GetEveryWay => {
                digest::value(self.family(op).get(op.key(0)))
            }
            Verb::GetHeld => {
                let value = self.family(op).get(op.key(0)).map(<[u8]>::to_vec);
                self.held.push(value.clone());
                digest::value(value.as_deref())
            }
            Verb::MultiGet | Verb::CompactBeside => {
                let family = self.family(op);
                digest::values(op.keys.iter().map(|key| family.get(key)))
            }
            Verb::GetAt => match self.family_at(op) {
                None => young(),
                Some((family, _)) => digest::value(family.get(op.key(0))),
            },
            Verb::MultiGetAt => match self.family_at(op) {
                None => young(),
                Some((family, _)) => digest::values(op.keys.iter().map(|key| family.get(key))),
            },
            Verb::ScanAt => match self.family_at(op) {
                None => young(),
                Some((family, _)) => scan(&family, true),
            },
            Verb::IterNew | Verb::IterNewAt => self.iter_new(op),
            Verb::Scan | Verb::ScanReadahead | Verb::ScanBySeeks => scan(self.family(op), true),
            Verb::ScanBackward => scan(self.family(op), false),
            Verb::ScanBounded => {
                let (lower, upper) = bounds(op);
                let cursor = self.family(op).cursor(lower, upper);
                let both = (walk(cursor.clone(), true), walk(cursor, false));
                format!("{}; {}", both.0, both.1)
            }
            Verb::ScanPrefix => {
                let rows = rows(self.family(op));
                let matching = rows.iter().filter(|(key, _)| key.starts_with(op.key(0)));
                digest::rows(matching.map(|(key, value)| (&key[..], &value[..])))
            }
            Verb::GetCached | Verb::ScanCached => "right".to_owned(),
            Verb::CloseRefuses => self.reopened("Shutdown; "),
            Verb::Reopen
            | Verb::ReopenChanged
            | Verb::ReopenDropped
            | Verb::OpenReadOnly
            | Verb::Crash
            | Verb::CrashLossy
            | Verb::CrashTwice => self.reopened(""),
            Verb::Checkpoint | Verb::OpenBeside => everything(&self.model, |_| true),
            Verb::CheckpointWritten => {
                let mut copy = self.model.clone();
                for edit in &op.edits {
                    copy.apply(&edit.family, &edit.change());
                }
                let source = everything(&self.model, |_| true);
                format!("{}; {source}", everything(&copy, |_| true))
            }
            Verb::RepairCopy => everything(&self.model, |family| !family.rows().is_empty()),
            Verb::ListFamilies => self.model.names().collect::<Vec<_>>().join(" "),
            _ => "ok".to_owned(),
        }
    }

    /// Everything, after all held objects were dropped.
    fn reopened(&mut self, said: &str) -> String {
        self.snapshots = Default::default();
        self.iterators = Default::default();
        self.dropped = None;
        format!("{said}{}", everything(&self.model, |_| true))
    }

    fn iter_new(&mut self, op: &Op) -> String {
        let (lower, upper) = bounds(op);
        let found = match op.verb {
            Verb::IterNewAt => self.family_at(op),
            _ => Some((self.family(op).clone(), false)),
        };
        let Some((family, pinned)) = found else {
            return "young".to_owned();
        };
        self.iterators[op.slot % ITERATORS] = Some(Iterator {
            cursor: family.cursor(lower, upper),
            birth: self.births[&op.family],
            family: op.family.clone(),
            pinned,
        });
        "ok".to_owned()
    }

    fn iterate(&mut self, op: &Op) -> String {
        let place = &mut self.iterators[op.slot % ITERATORS];
        let Some(iterator) = place else {
            return "none".to_owned();
        };
        let cursor = &mut iterator.cursor;
        match op.verb {
            Verb::IterFirst => cursor.seek_to_first(),
            Verb::IterLast => cursor.seek_to_last(),
            Verb::IterSeek => cursor.seek(op.key(0)),
            Verb::IterSeekForPrev => cursor.seek_for_prev(op.key(0)),
            Verb::IterNext => (0..op.count).for_each(|_| cursor.next()),
            Verb::IterPrev => (0..op.count).for_each(|_| cursor.prev()),
            Verb::IterTurn => {
                let mut said = Vec::new();
                for turn in 0..1 + op.count % 5 {
                    match (turn + op.count / 5).is_multiple_of(2) {
                        true => cursor.next(),
                        false => cursor.prev(),
                    }
                    said.push(digest::row(cursor.row()));
                }
                return said.join("; ");
            }
            Verb::IterPin => return digest::value(cursor.row().map(|(_, value)| value)),
            Verb::IterRefresh if iterator.pinned => return "NotSupported".to_owned(),
            Verb::IterRefresh => {
                if self.births.get(&iterator.family) != Some(&iterator.birth) {
                    return "dropped".to_owned();
                }
                let family = self.model.family(&iterator.family);
                *cursor = cursor.renewed(family.expect("it has a birth"));
                return "ok".to_owned();
            }
            _ => {
                *place = None;
                return "ok".to_owned();
            }
        }
        digest::row(cursor.row())
    }
}

/// The bounds that `op` asks for, by the low bits of its number.
pub(crate) fn bounds(op: &Op) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let lower = (op.count & 1 != 0).then(|| op.key(0).to_vec());
    let upper = (op.count & 2 != 0).then(|| op.key(1).to_vec());
    (lower, upper)
}

fn rows(family: &FamilyModel) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = family.rows().iter().map(|(k, v)| (k.clone(), v.clone()));
    match family.rules().descending {
        false => rows.collect(),
        true => rows.rev().collect(),
    }
}

fn scan(family: &FamilyModel, forward: bool) -> String {
    walk(family.cursor(None, None), forward)
}

fn walk(mut cursor: Cursor, forward: bool) -> String {
    let mut digest = digest::Digest::new();
    match forward {
        true => cursor.seek_to_first(),
        false => cursor.seek_to_last(),
    }
    while let Some((key, value)) = cursor.row() {
        digest.add(key);
        digest.add(value);
        match forward {
            true => cursor.next(),
            false => cursor.prev(),
        }
    }
    digest.text()
}

/// All families that pass `shown`, each with all its rows.
pub(crate) fn everything(model: &Model, shown: fn(&FamilyModel) -> bool) -> String {
    let families = model.names().filter_map(|name| {
        let family = model.family(name).filter(|family| shown(family))?;
        Some((name.to_owned(), scan(family, true)))
    });
    digest::families(families)
}
