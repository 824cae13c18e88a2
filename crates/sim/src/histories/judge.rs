//! What a history of appends shows: lost updates, reads of what never was, skew, phantoms, cycles.
//!
//! Between committed transactions there are three kinds of edges: who wrote a key next (ww), who read what one wrote (wr),
//! and who wrote next what one had read (rw); a key that a walk did not find has the empty list, so a phantom is an rw edge as
//! well. Adya's theory (*Weak Consistency*, 1999) in two rules:
//!
//! - Snapshot isolation: no circle has exactly one rw edge, or none.
//! - Serializable: no circle at all; where isolations are mixed, none whose rw edges all begin at serializable transactions.
//!   Whoever is serializable ends before whoever overwrites what it read, and the other edges go forward in time by
//!   themselves.

use std::collections::{BTreeMap, BTreeSet};

/// A transaction's number, from 1 on.
pub(super) type Id = u32;

/// A committed transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Committed {
    pub(super) id: Id,
    pub(super) serializable: bool,
    /// What others had appended to the keys it read.
    pub(super) reads: BTreeMap<usize, Vec<Id>>,
    /// The keys it appended to.
    pub(super) appends: BTreeSet<usize>,
}

/// Edges from each transaction, by its place in the history.
type Edges = Vec<BTreeSet<usize>>;

/// Judges `history`, after which the keys have the lists `last`. Whether there is a circle that snapshot isolation allows:
/// skew.
///
/// # Errors
/// What is wrong, for people.
pub(super) fn judge(history: &[Committed], last: &[Vec<Id>]) -> Result<bool, String> {
    let places: BTreeMap<Id, usize> = (0..).zip(history).map(|(at, it)| (it.id, at)).collect();
    check_lists(history, last, &places)?;
    let mut depends: Edges = vec![BTreeSet::new(); history.len()];
    let mut anti = depends.clone();
    for (key, list) in last.iter().enumerate() {
        for pair in list.windows(2) {
            depends[places[&pair[0]]].insert(places[&pair[1]]);
        }
        for (at, reader) in history.iter().enumerate() {
            let Some(read) = reader.reads.get(&key) else {
                continue;
            };
            if !list.starts_with(read) {
                return Err(format!(
                    "{} read {read:?} of key {key}, which became {list:?}",
                    reader.id
                ));
            }
            if let Some(writer) = read.last() {
                depends[places[writer]].insert(at);
            }
            if let Some(next) = list.get(read.len()).filter(|next| **next != reader.id) {
                anti[at].insert(places[next]);
            }
        }
    }
    check_circles(history, &depends, &anti)
}

/// Every append of the committed is there once, none of the others, and each behind what its transaction had read.
fn check_lists(
    history: &[Committed],
    last: &[Vec<Id>],
    places: &BTreeMap<Id, usize>,
) -> Result<(), String> {
    for (key, list) in last.iter().enumerate() {
        let ids: BTreeSet<Id> = list.iter().copied().collect();
        if ids.len() < list.len() {
            return Err(format!("key {key} has an append twice: {list:?}"));
        }
        let appended = |id: &Id| {
            let at = places.get(id);
            at.is_some_and(|&at| history[at].appends.contains(&key))
        };
        if let Some(id) = list.iter().find(|id| !appended(id)) {
            return Err(format!(
                "key {key} has an append of {id}, which did not commit it: {list:?}"
            ));
        }
        for writer in history.iter().filter(|it| it.appends.contains(&key)) {
            let Some(at) = list.iter().position(|id| *id == writer.id) else {
                return Err(format!(
                    "the update of key {key} by {} is lost: {list:?}",
                    writer.id
                ));
            };
            if let Some(read) = writer.reads.get(&key)
                && read.len() != at
            {
                return Err(format!(
                    "{} appended to {read:?} of key {key}, and an update is lost: {list:?}",
                    writer.id
                ));
            }
        }
    }
    Ok(())
}

