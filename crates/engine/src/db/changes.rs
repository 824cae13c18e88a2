//! The changes of a database, in their order: the records of its WAL files, those that are kept after their time first.
//!
//! A reader has a position, the sequence number that comes next. A batch begins at it or is passed over, so nothing is
//! told twice; and one that begins after it is an error, so nothing is left out silently.
//!
//! What a reader is shown was published before, unless the reader is of a directory: then it is what a read-only open at
//! that moment would see.
//!
//! Thread safety: a reader belongs to one thread at a time; writers do not wait for it.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drumlin_base::{Error, ErrorKind, Result, SeqNo, ValueKind};
use drumlin_fs::Clock;

use crate::db::engine::Engine;
use crate::db::handle::Db;
use crate::files::names;
use crate::options::file as options_file;
use crate::options::settings::Options;
use crate::options::stored as stored_options;
use crate::wal::archive::WalPin;
use crate::wal::change::{ChangeMark, WhatChanged};
use crate::wal::log::WalMark;
use crate::wal::tail::{TailRecord, WalTail, gap};
use crate::write::batch::{BatchPart, BatchParts, BatchRecord, BatchView, WriteBatch};

/// Longest sleep of a reader that nobody wakes: another process writes, or a sync comes without a write.
const UNWOKEN_MAX: Duration = Duration::from_millis(20);
/// Longest sleep of one that is woken.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Which changes a reader is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangesOptions {
    /// Only those that outlive a power cut: synced writes, and what was written before them. What is shown without this
    /// may be lost by one, and its numbers given to other changes. Default: false.
    pub synced_only: bool,
}

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeEntry<'a> {
    /// `key` has this value.
    Put {
        /// The family's id.
        family: u32,
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// `key` has these columns, in RocksDB's bytes of a wide-column entity.
    PutEntity {
        /// The family's id.
        family: u32,
        /// The key.
        key: &'a [u8],
        /// The columns.
        columns: &'a [u8],
    },
    /// An operand for the family's merge operator.
    Merge {
        /// The family's id.
        family: u32,
        /// The key.
        key: &'a [u8],
        /// The operand.
        operand: &'a [u8],
    },
    /// `key` is gone.
    Delete {
        /// The family's id.
        family: u32,
        /// The key.
        key: &'a [u8],
    },
    /// `key`, which was put once, is gone.
    SingleDelete {
        /// The family's id.
        family: u32,
        /// The key.
        key: &'a [u8],
    },
    /// The keys from `begin` up to, not including, `end` are gone.
    DeleteRange {
        /// The family's id.
        family: u32,
        /// The first key that is covered.
        begin: &'a [u8],
        /// The first that is not.
        end: &'a [u8],
    },
    /// What a program put into its batch for the log alone.
    LogData(&'a [u8]),
    /// The family was created.
    FamilyCreated {
        /// Its id: no other family ever has it.
        family: u32,
        /// Its name.
        name: &'a str,
        /// The name of its key order.
        order: &'a str,
    },
    /// The family was dropped. Writes to it that come later raced with that and did nothing.
    FamilyDropped {
        /// Its id.
        family: u32,
    },
    /// These tables were taken in, in this order, one sequence number each. They can be given to [`Db::ingest`]
    /// elsewhere as long as this change is kept.
    Ingested {
        /// The family's id.
        family: u32,
        /// The tables.
        tables: &'a [PathBuf],
    },
}

/// Changes that were made together: all of one WAL record, one or more of the writers' batches; or a single change
/// that is no write.
#[derive(Clone, Debug)]
pub struct ChangeBatch {
    last: SeqNo,
    /// Empty where it is no write.
    writes: WriteBatch,
    other: Option<(ChangeMark, Vec<PathBuf>)>,
}

impl ChangeBatch {
    /// The sequence number of its first change.
    pub fn seqno(&self) -> SeqNo {
        match &self.other {
            Some((change, _)) => change.seqno,
            None => self.writes.seqno(),
        }
    }

    /// The sequence number of its last change. A reader that is to go on after this batch begins at the one after it.
    pub fn last_seqno(&self) -> SeqNo {
        self.last
    }

    /// The writes, with their sequence number; empty where it is no write.
    pub fn writes(&self) -> &WriteBatch {
        &self.writes
    }

    /// Its changes, in order.
    ///
    /// # Errors
    /// Each `NotSupported` where the WAL names a value in a blob file, as an old RocksDB wrote it.
    pub fn entries(&self) -> impl Iterator<Item = Result<ChangeEntry<'_>>> {
        let other = self.other.iter().map(|(change, tables)| {
            let family = change.family;
            Ok(match &change.what {
                WhatChanged::Created { name, order } => ChangeEntry::FamilyCreated {
                    family,
                    name,
                    order,
                },
                WhatChanged::Dropped => ChangeEntry::FamilyDropped { family },
                WhatChanged::Ingested { .. } => ChangeEntry::Ingested { family, tables },
            })
        });
        let writes = BatchParts::new(self.writes.records()).map(|part| match part? {
            BatchPart::Record(record) => entry(record),
            BatchPart::LogData(data) => Ok(ChangeEntry::LogData(data)),
            BatchPart::Prepared(_) | BatchPart::Commit(_) | BatchPart::Rollback(_) => {
                unreachable!("steps of two-phase commit were resolved")
            }
        });
        other.chain(writes)
    }
}

