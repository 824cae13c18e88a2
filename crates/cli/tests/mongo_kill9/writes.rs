//! The commands of a client, drawn at random, with what each has to do and to answer.

use drumlin_base::rng::Rng;
use drumlin_doc::{Builder, Document, Kind};

use crate::client::{Call, Client, Expected};
use crate::documents::{Doc, GROUPS, INDEXES, UNIQUE};
use crate::session::numbers;
use crate::state::{Content, Order, Place, Step, shared};

const DUPLICATE: i64 = 11000;
/// Documents of a client in one collection, above which a group goes.
const DOCUMENTS_MAX: usize = 400;
/// Collections of its own.
const COLLECTIONS: u64 = 3;

/// The next command.
pub(crate) fn next(client: &mut Client) -> Call {
    let place = match client.rng.one_in(3) {
        true => own(client),
        false => shared(),
    };
    if client.state.content_len(&place) > DOCUMENTS_MAX {
        return delete_many(client, &place);
    }
    match client.rng.below(100) {
        0..25 => insert(client, &place),
        25..48 => update(client, &place),
        48..56 => update_many(client, &place),
        56..66 => delete(client, &place),
        66..69 => delete_many(client, &place),
        69..79 => find_and_modify(client, &place),
        79..84 => count(client),
        84..91 => find(client, &place),
        91..95 => indexes(client, &place),
        _ => collections(client),
    }
}

fn own(client: &mut Client) -> Place {
    let name = format!("k{}", client.rng.below(COLLECTIONS));
    (format!("own{}", client.number), name)
}

/// A command, begun; with a write concern where it is a write.
fn begin(rng: &mut Rng, name: &str, collection: &str, is_write: bool) -> Builder {
    let mut out = Builder::new();
    out.str(name, collection);
    if is_write {
        out.open(Kind::Document, "writeConcern");
        match rng.below(6) {
            0 => drop(out.bool("j", true)),
            1 => drop(out.str("w", "majority")),
            _ => drop(out.i32("w", 1)),
        }
        out.close();
    }
    out
}

fn call(place: &Place, command: Builder, steps: Vec<Step>, expected: Expected) -> Call {
    Call {
        database: place.0.clone(),
        command,
        steps,
        order: Order::Prefix,
        expected,
    }
}

/// A document that nobody has.
fn new(client: &mut Client) -> Doc {
    client.given += 1;
    Doc::random(&mut client.rng, client.number, client.given)
}

/// What the collection is to be made for, if it is not there.
fn made(client: &Client, place: &Place) -> Vec<Step> {
    match client.state.collections.contains_key(place) {
        true => Vec::new(),
        false => vec![Step::Make(place.clone())],
    }
}

fn content(client: &Client, place: &Place) -> Content {
    let content = client.state.collections.get(place);
    content.cloned().unwrap_or_default()
}

fn any(rng: &mut Rng, content: &Content) -> Option<Doc> {
    let count = content.docs.len() as u64;
    let at = (count > 0).then(|| rng.below(count))?;
    content.docs.values().nth(at as usize).cloned()
}

/// Whether another document has that `u`, where it matters.
fn is_taken(content: &Content, doc: &Doc, is_unique: bool) -> bool {
    let mut others = content.docs.values().filter(|other| other.id != doc.id);
    is_unique && others.any(|other| other.u == doc.u)
}

