//! Conditions on elements of arrays that an update names: `$[name]`.

use crate::build::Builder;
use crate::code::Code;
use crate::expression::Scope;
use crate::filter::Filter;
use crate::raw::{Document, Kind, Value};
use crate::refusal::{Outcome, Refusal};
use crate::validate::DEPTH_MAX;

/// One of `arrayFilters`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayFilter {
    name: String,
    /// Of a document that has the element under that name.
    filter: Filter,
}

impl ArrayFilter {
    /// The filter that `document` describes: `{ "name.field": condition }`, also within `$and`, `$or` and `$nor`.
    ///
    /// # Errors
    /// `FailedToParse` for more than one name or none, `BadValue` for a name that does not begin with a small letter;
    /// `QueryFeatureNotAllowed` for `$expr`; those of [`Filter::new`].
    pub fn new(document: Document<'_>) -> Outcome<Self> {
        let mut name = None;
        find_name(document, &mut name, 0)?;
        let name = name.ok_or_else(|| {
            Refusal::parse(
                "Cannot use an expression without a top-level field name in arrayFilters",
            )
        })?;
        let is_plain = |char: char| char.is_ascii_alphanumeric();
        if !name.starts_with(|char: char| char.is_ascii_lowercase()) || !name.chars().all(is_plain)
        {
            let text = format!(
                "The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '{name}'"
            );
            return Err(Refusal::bad_value(text));
        }
        let filter = Filter::without_near(document, &Scope::default())?;
        Ok(Self { name, filter })
    }

    /// The name by which the update refers to it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn holds(&self, element: Value<'_>) -> Outcome<bool> {
        let mut around = Builder::new();
        around.value(&self.name, element);
        self.filter.matches(Document(&around.finish()))
    }
}

/// Looks for the one name of a filter.
fn find_name(document: Document<'_>, found: &mut Option<String>, depth: usize) -> Outcome<()> {
    if depth > DEPTH_MAX {
        return Err(Refusal::bad_value("the array filter is nested too deep"));
    }
    for element in document {
        let full = element.name_str();
        if matches!(full, "$and" | "$or" | "$nor") {
            for item in element.value.as_array().into_iter().flatten() {
                if item.value.kind == Kind::Document {
                    find_name(Document(item.value.bytes), found, depth + 1)?;
                }
            }
            continue;
        }
        if full == "$expr" {
            let text = "$expr is not allowed in this context";
            return Err(Refusal::new(Code::QueryFeatureNotAllowed, text));
        }
        if full.starts_with('$') {
            let text = format!("{full} is not allowed in an array filter");
            return Err(Refusal::bad_value(text));
        }
        let name = full.split_once('.').map_or(full, |(name, _)| name);
        let known = found.get_or_insert_with(|| name.to_owned());
        if known != name {
            let text =
                format!("Expected a single top-level field name, found '{known}' and '{name}'");
            return Err(Refusal::parse(text));
        }
    }
    Ok(())
}
