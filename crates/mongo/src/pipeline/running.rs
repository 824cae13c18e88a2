//! What a pipeline runs with.

use drumlin_doc::{Code, Refusal, Scope};
use drumlin_doc_store::Reads;

use crate::sorting::Workspace;

/// Pipelines within each other.
const NESTED_MAX: usize = 20;

/// What a pipeline runs with.
#[derive(Clone, Debug)]
pub(crate) struct Running<'a> {
    pub(crate) reads: &'a Reads<'a>,
    pub(crate) database: &'a str,
    pub(crate) scope: Scope,
    pub(crate) workspace: Workspace,
    /// How many pipelines are around it.
    pub(crate) depth: usize,
}

impl Running<'_> {
    /// It for a pipeline within.
    ///
    /// # Errors
    /// `Location51047` for too many within each other.
    pub(super) fn within(&self, scope: Scope) -> Result<Self, Refusal> {
        if self.depth >= NESTED_MAX {
            let text =
                format!("Maximum number of nested sub-pipelines exceeded. Limit is {NESTED_MAX}");
            return Err(Refusal::new(Code::PipelineDepth, text));
        }
        Ok(Self {
            scope,
            depth: self.depth + 1,
            workspace: self.workspace.clone(),
            ..*self
        })
    }
}
