//! Reading the WAL files back at open: which records are replayed, where replay stops, and what that means.
//!
//! Replay always restores a prefix of the writes: it stops at the first record that
//! is not whole, and no later WAL is replayed after that, unless it is known that nothing was lost
//! between the two. Damage to synced records is told apart from a torn tail by the marks that the
//! live WAL writes (`wal/log.rs`): it refuses the open instead of dropping acknowledged writes. The very
//! last record, if one bit turned back makes it whole, is replayed so (`record/mend.rs` says why), and
//! the report says so; recovery then writes it anew like all replayed records.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, Result, SeqNo};
use drumlin_fs::{Env, RandomAccessFile};

use crate::files::names;
use crate::version::VersionSet;
use crate::wal::change::ChangeMark;
use crate::wal::log::WalMark;
use crate::wal::record::{End, EndReason, Later, Mended, RecordReader, Verdict};
use crate::watch::events::{WalCut, WalMend};
use crate::write::batch::BatchView;

/// The result of a replay.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    pub(crate) batches: u64,
    pub(crate) entries: u64,
    /// The last sequence number replayed; 0 when nothing was.
    pub(crate) last_seqno: SeqNo,
    pub(crate) cut: Option<WalCut>,
    pub(crate) mended: Option<WalMend>,
    /// The WAL files read, ascending, each with the bytes of it that were replayed.
    pub(crate) wals: Vec<(u64, u64)>,
}

impl Replayed {
    /// Counts `batch`, which took `taken` sequence numbers.
    fn count(&mut self, batch: &BatchView<'_>, taken: u64) {
        self.batches += 1;
        self.entries += taken;
        if taken > 0 {
            let last = batch.seqno() + taken - 1;
            self.last_seqno = self.last_seqno.max(last);
        }
        if let Some(change) = ChangeMark::of(batch) {
            self.last_seqno = self.last_seqno.max(change.last());
        }
    }
}

/// Where the WAL files are and how forgiving replay is.
#[derive(Debug)]
pub(crate) struct WalReplay<'a> {
    pub(crate) env: &'a Env,
    pub(crate) dir: &'a Path,
    /// Open at the last good point even when synced writes are damaged.
    pub(crate) point_in_time: bool,
    /// Keep damaged files under another name (not where nothing may be written).
    pub(crate) keep_damaged: bool,
    /// WAL files from this number on were not removed by us: one that is not there was lost.
    pub(crate) needed_from: u64,
    /// WAL files that had nothing when their reader took them: what a writer beside it has put there by now is of a later
    /// time than the ends of the others, and is not replayed.
    pub(crate) ahead: &'a [u64],
    /// The writes that tables hold already.
    pub(crate) flushed: Vec<FlushedFamily>,
}

/// The newest write that a family has in tables. Flushes sync the WAL files before `log_number` first, so an earlier
/// WAL that ends before that write has most likely lost synced records of other families. It is reported, not refused:
/// stores were seen, after crashes only, where nothing was lost. A WAL that ends well is not asked: writes without the
/// WAL and ingested tables take sequence numbers that no WAL has, so sound stores would be reported.
#[derive(Debug)]
pub(crate) struct FlushedFamily {
    name: String,
    log_number: u64,
    /// The newest sequence number in a table; 0 where there is none.
    newest: SeqNo,
}

impl FlushedFamily {
    /// Every family of `versions`; none where there is but one, for which no WAL has to be synced.
    pub(crate) fn all(versions: &VersionSet) -> Vec<Self> {
        let families = versions.families();
        let several = families.values().filter(|_| families.len() > 1);
        let families = several.map(|family| {
            let seqnos = family.current.files().map(|(_, file)| file.largest_seqno);
            Self {
                name: family.name.clone(),
                log_number: family.log_number,
                newest: seqnos.max().unwrap_or(0),
            }
        });
        families.collect()
    }
}

/// How one WAL ended.
struct Ended {
    end: End,
    verdict: Verdict,
    size: u64,
}

/// The gap between a WAL and those before it.
enum Gap {
    /// Nothing.
    None,
    /// The end of this WAL did not reach the disk, or is damaged.
    In(u64),
    /// This WAL is not there.
    Missing(u64),
}

