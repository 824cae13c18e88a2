//! Documents, pushed through stages.

use drumlin_doc::{Builder, Code, Document, Expression, Filter, Kind, OwnedValue, Refusal, Value};
use drumlin_doc_store::{Name, Outcome};

use crate::query::{Query, each, sorted};
use crate::sorting::{Sorted, Sorter, too_much};
use crate::wire::limits::STAGE_BYTES_MAX;

use super::lookup::{self, Lookup, Union};
use super::running::Running;
use super::stage::{Pipeline, Stage};
use super::view::through;

/// What a pipeline makes of those documents of a collection that the filter finds.
pub(crate) fn over(
    name: &Name,
    filter: Filter,
    mut stages: Vec<Stage>,
    running: &Running<'_>,
) -> Outcome<Vec<Vec<u8>>> {
    if let Some(collection) = through(name, Some(&filter), &mut stages, running)? {
        let mut query = Query::of(Filter::And(Vec::new()));
        take(&mut query, &mut stages, &collection, running)?;
        let made = run(&collection, query, stages, running)?;
        return made.collect("the result of a pipeline within another");
    }
    let mut query = Query::of(filter);
    take(&mut query, &mut stages, name, running)?;
    run(name, query, stages, running)?.collect("the result of a pipeline within another")
}

/// Takes over the stages at the front that a query does: filters, or what is near, then one order, then a number to skip, then a limit.
///
/// # Errors
/// Of `$geoNear`, where the collection has no index for it.
pub(crate) fn take(
    query: &mut Query,
    stages: &mut Vec<Stage>,
    name: &Name,
    running: &Running<'_>,
) -> Result<(), Refusal> {
    let mut filters = Vec::new();
    if let Some(Stage::GeoNear(near)) = stages.first_mut() {
        near.find_key(running.reads.collection(name).as_deref())?;
        filters.push(near.filter());
    }
    let mut taken = 0;
    let mut step = 0;
    for stage in stages.iter() {
        match stage {
            Stage::Match(filter) if step == 0 => filters.push(filter.clone()),
            Stage::Sort(sorter) if step == 0 => {
                query.sort = sorter.order().clone();
                step = 1;
            }
            Stage::Skip(count) if step <= 1 => {
                query.skip = *count;
                step = 2;
            }
            Stage::Limit(count) if step <= 2 => {
                query.limit = *count;
                step = 3;
            }
            _ => break,
        }
        taken += 1;
    }
    stages.drain(..taken);
    if !filters.is_empty() {
        filters.insert(
            0,
            std::mem::replace(&mut query.filter, Filter::And(Vec::new())),
        );
        query.filter = Filter::And(filters);
    }
    Ok(())
}

/// What a pipeline makes of what a query finds.
pub(crate) fn run(
    name: &Name,
    query: Query,
    stages: Vec<Stage>,
    running: &Running<'_>,
) -> Outcome<Sorted> {
    let mut pipeline = Pipeline::new(stages, running);
    let is_open = pipeline.begin(name, running)?;
    let Some(collection) = running.reads.collection(name).filter(|_| is_open) else {
        return pipeline.finish(running);
    };
    let reads = running.reads;
    let plan = query.plan(reads, &collection)?;
    if !plan.is_sorted {
        let query = (query, plan);
        let mut results = sorted(reads, &collection, query, &running.workspace)?;
        while let Some(document) = results.next()? {
            if !pipeline.push(&document, running)? {
                break;
            }
        }
        return pipeline.finish(running);
    }
    let (mut skip, mut left) = (query.skip, query.limit);
    if left > 0 {
        each(reads, &collection, (&query, plan), &mut |_, document| {
            if skip > 0 {
                skip -= 1;
                return Ok(true);
            }
            left -= 1;
            Ok(pipeline.push(document.0, running)? && left > 0)
        })?;
    }
    pipeline.finish(running)
}

/// A query of a view as one of the collection that it stands for, and the stages behind it; `None` where it is none.
///
/// # Errors
/// Of the stages.
pub(crate) fn of_view(
    name: &Name,
    query: &Query,
    running: &Running<'_>,
) -> Result<Option<(Name, Query, Vec<Stage>)>, Refusal> {
    let mut stages = Vec::new();
    if !query.sort.is_empty() {
        let sorter = Sorter::new(query.sort.clone(), u64::MAX, &running.workspace);
        stages.push(Stage::Sort(sorter));
    }
    if query.skip > 0 {
        stages.push(Stage::Skip(query.skip));
    }
    if query.limit < u64::MAX {
        stages.push(Stage::Limit(query.limit));
    }
    let filter = Some(&query.filter);
    let Some(collection) = through(name, filter, &mut stages, running)? else {
        return Ok(None);
    };
    let mut first = Query::of(Filter::And(Vec::new()));
    first.hint.clone_from(&query.hint);
    take(&mut first, &mut stages, &collection, running)?;
    Ok(Some((collection, first, stages)))
}

