//! Updates, applied: the document is written anew, what is not touched is copied.

use std::borrow::Cow;

use crate::build::Builder;
use crate::code::Code;
use crate::compare::equal;
use crate::filter::{Filter, Test};
use crate::matching::Failed;
use crate::path::{Path, index_of, value_at};
use crate::raw::{Document, Kind, Value};
use crate::refusal::{Outcome, Refusal};
use crate::show::show;
use crate::{DEPTH_MAX, DOCUMENT_BYTES_MAX, validate};

use super::moment::Moment;
use super::operators::{Change, Operator};
use super::parse::{Update, UpdateKind};
use super::tree::{Node, is_positional};

/// Longest array that an index of an update may make, beyond which nulls would fill it.
const PADDING_MAX: usize = 1_500_000;

/// The document after an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its bytes.
    pub document: Vec<u8>,
    /// Whether they are others than before.
    pub is_changed: bool,
}

/// What stays the same within one document.
struct Context<'a> {
    moment: &'a Moment,
    position: Option<usize>,
}

impl Update {
    /// `document` after the update; `filter` is the one that found it, for the place of `$`.
    ///
    /// # Errors
    /// `PathNotViable` where a field cannot be made; `ImmutableField` for a change of `_id`; `BSONObjectTooLarge`; those of
    /// the operators. Nothing has changed then.
    pub fn apply(
        &self,
        document: Document<'_>,
        filter: &Filter,
        moment: &Moment,
    ) -> Outcome<Applied> {
        let made = match &self.kind {
            UpdateKind::Replace(new) => replaced(document, Document(new)),
            UpdateKind::Operators {
                root,
                renames,
                positional,
            } => {
                let failed = Failed::default();
                let position = positional
                    .as_ref()
                    .and_then(|array| position(filter, document, array, &failed));
                let position = failed.or(position)?;
                let context = Context { moment, position };
                let moved;
                let root = match renames.is_empty() {
                    true => root,
                    false => {
                        moved = renamed(root, renames, document)?;
                        &moved
                    }
                };
                let mut out = Builder::new();
                context.document(root, document, &mut out)?;
                let made = out.finish();
                if !moment.is_insert {
                    refuse_dollars(document, Document(&made))?;
                }
                made
            }
        };
        let is_nested = self.has_operators();
        Applied::new(document, made, is_nested, moment)
    }
}

impl Applied {
    /// `document` after `new` was put in its place, of which the `_id` stays where `new` has none.
    ///
    /// # Errors
    /// `ImmutableField` for another `_id`; `BSONObjectTooLarge`.
    pub fn replaced(document: Document<'_>, new: Document<'_>, moment: &Moment) -> Outcome<Self> {
        Self::new(document, replaced(document, new), true, moment)
    }

    fn new(
        document: Document<'_>,
        made: Vec<u8>,
        is_nested: bool,
        moment: &Moment,
    ) -> Outcome<Self> {
        let is_changed = made != document.0;
        if is_changed && !moment.is_insert && !drumlin_base::bug!("mongo-updates-move-ids") {
            same_id(document, Document(&made))?;
        }
        if made.len() > DOCUMENT_BYTES_MAX {
            let text = format!(
                "the document would have {} bytes after the update; the most is {DOCUMENT_BYTES_MAX}",
                made.len()
            );
            return Err(Refusal::new(Code::BsonObjectTooLarge, text));
        }
        if is_changed && is_nested {
            // Values put into each other may be nested too deep.
            validate(&made)?;
        }
        Ok(Self {
            document: made,
            is_changed,
        })
    }
}

/// Refuses fields of the document itself whose names begin with `$`, unless they are as they were.
fn refuse_dollars(old: Document<'_>, new: Document<'_>) -> Outcome<()> {
    let mut fields = new.iter().filter(|it| it.name.first() == Some(&b'$'));
    let wrong = fields.find(|it| old.get(it.name_str()) != Some(it.value));
    match wrong.map(|it| it.name_str()) {
        None => Ok(()),
        Some(name) => {
            let text = format!(
                "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith."
            );
            Err(Refusal::new(Code::DollarPrefixedFieldName, text))
        }
    }
}

