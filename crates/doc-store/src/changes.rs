//! What a change of a document changes in indexes.

use drumlin::WriteBatch;
use drumlin_doc::Document;

use crate::catalog::Collection;
use crate::failure::Outcome;
use crate::index::Entry;
use crate::pace::Pace;
use crate::store::Store;

impl Store {
    /// Refuses a change that brings a key of a unique index that another document has; one that is being built is given up.
    pub(crate) fn refuse_duplicates(
        &self,
        collection: &Collection,
        changes: &Changes,
        after: Option<Document<'_>>,
        pace: Pace,
    ) -> Outcome<()> {
        for (index, change) in collection.kept_up().zip(&changes.of_indexes) {
            for entry in change.new.iter().filter(|_| index.unique) {
                let found =
                    self.db
                        .get_cf(&self.families.index, &entry.key, &pace.read_options())?;
                if found.is_some() {
                    let document = after.unwrap_or(Document::EMPTY);
                    let why = index.duplicate(&collection.name.to_string(), document);
                    collection.give_up(index, why)?;
                }
            }
        }
        Ok(())
    }

    /// Appends it.
    pub(crate) fn write_changes(
        &self,
        collection: &Collection,
        changes: &Changes,
        batch: &mut WriteBatch,
        pace: Pace,
    ) -> Outcome<()> {
        let family = self.families.index.id();
        for (index, change) in collection.kept_up().zip(&changes.of_indexes) {
            if change.is_multikey {
                self.mark_multikey(index, batch)?;
            }
            let is_built = collection.is_building(index);
            for entry in &change.old {
                if is_built && index.unique && !self.has_entry(entry, pace)? {
                    continue; // The build has not been here, and the key may be another document's by now.
                }
                if !drumlin_base::bug!("mongo-old-entries-stay") {
                    batch.delete_cf(family, &entry.key)?;
                }
            }
            for entry in &change.new {
                batch.put_cf(family, &entry.key, &entry.value)?;
            }
        }
        Ok(())
    }

    /// Whether a unique index has this entry, of this document.
    fn has_entry(&self, entry: &Entry, pace: Pace) -> Outcome<bool> {
        let options = pace.read_options();
        let stored = self.db.get_cf(&self.families.index, &entry.key, &options)?;
        Ok(stored.is_some_and(|stored| *stored == *entry.value)
            || drumlin_base::bug!("mongo-built-keys-of-others-removed"))
    }
}

/// Entries that go, and entries that come, of one index.
struct Change {
    old: Vec<Entry>,
    new: Vec<Entry>,
    is_multikey: bool,
    is_unique: bool,
}

pub(crate) struct Changes {
    of_indexes: Vec<Change>,
}

impl Changes {
    pub(crate) fn of(
        collection: &Collection,
        before: Document<'_>,
        after: Option<Document<'_>>,
        id_key: &[u8],
    ) -> Outcome<Self> {
        let mut of_indexes = Vec::new();
        for index in collection.kept_up() {
            let (mut old, _) = collection.entries(index, before, id_key)?;
            let (mut new, is_multikey) = match after {
                Some(after) => collection.entries(index, after, id_key)?,
                None => (Vec::new(), false),
            };
            let stays: Vec<Entry> = old
                .iter()
                .filter(|entry| new.binary_search(entry).is_ok())
                .cloned()
                .collect();
            old.retain(|entry| stays.binary_search(entry).is_err());
            new.retain(|entry| stays.binary_search(entry).is_err());
            of_indexes.push(Change {
                old,
                new,
                is_multikey,
                is_unique: index.unique,
            });
        }
        Ok(Self { of_indexes })
    }

    pub(crate) fn new_unique(&self) -> impl Iterator<Item = &Entry> {
        let unique = self.of_indexes.iter().filter(|change| change.is_unique);
        unique.flat_map(|change| &change.new)
    }
}
