//! Whether indexes and counts tell of the documents that are there.

use drumlin::{Error, Result};
use drumlin_doc::Document;

use crate::catalog::Collection;
use crate::form;
use crate::index::Entry;
use crate::layout::range_of;
use crate::reads::Reads;

impl Reads<'_> {
    /// Reads the whole collection and its indexes, and compares them. Needs the memory of the entries of one index. Nobody may
    /// write meanwhile where counts are to be exact.
    ///
    /// # Errors
    /// `Corruption` with the first difference; of the engine.
    pub fn check(&self, collection: &Collection) -> Result<()> {
        let wrong = |text: String| Error::corruption(format!("{}: {text}", collection.name));
        let (mut documents, mut bytes) = (0, 0);
        let mut wanted: Vec<Vec<Entry>> = vec![Vec::new(); collection.indexes.len()];
        let mut cursor = self.cursor(false, range_of(collection.ident));
        cursor.seek_to_first();
        while cursor.valid() {
            let id = cursor.key().get(4..).unwrap_or_default();
            let document = form::decode(id, cursor.try_value()?)?;
            if collection.bounds().is_some() && !collection.has_given(id) {
                return Err(wrong(format!(
                    "a document has the place {id:?}, which is none of its"
                )));
            }
            documents += 1;
            bytes += document.len() as u64;
            for (index, wanted) in collection.indexes.iter().zip(&mut wanted) {
                let entries = index.entries(Document(&document), id);
                let (entries, is_multikey) =
                    entries.map_err(|refusal| wrong(refusal.to_string()))?;
                if is_multikey && !index.is_multikey() {
                    return Err(wrong(format!(
                        "the index {} does not know of its arrays",
                        index.name
                    )));
                }
                wanted.extend(entries);
            }
            cursor.next();
        }
        cursor.status()?;
        let counts = (collection.documents(), collection.bytes());
        if counts != (documents, bytes) {
            return Err(wrong(format!(
                "counts are {counts:?}, and it has {documents} documents of {bytes} bytes"
            )));
        }
        for (index, mut wanted) in collection.indexes.iter().zip(wanted) {
            wanted.sort();
            let mut wanted = wanted.into_iter();
            let mut cursor = self.cursor(true, range_of(index.ident));
            cursor.seek_to_first();
            while cursor.valid() {
                let entry = Entry {
                    key: cursor.key().to_vec(),
                    value: cursor.try_value()?.to_vec(),
                };
                if wanted.next().as_ref() != Some(&entry) {
                    return Err(wrong(format!(
                        "the index {} has the entry {entry:?} for no document",
                        index.name
                    )));
                }
                cursor.next();
            }
            cursor.status()?;
            if let Some(entry) = wanted.next() {
                return Err(wrong(format!(
                    "the index {} lacks the entry {entry:?}",
                    index.name
                )));
            }
        }
        Ok(())
    }
}