impl WalReplay<'_> {
    /// Hands every batch of `wals` (ascending numbers), with the number of its WAL, to `apply`, which says how many
    /// sequence numbers it took.
    ///
    /// # Errors
    /// `Corruption` naming WAL and offset when synced writes are damaged (and `point_in_time` is
    /// off) or a sound record holds no sound batch; `NotSupported`; `Io`; whatever `apply` returns.
    pub(crate) fn run(
        &self,
        wals: &[u64],
        mut apply: impl FnMut(u64, &BatchView<'_>) -> Result<u64>,
    ) -> Result<Replayed> {
        let mut replayed = Replayed::default();
        let mut before: BTreeMap<u64, Ended> = BTreeMap::new();
        if let Some((&first, later)) = wals.split_first()
            && let Some(from) = self.begun_again(first)?
            && from >= self.needed_from
        {
            replayed.cut = Some(self.judge_missing(from, later, 0)?);
            return Ok(replayed);
        }
        let wals = &self.without_half_recoveries(wals)?[..];
        for (index, &wal) in wals.iter().enumerate() {
            let later = wals.get(index..).expect("an index of the list");
            let gap = match drumlin_base::bug!("replayed-over-a-gap") {
                true => Gap::None,
                false => self.gap_before(wal, &before, replayed.last_seqno)?,
            };
            match gap {
                Gap::None => {}
                Gap::In(cut) => {
                    if let Some(ended) = before.get(&cut) {
                        let last = replayed.last_seqno;
                        replayed.cut = Some(self.judge_cut((cut, ended), later, last)?);
                    }
                    return Ok(replayed);
                }
                Gap::Missing(_) if drumlin_base::bug!("missing-wal-passed-over") => {}
                Gap::Missing(lost) => {
                    replayed.cut = Some(self.judge_missing(lost, later, replayed.last_seqno)?);
                    return Ok(replayed);
                }
            }
            let Some(mut ended) = self.replay_one(wal, &mut replayed, &mut apply)? else {
                break;
            };
            let last = replayed.last_seqno;
            if let Some(mended) = self.mended(later, &ended, &before, last)? {
                let batch = BatchView::new(&mended.payload)?;
                let taken = apply(wal, &batch)?;
                replayed.count(&batch, taken);
                let offset = mended.offset;
                replayed.mended = Some(WalMend { wal, offset });
                ended.end.offset = mended.end;
                ended.verdict = Verdict::Clean;
            }
            replayed.wals.push((wal, ended.end.offset));
            before.insert(wal, ended);
        }
        // Empty ones behind it do not make a torn one whole.
        let mut backward = before.iter().rev();
        let last = backward.find(|(_, it)| it.verdict != Verdict::Clean || it.end.offset > 0);
        if let Some((number, ended)) = last
            && ended.verdict != Verdict::Clean
        {
            let last = replayed.last_seqno;
            replayed.cut = Some(self.judge_cut((*number, ended), &[], last)?);
        }
        Ok(replayed)
    }

    /// `wals` without those in which a recovery that did not come to its end logged anew what is in the others.
    fn without_half_recoveries(&self, wals: &[u64]) -> Result<Vec<u64>> {
        let mut whole = Vec::with_capacity(wals.len());
        for &wal in wals {
            if whole.is_empty() || self.begun_again(wal)?.is_none() {
                whole.push(wal);
            }
        }
        Ok(whole)
    }

    /// The oldest WAL of those whose content a recovery logged in `wal`, if one began it.
    fn begun_again(&self, wal: u64) -> Result<Option<u64>> {
        let first = self.first_batch(wal)?;
        let marks = first.map(|(_, marks)| marks).unwrap_or_default();
        Ok(marks.into_iter().find_map(|mark| match mark {
            WalMark::Again { from } => Some(from),
            _ => None,
        }))
    }

    /// Nothing where the WAL began after it was taken.
    fn replay_one(
        &self,
        wal: u64,
        replayed: &mut Replayed,
        apply: &mut impl FnMut(u64, &BatchView<'_>) -> Result<u64>,
    ) -> Result<Option<Ended>> {
        let path = self.path(wal);
        let mut reader = RecordReader::new(self.env.files.open(&path)?, wal);
        let named = |error: Error| error.with_file(&path);
        while let Some(record) = reader.read().map_err(named)? {
            if self.is_ahead(wal) {
                return Ok(None);
            }
            let offset = record.offset;
            let batch = BatchView::new(record.payload)
                .map_err(|error| error.with_offset(offset).with_file(&path))?;
            let taken = apply(wal, &batch)?;
            replayed.count(&batch, taken);
        }
        let end = reader.end().unwrap_or(End {
            offset: 0,
            fragment: 0,
            reason: EndReason::Complete,
        });
        let verdict = reader.judge(Later::Marks).map_err(named)?;
        let size = self.env.files.info(&path)?.size;
        Ok(Some(Ended { end, verdict, size }))
    }

    fn is_ahead(&self, wal: u64) -> bool {
        self.ahead.contains(&wal) && !drumlin_base::bug!("replay-takes-what-began-later")
    }

    /// The record at the end of the first of `later` that one bit turned back made whole, where it is
    /// the last of all records and goes on where `last`, the last one replayed, ended.
    fn mended(
        &self,
        later: &[u64],
        ended: &Ended,
        before: &BTreeMap<u64, Ended>,
        last: SeqNo,
    ) -> Result<Option<Mended>> {
        let (Verdict::Corrupt { mended, .. }, Some((wal, after))) =
            (&ended.verdict, later.split_first())
        else {
            return Ok(None);
        };
        let Some(mended) = mended else {
            return Ok(None);
        };
        let Ok(batch) = BatchView::new(&mended.payload) else {
            return Ok(None);
        };
        if last != 0 && batch.count() > 0 && batch.seqno() != last + 1 {
            return Ok(None);
        }
        for later in after {
            if self.first_batch(*later)?.is_some() {
                return Ok(None);
            }
        }
        // The first record of a WAL says which one it follows.
        let follows = self.first_batch(*wal)?.is_some()
            || matches!(self.gap_at(&first_of(&batch), before, last), Gap::None);
        Ok(follows.then(|| mended.clone()))
    }

    /// The gap between the WAL files `before` and the one after them, `next`.
    fn gap_before(&self, next: u64, before: &BTreeMap<u64, Ended>, last: SeqNo) -> Result<Gap> {
        let damaged = |ended: &Ended| matches!(ended.verdict, Verdict::Corrupt { .. });
        if let Some((wal, _)) = before.iter().find(|(_, ended)| damaged(ended)) {
            return Ok(Gap::In(*wal));
        }
        if self.is_ahead(next) {
            return Ok(Gap::None); // Nothing in it is replayed.
        }
        let Some(first) = self.first_batch(next)? else {
            return Ok(Gap::None); // Nothing in it could be replayed wrongly.
        };
        Ok(self.gap_at(&first, before, last))
    }

    /// The gap between the WAL files `before` and one whose first record says `first`.
    fn gap_at(
        &self,
        (first_seqno, marks): &(SeqNo, Vec<WalMark>),
        before: &BTreeMap<u64, Ended>,
        last: SeqNo,
    ) -> Gap {
        for mark in marks {
            let WalMark::After { number, bytes } = *mark else {
                continue;
            };
            return match before.get(&number) {
                Some(ended) if ended.end.offset < bytes => {
                    match drumlin_base::bug!("empty-wal-is-no-gap") && ended.end.offset == 0 {
                        true => Gap::None,
                        false => Gap::In(number),
                    }
                }
                None if number >= self.needed_from => Gap::Missing(number),
                _ => Gap::None,
            };
        }
        // Written by another engine: a clean end is one; after a torn one, as RocksDB does, the
        // next WAL counts only if it goes on with the very next sequence number.
        let unclean = before.iter().find(|(_, e)| e.verdict != Verdict::Clean);
        match unclean {
            Some((wal, _)) if *first_seqno != last + 1 => Gap::In(*wal),
            _ => Gap::None,
        }
    }

    /// The cut to report for the missing WAL `lost`, which `later` ones follow.
    fn judge_missing(&self, lost: u64, later: &[u64], last: SeqNo) -> Result<WalCut> {
        let reason = "the WAL is missing, and a later one follows it";
        if !self.point_in_time {
            let message = format!(
                "{reason}; nothing was changed. Restore the file, or open with \
                 point_in_time_recovery to give up what follows"
            );
            return Err(Error::corruption(message)
                .with_offset(0)
                .with_file(&self.path(lost)));
        }
        if self.keep_damaged {
            later.iter().try_for_each(|later| self.quarantine(*later))?;
        }
        Ok(WalCut {
            wal: lost,
            offset: 0,
            dropped_bytes: 0,
            later_wals: later.len(),
            reason: String::from(reason),
            was_synced: true,
            family_beyond: self.family_beyond(lost, last),
        })
    }

    /// The first counted sequence number and the marks in the first record of `wal`; `None` when it
    /// holds no sound record.
    fn first_batch(&self, wal: u64) -> Result<Option<(SeqNo, Vec<WalMark>)>> {
        let path = self.path(wal);
        let mut reader = RecordReader::of_front(self.env.files.open(&path)?, wal);
        let record = reader.read().map_err(|error| error.with_file(&path))?;
        let Some(record) = record else {
            return Ok(None);
        };
        let batch = BatchView::new(record.payload).map_err(|error| error.with_file(&path))?;
        Ok(Some(first_of(&batch)))
    }

    /// The cut to report when replay stops in `wal` after the sequence number `last`, given the WAL files after it.
    fn judge_cut(&self, (wal, ended): (u64, &Ended), later: &[u64], last: SeqNo) -> Result<WalCut> {
        let path = self.path(wal);
        let family_beyond = self.family_beyond(wal, last);
        let damage = match &ended.verdict {
            Verdict::Corrupt { reason, .. } => Some(reason.clone()),
            _ => self.proof_of_sync(wal, ended.end.offset, later)?,
        };
        if let Some(reason) = &damage
            && !self.point_in_time
        {
            let message = format!(
                "the WAL is damaged where it was synced: {reason}; nothing was changed. Restore \
                 the file, or open with point_in_time_recovery to give up what follows"
            );
            return Err(Error::corruption(message)
                .with_offset(ended.end.offset)
                .with_file(&path));
        }
        if damage.is_some() && self.keep_damaged {
            self.quarantine(wal)?;
            later.iter().try_for_each(|later| self.quarantine(*later))?;
        }
        Ok(WalCut {
            wal,
            offset: ended.end.offset,
            dropped_bytes: ended.size.saturating_sub(ended.end.offset),
            later_wals: later.len(),
            reason: damage.clone().unwrap_or_else(|| match &ended.verdict {
                Verdict::Torn { reason, .. } => (*reason).to_owned(),
                _ => "the end of the WAL did not reach the disk".to_owned(),
            }),
            was_synced: damage.is_some(),
            family_beyond,
        })
    }

    /// A family that has in tables what was written after `last`, where replay stopped in `wal` or before it.
    fn family_beyond(&self, wal: u64, last: SeqNo) -> Option<String> {
        let mut families = self.flushed.iter();
        let beyond = families.find(|family| family.log_number > wal && family.newest > last);
        beyond.map(|family| family.name.clone())
    }

    /// A mark in a later WAL that says `wal` was synced past `offset`.
    fn proof_of_sync(&self, wal: u64, offset: u64, later: &[u64]) -> Result<Option<String>> {
        for &number in later {
            let path = self.path(number);
            let mut reader = RecordReader::new(self.env.files.open(&path)?, number);
            while let Some(record) = reader.read().map_err(|error| error.with_file(&path))? {
                let Ok(batch) = BatchView::new(record.payload) else {
                    break;
                };
                for mark in batch.log_data().filter_map(WalMark::parse) {
                    let WalMark::Synced(mark) = mark else {
                        continue;
                    };
                    if mark.log_number > wal || mark.log_number == wal && mark.bytes > offset {
                        return Ok(Some(format!(
                            "WAL {number} says it was synced past this point"
                        )));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Keeps a damaged WAL under another name, out of the way of later opens.
    fn quarantine(&self, wal: u64) -> Result<()> {
        let path = self.path(wal);
        let mut name = path.clone().into_os_string();
        name.push(".quarantine");
        let kept = PathBuf::from(name);
        if self.env.files.exists(&kept)? {
            return Ok(());
        }
        // A second name now; the first goes when recovery has written everything anew.
        self.env.files.link(&path, &kept)?;
        self.env.files.sync_dir(self.dir)
    }

    fn path(&self, wal: u64) -> PathBuf {
        names::wal(self.dir, wal)
    }
}

/// The sequence number and the marks in the first record of a WAL.
fn first_of(batch: &BatchView<'_>) -> (SeqNo, Vec<WalMark>) {
    let marks = batch.log_data().filter_map(WalMark::parse).collect();
    (batch.seqno(), marks)
}

/// Whether the WAL `wal` still begins with a record of its own, and not of one that is written over it.
///
/// # Errors
/// `Io`.
pub(crate) fn begins_with_own(file: Arc<dyn RandomAccessFile>, wal: u64) -> Result<bool> {
    Ok(beginning(file, wal)? == Beginning::Own)
}

/// What is at the front of a WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// A record of its own.
    Own,
    /// Nothing, or what the log before it in this file had.
    Nothing,
    /// A record that is not whole: damage, or one that is being written.
    Unreadable,
}

/// # Errors
/// `Io`.
pub(crate) fn beginning(file: Arc<dyn RandomAccessFile>, wal: u64) -> Result<Beginning> {
    let mut reader = RecordReader::of_front(file, wal);
    if reader.read()?.is_some() {
        return Ok(Beginning::Own);
    }
    Ok(match reader.end().map(|end| end.reason) {
        Some(EndReason::Bad(_)) => Beginning::Unreadable,
        _ => Beginning::Nothing,
    })
}

/// Whether the WAL `wal` has a step of two-phase commit, as far as it is sound.
///
/// # Errors
/// `Io`.
pub(crate) fn has_two_phase(file: Arc<dyn RandomAccessFile>, wal: u64) -> Result<bool> {
    let mut reader = RecordReader::new(file, wal);
    while let Some(record) = reader.read()? {
        if BatchView::new(record.payload).is_ok_and(|batch| batch.is_two_phase()) {
            return Ok(true);
        }
    }
    Ok(false)
}
