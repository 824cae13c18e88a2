//! Updates, made from documents.

use std::cmp::Ordering;

use crate::arithmetic::Arithmetic;
use crate::code::Code;
use crate::filter::Filter;
use crate::path::Path;
use crate::raw::{Document, Kind, OwnedValue, Value};
use crate::refusal::{Outcome, Refusal};
use crate::show::show;
use crate::sort::Sort;

use super::operators::{Bits, Operator, Order, Push};
use super::tree::{Node, is_positional};

/// A change of a document: another one in its place, or operators.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub(super) kind: UpdateKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum UpdateKind {
    Replace(Vec<u8>),
    Operators {
        root: Node,
        /// From where, and to where.
        renames: Vec<(Path, String)>,
        /// The array of the first `$`, as its path and the position of it in the path.
        positional: Option<Path>,
    },
}

impl Update {
    /// The update that `document` describes.
    ///
    /// # Errors
    /// `FailedToParse` for malformed or unknown operators, by name; those of paths.
    pub fn new(document: Document<'_>) -> Outcome<Self> {
        let first = document.iter().next();
        let is_operators = first.is_some_and(|element| element.name.first() == Some(&b'$'));
        if !is_operators {
            return Self::replacement(document);
        }
        let mut root = Node::default();
        let mut renames = Vec::new();
        let mut positional = None;
        for element in document {
            let name = element.name_str();
            if !name.starts_with('$') {
                return Err(Refusal::parse(format!(
                    "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
                )));
            }
            let wrong = || {
                Refusal::parse(format!(
                    "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not {{{name}: {}}}",
                    element.value.kind.name(),
                    show(element.value)
                ))
            };
            let fields = element
                .value
                .as_document()
                .filter(|_| element.value.kind == Kind::Document);
            for field in fields.ok_or_else(wrong)? {
                let path = field.name_str();
                if name == "$rename" {
                    renames.push(rename(&mut root, path, field.value)?);
                    continue;
                }
                root.add(path, operator(name, path, field.value)?)?;
                if let Some((array, _)) = path
                    .split_once(".$")
                    .filter(|(_, rest)| rest.is_empty() || rest.starts_with('.'))
                {
                    positional.get_or_insert_with(|| Path::new(array));
                }
            }
        }
        Ok(Self {
            kind: UpdateKind::Operators {
                root,
                renames,
                positional,
            },
        })
    }

    /// A document in place of another.
    ///
    /// # Errors
    /// `FailedToParse` for operators among its fields.
    pub fn replacement(document: Document<'_>) -> Outcome<Self> {
        if let Some(operator) = document
            .iter()
            .find(|element| element.name.first() == Some(&b'$'))
        {
            let text = format!(
                "the replacement document must not contain update operators: {}",
                operator.name_str()
            );
            return Err(Refusal::parse(text));
        }
        Ok(Self {
            kind: UpdateKind::Replace(document.0.to_vec()),
        })
    }

    /// The update that sets what `filter` says is equal, for the document of an upsert.
    ///
    /// # Errors
    /// `NotExactValueField` for paths that exclude each other.
    pub fn of_equalities(filter: &Filter) -> Outcome<Self> {
        let mut root = Node::default();
        for (path, value) in filter.equalities() {
            let set = Operator::Set(value.clone());
            root.add(&path.to_string(), set).map_err(|refusal| {
                let text =
                    format!("cannot infer query fields to set, path '{path}' is matched twice");
                match refusal.code {
                    Code::ConflictingUpdateOperators => Refusal::new(Code::NotExactValue, text),
                    _ => refusal,
                }
            })?;
        }
        Ok(Self {
            kind: UpdateKind::Operators {
                root,
                renames: Vec::new(),
                positional: None,
            },
        })
    }

