//! Stages, made from documents.

use drumlin_doc::{
    Builder, Code, Document, Expression, Filter, Kind, Projection, ProjectionOf, Refusal, Sort,
    Value,
};

use crate::held::Held;
use crate::sorting::Sorter;
use crate::statistics::CollectionStatistics;
use crate::wire::limits::STAGES_MAX;

use super::bucket;
use super::geo_near::GeoNear;
use super::group::Group;
use super::lookup::{Lookup, Union};
use super::running::Running;
use super::sample::Sample;
use super::unwind::Unwind;

/// A stage.
#[derive(Debug)]
pub(crate) enum Stage {
    Match(Filter),
    Sort(Sorter),
    /// How many are still to be skipped.
    Skip(u64),
    /// How many may still pass.
    Limit(u64),
    Project(Projection),
    ReplaceRoot(Expression),
    Redact(Expression),
    Unwind(Unwind),
    Group(Box<Group>),
    /// The name of the count, and the count.
    Count(String, u64),
    Sample(Sample),
    Lookup(Box<Lookup>),
    Union(Union),
    Facet(Vec<(String, Pipeline)>),
    /// Documents that are there before any come in.
    Documents(Vec<Vec<u8>>),
    Statistics(CollectionStatistics),
    GeoNear(Box<GeoNear>),
}

/// Stages, and what has come out of the last one.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(super) stages: Vec<Stage>,
    pub(super) out: Sorter,
    /// Of samples.
    pub(super) bytes: usize,
    /// For groups and samples.
    pub(super) held: Held,
}

impl Pipeline {
    /// # Errors
    /// Of each stage; `BadValue` for too many.
    pub(crate) fn parse(
        stages: &[Document<'_>],
        running: &Running<'_>,
    ) -> Result<Vec<Stage>, Refusal> {
        if stages.len() > STAGES_MAX {
            return Err(Refusal::bad_value(format!(
                "a pipeline has at most {STAGES_MAX} stages"
            )));
        }
        let mut all: Vec<Stage> = Vec::new();
        for stage in stages {
            let made = Stage::parse(*stage, running)?;
            let first = match made.as_slice() {
                [Stage::Documents(_)] => "$documents",
                [Stage::Statistics(_)] => "$collStats",
                [Stage::GeoNear(_)] => "$geoNear",
                _ => "",
            };
            if !all.is_empty() && !first.is_empty() {
                let text = format!("{first} is only valid as the first stage in a pipeline.");
                let code = match first {
                    "$geoNear" => Code::NearFirst,
                    _ => Code::StageFirst,
                };
                return Err(Refusal::new(code, text));
            }
            all.extend(made);
        }
        Ok(all)
    }

    pub(crate) fn new(stages: Vec<Stage>, running: &Running<'_>) -> Self {
        let workspace = running.workspace.of_results();
        Self {
            stages,
            out: Sorter::new(Sort::default(), u64::MAX, &workspace),
            bytes: 0,
            held: running.workspace.hold(),
        }
    }
}

fn parse_text(text: impl Into<String>) -> Refusal {
    Refusal::parse(text)
}

/// The document that a stage has as its argument.
fn document<'v>(name: &str, value: Value<'v>) -> Result<Document<'v>, Refusal> {
    let inner = (value.kind == Kind::Document).then_some(Document(value.bytes));
    let code = match name {
        "$match" => Code::MatchShape,
        "$sort" => Code::SortShape,
        "$project" => Code::ProjectShape,
        "$group" => Code::GroupShape,
        "$addFields" | "$set" => Code::AddFieldsShape,
        "$bucket" => Code::BucketShape,
        "$sample" => Code::SampleShape,
        "$facet" => Code::FacetShape,
        _ => Code::FailedToParse,
    };
    inner.ok_or_else(|| {
        let text = format!(
            "the {name} specification must be an object, not {}",
            value.kind.name()
        );
        Refusal::new(code, text)
    })
}

