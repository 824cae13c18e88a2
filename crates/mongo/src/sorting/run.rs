//! Files of documents in order. Only the process that writes one reads it.
//!
//! A file is chunks: the length of the payload and its CRC32C, 4 bytes each, little endian, then the payload, compressed by Snappy.
//! A payload is records: key and document, each behind its length as a varint.

use std::path::PathBuf;
use std::sync::Arc;

use drumlin::{Error, Result};
use drumlin_base::checksum::crc32c;
use drumlin_base::coding::{Reader, put_fixed32, put_slice};
use drumlin_fs::{FileSystem, RandomAccessFile, WritableFile};

/// Bytes of records from which on a chunk is written.
const CHUNK_BYTES: usize = 64 << 10;
const HEADER_BYTES: usize = 8;

/// A document, and the key that orders it.
#[derive(Debug)]
pub(crate) struct Record {
    pub(super) key: Vec<u8>,
    pub(super) document: Vec<u8>,
}

impl Record {
    /// The memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.key.len() + self.document.len() + 64
    }
}

/// A name that goes with its holder.
#[derive(Debug)]
struct Removed {
    files: Arc<dyn FileSystem>,
    path: PathBuf,
}

impl Drop for Removed {
    fn drop(&mut self) {
        // What stays goes when the next server starts.
        if !drumlin_base::bug!("mongo-sort-files-stay") {
            drop(self.files.remove(&self.path));
        }
    }
}

/// A file that is being written.
#[derive(Debug)]
pub(super) struct RunWriter {
    file: Box<dyn WritableFile>,
    name: Removed,
    chunk: Vec<u8>,
    encoder: snap::raw::Encoder,
}

impl RunWriter {
    pub(super) fn new(
        file: Box<dyn WritableFile>,
        files: Arc<dyn FileSystem>,
        path: PathBuf,
    ) -> Self {
        Self {
            file,
            name: Removed { files, path },
            chunk: Vec::new(),
            encoder: snap::raw::Encoder::new(),
        }
    }

    /// # Errors
    /// Of the file.
    pub(super) fn push(&mut self, record: &Record) -> Result<()> {
        put_slice(&mut self.chunk, &record.key);
        put_slice(&mut self.chunk, &record.document);
        match self.chunk.len() >= CHUNK_BYTES {
            true => self.write_chunk(),
            false => Ok(()),
        }
    }

    fn write_chunk(&mut self) -> Result<()> {
        let too_long = |_| Error::invalid_argument("a document is too long to be sorted");
        let payload = self
            .encoder
            .compress_vec(&self.chunk)
            .map_err(|error| Error::invalid_argument(error.to_string()))?;
        let mut header = Vec::with_capacity(HEADER_BYTES);
        put_fixed32(&mut header, u32::try_from(payload.len()).map_err(too_long)?);
        put_fixed32(&mut header, crc32c(&payload));
        self.file.append(&header)?;
        self.file.append(&payload)?;
        self.chunk.clear();
        Ok(())
    }

    /// # Errors
    /// Of the file.
    pub(super) fn finish(mut self) -> Result<Run> {
        if !self.chunk.is_empty() {
            self.write_chunk()?;
        }
        let bytes = self.file.len();
        self.file.close()?;
        Ok(Run {
            file: self.name.files.open(&self.name.path)?,
            name: self.name,
            bytes,
        })
    }
}

/// A file that is whole. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Run {
    // Closed before it is removed.
    file: Arc<dyn RandomAccessFile>,
    name: Removed,
    bytes: u64,
}

impl Run {
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }
}

/// Reads a file from its begin to its end.
#[derive(Debug)]
pub(super) struct RunReader {
    run: Run,
    offset: u64,
    chunk: Vec<u8>,
    at: usize,
}

impl RunReader {
    pub(super) fn new(run: Run) -> Self {
        Self {
            run,
            offset: 0,
            chunk: Vec::new(),
            at: 0,
        }
    }

