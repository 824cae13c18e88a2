//! Schemas, made from documents.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::compare::compare;
use crate::number::Number;
use crate::raw::{Document, Kind, Value};
use crate::refusal::{Outcome, Refusal};
use crate::regex::Pattern;
use crate::show::show;
use crate::validate::DEPTH_MAX;

use super::tree::{Items, Others, Properties, Rule, Schema};

/// Keywords of draft 4 that MongoDB does not take.
const UNTAKEN: [&str; 6] = ["$ref", "$schema", "default", "definitions", "format", "id"];

impl Schema {
    /// The schema that `value` is.
    ///
    /// # Errors
    /// `TypeMismatch` for keywords of other kinds; `FailedToParse` for unknown keywords and numbers out of their range; `BadValue` for
    /// unknown types.
    pub fn new(value: Value<'_>) -> Outcome<Self> {
        schema("$jsonSchema", value, 0)
    }
}

fn mismatch(keyword: &str, wanted: &str) -> Refusal {
    Refusal::type_mismatch(format!("$jsonSchema keyword '{keyword}' must be {wanted}"))
}

fn wrong(keyword: &str, what: &str) -> Refusal {
    Refusal::parse(format!("$jsonSchema keyword '{keyword}' {what}"))
}

fn object<'a>(keyword: &str, value: Value<'a>) -> Outcome<Document<'a>> {
    match value.kind {
        Kind::Document => Ok(Document(value.bytes)),
        _ => Err(mismatch(keyword, "an object")),
    }
}

fn flag(keyword: &str, value: Value<'_>) -> Outcome<bool> {
    value
        .as_bool()
        .ok_or_else(|| mismatch(keyword, "a boolean"))
}

fn text<'a>(keyword: &str, value: Value<'a>) -> Outcome<&'a str> {
    let text = value.as_str().filter(|_| value.kind == Kind::String);
    text.ok_or_else(|| mismatch(keyword, "a string"))
}

fn number(keyword: &str, value: Value<'_>) -> Outcome<()> {
    match value.kind.is_number() {
        true => Ok(()),
        false => Err(mismatch(keyword, "a number")),
    }
}

fn count(keyword: &str, value: Value<'_>) -> Outcome<u64> {
    let count = value.as_whole().and_then(|count| u64::try_from(count).ok());
    count.ok_or_else(|| wrong(keyword, "must be a whole number that is not negative"))
}

/// The elements of an array that is not empty.
fn elements<'a>(keyword: &str, value: Value<'a>) -> Outcome<Vec<Value<'a>>> {
    let array = value
        .as_array()
        .ok_or_else(|| mismatch(keyword, "an array"))?;
    let elements: Vec<_> = array.iter().map(|it| it.value).collect();
    match elements.is_empty() {
        true => Err(wrong(keyword, "cannot be an empty array")),
        false => Ok(elements),
    }
}

/// Texts, each once.
fn names(keyword: &str, value: Value<'_>) -> Outcome<Vec<String>> {
    let elements = elements(keyword, value)?;
    let mut known = BTreeSet::new();
    for element in &elements {
        if !known.insert(text(keyword, *element)?) {
            return Err(wrong(keyword, "has a value twice"));
        }
    }
    let names = elements.iter().filter_map(|it| it.as_str());
    Ok(names.map(str::to_owned).collect())
}

fn schemas(keyword: &str, value: Value<'_>, depth: usize) -> Outcome<Vec<Schema>> {
    let each = elements(keyword, value)?.into_iter();
    each.map(|it| schema(keyword, it, depth + 1)).collect()
}

fn others(keyword: &str, value: Option<Value<'_>>, depth: usize) -> Outcome<Others> {
    let Some(value) = value else {
        return Ok(Others::Allowed);
    };
    match (value.kind, value.as_bool()) {
        (Kind::Document, _) => schema(keyword, value, depth + 1).map(Others::Are),
        (_, Some(true)) => Ok(Others::Allowed),
        (_, Some(false)) => Ok(Others::Refused),
        _ => Err(mismatch(keyword, "an object or a boolean")),
    }
}

