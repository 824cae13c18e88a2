//! Stages, made from documents.

use drumlin_doc::{Code, Document, Filter, Kind, Refusal, Sort, Value};

use crate::query::Sorter;

use super::expression::Expression;
use super::group::Group;
use super::reshape::{Reshape, Unwind};

/// A stage.
#[derive(Debug)]
pub(crate) enum Stage {
    Match(Filter),
    Sort(Sorter),
    /// How many are still to be skipped.
    Skip(u64),
    /// How many may still pass.
    Limit(u64),
    Reshape(Reshape),
    ReplaceRoot(ReplaceRoot),
    Unwind(Unwind),
    Group(Group),
    /// The name of the count, and the count.
    Count(String, u64),
}

/// The expression of a new document.
#[derive(Clone, Debug)]
pub(crate) struct ReplaceRoot(pub(super) Expression);

impl Stage {
    /// The stages that one of a pipeline is.
    ///
    /// # Errors
    /// `Location40323` for a stage that is not one field, `Location40324` for unknown ones, by name; those of its parts.
    pub(super) fn parse(of: Document<'_>) -> Result<Vec<Self>, Refusal> {
        let mut fields = of.iter();
        let (Some(first), None) = (fields.next(), fields.next()) else {
            let text = "A pipeline stage specification object must contain exactly one field.";
            return Err(Refusal::new(Code::StageShape, text));
        };
        let (name, value) = (first.name_str(), first.value);
        let document = || {
            let inner = (value.kind == Kind::Document).then_some(Document(value.bytes));
            inner.ok_or_else(|| {
                Refusal::bad_value(format!("the argument of {name} must be an object"))
            })
        };
        let count = |least: i64| {
            let whole = value.as_whole().filter(|whole| *whole >= least);
            let whole = whole.and_then(|whole| u64::try_from(whole).ok());
            whole.ok_or_else(|| {
                Refusal::bad_value(format!(
                    "the argument of {name} must be a whole number of at least {least}"
                ))
            })
        };
        Ok(vec![match name {
            "$match" => Self::Match(Filter::new(document()?)?),
            "$sort" => {
                let sort = Sort::new(document()?)?;
                if sort.is_empty() {
                    return Err(Refusal::bad_value(
                        "$sort stage must have at least one sort key",
                    ));
                }
                Self::Sort(Sorter::new(sort, u64::MAX))
            }
            "$skip" => Self::Skip(count(0)?),
            "$limit" => Self::Limit(count(1)?),
            "$project" => Self::Reshape(Reshape::project(document()?)?),
            "$addFields" | "$set" => Self::Reshape(Reshape::add_fields(document()?)?),
            "$unset" => Self::Reshape(Reshape::unset(value)?),
            "$unwind" => Self::Unwind(Unwind::parse(value)?),
            "$group" => Self::Group(Group::parse(document()?)?),
            "$count" => {
                let name = value.as_str().filter(|name| {
                    !name.is_empty() && !name.contains('.') && !name.starts_with('$')
                });
                let name = name.ok_or_else(|| {
                    Refusal::bad_value("$count needs the name of a field, without dots and '$'")
                })?;
                Self::Count(name.to_owned(), 0)
            }
            "$replaceRoot" => {
                let root = document()?
                    .get("newRoot")
                    .ok_or_else(|| Refusal::bad_value("$replaceRoot needs newRoot"))?;
                Self::ReplaceRoot(ReplaceRoot(Expression::parse(root)?))
            }
            "$replaceWith" => Self::ReplaceRoot(ReplaceRoot(Expression::parse(value)?)),
            "$sortByCount" => return by_count(value),
            _ => {
                let text = format!(
                    "Unrecognized pipeline stage name: '{name}': it is not supported by this server"
                );
                return Err(Refusal::new(Code::UnknownStage, text));
            }
        }])
    }
}

fn by_count(value: Value<'_>) -> Result<Vec<Stage>, Refusal> {
    let order = Sort(vec![(drumlin_doc::Path::new("count"), true)]);
    Ok(vec![
        Stage::Group(Group::counts(value)?),
        Stage::Sort(Sorter::new(order, u64::MAX)),
    ])
}
