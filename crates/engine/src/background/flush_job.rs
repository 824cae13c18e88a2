//! A flush: a family's oldest immutable memtables become one table of L0.

use std::sync::Arc;

use drumlin_base::Result;
use drumlin_fs::IoPriority;
use drumlin_memtable::Memtable;

use crate::background::background::Background;
use crate::background::background::{FILTER_DIVISOR, JOB_BYTES, open_ahead};
use crate::background::compaction_job::blob_counts;
use crate::background::made_files::MadeFiles;
use crate::compaction::flush;
use crate::compaction::flush::Flushed;
use crate::compaction::progress::Progress;
use crate::family::column_family::Family;
use crate::store::state::{FamilyState, State};
use crate::version::VersionEdit;
use crate::watch::events::FlushInfo;
use crate::watch::notices::Notice;
use crate::watch::pressure::JobKind;
use crate::watch::times::Span;

impl Background {
    /// Flushes all of a family's immutable memtables into one table and installs it.
    pub(crate) fn run_flush(&self, id: u32) -> Result<()> {
        let (family, memtables) = {
            let mut state = self.store.lock_state();
            let Ok(family) = state.family_mut(id) else {
                return Ok(());
            };
            (Arc::clone(&family.family), next_to_flush(family))
        };
        assert!(
            !memtables.is_empty(),
            "a flush that was picked has memtables"
        );
        let begun = FlushInfo {
            family: family.name.clone(),
            family_id: id,
            job: self.store.watch.notices.next_job(),
            table: None,
            seqnos: (0, 0),
            bytes: 0,
            properties: None,
            blob_files: Vec::new(),
            blob_codec: self.blob_codec(&family),
        };
        let notices = &self.store.watch.notices;
        notices.note(|| Notice::FlushBegun(begun.clone()));
        let pending = self.store.begin_job()?;
        let bytes: usize = memtables.iter().map(|memtable| memtable.bytes()).sum();
        let what = format!("flush of {} memtables", memtables.len());
        let span = Span::begin(&*self.store.id.env.clock);
        let mut posted = self.post(&family, what, JobKind::Flush, bytes as u64);
        let charge = self
            .store
            .caches
            .charge_job(JOB_BYTES + family.write_buffer() / FILTER_DIVISOR);
        let flushed = self.write_memtables(&family, &memtables, posted.progress())?;
        let mut made = MadeFiles::new(&self.store, flushed.file.iter(), &flushed.blob_files);
        drop(charge);
        self.store.sync_closed_wals()?;
        let ahead = open_ahead(&family, flushed.file.iter())?;
        self.install_flush(&family, &memtables, &flushed, &mut made)?;
        ahead.keep();
        posted.is_done = true;
        drop(posted);
        drop(pending);
        self.store.watch.statistics.flushes.bump();
        let bytes = flushed.bytes_written;
        self.store.watch.statistics.flush_bytes.add(bytes);
        self.store.watch.levels.add(0, 0, bytes);
        span.end(&self.store.watch.times.flush);
        self.store
            .watch
            .statistics
            .blob_bytes_written
            .add(flushed.blob_bytes);
        self.store.watch.notices.note(|| {
            Notice::Flushed(FlushInfo {
                table: flushed.file.as_ref().map(|table| table.number),
                seqnos: flushed
                    .file
                    .as_ref()
                    .map_or((0, 0), |table| (table.smallest_seqno, table.largest_seqno)),
                bytes,
                properties: flushed.file.and_then(|table| table.properties),
                blob_files: blob_counts(&flushed.blob_files),
                ..begun
            })
        });
        Ok(())
    }

    /// Writes `memtables` (oldest first) to a new table for L0 and to blob files, which are not
    /// installed yet.
    ///
    /// Requires: the caller holds a guard of `FileNumbers::begin_job` until it is.
    pub(crate) fn write_memtables(
        &self,
        family: &Arc<Family>,
        memtables: &[Arc<Memtable>],
        progress: Arc<Progress>,
    ) -> Result<Flushed> {
        let _span = tracing::info_span!("flush", family = family.name).entered();
        let context = self.job_context(family, progress, IoPriority::Flush);
        flush::run(&context, memtables)
    }

    fn install_flush(
        &self,
        family: &Arc<Family>,
        flushed: &[Arc<Memtable>],
        made: &Flushed,
        files: &mut MadeFiles<'_>,
    ) -> Result<()> {
        let mut state = self.store.lock_state();
        let is_there = state.families.contains_key(&family.id);
        let outcome = self.install_flush_locked(&mut state, family, flushed, made);
        if outcome.is_ok() {
            if is_there {
                files.keep();
            }
            self.store.remove_obsolete(&mut state);
        }
        self.store.changed.notify_all();
        outcome
    }

    fn install_flush_locked(
        &self,
        state: &mut State,
        family: &Arc<Family>,
        flushed: &[Arc<Memtable>],
        made: &Flushed,
    ) -> Result<()> {
        let Ok(present) = state.family_mut(family.id) else {
            return Ok(()); // The family was dropped meanwhile.
        };
        let waiting = present.immutables.iter().map(|it| &it.memtable);
        let is_same = |(one, other): (&Arc<Memtable>, _)| Arc::ptr_eq(one, other);
        assert!(
            waiting.len() >= flushed.len() && flushed.iter().zip(waiting).all(is_same),
            "the memtables that were flushed are the oldest ones still"
        );
        let next_wal = present
            .immutables
            .get(flushed.len())
            .map_or(present.mutable_oldest_wal, |next| next.oldest_wal);
        // No table tells which numbers the memtables had, and their WAL goes.
        let is_told = made.file.is_some() || self.store.files.archive.is_on();
        let last_seqno = (!is_told).then(|| self.store.visible_seqno());
        let edit = VersionEdit {
            column_family: family.id,
            log_number: Some(next_wal),
            last_seqno,
            new_files: made.file.iter().map(|table| (0, table.clone())).collect(),
            blob_additions: made.blob_files.clone(),
            ..VersionEdit::default()
        };
        let mut edits = vec![edit];
        // Families with nothing in memory need no older WAL either.
        for (&id, other) in &state.families {
            let told = state.versions.family(id).map_or(0, |told| told.log_number);
            let is_empty = other.mutable.is_empty() && other.immutables.is_empty();
            // Only a synced WAL is released; a WAL may have been closed since.
            let needed = other.mutable_oldest_wal.min(next_wal);
            if id != family.id && is_empty && told < needed {
                let log_number = Some(needed);
                let column_family = id;
                edits.push(VersionEdit {
                    column_family,
                    log_number,
                    ..VersionEdit::default()
                });
            }
        }
        self.store
            .log_flush(state, edits, (family.id, flushed.len()))
    }
}

/// The oldest memtables to be flushed together: one, or as many small ones as make up one. More at
/// once would free none until all are written, while writers fill the rest of the line.
fn next_to_flush(family: &FamilyState) -> Vec<Arc<Memtable>> {
    let mut room = family.family.write_buffer();
    let mut taken = Vec::new();
    for immutable in &family.immutables {
        let bytes = immutable.memtable.bytes();
        if !taken.is_empty() && bytes > room {
            break;
        }
        room = room.saturating_sub(bytes);
        taken.push(Arc::clone(&immutable.memtable));
    }
    taken
}
