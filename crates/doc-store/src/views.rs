//! What views stand for, and which there may be.

use std::collections::HashMap;

use drumlin_doc::{Code, Document, Kind, Refusal, Value};

use crate::catalog::{Catalog, Collection, Name};
use crate::options::View;

/// Most views on top of each other.
const DEPTH_MAX: usize = 20;

/// What a view stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The collection, which need not be there.
    pub collection: Name,
    /// What its documents go through: stages.
    pub stages: Vec<Vec<u8>>,
}

fn too_deep(name: &Name) -> Refusal {
    let text =
        format!("View depth too deep or view cycle detected: {name}; maximum depth is {DEPTH_MAX}");
    Refusal::new(Code::ViewDepthLimitExceeded, text)
}

/// The refusal of what is not done to views.
pub(crate) fn is_a_view(name: &Name) -> Refusal {
    let text = format!("Namespace {name} is a view, not a collection");
    Refusal::new(Code::CommandNotSupportedOnView, text)
}

impl Collection {
    /// Refuses what is for collections alone.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView`.
    pub fn refuse_view(&self) -> Result<(), Refusal> {
        match self.options.view {
            None => Ok(()),
            Some(_) => Err(is_a_view(&self.name)),
        }
    }
}

impl Catalog {
    /// What the view of that name stands for; `None` of anything else.
    ///
    /// # Errors
    /// `ViewDepthLimitExceeded`; `Unauthorized` for a collection of the server's.
    pub fn resolve(&self, name: &Name) -> Result<Option<Resolved>, Refusal> {
        let mut of = name.clone();
        let mut pipelines = Vec::new();
        while let Some(view) = self.get(&of).and_then(|it| it.options.view.as_ref()) {
            if pipelines.len() == DEPTH_MAX {
                return Err(too_deep(name));
            }
            pipelines.push(view);
            of = Name::new(&name.database, &view.on);
            // Those of the server, users among them, are for no client.
            if of.collection.starts_with("system.") {
                let text = format!("{of} is not for commands of clients");
                return Err(Refusal::new(Code::Unauthorized, text));
            }
        }
        let stages = pipelines.iter().rev().flat_map(|view| view.stages());
        Ok((!pipelines.is_empty()).then(|| Resolved {
            stages: stages.map(|stage| stage.0.to_vec()).collect(),
            collection: of.clone(),
        }))
    }
}

/// The collections that a pipeline reads beside its own.
fn read_by<'v>(pipeline: Value<'v>, read: &mut Vec<&'v str>) {
    let mut pipelines = vec![pipeline];
    while let Some(pipeline) = pipelines.pop() {
        for stage in pipeline.as_array().into_iter().flatten() {
            let stage = Document(stage.value.bytes).iter().next();
            let Some((name, value)) = stage.map(|it| (it.name, it.value)) else {
                continue;
            };
            let fields = value.as_document().filter(|_| value.kind == Kind::Document);
            let field = |name: &str| fields.and_then(|fields| fields.get(name));
            match name {
                b"$lookup" | b"$graphLookup" => read.extend(field("from").and_then(Value::as_str)),
                b"$unionWith" => {
                    read.extend(value.as_str().or(field("coll").and_then(Value::as_str)))
                }
                b"$facet" => pipelines.extend(fields.into_iter().flatten().map(|it| it.value)),
                _ => {}
            }
            if name != b"$facet" {
                pipelines.extend(field("pipeline"));
            }
        }
    }
}

/// Refuses a view that would read itself, or stand on too many others.
///
/// # Errors
/// `GraphContainsCycle`, `ViewDepthLimitExceeded`.
pub(crate) fn check(catalog: &Catalog, name: &Name, view: &View) -> Result<(), Refusal> {
    // How deep each was met: it is looked at again only where it lies deeper.
    let mut met: HashMap<String, usize> = HashMap::new();
    let mut open = vec![(view, 1)];
    while let Some((view, depth)) = open.pop() {
        if depth > DEPTH_MAX {
            return Err(too_deep(name));
        }
        let mut read = vec![view.on.as_str()];
        read_by(view.pipeline(), &mut read);
        for other in read {
            if other == name.collection {
                let text = format!("View cycle detected: {name} reads itself");
                return Err(Refusal::new(Code::GraphContainsCycle, text));
            }
            let below = catalog.get(&Name::new(&name.database, other));
            if let Some(view) = below.and_then(|it| it.options.view.as_ref())
                && met.get(other).is_none_or(|known| *known <= depth)
            {
                met.insert(other.to_owned(), depth + 1);
                open.push((view, depth + 1));
            }
        }
    }
    Ok(())
}