fn same_id(old: Document<'_>, new: Document<'_>) -> Outcome<()> {
    let is_same = match (old.get("_id"), new.get("_id")) {
        (Some(old), Some(new)) => equal(old, new),
        (None, None) => true,
        _ => false,
    };
    let text = "Performing an update on the path '_id' would modify the immutable field '_id'";
    if is_same {
        Ok(())
    } else {
        Err(Refusal::new(Code::ImmutableField, text))
    }
}

/// `new` with the `_id` of the old one in front.
fn replaced(old: Document<'_>, new: Document<'_>) -> Vec<u8> {
    let mut out = Builder::new();
    let own = new.get("_id");
    if let Some(id) = own.or_else(|| old.get("_id")) {
        out.value("_id", id);
    }
    for element in new.iter().filter(|element| element.name != b"_id") {
        out.value(element.name, element.value);
    }
    out.finish()
}

/// The tree with what renames put where.
fn renamed(root: &Node, renames: &[(Path, String)], document: Document<'_>) -> Outcome<Node> {
    let mut root = root.clone();
    for (from, to) in renames {
        if let Some(value) = named(document, from, "source")? {
            named(document, &Path::new(to), "destination")?;
            root.add(to, Operator::Set(value.to_owned()))?;
        }
    }
    Ok(root)
}

