//! Open files of the in-memory disk.
//!
//! They behave as the operating system's do: a log reserves space ahead, so readers and crashes see zeros
//! behind it; tables and blobs are buffered before the disk sees them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drumlin_base::{Error, Result};

use crate::file_system::{CreateOptions, FileKind, FileSyncer, RandomAccessFile, WritableFile};
use crate::mem_disk::{FileNode, Shared};

/// Tables and blobs gather this much.
const BUFFER_BYTES: usize = 64 << 10;
/// A log reserves at least this much at a time.
const RESERVE_BYTES: u64 = 64 << 10;

/// A file being written.
#[derive(Debug)]
pub(crate) struct MemWriter {
    shared: Arc<Shared>,
    file: Arc<FileNode>,
    path: PathBuf,
    kind: FileKind,
    reserve_bytes: u64,
    buffer: Vec<u8>,
    written: u64,
    failure: Option<Error>,
}

impl MemWriter {
    pub(crate) fn new(
        shared: Arc<Shared>,
        file: Arc<FileNode>,
        path: &Path,
        options: CreateOptions,
    ) -> Result<Self> {
        let mut writer = Self {
            shared,
            file,
            path: path.to_path_buf(),
            kind: options.kind,
            reserve_bytes: options.preallocate_bytes.max(RESERVE_BYTES),
            buffer: Vec::new(),
            written: 0,
            failure: None,
        };
        if options.kind == FileKind::Wal && options.preallocate_bytes > 0 {
            writer.reserve(options.preallocate_bytes)?;
        }
        Ok(writer)
    }

    /// Makes the file at least `size` bytes long.
    fn reserve(&mut self, size: u64) -> Result<()> {
        let mut global = self.shared.change()?;
        let mut data = self.file.data.lock();
        let old = data.now().size();
        if size > old {
            global.resize(&self.path, old, size)?;
            data.resize(global.tick(), size);
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let end = self.written + bytes.len() as u64;
        if self.kind == FileKind::Wal && end > self.file.data.lock().now().size() {
            // Less than a step where only that fits, as on a real disk.
            self.reserve(end.next_multiple_of(self.reserve_bytes))
                .or_else(|_| self.reserve(end))?;
        }
        let mut global = self.shared.change()?;
        let mut data = self.file.data.lock();
        let old = data.now().size();
        global.resize(&self.path, old, old.max(end))?;
        data.write(global.tick(), self.written, bytes);
        self.written = end;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() {
            return Ok(());
        }
        self.write(&buffer)
    }

    /// Runs `step` unless an earlier one failed, and keeps its error.
    fn guarded(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure
                .duplicate()
                .context("an earlier call on this file failed"));
        }
        step(self).inspect_err(|error| self.failure = Some(error.duplicate()))
    }
}

impl WritableFile for MemWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.guarded(|file| {
            file.shared.check_alive()?;
            if !matches!(file.kind, FileKind::Table | FileKind::Blob) {
                return file.write(bytes);
            }
            file.buffer.extend_from_slice(bytes);
            if file.buffer.len() >= BUFFER_BYTES {
                file.flush()?;
            }
            Ok(())
        })
    }

    fn sync(&mut self) -> Result<()> {
        self.guarded(|file| {
            file.flush()?;
            sync(&file.shared, &file.file)
        })
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.guarded(|file| {
            file.flush()?;
            let mut global = file.shared.change()?;
            let mut data = file.file.data.lock();
            global.resize(&file.path, data.now().size(), file.written)?;
            data.resize(global.tick(), file.written);
            Ok(())
        })
    }

    fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn syncer(&self) -> Arc<dyn FileSyncer> {
        Arc::new(MemSyncer {
            shared: Arc::clone(&self.shared),
            file: Arc::clone(&self.file),
        })
    }
}

fn sync(shared: &Shared, file: &FileNode) -> Result<()> {
    let _global = shared.change()?;
    file.data.lock().sync();
    Ok(())
}

#[derive(Debug)]
struct MemSyncer {
    shared: Arc<Shared>,
    file: Arc<FileNode>,
}

impl FileSyncer for MemSyncer {
    fn sync(&self) -> Result<()> {
        sync(&self.shared, &self.file)
    }
}

/// A file being read.
#[derive(Debug)]
pub(crate) struct MemReader {
    shared: Arc<Shared>,
    file: Arc<FileNode>,
    size: u64,
}

impl MemReader {
    pub(crate) fn new(shared: Arc<Shared>, file: Arc<FileNode>) -> Self {
        let size = file.data.lock().now().size();
        Self { shared, file, size }
    }
}

impl RandomAccessFile for MemReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.shared.check_alive()?;
        Ok(self.file.data.lock().now().read(offset, buffer))
    }

    fn size(&self) -> u64 {
        self.size
    }
}