/// What a query finds in a view, through more stages; `None` where it is none.
///
/// # Errors
/// Of the stages; of the engine.
pub(crate) fn run_view(
    name: &Name,
    query: &Query,
    more: Vec<Stage>,
    running: &Running<'_>,
) -> Outcome<Option<Sorted>> {
    let Some((collection, query, mut stages)) = of_view(name, query, running)? else {
        return Ok(None);
    };
    stages.extend(more);
    run(&collection, query, stages, running).map(Some)
}

impl Pipeline {
    /// Pushes what is there before any document comes; whether any are to come.
    fn begin(&mut self, name: &Name, running: &Running<'_>) -> Outcome<bool> {
        let documents = match self.stages.first_mut() {
            Some(Stage::Documents(documents)) => std::mem::take(documents),
            Some(Stage::Statistics(wanted)) => {
                vec![wanted.document(running.reads, name, running.scope.now_ms)?]
            }
            _ => return Ok(true),
        };
        for document in documents {
            self.push_at(1, &document, running)?;
        }
        Ok(false)
    }

    /// Pushes a document in at the front; whether any more may come out of another one.
    ///
    /// # Errors
    /// Of the stages; `QueryExceededMemoryLimitNoDiskUseAllowed` for a sample that is too large.
    pub(crate) fn push(&mut self, document: &[u8], running: &Running<'_>) -> Outcome<bool> {
        self.push_at(0, document, running)
    }

    fn push_at(&mut self, from: usize, document: &[u8], running: &Running<'_>) -> Outcome<bool> {
        let mut made = document.to_vec();
        for at in from..self.stages.len() {
            let Some(stage) = self.stages.get_mut(at) else {
                break;
            };
            match stage {
                Stage::Match(filter) if filter.matches(Document(&made))? => {}
                Stage::Match(_) => return Ok(true),
                Stage::Skip(0) | Stage::Union(_) | Stage::Documents(_) | Stage::Statistics(_) => {}
                Stage::Skip(left) => {
                    *left -= 1;
                    return Ok(true);
                }
                Stage::Limit(0) => return Ok(false),
                Stage::Limit(left) => *left -= 1,
                Stage::GeoNear(near) => made = near.measured(Document(&made))?,
                Stage::Project(projection) => made = projection.apply(Document(&made), None)?,
                Stage::ReplaceRoot(root) => made = replace_root(root, Document(&made))?,
                Stage::Redact(expression) => match redact(expression, Document(&made))? {
                    Some(left) => made = left,
                    None => return Ok(true),
                },
                Stage::Lookup(lookup) => {
                    made = looked_up(lookup, Document(&made), running)?;
                }
                Stage::Sort(sorter) => {
                    sorter.push(made)?;
                    return Ok(true);
                }
                Stage::Group(group) => {
                    group.push(Document(&made))?;
                    self.held.set(group.bytes());
                    return Ok(true);
                }
                Stage::Count(_, count) => {
                    *count += 1;
                    return Ok(true);
                }
                Stage::Sample(sample) => {
                    self.bytes += sample.push(made);
                    self.held.set(self.bytes);
                    return self.bounded();
                }
                Stage::Facet(pipelines) => {
                    for (_, pipeline) in pipelines {
                        pipeline.push(&made, running)?;
                    }
                    return Ok(true);
                }
                Stage::Unwind(unwind) => {
                    for document in unwind.apply(Document(&made)) {
                        if !self.push_at(at + 1, &document, running)? {
                            return Ok(false);
                        }
                    }
                    return Ok(true);
                }
            }
        }
        self.out.push(made)?;
        Ok(true)
    }

    fn bounded(&self) -> Outcome<bool> {
        match self.bytes > STAGE_BYTES_MAX {
            true => Err(too_much("$sample").into()),
            false => Ok(true),
        }
    }

