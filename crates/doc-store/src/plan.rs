//! Which keys are looked at.

use std::sync::Arc;

use drumlin_doc::{Document, Kind, Near, Path, PlaceKind};

use crate::catalog::Collection;
use crate::index::Index;
use crate::layout::range_of;

/// A range of keys: from the first, up to the second.
pub type Range = (Vec<u8>, Vec<u8>);

/// What is looked at.
#[derive(Clone, Debug)]
pub enum Access {
    /// The documents with these keys of `_id`.
    Ids(Vec<Vec<u8>>),
    /// These ranges of the collection.
    Collection(Vec<Range>),
    /// These ranges of an index.
    Index(Arc<Index>, Vec<Range>),
    /// What an index of places has around a point, the nearest first.
    Near(Arc<Index>, Arc<Around>),
    /// Each of these, which are none themselves; what several of them have comes once.
    Union(Vec<Access>),
}

impl Access {
    /// What is looked at one after another: itself, but for a union.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::Union(parts) => parts,
            one => std::slice::from_ref(one),
        }
    }

    /// The indexes that are looked at.
    pub fn indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.parts().iter().filter_map(|part| match part {
            Self::Index(index, _) | Self::Near(index, _) => Some(index),
            Self::Ids(_) | Self::Collection(_) | Self::Union(_) => None,
        })
    }

    /// As `explain` tells it.
    fn explain(&self, direction: &str, out: &mut drumlin_doc::Builder) {
        match self {
            Self::Ids(_) => {
                out.str("stage", "IDHACK");
            }
            Self::Collection(_) => {
                out.str("stage", "COLLSCAN").str("direction", direction);
            }
            Self::Near(index, around) => {
                out.str("stage", around.stage())
                    .document("keyPattern", Document(&index.key))
                    .str("indexName", &index.name);
                out.bool("isMultiKey", index.is_multikey());
            }
            Self::Index(index, ranges) => {
                out.str("stage", "FETCH").open(Kind::Document, "inputStage");
                out.str("stage", "IXSCAN")
                    .str("indexName", &index.name)
                    .document("keyPattern", Document(&index.key));
                out.bool("isMultiKey", index.is_multikey())
                    .bool("isUnique", index.unique)
                    .bool("isSparse", index.sparse);
                out.str("direction", direction)
                    .count("ranges", ranges.len() as u64)
                    .close();
            }
            Self::Union(parts) => {
                out.str("stage", "OR").open(Kind::Array, "inputStages");
                for (at, part) in parts.iter().enumerate() {
                    out.open(Kind::Document, at.to_string());
                    part.explain(direction, out);
                    out.close();
                }
                out.close();
            }
        }
    }
}

/// What is near to a point.
#[derive(Clone, Debug)]
pub struct Around {
    pub(crate) near: Near,
    pub(crate) path: Path,
    pub(crate) kind: PlaceKind,
    /// The keys of the fields before the place, each behind the index's number.
    pub(crate) prefixes: Vec<Vec<u8>>,
}

impl Around {
    /// Its stage's name, as MongoDB has it.
    fn stage(&self) -> &'static str {
        match self.kind {
            PlaceKind::Sphere => "GEO_NEAR_2DSPHERE",
            PlaceKind::Flat(_) => "GEO_NEAR_2D",
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is looked at.
    pub access: Access,
    /// Whether from the end to the beginning.
    pub is_reverse: bool,
    /// Whether documents come in the order of the sort.
    pub is_sorted: bool,
    /// Whether there is one document at most with its keys.
    pub(crate) is_single: bool,
}

impl Plan {
    /// All of a collection in its order.
    pub(crate) fn tail(collection: &Collection) -> Self {
        Self {
            access: Access::Collection(vec![range_of(collection.ident)]),
            is_reverse: false,
            is_sorted: true,
            is_single: false,
        }
    }

    /// The plan as `explain` tells it: a stage, and its input.
    pub fn explain(&self, out: &mut drumlin_doc::Builder) {
        let direction = if self.is_reverse {
            "backward"
        } else {
            "forward"
        };
        self.access.explain(direction, out);
    }
}
