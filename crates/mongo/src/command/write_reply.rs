//! Replies of writes: counts, and errors by the place of their statement.

use drumlin_doc::{Builder, Document, Kind, Refusal};
use drumlin_doc_store::{Failure, Outcome};

use super::refusals::refusal_of;

/// Notes what was refused of the statement at `at`. Whether the next one is run.
///
/// # Errors
/// Those of the engine, which end the command.
pub(super) fn goes_on(
    outcome: Outcome<()>,
    (at, ordered): (usize, bool),
    errors: &mut Vec<(usize, Refusal)>,
) -> Outcome<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(Failure::Engine(error)) => Err(error.into()),
        Err(failure) => {
            errors.push((at, refusal_of(failure)));
            Ok(!ordered)
        }
    }
}

/// Appends `writeErrors` if there are any.
pub(super) fn write_errors(reply: &mut Builder, errors: &[(usize, Refusal)]) {
    if errors.is_empty() {
        return;
    }
    reply.open(Kind::Array, "writeErrors");
    for (at, (index, refusal)) in errors.iter().enumerate() {
        reply.open(Kind::Document, at.to_string());
        reply
            .count("index", *index as u64)
            .i32("code", refusal.code.number());
        for element in refusal.details.iter().flat_map(|details| Document(details)) {
            reply.value(element.name, element.value);
        }
        reply.str("errmsg", &refusal.message).close();
    }
    reply.close();
}