    /// The names by which elements of arrays are named, as `$[name]`.
    pub fn element_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        if let UpdateKind::Operators { root, .. } = &self.kind {
            root.element_names(&mut names);
        }
        names
    }

    /// Whether it has operators, and is no replacement.
    pub fn has_operators(&self) -> bool {
        matches!(self.kind, UpdateKind::Operators { .. })
    }
}

fn rename(root: &mut Node, from: &str, to: Value<'_>) -> Outcome<(Path, String)> {
    let kind = to.kind;
    let to = to
        .as_str()
        .filter(|_| kind == Kind::String)
        .ok_or_else(|| {
            Refusal::bad_value(format!(
                "The 'to' field for $rename must be a string: {from}: {}",
                show(to)
            ))
        })?;
    if from == "_id" || to == "_id" {
        let text = "Performing an update on the path '_id' would modify the immutable field '_id'";
        return Err(Refusal::new(Code::ImmutableField, text));
    }
    if to.contains('\0') {
        let text = format!("The 'to' field of $rename of {from} has a null byte");
        return Err(Refusal::new(Code::NullByte, text));
    }
    if from == to {
        return Err(Refusal::bad_value(format!(
            "The source and target field for $rename must differ: {from}: \"{to}\""
        )));
    }
    if [from, to]
        .iter()
        .any(|path| path.split('.').any(is_positional))
    {
        return Err(Refusal::bad_value(format!(
            "$rename of {from} to {to}: the fields may not be positional"
        )));
    }
    // A place that is taken twice is a conflict; what is put there is known when the document is.
    root.add(from, Operator::Unset)?;
    let mut probe = root.clone();
    probe.add(to, Operator::Unset)?;
    Ok((Path::new(from), to.to_owned()))
}

fn operator(name: &str, path: &str, value: Value<'_>) -> Outcome<Operator> {
    let owned = value.to_owned();
    let number = |how: Arithmetic| match value.kind.is_number() {
        true => Ok(Operator::Arithmetic(how, owned.clone())),
        false => Err(Refusal::type_mismatch(format!(
            "Cannot {name} with non-numeric argument: {{{path}: {}}}",
            show(value)
        ))),
    };
    match name {
        "$set" => Ok(Operator::Set(owned)),
        "$setOnInsert" => Ok(Operator::SetOnInsert(owned)),
        "$unset" => Ok(Operator::Unset),
        "$inc" => number(Arithmetic::Add),
        "$mul" => number(Arithmetic::Multiply),
        "$min" => Ok(Operator::Bound(Ordering::Less, owned)),
        "$max" => Ok(Operator::Bound(Ordering::Greater, owned)),
        "$currentDate" => current_date(path, value),
        "$push" => push(value).map(Operator::Push),
        "$addToSet" => Ok(Operator::AddToSet(match each(name, value)? {
            Some((values, rest)) => match rest.is_empty() {
                true => values,
                false => return Err(Refusal::bad_value("$addToSet takes $each alone")),
            },
            None => vec![owned],
        })),
        "$pop" => match value.as_whole() {
            Some(1) => Ok(Operator::Pop { first: false }),
            Some(-1) => Ok(Operator::Pop { first: true }),
            _ => Err(Refusal::parse(format!(
                "$pop expects 1 or -1, found: {}",
                show(value)
            ))),
        },
        "$pull" => Filter::of_element(value).map(Operator::Pull),
        "$pullAll" => list(name, value).map(Operator::PullAll),
        "$bit" => bits(path, value),
        _ => Err(Refusal::parse(format!(
            "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
        ))),
    }
}

fn bits(path: &str, value: Value<'_>) -> Outcome<Operator> {
    let wrong = || {
        Refusal::bad_value(format!(
            "$bit of {path} needs a document of 'and', 'or' or 'xor' with whole numbers, and is {}",
            show(value)
        ))
    };
    let steps = value.as_document().filter(|_| value.kind == Kind::Document);
    let steps = steps.filter(|steps| !steps.is_empty()).ok_or_else(wrong)?;
    let steps = steps.iter().map(|step| {
        let bits = match step.name_str() {
            "and" => Bits::And,
            "or" => Bits::Or,
            "xor" => Bits::Xor,
            _ => return Err(wrong()),
        };
        match step.value.kind {
            Kind::Int32 | Kind::Int64 => Ok((bits, step.value.to_owned())),
            _ => Err(wrong()),
        }
    });
    Ok(Operator::Bits(steps.collect::<Outcome<_>>()?))
}