fn insert(client: &mut Client, place: &Place) -> Call {
    let ordered = client.rng.one_in(2);
    let mut now = content(client, place);
    let is_unique = now.indexes.contains(&UNIQUE) || *place == shared();
    let mut steps = made(client, place);
    let mut command = begin(&mut client.rng, "insert", &place.1, true);
    command
        .bool("ordered", ordered)
        .open(Kind::Array, "documents");
    let count = match client.rng.below(3) {
        0 => 1,
        _ => client.rng.below(15) as i64 + 2,
    };
    let (mut inserted, mut errors) = (0, Vec::new());
    for at in 0..count {
        let mut doc = new(client);
        if client.rng.one_in(12)
            && let Some(other) = any(&mut client.rng, &now)
        {
            match is_unique && client.rng.one_in(2) {
                true => doc.u = other.u,
                false => doc.id = other.id,
            }
        }
        command.document(at.to_string(), Document(&doc.bson()));
        if ordered && !errors.is_empty() {
            continue;
        }
        if now.docs.contains_key(&doc.id) || is_taken(&now, &doc, is_unique) {
            errors.push((at, DUPLICATE));
            continue;
        }
        inserted += 1;
        now.docs.insert(doc.id, doc.clone());
        steps.push(Step::Put(place.clone(), doc));
    }
    command.close();
    let expected = Expected {
        n: Some(inserted),
        errors,
        ..Expected::default()
    };
    Call {
        order: if ordered { Order::Prefix } else { Order::Any },
        ..call(place, command, steps, expected)
    }
}

/// A change of a document by operators.
enum Change {
    Count,
    Rank(i64),
    Group(i64),
    Sometimes(Option<i64>),
    Push(i64),
    Pull(i64),
    Fill(usize),
    Unique(i64),
}

impl Change {
    fn random(rng: &mut Rng) -> Self {
        let mut below = |bound: u64| rng.below(bound) as i64;
        match below(8) {
            0 | 1 => Self::Count,
            2 => Self::Rank(below(100)),
            3 => Self::Group(below(GROUPS as u64)),
            4 => Self::Sometimes((below(2) == 0).then(|| below(20))),
            5 => Self::Push(below(40)),
            6 => Self::Pull(below(40)),
            _ => Self::Fill(below(300) as usize),
        }
    }

    fn apply(&self, doc: &mut Doc) {
        match self {
            Self::Count => doc.n += 1,
            Self::Rank(p) => {
                doc.p = *p;
                doc.n += 1;
            }
            Self::Group(g) => doc.g = *g,
            Self::Sometimes(s) => doc.s = *s,
            Self::Push(item) => doc.t.push(*item),
            Self::Pull(item) => doc.t.retain(|it| it != item),
            Self::Fill(count) => doc.filling = *count,
            Self::Unique(u) => doc.u = *u,
        }
    }

    fn write(&self, out: &mut Builder, name: &str) {
        out.open(Kind::Document, name);
        match self {
            Self::Count => numbers(out, "$inc", &[("n", 1)]),
            Self::Rank(p) => {
                numbers(out, "$set", &[("p", *p)]);
                numbers(out, "$inc", &[("n", 1)]);
            }
            Self::Group(g) => numbers(out, "$set", &[("g", *g)]),
            Self::Sometimes(Some(s)) => numbers(out, "$set", &[("s", *s)]),
            Self::Sometimes(None) => numbers(out, "$unset", &[("s", 1)]),
            Self::Push(item) => numbers(out, "$push", &[("t", *item)]),
            Self::Pull(item) => numbers(out, "$pull", &[("t", *item)]),
            Self::Fill(count) => {
                out.open(Kind::Document, "$set");
                out.str("f", &"f".repeat(*count)).close();
            }
            Self::Unique(u) => numbers(out, "$set", &[("u", *u)]),
        }
        out.close();
    }
}

/// What an `update` of statements has done so far.
#[derive(Default)]
struct Updated {
    now: Content,
    steps: Vec<Step>,
    expected: Expected,
    modified: i64,
    n: i64,
}

impl Updated {
    /// A document takes its place, or a new one.
    fn put(&mut self, place: &Place, doc: Doc) {
        self.n += 1;
        let was = self.now.docs.insert(doc.id, doc.clone());
        if was.as_ref() != Some(&doc) {
            self.modified += i64::from(was.is_some());
            self.steps.push(Step::Put(place.clone(), doc));
        }
    }
}