impl Stage {
    /// The stages that one of a pipeline is.
    ///
    /// # Errors
    /// `Location40323` for a stage that is not one field, `Location40324` for unknown ones, by name; those of its parts.
    pub(super) fn parse(of: Document<'_>, running: &Running<'_>) -> Result<Vec<Self>, Refusal> {
        let mut fields = of.iter();
        let (Some(first), None) = (fields.next(), fields.next()) else {
            let text = "A pipeline stage specification object must contain exactly one field.";
            return Err(Refusal::new(Code::StageShape, text));
        };
        let (name, value) = (first.name_str(), first.value);
        let scope = &running.scope;
        let document = || document(name, value);
        Ok(vec![match name {
            "$match" => Self::Match(Filter::without_near(document()?, scope)?),
            "$sort" => {
                let sort = Sort::new(document()?)?;
                if sort.is_empty() {
                    let text = "$sort stage must have at least one sort key";
                    return Err(Refusal::new(Code::SortEmpty, text));
                }
                Self::Sort(Sorter::new(sort, u64::MAX, &running.workspace))
            }
            "$skip" => Self::Skip(count(name, value, 0, Code::SkipNumber)?),
            "$limit" => Self::Limit(count(name, value, 1, Code::LimitPositive)?),
            "$project" => {
                let fields = document()?;
                if fields.is_empty() {
                    let text = "projection specification must have at least one field";
                    return Err(Refusal::new(Code::ProjectNothing, text));
                }
                Self::Project(Projection::new(fields, ProjectionOf::Stage, scope)?)
            }
            "$addFields" | "$set" => Self::Project(Projection::add_fields(document()?, scope)?),
            "$unset" => Self::Project(unset(value, running)?),
            "$unwind" => Self::Unwind(Unwind::parse(value)?),
            "$group" => Self::Group(Box::new(Group::parse(document()?, scope)?)),
            "$bucket" => {
                let fields = document()?;
                let (key, buckets) = bucket::parse(fields, scope)?;
                let output = fields.get("output").and_then(Value::as_document);
                let group = Group::of_buckets(key, buckets, output, scope)?;
                Self::Group(Box::new(group))
            }
            "$count" => {
                let name = value.as_str().filter(|name| {
                    !name.is_empty() && !name.contains(['.', '\0']) && !name.starts_with('$')
                });
                let name = name.ok_or_else(|| {
                    let text = "$count needs the name of a field, without dots, '$' and zeros";
                    Refusal::new(Code::CountName, text)
                })?;
                Self::Count(name.to_owned(), 0)
            }
            "$replaceRoot" => {
                let fields = document()?;
                let root = fields.get("newRoot").filter(|_| fields.iter().count() == 1);
                let root = root.ok_or_else(|| parse_text("$replaceRoot needs newRoot alone"))?;
                Self::ReplaceRoot(Expression::parse(root, scope)?)
            }
            "$replaceWith" => Self::ReplaceRoot(Expression::parse(value, scope)?),
            "$redact" => {
                let mut scope = scope.clone();
                for name in ["DESCEND", "PRUNE", "KEEP"] {
                    scope
                        .values
                        .push((name.to_owned(), drumlin_doc::OwnedValue::string(name)));
                }
                Self::Redact(Expression::parse(value, &scope)?)
            }
            "$sortByCount" => return by_count(value, running),
            "$sample" => {
                let size = document()?.get("size");
                let wrong = || {
                    Refusal::new(
                        Code::SampleSize,
                        "size argument to $sample must be a positive number",
                    )
                };
                let size = size.and_then(Value::as_whole).filter(|size| *size > 0);
                let size = u64::try_from(size.ok_or_else(wrong)?).map_err(|_| wrong())?;
                Self::Sample(Sample::new(size, scope.seed))
            }
            "$lookup" => {
                let lookup = Lookup::parse(document()?, running)?;
                let names = lookup.bound.iter().map(|(name, _)| name.clone());
                check_given(lookup.pipeline.as_deref(), names.collect(), running)?;
                Self::Lookup(Box::new(lookup))
            }
            "$unionWith" => {
                let union = Union::parse(value, running)?;
                check_given(union.pipeline.as_deref(), Vec::new(), running)?;
                Self::Union(union)
            }
            "$facet" => Self::Facet(facets(document()?, running)?),
            "$documents" => Self::Documents(documents(value, running)?),
            "$geoNear" => Self::GeoNear(Box::new(GeoNear::parse(value, running)?)),
            "$collStats" => Self::Statistics(CollectionStatistics::parse(value)?),
            _ => {
                let text = format!(
                    "Unrecognized pipeline stage name: '{name}': it is not supported by this server"
                );
                return Err(Refusal::new(Code::UnknownStage, text));
            }
        }])
    }
}

