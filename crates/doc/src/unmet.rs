//! Why a document does not pass a filter: what clients of a validator are told, in MongoDB's words.
//!
//! Each condition and each keyword of a schema is asked alone, made anew from what was given. So this costs many looks at a document: it
//! is for the one that failed.

use crate::build::Builder;
use crate::filter::Filter;
use crate::path::{Path, value_at};
use crate::raw::{Document, Element, Kind, Value};
use crate::refusal::Outcome;

/// Longest value that is told.
const CONSIDERED_BYTES_MAX: usize = 1 << 10;

/// What of the filter that `given` describes the document does not meet: a document with `operatorName`, and what belongs to it.
///
/// # Errors
/// Of filters.
pub fn unmet(given: Document<'_>, document: Document<'_>) -> Outcome<Vec<u8>> {
    let mut clauses = Vec::new();
    for (at, element) in given.iter().enumerate() {
        let alone = one(element.name, element.value);
        if !Filter::new(Document(&alone))?.matches(document)? {
            clauses.push((at, clause(element, document)?));
        }
    }
    match (given.iter().count(), clauses.as_slice()) {
        (1, [(_, only)]) => Ok(only.clone()),
        _ => Ok(clauses_of("$and", &clauses)),
    }
}

/// A document of one field.
fn one(name: &[u8], value: Value<'_>) -> Vec<u8> {
    let mut out = Builder::new();
    out.value(name, value);
    out.finish()
}

fn clauses_of(operator: &str, clauses: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut out = Builder::new();
    out.str("operatorName", operator)
        .open(Kind::Array, "clausesNotSatisfied");
    for (place, (at, clause)) in clauses.iter().enumerate() {
        out.open(Kind::Document, place.to_string())
            .count("index", *at as u64)
            .document("details", Document(clause))
            .close();
    }
    out.close();
    out.finish()
}

/// Of a field of a filter, which is not met.
fn clause(element: Element<'_>, document: Document<'_>) -> Outcome<Vec<u8>> {
    let (name, value) = (element.name_str(), element.value);
    match name {
        "$and" | "$or" => {
            let mut clauses = Vec::new();
            for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                let given = Document(item.value.bytes);
                if !Filter::new(given)?.matches(document)? {
                    clauses.push((at, unmet(given, document)?));
                }
            }
            Ok(clauses_of(name, &clauses))
        }
        "$jsonSchema" => {
            let given = Document(value.bytes);
            let mut out = Builder::new();
            out.str("operatorName", name);
            notes(&mut out, given);
            out.open(Kind::Array, "schemaRulesNotSatisfied");
            rules(&mut out, given, (&mut Vec::new(), document))?;
            out.close();
            Ok(out.finish())
        }
        _ if name.starts_with('$') => {
            let mut out = Builder::new();
            out.str("operatorName", name)
                .document("specifiedAs", Document(&one(element.name, value)));
            if name == "$expr" {
                out.str("reason", "expression did not match");
            }
            Ok(out.finish())
        }
        _ => condition(element, document),
    }
}

/// Of a condition on a field, which is not met: its first operator that is not.
fn condition(element: Element<'_>, document: Document<'_>) -> Outcome<Vec<u8>> {
    let (name, value) = (element.name_str(), element.value);
    let operators = value.as_document().filter(|_| value.kind == Kind::Document);
    let operators =
        operators.filter(|it| it.iter().next().is_some_and(|it| it.name.starts_with(b"$")));
    let mut operator = "$eq";
    for of in operators.into_iter().flatten() {
        let test = one(of.name, of.value);
        let alone = one(element.name, Document(&test).as_value());
        let is_met = match Filter::new(Document(&alone)) {
            Ok(filter) => filter.matches(document)?,
            // `$options` means nothing without `$regex`.
            Err(_) => true,
        };
        if !is_met {
            operator = of.name_str();
            break;
        }
    }
    let found = value_at(document, &Path::new(name));
    let reason = match (operator, found) {
        ("$exists", None) => "path does not exist",
        ("$exists", Some(_)) => "path does exist",
        (_, None) => "field was missing",
        ("$type", _) => "type did not match",
        ("$in", _) => "no matching value found in array",
        ("$nin", _) => "matching value found in array",
        ("$regex", _) => "regular expression did not match",
        ("$size", _) => "array length was not equal to given size",
        ("$mod", _) => "$mod did not evaluate to expected remainder",
        ("$elemMatch", _) => "array did not satisfy the child predicate",
        _ => "comparison failed",
    };
    let mut out = Builder::new();
    out.str("operatorName", operator)
        .document("specifiedAs", Document(&one(element.name, value)))
        .str("reason", reason);
    considered(&mut out, found, operator == "$type");
    Ok(out.finish())
}

/// Appends the value that was looked at.
fn considered(out: &mut Builder, value: Option<Value<'_>>, has_type: bool) {
    if let Some(value) = value {
        if value.bytes.len() <= CONSIDERED_BYTES_MAX {
            out.value("consideredValue", value);
        }
        if has_type {
            out.str("consideredType", value.kind.name());
        }
    }
}

/// Appends what a schema says of itself.
fn notes(out: &mut Builder, schema: Document<'_>) {
    for name in ["title", "description"] {
        if let Some(text) = schema.get(name) {
            out.value(name, text);
        }
    }
}

