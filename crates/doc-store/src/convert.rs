//! A capped collection made from one that is there.

use drumlin::WriteBatch;
use drumlin_base::sync::atomic::Ordering;
use drumlin_doc::{Code, Document, Refusal, step};

use crate::catalog::{Collection, Name};
use crate::ddl::{BUILD_BYTES, check_name, put_entry};
use crate::failure::Outcome;
use crate::form;
use crate::layout::{BUILDING, Ident, mark_key, range_of, under};
use crate::options::Bounds;
use crate::store::Store;

impl Store {
    /// Copies the newest documents of a collection, as many as `bounds` have room for, into a new capped one, in the collection's order;
    /// with `from` as `to` it takes the place of the old one. Secondary indexes do not come along. Costs as many writes as documents;
    /// writers of the collection wait meanwhile, readers do not. It is there whole or not at all, also after a power cut.
    ///
    /// # Errors
    /// `NamespaceNotFound`, `NamespaceExists`, `InvalidNamespace`; of the engine.
    pub fn convert_to_capped(&self, from: &Name, to: &Name, bounds: Bounds) -> Outcome<()> {
        check_name(to)?;
        let _catalog = self.catalog_after_builds(&|it| [from, to].contains(&&it.name));
        let refuse = |code, text: String| Err(Refusal::new(code, text).into());
        let Some(source) = self.collection(from) else {
            let text = format!("source collection {from} does not exist");
            return refuse(Code::NamespaceNotFound, text);
        };
        source.refuse_view()?;
        let present = self.collection(to).filter(|_| from != to);
        if let Some(present) = present {
            present.refuse_view()?;
            return refuse(Code::NamespaceExists, format!("{to} already exists"));
        }
        let _alone = self.locks.alone(source.ident);
        let mut batch = WriteBatch::new();
        let mut options = source.options.clone();
        options.capped = Some(bounds);
        let target = self.new_collection(to, options, &mut batch)?;
        // Until it is done, what a crash leaves is known by these marks.
        let indexes = target.indexes.iter().map(|index| index.ident);
        let idents: Vec<Ident> = indexes.chain([target.ident]).collect();
        for ident in &idents {
            batch.put(&mark_key(BUILDING, *ident), &[])?;
        }
        self.commit(batch)?;
        let copied = self.copy(&source, &target, bounds);
        let mut batch = WriteBatch::new();
        for ident in &idents {
            batch.delete(&mark_key(BUILDING, *ident))?;
        }
        let (documents, bytes) = match copied {
            Ok(counts) => counts,
            Err(failure) => {
                for ident in idents {
                    self.remove_range(ident, &mut batch)?;
                }
                self.commit(batch)?;
                return Err(failure);
            }
        };
        if from == to {
            self.remove(&source, &mut batch)?;
        }
        put_entry(&target, &mut batch)?;
        self.count(&target, &mut batch, documents, bytes)?;
        target.counts.add(documents, bytes);
        self.change(batch, |catalog| catalog.with(target))
    }

    /// Writes the documents; how many there are, and how many bytes they have.
    fn copy(
        &self,
        source: &Collection,
        target: &Collection,
        bounds: Bounds,
    ) -> Outcome<(u64, u64)> {
        let reads = self.reads();
        let (mut documents, mut bytes) = (source.documents(), source.bytes());
        let mut cursor = reads.cursor(false, range_of(source.ident));
        let mut batch = WriteBatch::new();
        cursor.seek_to_first();
        while cursor.valid() {
            step()?;
            let key = cursor.key().get(4..).unwrap_or_default();
            let document = form::decode(key, cursor.try_value()?)?;
            if bounds.are_passed(documents, bytes) && documents > 1 {
                documents -= 1;
                bytes = bytes.saturating_sub(document.len() as u64);
            } else {
                let place = target.next_place().to_be_bytes();
                let (family, key) = (self.families.docs.id(), under(target.ident, &place));
                batch.put_cf(family, &key, &target.stored(Document(&document)))?;
                for index in &target.indexes {
                    for entry in index.entries(Document(&document), &place)?.0 {
                        batch.put_cf(self.families.index.id(), &entry.key, &entry.value)?;
                    }
                }
                target.counts.next.fetch_add(1, Ordering::AcqRel);
            }
            if batch.len() > BUILD_BYTES {
                self.commit(std::mem::take(&mut batch))?;
            }
            cursor.next();
        }
        cursor.status()?;
        self.commit(batch)?;
        Ok((documents, bytes))
    }
}