/// Parses a pipeline within, so that what is wrong in it is told at once. The names that it knows have values when it runs.
fn check_given(
    given: Option<&[Vec<u8>]>,
    names: Vec<String>,
    running: &Running<'_>,
) -> Result<(), Refusal> {
    let mut scope = running.scope.clone();
    scope.names.extend(names);
    let stages: Vec<_> = given
        .unwrap_or_default()
        .iter()
        .map(|it| Document(it))
        .collect();
    Pipeline::parse(&stages, &running.within(scope)?).map(|_| ())
}

fn count(name: &str, value: Value<'_>, least: i64, code: Code) -> Result<u64, Refusal> {
    let whole = value.as_whole().filter(|whole| *whole >= least);
    let whole = whole.and_then(|whole| u64::try_from(whole).ok());
    whole.ok_or_else(|| {
        let text = format!("the argument of {name} must be a whole number of at least {least}");
        Refusal::new(code, text)
    })
}

fn unset(of: Value<'_>, running: &Running<'_>) -> Result<Projection, Refusal> {
    let wrong = || {
        let text = "$unset specification must be a string or an array of strings";
        Refusal::new(Code::UnsetShape, text)
    };
    let mut names = Builder::new();
    let name = |value: Value<'_>| match value.as_str() {
        Some(name) if name.contains('\0') => {
            let text = "FieldPath field names may not contain '\\0'.";
            Err(Refusal::new(Code::PathNull, text))
        }
        Some(name) => Ok(name.to_owned()),
        None => Err(wrong()),
    };
    match of.as_array() {
        Some(items) if !items.is_empty() => {
            for item in items {
                names.i32(name(item.value)?, 0);
            }
        }
        _ => drop(names.i32(name(of)?, 0)),
    }
    Projection::new(
        Document(&names.finish()),
        ProjectionOf::Stage,
        &running.scope,
    )
}

fn by_count(value: Value<'_>, running: &Running<'_>) -> Result<Vec<Stage>, Refusal> {
    let order = Sort(vec![(drumlin_doc::Path::new("count"), true)]);
    Ok(vec![
        Stage::Group(Box::new(Group::counts(value, &running.scope)?)),
        Stage::Sort(Sorter::new(order, u64::MAX, &running.workspace)),
    ])
}

fn facets(of: Document<'_>, running: &Running<'_>) -> Result<Vec<(String, Pipeline)>, Refusal> {
    let mut all = Vec::new();
    for element in of {
        let name = element.name_str();
        if name.is_empty() || name.contains('.') || name.starts_with('$') {
            return Err(parse_text(format!(
                "the name {name:?} cannot be one of $facet"
            )));
        }
        let wrong = || {
            let text = format!("arguments to $facet must be arrays of stages, and {name} is not");
            Refusal::new(Code::FacetArgument, text)
        };
        let items = element.value.as_array().ok_or_else(wrong)?;
        let stages: Option<Vec<_>> = items
            .iter()
            .map(|item| {
                item.value
                    .as_document()
                    .filter(|_| item.value.kind == Kind::Document)
            })
            .collect();
        let stages = stages.ok_or_else(wrong)?;
        let unfit = [
            "$facet",
            "$out",
            "$merge",
            "$documents",
            "$geoNear",
            "$collStats",
            "$indexStats",
        ];
        if stages
            .iter()
            .any(|stage| unfit.iter().any(|name| stage.get(name).is_some()))
        {
            let text = "a stage is not allowed to be used within a $facet stage";
            return Err(Refusal::new(Code::FacetStage, text));
        }
        let stages = Pipeline::parse(&stages, running)?;
        all.push((name.to_owned(), Pipeline::new(stages, running)));
    }
    match all.is_empty() {
        true => Err(Refusal::new(
            Code::FacetShape,
            "the $facet specification must be a non-empty object",
        )),
        false => Ok(all),
    }
}

fn documents(of: Value<'_>, running: &Running<'_>) -> Result<Vec<Vec<u8>>, Refusal> {
    let value = Expression::parse(of, &running.scope)?.eval(Document::EMPTY)?;
    let wrong = || {
        let text = "an array of documents is expected by $documents";
        Refusal::new(Code::DocumentsShape, text)
    };
    let value = value.ok_or_else(wrong)?;
    let items = value.get().as_array().ok_or_else(wrong)?;
    let one = |item: drumlin_doc::Element<'_>| match item.value.kind {
        Kind::Document => Ok(item.value.bytes.to_vec()),
        _ => Err(wrong()),
    };
    items.iter().map(one).collect()
}