fn schema(keyword: &str, value: Value<'_>, depth: usize) -> Outcome<Schema> {
    if depth > DEPTH_MAX {
        return Err(wrong(keyword, "is nested too deep"));
    }
    let of = object(keyword, value)?;
    let mut rules = Vec::new();
    for element in of {
        rules.extend(rule(element.name_str(), element.value, of, depth)?);
    }
    if ["properties", "patternProperties", "additionalProperties"]
        .iter()
        .any(|name| of.get(name).is_some())
    {
        rules.push(Rule::Properties(properties(of, depth)?));
    }
    if ["items", "additionalItems"]
        .iter()
        .any(|name| of.get(name).is_some())
    {
        rules.push(Rule::Items(items(of, depth)?));
    }
    if of.get("type").is_some() && of.get("bsonType").is_some() {
        return Err(wrong("type", "cannot stand beside 'bsonType'"));
    }
    Ok(Schema { rules })
}

/// The rules of one keyword; none of those that are looked at together.
fn rule(keyword: &str, value: Value<'_>, of: Document<'_>, depth: usize) -> Outcome<Vec<Rule>> {
    let exclusive = |name: &str| match of.get(name) {
        Some(value) => flag(name, value),
        None => Ok(false),
    };
    Ok(vec![match keyword {
        "bsonType" | "type" => Rule::Kinds(kinds(keyword, value)?),
        "enum" => {
            let values = elements(keyword, value)?;
            let mut sorted = values.clone();
            sorted.sort_by(|a, b| compare(*a, *b));
            let mut pairs = sorted.windows(2);
            if pairs.any(|it| matches!(it, [a, b] if compare(*a, *b).is_eq())) {
                return Err(wrong(keyword, "has a value twice"));
            }
            Rule::OneOfValues(values.into_iter().map(Value::to_owned).collect())
        }
        "allOf" => Rule::All(schemas(keyword, value, depth)?),
        "anyOf" => Rule::Any(schemas(keyword, value, depth)?),
        "oneOf" => Rule::One(schemas(keyword, value, depth)?),
        "not" => Rule::Not(schema(keyword, value, depth + 1)?),
        "minimum" => {
            number(keyword, value)?;
            Rule::Minimum(value.to_owned(), exclusive("exclusiveMinimum")?)
        }
        "maximum" => {
            number(keyword, value)?;
            Rule::Maximum(value.to_owned(), exclusive("exclusiveMaximum")?)
        }
        "exclusiveMinimum" | "exclusiveMaximum" => {
            flag(keyword, value)?;
            let bound = keyword.trim_start_matches("exclusive").to_lowercase();
            return match of.get(&bound) {
                Some(_) => Ok(Vec::new()),
                None => Err(wrong(keyword, &format!("needs a '{bound}'"))),
            };
        }
        "multipleOf" => {
            number(keyword, value)?;
            let of = Number::of(value).filter(|of| !of.is_nan());
            let is_positive = of.is_some_and(|of| of.compare(Number::Int(0)) == Ordering::Greater);
            if !is_positive {
                return Err(wrong(keyword, "must have a value above 0"));
            }
            Rule::MultipleOf(value.to_owned())
        }
        "minLength" => Rule::MinLength(count(keyword, value)?),
        "maxLength" => Rule::MaxLength(count(keyword, value)?),
        "pattern" => Rule::Pattern(Pattern::new(text(keyword, value)?, "")?),
        "minItems" => Rule::MinItems(count(keyword, value)?),
        "maxItems" => Rule::MaxItems(count(keyword, value)?),
        "uniqueItems" => match flag(keyword, value)? {
            true => Rule::UniqueItems,
            false => return Ok(Vec::new()),
        },
        "minProperties" => Rule::MinProperties(count(keyword, value)?),
        "maxProperties" => Rule::MaxProperties(count(keyword, value)?),
        "required" => Rule::Required(names(keyword, value)?),
        "dependencies" => return dependencies(keyword, value, depth),
        "title" | "description" => {
            text(keyword, value)?;
            return Ok(Vec::new());
        }
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "items"
        | "additionalItems" => return Ok(Vec::new()),
        _ if UNTAKEN.contains(&keyword) => {
            return Err(wrong(keyword, "is not currently supported"));
        }
        _ => {
            let text = format!("Unknown $jsonSchema keyword: {keyword}");
            return Err(Refusal::parse(text));
        }
    }])
}

