//! Documents, pushed through stages.

use drumlin_doc::{Builder, Document, Refusal};
use drumlin_doc_store::Outcome;

use crate::query::too_much;
use crate::wire::limits::{STAGE_BYTES_MAX, STAGES_MAX};

use super::reshape::replace_root;
use super::stage::Stage;

/// Stages, and what has come out of the last one.
#[derive(Debug)]
pub(crate) struct Pipeline {
    stages: Vec<Stage>,
    out: Vec<Vec<u8>>,
    bytes: usize,
}

impl Pipeline {
    /// # Errors
    /// Of each stage; `BadValue` for too many.
    pub(crate) fn parse(stages: &[Document<'_>]) -> Result<Vec<Stage>, Refusal> {
        if stages.len() > STAGES_MAX {
            return Err(Refusal::bad_value(format!(
                "a pipeline has at most {STAGES_MAX} stages"
            )));
        }
        let all = stages.iter().map(|stage| Stage::parse(*stage));
        Ok(all
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    pub(crate) fn new(stages: Vec<Stage>) -> Self {
        Self {
            stages,
            out: Vec::new(),
            bytes: 0,
        }
    }

    /// Pushes a document in at the front; whether any more may come out of another one.
    ///
    /// # Errors
    /// Of the stages; `QueryExceededMemoryLimitNoDiskUseAllowed` for a result that is too large.
    pub(crate) fn push(&mut self, document: &[u8]) -> Outcome<bool> {
        self.push_at(0, document)
    }

    fn push_at(&mut self, from: usize, document: &[u8]) -> Outcome<bool> {
        let mut made = document.to_vec();
        for at in from..self.stages.len() {
            let Some(stage) = self.stages.get_mut(at) else {
                break;
            };
            match stage {
                Stage::Match(filter) if filter.matches(Document(&made)) => {}
                Stage::Match(_) => return Ok(true),
                Stage::Skip(0) => {}
                Stage::Skip(left) => {
                    *left -= 1;
                    return Ok(true);
                }
                Stage::Limit(0) => return Ok(false),
                Stage::Limit(left) => *left -= 1,
                Stage::Reshape(reshape) => made = reshape.apply(Document(&made)),
                Stage::ReplaceRoot(root) => made = replace_root(&root.0, Document(&made))?,
                Stage::Sort(sorter) => {
                    sorter.push(made)?;
                    return Ok(true);
                }
                Stage::Group(group) => {
                    group.push(Document(&made))?;
                    return Ok(true);
                }
                Stage::Count(_, count) => {
                    *count += 1;
                    return Ok(true);
                }
                Stage::Unwind(unwind) => {
                    for document in unwind.apply(Document(&made)) {
                        if !self.push_at(at + 1, &document)? {
                            return Ok(false);
                        }
                    }
                    return Ok(true);
                }
            }
        }
        self.bytes += made.len() + 32;
        self.out.push(made);
        match self.bytes > STAGE_BYTES_MAX {
            true => Err(too_much("the result of a pipeline").into()),
            false => Ok(true),
        }
    }

    /// What comes out, once all has come in.
    ///
    /// # Errors
    /// As of [`Pipeline::push`].
    pub(crate) fn finish(mut self) -> Outcome<Vec<Vec<u8>>> {
        for at in 0..self.stages.len() {
            // A place in the list stays, so that those behind it keep theirs.
            let stage = self
                .stages
                .get_mut(at)
                .map(|stage| std::mem::replace(stage, Stage::Limit(0)));
            let kept: Vec<Vec<u8>> = match stage {
                Some(Stage::Sort(sorter)) => sorter.finish().into(),
                Some(Stage::Group(group)) => group.finish(),
                Some(Stage::Count(name, count)) if count > 0 => {
                    let mut out = Builder::new();
                    out.count(name, count);
                    vec![out.finish()]
                }
                _ => continue,
            };
            for document in kept {
                if !self.push_at(at + 1, &document)? {
                    break;
                }
            }
        }
        Ok(self.out)
    }
}
