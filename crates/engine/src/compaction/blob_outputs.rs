//! The blob files a job writes: large values on their way into a table go to one, the table gets a
//! reference.
//!
//! Three kinds of entries are touched: values of the size that is kept apart (from a memtable, from
//! a table written before values were, or made by a merge operator or a filter), and references
//! into a file that is being emptied, whose blobs are moved. Every other reference is passed on as
//! it is. Values pass through without being gathered: a value is copied once, from its place in memory
//! into the file's buffer.
//!
//! Files are made when the first value comes and end at their size. All are removed again unless
//! the job succeeds. One owner.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::key::{TAG_BYTES, pack_tag, split_internal, tag_kind, tag_seqno};
use drumlin_base::{Error, PinnedSlice, Result, ValueCode, ValueKind};
use drumlin_fs::{CreateOptions, Env, FileKind};
use drumlin_table::blob::{BlobIndex, BlobWriter};
use drumlin_table::compress::compress;
use drumlin_table::{Codec, Compression, Framing};

use super::blob_inputs::BlobInputs;
use super::blob_tally::BlobTally;
use super::created::Created;
use crate::files::names;
use crate::version::BlobFileAddition;

/// Gives out file numbers that no file has.
pub(crate) type FileNumbers = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How a family's large values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlobOptions {
    /// Values of this many bytes and more are kept apart from the tables; `usize::MAX` for none.
    pub from_bytes: usize,
    /// Size at which a blob file ends.
    pub file_bytes: u64,
    /// How they are compressed, where it helps.
    pub compression: Compression,
    /// The family whose values they are.
    pub family_id: u32,
}

impl BlobOptions {
    /// No values are kept apart.
    pub(crate) fn never() -> Self {
        Self {
            from_bytes: usize::MAX,
            file_bytes: u64::MAX,
            compression: Compression::new(Codec::None),
            family_id: 0,
        }
    }
}

/// Where blob files are made.
#[derive(Clone)]
pub(crate) struct BlobPlace {
    /// Files and clock.
    pub env: Env,
    /// The directory.
    pub dir: PathBuf,
    /// Where new files get their numbers.
    pub numbers: FileNumbers,
    /// About how many bytes each file will have.
    pub expected_bytes: u64,
}

/// The changes a job made to blobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlobChanges {
    /// The files written.
    pub additions: Vec<BlobFileAddition>,
    /// The references into older files that were written again.
    pub kept: BlobTally,
    /// Bytes written to blob files.
    pub bytes_written: u64,
    /// Blobs moved from one file to another.
    pub moved: u64,
    /// Bytes of those.
    pub moved_bytes: u64,
}

impl fmt::Debug for BlobPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobPlace")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl BlobChanges {
    /// Adds the changes of another part of the job.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.additions.append(&mut other.additions);
        self.kept.append(&other.kept);
        self.bytes_written += other.bytes_written;
        self.moved += other.moved;
        self.moved_bytes += other.moved_bytes;
    }
}

/// An entry as the table gets it.
#[derive(Debug)]
pub(crate) struct Placed<'a> {
    /// Its internal key.
    pub key: &'a [u8],
    /// Its value, or the reference to it.
    pub value: &'a [u8],
    /// The reference, if it is one.
    pub index: Option<BlobIndex>,
    /// The value's code, if that is copied and the value not looked at.
    pub code: Option<ValueCode<'a>>,
}

impl<'a> Placed<'a> {
    /// A value that stays in the table as it is stored.
    pub(crate) fn copied(key: &'a [u8], code: ValueCode<'a>) -> Self {
        Self {
            key,
            value: &[],
            index: None,
            code: Some(code),
        }
    }
}

/// The blob files of one job, or of one of its threads.
pub(crate) struct BlobOutputs {
    place: BlobPlace,
    options: BlobOptions,
    /// Files whose blobs are moved, ascending.
    emptied: Arc<[u64]>,
    inputs: BlobInputs,
    open: Option<BlobWriter>,
    created: Created,
    changes: BlobChanges,
    /// The present entry as it goes to the table, where that is not as it came.
    key: Vec<u8>,
    reference: Vec<u8>,
    inlined: Option<PinnedSlice>,
}

impl BlobOutputs {
    /// No files yet. Blobs of the files `emptied` (ascending) are moved.
    pub(crate) fn new(place: BlobPlace, options: BlobOptions, emptied: Arc<[u64]>) -> Self {
        Self {
            inputs: BlobInputs::new(&place.env.files, &place.dir),
            created: Created::new(&place.env),
            place,
            options,
            emptied,
            open: None,
            changes: BlobChanges::default(),
            key: Vec::new(),
            reference: Vec::new(),
            inlined: None,
        }
    }

