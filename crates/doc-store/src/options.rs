//! What a collection was made with, beside its name.

use drumlin_doc::{Builder, Document, Kind};

/// The bounds of a collection that loses its oldest documents as new ones come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most bytes that its documents have in BSON. A single document may have more.
    pub size_bytes: u64,
    /// The most documents; `None` where their number is not bounded.
    pub documents_max: Option<u64>,
}

impl Bounds {
    /// Whether a collection of so many documents and bytes is beyond them.
    pub(crate) fn are_passed(&self, documents: u64, bytes: u64) -> bool {
        bytes > self.size_bytes || self.documents_max.is_some_and(|most| documents > most)
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionOptions {
    /// Of a capped collection.
    pub capped: Option<Bounds>,
}

impl CollectionOptions {
    /// They as a document, as `create` takes them and `listCollections` tells them. It is stored so.
    pub fn document(&self) -> Vec<u8> {
        let mut out = Builder::new();
        if let Some(bounds) = &self.capped {
            out.bool("capped", true).count("size", bounds.size_bytes);
            if let Some(most) = bounds.documents_max {
                out.count("max", most);
            }
        }
        out.finish()
    }

    /// What [`Self::document`] made; `None` for anything else.
    pub(crate) fn decode(stored: Document<'_>) -> Option<Self> {
        let mut options = Self::default();
        let whole = |name: &str| Some(u64::try_from(stored.get(name)?.as_whole()?).ok());
        for element in stored {
            match (element.name, element.value.kind) {
                (b"capped", Kind::Bool) => {
                    options.capped = Some(Bounds {
                        size_bytes: whole("size")??,
                        documents_max: match whole("max") {
                            Some(most) => Some(most?),
                            None => None,
                        },
                    });
                }
                (b"size" | b"max", _) => {}
                _ => return None,
            }
        }
        Some(options)
    }
}
