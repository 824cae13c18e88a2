//! Writes, families and maintenance.

use std::path::PathBuf;

use drumlin::{
    CancelToken, ColumnFamily, ErrorKind, Health, Result, SstFileWriter, TableWriterOptions,
    WriteBatch, WriteOptions,
};
use drumlin_testkit::model::Change;

use super::{World, refusal, unless};
use crate::expected::external;
use crate::generate::KEY_BYTES_MAX;
use crate::op::{Edit, Op};
use crate::verb::Verb;

impl World<'_> {
    fn batch(&self, edits: &[Edit]) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        for edit in edits {
            let family = self.family(&edit.family).map_or(0, |family| family.id());
            match edit.change() {
                Change::Put(key, value) => batch.put_cf(family, &key, &value),
                Change::Delete(key) => batch.delete_cf(family, &key),
                Change::SingleDelete(key) => batch.single_delete_cf(family, &key),
                Change::Merge(key, operand) => batch.merge_cf(family, &key, &operand),
                Change::DeleteRange(begin, end) => batch.delete_range_cf(family, &begin, &end),
            }?;
        }
        Ok(batch)
    }

    pub(super) fn write(&mut self, op: &Op, family: &ColumnFamily) -> Result<String> {
        let mut options = WriteOptions::default();
        match op.verb {
            Verb::PutParallel => self.write_parallel(op)?,
            Verb::PutUnlogged => {
                self.barrier()?;
                options.no_wal = true;
                options.sync = Some(false);
                self.db().write(self.batch(&op.edits)?, &options)?;
                self.db().flush_cf(family)?;
                self.barrier()?;
            }
            Verb::PutSynced => {
                options.sync = Some(true);
                self.db().write(self.batch(&op.edits)?, &options)?;
                self.barrier()?;
            }
            Verb::PutImpatient => {
                options.no_stall = true;
                let outcome = self.db().write(self.batch(&op.edits)?, &options);
                let busy = matches!(&outcome, Err(error) if error.kind() == ErrorKind::Busy);
                unless(outcome, |error| error.kind() == ErrorKind::Busy)?;
                if busy {
                    let options = WriteOptions::default();
                    self.db().write(self.batch(&op.edits)?, &options)?;
                }
            }
            Verb::BatchAppended => {
                let (first, second) = op.edits.split_at(op.edits.len() / 2);
                let mut batch = self.batch(first)?;
                batch.append(&self.batch(second)?)?;
                self.db().write(batch, &options)?;
            }
            Verb::BatchFromBytes => {
                let bytes = self.batch(&op.edits)?.bytes().to_vec();
                self.db().write(WriteBatch::from_bytes(bytes)?, &options)?;
            }
            Verb::BatchWithLogData => {
                let mut batch = self.batch(&op.edits)?;
                batch.put_log_data(b"a note")?;
                self.db().write(batch, &options)?;
            }
            Verb::BatchEmpty => self.db().write(WriteBatch::new(), &options)?,
            _ => self.db().write(self.batch(&op.edits)?, &options)?,
        }
        Ok("ok".to_owned())
    }

    /// Threads side by side; the changes of one key stay with one of them, in order.
    fn write_parallel(&mut self, op: &Op) -> Result<()> {
        let threads = 2 + (op.count % 3) as usize;
        let of = |edit: &Edit| {
            let sum = edit
                .key
                .iter()
                .map(|byte| usize::from(*byte))
                .sum::<usize>();
            (sum + edit.key.len()) % threads
        };
        let mut batches: Vec<Vec<WriteBatch>> = vec![Vec::new(); threads];
        for edit in &op.edits {
            batches[of(edit)].push(self.batch(std::slice::from_ref(edit))?);
        }
        let db = self.db();
        let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
            let work = |mine: Vec<WriteBatch>| {
                scope.spawn(move || {
                    let mut mine = mine.into_iter();
                    mine.try_for_each(|batch| db.write(batch, &WriteOptions::default()))
                })
            };
            let threads: Vec<_> = batches.into_iter().map(work).collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined
                .map(|end| end.expect("writers do not panic"))
                .collect()
        });
        outcomes.into_iter().collect::<Result<()>>()?;
        // Their order is not known, so the states that a power cut may leave are not known either.
        self.barrier()
    }

    pub(super) fn write_refused(&mut self, op: &Op, family: &ColumnFamily) -> Result<String> {
        let options = WriteOptions::default();
        let db = self.db();
        Ok(match op.verb {
            Verb::DeleteRangeInverted => {
                refusal(db.delete_range_cf(family, op.key(0), op.key(1), &options))
            }
            Verb::MergeRefused if !family.name().starts_with('n') => {
                "it has an operator".to_owned()
            }
            Verb::MergeRefused => refusal(db.merge_cf(family, op.key(0), b"operand", &options)),
            _ => {
                let key = vec![b'k'; KEY_BYTES_MAX + 1];
                refusal(db.put_cf(family, key, b"value", &options))
            }
        })
    }

    pub(super) fn create_family(&mut self, op: &Op) -> Result<String> {
        self.barrier()?;
        let made = self
            .db()
            .create_family(&op.family, self.choice.family(&op.family));
        let said = refusal(made);
        self.barrier()?;
        Ok(said)
    }

    pub(super) fn change_family(&mut self, op: &Op, family: &ColumnFamily) -> Result<String> {
        if op.verb == Verb::CreateFamilyTwice {
            return self.create_family(op);
        }
        self.barrier()?;
        let said = refusal(self.db().drop_family(family));
        if said == "ok" {
            self.dropped = Some(family.clone());
        }
        self.barrier()?;
        Ok(said)
    }

    pub(super) fn ingest(&mut self, op: &Op, family: &ColumnFamily) -> Result<String> {
        if op.edits.is_empty() {
            return Ok("nothing".to_owned());
        }
        self.barrier()?;
        let half = match op.verb {
            Verb::IngestTwo => op.edits.len() / 2,
            _ => 0,
        };
        let (first, second) = op.edits.split_at(half);
        let mut paths = Vec::new();
        for part in [first, second] {
            if !part.is_empty() {
                paths.push(self.external_table(part, family)?);
            }
        }
        let moved = op.verb == Verb::IngestMoved;
        self.db().ingest(family, &paths, moved)?;
        self.ingested = true;
        if !moved {
            let files = self.disk.file_system();
            paths.iter().try_for_each(|path| files.remove(path))?;
        }
        self.barrier()?;
        Ok("ok".to_owned())
    }

    fn external_table(&mut self, edits: &[Edit], family: &ColumnFamily) -> Result<PathBuf> {
        let path = self.disk.fresh("external");
        let options = self.disk.options(&self.choice);
        let table = TableWriterOptions {
            order: family.order().clone(),
            format: options.family.table_format.unwrap_or_default(),
            compression: options.compression,
            block_bytes: options.tuning.block_bytes,
            // Without these, a repair would take the table for one of the default family.
            family_id: family.id(),
            family_name: family.name().to_owned(),
            ..TableWriterOptions::default()
        };
        let mut writer = SstFileWriter::create(&options.env, &path, table)?;
        let mut entries = external(edits);
        entries.sort_by(|a, b| family.order().compare(&a.key, &b.key));
        for edit in entries {
            match edit.change() {
                Change::Put(key, value) => writer.put(&key, &value),
                Change::Merge(key, operand) => writer.merge(&key, &operand),
                Change::Delete(key) => writer.delete(&key),
                Change::DeleteRange(begin, end) => writer.delete_range(&begin, &end),
                Change::SingleDelete(_) => Ok(()),
            }?;
        }
        writer.finish()?;
        Ok(path)
    }

    pub(super) fn maintain(&mut self, op: &Op, family: &ColumnFamily) -> Result<String> {
        let db = self.db().clone();
        match op.verb {
            Verb::Flush => db.flush_cf(family)?,
            Verb::FlushAll => db.flush()?,
            Verb::SyncWal => self.barrier()?,
            Verb::Wait => db.wait_for_background()?,
            Verb::Compact => db.compact_range(family, None, None)?,
            Verb::CompactRange => {
                let begin = (op.count & 1 != 0).then(|| op.key(0));
                let end = (op.count & 2 != 0).then(|| op.key(1));
                db.compact_range(family, begin, end)?;
            }
            Verb::CompactCancelled => {
                let cancel = CancelToken::new();
                cancel.cancel();
                let outcome = db.compact_range_until(family, None, None, &cancel);
                unless(outcome, |error| error.kind() == ErrorKind::Aborted)?;
            }
            Verb::Verify => {
                let damaged = db.verify()?.damaged;
                if !damaged.is_empty() {
                    return Ok(format!("damaged: {damaged:?}"));
                }
            }
            Verb::Properties => {
                let errors = db.property(family, "rocksdb.background-errors");
                let health = db.health();
                if errors.as_deref() != Some("0") || health != Health::Healthy {
                    return Ok(format!("{errors:?} errors, {health:?}"));
                }
            }
            Verb::Explain => {
                if db.explain(family, None).is_empty() {
                    return Ok("nothing explained".to_owned());
                }
            }
            Verb::Advance => self.disk.advance(op.count),
            _ => {
                let seqno = db.latest_seqno();
                if seqno < self.seqno {
                    return Ok(format!("{seqno} after {}", self.seqno));
                }
                self.seqno = seqno;
            }
        }
        Ok("ok".to_owned())
    }
}
