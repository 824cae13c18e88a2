//! Stages that make another document of each: `$project`, `$addFields`, `$unset`, `$replaceRoot`, `$unwind`.

use drumlin_doc::{Builder, Code, Document, Kind, Path, Projection, Refusal, Value, value_at};

use super::expression::Expression;

/// Fields that stay, and fields that are computed.
#[derive(Clone, Debug)]
pub(crate) struct Reshape {
    /// What stays; `None` of all.
    projection: Option<Projection>,
    computed: Vec<(String, Expression)>,
}

impl Reshape {
    /// `$project`.
    ///
    /// # Errors
    /// Of projections and expressions.
    pub(super) fn project(of: Document<'_>) -> Result<Self, Refusal> {
        if of.is_empty() {
            return Err(Refusal::bad_value("$project needs at least one field"));
        }
        let mut plain = Builder::new();
        let mut computed = Vec::new();
        let mut names_any = false;
        for element in of {
            let is_plain = element.value.kind.is_number() || element.value.kind == Kind::Bool;
            match is_plain {
                true => {
                    names_any |= element.name != b"_id";
                    plain.value(element.name, element.value);
                }
                false => computed.push(field(element.name_str(), element.value)?),
            }
        }
        if !computed.is_empty() && !names_any && of.get("_id").is_none() {
            plain.i32("_id", 1);
        }
        let plain = plain.finish();
        let projection = Projection::new(Document(&plain))?;
        if !computed.is_empty() {
            let excludes = Document(&plain)
                .iter()
                .any(|element| element.name != b"_id" && !element.value.is_truthy());
            if excludes {
                return Err(Refusal::bad_value(
                    "a $project that excludes fields computes none",
                ));
            }
            // `_id: 0` alone would keep all others.
            if !names_any && projection.is_exclusion() {
                return Ok(Self {
                    projection: Some(Projection::nothing()),
                    computed,
                });
            }
        }
        Ok(Self {
            projection: Some(projection),
            computed,
        })
    }

    /// `$addFields`, `$set`.
    pub(super) fn add_fields(of: Document<'_>) -> Result<Self, Refusal> {
        let computed = of
            .iter()
            .map(|element| field(element.name_str(), element.value));
        Ok(Self {
            projection: None,
            computed: computed.collect::<Result<_, _>>()?,
        })
    }

    /// `$unset`.
    pub(super) fn unset(of: Value<'_>) -> Result<Self, Refusal> {
        let wrong = || Refusal::bad_value("$unset needs a string or an array of strings");
        let mut names = Builder::new();
        match of.as_array() {
            Some(items) => {
                for item in items {
                    names.i32(item.value.as_str().ok_or_else(wrong)?, 0);
                }
            }
            None => {
                names.i32(of.as_str().ok_or_else(wrong)?, 0);
            }
        }
        Ok(Self {
            projection: Some(Projection::new(Document(&names.finish()))?),
            computed: Vec::new(),
        })
    }

    pub(super) fn apply(&self, document: Document<'_>) -> Vec<u8> {
        let base = match &self.projection {
            Some(projection) => projection.apply(document),
            None => document.0.to_vec(),
        };
        if self.computed.is_empty() {
            return base;
        }
        let mut values: Vec<_> = self
            .computed
            .iter()
            .map(|(name, it)| (name, Some(it.eval(document))))
            .collect();
        let mut out = Builder::new();
        for element in Document(&base) {
            let own = values
                .iter_mut()
                .find(|(name, _)| name.as_bytes() == element.name);
            match own.and_then(|(_, value)| value.take()) {
                Some(Some(value)) => {
                    out.value(element.name, value.get());
                }
                Some(None) => {}
                None => {
                    out.value(element.name, element.value);
                }
            }
        }
        for (name, value) in values {
            if let Some(value) = value.flatten() {
                out.value(name, value.get());
            }
        }
        out.finish()
    }
}

