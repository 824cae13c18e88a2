//! Catalog and data of one moment.

use std::sync::Arc;

use drumlin::{Db, DbIterator, Error, ReadOptions, ReadTier, Result, View};
use drumlin_doc::Document;

use crate::catalog::{Catalog, Collection, Name};
use crate::failure::Outcome;
use crate::families::Families;
use crate::form;
use crate::layout::under;
use crate::plan::Range;

/// Who is shown documents, with the keys that they lie under; whether to go on.
pub(crate) type Visit<'v> = dyn FnMut(&[u8], Document<'_>) -> Outcome<bool> + 'v;

/// See the module. It holds memory and files of its moment: for a command, not for hours.
#[derive(Clone, Debug)]
pub struct Reads<'a> {
    pub(crate) db: &'a Db,
    pub(crate) families: &'a Families,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) view: View,
    pub(crate) tier: ReadTier,
}

impl Reads<'_> {
    /// The collections.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The collection of that name.
    pub fn collection(&self, name: &Name) -> Option<Arc<Collection>> {
        self.catalog.get(name).cloned()
    }

    /// The document under that key: of its `_id`, or its place in a capped collection.
    ///
    /// # Errors
    /// Of the engine; `Incomplete` where the disk would have to be read and must not be.
    pub fn document(&self, collection: &Collection, id_key: &[u8]) -> Result<Option<Vec<u8>>> {
        let key = under(collection.ident, id_key);
        let options = ReadOptions {
            tier: self.tier,
            ..ReadOptions::default()
        };
        let stored = self.view.get_cf(&self.families.docs, key, &options)?;
        stored
            .map(|stored| Ok(form::decode(id_key, &stored)?.into_owned()))
            .transpose()
    }

    /// The document that an entry of the index of that name refers to.
    ///
    /// # Errors
    /// As of [`Reads::document`]; `Corruption` where there is none.
    pub(crate) fn document_of(
        &self,
        collection: &Collection,
        (index, id_key): (&str, &[u8]),
    ) -> Result<Vec<u8>> {
        let document = self.document(collection, id_key)?;
        document.ok_or_else(|| {
            Error::corruption(format!(
                "the index {index} of {} has an entry without a document",
                collection.name
            ))
        })
    }

    /// About how many documents, or entries of indexes, lie in ranges, by what tables say of themselves.
    pub(crate) fn entries_about<const N: usize>(
        &self,
        of_index: bool,
        all: [&[Range]; N],
    ) -> Result<[u64; N]> {
        let family = match of_index {
            true => &self.families.index,
            false => &self.families.docs,
        };
        let mut sums = [0; N];
        for (sum, ranges) in sums.iter_mut().zip(all) {
            let ranges = ranges.iter();
            let ranges: Vec<_> = ranges
                .map(|(begin, end)| (begin.as_slice(), end.as_slice()))
                .collect();
            let usage = self.db.approximate_usage(family, &ranges)?;
            *sum = usage.iter().map(|usage| usage.entries).sum();
        }
        Ok(sums)
    }

    /// A cursor over documents (`None`) or over the entries of indexes, between two keys.
    pub(crate) fn cursor(&self, of_index: bool, (begin, end): (Vec<u8>, Vec<u8>)) -> DbIterator {
        let families = self.families;
        let family = if of_index {
            &families.index
        } else {
            &families.docs
        };
        let options = ReadOptions {
            lower_bound: Some(begin),
            upper_bound: Some(end),
            tier: self.tier,
            ..ReadOptions::default()
        };
        self.view.iter_cf(family, &options)
    }
}