    /// # Errors
    /// Of the file; `Corruption` where it is not as it was written.
    pub(super) fn next(&mut self) -> Result<Option<Record>> {
        if self.at == self.chunk.len() {
            if self.offset == self.run.bytes {
                return Ok(None);
            }
            self.read_chunk()?;
        }
        let mut reader = Reader::new(self.chunk.get(self.at..).unwrap_or_default());
        let parts = reader.slice().zip(reader.slice());
        let (key, document) = parts.ok_or_else(|| self.damaged("ends within a document"))?;
        let record = Record {
            key: key.to_vec(),
            document: document.to_vec(),
        };
        self.at = self.chunk.len() - reader.rest().len();
        Ok(Some(record))
    }

    fn read_chunk(&mut self) -> Result<()> {
        let header = self.read(HEADER_BYTES)?;
        let mut header = Reader::new(&header);
        let (len, crc) = header.fixed32().zip(header.fixed32()).unwrap_or_default();
        if u64::from(len) > self.run.bytes - self.offset {
            return Err(self.damaged("is shorter than it says"));
        }
        let payload = self.read(len as usize)?;
        if crc32c(&payload) != crc {
            return Err(self.damaged("has a wrong checksum"));
        }
        let chunk = snap::raw::Decoder::new().decompress_vec(&payload);
        self.chunk = chunk.map_err(|error| self.damaged(&error.to_string()))?;
        self.at = 0;
        Ok(())
    }

    fn read(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        if self.run.file.read_at(self.offset, &mut bytes)? < len {
            return Err(self.damaged("is shorter than it was"));
        }
        self.offset += len as u64;
        Ok(bytes)
    }

    fn damaged(&self, what: &str) -> Error {
        Error::corruption(format!("a file of a sort {what}"))
            .with_file(&self.run.name.path)
            .with_offset(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use drumlin_fs::{CreateOptions, FileKind, StrictMemFileSystem};

    use super::*;

    fn written(files: &Arc<dyn FileSystem>, count: usize) -> Run {
        let path = Path::new("/0.run");
        let file = files
            .create(path, CreateOptions::new(FileKind::Other))
            .expect("a file");
        let mut writer = RunWriter::new(file, Arc::clone(files), path.to_owned());
        for number in 0..count {
            let key = format!("{number:06}").into_bytes();
            let document = key.repeat(number % 90);
            writer.push(&Record { key, document }).expect("is written");
        }
        writer.finish().expect("is whole")
    }

    fn read(run: Run) -> Result<usize> {
        let mut reader = RunReader::new(run);
        let mut count = 0;
        while let Some(record) = reader.next()? {
            assert_eq!(record.key, format!("{count:06}").into_bytes());
            assert_eq!(record.document, record.key.repeat(count % 90));
            count += 1;
        }
        Ok(count)
    }

    #[test]
    fn what_was_written_is_read() {
        let files: Arc<dyn FileSystem> = Arc::new(StrictMemFileSystem::new());
        for count in [0, 1, 700, 3000] {
            assert_eq!(read(written(&files, count)).expect("is whole"), count);
            assert!(!files.exists(Path::new("/0.run")).expect("is asked"));
        }
    }

    #[test]
    fn each_wrong_byte_and_each_missing_end_is_seen() {
        let files: Arc<dyn FileSystem> = Arc::new(StrictMemFileSystem::new());
        let whole = written(&files, 40);
        let len = whole.bytes();
        let path = Path::new("/0.run");
        let bytes = files.read_file(path, 1 << 20).expect("is there");
        drop(whole);
        let damaged = |bytes: &[u8]| {
            let options = CreateOptions::new(FileKind::Other);
            let mut file = files.create(path, options).expect("a file");
            file.append(bytes).expect("is written");
            file.close().expect("is closed");
            let run = Run {
                file: files.open(path).expect("is there"),
                name: Removed {
                    files: Arc::clone(&files),
                    path: path.to_owned(),
                },
                bytes: len as u64,
            };
            read(run).expect_err("is damaged").is_corruption()
        };
        for at in 0..len {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1 << (at % 8);
            assert!(damaged(&wrong), "byte {at}");
            assert!(damaged(&bytes[..at]), "cut at {at}");
        }
    }
}
