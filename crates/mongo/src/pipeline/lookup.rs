//! `$lookup` and `$unionWith`: documents of other collections.

use drumlin_doc::{
    Builder, Code, Document, Expression, Filter, Kind, OwnedValue, Path, Predicate, Refusal, Scope,
    Test, Value, candidates, compare,
};
use drumlin_doc_store::{Name, Outcome};

use crate::sorting::too_much;
use crate::wire::limits::BATCH_BYTES_MAX;

use super::running::Running;

/// A collection that clients may read.
fn of_clients(database: &str, name: &str) -> Result<Name, Refusal> {
    match name.starts_with("system.") {
        true => {
            let text = format!("{database}.{name} is not for commands of clients");
            Err(Refusal::new(Code::Unauthorized, text))
        }
        false => Ok(Name::new(database, name)),
    }
}

/// The stages of a pipeline within, as they were given: they are made anew for each document, whose values they name.
fn given(of: Value<'_>) -> Result<Vec<Vec<u8>>, Refusal> {
    let wrong = || Refusal::type_mismatch("a pipeline has to be an array of documents");
    let items = of.as_array().ok_or_else(wrong)?;
    let one = |item: drumlin_doc::Element<'_>| {
        let is_document = item.value.kind == Kind::Document;
        is_document
            .then(|| item.value.bytes.to_vec())
            .ok_or_else(wrong)
    };
    items.iter().map(one).collect()
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    pub(super) from: Name,
    /// Field here, and field there.
    fields: Option<(Path, Path)>,
    /// The names of `let`.
    pub(super) bound: Vec<(String, Expression)>,
    pub(super) pipeline: Option<Vec<Vec<u8>>>,
    name: String,
}

impl Lookup {
    pub(super) fn parse(of: Document<'_>, running: &Running<'_>) -> Result<Self, Refusal> {
        let parse = |text: String| Refusal::parse(text);
        let mut texts: [Option<&str>; 4] = [None; 4];
        const TEXTS: [&str; 4] = ["from", "localField", "foreignField", "as"];
        for element in of {
            let name = element.name_str();
            let at = TEXTS.iter().position(|known| *known == name);
            match at.and_then(|at| texts.get_mut(at)) {
                Some(Some(_)) => {
                    return Err(parse(format!("$lookup has '{name}' more than once")));
                }
                Some(place) => {
                    let text = element
                        .value
                        .as_str()
                        .filter(|_| element.value.kind == Kind::String);
                    let kind = element.value.kind.name();
                    let wrong = || {
                        parse(format!(
                            "$lookup argument '{name}' must be a string, is type {kind}"
                        ))
                    };
                    *place = Some(text.ok_or_else(wrong)?);
                }
                None if matches!(name, "let" | "pipeline") => {}
                None => return Err(parse(format!("unknown argument to $lookup: {name}"))),
            }
        }
        let [from, local, foreign, name] = texts;
        let missing = |what: &str| parse(format!("must specify '{what}' field for a $lookup"));
        let name = name.ok_or_else(|| missing("as"))?;
        let from = from.ok_or_else(|| missing("from"))?;
        if name.is_empty() || name.contains(['.', '\0']) || name.starts_with('$') {
            return Err(Refusal::not_supported(format!(
                "the name {name:?} as 'as' of $lookup: it has to be one without '.', '$' and zeros"
            )));
        }
        let fields = match (local, foreign) {
            (Some(local), Some(foreign)) => Some((Path::new(local), Path::new(foreign))),
            (None, None) if of.get("pipeline").is_some() => None,
            _ => return Err(parse("$lookup requires both or neither of 'localField' and 'foreignField' to be specified".to_owned())),
        };
        let mut bound = Vec::new();
        if let Some(variables) = of.get("let") {
            let variables = variables
                .as_document()
                .filter(|_| variables.kind == Kind::Document);
            let wrong = || parse("$lookup argument 'let' must be an object".to_owned());
            for element in variables.ok_or_else(wrong)? {
                let value = Expression::parse(element.value, &running.scope)?;
                bound.push((element.name_str().to_owned(), value));
            }
        }
        let pipeline = of.get("pipeline").map(given);
        Ok(Self {
            from: of_clients(running.database, from)?,
            fields,
            bound,
            pipeline: pipeline.transpose()?,
            name: name.to_owned(),
        })
    }