fn update(client: &mut Client, place: &Place) -> Call {
    let ordered = client.rng.one_in(2);
    let mut command = begin(&mut client.rng, "update", &place.1, true);
    command
        .bool("ordered", ordered)
        .open(Kind::Array, "updates");
    let mut done = Updated {
        now: content(client, place),
        ..Updated::default()
    };
    let mut is_made = client.state.collections.contains_key(place);
    for at in 0..client.rng.below(4) as i64 + 1 {
        command.open(Kind::Document, at.to_string());
        let is_ended = ordered && !done.expected.errors.is_empty();
        let before = done.steps.len();
        statement(client, place, &mut command, (at, is_ended), &mut done);
        command.close();
        // The first upsert makes the collection.
        if !is_made && done.steps.len() > before {
            done.steps.insert(before, Step::Make(place.clone()));
            is_made = true;
        }
    }
    command.close();
    let expected = Expected {
        n: Some(done.n),
        modified: Some(done.modified),
        ..done.expected
    };
    call(place, command, done.steps, expected)
}

/// One statement: a document changed, replaced, upserted, or one that is not there.
fn statement(
    client: &mut Client,
    place: &Place,
    out: &mut Builder,
    (at, is_ended): (i64, bool),
    done: &mut Updated,
) {
    let there = any(&mut client.rng, &done.now);
    let other = any(&mut client.rng, &done.now);
    match (client.rng.below(8), there) {
        (0, _) | (_, None) => {
            let doc = new(client);
            let is_upsert = client.rng.one_in(2);
            numbers(out, "q", &[("_id", doc.id)]);
            out.open(Kind::Document, "u");
            doc.fields(out);
            out.close().bool("upsert", is_upsert);
            if is_upsert && !is_ended {
                done.put(place, doc);
            }
        }
        (1, Some(was)) => {
            numbers(out, "q", &[("_id", was.id)]);
            let (id, u) = (was.id, was.u);
            let doc = Doc {
                id,
                u,
                ..new(client)
            };
            out.open(Kind::Document, "u");
            doc.fields(out);
            out.close();
            if !is_ended {
                done.put(place, doc);
            }
        }
        (kind, Some(was)) => {
            numbers(out, "q", &[("_id", was.id)]);
            let change = match other {
                Some(other) if kind == 2 && *place == shared() => Change::Unique(other.u),
                _ => Change::random(&mut client.rng),
            };
            change.write(out, "u");
            let mut doc = was;
            change.apply(&mut doc);
            let is_refused = matches!(change, Change::Unique(_)) && is_taken(&done.now, &doc, true);
            match is_refused {
                _ if is_ended => {}
                true => done.expected.errors.push((at, DUPLICATE)),
                false => done.put(place, doc),
            }
        }
    }
}

/// The client's documents of a group.
fn group(client: &Client, place: &Place, group: i64) -> Vec<Doc> {
    let content = client.state.collections.get(place);
    let docs = content.iter().flat_map(|content| content.docs.values());
    docs.filter(|doc| doc.g == group).cloned().collect()
}

fn group_filter(out: &mut Builder, name: &str, client: &Client, group: i64) {
    numbers(out, name, &[("c", client.number), ("g", group)]);
}

fn update_many(client: &mut Client, place: &Place) -> Call {
    let wanted = client.rng.below(GROUPS as u64) as i64;
    let mut command = begin(&mut client.rng, "update", &place.1, true);
    command
        .open(Kind::Array, "updates")
        .open(Kind::Document, "0");
    group_filter(&mut command, "q", client, wanted);
    let change = Change::random(&mut client.rng);
    change.write(&mut command, "u");
    command.bool("multi", true).close().close();
    let mut done = Updated::default();
    for was in group(client, place, wanted) {
        let mut doc = was.clone();
        done.now.docs.insert(was.id, was);
        change.apply(&mut doc);
        done.put(place, doc);
    }
    let expected = Expected {
        n: Some(done.n),
        modified: Some(done.modified),
        ..Expected::default()
    };
    Call {
        order: Order::Any,
        ..call(place, command, done.steps, expected)
    }
}

