//! Events the engine reports to a listener. Calls come from background threads, or from a thread at the end of its call
//! to the store, with no lock held: a listener may read, and ask the store anything. Calls come one at a time, in the
//! order of the events. They should return soon. A listener must not write, nor wait for the store to flush, to
//! become idle or to close: the calling thread may be the one that this waits for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::{Error, SeqNo};
use drumlin_table::{Codec, TableProperties};

use crate::watch::reason::Reason;

/// How the database stands. One way, but for full disks, which heal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Health {
    /// All is well.
    Healthy = 0,
    /// Background work failed and is retried; writes go on while memtables have space.
    BackgroundPaused = 1,
    /// The WAL could not be written for lack of space. Reads go on; a write first tries to begin a new
    /// WAL: it is refused for as long as there is no space, and ends this state once there is. Nothing
    /// else looks, so whoever waits for the end of it must write (a deletion will do).
    WriteStopped = 2,
    /// Writes are refused, reads go on; reopening recovers.
    Poisoned = 3,
}

/// Findings and actions of recovery when the database was opened.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// Write batches replayed from WAL files.
    pub batches_replayed: u64,
    /// Entries replayed.
    pub entries_replayed: u64,
    /// Where and why replay stopped before the end of the WAL files, if it did.
    pub cut: Option<WalCut>,
    /// The last record of the WAL files, if one bit of it had to be turned back: rot or a torn write.
    pub mended: Option<WalMend>,
    /// Files nobody refers to any more that were removed.
    pub files_removed: usize,
    /// Whether the directory is written in LevelDB's format.
    pub leveldb: bool,
    /// Transactions that were prepared, and neither committed nor rolled back.
    pub prepared: usize,
}

/// Where replay of the WAL stopped.
#[derive(Clone, Debug)]
pub struct WalCut {
    /// The WAL file's number.
    pub wal: u64,
    /// The offset of the first record that was not replayed.
    pub offset: u64,
    /// Bytes from there to the end of the file.
    pub dropped_bytes: u64,
    /// WAL files after this one that were not replayed either.
    pub later_wals: usize,
    /// The damage found there.
    pub reason: String,
    /// Whether what was dropped had once been synced (only under
    /// [`crate::Options::point_in_time_recovery`]; otherwise open fails).
    pub was_synced: bool,
    /// A family whose tables hold writes from beyond this point: others may have lost what came before these.
    pub family_beyond: Option<String>,
}

/// A record at the end of a WAL that was replayed with one bit turned back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalMend {
    /// The WAL file's number.
    pub wal: u64,
    /// The offset of the record.
    pub offset: u64,
}

/// Blobs of one blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobCount {
    /// The number of the file.
    pub file: u64,
    /// How many they are.
    pub blobs: u64,
    /// Bytes of their records: headers, keys and stored values.
    pub bytes: u64,
}

/// A flush that began, or ended well.
#[derive(Clone, Debug)]
pub struct FlushInfo {
    /// The family flushed.
    pub family: String,
    /// Its number.
    pub family_id: u32,
    /// The number of the job, of flushes and compactions since the store was opened.
    pub job: u64,
    /// The new table's number; `None` when nothing was left to write, and while it runs.
    pub table: Option<u64>,
    /// The lowest and the highest sequence number in it; 0 without one.
    pub seqnos: (SeqNo, SeqNo),
    /// Bytes written.
    pub bytes: u64,
    /// What the table says of itself.
    pub properties: Option<Arc<TableProperties>>,
    /// The blob files written.
    pub blob_files: Vec<BlobCount>,
    /// What blobs are compressed with, should there be any.
    pub blob_codec: Codec,
}

/// A table before or after a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOfJob {
    /// The level it is in.
    pub level: usize,
    /// The number in its name.
    pub number: u64,
    /// The oldest blob file that it refers to; 0 where it refers to none.
    pub oldest_blob_file: u64,
}

