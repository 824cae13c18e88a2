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
        if path.split('.').filter(|part| *part == "$").count() > 1 {
            let text = format!("Too many positional (i.e. '$') elements found in path '{path}'");
            return Err(Refusal::bad_value(text));
        }
        let mut node = self;
        for (depth, part) in path.split('.').enumerate() {
            if part.is_empty() {
                let text = format!(
                    "The update path '{path}' contains an empty field name, which is not allowed."
                );
                return Err(Refusal::new(Code::EmptyFieldName, text));
            }
            if part == "$" && depth == 0 {
                let text =
                    "Cannot have positional (i.e. '$') element in the first position in path";
                return Err(Refusal::bad_value(format!("{text} '{path}'")));
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

    /// Where the child of that name is, or would be.
    pub(super) fn place(&self, name: &[u8]) -> Result<usize, usize> {
        let index = index_of(name);
        self.children.binary_search_by(|(known, _)| {
            let by_index = index_of(known).cmp(&index);
            by_index.then_with(|| (**known).cmp(name))
        })
    }

    fn child(&mut self, name: &[u8]) -> &mut Self {
        let at = match self.place(name) {
            Ok(at) => at,
            Err(at) => {
                self.children.insert(at, (name.into(), Self::default()));
                at
            }
        };
        let child = self.children.get_mut(at);
        &mut child.expect("it was found or made").1
    }

    /// It with what `other` does at the same place. Recurses as deep as the update names fields.
    ///
    /// # Errors
    /// `ConflictingUpdateOperators` where both do something with the same value.
    pub(super) fn merged(&self, other: &Self, at: &str) -> Outcome<Self> {
        if self.operator.is_some() || other.operator.is_some() {
            let text = format!("Update created a conflict at '{at}'");
            return Err(Refusal::new(Code::ConflictingUpdateOperators, text));
        }
        let mut made = self.clone();
        for (name, child) in &other.children {
            let path = format!("{at}.{}", String::from_utf8_lossy(name));
            let own = made.child(name);
            let is_new = own.operator.is_none() && own.children.is_empty();
            *own = match is_new {
                true => child.clone(),
                false => own.merged(child, &path)?,
            };
        }
        Ok(made)
    }

    /// The names by which elements of arrays are named as `$[name]`. Recurses as deep as the update names fields.
    pub(super) fn element_names(&self, found: &mut Vec<String>) {
        for (name, child) in &self.children {
            let name = String::from_utf8_lossy(name);
            let inner = name
                .strip_prefix("$[")
                .and_then(|rest| rest.strip_suffix(']'));
            found.extend(inner.filter(|inner| !inner.is_empty()).map(str::to_owned));
            child.element_names(found);
        }
    }

    /// Whether what is below are elements of an array.
    pub(super) fn is_of_array(&self) -> bool {
        let mut names = self.children.iter().map(|(name, _)| name);
        names.any(|name| is_positional(&String::from_utf8_lossy(name)))
    }

    /// Whether an array below has to be there.
    pub(super) fn pops(&self) -> bool {
        matches!(self.operator, Some(Operator::Pop { .. }))
            || self.children.iter().any(|(_, child)| child.pops())
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