    /// The bytes the table gets for the entry `key`, `value`. They are valid until the next call.
    ///
    /// # Errors
    /// `Corruption` for a reference that is none, or whose blob is damaged and was to be moved;
    /// `NotSupported`; `Io`, `NoSpace`.
    #[inline]
    pub(crate) fn place<'a>(&'a mut self, key: &'a [u8], value: &'a [u8]) -> Result<Placed<'a>> {
        let Some((user_key, tag)) = split_internal(key) else {
            return Err(Error::corruption("internal key shorter than its tag"));
        };
        const VALUE: u8 = ValueKind::Value as u8;
        const BLOB_INDEX: u8 = ValueKind::BlobIndex as u8;
        match tag_kind(tag) {
            VALUE if value.len() >= self.options.from_bytes => {
                let index = self.write(user_key, value)?;
                Ok(self.refer(key, tag, index))
            }
            BLOB_INDEX => self.pass_on(key, value),
            _ => Ok(Placed {
                key,
                value,
                index: None,
                code: None,
            }),
        }
    }

    /// A reference: passed on, or its blob moved.
    fn pass_on<'a>(&'a mut self, key: &'a [u8], value: &'a [u8]) -> Result<Placed<'a>> {
        let Some((user_key, tag)) = split_internal(key) else {
            return Err(Error::corruption("internal key shorter than its tag"));
        };
        let index = BlobIndex::decode(value)?;
        if self.emptied.binary_search(&index.file).is_err() {
            self.changes.kept.add(user_key, &index);
            let index = Some(index);
            return Ok(Placed {
                key,
                value,
                index,
                code: None,
            });
        }
        self.changes.moved += 1;
        self.changes.moved_bytes += index.size;
        if self.options.from_bytes == usize::MAX {
            // Nothing is kept apart any more: the value returns to the table.
            let value = self.inlined.insert(self.inputs.value(user_key, &index)?);
            set_key(&mut self.key, key, tag, ValueKind::Value);
            return Ok(Placed {
                key: &self.key,
                value,
                index: None,
                code: None,
            });
        }
        let moved = self.relocate(user_key, &index)?;
        Ok(self.refer(key, tag, moved))
    }

    fn refer<'a>(&'a mut self, key: &[u8], tag: u64, index: BlobIndex) -> Placed<'a> {
        self.reference.clear();
        index.encode(&mut self.reference);
        set_key(&mut self.key, key, tag, ValueKind::BlobIndex);
        Placed {
            key: &self.key,
            value: &self.reference,
            index: Some(index),
            code: None,
        }
    }

    fn write(&mut self, user_key: &[u8], value: &[u8]) -> Result<BlobIndex> {
        if self.open.is_none() {
            let compression = self.worthwhile(value);
            self.open = Some(self.create(compression)?);
        }
        self.write_with(|writer| writer.add(user_key, value))
    }

    /// Copies a blob as it is stored where the new file has its codec, else packed anew.
    fn relocate(&mut self, user_key: &[u8], index: &BlobIndex) -> Result<BlobIndex> {
        if self.open.is_none() {
            let compression = match index.codec == self.options.compression.codec {
                true => self.options.compression,
                false => Compression::new(index.codec),
            };
            self.open = Some(self.create(compression)?);
        }
        let codec = self.open.as_ref().map(BlobWriter::codec);
        if codec == Some(index.codec) {
            let stored = self.inputs.stored(user_key, index)?;
            self.write_with(|writer| writer.add_stored(user_key, &stored))
        } else {
            let value = self.inputs.value(user_key, index)?;
            self.write_with(|writer| writer.add(user_key, &value))
        }
    }

    fn write_with(
        &mut self,
        write: impl FnOnce(&mut BlobWriter) -> Result<BlobIndex>,
    ) -> Result<BlobIndex> {
        let Some(writer) = &mut self.open else {
            return Err(Error::corruption("a blob without a file"));
        };
        let path = |number| names::blob(&self.place.dir, number);
        let index = write(writer).map_err(|error| match error.file() {
            Some(_) => error,
            None => error.with_file(&path(writer.number())),
        })?;
        if writer.len() >= self.options.file_bytes {
            self.end_file()?;
        }
        Ok(index)
    }

    /// The codec of a new file whose first value is `value`: all values of a file have the same, so
    /// the first stands for those that follow.
    fn worthwhile(&self, value: &[u8]) -> Compression {
        let Compression { codec, level, .. } = self.options.compression;
        let mut packed = Vec::new(); // Once a file.
        match compress(codec, level, None, value, Framing::SizePrefix, &mut packed) {
            Codec::None => Compression::new(Codec::None),
            _ => self.options.compression,
        }
    }

    fn create(&mut self, compression: Compression) -> Result<BlobWriter> {
        let number = (self.place.numbers)();
        let path = names::blob(&self.place.dir, number);
        let expected = self.place.expected_bytes.min(self.options.file_bytes);
        let options = CreateOptions::new(FileKind::Blob).expecting(expected);
        let files = &self.place.env.files;
        let file = self.created.make(&path, || files.create(&path, options))?;
        BlobWriter::new(file, number, self.options.family_id, compression)
            .map_err(|error| error.with_file(&path))
    }

    fn end_file(&mut self) -> Result<()> {
        let Some(writer) = self.open.take() else {
            return Ok(());
        };
        let path = names::blob(&self.place.dir, writer.number());
        let info = writer.finish().map_err(|error| error.with_file(&path))?;
        self.changes.bytes_written += info.file_bytes;
        self.changes.additions.push(info.into());
        Ok(())
    }

    /// Ends the last file: all are synced, their names are not. They stay only if the guard's
    /// [`Created::keep`] is called.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub(crate) fn finish(mut self) -> Result<(BlobChanges, Created)> {
        self.end_file()?;
        Ok((self.changes, self.created))
    }
}

/// Makes `out` the internal key `key`, whose tag is `tag`, with another kind.
fn set_key(out: &mut Vec<u8>, key: &[u8], tag: u64, kind: ValueKind) {
    out.clear();
    out.extend_from_slice(key);
    if let Some(place) = out.last_chunk_mut::<TAG_BYTES>() {
        *place = pack_tag(tag_seqno(tag), kind as u8).to_le_bytes();
    }
}

impl fmt::Debug for BlobOutputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobOutputs")
            .field("options", &self.options)
            .field("emptied", &self.emptied)
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}
