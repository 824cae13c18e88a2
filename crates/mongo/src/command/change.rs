//! What a statement makes of a document: an update, or a pipeline.

use drumlin_doc::{Applied, Document, Filter, Kind, Moment, Refusal, Scope, Update, Value};

use crate::pipeline::{Running, UpdatePipeline};

use super::call::Call;

/// See the module.
#[derive(Debug)]
pub(super) enum Change {
    Update(Update),
    Pipeline(UpdatePipeline),
}

impl Change {
    /// # Errors
    /// `FailedToParse`; of updates and of stages.
    pub(super) fn parse(
        call: &Call<'_>,
        value: Option<Value<'_>>,
        scope: &Scope,
    ) -> Result<Self, Refusal> {
        let wrong = || Refusal::parse("Update argument must be either an object or an array");
        let value = value.ok_or_else(wrong)?;
        match value.kind {
            Kind::Document => Update::new(Document(value.bytes)).map(Self::Update),
            Kind::Array => {
                let stages = Document(value.bytes).iter().map(|stage| {
                    let text = "Each element of the 'pipeline' array must be an object";
                    let is_document = stage.value.kind == Kind::Document;
                    is_document
                        .then_some(Document(stage.value.bytes))
                        .ok_or_else(|| Refusal::type_mismatch(text))
                });
                let stages: Vec<_> = stages.collect::<Result<_, _>>()?;
                let reads = call.shared.store.reads();
                let running = Running {
                    reads: &reads,
                    database: call.database,
                    scope: scope.clone(),
                    workspace: call.workspace(),
                    depth: 0,
                };
                UpdatePipeline::parse(&stages, &running).map(Self::Pipeline)
            }
            _ => Err(wrong()),
        }
    }

    /// Whether it changes what is there, and is no replacement.
    pub(super) fn is_partial(&self) -> bool {
        match self {
            Self::Update(update) => update.has_operators(),
            Self::Pipeline(_) => true,
        }
    }

    /// The names by which elements of arrays are named, as `$[name]`.
    pub(super) fn element_names(&self) -> Vec<String> {
        match self {
            Self::Update(update) => update.element_names(),
            Self::Pipeline(_) => Vec::new(),
        }
    }

    /// # Errors
    /// As of [`Update::apply`].
    pub(super) fn apply(
        &self,
        document: Document<'_>,
        filter: &Filter,
        moment: &Moment,
    ) -> Result<Applied, Refusal> {
        match self {
            Self::Update(update) => update.apply(document, filter, moment),
            Self::Pipeline(pipeline) => {
                let made = pipeline.apply(document)?;
                Applied::replaced(document, Document(&made), moment)
            }
        }
    }
}
