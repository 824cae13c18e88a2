//! Sorting in memory.

use std::collections::VecDeque;

use drumlin_doc::{Code, Document, Refusal, Sort};
use drumlin_doc_store::Failure;

use crate::wire::limits::STAGE_BYTES_MAX;

/// The refusal of what takes too much memory.
pub(crate) fn too_much(what: &str) -> Refusal {
    let text = format!(
        "{what} needs more than {STAGE_BYTES_MAX} bytes, and this server keeps it in memory"
    );
    Refusal::new(Code::MemoryLimit, text)
}

/// Sorts documents in memory; equal ones stay as they came.
#[derive(Debug)]
pub(crate) struct Sorter {
    sort: Sort,
    most: usize,
    documents: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
}

impl Sorter {
    /// Of which only the first `most` are asked for.
    pub(crate) fn new(sort: Sort, most: u64) -> Self {
        Self {
            sort,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            documents: Vec::new(),
            bytes: 0,
        }
    }

    /// The order.
    pub(crate) fn order(&self) -> &Sort {
        &self.sort
    }

    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed`.
    pub(crate) fn push(&mut self, document: Vec<u8>) -> Result<(), Failure> {
        let key = self.sort.key_of(Document(&document));
        self.bytes += key.len() + document.len() + 48;
        self.documents.push((key, document));
        let is_full = self.documents.len() / 2 >= self.most.max(512);
        if is_full || self.bytes > STAGE_BYTES_MAX {
            self.cut();
        }
        match self.bytes > STAGE_BYTES_MAX {
            true => Err(too_much("a sort").into()),
            false => Ok(()),
        }
    }

    fn cut(&mut self) {
        self.documents.sort_by(|a, b| a.0.cmp(&b.0));
        self.documents.truncate(self.most);
        self.bytes = self
            .documents
            .iter()
            .map(|(key, document)| key.len() + document.len() + 48)
            .sum();
    }

    pub(crate) fn finish(mut self) -> VecDeque<Vec<u8>> {
        self.cut();
        self.documents
            .into_iter()
            .map(|(_, document)| document)
            .collect()
    }
}