fn delete(client: &mut Client, place: &Place) -> Call {
    let mut command = begin(&mut client.rng, "delete", &place.1, true);
    command.open(Kind::Array, "deletes");
    let mut now = content(client, place);
    let mut steps = Vec::new();
    for at in 0..client.rng.below(3) + 1 {
        command.open(Kind::Document, at.to_string());
        let id = any(&mut client.rng, &now).map_or(-1, |doc| doc.id);
        numbers(&mut command, "q", &[("_id", id)]);
        command.i32("limit", 1).close();
        if now.docs.remove(&id).is_some() {
            steps.push(Step::Remove(place.clone(), id));
        }
    }
    command.close();
    let expected = Expected {
        n: Some(steps.len() as i64),
        ..Expected::default()
    };
    call(place, command, steps, expected)
}

fn delete_many(client: &mut Client, place: &Place) -> Call {
    let wanted = client.rng.below(GROUPS as u64) as i64;
    let mut command = begin(&mut client.rng, "delete", &place.1, true);
    command
        .open(Kind::Array, "deletes")
        .open(Kind::Document, "0");
    group_filter(&mut command, "q", client, wanted);
    command.i32("limit", 0).close().close();
    let gone = group(client, place, wanted);
    let steps: Vec<Step> = gone
        .iter()
        .map(|doc| Step::Remove(place.clone(), doc.id))
        .collect();
    let expected = Expected {
        n: Some(steps.len() as i64),
        ..Expected::default()
    };
    Call {
        order: Order::Any,
        ..call(place, command, steps, expected)
    }
}

/// Changes or removes the first of a group, or upserts.
fn find_and_modify(client: &mut Client, place: &Place) -> Call {
    let mut command = begin(&mut client.rng, "findAndModify", &place.1, true);
    let is_new = client.rng.one_in(2);
    let value = |value: Option<Doc>| Expected {
        value: Some(value),
        ..Expected::default()
    };
    if client.rng.one_in(4) {
        let doc = new(client);
        numbers(&mut command, "query", &[("_id", doc.id)]);
        command.open(Kind::Document, "update");
        doc.fields(&mut command);
        command.close().bool("upsert", true).bool("new", is_new);
        let mut steps = made(client, place);
        steps.push(Step::Put(place.clone(), doc.clone()));
        return call(place, command, steps, value(is_new.then_some(doc)));
    }
    let wanted = client.rng.below(GROUPS as u64) as i64;
    group_filter(&mut command, "query", client, wanted);
    numbers(&mut command, "sort", &[("n", 1), ("_id", 1)]);
    let found = group(client, place, wanted);
    let was = found.into_iter().min_by_key(|doc| (doc.n, doc.id));
    if client.rng.one_in(4) {
        command.bool("remove", true);
        let steps = was.iter().map(|doc| Step::Remove(place.clone(), doc.id));
        let steps = steps.collect();
        return call(place, command, steps, value(was));
    }
    let change = Change::random(&mut client.rng);
    change.write(&mut command, "update");
    command.bool("new", is_new);
    let mut doc = was.clone();
    doc.iter_mut().for_each(|doc| change.apply(doc));
    let steps = doc.iter().map(|doc| Step::Put(place.clone(), doc.clone()));
    let steps = steps.collect();
    call(place, command, steps, value(if is_new { doc } else { was }))
}

