//! The names that an update touches, as a tree.

use crate::code::Code;
use crate::path::index_of;
use crate::refusal::{Outcome, Refusal};
use crate::validate::DEPTH_MAX;

use super::operators::Operator;

/// A place in documents: an operator, or places below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    pub(super) operator: Option<Operator>,
    /// Sorted as new fields are appended: names by their bytes, numbers by value.
    pub(super) children: Vec<(Box<[u8]>, Node)>,
}

impl Node {
    /// Puts an operator at `path`.
    ///
    /// # Errors
    /// `ConflictingUpdateOperators` where another one is at the same place, above or below it; for names that there cannot be,
    /// `EmptyFieldName`, `DollarPrefixedFieldName`; `BadValue` where it is too deep.
    pub(super) fn add(&mut self, path: &str, operator: Operator) -> Outcome<()> {
        let conflict = || {
            let text = format!("Updating the path '{path}' would create a conflict at '{path}'");
            Refusal::new(Code::ConflictingUpdateOperators, text)
        };
        if path.split('.').count() > DEPTH_MAX {
            return Err(Refusal::bad_value("the path of an update is too deep"));
        }
        let mut node = self;
        for (depth, part) in path.split('.').enumerate() {
            if part.is_empty() {
                let text = format!(
                    "The update path '{path}' contains an empty field name, which is not allowed."
                );
                return Err(Refusal::new(Code::EmptyFieldName, text));
            }
            if part.starts_with('$') && (depth == 0 || !is_positional(part)) {
                let text = format!(
                    "The dollar ($) prefixed field '{part}' in '{path}' is not allowed in the context of an update's replacement document or path."
                );
                return Err(Refusal::new(Code::DollarPrefixedFieldName, text));
            }
            if node.operator.is_some() {
                return Err(conflict());
            }
            node = node.child(part.as_bytes());
        }
        match node.operator.is_none() && node.children.is_empty() {
            true => node.operator = Some(operator),
            false => return Err(conflict()),
        }
        Ok(())
    }

    fn child(&mut self, name: &[u8]) -> &mut Self {
        let key = |name: &[u8]| (index_of(name), name.to_vec());
        let wanted = key(name);
        let at = match self
            .children
            .binary_search_by(|(known, _)| key(known).cmp(&wanted))
        {
            Ok(at) => at,
            Err(at) => {
                self.children.insert(at, (name.into(), Self::default()));
                at
            }
        };
        let child = self.children.get_mut(at);
        &mut child.expect("it was found or made").1
    }

    /// Whether something is made where there is nothing.
    pub(super) fn creates(&self, is_insert: bool) -> bool {
        match &self.operator {
            Some(operator) => operator.creates(is_insert),
            None => self
                .children
                .iter()
                .any(|(_, child)| child.creates(is_insert)),
        }
    }
}

/// Whether a name stands for elements of an array.
pub(super) fn is_positional(part: &str) -> bool {
    part == "$" || (part.starts_with("$[") && part.ends_with(']'))
}
