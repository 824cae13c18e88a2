//! The planner: which keys are looked at for a filter and a sort.
//!
//! `_id` equalities are lookups. Otherwise the candidates are each index of which the filter bounds the first field, or whose order is the
//! sort's, and a range of `_id`, or the whole collection. The cheapest is taken ([`crate::price`]); of equal ones, and in a small
//! collection, the index with the most fields that are equal to something, then with a range behind them, then in the order of the sort.
//! An `$or` of which each part has such an index, or a condition on `_id`, is a candidate, too: the union of the best of each.
//! What a plan finds is always looked at by the filter.

use std::cmp::Reverse;
use std::sync::Arc;

use drumlin_doc::{
    Code, Filter, GeoQuery, Near, Path, PlaceKind, Predicate, Refusal, Sort, Test, keystring,
};

use crate::bounds::{Interval, holds_null, intervals};
use crate::catalog::Collection;
use crate::failure::Outcome;
use crate::implied::follows;
use crate::index::Index;
use crate::layout::{range_of, under};
use crate::plan::{Access, Around, Plan, Range};
use crate::price::{Priced, priced};
use crate::reads::Reads;
use crate::union::united;

/// Most ranges of one plan.
const RANGES_MAX: usize = 1000;

/// The plan for `filter` and `sort` over `collection`, of whose documents the first `limit` are asked for.
///
/// # Errors
/// Of the engine.
pub fn plan(
    reads: &Reads<'_>,
    collection: &Collection,
    filter: &Filter,
    sort: &Sort,
    limit: u64,
) -> Outcome<Plan> {
    let plans = plans(reads, collection, filter, sort, limit)?;
    let best = plans.into_iter().next().map(|best| best.plan);
    Ok(best.unwrap_or_else(|| scan(collection, &[], sort)))
}

/// All plans, the one that is taken first.
///
/// # Errors
/// Of the engine.
pub fn plans(
    reads: &Reads<'_>,
    collection: &Collection,
    filter: &Filter,
    sort: &Sort,
    limit: u64,
) -> Outcome<Vec<Priced>> {
    let fields = conjunction(filter);
    if let Some((path, near)) = filter.near() {
        let indexes = collection.indexes.iter();
        let plan = nearest(indexes, &fields, (path, near), sort)?;
        return Ok(vec![Priced::unknown(plan)]);
    }
    // The documents of a capped collection do not lie under their `_id`, which has an index there.
    let is_by_id = collection.bounds().is_none();
    let plans = match ids(&fields).filter(|_| is_by_id) {
        Some(ids) => vec![Plan {
            is_sorted: ids.len() <= 1 || sort.is_empty(),
            is_single: ids.len() <= 1,
            access: Access::Ids(ids),
            is_reverse: false,
        }],
        None => {
            let mut candidates = Vec::new();
            for index in collection.indexes.iter().filter(|it| has_all(it, &fields)) {
                candidates.extend(candidate(index, &fields, sort)?);
            }
            candidates.sort_by_key(|candidate| Reverse(candidate.score));
            let plans = candidates.into_iter().map(|candidate| candidate.plan);
            let unions = unions(collection, &fields, &alternatives(filter))?.into_iter();
            let unions = unions.map(|access| Plan {
                access,
                is_reverse: false,
                is_sorted: sort.is_empty(),
                is_single: false,
            });
            let scan = scan(collection, &fields, sort);
            plans.chain(unions).chain([scan]).collect()
        }
    };
    priced(reads, collection, plans, limit)
}

