//! Puts logged batches into the memtables.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use drumlin_base::{Error, ErrorKind, Result, ValueKind};
use drumlin_memtable::Memtable;

use crate::write::batch::{BatchIter, WriteBatch};
use crate::write::env::WriteEnv;

impl WriteEnv {
    /// Puts every record of `batches` into its memtable. A panic of the user's key order fails the group:
    /// other groups wait for it, and nothing logged after it may be seen.
    pub(super) fn apply_or_fail<'a>(
        &self,
        batches: impl IntoIterator<Item = &'a WriteBatch>,
    ) -> Result<()> {
        let apply = AssertUnwindSafe(|| self.apply_each(batches));
        catch_unwind(apply).unwrap_or_else(|cause| {
            let message = format!(
                "a key order or prefix extractor panicked while a write was applied: {}",
                said(&*cause)
            );
            Err(Error::new(ErrorKind::Aborted, message))
        })
    }

    fn apply_each<'a>(&self, batches: impl IntoIterator<Item = &'a WriteBatch>) -> Result<()> {
        let families = self.store.families.load();
        for batch in batches.into_iter().filter(|batch| batch.count() > 0) {
            let mut seqno = batch.seqno();
            let mut records = batch.iter();
            let mut run = records.clone();
            let mut next = records.next().transpose()?;
            while let Some(mut record) = next {
                let id = record.family;
                let family = families
                    .get(&id)
                    .filter(|family| family.check_alive().is_ok());
                // A family dropped since the check takes its writes with it.
                let super_version = family.map(|family| (family, family.super_version.load()));
                let own = run;
                let other = loop {
                    if let Some((_, super_version)) = &super_version {
                        super_version
                            .memtable
                            .add(seqno, record.kind, record.key, record.value);
                    }
                    seqno += 1;
                    run = records.clone();
                    match records.next() {
                        Some(Ok(same)) if same.family == id => record = same,
                        other => break other,
                    }
                };
                if let Some((_, super_version)) = &super_version {
                    cut_dead_spans(&super_version.memtable, id, own);
                }
                if let Some((family, super_version)) = super_version
                    && family.account(&super_version.memtable)
                {
                    self.full.add(id);
                }
                next = other.transpose()?;
            }
            debug_assert_eq!(seqno, batch.seqno() + u64::from(batch.count()));
            self.store
                .watch
                .statistics
                .bytes_written
                .add(batch.len() as u64);
        }
        Ok(())
    }
}

/// Tells the notes of walks what was added to `memtable`: the records of family `id` that `run` begins with.
fn cut_dead_spans(memtable: &Memtable, id: u32, run: BatchIter<'_>) {
    let records = run.map_while(Result::ok);
    let own = records.take_while(|record| record.family == id);
    let shows = own.filter(|record| {
        let deletes = [
            ValueKind::Deletion,
            ValueKind::SingleDeletion,
            ValueKind::RangeDeletion,
        ];
        !deletes.contains(&record.kind)
    });
    memtable
        .dead_spans()
        .cut(memtable.order(), shows.map(|record| record.key));
}

/// The message of a panic.
fn said(cause: &(dyn Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| cause.downcast_ref::<&str>().copied())
        .unwrap_or("it gave no reason")
}
