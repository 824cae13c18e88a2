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

/// Bytes of a reply beyond which errors have no details either: those of a hundred thousand errors may be more than a reply holds, and
/// without them these are 6 MiB.
const DETAILS_BYTES_MAX: usize = 4 << 20;

/// The details of a refusal, where a reply that has so many bytes has room for them.
pub(super) fn details_of(refusal: &Refusal, bytes: usize) -> Document<'_> {
    let details = refusal.details.as_deref();
    let details = details.filter(|it| bytes + it.len() <= DETAILS_BYTES_MAX);
    details.map_or(Document::EMPTY, Document)
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
        for element in details_of(refusal, reply.len()) {
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

    #[test]
    fn details_of_many_errors_end_where_there_is_no_room() {
        let mut details = Builder::new();
        details.str("errInfo", &"x".repeat(4000));
        let refusal = Refusal {
            details: Some(details.finish()),
            ..Refusal::new(Code::DocumentValidationFailure, "x")
        };
        let errors: Vec<_> = (0..10_000).map(|at| (at, refusal.clone())).collect();
        let mut reply = Builder::new();
        write_errors(&mut reply, &errors);
        let reply = reply.finish();
        assert!(reply.len() < 2 * DETAILS_BYTES_MAX);
        let all = Document(&reply).get("writeErrors").expect("there are some");
        let all = all.as_array().expect("an array").iter();
        let has: Vec<_> = all
            .map(|it| it.value.as_document().expect("a document"))
            .map(|it| it.get("errInfo").is_some())
            .collect();
        assert_eq!(has.len(), 10_000);
        assert_eq!((has.first(), has.last()), (Some(&true), Some(&false)));
    }
}
