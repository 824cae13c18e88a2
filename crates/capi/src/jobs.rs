//! What listeners are told of flushes, compactions and tables that were taken in. Their parts are lent as long as what tells of them.

use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use drumlin::internals::names;
use drumlin::{
    BlobCount, Codec, CompactionInfo, CompactionReason, Db, Error, FlushInfo, IngestInfo,
    MemtableInfo, PressureInfo, TableOfJob, WritePressure,
};
use drumlin_ffi::bytes;
use drumlin_ffi::handle::{self, Handle};

use crate::job_stats::JobStats;
use crate::options::number_of;
use crate::table_properties::Properties;

/// A handle that is lent to the program.
#[derive(Debug)]
pub(crate) struct Lent<T: handle::Tagged>(*mut Handle<T>);

impl<T: handle::Tagged> Lent<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(handle::create(value))
    }

    pub(crate) fn handle(&self) -> *mut Handle<T> {
        self.0
    }
}

impl<T: handle::Tagged> Drop for Lent<T> {
    fn drop(&mut self) {
        // SAFETY: it is of `create`, and destroyed here alone: the program gets it as constant.
        unsafe { handle::destroy(self.0, "the end of an event") };
    }
}

// SAFETY: what is lent is moved with its owner, and is the owner's alone.
unsafe impl<T: handle::Tagged + Send> Send for Lent<T> {}
// SAFETY: it is only read while there is an owner.
unsafe impl<T: handle::Tagged + Sync> Sync for Lent<T> {}

/// The one at a place, as C is lent it; null behind the last one.
fn lent_at<T: handle::Tagged>(all: &[Lent<T>], at: usize) -> *const Handle<T> {
    all.get(at)
        .map_or(std::ptr::null(), |it| it.handle().cast_const())
}

/// A blob file that was written.
#[derive(Debug)]
pub(crate) struct BlobFile {
    count: BlobCount,
    path: Vec<u8>,
}

impl BlobFile {
    fn new(count: &BlobCount, dir: &Path) -> Self {
        Self {
            count: *count,
            path: bytes_of(names::blob(dir, count.file)),
        }
    }
}

/// Blobs in a file that nothing refers to any more.
#[derive(Debug)]
pub(crate) struct BlobGarbage(BlobFile);

/// A flush; without a table where it has only begun, or there was nothing to write.
#[derive(Debug)]
pub(crate) struct FlushJob {
    info: FlushInfo,
    path: Vec<u8>,
    properties: Lent<Properties>,
    blob_files: Vec<Lent<BlobFile>>,
}

impl FlushJob {
    pub(crate) fn new(info: &FlushInfo, db: &Db) -> Self {
        let table = info.table.map(|table| names::table(db.path(), table));
        Self {
            path: table.map_or(Vec::new(), bytes_of),
            properties: Lent::new(Properties(info.properties.clone().unwrap_or_default())),
            blob_files: blob_files(&info.blob_files, db.path()),
            info: info.clone(),
        }
    }
}

/// A table before or after a compaction.
#[derive(Debug)]
pub(crate) struct CompactionFile(TableOfJob);

/// A compaction; without outputs where it has only begun.
#[derive(Debug)]
pub(crate) struct CompactionJob {
    info: CompactionInfo,
    inputs: Vec<(Vec<u8>, Lent<CompactionFile>)>,
    outputs: Vec<(Vec<u8>, Lent<CompactionFile>)>,
    properties: Vec<(Vec<u8>, Lent<Properties>)>,
    blob_files: Vec<Lent<BlobFile>>,
    blob_garbage: Vec<Lent<BlobGarbage>>,
    stats: Lent<JobStats>,
    /// Entries read and written.
    records: (u64, u64),
    compression: u32,
    /// Tables in L0 when it is told.
    l0_files: i32,
}

