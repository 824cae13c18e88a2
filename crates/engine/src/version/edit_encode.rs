//! Version edits to bytes.

use drumlin_base::coding::{put_slice, put_varint32, put_varint64, varint_len};
use drumlin_base::limits::NAME_BYTES_MAX;
use drumlin_base::{Error, Result};

use super::edit::{BLOB_FIELDS_END, file_tag, tag};
use super::{BlobFileAddition, BlobFileGarbage, NewFile, Profile, VersionEdit};

impl VersionEdit {
    /// The edit as one record of a MANIFEST.
    ///
    /// # Errors
    /// `NotSupported` when `profile` has no bytes for something the edit says; `InvalidArgument`
    /// for a name longer than a reader accepts.
    pub fn encode(&self, profile: Profile) -> Result<Vec<u8>> {
        let names = [&self.comparator, &self.add_family, &self.db_id];
        if names.iter().any(|name| {
            name.as_ref()
                .is_some_and(|name| name.len() > NAME_BYTES_MAX)
        }) {
            let message = format!("a name has more than {NAME_BYTES_MAX} bytes");
            return Err(Error::invalid_argument(message));
        }
        let mut out = Vec::with_capacity(64 + 160 * self.new_files.len());
        match profile {
            Profile::RocksDb => self.encode_rocksdb(&mut out),
            Profile::RocksDb5 => {
                let known = Self {
                    db_id: None,
                    min_log_number_to_keep: None,
                    wal_additions: Vec::new(),
                    wals_deleted_below: None,
                    atomic_group_remaining: None,
                    synced_from: None,
                    change: None,
                    section_wals: None,
                    history: None,
                    ..self.clone()
                };
                known.encode_rocksdb(&mut out);
            }
            Profile::LevelDb => self.encode_leveldb(&mut out)?,
        }
        Ok(out)
    }

    fn encode_rocksdb(&self, out: &mut Vec<u8>) {
        put_text(out, tag::DB_ID, self.db_id.as_deref());
        self.encode_numbers(out);
        if let Some(id) = self.max_column_family {
            put_number(out, tag::MAX_COLUMN_FAMILY, Some(u64::from(id)));
        }
        put_number(
            out,
            tag::MIN_LOG_NUMBER_TO_KEEP,
            self.min_log_number_to_keep,
        );
        self.encode_cursors_and_deletions(out);
        for (level, file) in &self.new_files {
            encode_new_file_4(out, *level, file);
        }
        for addition in &self.blob_additions {
            encode_blob_addition(out, addition);
        }
        for garbage in &self.blob_garbage {
            encode_blob_garbage(out, garbage);
        }
        self.encode_wals(out);
        if self.column_family != 0 {
            put_number(out, tag::COLUMN_FAMILY, Some(u64::from(self.column_family)));
        }
        put_text(out, tag::ADD_FAMILY, self.add_family.as_deref());
        if self.drop_family {
            put_varint32(out, tag::DROP_FAMILY);
        }
        if let Some(low) = &self.full_history_ts_low {
            put_varint32(out, tag::FULL_HISTORY_TS_LOW);
            put_slice(out, low);
        }
        if let Some(remaining) = self.atomic_group_remaining {
            put_number(out, tag::ATOMIC_GROUP, Some(u64::from(remaining)));
        }
        if let Some(offset) = self.synced_from {
            put_varint32(out, tag::SYNCED_FROM);
            put_varint_slice(out, offset);
        }
        if let Some(change) = &self.change {
            put_varint32(out, tag::CHANGE);
            put_slice(out, change);
        }
        if let Some(wals) = &self.section_wals {
            let mut body = Vec::new();
            wals.iter().for_each(|wal| put_varint64(&mut body, *wal));
            put_varint32(out, tag::SECTION_WALS);
            put_slice(out, &body);
        }
        if let Some(history) = &self.history {
            put_varint32(out, tag::HISTORY);
            put_slice(out, &history.encode());
        }
    }

    fn encode_leveldb(&self, out: &mut Vec<u8>) -> Result<()> {
        let foreign = [
            (self.column_family != 0, "a second column family"),
            (self.add_family.is_some(), "creating a column family"),
            (self.drop_family, "dropping a column family"),
            (self.atomic_group_remaining.is_some(), "atomic groups"),
            (!self.blob_additions.is_empty(), "blob files"),
            (!self.blob_garbage.is_empty(), "blob files"),
        ];
        if let Some((_, feature)) = foreign.iter().find(|(used, _)| *used) {
            return Err(Error::not_supported(format!("LevelDB has no {feature}")));
        }
        self.encode_numbers(out);
        self.encode_cursors_and_deletions(out);
        for (level, file) in &self.new_files {
            put_varint32(out, tag::NEW_FILE);
            put_varint32(out, *level);
            put_varint64(out, file.number);
            put_varint64(out, file.size);
            put_slice(out, &file.smallest);
            put_slice(out, &file.largest);
        }
        Ok(())
    }

    /// The database's numbers that both profiles share.
    fn encode_numbers(&self, out: &mut Vec<u8>) {
        put_text(out, tag::COMPARATOR, self.comparator.as_deref());
        put_number(out, tag::LOG_NUMBER, self.log_number);
        put_number(out, tag::PREV_LOG_NUMBER, self.prev_log_number);
        put_number(out, tag::NEXT_FILE_NUMBER, self.next_file_number);
        put_number(out, tag::LAST_SEQNO, self.last_seqno);
    }

