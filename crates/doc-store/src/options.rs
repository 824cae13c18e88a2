//! What a collection was made with, beside its name.

use drumlin_doc::{Builder, Document, Kind, Refusal, Value};

use crate::validator::{Validation, ValidationAction, ValidationLevel, Validator};

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
    /// What its documents have to be like.
    pub validator: Option<Validator>,
    /// Which writes are looked at; all where it is not said.
    pub validation_level: Option<ValidationLevel>,
    /// What becomes of those that do not pass; they are refused where it is not said.
    pub validation_action: Option<ValidationAction>,
    /// Where it is no collection, but what others are made into.
    pub view: Option<View>,
}

/// A view: what a pipeline makes of a collection, or of another view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The name of that, which need not be there.
    pub on: String,
    /// The pipeline: an array of documents.
    pub pipeline: Vec<u8>,
}

impl View {
    pub(crate) fn pipeline(&self) -> Value<'_> {
        Value {
            kind: Kind::Array,
            bytes: &self.pipeline,
        }
    }

    /// The stages of the pipeline.
    pub(crate) fn stages(&self) -> impl Iterator<Item = Document<'_>> {
        let stages = self.pipeline().as_array().into_iter().flatten();
        stages.map(|stage| Document(stage.value.bytes))
    }
}

impl ValidationLevel {
    /// By MongoDB's name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "off" => Some(Self::Off),
            "moderate" => Some(Self::Moderate),
            "strict" => Some(Self::Strict),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Moderate => "moderate",
            Self::Strict => "strict",
        }
    }
}

impl ValidationAction {
    /// By MongoDB's name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "error" => Some(Self::Error),
            "warn" => Some(Self::Warn),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
        }
    }
}

impl CollectionOptions {
    /// Whether documents are looked at when they are written.
    pub(crate) fn validates(&self, validation: Validation) -> bool {
        self.validator.is_some()
            && validation != Validation::Bypassed
            && self.validation_level != Some(ValidationLevel::Off)
            && self.validation_action != Some(ValidationAction::Warn)
    }

    /// Refuses a document that is not as those of the collection are to be. `before` is the one that it takes the place of.
    ///
    /// # Errors
    /// `DocumentValidationFailure`; of the validator's expressions.
    pub(crate) fn check_valid(
        &self,
        document: Document<'_>,
        before: Option<Document<'_>>,
        validation: Validation,
    ) -> Result<(), Refusal> {
        let Some(validator) = &self.validator else {
            return Ok(());
        };
        if validator.passes(document)? {
            return Ok(());
        }
        let is_moderate = self.validation_level == Some(ValidationLevel::Moderate);
        match before.filter(|_| is_moderate) {
            Some(before) if !validator.passes(before)? => Ok(()),
            _ => Err(validator.refusal(document, validation)?),
        }
    }

    /// They as a document, as `create` takes them and `listCollections` tells them. It is stored so.
    pub fn document(&self) -> Vec<u8> {
        let mut out = Builder::new();
        if let Some(bounds) = &self.capped {
            out.bool("capped", true).count("size", bounds.size_bytes);
            if let Some(most) = bounds.documents_max {
                out.count("max", most);
            }
        }
        if let Some(validator) = &self.validator {
            out.document("validator", Document(&validator.given));
        }
        if let Some(level) = self.validation_level {
            out.str("validationLevel", level.name());
        }
        if let Some(action) = self.validation_action {
            out.str("validationAction", action.name());
        }
        if let Some(view) = &self.view {
            out.str("viewOn", &view.on)
                .value("pipeline", view.pipeline());
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
                (b"validator", Kind::Document) => {
                    options.validator =
                        Some(Validator::of_any_size(Document(element.value.bytes)).ok()?);
                }
                (b"validationLevel", _) => {
                    options.validation_level =
                        Some(ValidationLevel::named(element.value.as_str()?)?);
                }
                (b"validationAction", _) => {
                    options.validation_action =
                        Some(ValidationAction::named(element.value.as_str()?)?);
                }
                (b"viewOn", _) => {
                    let stages = stored.get("pipeline")?.as_array()?;
                    if stages
                        .iter()
                        .any(|stage| stage.value.kind != Kind::Document)
                    {
                        return None;
                    }
                    options.view = Some(View {
                        on: element.value.as_str()?.to_owned(),
                        pipeline: stages.0.to_vec(),
                    });
                }
                (b"pipeline", Kind::Array) => {}
                _ => return None,
            }
        }
        Some(options)
    }
}
