//! `rocksdb_writebatch_t`.

use std::borrow::Cow;
use std::ffi::{c_char, c_void};

use drumlin::internals::batch::BatchView;
use drumlin::{Error, ErrorKind, Result, WriteBatch};
use drumlin_base::ValueKind;
use drumlin_ffi::bytes;
use drumlin_ffi::error::end_process;
use drumlin_ffi::handle::{self, Handle};

use crate::database::Database;
use crate::error::{guard, not_implemented};
use crate::family::Family;
use crate::fields::Writeoptions;
use crate::snapshot::ErrPtr;
use crate::timestamps;

/// What the handle holds: the batch, the first thing that did not fit, which the write reports, and lengths and counts at
/// the savepoints.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) batch: WriteBatch,
    refused: Option<Error>,
    savepoints: Vec<(usize, u32)>,
    /// Where each record is whose key ends with a timestamp that was set.
    stamped: Vec<usize>,
}

/// Where the number of records stands in a batch's bytes.
const COUNT_AT: std::ops::Range<usize> = 8..12;

impl Batch {
    pub(crate) fn of(batch: WriteBatch) -> Self {
        Self {
            batch,
            ..Self::default()
        }
    }

    /// Notes that `function` was called, which the write reports.
    pub(crate) fn refuse(&mut self, function: &str) {
        self.refused.get_or_insert(not_implemented(function));
    }

    pub(crate) fn change(&mut self, change: impl FnOnce(&mut WriteBatch) -> Result<()>) {
        if let Err(error) = change(&mut self.batch) {
            self.refused.get_or_insert(error);
        }
    }