/// The plan where a hint names the index, by name or key, or `{$natural: ±1}`. What a sparse index or one of places does not have is not found,
/// as in MongoDB.
///
/// # Errors
/// `BadValue` for an index that is not there; `NoQueryExecutionPlans` for a partial one that lacks documents that the query may find.
pub fn plan_with(
    collection: &Collection,
    filter: &Filter,
    sort: &Sort,
    hint: &Hint,
) -> Result<Plan, Refusal> {
    let fields = conjunction(filter);
    let near = filter.near();
    if near.is_some() && matches!(hint, Hint::Natural { .. } | Hint::Id) {
        return Err(no_places());
    }
    let index = match hint {
        Hint::Natural { is_reverse } => {
            let mut plan = scan(collection, &[], &Sort::default());
            plan.is_reverse = *is_reverse;
            plan.is_sorted = sort.is_empty();
            return Ok(plan);
        }
        Hint::Id if collection.bounds().is_none() => return Ok(scan(collection, &fields, sort)),
        Hint::Id => collection.indexes.first(),
        Hint::Name(name) => collection.indexes.iter().find(|index| index.name == *name),
        Hint::Key(key) => collection.indexes.iter().find(|index| index.key == *key),
    };
    let missing = || {
        Refusal::new(
            Code::BadValue,
            "error processing query: planner returned error: hint provided does not correspond to an existing index",
        )
    };
    let index = index.ok_or_else(missing)?;
    if !has_all(index, &fields) {
        let text = format!(
            "error processing query: planner returned error: the partial index {} that is hinted at does not have all that the query may find",
            index.name
        );
        return Err(Refusal::new(Code::NoPlan, text));
    }
    if let Some(near) = near {
        return nearest(std::iter::once(index), &fields, near, sort);
    }
    let candidate = candidate(index, &fields, sort)?;
    Ok(candidate.map_or_else(|| whole(index, sort), |candidate| candidate.plan))
}

/// An index that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// None: the collection itself.
    Natural {
        /// From its end.
        is_reverse: bool,
    },
    /// That of `_id`.
    Id,
    /// By its name.
    Name(String),
    /// By its key, a document.
    Key(Vec<u8>),
}

impl Hint {
    /// What a command says.
    ///
    /// # Errors
    /// `BadValue` for other types.
    pub fn of(value: drumlin_doc::Value<'_>) -> Result<Self, Refusal> {
        if let Some(name) = value.as_str() {
            return Ok(if name == "_id_" {
                Self::Id
            } else {
                Self::Name(name.to_owned())
            });
        }
        let key = value
            .as_document()
            .ok_or_else(|| Refusal::bad_value("hint must be the name or the key of an index"))?;
        match key.iter().next() {
            Some(first) if first.name == b"$natural" => Ok(Self::Natural {
                is_reverse: first.value.as_whole() == Some(-1),
            }),
            Some(first) if first.name == b"_id" && key.iter().count() == 1 => Ok(Self::Id),
            _ => Ok(Self::Key(key.0.to_vec())),
        }
    }
}

fn no_places() -> Refusal {
    Refusal::new(
        Code::NoPlan,
        "error processing query: planner returned error: unable to find index for $geoNear query",
    )
}

/// What there is around a point, by the first of the indexes that has the place behind fields whose values the filter names.
///
/// # Errors
/// `NoQueryExecutionPlans` where there is none; `Location16433` for a point that the index has no place for.
fn nearest<'i>(
    indexes: impl Iterator<Item = &'i Arc<Index>>,
    fields: &[(&Path, &Test)],
    (path, near): (&Path, &Near),
    sort: &Sort,
) -> Result<Plan, Refusal> {
    let indexes = indexes.filter(|index| has_all(index, fields));
    let mut served = indexes.filter_map(|index| {
        let kind = index.place(path).filter(|kind| kind.serves(near))?;
        let prefixes = prefixes(index, fields, path)?;
        Some((index, kind, prefixes))
    });
    let (index, kind, prefixes) = served.next().ok_or_else(no_places)?;
    kind.check(near)?;
    let around = Around {
        near: near.clone(),
        path: path.clone(),
        kind,
        prefixes,
    };
    Ok(Plan {
        access: Access::Near(Arc::clone(index), Arc::new(around)),
        is_reverse: false,
        is_sorted: sort.is_empty(),
        is_single: false,
    })
}

