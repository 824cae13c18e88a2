//! An object that is read, piece by piece, those that come next ahead of their time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use drumlin_base::{Error, ErrorKind, Result};
use drumlin_fs::RandomAccessFile;
use object_store::path::Path as Location;
use object_store::{Error as StoreError, GetOptions, GetRange, ObjectMeta, PutPayload};
use parking_lot::Mutex;

use crate::bucket::Bucket;
use crate::calls::Reply;

/// Bytes of one request.
const PIECE_BYTES: u64 = 8 << 20;
/// Pieces in memory: the one that is read, and those that will be.
const PIECES: u64 = 4;

const OP: &str = "download";

/// The bytes of an answer.
pub(crate) type Bytes = <PutPayload as IntoIterator>::Item;

/// See the module. Reads of several threads wait for each other.
#[derive(Debug)]
pub(crate) struct Download {
    bucket: Arc<Bucket>,
    path: PathBuf,
    location: Location,
    /// As it was when it was opened; it may not change.
    meta: ObjectMeta,
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    pieces: BTreeMap<u64, Piece>,
    /// The piece that was read last.
    last: Option<u64>,
}

#[derive(Debug)]
enum Piece {
    UnderWay(Reply<Bytes>),
    Here(Bytes),
}

impl Download {
    pub(crate) fn new(
        bucket: &Arc<Bucket>,
        path: PathBuf,
        location: Location,
        meta: ObjectMeta,
    ) -> Self {
        Self {
            bucket: Arc::clone(bucket),
            path,
            location,
            meta,
            window: Mutex::default(),
        }
    }

    /// The bytes of piece `index`.
    fn piece(&self, index: u64) -> Result<Bytes> {
        let mut window = self.window.lock();
        let goes_on = window
            .last
            .map_or(index == 0, |last| last == index || last + 1 == index);
        let wanted = match goes_on {
            true => index..index + PIECES,
            false => index..index + 1,
        };
        window.last = Some(index);
        window.pieces.retain(|at, _| wanted.contains(at));
        let count = self.meta.size.div_ceil(PIECE_BYTES);
        for at in wanted.start..wanted.end.min(count) {
            let begun = || Piece::UnderWay(self.request(at));
            window.pieces.entry(at).or_insert_with(begun);
        }
        let bytes = match window.pieces.remove(&index) {
            Some(Piece::Here(bytes)) => bytes,
            Some(Piece::UnderWay(reply)) => self.arrived(index, reply)?,
            None => return Ok(Bytes::new()),
        };
        window.pieces.insert(index, Piece::Here(bytes.clone()));
        Ok(bytes)
    }

    fn range(&self, index: u64) -> std::ops::Range<u64> {
        let start = index * PIECE_BYTES;
        start..self.meta.size.min(start + PIECE_BYTES)
    }

    fn request(&self, index: u64) -> Reply<Bytes> {
        let options = GetOptions::new()
            .with_range(Some(GetRange::Bounded(self.range(index))))
            .with_if_match(self.meta.e_tag.clone());
        let (store, location) = (self.bucket.store(), self.location.clone());
        self.bucket.calls.start(async move {
            let found = store.get_opts(&location, options).await?;
            found.bytes().await
        })
    }

    fn arrived(&self, index: u64, reply: Reply<Bytes>) -> Result<Bytes> {
        let bytes = match reply.answer()? {
            Err(StoreError::Precondition { .. }) => {
                let message = "the object was replaced while it was read";
                return Err(Error::new(ErrorKind::Io, message).with_file(&self.path));
            }
            Err(error) => return Err(crate::failure::error_of(OP, &self.path, &error)),
            Ok(bytes) => bytes,
        };
        let range = self.range(index);
        if bytes.len() as u64 != range.end - range.start
            && !drumlin_base::bug!("object-answer-cut-short")
        {
            let message = format!(
                "the store gave {} bytes in place of {}",
                bytes.len(),
                range.end - range.start
            );
            let error = Error::new(ErrorKind::Io, message);
            return Err(error.with_file(&self.path).with_offset(range.start));
        }
        Ok(bytes)
    }
}

impl RandomAccessFile for Download {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset + filled as u64;
            if at >= self.meta.size {
                break;
            }
            let piece = self.piece(at / PIECE_BYTES)?;
            let skip = usize::try_from(at % PIECE_BYTES).unwrap_or(usize::MAX);
            let found = piece.get(skip..).unwrap_or_default();
            let len = found.len().min(rest.len());
            if len == 0 {
                break;
            }
            let (into, from) = (rest.get_mut(..len), found.get(..len));
            if let (Some(into), Some(from)) = (into, from) {
                into.copy_from_slice(from);
            }
            filled += len;
        }
        Ok(filled)
    }

    fn size(&self) -> u64 {
        self.meta.size
    }
}