    /// What is looked for, for a document.
    pub(super) fn filter(&self, document: Document<'_>) -> Filter {
        match &self.fields {
            Some((local, foreign)) => Filter::Field(foreign.clone(), equal_to(document, local)),
            None => Filter::And(Vec::new()),
        }
    }

    /// The names that the pipeline within knows, with their values for a document.
    pub(super) fn scope(&self, document: Document<'_>, around: &Scope) -> Result<Scope, Refusal> {
        let mut scope: Scope = around.clone();
        for (name, value) in &self.bound {
            // A variable without a value is null here, and is none in MongoDB.
            let value = value.eval(document)?.unwrap_or_else(OwnedValue::null);
            scope.values.retain(|(known, _)| known != name);
            scope.values.push((name.clone(), value));
        }
        Ok(scope)
    }

    /// The document with what was found for it.
    pub(super) fn joined(&self, document: Document<'_>, found: &[Vec<u8>]) -> Outcome<Vec<u8>> {
        let mut out = Builder::with_room(document.0.len() + 64);
        let mut is_done = false;
        let put = |out: &mut Builder| {
            out.open(Kind::Array, &self.name);
            for (at, document) in found.iter().enumerate() {
                out.document(at.to_string(), Document(document));
            }
            out.close();
        };
        for element in document {
            match element.name == self.name.as_bytes() {
                true => {
                    is_done = true;
                    put(&mut out);
                }
                false => drop(out.value(element.name, element.value)),
            }
        }
        if !is_done {
            put(&mut out);
        }
        match out.len() > BATCH_BYTES_MAX {
            false => Ok(out.finish()),
            true => {
                let text = format!(
                    "the documents of {} that $lookup found for one document are too large for it",
                    self.from
                );
                Err(Refusal::new(Code::BsonObjectTooLarge, text).into())
            }
        }
    }
}

/// Equal to what the document has: null where it has nothing, one of its elements where it is an array.
fn equal_to(document: Document<'_>, path: &Path) -> Test {
    let mut values: Vec<OwnedValue> = Vec::new();
    candidates(document, path, &mut |value| {
        match value.map(|value| (value, value.as_array())) {
            None => values.push(OwnedValue::null()),
            Some((_, Some(array))) => values.extend(array.iter().map(|it| it.value.to_owned())),
            Some((value, None)) => values.push(value.to_owned()),
        }
        false
    });
    values.sort_by(|a, b| compare(a.get(), b.get()));
    values.dedup_by(|a, b| compare(a.get(), b.get()).is_eq());
    Test::Any(match values.as_mut_slice() {
        [one] => Predicate::Equal(one.clone()),
        _ => Predicate::In(values),
    })
}

/// `$unionWith`: what another collection has comes behind.
#[derive(Clone, Debug)]
pub(crate) struct Union {
    pub(super) from: Name,
    pub(super) pipeline: Option<Vec<Vec<u8>>>,
}

impl Union {
    pub(super) fn parse(of: Value<'_>, running: &Running<'_>) -> Result<Self, Refusal> {
        let named = |from: &str| of_clients(running.database, from);
        if let Some(from) = of.as_str() {
            return Ok(Self {
                from: named(from)?,
                pipeline: None,
            });
        }
        let wrong =
            || Refusal::parse("the $unionWith stage specification must be an object or string");
        let options = of.as_document().ok_or_else(wrong)?;
        for element in options {
            if !matches!(element.name, b"coll" | b"pipeline") {
                let text = format!(
                    "BSON field '$unionWith.{}' is an unknown field.",
                    element.name_str()
                );
                return Err(Refusal::new(Code::UnknownField, text));
            }
        }
        let from = options.get("coll").and_then(Value::as_str);
        let from = from
            .ok_or_else(|| Refusal::parse("$unionWith needs the name of a collection as 'coll'"))?;
        let pipeline = options.get("pipeline").map(given);
        Ok(Self {
            from: named(from)?,
            pipeline: pipeline.transpose()?,
        })
    }
}

/// One document with what each of several pipelines made.
pub(super) fn facets(results: Vec<(String, Vec<Vec<u8>>)>) -> Outcome<Vec<u8>> {
    let mut out = Builder::new();
    for (name, documents) in results {
        out.open(Kind::Array, name);
        for (at, document) in documents.iter().enumerate() {
            out.document(at.to_string(), Document(document));
        }
        out.close();
        if out.len() > BATCH_BYTES_MAX {
            return Err(too_much("the document of $facet").into());
        }
    }
    Ok(out.finish())
}