fn entry(record: BatchRecord<'_>) -> Result<ChangeEntry<'_>> {
    let BatchRecord {
        family,
        kind,
        key,
        value,
    } = record;
    Ok(match kind {
        ValueKind::Value => ChangeEntry::Put { family, key, value },
        ValueKind::Deletion | ValueKind::DeletionWithTimestamp => {
            ChangeEntry::Delete { family, key }
        }
        ValueKind::SingleDeletion => ChangeEntry::SingleDelete { family, key },
        ValueKind::Merge => ChangeEntry::Merge {
            family,
            key,
            operand: value,
        },
        ValueKind::RangeDeletion => ChangeEntry::DeleteRange {
            family,
            begin: key,
            end: value,
        },
        ValueKind::WideColumnEntity => ChangeEntry::PutEntity {
            family,
            key,
            columns: value,
        },
        ValueKind::BlobIndex => {
            return Err(Error::not_supported(
                "a change whose value is in a blob file",
            ));
        }
    })
}

/// Whom a reader waits for.
enum Writer {
    /// This process.
    Here {
        engine: Arc<Engine>,
        synced_only: bool,
        pin: WalPin,
    },
    /// Perhaps another one.
    Elsewhere { clock: Arc<dyn Clock> },
}

/// A reader of changes. [`Iterator::next`] gives what is there now: after `None` there may be more later.
pub struct Changes {
    writer: Writer,
    wal_dir: PathBuf,
    tail: WalTail,
    /// The sequence number that comes next.
    position: SeqNo,
    /// Whether something was told: from there on numbers follow each other.
    is_begun: bool,
    /// What transactions prepared, until their end.
    sections: BTreeMap<Vec<u8>, WriteBatch>,
    /// Log data of records without a sequence number: it goes with the next writes.
    log_data: WriteBatch,
    /// Found and not told yet.
    ready: VecDeque<ChangeBatch>,
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Changes(from {})", self.position)
    }
}

