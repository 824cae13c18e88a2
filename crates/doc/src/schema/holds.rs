//! Schemas, asked of values.

use std::cmp::Ordering;

use crate::compare::{compare, equal};
use crate::decimal_math::is_multiple;
use crate::number::Number;
use crate::raw::{Document, Kind, Value};
use crate::refusal::Outcome;

use super::tree::{Items, Others, Properties, Rule, Schema};

impl Schema {
    /// Whether `document` is as the schema says. Recurses as deep as the schema is nested.
    ///
    /// # Errors
    /// Of regular expressions that take too long.
    pub fn holds(&self, document: Document<'_>) -> Outcome<bool> {
        self.holds_for(document.as_value())
    }

    fn holds_for(&self, value: Value<'_>) -> Outcome<bool> {
        for rule in &self.rules {
            if !rule.holds(value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn how_many(schemas: &[Schema], value: Value<'_>) -> Outcome<usize> {
    let mut count = 0;
    for schema in schemas {
        count += usize::from(schema.holds_for(value)?);
    }
    Ok(count)
}

impl Rule {
    fn holds(&self, value: Value<'_>) -> Outcome<bool> {
        match self {
            Self::Kinds(kinds) => Ok(kinds.contains(&value.kind)),
            Self::OneOfValues(values) => Ok(values.iter().any(|it| equal(it.get(), value))),
            Self::All(schemas) => Ok(how_many(schemas, value)? == schemas.len()),
            Self::Any(schemas) => Ok(how_many(schemas, value)? > 0),
            Self::One(schemas) => Ok(how_many(schemas, value)? == 1),
            Self::Not(schema) => Ok(!schema.holds_for(value)?),
            _ if value.kind.is_number() => Ok(self.holds_for_number(value)),
            _ => match (value.kind, value.as_document()) {
                (Kind::String, _) => self.holds_for_text(value.as_str().unwrap_or_default()),
                (Kind::Array, Some(array)) => self.holds_for_array(array),
                (Kind::Document, Some(document)) => self.holds_for_document(document),
                _ => Ok(true),
            },
        }
    }

    fn holds_for_number(&self, value: Value<'_>) -> bool {
        let is_beyond = |bound: Value<'_>, side: Ordering, is_exclusive: bool| {
            let is_nan = |it: Value<'_>| Number::of(it).is_some_and(Number::is_nan);
            match compare(value, bound) {
                Ordering::Equal => !is_exclusive,
                order => order == side && !is_nan(value) && !is_nan(bound),
            }
        };
        match self {
            Self::Minimum(bound, out) => is_beyond(bound.get(), Ordering::Greater, *out),
            Self::Maximum(bound, out) => is_beyond(bound.get(), Ordering::Less, *out),
            Self::MultipleOf(of) => is_multiple(value, of.get()),
            _ => true,
        }
    }

    fn holds_for_text(&self, text: &str) -> Outcome<bool> {
        let length = || text.chars().count() as u64;
        match self {
            Self::MinLength(least) => Ok(length() >= *least),
            Self::MaxLength(most) => Ok(length() <= *most),
            Self::Pattern(pattern) => pattern.is_match(text),
            _ => Ok(true),
        }
    }

    fn holds_for_array(&self, array: Document<'_>) -> Outcome<bool> {
        let length = || array.iter().count() as u64;
        match self {
            Self::MinItems(least) => Ok(length() >= *least),
            Self::MaxItems(most) => Ok(length() <= *most),
            Self::UniqueItems => {
                let mut values: Vec<_> = array.iter().map(|it| it.value).collect();
                values.sort_by(|a, b| compare(*a, *b));
                let mut pairs = values.windows(2);
                Ok(!pairs.any(|it| matches!(it, [a, b] if equal(*a, *b))))
            }
            Self::Items(items) => items.hold(array),
            _ => Ok(true),
        }
    }

    fn holds_for_document(&self, document: Document<'_>) -> Outcome<bool> {
        let count = || document.iter().count() as u64;
        let has = |name: &String| document.get(name).is_some();
        match self {
            Self::MinProperties(least) => Ok(count() >= *least),
            Self::MaxProperties(most) => Ok(count() <= *most),
            Self::Required(names) => Ok(names.iter().all(has)),
            Self::DependsOnFields(name, others) => Ok(!has(name) || others.iter().all(has)),
            Self::DependsOnSchema(name, schema) => Ok(!has(name) || schema.holds(document)?),
            Self::Properties(properties) => properties.hold(document),
            _ => Ok(true),
        }
    }
}

impl Others {
    fn hold(&self, value: Value<'_>) -> Outcome<bool> {
        match self {
            Self::Allowed => Ok(true),
            Self::Refused => Ok(false),
            Self::Are(schema) => schema.holds_for(value),
        }
    }
}

impl Items {
    fn hold(&self, array: Document<'_>) -> Outcome<bool> {
        for (at, element) in array.iter().enumerate() {
            let holds = match self.first.get(at) {
                Some(schema) => schema.holds_for(element.value)?,
                None => self.others.hold(element.value)?,
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Properties {
    fn hold(&self, document: Document<'_>) -> Outcome<bool> {
        for element in document {
            let name = element.name_str();
            let mut is_known = false;
            if let Some((_, schema)) = self.named.iter().find(|(known, _)| known == name) {
                is_known = true;
                if !schema.holds_for(element.value)? {
                    return Ok(false);
                }
            }
            for (pattern, schema) in &self.patterns {
                if pattern.is_match(name)? {
                    is_known = true;
                    if !schema.holds_for(element.value)? {
                        return Ok(false);
                    }
                }
            }
            if !is_known && !self.others.hold(element.value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