fn field(name: &str, value: Value<'_>) -> Result<(String, Expression), Refusal> {
    if name.is_empty() || name.contains('.') || name.starts_with('$') {
        let text = format!(
            "a computed field {name:?} is not supported by this server: it has to be a name without dots"
        );
        return Err(Refusal::new(Code::CommandNotSupported, text));
    }
    Ok((name.to_owned(), Expression::parse(value)?))
}

/// `$replaceRoot`: the document that the expression gives.
///
/// # Errors
/// `Location40228` where it gives none.
pub(super) fn replace_root(
    expression: &Expression,
    document: Document<'_>,
) -> Result<Vec<u8>, Refusal> {
    match expression.eval(document) {
        Some(value) if value.kind == Kind::Document => Ok(value.bytes),
        other => {
            let kind = other.map_or("missing", |other| other.kind.name());
            let text = format!(
                "'newRoot' expression must evaluate to an object, but resulting value was of type: {kind}"
            );
            Err(Refusal::new(Code::ReplaceRoot, text))
        }
    }
}

/// An array that becomes a document for each element.
#[derive(Clone, Debug)]
pub(crate) struct Unwind {
    path: Path,
    keeps_empty: bool,
}

impl Unwind {
    pub(super) fn parse(of: Value<'_>) -> Result<Self, Refusal> {
        let shape = |text: &str| Refusal::new(Code::StageShape, text);
        let (path, keeps_empty) = match of.as_document() {
            Some(options) => {
                for element in options {
                    match element.name_str() {
                        "path" | "preserveNullAndEmptyArrays" => {}
                        other => {
                            return Err(Refusal::not_supported(format!(
                                "the option '{other}' of $unwind"
                            )));
                        }
                    }
                }
                let keeps = options
                    .get("preserveNullAndEmptyArrays")
                    .is_some_and(Value::is_truthy);
                (options.get("path").and_then(Value::as_str), keeps)
            }
            None => (of.as_str(), false),
        };
        let path = path
            .and_then(|path| path.strip_prefix('$'))
            .filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| shape("$unwind needs a path that begins with '$'"))?;
        Ok(Self {
            path: Path::new(path),
            keeps_empty,
        })
    }

    /// The documents that one becomes.
    pub(super) fn apply(&self, document: Document<'_>) -> Vec<Vec<u8>> {
        let value = value_at(document, &self.path);
        let keep = || {
            if self.keeps_empty {
                vec![document.0.to_vec()]
            } else {
                Vec::new()
            }
        };
        match value {
            None => keep(),
            Some(value) if matches!(value.kind, Kind::Null | Kind::Undefined) => keep(),
            Some(value) => match value.as_array() {
                None => vec![document.0.to_vec()],
                Some(elements) if elements.is_empty() => match self.keeps_empty {
                    true => vec![replaced(document, self.path.parts(), None)],
                    false => Vec::new(),
                },
                Some(elements) => {
                    let with =
                        |element: Value<'_>| replaced(document, self.path.parts(), Some(element));
                    elements.iter().map(|element| with(element.value)).collect()
                }
            },
        }
    }
}

/// `document` with another value, or none, at a path of documents.
fn replaced(document: Document<'_>, parts: &[Box<[u8]>], value: Option<Value<'_>>) -> Vec<u8> {
    let mut out = Builder::new();
    for element in document {
        let is_meant = parts.first().is_some_and(|part| **part == *element.name);
        let rest = parts.get(1..).unwrap_or_default();
        match (is_meant, element.value.as_document()) {
            (true, _) if rest.is_empty() => {
                if let Some(value) = value {
                    out.value(element.name, value);
                }
            }
            (true, Some(inner)) if element.value.kind == Kind::Document => {
                out.document(element.name, Document(&replaced(inner, rest, value)));
            }
            _ => {
                out.value(element.name, element.value);
            }
        }
    }
    out.finish()
}