/// A schema that has one keyword, below the names of the properties that lead to it, as a filter.
fn within(names: &[String], keywords: &[(&str, Value<'_>)]) -> Vec<u8> {
    let mut out = Builder::new();
    out.open(Kind::Document, "$jsonSchema");
    for name in names {
        out.open(Kind::Document, "properties")
            .open(Kind::Document, name);
    }
    for (keyword, value) in keywords {
        out.value(keyword, *value);
    }
    for _ in names {
        out.close().close();
    }
    out.close();
    out.finish()
}

/// Keywords that are looked at together with another one.
const BESIDE: [(&str, &str); 3] = [
    ("exclusiveMinimum", "minimum"),
    ("exclusiveMaximum", "maximum"),
    ("additionalItems", "items"),
];

/// Appends the keywords of a schema that are not met, below these names. Recurses as deep as the schema is nested.
fn rules(
    out: &mut Builder,
    schema: Document<'_>,
    (names, document): (&mut Vec<String>, Document<'_>),
) -> Outcome<()> {
    let mut place = 0usize;
    for element in schema {
        let keyword = element.name_str();
        let partner = BESIDE.iter().find(|(_, of)| *of == keyword);
        let partner = partner.and_then(|(beside, _)| Some((*beside, schema.get(beside)?)));
        let is_beside = BESIDE
            .iter()
            .any(|(beside, of)| *beside == keyword && schema.get(of).is_some());
        if is_beside {
            continue;
        }
        // What is named is not additional.
        let known = (keyword == "additionalProperties").then(|| {
            ["properties", "patternProperties"].map(|name| Some((name, emptied(schema.get(name)?))))
        });
        let known: Vec<_> = known.into_iter().flatten().flatten().collect();
        let mut asked = vec![(keyword, element.value)];
        asked.extend(partner);
        asked.extend(
            known
                .iter()
                .map(|(name, it)| (*name, Document(it).as_value())),
        );
        if Filter::new(Document(&within(names, &asked)))?.matches(document)? {
            continue;
        }
        out.open(Kind::Document, place.to_string())
            .str("operatorName", keyword);
        place += 1;
        match keyword {
            "properties" => properties(out, Document(element.value.bytes), (names, document))?,
            _ => rule(out, element, found(names, document)),
        }
        out.close();
    }
    Ok(())
}

/// The names of properties, each with a schema that all meet.
fn emptied(properties: Value<'_>) -> Vec<u8> {
    let mut out = Builder::new();
    for property in properties.as_document().into_iter().flatten() {
        out.open(Kind::Document, property.name).close();
    }
    out.finish()
}

/// What lies below these names.
fn found<'d>(names: &[String], document: Document<'d>) -> Option<Value<'d>> {
    names.iter().try_fold(document.as_value(), |at, name| {
        at.as_document()
            .filter(|_| at.kind == Kind::Document)?
            .get(name)
    })
}

fn properties(
    out: &mut Builder,
    of: Document<'_>,
    (names, document): (&mut Vec<String>, Document<'_>),
) -> Outcome<()> {
    out.open(Kind::Array, "propertiesNotSatisfied");
    let mut place = 0usize;
    for property in of {
        let schema = Document(property.value.bytes);
        let alone = one(property.name, property.value);
        let asked = [("properties", Document(&alone).as_value())];
        if Filter::new(Document(&within(names, &asked)))?.matches(document)? {
            continue;
        }
        out.open(Kind::Document, place.to_string())
            .str("propertyName", property.name_str());
        place += 1;
        notes(out, schema);
        out.open(Kind::Array, "details");
        names.push(property.name_str().to_owned());
        rules(out, schema, (names, document))?;
        names.pop();
        out.close().close();
    }
    out.close();
    Ok(())
}

/// Appends what belongs to one keyword that `value` does not meet.
fn rule(out: &mut Builder, element: Element<'_>, value: Option<Value<'_>>) {
    let keyword = element.name_str();
    let given = one(element.name, element.value);
    out.document("specifiedAs", Document(&given));
    let reason = match keyword {
        "bsonType" | "type" => "type did not match",
        "minimum" | "maximum" => "comparison failed",
        "minLength" | "maxLength" => "specified string length was not satisfied",
        "minItems" | "maxItems" => "array did not match specified length",
        "minProperties" | "maxProperties" => "specified number of properties was not satisfied",
        "pattern" => "regular expression did not match",
        "enum" => "value was not found in enum",
        "multipleOf" => "considered value is not a multiple of the specified value",
        "uniqueItems" => "found a duplicate item",
        "required" => {
            let has = value.and_then(Value::as_document);
            out.open(Kind::Array, "missingProperties");
            let names = element.value.as_array().into_iter().flatten();
            let names = names.filter_map(|it| it.value.as_str());
            let missing = names.filter(|name| has.is_none_or(|has| has.get(name).is_none()));
            for (at, name) in missing.enumerate() {
                out.str(at.to_string(), name);
            }
            out.close();
            return;
        }
        _ => return,
    };
    out.str("reason", reason);
    considered(out, value, matches!(keyword, "bsonType" | "type"));
}
