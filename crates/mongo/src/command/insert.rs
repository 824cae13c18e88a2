//! `insert`.

use drumlin_doc::{Builder, Code, Document, Refusal};
use drumlin_doc_store::{Inserted, Name, Outcome};

use crate::shared::Shared;
use crate::wire::limits::WRITES_MAX;

use super::call::Call;
use super::shape::Shape;
use super::write_reply::write_errors;

/// See the module.
pub(super) fn insert(call: &Call<'_>) -> Outcome<Builder> {
    call.accept(
        &["documents", "ordered", "bypassDocumentValidation"],
        &["encryptionInformation"],
    )?;
    call.check(&[
        ("ordered", Shape::Flag),
        ("bypassDocumentValidation", Shape::Truth),
    ])?;
    let name = call.collection()?;
    let documents = call.documents("documents")?;
    check_count(documents.len())?;
    let ordered = call.is_ordered();
    let with_ids: Vec<Vec<u8>> = documents
        .iter()
        .map(|document| call.shared.with_id(*document))
        .collect();
    let documents: Vec<Document<'_>> = with_ids.iter().map(|document| Document(document)).collect();
    let counters = &call.shared.counters;
    counters.inserts.add(documents.len() as u64);
    let done = insert_into(call.shared, &name, &documents, ordered)?;
    counters.inserted.add(done.count);
    let mut reply = Builder::new();
    reply.count("n", done.count);
    write_errors(&mut reply, &done.errors);
    Ok(reply)
}

/// Inserts, and makes the collection where it is not there.
pub(super) fn insert_into(
    shared: &Shared,
    name: &Name,
    documents: &[Document<'_>],
    ordered: bool,
) -> Outcome<Inserted> {
    loop {
        if let Some(done) = shared.store.insert(name, documents, ordered)? {
            return Ok(done);
        }
        shared.store.create(name)?;
    }
}

/// # Errors
/// `InvalidLength` for none, and for too many.
pub(super) fn check_count(statements: usize) -> Result<(), Refusal> {
    match (1..=WRITES_MAX).contains(&statements) {
        true => Ok(()),
        false => {
            let text = format!(
                "Write batch sizes must be between 1 and {WRITES_MAX}. Got {statements} operations."
            );
            Err(Refusal::new(Code::InvalidLength, text))
        }
    }
}
