//! A data set as a file, so that every engine is given the same bytes and none waits for a generator.
//!
//! A record is its key's length and its value's (4 bytes each, little-endian), key and value.

use std::path::Path;
use std::sync::Arc;

use drumlin_base::checksum::Xxh3;
use drumlin_base::{Error, Result};
use drumlin_bench::datasets::DataSet;
use drumlin_fs::{CreateOptions, Env, FileKind, RandomAccessFile};

/// Bytes read or written at a time.
const PIECE_BYTES: usize = 1 << 20;
/// No key or value is longer.
const LEN_MAX: u32 = 64 << 20;

/// The totals of a file of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Records.
    pub count: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// XXH3 of the file, which is that of `drumlin gen` for the same data set.
    pub checksum: u64,
}

/// Writes all records of `set` to `path`.
///
/// # Errors
/// `Io`, `NoSpace`.
pub fn write_records(set: &dyn DataSet, path: &Path, env: &Env) -> Result<Written> {
    let mut file = env
        .files
        .create(path, CreateOptions::new(FileKind::Other))?;
    let (mut key, mut value, mut piece) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bytes, mut checksum) = (0, Xxh3::new());
    for index in 0..set.len() {
        set.write_key(index, &mut key);
        set.write_value(index, &mut value);
        for part in [&key, &value] {
            let len = u32::try_from(part.len()).unwrap_or(u32::MAX);
            piece.extend_from_slice(&len.to_le_bytes());
        }
        piece.extend_from_slice(&key);
        piece.extend_from_slice(&value);
        bytes += (key.len() + value.len()) as u64;
        if piece.len() >= PIECE_BYTES {
            checksum.update(&piece);
            file.append(&piece)?;
            piece.clear();
        }
    }
    checksum.update(&piece);
    file.append(&piece)?;
    file.close()?;
    Ok(Written {
        count: set.len(),
        bytes,
        checksum: checksum.finish(),
    })
}

/// Reads records front to back. For one thread.
#[derive(Debug)]
pub struct RecordReader {
    file: Arc<dyn RandomAccessFile>,
    /// Where the bytes after those in `buffer` begin.
    at: u64,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were given out.
    used: usize,
}

impl RecordReader {
    /// Of the file at `path`.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    pub fn open(path: &Path, env: &Env) -> Result<Self> {
        let file = env.files.open(path)?;
        Ok(Self {
            file,
            at: 0,
            buffer: Vec::new(),
            used: 0,
        })
    }

    /// The next key and value; `None` at the end.
    ///
    /// # Errors
    /// `Io`; `Corruption` for a file that ends within a record.
    pub fn next_record(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if !self.fill(8)? {
            return if self.used == self.buffer.len() {
                Ok(None)
            } else {
                Err(cut())
            };
        }
        let head = self
            .buffer
            .get(self.used..self.used + 8)
            .unwrap_or_default();
        let len = |part: Option<&[u8]>| {
            let bytes = part.and_then(|part| part.first_chunk::<4>()).copied();
            u32::from_le_bytes(bytes.unwrap_or_default())
        };
        let (key_len, value_len) = (len(head.get(..4)), len(head.get(4..)));
        if key_len > LEN_MAX || value_len > LEN_MAX {
            return Err(Error::corruption("a record's length is beyond all bounds"));
        }
        let (key_len, value_len) = (key_len as usize, value_len as usize);
        if !self.fill(8 + key_len + value_len)? {
            return Err(cut());
        }
        let start = self.used + 8;
        self.used = start + key_len + value_len;
        let bytes = self.buffer.get(start..self.used).unwrap_or_default();
        Ok(Some(bytes.split_at(key_len.min(bytes.len()))))
    }

    /// Sees that `len` unused bytes are in the buffer; false where the file ends before.
    fn fill(&mut self, len: usize) -> Result<bool> {
        if self.buffer.len() - self.used >= len {
            return Ok(true);
        }
        self.buffer.drain(..self.used);
        self.used = 0;
        let have = self.buffer.len();
        self.buffer.resize(have + PIECE_BYTES.max(len - have), 0);
        let free = self.buffer.get_mut(have..).unwrap_or_default();
        let read = self.file.read_at(self.at, free)?;
        self.at += read as u64;
        self.buffer.truncate(have + read);
        Ok(self.buffer.len() >= len)
    }
}

fn cut() -> Error {
    Error::corruption("the file of records ends within a record")
}

#[cfg(test)]
mod tests {
    use drumlin_bench::datasets::{RandomSet, totals};
    use drumlin_fs::StrictMemFileSystem;

    use super::*;

    #[test]
    fn records_come_back_in_order_and_a_cut_is_noticed() {
        let env = Env::system().with_files(Arc::new(StrictMemFileSystem::new()));
        env.files
            .create_dir_all(Path::new("/r"))
            .expect("a directory");
        let path = Path::new("/r/records");
        let set = RandomSet::new(3000, 700, 4);
        let written = Written {
            count: 3000,
            bytes: 3000 * 716,
            checksum: totals(&set).checksum,
        };
        assert_eq!(write_records(&set, path, &env).expect("written"), written);
        let mut reader = RecordReader::open(path, &env).expect("opened");
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for index in 0..3000 {
            set.write_key(index, &mut key);
            set.write_value(index, &mut value);
            assert_eq!(
                reader.next_record().expect("sound"),
                Some((&key[..], &value[..])),
                "{index}"
            );
        }
        assert_eq!(reader.next_record().expect("sound"), None);
        let size = env.files.info(path).expect("there").size;
        env.files.truncate(path, size - 1).expect("cut");
        let mut reader = RecordReader::open(path, &env).expect("opened");
        for _ in 0..2999 {
            assert!(reader.next_record().expect("sound").is_some());
        }
        assert!(reader.next_record().is_err());
    }
}
