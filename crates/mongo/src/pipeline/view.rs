//! Views: pipelines that are run before what is asked of them.

use drumlin_doc::{Code, Document, Filter, Refusal, Scope, step};
use drumlin_doc_store::Name;

use super::running::Running;
use super::stage::{Pipeline, Stage};

/// The collection that the view of that name stands for, and the stages that its documents go through; `None` of anything else.
///
/// # Errors
/// Of the stages; `ViewDepthLimitExceeded`; of who looks whether to go on: a few views that each look up twice in the one below are run a
/// million times.
pub(crate) fn resolve(
    name: &Name,
    running: &Running<'_>,
) -> Result<Option<(Name, Vec<Stage>)>, Refusal> {
    step()?;
    let Some(resolved) = running.reads.catalog().resolve(name)? else {
        return Ok(None);
    };
    // A view knows no variable of who asks.
    let scope = Scope {
        now_ms: running.scope.now_ms,
        seed: running.scope.seed,
        ..Scope::default()
    };
    let within = Running {
        scope,
        workspace: running.workspace.clone(),
        ..*running
    };
    let stages: Vec<_> = resolved.stages.iter().map(|it| Document(it)).collect();
    let stages = Pipeline::parse(&stages, &within)?;
    Ok(Some((resolved.collection, stages)))
}

/// Puts the stages of a view, if that is one, in front of a filter and of others; the collection that they are for.
///
/// # Errors
/// As of [`resolve`]; `CommandNotSupportedOnView` for stages that tell of a collection; `NearFirst` and `NearNotAllowed` for what an index
/// of places is looked at for, which is the collection's.
pub(crate) fn through(
    name: &Name,
    filter: Option<&Filter>,
    stages: &mut Vec<Stage>,
    running: &Running<'_>,
) -> Result<Option<Name>, Refusal> {
    let Some((collection, mut all)) = resolve(name, running)? else {
        return Ok(None);
    };
    if matches!(stages.first(), Some(Stage::Statistics(_))) {
        let text = format!("Namespace {name} is a view, not a collection");
        return Err(Refusal::new(Code::CommandNotSupportedOnView, text));
    }
    if matches!(stages.first(), Some(Stage::GeoNear(_))) && !all.is_empty() {
        let text = "$geoNear is only valid as the first stage in a pipeline.";
        return Err(Refusal::new(Code::NearFirst, text));
    }
    if filter.is_some_and(|filter| filter.near().is_some()) {
        let text = "$geoNear, $near, and $nearSphere are not allowed in this context";
        return Err(Refusal::new(Code::NearNotAllowed, text));
    }
    let filter = filter.filter(|filter| **filter != Filter::And(Vec::new()));
    all.extend(filter.cloned().map(Stage::Match));
    all.append(stages);
    *stages = all;
    Ok(Some(collection))
}
