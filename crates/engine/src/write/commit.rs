//! The lead: make room, give the group its sequence numbers, log it with one append, and let the
//! next leader go on while this group is synced, applied and published ([`super::publish`]).
//!
//! The leader holds the `leader` lock while it logs, so sequence numbers are assigned and logged in
//! one order. Whoever changes what groups write to (a memtable, the WAL's file) holds the lead and
//! waits for every group before it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use drumlin_base::{Error, ErrorKind, Result, ValueKind, limits};

use crate::db::engine::Engine;
use crate::family::column_family::Family;
use crate::options::settings::WriteOptions;
use crate::wal::log::{Wal, WalSync};
use crate::watch::events::Health;
use crate::write::batch::WriteBatch;
use crate::write::leader::{Group, Leader, Logged, PendingWrite, Request};
use crate::write::published::Span;
use crate::write::queue::{Follower, Turn};
use crate::write::turns::SMALL_BYTES;

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
        if !sync && !no_stall && batch.len() <= SMALL_BYTES {
            self.take_turn(batch.count());
        }
        match self.queue.join(Request::Write(PendingWrite {
            batch,
            sync,
            no_wal,
            no_stall,
        })) {
            Turn::Served(outcome) => outcome,
            Turn::Lead(Request::Write(own)) => self.lead_group(own),
            Turn::Share(Request::Write(own), share) => share.finish(self.apply_share([&own.batch])),
            // The request comes back as it was handed in.
            Turn::Lead(Request::Lead) | Turn::Share(Request::Lead, _) => Ok(()),
        }
    }

    /// Lets another writer in a burst go on alone for a while where cores are short.
    fn take_turn(&self, entries: u32) {
        if self.turns.enter(entries, &self.published, &*self.env.clock) {
            self.statistics.writer_turns.bump();
        }
    }

    /// Runs `body` as the leader of an empty group: no writer is in its turn meanwhile, and every
    /// group before it is published, or will never be.
    pub(crate) fn lead_alone<R>(&self, body: impl FnOnce(&mut Leader) -> R) -> R {
        // A lone request is never taken by another leader, so it is always promoted.
        while !matches!(self.queue.join(Request::Lead), Turn::Lead(_)) {}
        let _lead = self.queue.lead();
        let mut leader = self.leader.lock();
        self.published.wait_for(leader.last_seqno);
        body(&mut leader)
    }

    /// Refuses what would fail half-way: unknown or dropped families, keys over the limit, what the
    /// directory's format cannot hold.
    fn check_batch(&self, batch: &WriteBatch) -> Result<()> {
        self.check_writable()?;
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

    /// Logs a group. A group that need not be synced is then applied and published while the next
    /// is logged; one that must be goes on in [`Engine::sync_then_publish`].
    fn lead_group(&self, own: PendingWrite) -> Result<()> {
        let lead = self.queue.lead();
        let mut leader = self.leader.lock();
        self.make_room(&mut leader, &own)?;
        let followers = self.gather(&own);
        self.statistics.write_groups.bump();
        if !followers.is_empty() {
            self.statistics.write_followers.add(followers.len() as u64);
        }
        let span = Span { before: 0, last: 0 };
        let mut group = Group {
            own,
            followers,
            span,
        };
        let logged = self.log(&mut leader, &mut group);
        drop(leader);
        drop(lead);
        let outcome = match logged {
            Ok(Some(sync)) => return self.sync_then_publish(Logged { group, sync }),
            Ok(None) => self.apply_group(&mut group),
            Err(error) => Err(error),
        };
        let outcome = outcome.and_then(|()| self.publish(group.span));
        group.complete(&outcome);
        outcome
    }

    /// Takes the writers that may join `own`: same WAL use, no stronger durability, bounded bytes,
    /// which are known to fit on the disk.
    fn gather(&self, own: &PendingWrite) -> Followers {
        let room_max = limits::GROUP_BYTES_MAX.saturating_sub(own.batch.len());
        let room_max = usize::try_from(self.space.credit()).map_or(room_max, |c| c.min(room_max));
        let mut room = room_max;
        let followers = self.queue.take_followers(|request| match request {
            Request::Lead => false,
            Request::Write(other) => {
                let fits = other.no_wal == own.no_wal
                    && (own.sync || !other.sync || drumlin_base::bug!("sync-lost-in-group"))
                    && other.batch.len() <= room;
                if fits {
                    room -= other.batch.len();
                }
                fits
            }
        });
        if !followers.is_empty() {
            self.space.spend(room_max - room);
        }
        followers
    }

    /// Gives the group its sequence numbers and appends it to the WAL, if it goes there; what is to
    /// be synced, if it asked for that.
    fn log(&self, leader: &mut Leader, group: &mut Group) -> Result<Option<WalSync>> {
        group.number(leader.last_seqno);
        if group.own.no_wal {
            self.unlogged.store(true, Ordering::Release);
        } else {
            self.append(leader, group)?;
        }
        leader.last_seqno = group.span.last;
        self.charge_writers(leader, group.bytes() as u64);
        group.own.sync.then(|| leader.wal.sync_handle()).transpose()
    }

    fn append(&self, leader: &mut Leader, group: &Group) -> Result<()> {
        let Leader { wal, scratch, .. } = leader;
        let alone = group.followers.is_empty() && !wal.has_mark();
        if !alone {
            scratch.clear();
            wal.put_mark(scratch)?;
            group
                .batches()
                .try_for_each(|batch| scratch.append(batch))?;
            scratch.set_seqno(group.span.before + 1);
        }
        let batch = if alone { &group.own.batch } else { &*scratch };
        wal.note_synced(group.own.sync);
        let good_len = wal.len();
        if let Err(error) = wal.append(batch.bytes()) {
            return Err(self.wal_append_failed(wal, good_len, error));
        }
        self.statistics.wal_bytes.add(wal.len() - good_len);
        Ok(())
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
