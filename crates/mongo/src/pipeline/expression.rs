//! Expressions: paths, literals, documents and arrays of them. Operators are refused by name.

use drumlin_doc::{Builder, Code, Document, Kind, OwnedValue, Path, Refusal, Value};

/// How deep expressions may lie in each other.
const DEPTH_MAX: usize = 100;

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Path(Path),
    /// The document itself.
    Root,
    Literal(OwnedValue),
    Document(Vec<(String, Expression)>),
    Array(Vec<Expression>),
}

impl Expression {
    /// # Errors
    /// `InvalidPipelineOperator` for operators and variables, by name.
    pub(super) fn parse(value: Value<'_>) -> Result<Self, Refusal> {
        Self::parse_at(value, 0)
    }

    fn parse_at(value: Value<'_>, depth: usize) -> Result<Self, Refusal> {
        let unknown = |what: &str| {
            let text =
                format!("Unrecognized expression '{what}': it is not supported by this server");
            Err(Refusal::new(Code::InvalidPipelineOperator, text))
        };
        if depth > DEPTH_MAX {
            return unknown("nested too deep");
        }
        match (value.kind, value.as_str()) {
            (Kind::String, Some("$$ROOT" | "$$CURRENT")) => Ok(Self::Root),
            (Kind::String, Some(text)) if text.starts_with("$$") => unknown(text),
            (Kind::String, Some(text)) => match text.strip_prefix('$') {
                Some(path) if path.is_empty() || path.split('.').any(str::is_empty) => Err(
                    Refusal::bad_value(format!("'{text}' is no path of a field")),
                ),
                Some(path) => Ok(Self::Path(Path::new(path))),
                None => Ok(Self::Literal(value.to_owned())),
            },
            (Kind::Document, _) => {
                let document = Document(value.bytes);
                let first = document.iter().next();
                if let Some(first) = first.filter(|first| first.name.first() == Some(&b'$')) {
                    return match first.name {
                        b"$literal" => Ok(Self::Literal(first.value.to_owned())),
                        _ => unknown(first.name_str()),
                    };
                }
                let fields = document.iter().map(|element| {
                    Ok((
                        element.name_str().to_owned(),
                        Self::parse_at(element.value, depth + 1)?,
                    ))
                });
                Ok(Self::Document(fields.collect::<Result<_, Refusal>>()?))
            }
            (Kind::Array, _) => {
                let items = Document(value.bytes)
                    .iter()
                    .map(|item| Self::parse_at(item.value, depth + 1));
                Ok(Self::Array(items.collect::<Result<_, _>>()?))
            }
            _ => Ok(Self::Literal(value.to_owned())),
        }
    }

    /// Its value for a document; `None` where there is none.
    pub(super) fn eval(&self, document: Document<'_>) -> Option<OwnedValue> {
        match self {
            Self::Path(path) => at(document.as_value(), path.parts()),
            Self::Root => Some(document.as_value().to_owned()),
            Self::Literal(value) => Some(value.clone()),
            Self::Document(fields) => {
                let mut out = Builder::new();
                for (name, expression) in fields {
                    if let Some(value) = expression.eval(document) {
                        out.value(name, value.get());
                    }
                }
                Some(OwnedValue {
                    kind: Kind::Document,
                    bytes: out.finish(),
                })
            }
            Self::Array(items) => Some(array(items.iter().map(|item| {
                item.eval(document)
                    .unwrap_or_else(|| Value::NULL.to_owned())
            }))),
        }
    }
}

/// An array of values.
pub(super) fn array(values: impl Iterator<Item = OwnedValue>) -> OwnedValue {
    let mut out = Builder::new();
    for (at, value) in values.enumerate() {
        out.value(at.to_string(), value.get());
    }
    OwnedValue {
        kind: Kind::Array,
        bytes: out.finish(),
    }
}

/// The value at a path; an array on the way gives the array of what its documents have.
fn at(value: Value<'_>, parts: &[Box<[u8]>]) -> Option<OwnedValue> {
    let Some((first, rest)) = parts.split_first() else {
        return Some(value.to_owned());
    };
    match value.kind {
        Kind::Document => {
            let mut fields = Document(value.bytes).iter();
            let found = fields.find(|element| *element.name == **first)?;
            at(found.value, rest)
        }
        Kind::Array => {
            let elements = Document(value.bytes).iter();
            Some(array(
                elements.filter_map(|element| at(element.value, parts)),
            ))
        }
        _ => None,
    }
}
