//! Reads that go to the disk together.
//!
//! A batch of lookups knows many places to read before it has read any. One after the other, each read
//! would wait for the disk alone; in a queue they wait side by side:
//!
//! ```text
//! push     note file, offset and buffer                  (a file that cannot take part reads at once)
//! run      hand all pending reads to the files' kind     (one call to an io_uring, if there is one)
//!          finish each read that has no answer yet, or only a part of its bytes
//! ```
//!
//! Each kind of file carries out a batch its own way ([`BatchRead`]).
//!
//! Not shared between threads. A read has the result of [`crate::RandomAccessFile::read_at`].

use std::fmt::Debug;
use std::os::fd::BorrowedFd;

use drumlin_base::Result;

/// A file whose reads can be carried out together with those of other files.
pub(crate) trait BatchRead: Debug {
    /// The descriptor that the file is read through.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Carries out `reads`, of this file and others, or has the kernel begin them. Notes an answer in each
    /// that the kernel has answered.
    fn read_together(&self, reads: &mut [&mut PendingRead<'_>]);

    /// Completes one read after [`BatchRead::read_together`], with or without an answer, and returns the
    /// number of bytes filled.
    ///
    /// # Errors
    /// As [`crate::RandomAccessFile::read_at`].
    fn finish(&self, offset: u64, buffer: &mut [u8], answer: Option<i32>) -> Result<usize>;
}

/// A read that is still to be carried out.
#[derive(Debug)]
pub(crate) struct PendingRead<'a> {
    pub(crate) file: &'a dyn BatchRead,
    pub(crate) offset: u64,
    pub(crate) buffer: &'a mut [u8],
    /// The kernel's answer: bytes, or an error's number below zero; `None` if it was not asked.
    pub(crate) answer: Option<i32>,
}

/// A read of a queue.
#[derive(Debug)]
enum QueuedRead<'a> {
    Pending(PendingRead<'a>),
    Done(Result<usize>),
}

/// Reads to be carried out together; see the module.
#[derive(Debug, Default)]
pub struct ReadQueue<'a> {
    reads: Vec<QueuedRead<'a>>,
}

impl<'a> ReadQueue<'a> {
    /// An empty queue with room for `count` reads.
    pub fn with_capacity(count: usize) -> Self {
        Self {
            reads: Vec::with_capacity(count),
        }
    }

    /// Adds a read that was carried out already.
    pub fn push_done(&mut self, outcome: Result<usize>) {
        self.reads.push(QueuedRead::Done(outcome));
    }

    /// Adds a read of `file`.
    pub(crate) fn push(&mut self, file: &'a dyn BatchRead, offset: u64, buffer: &'a mut [u8]) {
        self.reads.push(QueuedRead::Pending(PendingRead {
            file,
            offset,
            buffer,
            answer: None,
        }));
    }

    /// Carries out all reads, and returns the bytes each has read, in the order they were added.
    pub fn run(mut self) -> Vec<Result<usize>> {
        let mut pending: Vec<&mut PendingRead<'a>> = self
            .reads
            .iter_mut()
            .filter_map(|read| match read {
                QueuedRead::Pending(pending) => Some(pending),
                QueuedRead::Done(_) => None,
            })
            .collect();
        // A single read is done by `finish` without a detour.
        if let [first, _, ..] = &pending[..] {
            first.file.read_together(&mut pending);
        }
        let outcomes = self.reads.into_iter().map(|read| match read {
            QueuedRead::Pending(read) => read.file.finish(read.offset, read.buffer, read.answer),
            QueuedRead::Done(outcome) => outcome,
        });
        outcomes.collect()
    }
}
