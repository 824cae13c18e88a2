//! The lead: make room, log the group with one append (and one sync), apply it, publish it.
//!
//! The leader holds the `leader` lock for its whole turn, so sequence numbers are assigned, logged
//! and published in one order. Readers see a group only after every entry of it is in its memtable
//! (and, for a synced group, on disk).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use drumlin_base::{Error, ErrorKind, Result, SeqNo, ValueKind, limits};

use crate::batch::WriteBatch;
use crate::column_family::Family;
use crate::commit_queue::{Follower, Turn};
use crate::engine::Engine;
use crate::events::Health;
use crate::leader::{Leader, PendingWrite, Request};
use crate::options::WriteOptions;
use crate::wal::Wal;

type Followers = Vec<(Request, Arc<Follower<Request>>)>;

impl Engine {
    /// Writes `batch`, alone or in a group.
    pub(crate) fn write(&self, batch: WriteBatch, options: &WriteOptions) -> Result<()> {
        let sync = options.sync.unwrap_or(self.options.sync);
        if sync && options.no_wal {
            return Err(Error::invalid_argument(
                "a write without WAL cannot be synced",
            ));
        }
        self.check_batch(&batch)?;
        let (no_wal, no_stall) = (options.no_wal, options.no_stall);
        match self.queue.join(Request::Write(PendingWrite {
            batch,
            sync,
            no_wal,
            no_stall,
        })) {
            Turn::Served(outcome) => outcome,
            Turn::Lead(request) => {
                let outcome = match request {
                    Request::Write(own) => self.lead_group(own),
                    Request::Lead => Ok(()),
                };
                self.queue.hand_over();
                outcome
            }
        }
    }

    /// Runs `body` as the leader of an empty group: no writer is in its turn meanwhile.
    pub(crate) fn lead_alone<R>(&self, body: impl FnOnce(&mut Leader) -> R) -> R {
        // A lone request is never taken by another leader, so it is always promoted.
        while let Turn::Served(_) = self.queue.join(Request::Lead) {}
        let result = body(&mut self.leader.lock());
        self.queue.hand_over();
        result
    }