/// The value at one end of a rename.
///
/// # Errors
/// `BadValue` within an array; for a source `PathNotViable` below what has no fields.
fn named<'a>(document: Document<'a>, path: &Path, end: &str) -> Outcome<Option<Value<'a>>> {
    let mut value = document.as_value();
    for part in path.parts() {
        let found = match value.kind {
            Kind::Document => {
                let mut fields = Document(value.bytes).iter();
                fields.find(|element| *element.name == **part)
            }
            Kind::Array if index_of(part).is_some() => {
                let text = format!("The {end} field cannot be an array element, '{path}'");
                return Err(Refusal::bad_value(text));
            }
            // As for a destination, it is found when the field is to be made.
            _ if end == "destination" => None,
            _ => {
                let part = String::from_utf8_lossy(part);
                let text = format!(
                    "Cannot use the part '{part}' of '{path}' to traverse the element {}",
                    show(value)
                );
                return Err(Refusal::new(Code::PathNotViable, text));
            }
        };
        match found {
            Some(element) => value = element.value,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// The place of the element of any array that made the filter match: of the last condition that has one.
pub(crate) fn matched_place(
    filter: &Filter,
    document: Document<'_>,
    failed: &Failed,
) -> Option<usize> {
    match filter {
        Filter::And(parts) => {
            let mut places = parts.iter().rev();
            places.find_map(|part| matched_place(part, document, failed))
        }
        // Of alternatives only where all are about one path.
        Filter::Or(parts) => {
            let path = |part: &Filter| match part {
                Filter::Field(path, _) => Some(path.clone()),
                _ => None,
            };
            let first = path(parts.first()?)?;
            let is_same = parts.iter().all(|part| path(part).as_ref() == Some(&first));
            let mut places = parts.iter().filter(|_| is_same);
            places.find_map(|part| matched_place(part, document, failed))
        }
        Filter::Field(path, test) => {
            let parts = path.parts();
            let arrays =
                (1..=parts.len()).map(|len| Path::of(parts.iter().take(len).cloned().collect()));
            let arrays: Vec<_> = arrays.collect();
            let place = |test: &Test| {
                let field = Filter::Field(path.clone(), test.clone());
                let mut arrays = arrays.iter();
                arrays.find_map(|array| position(&field, document, array, failed))
            };
            place(test).or_else(|| match test {
                Test::All(tests) => tests.iter().rev().find_map(place),
                _ => None,
            })
        }
        _ => None,
    }
}

/// The first element of the array at `array` for which the filter holds.
pub(crate) fn position(
    filter: &Filter,
    document: Document<'_>,
    array: &Path,
    failed: &Failed,
) -> Option<usize> {
    match filter {
        Filter::And(parts) => parts
            .iter()
            .find_map(|part| position(part, document, array, failed)),
        Filter::Field(path, test) => {
            let rest = path.parts().strip_prefix(array.parts())?;
            let elements = value_at(document, array)?.as_array()?;
            if rest.is_empty() && is_of_whole(test) {
                return None;
            }
            let below =
                (!rest.is_empty()).then(|| Filter::Field(Path::of(rest.to_vec()), test.clone()));
            elements.iter().position(|element| match &below {
                None => holds_for_any(test, element.value, failed),
                Some(below) => element
                    .value
                    .as_document()
                    .is_some_and(|inner| below.holds(inner, failed)),
            })
        }
        _ => None,
    }
}

/// Whether a test is of the array, and of none of its elements.
fn is_of_whole(test: &Test) -> bool {
    match test {
        Test::Not(_) | Test::Exists | Test::Size(_) => true,
        Test::All(tests) => !tests.is_empty() && tests.iter().all(is_of_whole),
        _ => false,
    }
}

/// Whether an element is one that made the test hold.
fn holds_for_any(test: &Test, element: Value<'_>, failed: &Failed) -> bool {
    match test {
        Test::All(tests) => tests.iter().all(|test| test.holds_for(element, failed)),
        other => other.holds_for(element, failed),
    }
}

impl Context<'_> {
    /// Recurses as deep as the update names fields.
    fn document(&self, node: &Node, old: Document<'_>, out: &mut Builder) -> Outcome<()> {
        let mut seen = vec![false; node.children.len()];
        for element in old {
            let found = node.place(element.name).ok();
            match found.and_then(|at| Some((at, node.children.get(at)?, seen.get_mut(at)?))) {
                Some((at, (name, child), is_seen)) if !*is_seen => {
                    *is_seen = true;
                    let placed = self.place(child, name, Some(element.value), out);
                    placed.map_err(|refusal| self.first(node, at, &seen, old, refusal))?;
                }
                _ => {
                    out.value(element.name, element.value);
                }
            }
        }
        let new = node.children.iter().zip(seen).filter(|(_, seen)| !seen);
        for ((name, child), _) in new {
            if is_positional(&String::from_utf8_lossy(name)) {
                return Err(Refusal::bad_value(format!(
                    "Cannot apply array updates to a field that is no array: {}",
                    String::from_utf8_lossy(name)
                )));
            }
            self.place(child, name, None, out)?;
        }
        Ok(())
    }

    /// Of several fields that fail the first by name is told: that of those before `at` that are not looked at yet, or `refusal`.
    fn first(
        &self,
        node: &Node,
        at: usize,
        seen: &[bool],
        old: Document<'_>,
        refusal: Refusal,
    ) -> Refusal {
        let unseen = node.children.iter().zip(seen).take(at);
        let mut unseen = unseen.filter(|(_, is_seen)| !**is_seen);
        let failed = unseen.find_map(|((name, child), _)| {
            let mut fields = old.iter();
            let value = fields.find(|element| *element.name == **name);
            let value = value.map(|element| element.value);
            self.place(child, name, value, &mut Builder::new()).err()
        });
        failed.unwrap_or(refusal)
    }

    /// A field, of a document.
    fn place(
        &self,
        node: &Node,
        name: &[u8],
        old: Option<Value<'_>>,
        out: &mut Builder,
    ) -> Outcome<()> {
        if let Some(operator) = &node.operator {
            let text = String::from_utf8_lossy(name);
            match (operator.apply(&text, old, self.moment)?, old) {
                (Change::Put(value), _) => drop(out.value(name, value.get())),
                (Change::Keep, Some(old)) => drop(out.value(name, old)),
                (Change::Keep, None) | (Change::Remove, _) => {}
            }
            return Ok(());
        }
        let creates = node.creates(self.moment.is_insert);
        match old {
            None if !creates => {}
            None if node.is_of_array() => {
                return Err(Refusal::bad_value(
                    "The positional operator did not find the match needed from the query.",
                ));
            }
            None => self.nested(Kind::Document, name, out, |out| {
                self.document(node, Document::EMPTY, out)
            })?,
            Some(old) if old.kind == Kind::Document => {
                self.nested(Kind::Document, name, out, |out| {
                    self.document(node, Document(old.bytes), out)
                })?;
            }
            Some(old) if old.kind == Kind::Array => {
                self.nested(Kind::Array, name, out, |out| {
                    self.array(node, Document(old.bytes), out)
                })?;
            }
            Some(old) if node.is_of_array() => {
                return Err(Refusal::bad_value(format!(
                    "Cannot apply array updates to non-array element {}: {}",
                    String::from_utf8_lossy(name),
                    show(old)
                )));
            }
            Some(old) if creates || node.pops() => {
                let below = node
                    .children
                    .first()
                    .map(|(name, _)| String::from_utf8_lossy(name));
                let text = format!(
                    "Cannot create field '{}' in element {{{}: {}}}",
                    below.unwrap_or_default(),
                    String::from_utf8_lossy(name),
                    show(old)
                );
                return Err(Refusal::new(Code::PathNotViable, text));
            }
            Some(old) => drop(out.value(name, old)),
        }
        Ok(())
    }

    fn nested(
        &self,
        kind: Kind,
        name: &[u8],
        out: &mut Builder,
        fill: impl FnOnce(&mut Builder) -> Outcome<()>,
    ) -> Outcome<()> {
        out.open(kind, name);
        fill(out)?;
        out.close();
        Ok(())
    }

    fn array(&self, node: &Node, old: Document<'_>, out: &mut Builder) -> Outcome<()> {
        let mut len = 0;
        for (at, element) in old.iter().enumerate() {
            len = at + 1;
            match self.child_for(node, at, element.value)? {
                Some(child) => self.element(&child, at, Some(element.value), out)?,
                None => drop(out.value(at.to_string(), element.value)),
            }
        }
        for (name, child) in &node.children {
            let index = index_of(name);
            if index.is_some_and(|index| index < len) || name.starts_with(b"$[") {
                continue;
            }
            if **name == *b"$" {
                if self.position.is_none() {
                    return Err(Refusal::bad_value(
                        "The positional operator did not find the match needed from the query.",
                    ));
                }
                continue;
            }
            let refuses = index.is_none() && child.pops();
            if !(child.creates(self.moment.is_insert) || refuses) {
                continue;
            }
            let Some(index) = index.filter(|index| *index <= len + PADDING_MAX) else {
                let text = format!(
                    "Cannot create field '{}' in an array",
                    String::from_utf8_lossy(name)
                );
                return Err(Refusal::new(Code::PathNotViable, text));
            };
            for at in len..index {
                out.null(at.to_string());
            }
            self.element(child, index, None, out)?;
            len = index + 1;
        }
        Ok(())
    }

    /// An element stays in its place: what is removed becomes null.
    fn element(
        &self,
        node: &Node,
        at: usize,
        old: Option<Value<'_>>,
        out: &mut Builder,
    ) -> Outcome<()> {
        let before = out.len();
        let name = at.to_string();
        self.place(node, name.as_bytes(), old, out)?;
        if out.len() == before {
            out.null(name);
        }
        Ok(())
    }

    /// What is to be done with the element at `at`.
    fn child_for<'n>(
        &self,
        node: &'n Node,
        at: usize,
        element: Value<'_>,
    ) -> Outcome<Option<Cow<'n, Node>>> {
        let mut found: Option<Cow<'n, Node>> = None;
        for (name, child) in &node.children {
            let is_for = match &**name {
                b"$" => self.position == Some(at),
                b"$[]" => true,
                other => match other
                    .strip_prefix(b"$[")
                    .and_then(|rest| rest.strip_suffix(b"]"))
                {
                    Some(filter) => {
                        let mut filters = self.moment.filters.iter();
                        let filter = filters
                            .find(|known| known.name().as_bytes() == filter)
                            .ok_or_else(|| {
                                Refusal::bad_value(format!(
                                    "No array filter found for identifier '{}'",
                                    String::from_utf8_lossy(filter)
                                ))
                            })?;
                        filter.holds(element)?
                    }
                    None => index_of(other) == Some(at),
                },
            };
            if is_for {
                found = Some(match found {
                    Some(other) => Cow::Owned(other.merged(child, &at.to_string())?),
                    None => Cow::Borrowed(child),
                });
            }
        }
        Ok(found)
    }
}

const _: () = assert!(DEPTH_MAX < 1000, "the tree is walked by recursion");
