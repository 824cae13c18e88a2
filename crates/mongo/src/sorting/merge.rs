//! Files in order, read as one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use drumlin_doc_store::Outcome;

use crate::held::Held;

use super::run::{Record, Run, RunReader};

/// What a file takes in memory while it is read, where documents are not large: a chunk, and the same compressed.
const BUFFER_BYTES: usize = 128 << 10;

/// The first record of a file that was not read yet: by its key, then by the file's place.
#[derive(Debug)]
struct Head {
    key: Vec<u8>,
    place: usize,
    document: Vec<u8>,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let place = match drumlin_base::bug!("mongo-sorts-unstable") {
            true => other.place.cmp(&self.place),
            false => self.place.cmp(&other.place),
        };
        self.key.cmp(&other.key).then(place)
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// See the module. Of equal keys that of the earlier file comes first. It holds a chunk of each file.
#[derive(Debug)]
pub(crate) struct Merge {
    readers: Vec<RunReader>,
    heads: BinaryHeap<Reverse<Head>>,
    left: usize,
    _held: Held,
}

impl Merge {
    /// The first `most` of what the files have.
    ///
    /// # Errors
    /// Of the files.
    pub(super) fn new(runs: Vec<Run>, most: usize, mut held: Held) -> Outcome<Self> {
        held.set(runs.len() * BUFFER_BYTES);
        let mut merge = Self {
            readers: runs.into_iter().map(RunReader::new).collect(),
            heads: BinaryHeap::new(),
            left: most,
            _held: held,
        };
        for place in 0..merge.readers.len() {
            merge.read(place)?;
        }
        Ok(merge)
    }

    fn read(&mut self, place: usize) -> Outcome<()> {
        let Some(reader) = self.readers.get_mut(place) else {
            return Ok(());
        };
        if let Some(Record { key, document }) = reader.next()? {
            self.heads.push(Reverse(Head {
                key,
                place,
                document,
            }));
        }
        Ok(())
    }

    /// # Errors
    /// Of the files.
    pub(super) fn next(&mut self) -> Outcome<Option<Record>> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(Reverse(head)) = self.heads.pop() else {
            return Ok(None);
        };
        self.left -= 1;
        self.read(head.place)?;
        Ok(Some(Record {
            key: head.key,
            document: head.document,
        }))
    }
}