fn dependencies(keyword: &str, value: Value<'_>, depth: usize) -> Outcome<Vec<Rule>> {
    let each = object(keyword, value)?.into_iter().map(|element| {
        let name = element.name_str().to_owned();
        match element.value.kind {
            Kind::Array => Ok(Rule::DependsOnFields(name, names(keyword, element.value)?)),
            _ => {
                let schema = schema(keyword, element.value, depth + 1)?;
                Ok(Rule::DependsOnSchema(name, schema))
            }
        }
    });
    each.collect()
}

fn properties(of: Document<'_>, depth: usize) -> Outcome<Properties> {
    let fields = |keyword: &'static str| match of.get(keyword) {
        Some(value) => object(keyword, value),
        None => Ok(Document::EMPTY),
    };
    let named = fields("properties")?.into_iter().map(|element| {
        let name = element.name_str().to_owned();
        Ok((name, schema("properties", element.value, depth + 1)?))
    });
    let patterns = fields("patternProperties")?.into_iter().map(|element| {
        let pattern = Pattern::new(element.name_str(), "").map_err(|refusal| {
            Refusal::bad_value(format!("in 'patternProperties': {}", refusal.message))
        })?;
        Ok((
            pattern,
            schema("patternProperties", element.value, depth + 1)?,
        ))
    });
    Ok(Properties {
        named: named.collect::<Outcome<_>>()?,
        patterns: patterns.collect::<Outcome<_>>()?,
        others: others(
            "additionalProperties",
            of.get("additionalProperties"),
            depth,
        )?,
    })
}

fn items(of: Document<'_>, depth: usize) -> Outcome<Items> {
    let beyond = others("additionalItems", of.get("additionalItems"), depth)?;
    let (first, others) = match of.get("items") {
        // Without a list of them there are none behind it.
        None => (Vec::new(), Others::Allowed),
        Some(value) if value.kind == Kind::Document => {
            (Vec::new(), Others::Are(schema("items", value, depth + 1)?))
        }
        Some(value) => {
            let array = value.as_array();
            let array = array.ok_or_else(|| mismatch("items", "an array or an object"))?;
            let each = array.iter().map(|it| schema("items", it.value, depth + 1));
            (each.collect::<Outcome<_>>()?, beyond)
        }
    };
    Ok(Items { first, others })
}

fn kinds(keyword: &str, value: Value<'_>) -> Outcome<Vec<Kind>> {
    let names = match value.kind {
        Kind::Array => names(keyword, value)?,
        _ => {
            let name = value.as_str().filter(|_| value.kind == Kind::String);
            vec![
                name.ok_or_else(|| mismatch(keyword, "a string or an array"))?
                    .to_owned(),
            ]
        }
    };
    let mut kinds = Vec::new();
    for name in names {
        if name == "integer" {
            return Err(wrong(keyword, "does not take the type 'integer'"));
        }
        if name == "number" {
            kinds.extend([Kind::Double, Kind::Int32, Kind::Int64, Kind::Decimal]);
            continue;
        }
        let kind = match keyword {
            "type" => match name.as_str() {
                "array" => Some(Kind::Array),
                "boolean" => Some(Kind::Bool),
                "null" => Some(Kind::Null),
                "object" => Some(Kind::Document),
                "string" => Some(Kind::String),
                _ => None,
            },
            _ => {
                let mut known = Kind::NAMES.iter();
                known.find(|(_, known)| *known == name).map(|it| it.0)
            }
        };
        let unknown = || Refusal::bad_value(format!("Unknown type name alias: {}", show(value)));
        kinds.push(kind.ok_or_else(unknown)?);
    }
    Ok(kinds)
}