/// The keys of the fields before `path`, where the filter names their values.
fn prefixes(index: &Index, fields: &[(&Path, &Test)], path: &Path) -> Option<Vec<Vec<u8>>> {
    let mut prefixes = vec![index.ident.to_be_bytes().to_vec()];
    let before = index.fields.0.iter().take_while(|(of, _)| of != path);
    for (of, is_descending) in before {
        let mut found = of_field(fields, of, !index.is_multikey())?;
        if *is_descending {
            found = found.iter().map(Interval::inverted).collect();
        }
        let is_few = prefixes.len().saturating_mul(found.len()) <= RANGES_MAX / 10;
        if !is_few || !found.iter().all(|it| it.is_point) {
            return None;
        }
        let pairs = prefixes.iter().flat_map(|prefix| {
            found
                .iter()
                .map(move |it| [prefix.as_slice(), &it.low].concat())
        });
        prefixes = pairs.collect();
    }
    Some(prefixes)
}

/// What has to be true of fields, whatever else.
fn conjunction(filter: &Filter) -> Vec<(&Path, &Test)> {
    match filter {
        Filter::And(parts) => parts.iter().flat_map(conjunction).collect(),
        Filter::Or(parts) if parts.len() == 1 => parts.iter().flat_map(conjunction).collect(),
        Filter::Field(path, test) => vec![(path, test)],
        _ => Vec::new(),
    }
}

/// The `$or`s that have to be true, whatever else.
fn alternatives(filter: &Filter) -> Vec<&[Filter]> {
    match filter {
        Filter::And(parts) => parts.iter().flat_map(alternatives).collect(),
        Filter::Or(parts) if parts.len() == 1 => parts.iter().flat_map(alternatives).collect(),
        Filter::Or(parts) => vec![parts],
        _ => Vec::new(),
    }
}

/// What is looked at for each of `ors` of which every part is served, where `fields` have to be true as well.
fn unions(
    collection: &Collection,
    fields: &[(&Path, &Test)],
    ors: &[&[Filter]],
) -> Result<Vec<Access>, Refusal> {
    let mut found = Vec::new();
    for parts in ors {
        let mut served = Vec::with_capacity(parts.len());
        for part in *parts {
            match served_part(collection, fields, part)? {
                Some(access) => served.push(access),
                None => break,
            }
        }
        if served.len() == parts.len() || drumlin_base::bug!("mongo-or-served-in-part") {
            found.extend(united(served.into_iter(), RANGES_MAX));
        }
    }
    Ok(found)
}

/// What is looked at for one part of an `$or`, where `fields` have to be true as well.
fn served_part(
    collection: &Collection,
    fields: &[(&Path, &Test)],
    part: &Filter,
) -> Result<Option<Access>, Refusal> {
    let own = conjunction(part);
    let all = [&own, fields].concat();
    let is_by_id = collection.bounds().is_none();
    if let Some(ids) = ids(&all).filter(|_| is_by_id) {
        return Ok(Some(Access::Ids(ids)));
    }
    let unsorted = Sort::default();
    let mut best = None;
    let is_own = |path: &Path| own.iter().any(|(of, _)| *of == path);
    let indexes = collection.indexes.iter();
    let indexes = indexes.filter(|index| index.fields.0.iter().any(|(path, _)| is_own(path)));
    for index in indexes.filter(|index| has_all(index, &all)) {
        if let Some(candidate) = candidate(index, &all, &unsorted)? {
            let first = index.fields.0.first();
            let score = (candidate.score, first.is_some_and(|(path, _)| is_own(path)));
            if best.as_ref().is_none_or(|(known, _)| *known < score) {
                best = Some((score, candidate.plan.access));
            }
        }
    }
    if let Some((_, access)) = best {
        return Ok(Some(access));
    }
    let nested = unions(collection, &all, &alternatives(part))?;
    if let Some(access) = nested.into_iter().next() {
        return Ok(Some(access));
    }
    let is_bounded = of_field(&all, &Path::new("_id"), true).is_some();
    let by_id = (is_bounded && is_by_id).then(|| scan(collection, &all, &unsorted).access);
    Ok(by_id)
}