impl Db {
    /// The changes from the sequence number `from` on; 0 and 1 are the first. See [`Options::keep_changes`]. The batch
    /// that holds `from` is told whole.
    ///
    /// While the reader lives, what it has not told is kept, whatever [`Options::keep_changes`] says.
    ///
    /// # Errors
    /// `InvalidArgument` where changes are not kept, or `from` is past the next change; `NotFound`, naming the first
    /// there is, where `from` is no longer kept; `Corruption` naming file and offset; `Io`.
    pub fn changes(&self, from: SeqNo) -> Result<Changes> {
        self.changes_with(from, ChangesOptions::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`Db::changes`].
    pub fn changes_with(&self, from: SeqNo, options: ChangesOptions) -> Result<Changes> {
        let store = &self.engine.store;
        if !store.files.archive.is_on() || store.id.read_only {
            return Err(not_kept(&store.id.dir));
        }
        let changes = self.changes_in_wal(from, options)?;
        match changes.position == from.max(1) {
            true => Ok(changes),
            false => Err(gap(from, changes.position).with_file(&store.id.wal_dir)),
        }
    }

    /// The changes from `from` on, or from the first that a WAL still has: RocksDB's `GetUpdatesSince`. Where changes are
    /// not kept, those that are no writes are left out, and a reader begins with what is not flushed.
    ///
    /// # Errors
    /// As [`Db::changes`], but for changes that are not kept.
    pub fn changes_in_wal(&self, from: SeqNo, options: ChangesOptions) -> Result<Changes> {
        let store = &self.engine.store;
        let _call = store.begin_call()?;
        let latest = self.latest_seqno();
        if from > latest + 1 {
            let message = format!(
                "changes from {from} on were asked for, and {latest} is the newest sequence number"
            );
            return Err(Error::invalid_argument(message).with_file(&store.id.dir));
        }
        let mut tail = WalTail::new(Arc::clone(&store.id.env.files), &store.id.wal_dir);
        // All of them, until it is known which one is needed.
        let pin = match store.files.archive.is_on() {
            true => store.files.archive.pin(0),
            false => {
                let state = store.lock_state();
                let oldest = state.wals.first().copied().unwrap_or(0);
                tail.begin_at(oldest);
                store.files.archive.pin(oldest)
            }
        };
        let writer = Writer::Here {
            engine: Arc::clone(&self.engine),
            synced_only: options.synced_only,
            pin,
        };
        Changes::begin(writer, tail, &store.id.wal_dir, from, latest)
    }

    /// The first sequence number that [`Db::changes`] can begin at.
    ///
    /// # Errors
    /// `InvalidArgument` where changes are not kept; `Corruption`, `Io`.
    pub fn oldest_change(&self) -> Result<SeqNo> {
        let store = &self.engine.store;
        if !store.files.archive.is_on() || store.id.read_only {
            return Err(not_kept(&store.id.dir));
        }
        let latest = self.latest_seqno();
        let _pin = store.files.archive.pin(0);
        let mut tail = WalTail::new(Arc::clone(&store.id.env.files), &store.id.wal_dir);
        Ok(tail.oldest()?.unwrap_or(latest + 1))
    }
}

fn not_kept(dir: &Path) -> Error {
    let message = "the database does not keep its changes: open it for writing with keep_changes";
    Error::invalid_argument(message).with_file(dir)
}

impl Changes {
    /// The changes in the directory `dir`, which another process may be writing, from `from` on, or from the first there
    /// is with 0. Nothing keeps a change that is not read in time; it is then an error to go on.
    ///
    /// Shown is what is in the WAL: it outlives the writing process. `options` give the files and the WAL's directory.
    ///
    /// # Errors
    /// As [`Db::changes`].
    pub fn of_directory(dir: impl AsRef<Path>, options: &Options, from: SeqNo) -> Result<Self> {
        let dir = dir.as_ref();
        let stored = stored_options::read(dir, options)?;
        let keeps = stored.as_ref().and_then(stored_options::keep_changes);
        if keeps.is_none() {
            return Err(not_kept(dir));
        }
        let named = stored.as_ref().and_then(|file| {
            let named = file.database.get(options_file::WAL_DIR)?;
            (!named.is_empty()).then(|| PathBuf::from(named))
        });
        let wal_dir = options.wal_dir.clone().or(named);
        let wal_dir = wal_dir.unwrap_or_else(|| dir.to_path_buf());
        let mut tail = WalTail::new(Arc::clone(&options.env.files), &wal_dir);
        let oldest = tail.oldest()?;
        let writer = Writer::Elsewhere {
            clock: Arc::clone(&options.env.clock),
        };
        let first = match from {
            0 => oldest.unwrap_or(1),
            from => from,
        };
        let changes = Self::begin(writer, tail, &wal_dir, first, first)?;
        match changes.position == first {
            true => Ok(changes),
            false => Err(gap(first, changes.position).with_file(&wal_dir)),
        }
    }

