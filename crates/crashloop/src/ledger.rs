//! The acknowledgements that writers got, in a file in memory that outlives them.
//!
//! Each writer has three numbers: the batch it has begun, the last one acknowledged, the last one that
//! is promised to outlive a power cut. They are written at once with plain `pwrite` calls, so the
//! kernel keeps them when the process dies. One thread writes a number, any may read it.

#![expect(
    clippy::disallowed_methods,
    reason = "the ledger is the judge's own and must not pass the door that is under test"
)]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Writers of a store.
pub(crate) const WRITERS: usize = 4;

/// The meaning of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Begun,
    Acked,
    Synced,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Ledger {
    file: File,
}

impl Ledger {
    /// An empty ledger at `path`.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(path)?;
        file.set_len((WRITERS * 3 * 8) as u64)?;
        Ok(Self { file })
    }

    /// The ledger at `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        Ok(Self { file })
    }

    fn offset(writer: usize, mark: Mark) -> u64 {
        ((writer * 3 + mark as usize) * 8) as u64
    }

    pub(crate) fn set(&self, writer: usize, mark: Mark, number: u64) {
        let bytes = number.to_le_bytes();
        let written = self.file.write_all_at(&bytes, Self::offset(writer, mark));
        written.expect("the file is in memory and as long as it ever gets");
    }

    pub(crate) fn get(&self, writer: usize, mark: Mark) -> u64 {
        let mut bytes = [0; 8];
        let read = self
            .file
            .read_exact_at(&mut bytes, Self::offset(writer, mark));
        read.expect("the file is in memory and as long as it ever gets");
        u64::from_le_bytes(bytes)
    }

    /// `mark` of every writer.
    pub(crate) fn all(&self, mark: Mark) -> [u64; WRITERS] {
        std::array::from_fn(|writer| self.get(writer, mark))
    }
}
