//! A file on its way into the store.
//!
//! A file of at most one part is one request. Of a larger one, parts go off as they are full, a few at a time, and the
//! object is there when they are put together. Whatever ends it before leaves nothing under its name; the parts are
//! given up, as far as the store can be told.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drumlin_base::{Error, Result};
use drumlin_fs::{FileSyncer, WritableFile};
use object_store::path::Path as Location;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};

use crate::bucket::Bucket;
use crate::calls::Reply;

/// The least size of a part but the last.
pub(crate) const PART_BYTES: usize = 8 << 20;
/// Stores take 10,000; a file may turn out larger than was expected.
const PARTS_MAX: u64 = 9000;
/// Parts that are under way at a time.
const PARTS_UNDER_WAY: usize = 4;
/// How long the end of a file that failed waits until its parts are given up.
const GIVE_UP: Duration = Duration::from_secs(5);

const OP: &str = "upload";

/// See the module.
#[derive(Debug)]
pub(crate) struct Upload {
    bucket: Arc<Bucket>,
    path: PathBuf,
    location: Location,
    part_bytes: usize,
    /// What has not been sent.
    buffer: Vec<u8>,
    len: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing was sent.
    Begun,
    Parts(Parts),
    /// The object is there.
    Done,
    Broken(Error),
}

#[derive(Debug)]
struct Parts {
    upload: Box<dyn MultipartUpload>,
    under_way: VecDeque<Reply<()>>,
}

impl Upload {
    pub(crate) fn new(
        bucket: &Arc<Bucket>,
        path: &Path,
        location: Location,
        expected_bytes: u64,
    ) -> Self {
        let part = usize::try_from(expected_bytes / PARTS_MAX).unwrap_or(usize::MAX);
        Self {
            bucket: Arc::clone(bucket),
            path: path.to_owned(),
            location,
            part_bytes: part.max(PART_BYTES),
            buffer: Vec::new(),
            len: 0,
            state: State::Begun,
        }
    }

    fn check(&self) -> Result<()> {
        match &self.state {
            State::Broken(error) => Err(error.duplicate()),
            State::Done => {
                let message = "an object that is there takes no more bytes";
                Err(Error::not_supported(message).with_file(&self.path))
            }
            State::Begun | State::Parts(_) => self.bucket.check_lock(),
        }
    }

    /// Does `step`; after one that failed the file is broken, and what was sent is given up.
    fn guard(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.check()?;
        step(self).inspect_err(|error| {
            let broken = State::Broken(error.duplicate());
            if let State::Parts(parts) = std::mem::replace(&mut self.state, broken) {
                self.give_up(parts);
            }
        })
    }

    fn give_up(&self, mut parts: Parts) {
        let abort = async move { parts.upload.abort().await };
        let given_up = self.bucket.calls.start(abort).answer_within(GIVE_UP);
        if !given_up {
            tracing::warn!(
                file = %self.path.display(),
                "parts of an upload that failed stay in the store, until a rule of the bucket removes them"
            );
        }
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.buffer.len() == self.part_bytes {
                self.send_part()?;
            }
            let room = self.part_bytes - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            let no_memory = |_| Error::no_memory(now.len()).with_file(&self.path);
            self.buffer.try_reserve(now.len()).map_err(no_memory)?;
            self.buffer.extend_from_slice(now);
            self.len += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Sends what is in the buffer as a part.
    fn send_part(&mut self) -> Result<()> {
        if let State::Begun = self.state {
            let (store, location) = (self.bucket.store(), self.location.clone());
            let begin = async move { store.put_multipart(&location).await };
            let upload = self.bucket.calls.wait(OP, &self.path, begin)?;
            let under_way = VecDeque::new();
            self.state = State::Parts(Parts { upload, under_way });
        }
        let State::Parts(parts) = &mut self.state else {
            return Ok(());
        };
        if parts.under_way.len() >= PARTS_UNDER_WAY
            && let Some(first) = parts.under_way.pop_front()
        {
            first.wait(OP, &self.path)?;
        }
        let payload = PutPayload::from(std::mem::take(&mut self.buffer));
        let part = parts.upload.put_part(payload);
        parts.under_way.push_back(self.bucket.calls.start(part));
        Ok(())
    }

    /// Makes the object.
    fn finish(&mut self) -> Result<()> {
        if let State::Begun = self.state {
            let payload = PutPayload::from(std::mem::take(&mut self.buffer));
            let (store, location) = (self.bucket.store(), self.location.clone());
            let put = async move { store.put(&location, payload).await };
            self.bucket.calls.wait(OP, &self.path, put)?;
            self.state = State::Done;
            return Ok(());
        }
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        if let State::Parts(parts) = &mut self.state {
            while let Some(first) = parts.under_way.pop_front() {
                first.wait(OP, &self.path)?;
            }
        }
        self.bucket.check_lock()?;
        if let State::Parts(mut parts) = std::mem::replace(&mut self.state, State::Done) {
            let complete = async move {
                let completed = parts.upload.complete().await;
                Ok((completed, parts))
            };
            let (completed, parts) = self.bucket.calls.wait(OP, &self.path, complete)?;
            if let Err(error) = completed {
                self.state = State::Parts(parts);
                return Err(crate::failure::error_of(OP, &self.path, &error));
            }
        }
        Ok(())
    }
}

impl WritableFile for Upload {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.guard(|file| file.take(bytes))
    }

    fn sync(&mut self) -> Result<()> {
        match self.state {
            State::Done => Ok(()),
            _ => self.guard(Self::finish),
        }
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.sync()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn syncer(&self) -> Arc<dyn FileSyncer> {
        Arc::new(NoSyncer(self.path.clone()))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let State::Parts(parts) = std::mem::replace(&mut self.state, State::Done) {
            self.give_up(parts);
        }
    }
}

/// Objects are made by their writer alone.
#[derive(Debug)]
struct NoSyncer(PathBuf);

impl FileSyncer for NoSyncer {
    fn sync(&self) -> Result<()> {
        let message = "another thread than its writer's makes no object";
        Err(Error::not_supported(message).with_file(&self.0))
    }
}