    fn begin(
        writer: Writer,
        mut tail: WalTail,
        wal_dir: &Path,
        from: SeqNo,
        latest: SeqNo,
    ) -> Result<Self> {
        let mut position = from.max(1);
        if tail.seek(position)?.is_none() {
            // What was before is gone, or never was in a WAL.
            position = tail.oldest()?.unwrap_or(latest + 1).max(position);
            tail.seek(position)?;
        }
        let changes = Self {
            writer,
            wal_dir: wal_dir.to_path_buf(),
            tail,
            position,
            is_begun: false,
            sections: BTreeMap::new(),
            log_data: WriteBatch::new(),
            ready: VecDeque::new(),
        };
        changes.move_pin();
        Ok(changes)
    }

    /// The sequence number that comes next: where a later reader goes on.
    pub fn position(&self) -> SeqNo {
        self.ready.front().map_or(self.position, ChangeBatch::seqno)
    }

    /// The next batch, once it is there; `None` where there is none within `duration`.
    ///
    /// # Errors
    /// As [`Db::changes`]; `Shutdown` when the database is closed meanwhile.
    pub fn next_within(&mut self, duration: Duration) -> Result<Option<ChangeBatch>> {
        let begun = self.clock().monotonic();
        loop {
            let published = self.published();
            if let Some(batch) = self.find()? {
                return Ok(Some(batch));
            }
            let waited = self.clock().monotonic().saturating_sub(begun);
            let Some(left) = duration.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Ok(None);
            };
            match &self.writer {
                Writer::Elsewhere { clock } => clock.sleep(left.min(UNWOKEN_MAX)),
                Writer::Here {
                    engine,
                    synced_only,
                    ..
                } => {
                    engine.store.check_open()?;
                    let pause = left.min(match synced_only {
                        true => UNWOKEN_MAX,
                        false => PAUSE_MAX,
                    });
                    engine.store.published.wait_past(published, pause);
                }
            }
        }
    }

    fn clock(&self) -> &dyn Clock {
        match &self.writer {
            Writer::Here { engine, .. } => &*engine.store.id.env.clock,
            Writer::Elsewhere { clock } => &**clock,
        }
    }

    fn published(&self) -> SeqNo {
        match &self.writer {
            Writer::Elsewhere { .. } => SeqNo::MAX,
            Writer::Here { engine, .. } => engine.store.visible_seqno(),
        }
    }

    /// The last sequence number that may be told.
    fn limit(&self) -> SeqNo {
        match &self.writer {
            Writer::Here {
                engine,
                synced_only: true,
                ..
            } if !drumlin_base::bug!("unsynced-change-told") => {
                // Acquire pairs with the release of who synced.
                let durable = engine.store.durable.load(Ordering::Acquire);
                self.published().min(durable)
            }
            _ => self.published(),
        }
    }

    fn move_pin(&self) {
        if let (Writer::Here { pin, .. }, Some(wal)) = (&self.writer, self.tail.wal()) {
            pin.move_to(wal);
        }
    }