fn check_circles(history: &[Committed], depends: &Edges, anti: &Edges) -> Result<bool, String> {
    let ids = |places: &[usize]| -> Vec<Id> { places.iter().map(|at| history[*at].id).collect() };
    let mut serial = depends.clone();
    let mut all = depends.clone();
    for (at, next) in anti.iter().enumerate() {
        if history[at].serializable {
            serial[at].extend(next);
        }
        all[at].extend(next);
        for to in next {
            if reaches(depends, *to, at) {
                let pair = ids(&[at, *to]);
                return Err(format!(
                    "{pair:?}: the first read what the second, which it saw, wrote later"
                ));
            }
        }
    }
    let circle = in_circles(&serial);
    match circle.is_empty() {
        true => Ok(!in_circles(&all).is_empty()),
        false => Err(format!("no serial order of {:?}", ids(&circle))),
    }
}

/// Whether `edges` lead from one place to another.
fn reaches(edges: &Edges, from: usize, to: usize) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        if at == to {
            return true;
        }
        next.extend(edges[at].iter().filter(|it| seen.insert(**it)));
    }
    false
}

/// The places left once those that nothing leads to are taken out, again and again: circles, and what follows them.
fn in_circles(edges: &Edges) -> Vec<usize> {
    let mut leading = vec![0; edges.len()];
    edges.iter().flatten().for_each(|to| leading[*to] += 1);
    let mut free: Vec<usize> = (0..edges.len()).filter(|at| leading[*at] == 0).collect();
    let mut left: BTreeSet<usize> = (0..edges.len()).collect();
    while let Some(at) = free.pop() {
        left.remove(&at);
        for to in &edges[at] {
            leading[*to] -= 1;
            if leading[*to] == 0 {
                free.push(*to);
            }
        }
    }
    left.into_iter().collect()
}

#[cfg(test)]
mod tests {
    //! Goal: the judge tells each anomaly, and no other history. Method: the smallest history of each.
    use super::*;

    fn one(id: Id, reads: &[(usize, &[Id])], appends: &[usize]) -> Committed {
        Committed {
            id,
            serializable: true,
            reads: reads
                .iter()
                .map(|(key, list)| (*key, list.to_vec()))
                .collect(),
            appends: appends.iter().copied().collect(),
        }
    }

    fn weak(mut history: Vec<Committed>) -> Vec<Committed> {
        history.iter_mut().for_each(|it| it.serializable = false);
        history
    }

    #[test]
    fn a_serial_history_is_fine() {
        let history = [
            one(1, &[(0, &[])], &[0]),
            one(2, &[(0, &[1]), (1, &[])], &[0, 1]),
        ];
        assert_eq!(judge(&history, &[vec![1, 2], vec![2]]), Ok(false));
    }

    #[test]
    fn skew_and_phantoms_are_circles_that_snapshot_isolation_allows() {
        // Each saw the other's key without the other's append; the second pair found nothing there.
        for before in [vec![9], vec![]] {
            let first: Vec<Committed> = before.iter().map(|id| one(*id, &[], &[0, 1])).collect();
            let pair = [one(1, &[(1, &before)], &[0]), one(2, &[(0, &before)], &[1])];
            let history = [first, pair.to_vec()].concat();
            let last = [1, 2].map(|id| [before.clone(), vec![id]].concat());
            assert!(
                judge(&history, &last)
                    .unwrap_err()
                    .contains("no serial order")
            );
            assert_eq!(judge(&weak(history), &last), Ok(true));
        }
    }

    #[test]
    fn what_snapshot_isolation_forbids_is_told() {
        let lost = weak(vec![one(1, &[(0, &[])], &[0]), one(2, &[(0, &[])], &[0])]);
        assert!(judge(&lost, &[vec![1, 2]]).unwrap_err().contains("lost"));
        assert!(judge(&lost, &[vec![2]]).unwrap_err().contains("lost"));
        let half = weak(vec![
            one(1, &[], &[0, 1]),
            one(2, &[(0, &[1]), (1, &[])], &[]),
        ]);
        assert!(
            judge(&half, &[vec![1], vec![1]])
                .unwrap_err()
                .contains("which it saw")
        );
        let dirty = weak(vec![one(2, &[(0, &[7])], &[])]);
        assert!(judge(&dirty, &[vec![]]).unwrap_err().contains("became"));
        assert!(
            judge(&dirty, &[vec![7]])
                .unwrap_err()
                .contains("did not commit")
        );
        let twice = weak(vec![one(1, &[], &[0])]);
        assert!(judge(&twice, &[vec![1, 1]]).unwrap_err().contains("twice"));
    }
}
