//! Copying and reading files at a rate, with progress, until cancelled.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use drumlin_base::checksum::crc32c_extend;
use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::{
    CreateOptions, Env, FileKind, FileSystem, IoPriority, RandomAccessFile, RateLimit, RateLimiter,
};

use crate::compaction::CancelToken;

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// How far a backup or a restore is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferProgress {
    /// Bytes copied, or compared, so far.
    pub bytes: u64,
    /// How many there will be, as far as is known.
    pub bytes_total: u64,
}

/// Is told how far it is; called often, on the thread that copies.
pub type ProgressListener = Arc<dyn Fn(TransferProgress) + Send + Sync>;

/// How a backup or a restore goes about it.
#[derive(Clone, Default)]
pub struct TransferOptions {
    /// Bytes read a second.
    pub rate: RateLimit,
    /// Ends it, within a moment, with an error of kind `Aborted`. What was copied whole is not copied again next time.
    pub cancel: Option<CancelToken>,
    /// Is told of progress.
    pub progress: Option<ProgressListener>,
}

impl fmt::Debug for TransferOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TransferOptions");
        shown.field("rate", &self.rate).finish_non_exhaustive()
    }
}

/// A file to read, and how many of its bytes.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) files: &'a dyn FileSystem,
    pub(super) path: &'a Path,
    pub(super) len: u64,
}

/// One backup or restore under way.
pub(super) struct Transfer<'a> {
    options: &'a TransferOptions,
    limiter: RateLimiter,
    /// Whether it may go on.
    may_go_on: &'a dyn Fn() -> Result<()>,
    done: TransferProgress,
    buffer: Vec<u8>,
}

impl<'a> Transfer<'a> {
    pub(super) fn new(
        options: &'a TransferOptions,
        env: &Env,
        may_go_on: &'a dyn Fn() -> Result<()>,
    ) -> Self {
        Self {
            options,
            limiter: RateLimiter::new(Arc::clone(&env.clock), options.rate),
            may_go_on,
            done: TransferProgress::default(),
            buffer: vec![0; PIECE_BYTES],
        }
    }

    /// So many bytes more will be read.
    pub(super) fn expect(&mut self, bytes: u64) {
        self.done.bytes_total += bytes;
    }

    /// The CRC-32C of a file.
    ///
    /// # Errors
    /// `Aborted`, `Io`; `Corruption` when the file is shorter.
    pub(super) fn checksum(&mut self, source: Source<'_>) -> Result<u32> {
        self.read(source, |_| Ok(()))
    }

    /// Writes the new file `to`, synced, under no other name; its CRC-32C, which has to be `known` where one is. A file
    /// that was left there is replaced.
    ///
    /// # Errors
    /// As [`Self::checksum`]; `NoSpace`; `Corruption` of another checksum. What was written of `to` is removed, as far as
    /// that can be done, so that what is wrong is not found by the next run.
    pub(super) fn copy(
        &mut self,
        source: Source<'_>,
        files: &dyn FileSystem,
        to: &Path,
        known: Option<u32>,
    ) -> Result<u32> {
        let replaces = files.names_whole_files();
        if !replaces && files.exists(to)? {
            files.remove(to)?;
        }
        let options = CreateOptions::new(FileKind::Table).expecting(source.len);
        let mut target = files.create(to, options)?;
        let copied = self.read(source, |piece| target.append(piece));
        let copied = copied.and_then(|crc32c| {
            if let Some(known) = known.filter(|&known| known != crc32c) {
                let message = format!("its checksum is {crc32c}, and was {known} before");
                return Err(Error::corruption(message).with_file(source.path));
            }
            if !drumlin_base::bug!("backup-files-unsynced") {
                target.sync()?;
            }
            target.close()?;
            Ok(crc32c)
        });
        if copied.is_err() && !replaces {
            // The error of the copy is the one that matters.
            let _ = files.remove(to);
        }
        copied
    }

    /// Hands the bytes on, piece by piece; their CRC-32C.
    fn read(
        &mut self,
        source: Source<'_>,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<u32> {
        let file = source.files.open(source.path)?;
        let (mut at, mut crc32c) = (0, 0);
        while at < source.len {
            self.pause((source.len - at).min(PIECE_BYTES as u64))?;
            let read = fill(&*file, &mut self.buffer, at, source)?;
            let piece = self.buffer.get(..read).unwrap_or_default();
            crc32c = crc32c_extend(crc32c, piece);
            take(piece)?;
            at += read as u64;
            self.advance(read as u64);
        }
        Ok(crc32c)
    }

    /// Waits until `bytes` more may be read.
    fn pause(&self, bytes: u64) -> Result<()> {
        (self.may_go_on)()?;
        let cancel = self.options.cancel.as_ref();
        if cancel.is_some_and(CancelToken::is_cancelled) {
            let message = "it was cancelled; the next run goes on from here";
            return Err(Error::new(ErrorKind::Aborted, message));
        }
        self.limiter.request(bytes, IoPriority::Manual);
        Ok(())
    }

    fn advance(&mut self, bytes: u64) {
        self.done.bytes += bytes;
        self.done.bytes_total = self.done.bytes_total.max(self.done.bytes);
        if let Some(listener) = &self.options.progress {
            listener(self.done);
        }
    }
}

fn fill(
    file: &dyn RandomAccessFile,
    buffer: &mut [u8],
    at: u64,
    source: Source<'_>,
) -> Result<usize> {
    let wanted = usize::try_from(source.len - at).unwrap_or(usize::MAX);
    let wanted = wanted.min(buffer.len());
    let read = file.read_at(at, buffer.get_mut(..wanted).unwrap_or_default())?;
    match read {
        0 => {
            let message = format!("the file ends at {at}, before {}", source.len);
            Err(Error::corruption(message).with_file(source.path))
        }
        read => Ok(read),
    }
}
