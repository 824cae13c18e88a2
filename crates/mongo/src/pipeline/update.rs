//! Pipelines that change a document: those of the stages that look at one document alone.

use drumlin_doc::{Code, Document, Refusal};

use super::run::replace_root;
use super::running::Running;
use super::stage::{Pipeline, Stage};

/// See the module.
#[derive(Debug)]
pub(crate) struct UpdatePipeline(Vec<Stage>);

impl UpdatePipeline {
    /// # Errors
    /// `InvalidOptions` for other stages, by name; of expressions.
    pub(crate) fn parse(stages: &[Document<'_>], running: &Running<'_>) -> Result<Self, Refusal> {
        const FIT: [&str; 6] = [
            "$addFields",
            "$project",
            "$replaceRoot",
            "$replaceWith",
            "$set",
            "$unset",
        ];
        let names = stages.iter().filter_map(|stage| stage.iter().next());
        if let Some(unfit) = names
            .map(|first| first.name_str())
            .find(|name| !FIT.contains(name))
        {
            let text = format!("{unfit} is not allowed to be used within an update");
            return Err(Refusal::new(Code::InvalidOptions, text));
        }
        Pipeline::parse(stages, running).map(Self)
    }

    /// What it makes of a document.
    ///
    /// # Errors
    /// Of expressions.
    pub(crate) fn apply(&self, document: Document<'_>) -> Result<Vec<u8>, Refusal> {
        let mut made = document.0.to_vec();
        let most = if drumlin_base::bug!("mongo-update-pipelines-end-early") {
            1
        } else {
            usize::MAX
        };
        for stage in self.0.iter().take(most) {
            match stage {
                Stage::Project(projection) => made = projection.apply(Document(&made), None)?,
                Stage::ReplaceRoot(root) => made = replace_root(root, Document(&made))?,
                _ => {}
            }
        }
        Ok(made)
    }
}
