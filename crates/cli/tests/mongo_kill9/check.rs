//! What is there after a kill, compared with what the clients know, and with itself.

use std::collections::{BTreeMap, BTreeSet};

use drumlin_base::rng::Rng;
use drumlin_doc::{Builder, Document, Kind, Value};

use crate::client::Client;
use crate::documents::{Doc, GROUPS, INDEXES, Kept, PARTIAL_FROM, UNIQUE};
use crate::session::{Session, numbers, whole};
use crate::state::{Content, Order, Place, State, difference, shared};

/// Documents in one batch of a cursor.
const BATCH: i32 = 1_000_000;

/// Compares all; from here on the clients know what is there.
pub(crate) fn all(session: &mut Session, clients: &mut [Client], rng: &mut Rng) {
    let mut found = BTreeMap::new();
    for place in places(session) {
        let content = content(session, &place);
        look_up(session, &place, &content, rng);
        found.insert(place, content);
    }
    found.entry(shared()).or_insert_with(|| {
        make_shared(session);
        content(session, &shared())
    });
    assert!(found[&shared()].indexes.contains(&UNIQUE));
    let counts = counts(session, clients.len());
    for (client, counted) in clients.iter_mut().zip(counts) {
        let now = view(&found, client.number, counted);
        let (steps, order) = client
            .unanswered
            .take()
            .unwrap_or((Vec::new(), Order::Prefix));
        if let Some(text) = difference(&client.state, &steps, order, &now) {
            panic!("client {}: {text}\n{steps:?}", client.number);
        }
        client.there_unacknowledged += u64::from(now != client.state);
        client.state = now;
    }
    let known: BTreeSet<&Place> = clients
        .iter()
        .flat_map(|client| client.state.collections.keys())
        .collect();
    for place in found.keys() {
        assert!(known.contains(place), "nobody made {place:?}");
    }
    let documents = |place: &Place| {
        let states = clients.iter().map(|client| &client.state);
        states.map(|state| state.content_len(place)).sum::<usize>()
    };
    assert_eq!(documents(&shared()), found[&shared()].docs.len());
}

/// What is a client's of all that is there.
fn view(found: &BTreeMap<Place, Content>, client: i64, counted: i64) -> State {
    let database = format!("own{client}");
    let mut state = State {
        counted,
        ..State::default()
    };
    for (place, content) in found {
        if place.0 == database {
            state.collections.insert(place.clone(), content.clone());
        } else if *place == shared() {
            let own = content.docs.iter().filter(|(_, doc)| doc.c == client);
            let docs = own.map(|(id, doc)| (*id, doc.clone())).collect();
            let indexes = content.indexes.iter().copied();
            let indexes = indexes
                .filter(|index| *index as i64 == client + 1)
                .collect();
            state
                .collections
                .insert(place.clone(), Content { docs, indexes });
        }
    }
    state
}

fn command(name: &str, collection: &str) -> Builder {
    let mut out = Builder::new();
    out.str(name, collection);
    out
}

/// The collection of all, with its unique index.
fn make_shared(session: &mut Session) {
    let (database, collection) = shared();
    let mut command = command("createIndexes", &collection);
    command.open(Kind::Array, "indexes");
    INDEXES[UNIQUE].describe(&mut command, 0);
    command.close();
    session.done(&database, command);
}

fn text(document: &[u8], name: &str) -> String {
    let text = Document(document).get(name).and_then(Value::as_str);
    text.expect("a text").to_owned()
}

/// All collections but that of the counts.
fn places(session: &mut Session) -> Vec<Place> {
    let mut names = Builder::new();
    names.i32("listDatabases", 1).bool("nameOnly", true);
    let reply = session.done("admin", names);
    let databases = Document(&reply).get("databases").and_then(Value::as_array);
    let mut places = Vec::new();
    for database in databases.expect("databases") {
        let database = text(database.value.bytes, "name");
        let mut names = Builder::new();
        names.i32("listCollections", 1);
        for collection in session.batch(&database, names) {
            places.push((database.clone(), text(&collection, "name")));
        }
    }
    places.retain(|(_, name)| name != "tally");
    places
}

/// A collection, walked, counted both ways, and validated.
fn content(session: &mut Session, place: &Place) -> Content {
    let (database, collection) = place;
    let mut find = command("find", collection);
    find.i32("batchSize", BATCH);
    let docs = session.batch(database, find);
    let docs: Vec<Doc> = docs.iter().map(|document| Doc::read(document)).collect();
    let fast = session.done(database, command("count", collection));
    let mut walked = command("count", collection);
    walked.open(Kind::Document, "query");
    numbers(&mut walked, "c", &[("$gte", 0)]);
    walked.close();
    let walked = session.done(database, walked);
    for reply in [fast, walked] {
        assert_eq!(whole(&reply, "n"), Some(docs.len() as i64), "{place:?}");
    }
    let valid = session.done(database, command("validate", collection));
    let is_valid = Document(&valid).get("valid").and_then(Value::as_bool);
    let shown = drumlin_doc::show(Document(&valid).as_value());
    assert_eq!(is_valid, Some(true), "{place:?}: {shown}");
    let names = session.batch(database, command("listIndexes", collection));
    let names: Vec<String> = names.iter().map(|index| text(index, "name")).collect();
    let place_of = |name: &String| INDEXES.iter().position(|index| index.name == name);
    let indexes = names.iter().filter(|name| *name != "_id_");
    Content {
        docs: docs.into_iter().map(|doc| (doc.id, doc)).collect(),
        indexes: indexes
            .map(|name| place_of(name).expect("a known index"))
            .collect(),
    }
}