    /// Refuses what would fail half-way: unknown or dropped families, keys over the limit, what the
    /// directory's format cannot hold.
    fn check_batch(&self, batch: &WriteBatch) -> Result<()> {
        if self.read_only {
            return Err(Error::new(
                ErrorKind::ReadOnly,
                "the database was opened read-only",
            ));
        }
        let families = self.families.load();
        let mut last: Option<&Arc<Family>> = None;
        for record in batch.iter() {
            let record = record?;
            let family = match last {
                Some(family) if family.id == record.family => family,
                _ => {
                    let Some(family) = families.get(&record.family) else {
                        let message = format!("there is no column family {}", record.family);
                        return Err(Error::invalid_argument(message));
                    };
                    family.check_alive()?;
                    last.insert(family)
                }
            };
            let limit = family.tuning.key_bytes_max;
            if record.key.len() > limit {
                let message = format!("the key has {} bytes, more than {limit}", record.key.len());
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
            check_kind(record.kind, family, self.leveldb)?;
            if record.kind == ValueKind::RangeDeletion
                && family
                    .options
                    .order
                    .compare(record.key, record.value)
                    .is_gt()
            {
                return Err(Error::invalid_argument(
                    "a range deletion ends before it begins",
                ));
            }
        }
        Ok(())
    }

    fn lead_group(&self, own: PendingWrite) -> Result<()> {
        let mut leader = self.leader.lock();
        self.make_room(&mut leader, &own)?;
        let followers = self.gather(&own);
        let outcome = self.commit(&mut leader, own, &followers);
        drop(leader);
        self.statistics.write_groups.bump();
        if !followers.is_empty() {
            self.statistics.write_followers.add(followers.len() as u64);
            for (_, follower) in followers {
                follower.complete(outcome.as_ref().map_err(Error::duplicate).copied());
            }
        }
        outcome
    }

    /// Takes the writers that may join `own`: same WAL use, no stronger durability, bounded bytes.
    fn gather(&self, own: &PendingWrite) -> Followers {
        let mut room = limits::GROUP_BYTES_MAX.saturating_sub(own.batch.len());
        self.queue.take_followers(|request| match request {
            Request::Lead => false,
            Request::Write(other) => {
                let fits = other.no_wal == own.no_wal
                    && (own.sync || !other.sync)
                    && other.batch.len() <= room;
                room = room.saturating_sub(other.batch.len());
                fits
            }
        })
    }

    fn commit(
        &self,
        leader: &mut Leader,
        mut own: PendingWrite,
        followers: &Followers,
    ) -> Result<()> {
        let first = leader.last_seqno + 1;
        own.batch.set_seqno(first);
        let alone = followers.is_empty() && (own.no_wal || !leader.wal.has_mark());
        if !alone {
            gather_batches(leader, &own, followers)?;
            leader.scratch.set_seqno(first);
        }
        if own.no_wal {
            self.unlogged.store(true, Ordering::Release);
        } else {
            self.log(leader, alone.then_some(&own.batch), own.sync)?;
        }
        let batch = if alone { &own.batch } else { &leader.scratch };
        let last = self.apply(batch, first, &mut leader.full)?;
        self.statistics.keys_written.add(last + 1 - first);
        self.statistics.bytes_written.add(batch.len() as u64);
        let bytes = batch.len() as u64;
        leader.last_seqno = last;
        self.charge_writers(leader, bytes);
        self.visible.store(last, Ordering::Release);
        Ok(())
    }

    /// Appends the group (`alone`, or the scratch batch) and syncs it if asked.
    fn log(&self, leader: &mut Leader, alone: Option<&WriteBatch>, sync: bool) -> Result<()> {
        let Leader { wal, scratch, .. } = leader;
        let good_len = wal.len();
        let batch = alone.unwrap_or(scratch);
        if let Err(error) = wal.append(batch.bytes()) {
            return Err(self.wal_append_failed(wal, good_len, error));
        }
        self.statistics.wal_bytes.add(wal.len() - good_len);
        if !sync {
            return Ok(());
        }
        self.statistics.wal_syncs.bump();
        wal.sync().map_err(|error| {
            let mut state = self.lock_state();
            self.degrade(&mut state, Health::Poisoned, &error);
            error.context("the WAL could not be synced")
        })
    }

    /// A failed append loses nothing that was acknowledged: the tail is cut off, and a later write
    /// begins another WAL once there is space. When even that fails, the database is poisoned.
    fn wal_append_failed(&self, wal: &mut Wal, good_len: u64, error: Error) -> Error {
        let healable = error.kind() == ErrorKind::NoSpace && wal.abandon_tail(good_len).is_ok();
        let to = if healable {
            Health::WriteStopped
        } else {
            Health::Poisoned
        };
        let mut state = self.lock_state();
        self.degrade(&mut state, to, &error);
        error.context("the write could not be logged")
    }

    /// Puts every record into its memtable; the last sequence number used.
    fn apply(&self, batch: &WriteBatch, first: SeqNo, full: &mut Vec<u32>) -> Result<SeqNo> {
        let families = self.families.load();
        let mut seqno = first;
        let mut records = batch.iter().peekable();
        while let Some(record) = records.peek() {
            let id = record.as_ref().map_err(Error::duplicate)?.family;
            let family = families
                .get(&id)
                .filter(|family| family.check_alive().is_ok());
            // A family dropped since the check takes its writes with it.
            let view = family.map(|family| (family, family.view.load()));
            while let Some(record) = records.next_if(|r| r.as_ref().is_ok_and(|r| r.family == id)) {
                let record = record?;
                if let Some((_, view)) = &view {
                    view.memtable
                        .add(seqno, record.kind, record.key, record.value);
                }
                seqno += 1;
            }
            if let Some((family, view)) = view
                && family.account(&view.memtable)
                && !full.contains(&id)
            {
                full.push(id);
            }
        }
        Ok((seqno - 1).max(first - 1))
    }
}

fn check_kind(kind: ValueKind, family: &Family, leveldb: bool) -> Result<()> {
    if kind == ValueKind::Merge && family.options.merge_operator.is_none() {
        let message = format!("column family {:?} has no merge operator", family.name);
        return Err(Error::invalid_argument(message));
    }
    if leveldb && !matches!(kind, ValueKind::Value | ValueKind::Deletion) {
        return Err(Error::not_supported(format!(
            "{kind:?} in a LevelDB directory; open it with DirectoryFormat::RocksDb to convert it"
        )));
    }
    Ok(())
}

/// The group as one batch in `leader.scratch`.
fn gather_batches(leader: &mut Leader, own: &PendingWrite, followers: &Followers) -> Result<()> {
    leader.scratch.clear();
    if !own.no_wal {
        leader.wal.put_mark(&mut leader.scratch)?;
    }
    leader.scratch.append(&own.batch)?;
    for (request, _) in followers {
        if let Request::Write(write) = request {
            leader.scratch.append(&write.batch)?;
        }
    }
    Ok(())
}
