//! `insert`.

use drumlin::ErrorKind;
use drumlin_doc::{Builder, Code, Document, Refusal};
use drumlin_doc_store::{Failure, Inserted, Name, Outcome, Pace};

use crate::wire::limits::WRITES_MAX;

use super::call::{Call, is_of_any, not_at_once};
use super::concerns::syncs_writes;
use super::shape::Shape;
use super::write_reply::write_errors;

/// Most documents that are inserted at once.
const AT_ONCE_MAX: usize = 16;

/// Whether it has few documents, and waits for no sync.
pub(super) fn is_short(call: &Call<'_>) -> bool {
    let is_plain = |name: &str| matches!(name, "documents" | "ordered" | "writeConcern");
    let mut arguments = call.body.iter().skip(1).map(|it| it.name_str());
    let is_plain = arguments.all(|name| is_plain(name) || is_of_any(name));
    let documents = call.documents("documents");
    is_plain
        && documents.is_ok_and(|documents| documents.len() <= AT_ONCE_MAX)
        && syncs_writes(call.name, call.body) == Ok(false)
}

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
    let done = match call.pace {
        Pace::InTurn => insert_into(call, &name, &documents, ordered),
        Pace::AtOnce => insert_at_once(call, &name, &documents, ordered),
    };
    let counters = &call.shared.counters;
    if !matches!(&done, Err(Failure::Engine(error)) if error.kind() == ErrorKind::Incomplete) {
        counters.inserts.add(documents.len() as u64);
    }
    let done = done?;
    counters.inserted.add(done.count);
    let mut reply = Builder::new();
    reply.count("n", done.count);
    write_errors(&mut reply, &done.errors);
    Ok(reply)
}

/// Inserts, and makes the collection where it is not there.
pub(super) fn insert_into(
    call: &Call<'_>,
    name: &Name,
    documents: &[Document<'_>],
    ordered: bool,
) -> Outcome<Inserted> {
    loop {
        let done = call
            .shared
            .store
            .insert_with(name, documents, ordered, call.manner())?;
        if let Some(done) = done {
            call.shared.tell_tails(name);
            return Ok(done);
        }
        call.shared.store.create(name)?;
    }
}

fn insert_at_once(
    call: &Call<'_>,
    name: &Name,
    documents: &[Document<'_>],
    ordered: bool,
) -> Outcome<Inserted> {
    let store = &call.shared.store;
    let done = store.insert_with(name, documents, ordered, call.manner())?;
    call.shared.tell_tails(name);
    // A collection is made in its turn.
    done.ok_or_else(not_at_once)
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