/// How often each client counted in the document of all.
fn counts(session: &mut Session, clients: usize) -> Vec<i64> {
    let (database, _) = shared();
    let found = session.batch(&database, command("find", "tally"));
    let whole = |name: &str| {
        let document = found.first();
        document.map_or(0, |document| whole(document, name).unwrap_or(0))
    };
    let counts: Vec<i64> = (0..clients)
        .map(|client| whole(&format!("c{client}")))
        .collect();
    assert_eq!(whole("total"), counts.iter().sum::<i64>(), "one document");
    counts
}

/// A filter, and the documents that it is for.
type Question = (Builder, Box<dyn Fn(&Doc) -> bool>);

/// Has each index find what a walk finds.
fn look_up(session: &mut Session, place: &Place, content: &Content, rng: &mut Rng) {
    for index in &content.indexes {
        let index = &INDEXES[*index];
        for _ in 0..3 {
            for (filter, is_wanted) in questions(index, rng, content) {
                compare(session, place, (index.name, filter), &is_wanted, content);
            }
        }
    }
    let mut filter = Builder::new();
    numbers(&mut filter, "_id", &[("$gte", 0)]);
    compare(session, place, ("_id_", filter), &|_| true, content);
}

fn questions(index: &Kept, rng: &mut Rng, content: &Content) -> Vec<Question> {
    let at = rng.below(content.docs.len().max(1) as u64) as usize;
    let some = content.docs.values().nth(at);
    let (c, u, n) = some.map_or((0, 0, 0), |doc| (doc.c, doc.u, doc.n));
    let g = rng.below(GROUPS as u64) as i64;
    let (t, s) = (rng.below(40) as i64, rng.below(20) as i64);
    let filter = |write: &dyn Fn(&mut Builder)| {
        let mut out = Builder::new();
        write(&mut out);
        out
    };
    let one = |name: &str, value: i64| {
        let mut out = Builder::new();
        out.i64(name, value);
        out
    };
    let p = PARTIAL_FROM;
    match index.name {
        "unique" => vec![
            (one("u", u), Box::new(move |doc| doc.u == u)),
            (
                filter(&|out| numbers(out, "u", &[("$gte", 0)])),
                Box::new(|_| true),
            ),
        ],
        "compound" => vec![
            (one("c", c), Box::new(move |doc| doc.c == c)),
            (
                filter(&|out| {
                    out.i64("c", c).i64("g", g);
                    numbers(out, "n", &[("$gt", n)]);
                }),
                Box::new(move |doc| (doc.c, doc.g) == (c, g) && doc.n > n),
            ),
        ],
        "multikey" => vec![
            (one("t", t), Box::new(move |doc| doc.t.contains(&t))),
            (
                filter(&|out| numbers(out, "t", &[("$lt", t)])),
                Box::new(move |doc| doc.t.iter().any(|item| *item < t)),
            ),
        ],
        "sparse" => vec![
            (one("s", s), Box::new(move |doc| doc.s == Some(s))),
            (
                filter(&|out| {
                    out.open(Kind::Document, "s").bool("$exists", true).close();
                }),
                Box::new(|doc| doc.s.is_some()),
            ),
        ],
        _ => vec![
            (
                filter(&|out| {
                    out.i64("g", g);
                    numbers(out, "p", &[("$gte", p)]);
                }),
                Box::new(move |doc| doc.g == g && doc.p >= p),
            ),
            (
                filter(&|out| numbers(out, "p", &[("$gte", p)])),
                Box::new(move |doc| doc.p >= p),
            ),
        ],
    }
}

fn compare(
    session: &mut Session,
    (database, collection): &Place,
    (hint, filter): (&str, Builder),
    is_wanted: &dyn Fn(&Doc) -> bool,
    content: &Content,
) {
    let filter = filter.finish();
    let mut find = command("find", collection);
    find.document("filter", Document(&filter)).str("hint", hint);
    find.i32("batchSize", BATCH);
    let found = session.batch(database, find);
    let mut found: Vec<Doc> = found.iter().map(|document| Doc::read(document)).collect();
    found.sort_by_key(|doc| doc.id);
    let wanted: Vec<Doc> = content
        .docs
        .values()
        .filter(|doc| is_wanted(doc))
        .cloned()
        .collect();
    let shown = drumlin_doc::show(Document(&filter).as_value());
    assert!(
        found == wanted,
        "{database}.{collection}: {hint} finds {} for {shown}, a walk {}",
        found.len(),
        wanted.len()
    );
}
