//! Conditions on elements of arrays that an update names: `$[name]`.

use crate::filter::Filter;
use crate::filter::{Test, field};
use crate::matching::Failed;
use crate::path::Path;
use crate::raw::{Document, Kind, Value};
use crate::refusal::{Outcome, Refusal};

/// One of `arrayFilters`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayFilter {
    name: String,
    /// Of the element itself, and of what it has below.
    whole: Vec<Test>,
    below: Vec<Filter>,
}

impl ArrayFilter {
    /// The filter that `document` describes: `{ "name.field": condition }`.
    ///
    /// # Errors
    /// `FailedToParse` for more than one name or none; those of [`Filter::new`].
    pub fn new(document: Document<'_>) -> Outcome<Self> {
        let mut made: Option<Self> = None;
        for element in document {
            let full = element.name_str();
            let (name, rest) = full
                .split_once('.')
                .map_or((full, None), |(name, rest)| (name, Some(rest)));
            if name.starts_with('$') {
                return Err(Refusal::parse(format!(
                    "{name} in an array filter is not supported by this server"
                )));
            }
            let filter = made.get_or_insert_with(|| Self {
                name: name.to_owned(),
                whole: Vec::new(),
                below: Vec::new(),
            });
            if filter.name != name {
                let text = format!(
                    "an array filter may have one name, and has '{}' and '{name}'",
                    filter.name
                );
                return Err(Refusal::parse(text));
            }
            let test = field(element.value, 0)?;
            match rest {
                Some(rest) => filter.below.push(Filter::Field(Path::new(rest), test)),
                None => filter.whole.push(test),
            }
        }
        made.ok_or_else(|| Refusal::parse("an array filter must not be empty"))
    }

    /// The name by which the update refers to it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn holds(&self, element: Value<'_>) -> Outcome<bool> {
        let document = (element.kind == Kind::Document).then_some(Document(element.bytes));
        let document = document.unwrap_or(Document::EMPTY);
        let failed = Failed::default();
        let is_all = self
            .whole
            .iter()
            .all(|test| test.holds_for(element, &failed))
            && self
                .below
                .iter()
                .all(|filter| filter.holds(document, &failed));
        failed.or(is_all)
    }
}