    fn encode_cursors_and_deletions(&self, out: &mut Vec<u8>) {
        for (level, key) in &self.compact_cursors {
            put_varint32(out, tag::COMPACT_CURSOR);
            put_varint32(out, *level);
            put_slice(out, key);
        }
        for (level, number) in &self.deleted_files {
            put_varint32(out, tag::DELETED_FILE);
            put_varint32(out, *level);
            put_varint64(out, *number);
        }
    }

    fn encode_wals(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        for (number, synced_bytes) in &self.wal_additions {
            body.clear();
            put_varint64(&mut body, *number);
            if let Some(bytes) = synced_bytes {
                put_varint32(&mut body, WAL_SYNCED_BYTES);
                put_varint64(&mut body, *bytes);
            }
            put_varint32(&mut body, WAL_FIELDS_END);
            put_varint32(out, tag::WAL_ADDITION);
            put_slice(out, &body);
        }
        if let Some(below) = self.wals_deleted_below {
            put_varint32(out, tag::WAL_DELETION);
            put_varint_slice(out, below);
        }
    }
}

/// Fields of a tracked WAL, on disk.
pub(super) const WAL_FIELDS_END: u32 = 1;
pub(super) const WAL_SYNCED_BYTES: u32 = 2;

fn put_text(out: &mut Vec<u8>, tag: u32, text: Option<&str>) {
    if let Some(text) = text {
        put_varint32(out, tag);
        put_slice(out, text.as_bytes());
    }
}

fn put_number(out: &mut Vec<u8>, tag: u32, number: Option<u64>) {
    if let Some(number) = number {
        put_varint32(out, tag);
        put_varint64(out, number);
    }
}

/// A varint as the body of a length-prefixed slice.
fn put_varint_slice(out: &mut Vec<u8>, value: u64) {
    put_varint32(out, varint_len(value) as u32);
    put_varint64(out, value);
}

fn encode_new_file_4(out: &mut Vec<u8>, level: u32, file: &NewFile) {
    put_varint32(out, tag::NEW_FILE_4);
    put_varint32(out, level);
    put_varint64(out, file.number);
    put_varint64(out, file.size);
    put_slice(out, &file.smallest);
    put_slice(out, &file.largest);
    put_varint64(out, file.smallest_seqno);
    put_varint64(out, file.largest_seqno);

    let number = |out: &mut Vec<u8>, tag: u32, value: u64| {
        put_varint32(out, tag);
        put_varint_slice(out, value);
    };
    let number_unless_zero = |out: &mut Vec<u8>, tag: u32, value: u64| {
        if value != 0 {
            number(out, tag, value);
        }
    };
    number(
        out,
        file_tag::OLDEST_ANCESTOR_TIME,
        file.oldest_ancestor_time,
    );
    number(out, file_tag::CREATION_TIME, file.creation_time);
    number_unless_zero(out, file_tag::EPOCH, file.epoch);
    if let Some(checksum) = &file.checksum {
        put_varint32(out, file_tag::CHECKSUM);
        put_slice(out, &checksum.bytes);
        put_varint32(out, file_tag::CHECKSUM_FUNCTION);
        put_slice(out, checksum.function.as_bytes());
    }
    if file.temperature != 0 {
        put_varint32(out, file_tag::TEMPERATURE);
        put_slice(out, &[file.temperature]);
    }
    if file.marked_for_compaction {
        put_varint32(out, file_tag::MARKED_FOR_COMPACTION);
        put_slice(out, &[1]);
    }
    number_unless_zero(out, file_tag::OLDEST_BLOB_FILE, file.oldest_blob_file);
    if let Some(id) = &file.unique_id {
        put_varint32(out, file_tag::UNIQUE_ID);
        put_slice(out, id);
    }
    if let Some(id) = file.model {
        put_varint32(out, file_tag::MODEL);
        put_slice(out, &id.to_le_bytes());
    }
    let compensated = file.compensated_range_deletion_bytes;
    number_unless_zero(out, file_tag::COMPENSATED_RANGE_DELETION, compensated);
    number_unless_zero(out, file_tag::TAIL_SIZE, file.tail_size);
    put_varint32(out, file_tag::END);
}

fn encode_blob_addition(out: &mut Vec<u8>, addition: &BlobFileAddition) {
    put_varint32(out, tag::BLOB_ADDITION);
    put_varint64(out, addition.number);
    put_varint64(out, addition.blob_count);
    put_varint64(out, addition.blob_bytes);
    put_slice(out, &addition.checksum_method);
    put_slice(out, &addition.checksum_value);
    put_varint32(out, BLOB_FIELDS_END);
}

fn encode_blob_garbage(out: &mut Vec<u8>, garbage: &BlobFileGarbage) {
    put_varint32(out, tag::BLOB_GARBAGE);
    put_varint64(out, garbage.number);
    put_varint64(out, garbage.garbage_count);
    put_varint64(out, garbage.garbage_bytes);
    put_varint32(out, BLOB_FIELDS_END);
}
