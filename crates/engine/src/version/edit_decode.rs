//! Bytes to version edits. The bytes are a claim: every step is checked, nothing panics.

use drumlin_base::coding::{Reader, fixed64_at};
use drumlin_base::key::ParsedKey;
use drumlin_base::limits::{LEVELS, NAME_BYTES_MAX};
use drumlin_base::{Error, Result, SEQNO_MAX};

use super::edit::{BLOB_FIELDS_END, file_tag, tag};
use super::edit_encode::{WAL_FIELDS_END, WAL_SYNCED_BYTES};
use super::{BlobFileAddition, BlobFileGarbage, FileChecksum, History, NewFile, VersionEdit};
use crate::files::names::FILE_NUMBER_MAX;

/// Epochs count the tables of a family, so one as large as this is damage. The next epoch always fits.
const EPOCH_MAX: u64 = (1 << 62) - 1;

impl VersionEdit {
    /// The edit one record of a MANIFEST holds, RocksDB's or LevelDB's.
    ///
    /// # Errors
    /// `Corruption` when the bytes are cut or senseless, `NotSupported` when they use something
    /// this engine cannot serve faithfully (an unknown tag that may not be skipped, more levels
    /// than seven, tables outside the directory, user-defined timestamps).
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut edit = Self::default();
        let mut from = Fields(Reader::new(bytes));
        while !from.0.is_empty() {
            let tag = from.varint32("tag")?;
            if !edit.decode_number(tag, &mut from)? && !edit.decode_change(tag, &mut from)? {
                skip_unknown(tag, &mut from)?;
            }
        }
        Ok(edit)
    }

    /// Tags of the database's numbers and names; false for any other tag.
    fn decode_number(&mut self, tag: u32, from: &mut Fields<'_>) -> Result<bool> {
        match tag {
            tag::DB_ID => self.db_id = Some(from.text("database id")?),
            tag::COMPARATOR => self.comparator = Some(from.text("comparator name")?),
            tag::LOG_NUMBER => self.log_number = Some(from.file_number("log number")?),
            tag::PREV_LOG_NUMBER => {
                self.prev_log_number = Some(from.file_number("previous log number")?);
            }
            tag::NEXT_FILE_NUMBER => {
                self.next_file_number = Some(from.file_number("next file number")?);
            }
            tag::LAST_SEQNO => self.last_seqno = Some(from.seqno("last sequence number")?),
            tag::MAX_COLUMN_FAMILY => {
                self.max_column_family = Some(from.varint32("highest family id")?);
            }
            tag::MIN_LOG_NUMBER_TO_KEEP => {
                self.min_log_number_to_keep = Some(from.file_number("log number to keep")?);
            }
            tag::COLUMN_FAMILY => self.column_family = from.varint32("family id")?,
            tag::ADD_FAMILY => self.add_family = Some(from.text("family name")?),
            tag::DROP_FAMILY => self.drop_family = true,
            tag::ATOMIC_GROUP => {
                self.atomic_group_remaining = Some(from.varint32("atomic group")?);
            }
            tag::SYNCED_FROM => {
                let mut body = Fields(Reader::new(from.slice("sync mark")?));
                self.synced_from = Some(body.varint64("sync mark")?);
            }
            tag::SECTION_WALS => {
                let mut body = Fields(Reader::new(from.slice("WAL files with sections")?));
                let mut wals = Vec::new();
                while !body.0.is_empty() {
                    wals.push(body.file_number("WAL with a section")?);
                }
                self.section_wals = Some(wals);
            }
            tag::HISTORY => self.history = Some(History::decode(from.slice("history")?)?),
            tag::CHANGE => self.change = Some(from.slice("change")?.to_vec()),
            tag::FULL_HISTORY_TS_LOW => {
                let low = from.slice("lowest timestamp")?;
                if low.is_empty() {
                    return Err(cut("lowest timestamp"));
                }
                self.full_history_ts_low = Some(low.to_vec());
            }
            tag::PERSIST_TIMESTAMPS => {
                if from.slice("timestamp setting")? != [1] {
                    return Err(timestamps());
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Tags of files that come and go; false for any other tag.
    fn decode_change(&mut self, tag: u32, from: &mut Fields<'_>) -> Result<bool> {
        match tag {
            tag::COMPACT_CURSOR => {
                let level = from.level()?;
                let key = from.internal_key("compaction cursor")?;
                self.compact_cursors.push((level, key));
            }
            tag::DELETED_FILE => {
                let level = from.level()?;
                self.deleted_files
                    .push((level, from.file_number("deleted file")?));
            }
            tag::NEW_FILE | tag::NEW_FILE_2 | tag::NEW_FILE_3 => {
                self.new_files.push(decode_old_file(tag, from)?);
            }
            tag::NEW_FILE_4 => {
                let (level, file, log_number) = decode_new_file_4(from)?;
                self.new_files.push((level, file));
                if log_number.is_some() {
                    self.min_log_number_to_keep = log_number;
                }
            }
            tag::BLOB_ADDITION | tag::OLD_BLOB_ADDITION => {
                self.blob_additions.push(decode_blob_addition(from)?);
            }
            tag::BLOB_GARBAGE | tag::OLD_BLOB_GARBAGE => {
                self.blob_garbage.push(decode_blob_garbage(from)?);
            }
            tag::WAL_ADDITION => {
                let mut body = Fields(Reader::new(from.slice("WAL addition")?));
                self.wal_additions.push(decode_wal_addition(&mut body)?);
            }
            tag::OLD_WAL_ADDITION => self.wal_additions.push(decode_wal_addition(from)?),
            tag::WAL_DELETION => {
                let mut body = Fields(Reader::new(from.slice("WAL deletion")?));
                self.wals_deleted_below = Some(body.file_number("WAL deletion")?);
            }
            tag::OLD_WAL_DELETION => {
                self.wals_deleted_below = Some(from.file_number("WAL deletion")?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn skip_unknown(tag: u32, from: &mut Fields<'_>) -> Result<()> {
    if tag & tag::IGNORABLE == 0 {
        let message = format!("the MANIFEST uses the unknown tag {tag}");
        return Err(Error::not_supported(message));
    }
    from.slice("body of an ignorable tag").map(|_| ())
}

fn decode_old_file(tag: u32, from: &mut Fields<'_>) -> Result<(u32, NewFile)> {
    let level = from.level()?;
    let number = from.file_number("table number")?;
    if tag == tag::NEW_FILE_3 {
        refuse_other_paths(from.varint32("path id")?)?;
    }
    let mut file = NewFile {
        number,
        size: from.varint64("table size")?,
        smallest: from.internal_key("smallest key")?,
        largest: from.internal_key("largest key")?,
        ..NewFile::default()
    };
    if tag != tag::NEW_FILE {
        file.smallest_seqno = from.seqno("smallest sequence number")?;
        file.largest_seqno = from.seqno("largest sequence number")?;
    }
    Ok((level, file))
}

/// A table, and the log number that RocksDB hides in its description.
fn decode_new_file_4(from: &mut Fields<'_>) -> Result<(u32, NewFile, Option<u64>)> {
    let level = from.level()?;
    let mut file = NewFile {
        number: from.file_number("table number")?,
        size: from.varint64("table size")?,
        smallest: from.internal_key("smallest key")?,
        largest: from.internal_key("largest key")?,
        smallest_seqno: from.seqno("smallest sequence number")?,
        largest_seqno: from.seqno("largest sequence number")?,
        ..NewFile::default()
    };
    let mut log_number = None;
    let (mut checksum, mut function) = (None, None);
    loop {
        let tag = from.varint32("table field")?;
        if tag == file_tag::END {
            break;
        }
        let body = from.slice("table field")?;
        match tag {
            file_tag::MIN_LOG_NUMBER_TO_KEEP => {
                let what = "log number to keep";
                let number = fixed64_at(body, 0).ok_or_else(|| cut(what))?;
                log_number = Some(checked_file_number(number, what)?);
            }
            file_tag::CHECKSUM => checksum = Some(body.to_vec()),
            file_tag::CHECKSUM_FUNCTION => function = Some(text(body, "checksum function")?),
            _ => decode_table_field(&mut file, tag, body)?,
        }
    }
    file.checksum = match (function, checksum) {
        (Some(function), Some(bytes)) => Some(FileChecksum { function, bytes }),
        _ => None,
    };
    Ok((level, file, log_number))
}

fn decode_table_field(file: &mut NewFile, tag: u32, body: &[u8]) -> Result<()> {
    let mut field = Fields(Reader::new(body));
    let number = |field: &mut Fields<'_>| field.varint64("number of a table field");
    let byte = || match body {
        [byte] => Ok(*byte),
        _ => Err(cut("one-byte table field")),
    };
    match tag {
        file_tag::MARKED_FOR_COMPACTION => file.marked_for_compaction = byte()? == 1,
        file_tag::OLDEST_BLOB_FILE => file.oldest_blob_file = number(&mut field)?,
        file_tag::OLDEST_ANCESTOR_TIME => file.oldest_ancestor_time = number(&mut field)?,
        file_tag::CREATION_TIME => file.creation_time = number(&mut field)?,
        file_tag::TEMPERATURE => file.temperature = byte()?,
        file_tag::UNIQUE_ID => {
            // Older writers stored 24 bytes; readers use the first 16.
            let id = body.first_chunk::<16>();
            file.unique_id = Some(*id.ok_or_else(|| cut("unique id"))?);
        }
        file_tag::MODEL => {
            file.model = Some(fixed64_at(body, 0).ok_or_else(|| cut("model"))?);
        }
        file_tag::EPOCH => file.epoch = in_range(number(&mut field)?, EPOCH_MAX, "epoch")?,
        file_tag::COMPENSATED_RANGE_DELETION => {
            file.compensated_range_deletion_bytes = number(&mut field)?;
        }
        file_tag::TAIL_SIZE => file.tail_size = number(&mut field)?,
        file_tag::TIMESTAMPS_PERSISTED if byte()? != 1 => return Err(timestamps()),
        file_tag::PATH_ID => refuse_other_paths(u32::from(byte()?))?,
        _ if tag & file_tag::MUST_UNDERSTAND != 0 => {
            let message = format!("the MANIFEST describes a table with the unknown field {tag}");
            return Err(Error::not_supported(message));
        }
        _ => {}
    }
    Ok(())
}

fn decode_blob_addition(from: &mut Fields<'_>) -> Result<BlobFileAddition> {
    let addition = BlobFileAddition {
        number: from.file_number("blob file number")?,
        blob_count: from.varint64("blob count")?,
        blob_bytes: from.varint64("blob bytes")?,
        checksum_method: from.slice("blob checksum method")?.to_vec(),
        checksum_value: from.slice("blob checksum")?.to_vec(),
    };
    skip_blob_fields(from)?;
    Ok(addition)
}

fn decode_blob_garbage(from: &mut Fields<'_>) -> Result<BlobFileGarbage> {
    let garbage = BlobFileGarbage {
        number: from.file_number("blob file number")?,
        garbage_count: from.varint64("blob garbage count")?,
        garbage_bytes: from.varint64("blob garbage bytes")?,
    };
    skip_blob_fields(from)?;
    Ok(garbage)
}

fn skip_blob_fields(from: &mut Fields<'_>) -> Result<()> {
    loop {
        let tag = from.varint32("blob field")?;
        if tag == BLOB_FIELDS_END {
            return Ok(());
        }
        if tag & file_tag::MUST_UNDERSTAND != 0 {
            let message =
                format!("the MANIFEST describes a blob file with the unknown field {tag}");
            return Err(Error::not_supported(message));
        }
        from.slice("blob field")?;
    }
}

fn decode_wal_addition(from: &mut Fields<'_>) -> Result<(u64, Option<u64>)> {
    let number = from.file_number("WAL number")?;
    let mut synced_bytes = None;
    loop {
        match from.varint32("WAL field")? {
            WAL_FIELDS_END => return Ok((number, synced_bytes)),
            WAL_SYNCED_BYTES => synced_bytes = Some(from.varint64("WAL size")?),
            tag => {
                let message = format!("the MANIFEST tracks a WAL with the unknown field {tag}");
                return Err(Error::not_supported(message));
            }
        }
    }
}

fn refuse_other_paths(path_id: u32) -> Result<()> {
    if path_id == 0 {
        return Ok(());
    }
    let message = format!("a table lies in another directory (path {path_id} of db_paths)");
    Err(Error::not_supported(message))
}

fn timestamps() -> Error {
    Error::not_supported("the MANIFEST uses user-defined timestamps")
}

fn cut(what: &str) -> Error {
    Error::corruption(format!("a version edit is cut short in its {what}"))
}

fn checked_file_number(number: u64, what: &str) -> Result<u64> {
    in_range(number, FILE_NUMBER_MAX, what)
}

fn in_range(number: u64, max: u64, what: &str) -> Result<u64> {
    if number > max {
        let message = format!("a version edit's {what} is out of range: {number}");
        return Err(Error::corruption(message));
    }
    Ok(number)
}

fn text(bytes: &[u8], what: &str) -> Result<String> {
    if bytes.len() > NAME_BYTES_MAX {
        let message = format!("a version edit's {what} has {} bytes", bytes.len());
        return Err(Error::corruption(message));
    }
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Error::not_supported(format!("a version edit's {what} is not UTF-8")))
}

/// A reader whose steps say what they were after when they fail.
struct Fields<'a>(Reader<'a>);

impl<'a> Fields<'a> {
    fn varint32(&mut self, what: &str) -> Result<u32> {
        self.0.varint32().ok_or_else(|| cut(what))
    }

    fn varint64(&mut self, what: &str) -> Result<u64> {
        self.0.varint64().ok_or_else(|| cut(what))
    }

    fn slice(&mut self, what: &str) -> Result<&'a [u8]> {
        self.0.slice().ok_or_else(|| cut(what))
    }

    fn text(&mut self, what: &str) -> Result<String> {
        text(self.slice(what)?, what)
    }

    fn file_number(&mut self, what: &str) -> Result<u64> {
        checked_file_number(self.varint64(what)?, what)
    }

    fn seqno(&mut self, what: &str) -> Result<u64> {
        in_range(self.varint64(what)?, SEQNO_MAX, what)
    }

    fn level(&mut self) -> Result<u32> {
        let level = self.varint32("level")?;
        if level as usize >= LEVELS {
            let message = format!("a table lies in level {level}; there are {LEVELS}");
            return Err(Error::not_supported(message));
        }
        Ok(level)
    }

    fn internal_key(&mut self, what: &str) -> Result<Vec<u8>> {
        let key = self.slice(what)?;
        ParsedKey::parse(key).map_err(|error| error.context(format!("the {what} of a table")))?;
        Ok(key.to_vec())
    }
}