    /// The same, of records of `family` with `timestamp` behind the key.
    pub(crate) fn change_stamped(
        &mut self,
        family: Option<&Family>,
        timestamp: &[u8],
        change: impl FnOnce(&mut WriteBatch, u32) -> Result<()>,
    ) {
        let at = self.batch.len();
        let id = id_of(family);
        let checked = match family {
            Some(family) => timestamps::check(&family.0, timestamp),
            None => Ok(()),
        };
        match checked.and_then(|()| change(&mut self.batch, id)) {
            Ok(()) => self.stamped.push(at),
            Err(error) => {
                self.refused.get_or_insert(error);
            }
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.refused
            .as_ref()
            .map_or(Ok(()), |refused| Err(refused.duplicate()))
    }

    pub(crate) fn write(&self, db: &Database, options: &Writeoptions) -> Result<()> {
        self.check()?;
        let batch = match options.ignore_missing_column_families() {
            true => of_families_there(db, &self.batch)?,
            false => self.batch.clone(),
        };
        let written = match db.has_timestamps() {
            false => db.write(batch, &options.to_engine()?),
            true => {
                self.check_stamps(db)?;
                db.write_stamped(batch, &options.to_engine()?)
            }
        };
        written.map_err(as_of_a_write)
    }

    /// Refuses records without a timestamp in families whose keys have some.
    fn check_stamps(&self, db: &Database) -> Result<()> {
        let families = db.db().families();
        let timed = families
            .iter()
            .filter(|it| it.order().timestamp_bytes() > 0);
        let timed: Vec<u32> = timed.map(drumlin::ColumnFamily::id).collect();
        let records = self.batch.iter().filter_map(Result::ok);
        let count = records.filter(|it| timed.contains(&it.family)).count();
        match count == self.stamped.len() {
            true => Ok(()),
            false => Err(Error::invalid_argument(
                "write batch must have timestamp(s) set",
            )),
        }
    }

    /// Ends the keys of all records with `timestamp` where `bytes_in` says of their family that keys end with some: RocksDB's
    /// 0 is none, and the largest number an unknown family. Where it fails nothing has changed.
    fn update_timestamps(
        &mut self,
        timestamp: &[u8],
        mut bytes_in: impl FnMut(u32) -> usize,
    ) -> Result<()> {
        if timestamp.is_empty() {
            return Err(Error::invalid_argument("Timestamp is empty"));
        }
        let start = self.batch.bytes().as_ptr().addr();
        let mut bytes = self.batch.bytes().to_vec();
        let mut stamped = Vec::new();
        for record in self.batch.iter() {
            let record = record?;
            match bytes_in(record.family) {
                0 => continue,
                usize::MAX => return Err(Error::new(ErrorKind::NotFound, "")),
                found if found != timestamp.len() => {
                    return Err(Error::invalid_argument("timestamp size mismatch"));
                }
                _ => {}
            }
            let keys = match record.kind {
                ValueKind::RangeDeletion => &[record.key, record.value][..],
                _ => &[record.key],
            };
            for key in keys {
                let end = key.as_ptr().addr() - start + key.len();
                let from = end - timestamp.len().min(key.len());
                let place = bytes.get_mut(from..end);
                match place.filter(|place| place.len() == timestamp.len()) {
                    Some(place) => place.copy_from_slice(timestamp),
                    None => {
                        let message = "a key is shorter than its timestamp";
                        return Err(Error::invalid_argument(message));
                    }
                }
            }
            stamped.push(record.key.as_ptr().addr() - start);
        }
        self.batch = WriteBatch::from_bytes(bytes)?;
        self.stamped = stamped;
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn pop(&mut self) -> Result<(usize, u32)> {
        self.savepoints
            .pop()
            .ok_or_else(|| Error::new(ErrorKind::NotFound, ""))
    }

    fn roll_back(&mut self) -> Result<()> {
        let (len, count) = self.pop()?;
        let mut bytes = self.batch.bytes().to_vec();
        bytes.truncate(len);
        self.stamped.retain(|at| *at < len);
        if let Some(place) = bytes.get_mut(COUNT_AT) {
            place.copy_from_slice(&count.to_le_bytes());
        }
        self.batch = WriteBatch::from_bytes(bytes)?;
        Ok(())
    }
}

/// The error of a write as RocksDB words it.
pub(crate) fn as_of_a_write(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Busy => error
            .with_kind(ErrorKind::Incomplete)
            .context("Write stall"),
        ErrorKind::InvalidArgument if error.to_string().contains("no merge operator") => error
            .with_kind(ErrorKind::NotSupported)
            .context("Provide a merge_operator when opening DB"),
        ErrorKind::InvalidArgument if error.to_string().contains("end before") => {
            error.context("end key comes before start key")
        }
        ErrorKind::NotFound => error
            .with_kind(ErrorKind::InvalidArgument)
            .context("Invalid column family specified in write batch"),
        _ => error,
    }
}

/// The records of `batch` whose families are there.
fn of_families_there(db: &Database, batch: &WriteBatch) -> Result<WriteBatch> {
    let there: Vec<u32> = db
        .db()
        .families()
        .iter()
        .map(drumlin::ColumnFamily::id)
        .collect();
    let mut kept = WriteBatch::new();
    for record in batch.iter() {
        let record = record?;
        if !there.contains(&record.family) {
            continue;
        }
        let (family, key, value) = (record.family, record.key, record.value);
        match record.kind {
            ValueKind::Deletion => kept.delete_cf(family, key)?,
            ValueKind::SingleDeletion => kept.single_delete_cf(family, key)?,
            ValueKind::RangeDeletion => kept.delete_range_cf(family, key, value)?,
            ValueKind::Merge => kept.merge_cf(family, key, value)?,
            _ => kept.put_cf(family, key, value)?,
        }
    }
    Ok(kept)
}

pub(crate) type Put = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
pub(crate) type Deleted = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

/// Shows puts and deletions of the default family; of others there is no number to tell.
///
/// # Safety
/// The functions are for `state`.
pub(crate) unsafe fn iterate(
    batch: &WriteBatch,
    state: *mut c_void,
    functions: (Option<Put>, Option<Deleted>),
    name: &str,
) {
    let (Some(put), Some(deleted)) = functions else {
        end_process(name, "a function is null");
    };
    for record in batch.iter() {
        let Ok(record) = record else {
            end_process(name, "the batch does not parse");
        };
        let (key, value) = (record.key, record.value);
        if record.family != 0 {
            continue;
        }
        match record.kind {
            // SAFETY: the function is given its state, and bytes that live until it returns.
            ValueKind::Value => unsafe {
                put(
                    state,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                );
            },
            // SAFETY: as above.
            ValueKind::Deletion => unsafe { deleted(state, key.as_ptr().cast(), key.len()) },
            _ => {}
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_iterate(
    batch: *mut Handle<Batch>,
    state: *mut c_void,
    put: Option<Put>,
    deleted: Option<Deleted>,
) {
    const NAME: &str = "rocksdb_writebatch_iterate";
    // SAFETY: the C program's promise.
    let batch = unsafe { handle::get(batch, NAME) };
    // SAFETY: as above.
    unsafe { iterate(&batch.batch, state, (put, deleted), NAME) };
}

type PutOf = unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize, *const c_char, usize);
type DeletedOf = unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize);
type LogData = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

/// The program's functions for records of any family; those that are null are not called.
struct Visitor {
    state: *mut c_void,
    put: Option<PutOf>,
    deleted: Option<DeletedOf>,
    merge: Option<PutOf>,
}

impl Visitor {
    /// Shows puts, deletions and merges. Other kinds have no function.
    ///
    /// # Safety
    /// The functions are for the state.
    unsafe fn visit(&self, batch: &WriteBatch, name: &str) {
        for record in batch.iter() {
            let Ok(record) = record else {
                end_process(name, "the batch does not parse");
            };
            let (key, key_len) = (record.key.as_ptr().cast(), record.key.len());
            let (value, value_len) = (record.value.as_ptr().cast(), record.value.len());
            match (record.kind, self.put, self.deleted, self.merge) {
                (ValueKind::Value, Some(call), _, _) | (ValueKind::Merge, _, _, Some(call)) => {
                    // SAFETY: the function is given its state, and bytes that live until it returns.
                    unsafe { call(self.state, record.family, key, key_len, value, value_len) };
                }
                (ValueKind::Deletion, _, Some(call), _) => {
                    // SAFETY: as above.
                    unsafe { call(self.state, record.family, key, key_len) };
                }
                _ => {}
            }
        }
    }
}

/// Shows the data for the log, after all records.
///
/// # Safety
/// The function is for `state`.
unsafe fn show_log_data(batch: &WriteBatch, state: *mut c_void, call: Option<LogData>) {
    let (Some(call), Ok(view)) = (call, BatchView::new(batch.bytes())) else {
        return;
    };
    for data in view.log_data() {
        // SAFETY: the function is given its state, and bytes that live until it returns.
        unsafe { call(state, data.as_ptr().cast(), data.len()) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_iterate_cf(
    batch: *mut Handle<Batch>,
    state: *mut c_void,
    put: Option<PutOf>,
    deleted: Option<DeletedOf>,
    merge: Option<PutOf>,
) {
    const NAME: &str = "rocksdb_writebatch_iterate_cf";
    // SAFETY: the C program's promise.
    let batch = unsafe { handle::get(batch, NAME) };
    let visitor = Visitor {
        state,
        put,
        deleted,
        merge,
    };
    // SAFETY: as above.
    unsafe { visitor.visit(&batch.batch, NAME) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_iterate_cf_ld(
    batch: *mut Handle<Batch>,
    state: *mut c_void,
    put: Option<PutOf>,
    deleted: Option<DeletedOf>,
    merge: Option<PutOf>,
    log_data: Option<LogData>,
) {
    const NAME: &str = "rocksdb_writebatch_iterate_cf_ld";
    // SAFETY: the C program's promise.
    let batch = unsafe { handle::get(batch, NAME) };
    let visitor = Visitor {
        state,
        put,
        deleted,
        merge,
    };
    // SAFETY: as above.
    unsafe { visitor.visit(&batch.batch, NAME) };
    // SAFETY: as above.
    unsafe { show_log_data(&batch.batch, state, log_data) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_iterate_ld(
    batch: *mut Handle<Batch>,
    state: *mut c_void,
    put: Option<Put>,
    deleted: Option<Deleted>,
    log_data: Option<LogData>,
) {
    const NAME: &str = "rocksdb_writebatch_iterate_ld";
    // SAFETY: the C program's promise.
    let batch = unsafe { handle::get(batch, NAME) };
    // SAFETY: as above.
    unsafe { iterate(&batch.batch, state, (put, deleted), NAME) };
    // SAFETY: as above.
    unsafe { show_log_data(&batch.batch, state, log_data) };
}

type BytesIn = unsafe extern "C" fn(*mut c_void, u32) -> usize;

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_update_timestamps(
    batch: *mut Handle<Batch>,
    timestamp: *const c_char,
    timestamp_len: usize,
    state: *mut c_void,
    bytes_in: Option<BytesIn>,
    errptr: ErrPtr,
) {
    const NAME: &str = "rocksdb_writebatch_update_timestamps";
    // SAFETY: the C program's promise.
    let batch = unsafe { handle::get_mut(batch, NAME) };
    // SAFETY: as above.
    let timestamp = unsafe { bytes::slice(timestamp, timestamp_len, NAME) };
    let Some(bytes_in) = bytes_in else {
        end_process(NAME, "the function is null");
    };
    // SAFETY: as above; the function is given its state.
    let update = || batch.update_timestamps(timestamp, |family| unsafe { bytes_in(state, family) });
    // SAFETY: as above.
    unsafe { guard(NAME, errptr, update) };
}

/// `key` as a record of `family` has it: where its keys end with timestamps, with one that is still to be set.
fn unstamped<'a>(family: Option<&Family>, key: &'a [u8]) -> Cow<'a, [u8]> {
    match family.map_or(0, |family| family.0.order().timestamp_bytes()) {
        0 => Cow::Borrowed(key),
        bytes => Cow::Owned(timestamps::with(key, &vec![0; bytes])),
    }
}

/// `parts`, one after another.
pub(crate) fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// The number of a family in batches.
pub(crate) fn id_of(family: Option<&Family>) -> u32 {
    family.map_or(0, |family| family.0.id())
}

pub(crate) mod calls {
    use drumlin::{Result, WriteBatch};

    use super::{Batch, id_of, joined, unstamped};
    use crate::family::Family;

    /// A batch that does not parse is refused by the write.
    pub(crate) fn writebatch_create_from(bytes: &[u8]) -> Batch {
        match WriteBatch::from_bytes(bytes.to_vec()) {
            Ok(batch) => Batch::of(batch),
            Err(error) => Batch {
                refused: Some(error),
                ..Batch::default()
            },
        }
    }

    /// It has no bound, and no checksums of its own. Keys with timestamps are refused by the write.
    pub(crate) fn writebatch_create_with_params(
        _reserved: usize,
        _bytes_max: usize,
        _protection_bytes: usize,
        timestamp_bytes: usize,
    ) -> Batch {
        let mut batch = Batch::default();
        if timestamp_bytes > 0 {
            batch.refuse("rocksdb_writebatch_create_with_params with timestamps");
        }
        batch
    }

    /// Records have no checksums before they are written.
    pub(crate) fn writebatch_verify_checksum(_batch: &mut Batch) -> Result<()> {
        Ok(())
    }

    pub(crate) fn writebatch_clear(batch: &mut Batch) {
        batch.clear();
    }

    pub(crate) fn writebatch_count(batch: &mut Batch) -> i32 {
        i32::try_from(batch.batch.count()).unwrap_or(i32::MAX)
    }

    pub(crate) fn writebatch_put_cf(
        batch: &mut Batch,
        family: Option<&Family>,
        key: &[u8],
        value: &[u8],
    ) {
        batch.change(|batch| batch.put_cf(id_of(family), &unstamped(family, key), value));
    }

    pub(crate) fn writebatch_putv_cf(
        batch: &mut Batch,
        family: Option<&Family>,
        key: &[&[u8]],
        value: &[&[u8]],
    ) {
        writebatch_put_cf(batch, family, &joined(key), &joined(value));
    }

    pub(crate) fn writebatch_merge_cf(
        batch: &mut Batch,
        family: Option<&Family>,
        key: &[u8],
        operand: &[u8],
    ) {
        batch.change(|batch| batch.merge_cf(id_of(family), key, operand));
    }

    pub(crate) fn writebatch_mergev_cf(
        batch: &mut Batch,
        family: Option<&Family>,
        key: &[&[u8]],
        operand: &[&[u8]],
    ) {
        writebatch_merge_cf(batch, family, &joined(key), &joined(operand));
    }

    pub(crate) fn writebatch_delete_cf(batch: &mut Batch, family: Option<&Family>, key: &[u8]) {
        batch.change(|batch| batch.delete_cf(id_of(family), &unstamped(family, key)));
    }

    pub(crate) fn writebatch_singledelete_cf(
        batch: &mut Batch,
        family: Option<&Family>,
        key: &[u8],
    ) {
        batch.change(|batch| batch.single_delete_cf(id_of(family), &unstamped(family, key)));
    }

    pub(crate) fn writebatch_deletev_cf(batch: &mut Batch, family: Option<&Family>, key: &[&[u8]]) {
        writebatch_delete_cf(batch, family, &joined(key));
    }

    pub(crate) fn writebatch_delete_range_cf(
        batch: &mut Batch,
        family: Option<&Family>,
        begin: &[u8],
        end: &[u8],
    ) {
        batch.change(|batch| batch.delete_range_cf(id_of(family), begin, end));
    }

    pub(crate) fn writebatch_delete_rangev_cf(
        batch: &mut Batch,
        family: Option<&Family>,
        begin: &[&[u8]],
        end: &[&[u8]],
    ) {
        writebatch_delete_range_cf(batch, family, &joined(begin), &joined(end));
    }

    pub(crate) fn writebatch_put_log_data(batch: &mut Batch, data: &[u8]) {
        batch.change(|batch| batch.put_log_data(data));
    }

    pub(crate) fn writebatch_data(batch: &mut Batch) -> Option<&[u8]> {
        Some(batch.batch.bytes())
    }

    pub(crate) fn writebatch_set_save_point(batch: &mut Batch) {
        batch
            .savepoints
            .push((batch.batch.len(), batch.batch.count()));
    }

    pub(crate) fn writebatch_rollback_to_save_point(batch: &mut Batch) -> Result<()> {
        batch.roll_back()
    }

    pub(crate) fn writebatch_pop_save_point(batch: &mut Batch) -> Result<()> {
        batch.pop().map(drop)
    }
}