    /// What comes out, once all has come in.
    ///
    /// # Errors
    /// As of [`Pipeline::push`].
    pub(crate) fn finish(mut self, running: &Running<'_>) -> Outcome<Sorted> {
        for at in 0..self.stages.len() {
            // A place in the list stays, so that those behind it keep theirs.
            let stage = self
                .stages
                .get_mut(at)
                .map(|stage| std::mem::replace(stage, Stage::Limit(0)));
            let kept: Vec<Vec<u8>> = match stage {
                Some(Stage::Sort(sorter)) => {
                    let mut sorted = sorter.finish()?;
                    while let Some(document) = sorted.next()? {
                        if !self.push_at(at + 1, &document, running)? {
                            break;
                        }
                    }
                    continue;
                }
                Some(Stage::Group(group)) => group.finish(),
                Some(Stage::Sample(sample)) => sample.finish(),
                Some(Stage::Union(union)) => united(&union, running)?,
                Some(Stage::Facet(pipelines)) => {
                    let results = pipelines.into_iter().map(|(name, pipeline)| {
                        Ok((name, pipeline.finish(running)?.collect("a part of $facet")?))
                    });
                    vec![lookup::facets(results.collect::<Outcome<_>>()?)?]
                }
                Some(Stage::Count(name, count)) if count > 0 => {
                    let mut out = Builder::new();
                    out.count(name, count);
                    vec![out.finish()]
                }
                _ => continue,
            };
            for document in kept {
                if !self.push_at(at + 1, &document, running)? {
                    break;
                }
            }
        }
        self.out.finish()
    }
}

/// `$lookup`.
fn looked_up(lookup: &Lookup, document: Document<'_>, running: &Running<'_>) -> Outcome<Vec<u8>> {
    let filter = lookup.filter(document);
    let found = match &lookup.pipeline {
        None => {
            // The other collection may be a view that looks up in others.
            let within = running.within(running.scope.clone())?;
            over(&lookup.from, filter, Vec::new(), &within)?
        }
        Some(given) => {
            let within = running.within(lookup.scope(document, &running.scope)?)?;
            let stages: Vec<_> = given.iter().map(|stage| Document(stage)).collect();
            let stages = Pipeline::parse(&stages, &within)?;
            over(&lookup.from, filter, stages, &within)?
        }
    };
    lookup.joined(document, &found)
}

/// `$unionWith`: what comes behind.
fn united(union: &Union, running: &Running<'_>) -> Outcome<Vec<Vec<u8>>> {
    let within = running.within(running.scope.clone())?;
    let stages = union.pipeline.iter().flatten();
    let stages: Vec<_> = stages.map(|stage| Document(stage)).collect();
    let stages = Pipeline::parse(&stages, &within)?;
    over(&union.from, Filter::And(Vec::new()), stages, &within)
}

/// `$replaceRoot`: the document that the expression gives.
///
/// # Errors
/// `Location40228` where it gives none.
pub(super) fn replace_root(
    expression: &Expression,
    document: Document<'_>,
) -> Result<Vec<u8>, Refusal> {
    match expression.eval(document)? {
        Some(value) if value.kind == Kind::Document => Ok(value.bytes),
        other => {
            let kind = other.map_or("missing", |other| other.kind.name());
            let text = format!(
                "'newRoot' expression must evaluate to an object, but resulting value was of type: {kind}"
            );
            Err(Refusal::new(Code::ReplaceRoot, text))
        }
    }
}

/// `$redact`: what the expression leaves of a document; it looks at each of its parts in turn.
///
/// # Errors
/// `Location17053` where it says neither of the three words.
fn redact(expression: &Expression, document: Document<'_>) -> Result<Option<Vec<u8>>, Refusal> {
    let said = expression.eval(document)?;
    match said.as_ref().map(OwnedValue::get).and_then(Value::as_str) {
        Some("KEEP") => Ok(Some(document.0.to_vec())),
        Some("PRUNE") => Ok(None),
        Some("DESCEND") => {
            let mut out = Builder::with_room(document.0.len());
            for element in document {
                redact_value(expression, element.name, element.value, &mut out)?;
            }
            Ok(Some(out.finish()))
        }
        _ => {
            let text = "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE";
            Err(Refusal::new(Code::RedactWord, text))
        }
    }
}

/// Writes what is left of a value; whether anything is.
fn redact_value(
    expression: &Expression,
    name: &[u8],
    value: Value<'_>,
    out: &mut Builder,
) -> Result<bool, Refusal> {
    match value.kind {
        Kind::Document => match redact(expression, Document(value.bytes))? {
            Some(left) => drop(out.document(name, Document(&left))),
            None => return Ok(false),
        },
        Kind::Array => {
            out.open(Kind::Array, name);
            let mut place = 0usize;
            for element in Document(value.bytes) {
                let name = place.to_string();
                place += usize::from(redact_value(
                    expression,
                    name.as_bytes(),
                    element.value,
                    out,
                )?);
            }
            out.close();
        }
        _ => drop(out.value(name, value)),
    }
    Ok(true)
}