    /// The next batch, if it is there.
    fn find(&mut self) -> Result<Option<ChangeBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.position > self.limit() {
                return Ok(None);
            }
            if self.tail.wal().is_none() && self.tail.seek(self.position)?.is_none() {
                return Ok(None); // There was no record when this began.
            }
            let before = self.tail.wal();
            let Some(record) = self.tail.read(self.position)? else {
                return Ok(None);
            };
            if self.tail.wal() != before {
                self.move_pin();
            }
            self.take(&record)
                .map_err(|error| error.with_offset(record.offset).with_file(&record.path))?;
        }
    }

    /// Makes `record` ready, but for what was told before.
    fn take(&mut self, record: &TailRecord) -> Result<()> {
        let view = BatchView::new(&record.payload)?;
        if let Some(change) = ChangeMark::of(&view) {
            self.take_change(change)?;
        }
        let writes = self.resolve(&view)?;
        let count = u64::from(writes.count());
        if count == 0 {
            if view.seqno() >= self.position {
                self.log_data.append(&writes)?;
            }
            return Ok(());
        }
        let last = view.seqno() + count - 1;
        if last < self.position {
            return self.check_old(view.seqno());
        }
        self.check_order(view.seqno())?;
        let mut told = std::mem::take(&mut self.log_data);
        told.append(&writes)?;
        told.set_seqno(view.seqno());
        self.ready.push_back(ChangeBatch {
            last,
            writes: told,
            other: None,
        });
        self.advance(last);
        Ok(())
    }

    fn take_change(&mut self, change: ChangeMark) -> Result<()> {
        let last = change.last();
        if last < self.position {
            return Ok(()); // Recovery logged it again.
        }
        self.check_order(change.seqno)?;
        let tables = match &change.what {
            WhatChanged::Ingested { wal, tables } => {
                let path = |table: &u64| names::archived_table(&self.wal_dir, *wal, *table);
                tables.iter().map(path).collect()
            }
            WhatChanged::Created { .. } | WhatChanged::Dropped => Vec::new(),
        };
        self.ready.push_back(ChangeBatch {
            last,
            writes: WriteBatch::new(),
            other: Some((change, tables)),
        });
        self.advance(last);
        Ok(())
    }

    /// The writes that `view` makes, with what was prepared before and it commits, and the log data of programs.
    fn resolve(&mut self, view: &BatchView<'_>) -> Result<WriteBatch> {
        let mut writes = WriteBatch::new();
        for part in view.parts() {
            match part? {
                BatchPart::Record(record) => writes.put_record(&record)?,
                BatchPart::LogData(data) => {
                    if WalMark::parse(data).is_none() && ChangeMark::parse(data).is_none() {
                        writes.put_log_data(data)?;
                    }
                }
                BatchPart::Prepared(section) => {
                    let writes = WriteBatch::of_section(&section);
                    self.sections.insert(section.name.to_vec(), writes);
                }
                BatchPart::Commit(name) => {
                    // One that is unknown was prepared before the first change that is kept: a gap follows.
                    if let Some(prepared) = self.sections.remove(name) {
                        writes.append(&prepared)?;
                    }
                }
                BatchPart::Rollback(name) => {
                    self.sections.remove(name);
                }
            }
        }
        Ok(writes)
    }

    /// Refuses numbers after the one that comes next.
    fn check_order(&self, seqno: SeqNo) -> Result<()> {
        match seqno > self.position && !drumlin_base::bug!("gap-in-changes-passed-over") {
            true => Err(gap(self.position, seqno)),
            false if self.is_begun && seqno < self.position => self.check_old(seqno),
            false => Ok(()),
        }
    }

    /// Refuses numbers that were told.
    fn check_old(&self, seqno: SeqNo) -> Result<()> {
        match self.is_begun {
            false => Ok(()),
            true => {
                let message = format!(
                    "sequence numbers go back: after those before {} comes {seqno}",
                    self.position
                );
                Err(Error::new(ErrorKind::Corruption, message))
            }
        }
    }

    fn advance(&mut self, last: SeqNo) {
        self.position = last + 1;
        self.is_begun = true;
    }
}

impl Iterator for Changes {
    type Item = Result<ChangeBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.find().transpose()
    }
}