/// What is asked of the place at a path.
fn asked<'f>(fields: &[(&Path, &'f Test)], path: &Path) -> Vec<&'f GeoQuery> {
    fn of<'t>(test: &'t Test, found: &mut Vec<&'t GeoQuery>) {
        match test {
            Test::Any(Predicate::Geo(query)) => found.push(query),
            Test::All(tests) => tests.iter().for_each(|test| of(test, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    let own = fields.iter().filter(|(at, _)| *at == path);
    own.for_each(|(_, test)| of(test, &mut found));
    found
}

/// The intervals of a place: of the first condition on it that the index serves.
fn of_place(
    asked: &[&GeoQuery],
    kind: PlaceKind,
    is_spread: bool,
) -> Result<Option<Vec<Interval>>, Refusal> {
    for query in asked {
        if let Some(ranges) = kind.ranges(query, is_spread)? {
            let all = ranges.into_iter().map(|(low, high)| Interval {
                low,
                high,
                is_point: false,
            });
            return Ok(Some(all.collect()));
        }
    }
    Ok(None)
}

/// The intervals of a field, of all that is said of it.
fn of_field(fields: &[(&Path, &Test)], path: &Path, one_value: bool) -> Option<Vec<Interval>> {
    let tests = fields
        .iter()
        .filter(|(of, _)| *of == path)
        .map(|(_, test)| (*test).clone());
    let mut tests: Vec<Test> = tests.collect();
    match tests.len() {
        0 => None,
        1 => intervals(&tests.pop()?, one_value),
        _ => intervals(&Test::All(tests), one_value),
    }
}

/// The keys of `_id`, where the filter says which there are.
fn ids(fields: &[(&Path, &Test)]) -> Option<Vec<Vec<u8>>> {
    let found = of_field(fields, &Path::new("_id"), true)?;
    found
        .iter()
        .all(|it| it.is_point)
        .then(|| found.into_iter().map(|it| it.low).collect())
}

/// Whether all that the filter finds has entries in the index: that of a partial one follows from it.
fn has_all(index: &Index, fields: &[(&Path, &Test)]) -> bool {
    let Some(partial) = &index.partial else {
        return true;
    };
    drumlin_base::bug!("mongo-partial-indexes-have-all") || follows(&partial.filter, fields)
}

/// Whether the filter may find documents without a place, which have no entry in an index of places.
fn lacks_placeless(index: &Index, fields: &[(&Path, &Test)]) -> bool {
    let has_place =
        |(path, _): &(Path, bool)| index.place(path).is_some() && !asked(fields, path).is_empty();
    !index.places.is_empty() && !index.fields.0.iter().any(has_place)
}

/// The collection, or the part of it that the filter says of `_id`.
fn scan(collection: &Collection, fields: &[(&Path, &Test)], sort: &Sort) -> Plan {
    let id = Path::new("_id");
    let ident = collection.ident;
    let is_by_id = collection.bounds().is_none();
    let found = of_field(fields, &id, true).filter(|_| is_by_id);
    let ranges = found.map(|found| {
        found
            .iter()
            .map(|it| (under(ident, &it.low), under(ident, &it.high)))
            .collect()
    });
    let (is_reverse, is_sorted) = match sort.0.first() {
        None => (false, true),
        // Nothing comes behind `_id`, which no two documents share. An array is no `_id`.
        Some((path, is_descending)) if *path == id && is_by_id => (*is_descending, true),
        Some(_) => (false, false),
    };
    Plan {
        access: Access::Collection(ranges.unwrap_or_else(|| vec![range_of(ident)])),
        is_reverse,
        is_sorted,
        is_single: false,
    }
}

/// All of an index.
fn whole(index: &Arc<Index>, sort: &Sort) -> Plan {
    let order = order(index, 0, sort);
    Plan {
        access: Access::Index(Arc::clone(index), vec![range_of(index.ident)]),
        is_reverse: order == Some(true),
        is_sorted: sort.is_empty() || order.is_some(),
        is_single: false,
    }
}

struct Candidate {
    plan: Plan,
    /// Fields that are points, whether a range follows, whether the order is the sort's.
    score: (usize, bool, bool),
}

fn candidate(
    index: &Arc<Index>,
    fields: &[(&Path, &Test)],
    sort: &Sort,
) -> Result<Option<Candidate>, Refusal> {
    let is_multikey = index.is_multikey();
    let is_plain = index.places.is_empty();
    if lacks_placeless(index, fields) {
        return Ok(None);
    }
    let mut prefixes: Vec<Vec<u8>> = vec![index.ident.to_be_bytes().to_vec()];
    let mut ranges: Option<Vec<Range>> = None;
    let mut points = 0;
    let mut is_single = true;
    for (at, (path, is_descending)) in index.fields.0.iter().enumerate() {
        // Of arrays, one element may pass one test and another one the next. An index of places has each with each.
        if at > 0 && is_multikey && is_plain {
            break;
        }
        let found = match index.place(path) {
            Some(kind) => of_place(&asked(fields, path), kind, is_multikey)?,
            None => of_field(fields, path, !is_multikey),
        };
        let Some(mut found) = found else {
            break;
        };
        if at == 0 && index.sparse && is_plain && holds_null(&found) {
            return Ok(None);
        }
        if *is_descending {
            found = found.iter().map(Interval::inverted).collect();
            found.sort();
        }
        let product = prefixes.len().saturating_mul(found.len());
        if product > RANGES_MAX {
            break;
        }
        let is_all_points = found.iter().all(|it| it.is_point);
        if is_all_points {
            is_single &= found.len() <= 1;
            points += 1;
            let keys: Vec<_> = found.into_iter().map(|it| it.low).collect();
            prefixes = prefixes
                .iter()
                .flat_map(|prefix| {
                    keys.iter()
                        .map(move |key| [prefix.as_slice(), key].concat())
                })
                .collect();
            continue;
        }
        let all = prefixes.iter().flat_map(|prefix| {
            found.iter().map(move |it| {
                (
                    [prefix.as_slice(), &it.low].concat(),
                    [prefix.as_slice(), &it.high].concat(),
                )
            })
        });
        is_single &= found.len() == 1;
        ranges = Some(all.collect());
        break;
    }
    let has_range = ranges.is_some();
    let order = (is_single && !is_multikey && is_plain)
        .then(|| order(index, points, sort))
        .flatten();
    let serves = !sort.is_empty() && order.is_some();
    // An index for the sort alone has to have all documents.
    if points == 0 && !has_range && (!serves || index.sparse) {
        return Ok(None);
    }
    let ends = |prefix: Vec<u8>| {
        let end = [prefix.as_slice(), &[keystring::BEHIND]].concat();
        (prefix, end)
    };
    let mut ranges = ranges.unwrap_or_else(|| prefixes.into_iter().map(ends).collect());
    ranges.sort();
    let is_one = ranges.len() == 1 && points == index.fields.0.len();
    Ok(Some(Candidate {
        plan: Plan {
            is_single: index.unique && is_one,
            access: Access::Index(Arc::clone(index), ranges),
            is_reverse: order == Some(true),
            is_sorted: sort.is_empty() || serves,
        },
        score: (points, has_range, serves),
    }))
}

/// Whether the entries of the index come in the order of `sort` once the first `points` fields are fixed, and whether backwards.
fn order(index: &Index, points: usize, sort: &Sort) -> Option<bool> {
    if index.is_multikey() || !index.places.is_empty() {
        return None;
    }
    let fixed = index.fields.0.get(..points).unwrap_or_default();
    let wanted: Vec<_> = sort
        .0
        .iter()
        .filter(|(path, _)| fixed.iter().all(|(known, _)| known != path))
        .collect();
    let rest = index.fields.0.get(points..).unwrap_or_default();
    let first = match (wanted.first(), rest.first()) {
        (None, _) => return Some(false),
        (Some(wanted), Some(first)) => wanted.1 != first.1,
        (Some(_), None) => return None,
    };
    let mut pairs = wanted.iter().zip(rest);
    let goes = pairs.all(|(wanted, has)| wanted.0 == has.0 && (wanted.1 != has.1) == first);
    (goes && wanted.len() <= rest.len()).then_some(first)
}