impl CompactionJob {
    pub(crate) fn new(info: &CompactionInfo, db: &Db) -> Self {
        let dir = db.path();
        let path = |number| bytes_of(names::table(dir, number));
        let files = |tables: &[TableOfJob]| {
            let file = |it: &TableOfJob| (path(it.number), Lent::new(CompactionFile(*it)));
            tables.iter().map(file).collect()
        };
        let properties = info
            .properties
            .iter()
            .map(|(number, properties)| (path(*number), Lent::new(Properties(properties.clone()))));
        let garbage = info.blob_garbage.iter();
        let stats = JobStats::of(info);
        let family = db.column_family(&info.family);
        let tables = family.and_then(|family| db.live_tables(&family).ok());
        let l0 = tables.map_or(0, |tables| tables.iter().filter(|it| it.level == 0).count());
        Self {
            inputs: files(&info.input_tables),
            outputs: files(&info.output_tables),
            properties: properties.collect(),
            blob_files: blob_files(&info.blob_files, dir),
            blob_garbage: garbage
                .map(|count| Lent::new(BlobGarbage(BlobFile::new(count, dir))))
                .collect(),
            records: stats.records(),
            stats: Lent::new(stats),
            compression: compression_of(info),
            l0_files: i32::try_from(l0).unwrap_or(i32::MAX),
            info: info.clone(),
        }
    }
}

/// That of a program's own, to be filled by nobody here.
impl Default for CompactionJob {
    fn default() -> Self {
        Self {
            info: CompactionInfo {
                family: String::new(),
                family_id: 0,
                job: 0,
                level: 0,
                output_level: 0,
                inputs: 0,
                outputs: 0,
                input_tables: Vec::new(),
                output_tables: Vec::new(),
                took: Duration::ZERO,
                bytes_read: 0,
                bytes_written: 0,
                trivial_move: false,
                reason: CompactionReason::Manual,
                takes_all: false,
                properties: Vec::new(),
                output_keys: None,
                blob_files: Vec::new(),
                blob_garbage: Vec::new(),
                blob_codec: Codec::None,
            },
            inputs: Vec::new(),
            outputs: Vec::new(),
            properties: Vec::new(),
            blob_files: Vec::new(),
            blob_garbage: Vec::new(),
            stats: Lent::new(JobStats::default()),
            records: (0, 0),
            compression: 255,
            l0_files: 0,
        }
    }
}

/// The one part of a compaction.
#[derive(Debug)]
pub(crate) struct Subcompaction {
    info: CompactionInfo,
    stats: Lent<JobStats>,
}

impl Subcompaction {
    pub(crate) fn new(info: &CompactionInfo) -> Self {
        Self {
            info: info.clone(),
            stats: Lent::new(JobStats::of(info)),
        }
    }
}

/// A table that was taken in.
#[derive(Debug)]
pub(crate) struct Ingested {
    info: IngestInfo,
    original: Vec<u8>,
    path: Vec<u8>,
    properties: Lent<Properties>,
}

impl Ingested {
    pub(crate) fn new(info: &IngestInfo, db: &Db) -> Self {
        Self {
            original: bytes_of(info.path.clone()),
            path: bytes_of(names::table(db.path(), info.table)),
            properties: Lent::new(Properties(Arc::clone(&info.properties))),
            info: info.clone(),
        }
    }
}

/// A memtable that waits to be flushed.
#[derive(Debug)]
pub(crate) struct SealedMemtable(pub(crate) MemtableInfo);

/// A change of how writers are held back.
#[derive(Debug)]
pub(crate) struct StallChange {
    family: String,
    from: StallCondition,
    to: StallCondition,
}

/// RocksDB's number of a condition: programs read it where the pointer goes, as no function of C's does. So this is no handle.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct StallCondition(c_int);

impl StallCondition {
    fn of(pressure: WritePressure) -> Self {
        Self(match pressure {
            WritePressure::Delayed => 0,
            WritePressure::Stopped => 1,
            WritePressure::None => 2,
        })
    }
}