/// A compaction that began, or ended well.
#[derive(Clone, Debug)]
pub struct CompactionInfo {
    /// The family compacted.
    pub family: String,
    /// Its number.
    pub family_id: u32,
    /// The number of the job, as in [`FlushInfo::job`].
    pub job: u64,
    /// Level the inputs came from.
    pub level: usize,
    /// Level the outputs went to.
    pub output_level: usize,
    /// Tables read.
    pub inputs: usize,
    /// Tables written.
    pub outputs: usize,
    /// The tables that were there before.
    pub input_tables: Vec<TableOfJob>,
    /// Those that are there instead.
    pub output_tables: Vec<TableOfJob>,
    /// How long it took.
    pub took: Duration,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Whether files only changed their level.
    pub trivial_move: bool,
    /// Why there was one.
    pub reason: Reason,
    /// Whether it took all tables of the family.
    pub takes_all: bool,
    /// What the tables say of themselves, by their numbers, both those from before and those instead; empty where files only changed
    /// their level or went, and while it runs. An input that had to be closed is left out.
    pub properties: Vec<(u64, Arc<TableProperties>)>,
    /// The smallest and the largest user key of the tables that are there instead.
    pub output_keys: Option<(Vec<u8>, Vec<u8>)>,
    /// The blob files written.
    pub blob_files: Vec<BlobCount>,
    /// Blobs that nothing refers to any more, by the blob files they are in.
    pub blob_garbage: Vec<BlobCount>,
    /// What blobs are compressed with, should there be any.
    pub blob_codec: Codec,
}

/// A table from elsewhere that was taken in.
#[derive(Clone, Debug)]
pub struct IngestInfo {
    /// The family that has it.
    pub family: String,
    /// Where it was.
    pub path: PathBuf,
    /// Its number here.
    pub table: u64,
    /// The sequence number of its entries.
    pub seqno: SeqNo,
    /// What it says of itself.
    pub properties: Arc<TableProperties>,
}

/// A memtable that takes no more writes.
#[derive(Clone, Debug)]
pub struct MemtableInfo {
    /// Its family.
    pub family: String,
    /// Its entries.
    pub entries: u64,
    /// Those of them that are deletions.
    pub deletions: u64,
    /// The lowest sequence number in it.
    pub first_seqno: SeqNo,
    /// The last sequence number before it took writes: a write of the family with a higher one is in it, or in a later one.
    pub earliest_seqno: SeqNo,
}

/// How the writers of a family are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WritePressure {
    /// They are not.
    None,
    /// They are slowed, with those of all families, because this one is fullest.
    Delayed,
    /// They wait: every memtable is full.
    Stopped,
}

/// A change of how writers are held back.
#[derive(Clone, Debug)]
pub struct PressureInfo {
    /// The family that it is for.
    pub family: String,
    /// As it was.
    pub from: WritePressure,
    /// As it is.
    pub to: WritePressure,
}

/// Hears what the engine does. Every method has an empty default.
///
/// One thread calls it at a time, one that also works for the store: a listener that takes long holds that thread up.
/// At most 1,024 events wait for it meanwhile; later ones it does not hear of, but for changes of health.
pub trait EventListener: Send + Sync {
    /// A memtable was filled, and waits to be flushed.
    fn memtable_sealed(&self, info: &MemtableInfo) {
        let _ = info;
    }
    /// A table was taken in.
    fn ingested(&self, info: &IngestInfo) {
        let _ = info;
    }
    /// A flush began. Its output is not known. It may be told of when it has ended already, but before that.
    fn flush_begun(&self, info: &FlushInfo) {
        let _ = info;
    }
    /// A flush ended well.
    fn flushed(&self, info: &FlushInfo) {
        let _ = info;
    }
    /// A compaction began, as [`EventListener::flush_begun`] says. Its outputs are not known.
    fn compaction_begun(&self, info: &CompactionInfo) {
        let _ = info;
    }
    /// A compaction ended well.
    fn compacted(&self, info: &CompactionInfo) {
        let _ = info;
    }
    /// Background work failed; it is retried unless the database is poisoned by it.
    fn background_failed(&self, error: &Error) {
        let _ = error;
    }
    /// The database went from one state to another.
    fn health_changed(&self, from: Health, to: Health, cause: &str) {
        let _ = (from, to, cause);
    }
    /// Writers are held back otherwise than before. Not told where no thread works in the background.
    fn pressure_changed(&self, info: &PressureInfo) {
        let _ = info;
    }
    /// A writer had to wait this many microseconds, and why.
    fn write_waited(&self, micros: u64, why: &str) {
        let _ = (micros, why);
    }
}
