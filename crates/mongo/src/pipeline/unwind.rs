//! `$unwind`.

use drumlin_doc::{Builder, Code, Document, Element, Kind, Path, Refusal, Value, value_at};

/// An array that becomes a document for each element.
#[derive(Clone, Debug)]
pub(crate) struct Unwind {
    path: Path,
    keeps_empty: bool,
    /// The field that gets the place of the element.
    index: Option<Path>,
}

impl Unwind {
    pub(super) fn parse(of: Value<'_>) -> Result<Self, Refusal> {
        let shape = |text: &str| Refusal::new(Code::StageShape, text);
        let mut index = None;
        let (path, keeps_empty) = match of.as_document() {
            Some(options) => {
                for element in options {
                    match element.name_str() {
                        "path" | "preserveNullAndEmptyArrays" => {}
                        "includeArrayIndex" => {
                            let name = element.value.as_str().filter(|name| {
                                !name.is_empty()
                                    && !name.starts_with('$')
                                    && !name.contains(['.', '\0'])
                            });
                            let text = "includeArrayIndex of $unwind has to be a name of a field, without '.', '$' and zeros";
                            index = Some(Path::new(name.ok_or_else(|| Refusal::bad_value(text))?));
                        }
                        other => {
                            let text = format!("unrecognized option to $unwind stage: {other}");
                            return Err(Refusal::new(Code::UnwindOption, text));
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
            index,
        })
    }

    /// The documents that one becomes.
    pub(super) fn apply(&self, document: Document<'_>) -> Vec<Vec<u8>> {
        let value = value_at(document, &self.path);
        let keep = || match self.keeps_empty {
            true => vec![self.indexed(document.0.to_vec(), None)],
            false => Vec::new(),
        };
        match value {
            None => keep(),
            Some(value) if matches!(value.kind, Kind::Null | Kind::Undefined) => keep(),
            Some(value) => match value.as_array() {
                None => vec![self.indexed(document.0.to_vec(), None)],
                Some(elements) if elements.is_empty() => match self.keeps_empty {
                    true => vec![self.indexed(replaced(document, self.path.parts(), None), None)],
                    false => Vec::new(),
                },
                Some(elements) => {
                    let with = |(at, element): (usize, Element<'_>)| {
                        let made = replaced(document, self.path.parts(), Some(element.value));
                        self.indexed(made, Some(at))
                    };
                    elements.iter().enumerate().map(with).collect()
                }
            },
        }
    }
}

impl Unwind {
    /// The document with the place in it, where that is asked for.
    fn indexed(&self, document: Vec<u8>, at: Option<usize>) -> Vec<u8> {
        let Some(name) = self.index.as_ref().and_then(|path| path.parts().first()) else {
            return document;
        };
        let mut out = Builder::with_room(document.len() + 32);
        for element in Document(&document).iter().filter(|it| *it.name != **name) {
            out.value(element.name, element.value);
        }
        match at.and_then(|at| i64::try_from(at).ok()) {
            Some(at) => out.i64(name, at),
            None => out.null(name),
        };
        out.finish()
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