fn current_date(path: &str, value: Value<'_>) -> Outcome<Operator> {
    let alone = value
        .as_document()
        .filter(|inner| inner.iter().count() == 1);
    let kind = match (value.kind, alone.and_then(|inner| inner.get("$type"))) {
        (Kind::Bool, _) => Some(Kind::Date),
        (_, Some(name)) => match name.as_str() {
            Some("date") => Some(Kind::Date),
            Some("timestamp") => Some(Kind::Timestamp),
            _ => None,
        },
        _ => None,
    };
    let wrong = || {
        Refusal::bad_value(format!(
            "$currentDate of {path} needs true or {{$type: \"date\" or \"timestamp\"}}"
        ))
    };
    kind.map(Operator::CurrentDate).ok_or_else(wrong)
}

fn list(name: &str, value: Value<'_>) -> Outcome<Vec<OwnedValue>> {
    let wrong = || {
        Refusal::bad_value(format!(
            "The argument to {name} must be an array but was of type: {}",
            value.kind.name()
        ))
    };
    let items = value.as_array().ok_or_else(wrong)?;
    Ok(items.iter().map(|item| item.value.to_owned()).collect())
}

/// The values of `$each`, and the other modifiers.
#[expect(clippy::type_complexity, reason = "a list of named values")]
fn each<'a>(
    operator: &str,
    value: Value<'a>,
) -> Outcome<Option<(Vec<OwnedValue>, Vec<(&'a str, Value<'a>)>)>> {
    let modifiers = value.as_document().filter(|_| value.kind == Kind::Document);
    let Some((modifiers, values)) = modifiers.and_then(|it| Some((it, it.get("$each")?))) else {
        return Ok(None);
    };
    let rest = modifiers.iter().filter(|element| element.name != b"$each");
    let rest = rest
        .map(|element| (element.name_str(), element.value))
        .collect();
    if operator == "$addToSet" && values.kind != Kind::Array {
        let text = "The argument to $each in $addToSet must be an array";
        return Err(Refusal::type_mismatch(text));
    }
    Ok(Some((list("$each", values)?, rest)))
}

fn push(value: Value<'_>) -> Outcome<Push> {
    let mut push = Push {
        values: vec![value.to_owned()],
        position: None,
        slice: None,
        sort: None,
    };
    let Some((values, modifiers)) = each("$push", value)? else {
        return Ok(push);
    };
    push.values = values;
    for (name, value) in modifiers {
        let whole = || {
            value.as_whole().ok_or_else(|| {
                Refusal::bad_value(format!(
                    "The value for {name} must be an integer value but was given type: {}",
                    value.kind.name()
                ))
            })
        };
        match name {
            "$position" => push.position = Some(whole()?),
            "$slice" => push.slice = Some(whole()?),
            "$sort" => {
                push.sort = Some(match value.as_document() {
                    Some(fields) if fields.is_empty() => {
                        return Err(Refusal::bad_value(
                            "The sort pattern is empty when it should be a set of fields.",
                        ));
                    }
                    Some(fields) => Order::Fields(Sort::new(fields)?),
                    None => match value.as_whole() {
                        Some(1) => Order::Whole(false),
                        Some(-1) => Order::Whole(true),
                        _ => {
                            return Err(Refusal::bad_value(
                                "The $sort element value must be either 1 or -1",
                            ));
                        }
                    },
                })
            }
            _ => {
                return Err(Refusal::bad_value(format!(
                    "Unrecognized clause in $push: {name}"
                )));
            }
        }
    }
    Ok(push)
}