impl StallChange {
    pub(crate) fn new(info: &PressureInfo) -> Self {
        Self {
            family: info.family.clone(),
            from: StallCondition::of(info.from),
            to: StallCondition::of(info.to),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writestallinfo_cur(
    info: *const Handle<StallChange>,
) -> *const StallCondition {
    // SAFETY: the C program's promise.
    let info = unsafe { handle::get(info, "rocksdb_writestallinfo_cur") };
    &raw const info.to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writestallinfo_prev(
    info: *const Handle<StallChange>,
) -> *const StallCondition {
    // SAFETY: the C program's promise.
    let info = unsafe { handle::get(info, "rocksdb_writestallinfo_prev") };
    &raw const info.from
}

/// An error; none once it was reset, which changes nothing in the database.
#[derive(Debug)]
pub(crate) struct Status(pub(crate) Option<Error>);

fn bytes_of(path: std::path::PathBuf) -> Vec<u8> {
    path.into_os_string().into_encoded_bytes()
}

fn blob_files(counts: &[BlobCount], dir: &Path) -> Vec<Lent<BlobFile>> {
    let file = |count| Lent::new(BlobFile::new(count, dir));
    counts.iter().map(file).collect()
}

/// Who tells, which is the thread that did the job, or one that was done with another one sooner.
fn thread() -> u64 {
    // SAFETY: it has no requirements.
    unsafe { libc::pthread_self() as u64 }
}

/// RocksDB's number of the compression of the tables that were written; that of "none is set" where there are none.
fn compression_of(info: &CompactionInfo) -> u32 {
    let is_new = |number: u64| info.output_tables.iter().any(|it| it.number == number);
    let made = info.properties.iter().find(|(number, _)| is_new(*number));
    let name = made.map(|(_, properties)| properties.compression_name.as_str());
    let mut all = Codec::ALL.into_iter();
    let codec = all.find(|codec| Some(codec.property_name()) == name);
    codec.map_or(255, number_of)
}

/// RocksDB's number of why a compaction is done, where it has the like of it.
fn reason_of(info: &CompactionInfo) -> u32 {
    match info.reason {
        CompactionReason::L0Full | CompactionReason::L0Crowded => 1,
        CompactionReason::LevelFull => 2,
        CompactionReason::Space => 3,
        CompactionReason::RunsAlike => 4,
        CompactionReason::RunsMany => 5,
        CompactionReason::Expired => 8,
        CompactionReason::Manual => 9,
        CompactionReason::Marked => 10,
        CompactionReason::Aged => 15,
        CompactionReason::BlobGarbage => 17,
        CompactionReason::Reads => 21,
        _ => 0,
    }
}

/// A part that is lent, of the argument's object.
macro_rules! lent {
    ($($function:ident $object:ty, $($field:ident).+ => $part:ty;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $function(info: *const Handle<$object>) -> *const Handle<$part> {
            // SAFETY: the C program's promise.
            let info = unsafe { handle::get(info, stringify!($function)) };
            info.$($field).+.handle().cast_const()
        })*
    };
}

/// One of several parts; null behind the last one.
macro_rules! lent_at {
    ($($function:ident $object:ty, $field:ident => $part:ty;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $function(
            info: *const Handle<$object>,
            at: usize,
        ) -> *const Handle<$part> {
            // SAFETY: the C program's promise.
            let info = unsafe { handle::get(info, stringify!($function)) };
            lent_at(&info.$field, at)
        })*
    };
}

/// As above, where each part has a name beside it.
macro_rules! lent_second_at {
    ($($function:ident $object:ty, $field:ident => $part:ty;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $function(
            info: *const Handle<$object>,
            at: usize,
        ) -> *const Handle<$part> {
            // SAFETY: the C program's promise.
            let info = unsafe { handle::get(info, stringify!($function)) };
            let part = info.$field.get(at);
            part.map_or(std::ptr::null(), |(_, part)| part.handle().cast_const())
        })*
    };
}

lent! {
    rocksdb_flushjobinfo_table_properties FlushJob, properties => Properties;
    rocksdb_externalfileingestioninfo_table_properties Ingested, properties => Properties;
    rocksdb_compactionjobinfo_stats CompactionJob, stats => JobStats;
    rocksdb_subcompactionjobinfo_stats Subcompaction, stats => JobStats;
}

lent_at! {
    rocksdb_flushjobinfo_blob_file_addition_info_at FlushJob, blob_files => BlobFile;
    rocksdb_compactionjobinfo_blob_file_addition_info_at CompactionJob, blob_files => BlobFile;
    rocksdb_compactionjobinfo_blob_file_garbage_info_at CompactionJob, blob_garbage => BlobGarbage;
}

lent_second_at! {
    rocksdb_compactionjobinfo_input_file_info_at CompactionJob, inputs => CompactionFile;
    rocksdb_compactionjobinfo_output_file_info_at CompactionJob, outputs => CompactionFile;
    rocksdb_compactionjobinfo_table_properties_value_at CompactionJob, properties => Properties;
}

/// The name is the path of a table; null for one that it is not of.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compactionjobinfo_table_properties_for_file(
    info: *const Handle<CompactionJob>,
    file_name: *const c_char,
    file_name_len: usize,
) -> *const Handle<Properties> {
    const NAME: &str = "rocksdb_compactionjobinfo_table_properties_for_file";
    // SAFETY: the C program's promise.
    let info = unsafe { handle::get(info, NAME) };
    // SAFETY: as above.
    let wanted = unsafe { bytes::slice(file_name, file_name_len, NAME) };
    let found = info.properties.iter().find(|(path, _)| path == wanted);
    found.map_or(std::ptr::null(), |(_, of)| of.handle().cast_const())
}

pub(crate) mod calls {
    use drumlin::{Error, Result};

    use crate::options::number_of;

    use super::{
        BlobFile, BlobGarbage, CompactionFile, CompactionJob, FlushJob, Ingested, SealedMemtable,
        StallChange, Status, Subcompaction, reason_of, thread,
    };

    pub(crate) fn status_ptr_get_error(status: &Status) -> Result<()> {
        status
            .0
            .as_ref()
            .map_or(Ok(()), |error| Err(Error::duplicate(error)))
    }

    pub(crate) fn reset_status(status: &mut Status) {
        status.0 = None;
    }

    pub(crate) fn flushjobinfo_cf_id(info: &FlushJob) -> u32 {
        info.info.family_id
    }

    pub(crate) fn flushjobinfo_cf_name(info: &FlushJob) -> Option<&[u8]> {
        Some(info.info.family.as_bytes())
    }

    pub(crate) fn flushjobinfo_file_number(info: &FlushJob) -> u64 {
        info.info.table.unwrap_or(0)
    }

    pub(crate) fn flushjobinfo_file_path(info: &FlushJob) -> Option<&[u8]> {
        Some(&info.path)
    }

    pub(crate) fn flushjobinfo_smallest_seqno(info: &FlushJob) -> u64 {
        info.info.seqnos.0
    }

    pub(crate) fn flushjobinfo_largest_seqno(info: &FlushJob) -> u64 {
        info.info.seqnos.1
    }

    pub(crate) fn flushjobinfo_job_id(info: &FlushJob) -> i32 {
        info.info.job as i32
    }

    pub(crate) fn flushjobinfo_thread_id(_info: &FlushJob) -> u64 {
        thread()
    }

    /// RocksDB's "others": the engine does not say why.
    pub(crate) fn flushjobinfo_flush_reason(_info: &FlushJob) -> u32 {
        0
    }

    /// Tables of L0 refer to blob files that were written with them.
    pub(crate) fn flushjobinfo_oldest_blob_file_number(info: &FlushJob) -> u64 {
        let files = info.info.blob_files.iter().map(|it| it.file);
        files.min().unwrap_or(0)
    }

    /// Writers are never stopped, nor slowed at a number of tables.
    pub(crate) fn flushjobinfo_triggered_writes_slowdown(_info: &FlushJob) -> bool {
        false
    }

    pub(crate) fn flushjobinfo_triggered_writes_stop(_info: &FlushJob) -> bool {
        false
    }

    pub(crate) fn flushjobinfo_blob_compression_type(info: &FlushJob) -> u32 {
        number_of(info.info.blob_codec)
    }

    pub(crate) fn flushjobinfo_blob_file_addition_infos_count(info: &FlushJob) -> usize {
        info.blob_files.len()
    }

    pub(crate) fn compactionjobinfo_cf_id(info: &CompactionJob) -> u32 {
        info.info.family_id
    }

    pub(crate) fn compactionjobinfo_cf_name(info: &CompactionJob) -> Option<&[u8]> {
        Some(info.info.family.as_bytes())
    }

    /// Only what ended well is told of.
    pub(crate) fn compactionjobinfo_status(_info: &CompactionJob) -> Result<()> {
        Ok(())
    }

    pub(crate) fn compactionjobinfo_aborted(_info: &CompactionJob) -> bool {
        false
    }

    pub(crate) fn compactionjobinfo_base_input_level(info: &CompactionJob) -> i32 {
        info.info.level as i32
    }

    pub(crate) fn compactionjobinfo_output_level(info: &CompactionJob) -> i32 {
        info.info.output_level as i32
    }

    pub(crate) fn compactionjobinfo_job_id(info: &CompactionJob) -> i32 {
        info.info.job as i32
    }

    pub(crate) fn compactionjobinfo_thread_id(_info: &CompactionJob) -> u64 {
        thread()
    }

    pub(crate) fn compactionjobinfo_compaction_reason(info: &CompactionJob) -> u32 {
        reason_of(&info.info)
    }

    /// Of the tables that were written: a program that has set one finds it here.
    pub(crate) fn compactionjobinfo_compression(info: &CompactionJob) -> u32 {
        info.compression
    }

    pub(crate) fn compactionjobinfo_num_l0_files(info: &CompactionJob) -> i32 {
        info.l0_files
    }

    pub(crate) fn compactionjobinfo_input_records(info: &CompactionJob) -> u64 {
        info.records.0
    }

    pub(crate) fn compactionjobinfo_output_records(info: &CompactionJob) -> u64 {
        info.records.1
    }

    /// An entry that cannot be read ends the compaction.
    pub(crate) fn compactionjobinfo_num_corrupt_keys(_info: &CompactionJob) -> u64 {
        0
    }

    pub(crate) fn compactionjobinfo_table_properties_count(info: &CompactionJob) -> usize {
        info.properties.len()
    }

    pub(crate) fn compactionjobinfo_table_properties_key_at(
        info: &CompactionJob,
        at: usize,
    ) -> Option<&[u8]> {
        info.properties.get(at).map(|(path, _)| path.as_slice())
    }

    pub(crate) fn compactionjobinfo_blob_compression_type(info: &CompactionJob) -> u32 {
        number_of(info.info.blob_codec)
    }

    pub(crate) fn compactionjobinfo_blob_file_addition_infos_count(info: &CompactionJob) -> usize {
        info.blob_files.len()
    }

    pub(crate) fn compactionjobinfo_blob_file_garbage_infos_count(info: &CompactionJob) -> usize {
        info.blob_garbage.len()
    }

    pub(crate) fn compactionjobinfo_elapsed_micros(info: &CompactionJob) -> u64 {
        u64::try_from(info.info.took.as_micros()).unwrap_or(u64::MAX)
    }

    pub(crate) fn compactionjobinfo_num_input_files_at_output_level(info: &CompactionJob) -> usize {
        let tables = info.info.input_tables.iter();
        tables
            .filter(|it| it.level == info.info.output_level)
            .count()
    }

    pub(crate) fn compactionjobinfo_total_input_bytes(info: &CompactionJob) -> u64 {
        info.info.bytes_read
    }

    pub(crate) fn compactionjobinfo_total_output_bytes(info: &CompactionJob) -> u64 {
        info.info.bytes_written
    }

    pub(crate) fn compactionjobinfo_input_files_count(info: &CompactionJob) -> usize {
        info.inputs.len()
    }

    pub(crate) fn compactionjobinfo_input_file_at(
        info: &CompactionJob,
        at: usize,
    ) -> Option<&[u8]> {
        info.inputs.get(at).map(|(path, _)| path.as_slice())
    }

    pub(crate) fn compactionjobinfo_output_files_count(info: &CompactionJob) -> usize {
        info.outputs.len()
    }

    pub(crate) fn compactionjobinfo_output_file_at(
        info: &CompactionJob,
        at: usize,
    ) -> Option<&[u8]> {
        info.outputs.get(at).map(|(path, _)| path.as_slice())
    }

    pub(crate) fn compaction_file_info_level(file: &CompactionFile) -> i32 {
        file.0.level as i32
    }

    pub(crate) fn compaction_file_info_file_number(file: &CompactionFile) -> u64 {
        file.0.number
    }

    pub(crate) fn compaction_file_info_oldest_blob_file_number(file: &CompactionFile) -> u64 {
        file.0.oldest_blob_file
    }

    pub(crate) fn externalfileingestioninfo_cf_name(info: &Ingested) -> Option<&[u8]> {
        Some(info.info.family.as_bytes())
    }

    pub(crate) fn externalfileingestioninfo_external_file_path(info: &Ingested) -> Option<&[u8]> {
        Some(&info.original)
    }

    pub(crate) fn externalfileingestioninfo_internal_file_path(info: &Ingested) -> Option<&[u8]> {
        Some(&info.path)
    }

    pub(crate) fn externalfileingestioninfo_global_seqno(info: &Ingested) -> u64 {
        info.info.seqno
    }

    pub(crate) fn memtableinfo_cf_name(info: &SealedMemtable) -> Option<&[u8]> {
        Some(info.0.family.as_bytes())
    }

    pub(crate) fn memtableinfo_num_entries(info: &SealedMemtable) -> u64 {
        info.0.entries
    }

    pub(crate) fn memtableinfo_num_deletes(info: &SealedMemtable) -> u64 {
        info.0.deletions
    }

    pub(crate) fn memtableinfo_first_seqno(info: &SealedMemtable) -> u64 {
        info.0.first_seqno
    }

    pub(crate) fn memtableinfo_earliest_seqno(info: &SealedMemtable) -> u64 {
        info.0.earliest_seqno
    }

    /// Of families whose timestamps are not stored, as which none are opened.
    pub(crate) fn memtableinfo_newest_udt(_info: &SealedMemtable) -> Option<&[u8]> {
        Some(&[])
    }

    pub(crate) fn writestallinfo_cf_name(info: &StallChange) -> Option<&[u8]> {
        Some(info.family.as_bytes())
    }

    pub(crate) fn blob_file_addition_info_blob_file_number(info: &BlobFile) -> u64 {
        info.count.file
    }

    pub(crate) fn blob_file_addition_info_blob_file_path(info: &BlobFile) -> Option<&[u8]> {
        Some(&info.path)
    }

    pub(crate) fn blob_file_addition_info_total_blob_count(info: &BlobFile) -> u64 {
        info.count.blobs
    }

    pub(crate) fn blob_file_addition_info_total_blob_bytes(info: &BlobFile) -> u64 {
        info.count.bytes
    }

    pub(crate) fn blob_file_garbage_info_blob_file_number(info: &BlobGarbage) -> u64 {
        info.0.count.file
    }

    pub(crate) fn blob_file_garbage_info_blob_file_path(info: &BlobGarbage) -> Option<&[u8]> {
        Some(&info.0.path)
    }

    pub(crate) fn blob_file_garbage_info_garbage_blob_count(info: &BlobGarbage) -> u64 {
        info.0.count.blobs
    }

    pub(crate) fn blob_file_garbage_info_garbage_blob_bytes(info: &BlobGarbage) -> u64 {
        info.0.count.bytes
    }

    pub(crate) fn subcompactionjobinfo_cf_id(info: &Subcompaction) -> u32 {
        info.info.family_id
    }

    pub(crate) fn subcompactionjobinfo_cf_name(info: &Subcompaction) -> Option<&[u8]> {
        Some(info.info.family.as_bytes())
    }

    pub(crate) fn subcompactionjobinfo_status(_info: &Subcompaction) -> Result<()> {
        Ok(())
    }

    pub(crate) fn subcompactionjobinfo_job_id(info: &Subcompaction) -> i32 {
        info.info.job as i32
    }

    pub(crate) fn subcompactionjobinfo_subcompaction_job_id(_info: &Subcompaction) -> i32 {
        0
    }

    pub(crate) fn subcompactionjobinfo_thread_id(_info: &Subcompaction) -> u64 {
        thread()
    }

    pub(crate) fn subcompactionjobinfo_base_input_level(info: &Subcompaction) -> i32 {
        info.info.level as i32
    }

    pub(crate) fn subcompactionjobinfo_output_level(info: &Subcompaction) -> i32 {
        info.info.output_level as i32
    }

    pub(crate) fn subcompactionjobinfo_compaction_reason(info: &Subcompaction) -> u32 {
        reason_of(&info.info)
    }

    pub(crate) fn subcompactionjobinfo_compression(info: &Subcompaction) -> u32 {
        super::compression_of(&info.info)
    }

    pub(crate) fn subcompactionjobinfo_blob_compression_type(info: &Subcompaction) -> u32 {
        number_of(info.info.blob_codec)
    }
}
