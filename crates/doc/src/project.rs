//! Projections: which fields of a document are answered.

use crate::build::Builder;
use crate::raw::{Document, Kind, Value};
use crate::refusal::{Outcome, Refusal};

/// A tree of names; one without children is a field that was named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names {
    children: Vec<(Box<[u8]>, Names)>,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    names: Names,
    /// Whether the named fields stay, and others go.
    includes: bool,
    /// Whether `_id` stays; `None` where it was not said.
    id: Option<bool>,
}

impl Projection {
    /// The projection that `document` describes: fields to include, or fields to exclude; `_id` may be the other.
    ///
    /// # Errors
    /// `BadValue` for both at once, for names that begin others, and for what is not served: computed fields and operators.
    pub fn new(document: Document<'_>) -> Outcome<Self> {
        let mut projection = Self {
            names: Names::default(),
            includes: false,
            id: None,
        };
        let mut mode: Option<bool> = None;
        for element in document {
            let name = element.name_str();
            if !(element.value.kind.is_number() || element.value.kind == Kind::Bool) {
                let what = element
                    .value
                    .as_document()
                    .and_then(|inner| inner.iter().next());
                let what = what.map_or("a computed field", |first| first.name_str());
                return Err(Refusal::bad_value(format!(
                    "the projection of {name:?} by {what} is not supported by this server"
                )));
            }
            let stays = element.value.is_truthy();
            if name == "_id" {
                projection.id = Some(stays);
                continue;
            }
            if name
                .split('.')
                .any(|part| part.is_empty() || part.starts_with('$'))
            {
                return Err(Refusal::bad_value(format!(
                    "the projection of {name:?} is not supported by this server"
                )));
            }
            if mode.is_some_and(|mode| mode != stays) {
                let (now, before) = if stays {
                    ("inclusion", "exclusion")
                } else {
                    ("exclusion", "inclusion")
                };
                return Err(Refusal::bad_value(format!(
                    "Cannot do {now} on field {name} in {before} projection"
                )));
            }
            mode = Some(stays);
            projection.names.add(name)?;
        }
        projection.includes = mode.unwrap_or(projection.id == Some(true));
        Ok(projection)
    }

    /// Whether it leaves documents as they are.
    pub fn is_all(&self) -> bool {
        self.names.children.is_empty() && !self.includes && self.id != Some(false)
    }

    /// What is left of `document`.
    pub fn apply(&self, document: Document<'_>) -> Vec<u8> {
        let mut out = Builder::new();
        for element in document {
            let name = element.name;
            if name == b"_id" && (self.id.is_some() || self.names.child(name).is_none()) {
                if self.id != Some(false) {
                    out.value(name, element.value);
                }
                continue;
            }
            self.field(&mut out, &self.names, name, element.value);
        }
        out.finish()
    }

    /// Recurses as deep as the projection names fields.
    fn field(&self, out: &mut Builder, names: &Names, name: &[u8], value: Value<'_>) {
        match names.child(name) {
            None if !self.includes => {
                out.value(name, value);
            }
            None => {}
            Some(child) if child.children.is_empty() && self.includes => {
                out.value(name, value);
            }
            Some(child) if child.children.is_empty() => {}
            Some(child) => self.inner(out, child, name, value),
        }
    }

    fn inner(&self, out: &mut Builder, names: &Names, name: &[u8], value: Value<'_>) {
        match value.kind {
            Kind::Document => {
                out.open(Kind::Document, name);
                for element in Document(value.bytes) {
                    self.field(out, names, element.name, element.value);
                }
                out.close();
            }
            Kind::Array => {
                out.open(Kind::Array, name);
                let mut place = 0;
                for element in Document(value.bytes) {
                    let is_nested = matches!(element.value.kind, Kind::Document | Kind::Array);
                    if is_nested || !self.includes {
                        self.inner(out, names, place.to_string().as_bytes(), element.value);
                        place += 1;
                    }
                }
                out.close();
            }
            _ if !self.includes => {
                out.value(name, value);
            }
            _ => {}
        }
    }
}

impl Names {
    fn child(&self, name: &[u8]) -> Option<&Self> {
        let mut children = self.children.iter();
        children
            .find(|(known, _)| **known == *name)
            .map(|(_, child)| child)
    }

    fn add(&mut self, path: &str) -> Outcome<()> {
        let collides = || Refusal::bad_value(format!("Path collision at {path}"));
        let mut names = self;
        let mut is_new = false;
        for part in path.split('.') {
            let found = names
                .children
                .iter()
                .position(|(known, _)| **known == *part.as_bytes());
            let at = match found {
                // A name that is there and has no children was named itself.
                Some(at)
                    if names
                        .children
                        .get(at)
                        .is_some_and(|(_, it)| it.children.is_empty()) =>
                {
                    return Err(collides());
                }
                Some(at) => at,
                None => {
                    is_new = true;
                    names
                        .children
                        .push((part.as_bytes().into(), Self::default()));
                    names.children.len() - 1
                }
            };
            let Some((_, child)) = names.children.get_mut(at) else {
                return Err(collides());
            };
            names = child;
        }
        if is_new { Ok(()) } else { Err(collides()) }
    }
}

impl Projection {
    /// The projection that leaves nothing.
    pub fn nothing() -> Self {
        Self {
            names: Names::default(),
            includes: true,
            id: Some(false),
        }
    }

    /// Whether the fields that it names go.
    pub fn is_exclusion(&self) -> bool {
        !self.includes
    }
}
