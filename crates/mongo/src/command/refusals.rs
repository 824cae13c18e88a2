//! What clients are told when something did not happen.

use drumlin::ErrorKind;
use drumlin_doc::{Builder, Code, Document, Refusal};
use drumlin_doc_store::Failure;

/// What a client is told of a failure.
pub(super) fn refusal_of(failure: Failure) -> Refusal {
    let error = match failure {
        Failure::Refused(refusal) => return refusal,
        Failure::Engine(error) => error,
    };
    let code = match error.kind() {
        ErrorKind::NoSpace => Code::OutOfDiskSpace,
        ErrorKind::TooLarge => Code::BsonObjectTooLarge,
        _ => Code::InternalError,
    };
    Refusal::new(code, error.to_string())
}

/// The reply that tells of an error.
pub(crate) fn refused(refusal: &Refusal) -> Vec<u8> {
    let mut reply = Builder::new();
    reply.f64("ok", 0.0).str("errmsg", &refusal.message);
    reply
        .i32("code", refusal.code.number())
        .str("codeName", refusal.code.name());
    for element in refusal.details.iter().flat_map(|details| Document(details)) {
        reply.value(element.name, element.value);
    }
    reply.finish()
}
