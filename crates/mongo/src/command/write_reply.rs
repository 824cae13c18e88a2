//! Replies of writes: counts, and errors by the place of their statement.

use drumlin_doc::{Builder, Document, Kind, Refusal};
use drumlin_doc_store::{Failure, Outcome};

use super::refusals::refusal_of;

/// Notes what was refused of the statement at `at`. Whether the next one is run.
///
/// # Errors
/// Those of the engine, and those of who looks whether to go on: they end the command.
pub(super) fn goes_on(
    outcome: Outcome<()>,
    (at, ordered): (usize, bool),
    errors: &mut Vec<(usize, Refusal)>,
) -> Outcome<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(Failure::Engine(error)) => Err(error.into()),
        Err(Failure::Refused(refusal)) if refusal.code.is_end() => Err(refusal.into()),
        Err(failure) => {
            errors.push((at, refusal_of(failure)));
            Ok(!ordered)
        }
    }
}

/// Bytes of a reply from which on errors have no text, as MongoDB has it.
pub(super) const TEXTS_BYTES_MAX: usize = 1 << 20;

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
        let text = match reply.len() > TEXTS_BYTES_MAX {
            false => refusal.message.as_str(),
            true => "",
        };
        reply.str("errmsg", text).close();
    }
    reply.close();
}

#[cfg(test)]
mod tests {
    use drumlin_doc::Code;

    use super::*;

    #[test]
    fn texts_of_many_errors_end_where_there_is_no_room() {
        let refusal = Refusal::new(Code::BadValue, "x".repeat(1000));
        let errors: Vec<_> = (0..10_000).map(|at| (at, refusal.clone())).collect();
        let mut reply = Builder::new();
        write_errors(&mut reply, &errors);
        let reply = reply.finish();
        assert!(reply.len() < 2 * TEXTS_BYTES_MAX);
        let all = Document(&reply).get("writeErrors").expect("there are some");
        let all = all.as_array().expect("an array").iter();
        let texts: Vec<_> = all
            .map(|it| it.value.as_document().expect("a document"))
            .map(|it| it.get("errmsg").and_then(|it| it.as_str()).map(str::len))
            .collect();
        assert_eq!(texts.len(), 10_000);
        assert_eq!(texts.first(), Some(&Some(1000)));
        assert_eq!(texts.last(), Some(&Some(0)));
    }
}