/// Counts in the document of all.
fn count(client: &mut Client) -> Call {
    let mut command = begin(&mut client.rng, "update", "tally", true);
    command
        .open(Kind::Array, "updates")
        .open(Kind::Document, "0");
    numbers(&mut command, "q", &[("_id", 0)]);
    command.open(Kind::Document, "u");
    let name = format!("c{}", client.number);
    numbers(&mut command, "$inc", &[(&name, 1), ("total", 1)]);
    command.close().bool("upsert", true).close().close();
    let expected = Expected {
        n: Some(1),
        ..Expected::default()
    };
    call(&shared(), command, vec![Step::Count], expected)
}

/// Reads a group, which has to be as it was written.
fn find(client: &mut Client, place: &Place) -> Call {
    let wanted = client.rng.below(GROUPS as u64) as i64;
    let mut command = begin(&mut client.rng, "find", &place.1, false);
    group_filter(&mut command, "filter", client, wanted);
    numbers(&mut command, "sort", &[("_id", 1)]);
    command.i32("batchSize", 100_000);
    let expected = Expected {
        batch: Some(group(client, place, wanted)),
        ..Expected::default()
    };
    call(place, command, Vec::new(), expected)
}

/// Makes or drops indexes: in the collection of all the one that is the client's.
fn indexes(client: &mut Client, place: &Place) -> Call {
    let mine: Vec<usize> = match *place == shared() {
        true => vec![client.number as usize + 1],
        false => (0..INDEXES.len()).collect(),
    };
    let now = content(client, place).indexes;
    let (there, missing): (Vec<usize>, Vec<usize>) =
        mine.into_iter().partition(|index| now.contains(index));
    let is_made = missing.is_empty() || !there.is_empty() && client.rng.one_in(2);
    if is_made {
        let mut command = begin(&mut client.rng, "dropIndexes", &place.1, true);
        let gone = match client.rng.one_in(3) && *place != shared() {
            true => {
                command.str("index", "*");
                there
            }
            false => {
                let gone = there[client.rng.below(there.len() as u64) as usize];
                command.str("index", INDEXES[gone].name);
                vec![gone]
            }
        };
        let steps = gone
            .iter()
            .map(|index| Step::Unindex(place.clone(), *index));
        let steps = steps.collect();
        return call(place, command, steps, Expected::default());
    }
    let mut command = begin(&mut client.rng, "createIndexes", &place.1, true);
    command.open(Kind::Array, "indexes");
    let mut steps = made(client, place);
    let most = client.rng.below(3) as usize + 1;
    for (at, index) in missing.iter().take(most).enumerate() {
        INDEXES[*index].describe(&mut command, at);
        steps.push(Step::Index(place.clone(), *index));
    }
    command.close();
    call(place, command, steps, Expected::default())
}

/// Makes, drops or renames a collection of the client's own, or drops its database.
fn collections(client: &mut Client) -> Call {
    let (place, other) = (own(client), own(client));
    let is_there = |place: &Place| client.state.collections.contains_key(place);
    if !is_there(&place) {
        let command = begin(&mut client.rng, "create", &place.1, true);
        let steps = vec![Step::Make(place.clone())];
        return call(&place, command, steps, Expected::default());
    }
    if other != place {
        let from = format!("{}.{}", place.0, place.1);
        let is_replacing = is_there(&other);
        let mut command = begin(&mut client.rng, "renameCollection", &from, true);
        command.str("to", &format!("{}.{}", other.0, other.1));
        command.bool("dropTarget", is_replacing);
        let admin = ("admin".to_owned(), String::new());
        let steps = vec![Step::Rename(place, other)];
        return call(&admin, command, steps, Expected::default());
    }
    if client.rng.one_in(3) {
        let mut all = client.state.collections.keys();
        let mut command = Builder::new();
        command.i32("dropDatabase", 1);
        let steps = all.by_ref().filter(|it| it.0 == place.0);
        let steps = steps.cloned().map(Step::Drop).collect();
        return call(&place, command, steps, Expected::default());
    }
    let command = begin(&mut client.rng, "drop", &place.1, true);
    let steps = vec![Step::Drop(place.clone())];
    call(&place, command, steps, Expected::default())
}
