//! What a client's documents, collections and indexes are, and how its commands change them.

use std::collections::{BTreeMap, BTreeSet};

use crate::documents::Doc;

/// A collection's database and name.
pub(crate) type Place = (String, String);

/// The collection of all clients.
pub(crate) fn shared() -> Place {
    ("all".to_owned(), "shared".to_owned())
}

/// What a collection has: of the collection of all, what is the client's.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Content {
    pub(crate) docs: BTreeMap<i64, Doc>,
    /// Places in `INDEXES`.
    pub(crate) indexes: BTreeSet<usize>,
}

/// All that is a client's.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) collections: BTreeMap<Place, Content>,
    /// How often it counted in the document of all.
    pub(crate) counted: i64,
}

/// A part of a command that is done whole or not at all.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Make(Place),
    Put(Place, Doc),
    Remove(Place, i64),
    Index(Place, usize),
    Unindex(Place, usize),
    Drop(Place),
    Rename(Place, Place),
    Count,
}

impl State {
    pub(crate) fn content(&mut self, place: &Place) -> &mut Content {
        self.collections.entry(place.clone()).or_default()
    }

    /// How many documents of the client's a collection has.
    pub(crate) fn content_len(&self, place: &Place) -> usize {
        let content = self.collections.get(place);
        content.map_or(0, |content| content.docs.len())
    }

    pub(crate) fn apply(&mut self, step: &Step) {
        match step {
            Step::Make(place) => drop(self.collections.entry(place.clone()).or_default()),
            Step::Put(place, doc) => {
                self.content(place).docs.insert(doc.id, doc.clone());
            }
            Step::Remove(place, id) => {
                self.content(place).docs.remove(id);
            }
            Step::Index(place, index) => {
                self.content(place).indexes.insert(*index);
            }
            Step::Unindex(place, index) => {
                self.content(place).indexes.remove(index);
            }
            Step::Drop(place) => drop(self.collections.remove(place)),
            Step::Rename(from, to) => {
                if let Some(content) = self.collections.remove(from) {
                    self.collections.insert(to.clone(), content);
                }
            }
            Step::Count => self.counted += 1,
        }
    }

    /// It after all of `steps`.
    pub(crate) fn after(&self, steps: &[Step]) -> Self {
        let mut after = self.clone();
        steps.iter().for_each(|step| after.apply(step));
        after
    }
}

/// Which parts of a command may be done where it was cut off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Order {
    /// Those before some moment.
    Prefix,
    /// Any.
    Any,
}

/// Why `found` cannot be what is left of `before` when the command of `steps` was cut off. Requires: with [`Order::Any`] no two steps
/// are for one document.
pub(crate) fn difference(
    before: &State,
    steps: &[Step],
    order: Order,
    found: &State,
) -> Option<String> {
    let after = before.after(steps);
    if order == Order::Prefix {
        let is_one = (0..=steps.len()).any(|count| before.after(&steps[..count]) == *found);
        return (!is_one).then(|| told(before, &after, found));
    }
    let between = {
        let collections = found.collections.iter().all(|(place, content)| {
            let empty = Content::default();
            let sides = [before, &after].map(|side| side.collections.get(place));
            let sides_or_empty = sides.map(|side| side.unwrap_or(&empty));
            let ids: BTreeSet<&i64> = sides_or_empty
                .iter()
                .flat_map(|side| side.docs.keys())
                .chain(content.docs.keys())
                .collect();
            let docs = ids.iter().all(|id| {
                sides_or_empty
                    .iter()
                    .any(|side| side.docs.get(id) == content.docs.get(id))
            });
            let [least, most] = [0, 1].map(|side| &sides_or_empty[side].indexes);
            let differ = |index: &usize| least.contains(index) != most.contains(index);
            let indexes = least.symmetric_difference(&content.indexes).all(differ);
            sides.iter().any(Option::is_some) && docs && indexes
        });
        let nothing_gone = before.collections.keys().all(|place| {
            found.collections.contains_key(place) || !after.collections.contains_key(place)
        });
        collections && nothing_gone && (before.counted..=after.counted).contains(&found.counted)
    };
    (!between).then(|| told(before, &after, found))
}

/// The places where `found` is neither the one nor the other.
fn told(before: &State, after: &State, found: &State) -> String {
    let mut out = format!(
        "counted {}, before {}, after {}\n",
        found.counted, before.counted, after.counted
    );
    let places: BTreeSet<&Place> = [before, after, found]
        .iter()
        .flat_map(|state| state.collections.keys())
        .collect();
    for place in places {
        let [old, new, now] = [before, after, found].map(|state| state.collections.get(place));
        if now == old && now == new {
            continue;
        }
        let names = |content: Option<&Content>| content.map(|it| it.indexes.clone());
        out += &format!(
            "{place:?}: indexes {:?}, before {:?}, after {:?}\n",
            names(now),
            names(old),
            names(new)
        );
        let ids: BTreeSet<&i64> = [old, new, now]
            .iter()
            .flatten()
            .flat_map(|it| it.docs.keys())
            .collect();
        for id in ids {
            let [old, new, now] = [old, new, now].map(|content| content?.docs.get(id));
            if now != old || now != new {
                out += &format!("{id:x}: {now:?}\n  before {old:?}\n  after {new:?}\n");
            }
        }
    }
    out
}
